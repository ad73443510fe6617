"""``pipesim export``: a protocol in another tool's language."""

from __future__ import annotations

import argparse
from pathlib import Path

from pipesim.cli.arguments import (
    Command,
    add_force,
    add_launch,
    add_output,
    add_protocol,
    params_of,
    require_output,
    target_of,
)
from pipesim.cli.completers import complete, names_of
from pipesim.cli.output import emit, progress, write_text
from pipesim.errors import UsageError

PROMELA = "promela"
FORMATS = (PROMELA,)


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_protocol(parser)
    add_launch(parser)
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
    from pipesim.report.text.printable import printable
    from pipesim.trace.whole import write_whole

    with progress(f"flattening {options.protocol}"):
        program = target_of(options, options.protocol).build(params_of(options), grid=options.ctas)
    with progress(f"translating {program.name}"):
        text = to_promela(program)
    if options.output is not None:
        write_whole(options.output, text.encode(), force=options.force)
        said = f"wrote {printable(str(options.output))}: its first lines explain how to run SPIN on it\n"
    else:
        said = text
    document = {"exit_code": 0, "format": options.to, "file": options.output, "text": text}
    emit(options, document, lambda _: write_text(said))
    return 0


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
