"""``pipesim list``: the ready-made protocols, a line each, or all about one."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pipesim.cli.arguments import Command, complete
from pipesim.cli.completers import built_in
from pipesim.cli.output import emit, progress, write_report

if TYPE_CHECKING:
    from pipesim.answers.views.summary import ProtocolRow, ProtocolTraces
    from pipesim.targets import Target
    from pipesim.trace.library import StoredTrace


def _arguments(parser: argparse.ArgumentParser) -> None:
    named = parser.add_argument("protocol", nargs="?", help="all about this one: parameters, roles, barriers, traces")
    complete(named, built_in)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.protocol_process import find
    from pipesim.protocols.catalog import BUILT_IN
    from pipesim.report.pages.protocols.show import list_lines, protocol_lines

    if options.protocol is not None:
        with progress(f"flattening {options.protocol}"):
            target = find(options.protocol)
            row = _row(target, _stored_traces(f"{target.name}-*"))
        return _show(
            options, "list-protocol", {"findings": (), "report": row}, lambda width: protocol_lines(row, width)
        )
    targets = [find(name) for name in sorted(BUILT_IN)]
    rows: list[ProtocolRow] = []
    if options.json:
        with progress("flattening every protocol"):
            stored = _stored_traces()
            rows = [_row(target, stored) for target in targets]
    said = [(target.name, target.summary) for target in targets]
    return _show(options, "list", {"protocols": rows}, lambda width: list_lines(said, width))


def _show(
    options: argparse.Namespace, schema: str, members: Mapping[str, object], lines: Callable[[int], Sequence[str]]
) -> int:
    """As a document, for which all that documents may hold is imported, or as lines."""
    if options.json:
        from pipesim.formats.documents import document

        emit(options, document(schema, 0, **members), lambda _: None)
    else:
        write_report(lines)
    return 0


def _row(target: Target, stored: Sequence[StoredTrace]) -> ProtocolRow:
    """One protocol with its defaults; barriers of one name stand together."""
    from pipesim.answers.views.summary import ProtocolRow
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
        _traces(target, stored),
    )


def _stored_traces(named: str = "*") -> tuple[StoredTrace, ...]:
    """The recordings that came with pipesim and have such file names; none where it came without any."""
    from pipesim.errors import EvidenceError
    from pipesim.trace.library import stored_traces, trace_folder

    try:
        return stored_traces(trace_folder(), named)
    except EvidenceError:
        return ()


def _traces(target: Target, stored: Sequence[StoredTrace]) -> tuple[ProtocolTraces, ...]:
    """The recordings of a protocol, counted by device."""
    from pipesim.answers.views.summary import ProtocolTraces

    mine = [trace for trace in stored if trace.meta.protocol == target.name]
    usual = target.defaults
    return tuple(
        ProtocolTraces(device, len(some), any(dict(trace.meta.params) == usual for trace in some))
        for device in sorted({trace.meta.device.name for trace in mine})
        if (some := [trace for trace in mine if trace.meta.device.name == device])
    )


COMMAND = Command(
    "list",
    "the ready-made protocols",
    "List the ready-made protocols in a line each, or say all about one: parameters with their defaults, roles, "
    "barriers, recorded traces.",
    _arguments,
    _carry_out,
    (
        ("pipesim list", "every ready-made protocol in a line"),
        ("pipesim list gemm_sm90", "parameters, roles, barriers and recorded traces of one"),
    ),
)
