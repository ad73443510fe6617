"""``pipesim instrument``: put records into a kernel, for a program that loads it by itself."""

import argparse
from pathlib import Path

from pipesim.cli.arguments import Command, add_flag, add_force, add_value
from pipesim.cli.output import progress, show_answer


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernel", type=Path, help="the kernel's .ptx")
    add_value(parser, "--launch", "FILE", "its launch file (default: the .json beside the .ptx)", Path)
    add_value(parser, "--out", "DIR", "the folder to write (default instrumented)", Path, Path("instrumented"))
    add_flag(parser, "--waits-only", "record at waits only, where registers are short")
    text = "the CTA that leaves records, with the others of its cluster (default: the launch file's)"
    add_value(parser, "--cta", "N", text, int)
    add_force(parser)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.formats.documents import document
    from pipesim.launches.record.gather import kernel_of, write_instrumented
    from pipesim.launches.record.preparation import with_cta
    from pipesim.report.sentences.launches import change_words
    from pipesim.report.text.words import listed

    with progress(f"instrumenting {options.kernel}"):
        text, given = kernel_of(options.kernel, options.launch)
        launch = given if options.cta is None else with_cta(given, options.cta)
        before, after, warnings, files = write_instrumented(
            text, launch, options.kernel.stem, options.out, waits_only=options.waits_only, force=options.force
        )
    said = {"registers": [before.registers, after.registers], "spills": [before.spills, after.spills],
            "stack": [before.stack, after.stack]}  # fmt: skip
    members = {"kernel": launch.entry, "folder": str(options.out), "files": files, **said, "warnings": warnings}

    pairs = [f"{name} {change_words((old, new))}" for name, (old, new) in said.items()]
    lines = [f"{launch.entry}   {' · '.join(pairs)}", *(f"  note: {each}" for each in warnings)]
    return show_answer(
        options,
        document("instrument") | members,
        lambda _: [*lines, f"written to {options.out}: {listed(list(files))}"],
    )


COMMAND = Command(
    "instrument",
    "put records into a kernel, for a program in C++",
    "Write a cubin of a kernel with records in it, what its buffer holds before a launch, and pipesim_record.h, with "
    "which a C++ program records a launch. pipesim decode makes a trace of what it wrote.",
    _arguments,
    _carry_out,
    (
        ("pipesim instrument launches/gemm.ptx", "instrumented/gemm.cubin, gemm.buffer, pipesim_record.h"),
        ("pipesim decode gemm.records --kernel instrumented/gemm.ptx", "the trace of a launch, gemm.parquet"),
    ),
)
