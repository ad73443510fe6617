"""The timeline, cell by cell, on traces small enough to be drawn by hand."""

from typing import Any

import pytest

from pipesim.model.ending import Ending
from pipesim.report.pictures.timeline import timeline_lines
from pipesim.trace.recorder import EventBuffer
from pipesim.trace.schema import AgentInfo, BarrierGroup, Device, Trace, TraceMeta
from tests.support.report_examples import SITES


def trace(*rows: tuple[int, int, int], cta: int = 0, agents: int = 1, status: str = "finished") -> Trace:
    """Events (agent, site, cycle) of a loader and ``agents`` mmas."""
    buffer = EventBuffer()
    for agent, site, cycle in rows:
        buffer.append(cta, agent, site, 0, 0, 0, 0, cycle)
    names = (AgentInfo("load", 0, 0), *(AgentInfo("mma", n, 1 + n) for n in range(agents)))
    groups = (BarrierGroup("full", 1, 1), BarrierGroup("empty", 1, 1))
    meta = TraceMeta("simulation", "ring", {}, 1, Device("chip"), names, groups, SITES, status=Ending(status))
    return Trace(meta, buffer.events(1_000_000))


def many(agents: int, *odd: int) -> list[tuple[int, int, int]]:
    """A loader and mmas that do the same, but for those in ``odd``."""
    waits = [row for n in range(agents) for row in ((1 + n, 3, 0), (1 + n, 4, 20 if n in odd else 50))]
    return [(0, 0, 0), (0, 1, 50), *waits]


def titles(lines: list[str]) -> list[str]:
    return [line[2:].partition("▒")[0].partition("░")[0].strip() for line in lines if set(line) & set("░▒")][:-1]


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        ((), ["load", "mma ×11"]),
        ((4,), ["load", "mma/0-3", "mma/4", "mma/5-10"]),
        ((0, 1), ["load", "mma/0-1", "mma/2-10"]),
        (range(1, 11, 2), ["load", *(f"mma/{n}" for n in range(7))]),
    ],
)
def test_where_agents_are_more_than_rows_those_that_look_alike_share_one(odd: tuple[int, ...], expected: Any) -> None:
    lines = timeline_lines(trace(*many(11, *odd), agents=11), None, 120)
    assert titles(lines) == expected
    assert ("agents with the same activity share a row" in lines[-1]) == (len(expected) < 8)
    assert ("  and 4 more agents" in lines) == (len(expected) == 8)
