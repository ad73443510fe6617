"""Whether a kernel marks the waits that it is asked to: those whose returns its records show."""

from __future__ import annotations

from collections.abc import Callable

from hwkernels.recorder.layout import mark
from hwkernels.recorder.table import Table
from pipesim.model.program import Program
from pipesim.model.trips import last_waiting
from pipesim.trace.schema import EventKind
from tests.support.emulator.kernel import Record, Run


def returned(table: Table, records: list[Record]) -> int:
    """The waits of a warp that returned; a try that passed is one."""
    kinds = [(table.sites[record.site].kind, record.value) for record in records]
    return sum(kind is EventKind.WAIT_RETURN or (kind is EventKind.TRY and value == 1) for kind, value in kinds)


def wrong_marks(program: Program, table: Table, launch: Callable[[tuple[int, int]], Run]) -> str:
    """What is wrong with the marks of the agent that an untraced launch is asked for, "" if nothing is.

    In each CTA its last wait is marked, and one that it never comes to is not.
    """
    agent = last_waiting(program)
    assert agent is not None
    plain = launch((0, 0))
    for cta in sorted({cta for cta, _ in plain.records}):
        waits = returned(table, plain.records.get((cta, agent), []))
        asked = (mark(agent, waits - 1), mark(agent, waits))
        said = launch(asked)
        if said.fault or returned(table, said.records.get((cta, agent), [])) != waits:
            return f"another run: {said.fault}"  # the same seed gives the same schedule
        last, beyond = said.marks[cta].tolist()
        if waits and last == asked[0]:
            return f"CTA {cta} does not mark wait {waits - 1}"
        if beyond != asked[1]:
            return f"CTA {cta} marks more than {waits} waits"
    return ""
