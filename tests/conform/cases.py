"""Recorded and simulated traces, and the ways to tamper with one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

import numpy as np

from pipesim.conform.diagnose.outcomes import RandomSchedule
from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import Conformance, Divergence, TraceVerdict
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.trace.activity import cut
from pipesim.trace.files import read_trace
from pipesim.trace.recorder import EventBuffer
from pipesim.trace.schema import Device, EventKind, Events, SiteKey, Trace, TraceMeta
from pipesim.trace.sites import NO_SITES, site_table
from tests.support.lossy import lose
from tests.support.paths import TRACES
from tests.support.timed_ring import Ring, toy
from tests.support.timed_ring import ring as ring_of


@dataclass(frozen=True)
class Case:
    """A trace with the program that it is of. Rows are those of the event table."""

    program: Program
    trace: Trace

    def conform(self) -> Conformance:
        return conform(self.program, self.trace)

    def accepted(self) -> None:
        result = self.conform()
        assert result.divergence is None
        empty = result.iterations and not len(self.trace.events)  # a window behind the last iteration
        assert result.verdict is (TraceVerdict.UNKNOWN if empty else TraceVerdict.AGREES)
        assert result.events == len(self.trace.events)

    def refused(self) -> Divergence:
        result = self.conform()
        assert result.verdict is TraceVerdict.DIFFERS
        assert result.divergence is not None
        return result.divergence

    # looking

    @property
    def first(self) -> int:
        """The first iteration that was kept."""
        return self.trace.meta.window[0] if self.trace.meta.window else 0

    @property
    def uncertainty(self) -> int:
        return int(self.trace.meta.extra.get("order_error_cycles", 0))

    def kind(self, row: int) -> EventKind:
        return self.trace.meta.sites[int(self.trace.events.site[row])].kind

    def cycle(self, row: int) -> int:
        return int(self.trace.events.cycle[row])

    def agent(self, row: int) -> str:
        return self.trace.meta.agent_name(int(self.trace.events.agent[row]))

    def rows(self, agent: int | None = None, kind: EventKind | None = None, group: str = "", cta: int = 0) -> list[int]:
        """Rows of one agent (number within the CTA), one kind and one group of barriers, as far as they are named."""
        e = self.trace.events
        return [
            row
            for row in range(len(e))
            if e.cta[row] == cta
            and agent in (None, int(e.agent[row]))
            and kind in (None, self.kind(row))
            and group in ("", self.trace.meta.sites[int(e.site[row])].barrier)
        ]

    def same_agent(self, row: int, other: int) -> bool:
        e = self.trace.events
        return 0 <= other < len(e) and (e.cta[row], e.agent[row]) == (e.cta[other], e.agent[other])

    # tampering: each returns a case with other events

    def with_events(self, events: Events) -> Case:
        return Case(self.program, Trace(self.trace.meta, events))

    def with_meta(self, **changes: Any) -> Case:
        return Case(self.program, Trace(replace(self.trace.meta, **changes), self.trace.events))

    def hung(self) -> Case:
        """As a chip leaves it: every wait gave up at the deadline, with the uncertainty of a clock."""
        return self.with_meta(source="hardware", status="deadline", extra={"order_error_cycles": 16})

    def without(self, *rows: int) -> Case:
        keep = np.ones(len(self.trace.events), dtype=bool)
        keep[list(rows)] = False
        return self.with_events(self.trace.events.select(keep))

    def ordered(self, rows: list[int]) -> Case:
        """The rows in this order; one may be there twice."""
        return self.with_events(self.trace.events.select(np.array(rows, dtype=np.int64)))

    def changed(self, row: int, **cells: int) -> Case:
        columns = {name: getattr(self.trace.events, name).copy() for name in cells}
        for name, value in cells.items():
            columns[name][row] = value
        return self.with_events(replace(self.trace.events, **columns))

    def window(self, first: int, end: int) -> Case:
        return Case(self.program, cut(self.trace, first, end))

    def lossy(self, iterations: dict[int, int]) -> Case:
        return Case(self.program, lose(self.trace, iterations))

    def moved(self, row: int, by: int) -> Case:
        return self.changed(row, cycle=self.cycle(row) + by)

    def renumbered(self) -> Case:
        """Iterations counted again from what is there, as a decoder does it."""
        e = self.trace.events
        passes: dict[tuple[int, int, int], int] = {}
        fresh = e.iteration.copy()
        for row in range(len(e)):
            key = (int(e.cta[row]), int(e.agent[row]), int(e.site[row]))
            fresh[row] = passes.get(key, self.first)
            passes[key] = passes.get(key, self.first) + 1
        return self.with_events(replace(e, iteration=fresh))


_RETURNS = (EventKind.WAIT_RETURN, EventKind.BAR_RETURN, EventKind.GROUP_RETURN)


def recorded(
    right: Program,
    wrong: Program,
    walk: RandomSchedule,
    *,
    lag: int | None = None,
    also: frozenset[SiteKey] = NO_SITES,
    as_meant: bool = False,
    **meta: Any,
) -> Trace:
    """What a chip would record of one random schedule of ``wrong`` while ``right`` was meant to run.

    A move is 10 cycles. With ``lag``, a seed, each stamp is off as the chip's are: before an arrive, after a return.
    ``also``: the optional sites at which it records. ``as_meant``: the records name what ``right`` does at their place.
    """
    table, buffer = site_table(right if as_meant else wrong, also), EventBuffer()
    random = Random(lag)
    seen: set[tuple[int, int]] = set()
    passes: dict[tuple[int, int], int] = {}
    last: dict[int, int] = {}
    upcoming = _upcoming(walk)
    for at, move in enumerate(walk.moves):
        trapped = any((f.agent, f.pc) == move[:2] and f.kind.traps for f in walk.faults)
        for record in table.records[move.agent][move.pc]:
            kind = table.sites[record.site].kind
            entered = (move.agent, move.pc)
            if (kind not in _RETURNS and entered in seen) or (kind in _RETURNS and (not move.passed or trapped)):
                continue
            cycle = 10 * at
            if lag is not None:
                late = kind in (*_RETURNS, EventKind.WORK_END)
                cycle += random.randint(0, min(60, 10 * (upcoming[at] - at) - 1)) if late else -random.randint(0, 40)
            cycle = last[move.agent] = max(cycle, last.get(move.agent, 0))
            n = passes[move.agent, record.site] = passes.get((move.agent, record.site), -1) + 1
            buffer.append(0, move.agent, record.site, record.stage, record.parity, n, record.value, cycle)
        seen.add((move.agent, move.pc))
    status = "trap" if walk.trapped else "finished" if walk.ended else "deadline"
    described = TraceMeta(
        "hardware", right.name, dict(right.params), 1, Device("a chip", sm_khz=1_000_000), table.agents,
        table.barriers, table.sites, status=Ending(status),
    )  # fmt: skip
    return Trace(replace(described, **meta), buffer.events(1_000_000))


def _upcoming(walk: RandomSchedule) -> list[int]:
    """For each move when its agent moves next: a stamp cannot be later than that."""
    following: dict[int, int] = {}
    found = []
    for at in range(len(walk.moves) - 1, -1, -1):
        found.append(following.get(walk.moves[at].agent, at + 10))
        following[walk.moves[at].agent] = at
    return found[::-1]


def as_hardware(right: Program, simulated: Trace, **meta: Any) -> Trace:
    """A simulated run of a wrong program as a trace of the kernel that should have done the right one."""
    ends = {Ending.FINISHED: Ending.FINISHED, Ending.DEADLOCK: Ending.DEADLINE, Ending.FAULT: Ending.TRAP}
    described = replace(
        simulated.meta, source="hardware", protocol=right.name, params=dict(right.params), extra={},
        status=ends[simulated.meta.status],
    )  # fmt: skip
    return Trace(replace(described, **meta), simulated.events)


@cache
def pc(stages: int = 4, tiles: int = 16, warps: int = 2, lanes: int = 1) -> Program:
    """A ring of ``producer_consumer``."""
    params = {"stages": stages, "tiles": tiles, "consumer_warps": warps, "arrive_lanes": lanes}
    return find("producer_consumer").build(params)


@cache
def stored(name: str) -> Case:
    trace = read_trace(TRACES / name)
    return Case(find(trace.meta.protocol).build(trace.meta.params, grid=trace.meta.grid, twice=False), trace)


def simulated(uncertainty: int = 0, profile: Any = None, **ring: Any) -> Case:
    program = ring_of(Ring(**ring)).flatten({})
    return run(program, uncertainty, profile)


def run(program: Program, uncertainty: int = 0, profile: Any = None) -> Case:
    trace = simulate(program, profile or toy()).trace
    extra = trace.meta.extra | ({"order_error_cycles": uncertainty} if uncertainty else {})
    return Case(program, Trace(replace(trace.meta, extra=extra), trace.events))
