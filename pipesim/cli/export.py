"""``pipesim export``: a protocol in another tool's language."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pipesim.cli.arguments import Command, add_force, add_output, add_protocol, params_of, require_output
from pipesim.cli.completers import complete, names_of
from pipesim.cli.output import emit, progress
from pipesim.errors import UsageError

PROMELA = "promela"
FORMATS = (PROMELA,)


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_protocol(parser)
    to = parser.add_argument("--to", metavar="FORMAT", required=True, help="promela, the modelling language of SPIN")
    complete(to, names_of(FORMATS))
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="output file (default: standard output)")
    add_force(parser)
    add_output(parser)


def _carry_out(options: argparse.Namespace) -> int:
    if options.to not in FORMATS:
        raise UsageError(f"nothing can be exported to {options.to!r}", correction=f"use --to {PROMELA}")
    if options.output is not None:
        require_output(options.output, force=options.force)

    from pipesim.export.promela import to_promela
    from pipesim.targets import find
    from pipesim.trace.whole import write_whole

    with progress(f"flattening {options.protocol}"):
        program = find(options.protocol).build(params_of(options), grid=options.ctas)
    with progress(f"translating {program.name}"):
        text = to_promela(program)
    if options.output is not None:
        write_whole(options.output, text.encode(), force=options.force)
        said = f"wrote {options.output}: its first lines explain how to run SPIN on it\n"
    else:
        said = text
    document = {"exit_code": 0, "format": options.to, "file": options.output, "text": text}
    emit(options, document, lambda _: _write(said))
    return 0


def _write(text: str) -> None:
    """As it is, whatever the width: a model has its own lines."""
    sys.stdout.write(text)


COMMAND = Command(
    "export",
    "export a protocol to another tool's language",
    "Translate the flat program of a protocol for SPIN, an independent model checker.",
    _arguments,
    _carry_out,
    (
        ("pipesim export producer_consumer -p tiles=3 --to promela", "print the model of a built-in ring"),
        ("pipesim export my_kernel.py -p tiles=3 --to promela -o my_kernel.pml", "write that of your file"),
    ),
)
