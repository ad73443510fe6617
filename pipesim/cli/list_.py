"""``pipesim list``: the ready-made protocols."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pipesim.cli.arguments import Command, add_output
from pipesim.cli.output import emit, progress

if TYPE_CHECKING:
    from pipesim.answers.views.rows import ProtocolRow
    from pipesim.targets import Target


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.protocols.catalog import BUILT_IN
    from pipesim.report.text.table import paint_list
    from pipesim.targets import find

    with progress("flattening every protocol"):
        rows = [_row(find(name)) for name in sorted(BUILT_IN)]
    emit(options, rows, lambda console: paint_list(console, rows))
    return 0


def _row(target: Target) -> ProtocolRow:
    """One protocol with its defaults; barriers of one name stand together."""
    from pipesim.answers.views.rows import ProtocolRow
    from pipesim.explain.anatomy.read import anatomy

    found = anatomy(target.build())
    counts: dict[tuple[str, int], set[int | None]] = {}
    for group in found.groups:
        counts.setdefault((group.name, group.size), set()).add(group.count)
    return ProtocolRow(
        target.name,
        target.summary,
        target.defaults,
        tuple((role.name, len(role.warps)) for role in found.roles),
        tuple((name, size, alike.pop() if len(alike) == 1 else None) for (name, size), alike in counts.items()),
        found.ctas,
    )


COMMAND = Command(
    "list",
    "the ready-made protocols",
    "List the ready-made protocols with their parameters.",
    _arguments,
    _carry_out,
)
