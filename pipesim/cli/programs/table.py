"""``pipesim table``: the table of roles, barriers and recording sites that a kernel of a protocol includes."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from pipesim.cli.arguments import Command, add_flag, add_force, add_protocol, add_value, params_of, require_output
from pipesim.cli.output import progress, show_text


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_protocol(parser)
    add_value(parser, "-o --output", "FILE", "output file (default: standard output)", Path)
    text = (
        "only the sites that a kernel must have, without those of cp.async arrivals, named barriers, commits and "
        "group waits"
    )
    add_flag(parser, "--required", text)
    add_force(parser)


def _carry_out(options: argparse.Namespace) -> int:
    require_output(options.output, force=options.force)

    from hwkernels.capture.kernel_names import macros_of
    from hwkernels.source_recorder.record_format import MAX_SITES
    from hwkernels.source_recorder.table_file import Spelling, fixed_macros, table_text, variants_of
    from pipesim.formats.documents import document
    from pipesim.model.program import Program
    from pipesim.protocol_process import find

    target = find(options.protocol)
    params = (target.defaults if target.program is None else {}) | params_of(options)

    def build(values: Mapping[str, int]) -> Program:
        return target.build({name: values[name] for name in params}, grid=options.ctas)

    with progress(f"flattening {options.protocol}"):
        variants = variants_of(build, macros_of, params, tuple(params), every=not options.required)
        most = max(len(variant.table.sites) for variant in variants)
        if most > MAX_SITES and not options.required:
            variants = variants_of(build, macros_of, params, tuple(params))
    note = _left_out(most, MAX_SITES) if most > MAX_SITES and not options.required else ()
    text = table_text(variants, Spelling((*_head(build(params).name, fixed_macros(variants)), *note)))
    made = document("table", file=options.output, text=text)
    return show_text(options, made, text, "name it as PIPESIM_TABLE in the kernel, before table.cuh")


def _head(name: str, only: Mapping[str, int]) -> tuple[str, ...]:
    lines = [
        f"The roles, barriers and recording sites of {name}, from its protocol by `pipesim table`: read by the kernel",
        "(through table.cuh) and by pipesim.",
    ]
    if only:
        known = ", ".join(f"{name} = {value}" for name, value in only.items())
        lines.append(f"For {known}: with another value it has other roles or barriers, or cannot be made.")
    return tuple(lines)


def _left_out(sites: int, most: int) -> tuple[str, ...]:
    return (
        (
            f"Without the sites that a kernel need not have: with them there would be {sites}, and a record can name "
            f"{most}."
        ),
    )


COMMAND = Command(
    "table",
    "write the table that a kernel of a protocol includes",
    "Write the roles, barriers and recording sites of a protocol as the table that a CUDA kernel includes and "
    "`pipesim capture --kernel` reads; numbers that depend on parameters become expressions of these.",
    _arguments,
    _carry_out,
    (
        ("pipesim table producer_consumer", "print the table of a built-in protocol"),
        ("pipesim table my_kernel.py -o my_kernel.table.h", "write the table of your own"),
    ),
)
