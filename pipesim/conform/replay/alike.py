"""CTAs that recorded the same events at other times: one is replayed, the times of the others are compared by NumPy.

Where one run represents all schedules (:mod:`pipesim.prove.certificate`), each of them makes the same phases of the
same parts and breaks no rule. A replay is a schedule that the times of the records choose, so it can only stop where a
wait returned before something that comes before it in every schedule can have happened. That is a comparison of two
events, and so is that with the least latencies. A CTA in which one of them fails is replayed itself: for the words of
a divergence, and because these comparisons leave no room for the uncertainty of timestamps.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipesim.conform.replay.align import AgentAlignment
from pipesim.conform.replay.releases import Releases, earliest_rows
from pipesim.model.groups import ON_NAMED_BARRIER
from pipesim.model.machine import Flight, State, Step
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.prove.certificate.canonical import CanonicalRun
from pipesim.prove.certificate.certificate import Certificate
from pipesim.prove.happens_before.snapshot import Marks, Snapshot
from pipesim.trace.arrays import np
from pipesim.trace.recorder import ps_to_cycles
from pipesim.trace.schema import Column, CtaInfo, Events

_SAME = ("agent", "site", "stage", "parity", "iteration", "value")  #: columns that two CTAs have in common


@dataclass(frozen=True)
class AlikeCtas:
    """What a replayed CTA says about each with the same ``events``, but for their times. Rows are those of its table.

    ``before``, ``after``: pairs of rows, of which the first is not the later one. ``waits`` returned ``least`` cycles
    or more after the ``releases``; ``same``: both are of one SM.
    """

    info: CtaInfo
    events: Events
    before: Column
    after: Column
    waits: Column
    releases: Column
    least: Column
    same: Column
    uncertainty: int
    sm_khz: int

    def agrees(self, info: CtaInfo, events: Events, own: Column) -> bool:
        """Whether a replay of this CTA finds nothing; where this is False, it has to be replayed.

        ``own``: its timestamps on the clock of each event's SM.
        """
        if (info.passes, info.dropped) != (self.info.passes, self.info.dropped) or len(events) != len(self.events):
            return False
        if not all(np.array_equal(getattr(events, name), getattr(self.events, name)) for name in _SAME):
            return False
        cycle = events.cycle
        if bool((cycle[self.before] > cycle[self.after]).any()):
            return False
        error = ps_to_cycles(events.error_ps, self.sm_khz) + 1
        here, there = (clock[self.waits] - clock[self.releases] for clock in (own, cycle))
        took = np.where(self.same, here, there + error[self.waits] + error[self.releases])
        return not bool((took + self.uncertainty < self.least).any())


def alike_ctas(
    program: Program, info: CtaInfo, events: Events, aligned: Sequence[AgentAlignment], releases: Releases | None
) -> AlikeCtas | None:
    """What a CTA that was replayed to its end says of others; None where their replays may differ in more than times.

    ``releases``: what its returns were compared with, if they were.
    """
    whole = all(each.ran == tuple(range(len(code))) for each, code in zip(aligned, program.code, strict=True))
    if not whole or program.laps or program.cut or program.words_cta >= 0 or any(each.answers for each in aligned):
        return None
    if releases is not None and not releases.is_fixed:
        return None
    certificate = Certificate(program)
    order = _EventOrder(program, certificate, aligned)
    run = CanonicalRun(program, [certificate, order]).to_end()
    certificate.close()
    if run.faults or certificate.doubts or not run.finished:
        return None
    lines = [np.flatnonzero(events.agent == agent) for agent in range(len(program.agents))]
    pairs = np.array(sorted(order.pairs), dtype=np.int64).reshape(-1, 2)
    bounds = np.array(releases.bounds if releases is not None else [], dtype=np.int64).reshape(-1, 4)
    return AlikeCtas(
        info,
        replace(events, cycle=_NONE, time_ps=_NONE, error_ps=_NONE, globaltimer_ns=_NONE),
        np.concatenate([pairs[:, 0], *(line[:-1] for line in lines)]),
        np.concatenate([pairs[:, 1], *(line[1:] for line in lines)]),
        bounds[:, 0],
        bounds[:, 1],
        bounds[:, 2],
        bounds[:, 3].astype(bool),
        releases.clocks.uncertainty if releases is not None else 0,
        releases.clocks.sm_khz if releases is not None else 0,
    )


class _EventOrder:
    """Watches a canonical run after its certificate: which event comes before which in every schedule, as ``pairs``.

    Of what comes before an event the last operation of each other agent is enough, by the event that it cannot precede.
    A certificate knows of a bar.sync once it is over: that the others have reached it is added here. A request for
    registers is taken to need all requests of others that came before it in this run.
    """

    def __init__(self, program: Program, certificate: Certificate, aligned: Sequence[AgentAlignment]) -> None:
        self.pairs: set[tuple[int, int]] = set()
        self._program, self._certificate, self._aligned = program, certificate, aligned
        self._since = [earliest_rows(each) for each in aligned]
        self._seen = [(0,) * len(aligned)] * len(aligned)
        self._compared = list(self._seen)
        self._requests: list[tuple[int, int]] = []  # for registers
        self._came: dict[tuple[int, int], list[tuple[int, int]]] = {}  # to a meeting, by channel and generation
        self._at = [(0, 0)] * len(aligned)  # the last meeting of each agent
        self._places: list[list[int]] = [[] for _ in aligned]  # of operations of which more is known, and what
        self._pasts: list[list[tuple[int, ...]]] = [[] for _ in aligned]

    def on_step(self, before: State, agent: int, result: Step) -> None:
        """An agent moved, or was blocked."""
        pc = before.pcs[agent]
        op = self._program.code[agent][pc]
        if op[0] in ON_NAMED_BARRIER and not before.holds[agent]:
            channel = operand(op, "named_barrier")
            self._at[agent] = channel, before.named[channel][2]
            self._came.setdefault(self._at[agent], []).append((agent, pc))
        if result.state.pcs[agent] == pc:
            return
        rows = self._aligned[agent].rows[pc]
        if rows:
            self._compare(agent, rows[0])
        now, was = self._certificate.seen(agent), self._seen[agent]
        if op[0] == Op.BAR_SYNC:
            now = self._know(agent, pc, now, self._came[self._at[agent]])
        if op[0] == Op.SETMAXNREG:
            pools = self._program.register_pools
            if pools is not None and operand(op, "registers") > pools.of_thread(agent, pc):
                now = self._know(agent, pc, now, self._requests)
            self._requests.append((agent, pc))
        if now != was:
            for other, places in enumerate(self._places):
                more = self._pasts[other][bisect_left(places, was[other]) : bisect_left(places, now[other])]
                for past in more if other != agent else ():
                    now = tuple(map(max, now, past))
            self._seen[agent] = tuple(map(max, now, was))
        if len(rows) == 2:
            self._compare(agent, rows[1])

    def on_landing(self, flight: Flight, nbytes: int, result: Step) -> None:
        """What lands has no time."""

    def snapshot(self) -> Snapshot:
        """No lap is left out of this run."""
        return Marks().snapshot()

    def _know(self, agent: int, pc: int, now: tuple[int, ...], others: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """What comes before the end of this operation: these of others as well."""
        past = list(now)
        for other, at in others:
            past[other] = max(past[other], at + 1)
        self._places[agent].append(pc)
        self._pasts[agent].append(tuple(past))
        return self._pasts[agent][-1]

    def _compare(self, agent: int, row: int) -> None:
        """The event of ``row`` is not before what its agent knows of others."""
        for other, (now, was) in enumerate(zip(self._seen[agent], self._compared[agent], strict=True)):
            if now > was and other != agent and (first := self._since[other][now - 1]) >= 0:
                self.pairs.add((first, row))
        self._compared[agent] = self._seen[agent]


_NONE: Column = np.zeros(0, dtype=np.int64)
