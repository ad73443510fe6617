"""``pipesim list``: the ready-made protocols."""

from __future__ import annotations

import argparse

from pipesim.cli.arguments import Command, add_output
from pipesim.cli.output import emit


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.protocols.catalog import BUILT_IN, find
    from pipesim.report.table import paint_list
    from pipesim.report.view import ProtocolRow

    targets = [find(name) for name in sorted(BUILT_IN)]
    rows = [ProtocolRow(t.name, t.summary, t.defaults) for t in targets]
    emit(options, rows, lambda console: paint_list(console, rows))
    return 0


COMMAND = Command(
    "list",
    "the ready-made protocols",
    "List the ready-made protocols with their parameters.",
    _arguments,
    _carry_out,
)
