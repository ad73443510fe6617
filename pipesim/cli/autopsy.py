"""``pipesim autopsy``: what a core dump of a kernel that hangs says."""

from __future__ import annotations

import argparse
from pathlib import Path

from pipesim.cli.arguments import Command, add_output
from pipesim.cli.output import progress, show_answer


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dump", type=Path, help="a core dump of a GPU, as it is or packed by gzip or xz")
    add_output(parser)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.answers.autopsy.autopsy import autopsy
    from pipesim.export.documents import document_of
    from pipesim.report.pages.autopsy import autopsy_lines

    with progress(f"reading {options.dump}"):
        report = autopsy(options.dump)
    return show_answer(options, document_of(report), lambda width: autopsy_lines(report, width))


COMMAND = Command(
    "autopsy",
    "what a core dump of a kernel that hangs says: who waits for whom",
    "Read a core dump that the driver wrote of a GPU: where each warp stands and what it waits for, what each barrier "
    "lacks, who could have supplied it, and where that warp is now. No GPU and no driver is needed.",
    _arguments,
    _carry_out,
    (
        ("pipesim autopsy core.elf", "who waits for whom in the kernel that hung"),
        ("pipesim autopsy core.elf.xz --json", "the same for another tool; a dump may be packed"),
    ),
)
