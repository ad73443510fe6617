"""Derives the formula of a program's times by watching one run, and finds out whether its order is static.

What the run shows is right for every profile if the program itself orders whatever the times depend on: the arrivals
of one phase before those of the next, each wait between the completions around it, accesses to the same memory, and
who uses an engine after whom. That is asked of :class:`AgentKnowledge` at each step. Where phases and engines are not
ordered so, the formula says which times must follow one another for it to be right (``Do.AFTER``).
Memory must be ordered by the program; the first thing that cannot be told is the reason why there is no formula.
"""

from __future__ import annotations

import numpy as np

from pipesim.model.groups import (
    ACCESSES,
    ARRIVALS,
    BLOCKING_WAITS,
    CLUSTER,
    COMMITS,
    MEETINGS,
    NO_EFFECT,
    PARITY_TRIES,
    SIGNALS,
    TIMED_SIGNALS,
)
from pipesim.model.machine import Flight, State, Step
from pipesim.model.ops import Engine, Op, Operation
from pipesim.model.positions import (
    ACCESS,
    ANSWER,
    BARRIER,
    ENGINE,
    GROUPS,
    ITEM,
    NAMED_BARRIER,
    NOINC,
    PARITY,
    TOKEN,
    TX_BYTES,
)
from pipesim.model.program import Program
from pipesim.model.state import OWN
from pipesim.timed.outline import outline
from pipesim.timed.recurrence.derivation.engine_uses import EngineUses
from pipesim.timed.recurrence.derivation.history import (
    BarrierHistory,
    MeetingHistory,
    PhaseContribution,
    SeenPhase,
    UnderWay,
)
from pipesim.timed.recurrence.derivation.knowledge import AgentKnowledge, KnowledgeClock
from pipesim.timed.recurrence.derivation.ordered_memory import OrderedMemory, OrderedTouch
from pipesim.timed.recurrence.derivation.register_waits import releases_awaited
from pipesim.timed.recurrence.derivation.writer import FormulaWriter
from pipesim.timed.recurrence.formula import Do, Formula
from pipesim.timed.sm.tensor_cores import begin_together


class NotStaticError(Exception):
    """The order depends on times. Raised and caught here: the text is the reason."""


ANSWERED = -1  #: in place of the time of a try: it has waited for its phase, the wait after it does not


class Derivation:
    """Watches one run of a program. ``formula`` is its formula, None with the ``reason`` if the order is not static."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._outline = outline(program)
        self._out = FormulaWriter(program)
        self._knows = AgentKnowledge(program)
        self._engines = EngineUses(program, self._out, self._knows)
        self._memory = OrderedMemory(program.cell_count)
        self._bars = [BarrierHistory() for _ in program.barriers]
        self._meetings = [MeetingHistory() for _ in range(len(program.named_barriers) + 1)]
        self._flights: dict[int, UnderWay] = {}
        self._groups: dict[tuple[int, int], list[tuple[int, int, KnowledgeClock]]] = {}
        self._ends: dict[tuple[int, int], list[tuple[int, int]]] = {}  # what says that transfers of an agent are over
        self._fed = self._outline.fed
        self._asked: dict[int, tuple[int, KnowledgeClock]] = {}  # who asked for registers: when, and what it knew
        self._tries: dict[tuple[int, int], tuple[int, int, int]] = {}  # (agent, register) → barrier, phase, when
        self._away: list[tuple[int, int, int]] = []  # what happens in another CTA: which, component, least value
        self.reason = "agents end at a cluster barrier that others wait at" if program.leaves_cluster_barrier else ""
        if program.work and any(len(each) > 1 for each in begin_together(program.agents, program.warp_groups)):
            self.reason = "two warp groups use the same tensor cores"

    @property
    def formula(self) -> Formula | None:
        """The formula, once the run is over."""
        if self.reason:
            return None
        for agent in range(self._out.formula.agents):
            self._out.settle(agent)
        self._out.formula.drop_unread()
        return self._out.formula

    def ended(self) -> None:
        """The run is over. What happens in another CTA must be known there before its last agent ends."""
        agents = self._program.agents
        for cta, component, least in self._away:
            if not any(
                agents[a].cta == cta and clock[component] >= least for a, clock in enumerate(self._knows.clocks)
            ):
                self.reason = self.reason or "a CTA may exit before another one has used its memory"

    # the run

    def stepped(self, before: State, agent: int, result: Step) -> None:
        """An agent moved, or was blocked."""
        if self.reason or (result.blocked >= 0 and result.state is before):
            return
        try:
            self._stepped(before, agent, result)
        except NotStaticError as why:
            self.reason = str(why)

    def landed(self, flight: Flight, _: int, result: Step) -> None:
        """A transfer has ended, or the arrival that it stands for."""
        if self.reason:
            return
        if result.faults:
            self.reason = "a rule is broken"
            return
        mine = self._flights.pop(flight.sequence)
        if flight.barrier >= 0:
            try:
                self._contribute(
                    flight.barrier, PhaseContribution(mine.value, -1, flight.agent, mine.pc, mine.knew), result
                )
            except NotStaticError as why:
                self.reason = str(why)

    def _stepped(self, before: State, agent: int, result: Step) -> None:
        if result.faults:
            raise NotStaticError("a rule is broken")
        pc = before.pcs[agent]
        op = self._program.code[agent][pc]
        code = op[0]
        known = self._outline.distinct[agent][self._outline.places[agent][pc]]
        price = self._out.price(agent, pc)
        if before.holds[agent]:
            self._leave(agent, op[NAMED_BARRIER], before.holds[agent] - 1)
            return
        self._knows.did(agent, pc)
        if code in BLOCKING_WAITS:
            self._wait(before, agent, pc, op, price, recorded=known.first >= 0)
        elif code in MEETINGS:
            self._meet(before, agent, op, price, result)
        elif code == Op.WAIT_GROUP:
            self._wait_group(agent, op, price)
        elif code == Op.SETMAXNREG:
            self._registers(agent, price)
        else:
            self._others(before, agent, pc, op, price, result)
            self._out.spend(agent, price)

    def _others(self, before: State, agent: int, pc: int, op: Operation, price: int, result: Step) -> None:
        """An operation that never blocks."""
        code = op[0]
        if code in ACCESSES:
            first, end = self._program.cells[op[ACCESS]]
            item = op[ITEM]
            self._touch(OrderedTouch(agent, OWN, first, end, code == Op.WRITE, item, [(agent, pc + 1)]))
            self._reaches(agent, self._program.accesses[op[ACCESS]].cta, agent, pc + 1)
        elif code in SIGNALS:
            self._signal(agent, pc, op, price, result)
        elif code in PARITY_TRIES:
            self._try(before, agent, pc, op, price)
        elif code == Op.INIT:
            bar = self._bars[op[BARRIER]]
            if bar.init[0] >= 0:
                raise NotStaticError("an mbarrier is used for something else")
            bar.init = (agent, pc + 1)
        elif code == Op.ENGINE_WORK:
            self._engines.multiply(agent, pc, price)
        elif result.state.issued > before.issued:
            self._issue(agent, pc, op, price, result.state.flights[before.issued - result.state.issued :])
        elif code in COMMITS:
            self._close(agent, op)
        elif code not in NO_EFFECT:
            raise NotStaticError(f"the result of {Op(code).name} depends on when it is executed")

    # who knows what

    def _reaches(self, agent: int, cta: int, component: int, least: int) -> None:
        """Something of an agent happens in a CTA; who knows this component to be so high knows that it has."""
        if cta != self._cta(agent):
            self._away.append((cta, component, least))

    def _cta(self, agent: int) -> int:
        return self._program.agents[agent].cta

    # barriers

    def _signal(self, agent: int, pc: int, op: Operation, price: int, result: Step) -> None:
        bar = self._bars[op[BARRIER]]
        if op[0] not in TIMED_SIGNALS or (op[0] in ARRIVALS and op[TOKEN] >= 0):
            raise NotStaticError(f"{Op(op[0]).name} on an mbarrier is not part of the formula")
        if op[0] == Op.EXPECT_TX and op[TX_BYTES]:
            bar.expecting.add(agent)
        elif op[0] in ARRIVALS:
            bar.expecting.discard(agent)
        part = PhaseContribution(self._out.saved(agent), price, agent, pc, self._knows.copy(agent))
        self._reaches(agent, self._program.barriers[op[BARRIER]].cta, agent, pc + 1)
        self._contribute(op[BARRIER], part, result)

    def _contribute(self, barrier: int, part: PhaseContribution, result: Step) -> None:
        """Part of a phase has come, after the phase before it is complete."""
        bar = self._bars[barrier]
        if not self._reached(barrier, part.knew, 0):
            raise NotStaticError("an mbarrier is used by agents that do not know of its init")
        if not self._reached(barrier, part.knew, len(bar.phases)):
            self._out.do(Do.AFTER, part.value, bar.phases[-1].complete)
        bar.parts.append(part)
        if result.signalled == barrier:
            self._completed(barrier, bar)

    def _reached(self, barrier: int, knew: KnowledgeClock, phases: int) -> bool:
        initialiser, least = self._bars[barrier].init
        return bool(initialiser >= 0 and knew[initialiser] >= least and knew[self._knows.barrier + barrier] >= phases)

    def _completed(self, barrier: int, bar: BarrierHistory) -> None:
        if bar.expecting:
            raise NotStaticError("bytes are expected by an agent that does not arrive")
        knew = np.maximum.reduce([part.knew for part in bar.parts])
        landed = bar.parts[-1].price < 0
        deciding = [part for part in bar.parts if (part.price < 0) == landed]
        others = [part for part in bar.parts if (part.price < 0) != landed]
        if landed:  # an arrival before the issue of what lands is before the landing
            others = [a for a in others if all(part.knew[a.agent] < a.pc + 1 for part in deciding)]
        complete = value = self._out.latest([part.value for part in deciding])
        for part in others:
            self._out.do(Do.AFTER, complete, part.value)
        for agent, pc, returned in bar.waiters.pop(len(bar.phases) - 1, ()):
            if knew[agent] < pc + 1:
                self._out.do(Do.AFTER, complete, returned)
        knew[self._knows.barrier + barrier] = len(bar.phases) + 1
        if not landed:
            price, value = deciding[0].price, self._out.value()
            self._out.formula.alike |= {(price, part.price) for part in deciding if part.price != price}
            self._out.do(Do.SEEN, value, complete, price)
        for asked in bar.failed:
            self._out.do(Do.AFTER, value, asked)
        bar.failed = []
        bar.phases.append(SeenPhase(complete, value, landed, knew))
        bar.parts = []

    def _asks(self, barrier: int, agent: int, phase: int) -> None:
        """An agent asks for a phase, after the phase before it is complete."""
        clock = self._knows.clocks[agent]
        if not self._reached(barrier, clock, 0):
            raise NotStaticError("an mbarrier is used by agents that do not know of its init")
        self._out.settle(agent)
        if phase > 0 and not self._reached(barrier, clock, phase):
            self._out.do(Do.AFTER, agent, self._bars[barrier].phases[phase - 1].complete)

    def _try(self, before: State, agent: int, pc: int, op: Operation, price: int) -> None:
        """A try is made; what it finds decides whether the wait after it is skipped."""
        barrier, parity = op[BARRIER], op[PARITY]
        done = before.barriers[barrier].done
        phase = done - 1 if (done & 1) != parity else done
        self._asks(barrier, agent, phase)
        suspends = op[0] == Op.TRY_WAIT
        if suspends and barrier not in self._fed:
            self._looks_twice(agent, barrier, phase, price)
        if suspended := suspends and barrier in self._fed:
            if phase == done:
                raise NotStaticError("a try gives up before its phase is complete")
            self._out.formula.tries.add(price)
            if phase >= 0:
                seen = self._bars[barrier].phases[phase]
                self._out.settle(agent)
                self._out.do(Do.TRY, agent, seen.value, price, seen.landed)
                self._knows.learns(agent, seen.knew)
        when = self._out.saved(agent)
        self._bars[barrier].waiters.setdefault(phase, []).append((agent, pc, when))
        if op[ANSWER] >= 0:
            self._tries[agent, op[ANSWER]] = (barrier, phase, ANSWERED if suspended else when)

    def _looks_twice(self, agent: int, barrier: int, phase: int, price: int) -> None:
        """A try on a barrier of arrives that fails: it looks once more, a poll later."""
        if phase < 0:
            return
        bar = self._bars[barrier]
        self._out.formula.tries.add(price)
        asked = self._out.saved(agent)
        if phase < len(bar.phases):
            self._out.do(Do.TRY_AGAIN, agent, bar.phases[phase].value)
        else:
            bar.failed.append(asked)
            self._out.do(Do.TRY_AGAIN, agent, -1)

    def _wait(self, before: State, agent: int, pc: int, op: Operation, price: int, *, recorded: bool) -> None:
        if op[0] == Op.WAIT_STATE:
            raise NotStaticError("a wait names its phase by the state that an arrive returned")
        barrier = op[BARRIER]
        bar = self._bars[barrier]
        tried = self._tries.get((agent, op[ANSWER])) if op[0] == Op.WAIT_UNLESS and op[ANSWER] >= 0 else None
        phase = before.barriers[barrier].done - 1
        if tried is not None:
            if tried[:2] != (barrier, tried[1]) or tried[1] & 1 != op[PARITY]:
                raise NotStaticError("a wait depends on the result of a try of another phase")
            phase = tried[1]
        self._asks(barrier, agent, phase)
        if phase < 0:
            if tried is None:
                self._out.do(Do.WAIT, agent, -1, price, False, recorded)
        else:
            seen = bar.phases[phase]
            if tried is None:
                self._out.do(Do.WAIT, agent, seen.value, price, seen.landed, recorded)
            elif tried[2] != ANSWERED:
                self._out.do(Do.WAIT_UNLESS, agent, seen.value, price, seen.landed, recorded, tried[2])
            self._knows.learns(agent, seen.knew)
        bar.waiters.setdefault(phase, []).append((agent, pc, self._out.saved(agent)))

    # meetings

    def _meet(self, before: State, agent: int, op: Operation, price: int, result: Step) -> None:
        """An agent arrives at a named barrier or the cluster barrier, or goes on from the latter."""
        program = self._program
        where = len(self._meetings) - 1 if op[0] in CLUSTER else op[NAMED_BARRIER]
        if op[0] == Op.CLUSTER_WAIT:
            self._leave(agent, where, before.cluster_held[agent])
            return
        meeting = self._meetings[where]
        if self._knows.clocks[agent][self._knows.named + where] < len(meeting.met):
            raise NotStaticError("an agent may arrive at one meeting of threads or at the next")
        saved = self._out.saved(agent)
        meeting.gathered.append((saved, self._knows.copy(agent)))
        full = result.signalled == len(program.barriers) + where
        if full:
            value = self._out.latest([value for value, _ in meeting.gathered])
            self._out.do(Do.SEEN, value, value, price)
            knew = np.maximum.reduce([clock for _, clock in meeting.gathered])
            knew[self._knows.named + where] = len(meeting.met) + 1
            meeting.met.append((value, knew))
            meeting.gathered = []
        if op[0] == Op.BAR_SYNC and full:
            self._leave(agent, where, len(meeting.met) - 1)
        elif op[0] != Op.BAR_SYNC:
            self._out.spend(agent, price)

    def _leave(self, agent: int, where: int, generation: int) -> None:
        value, knew = self._meetings[where].met[generation]
        self._out.settle(agent)
        self._out.do(Do.LEAVE, agent, value)
        self._knows.learns(agent, knew)

    # transfers

    def _touch(self, touch: OrderedTouch) -> None:
        if not self._memory.touched(touch, self._knows.clocks[touch.agent]):
            raise NotStaticError("two accesses to the same memory are in an order that depends on times")

    def _issue(self, agent: int, pc: int, op: Operation, price: int, flights: tuple[Flight, ...]) -> None:
        """Something is put under way."""
        if op[0] == Op.CP_ASYNC_ARRIVE and not op[NOINC]:
            raise NotStaticError("a phase waits for one arrival more as soon as copies are counted on it")
        self._out.settle(agent)
        value = self._out.value()
        self._engines.landing(agent, pc, price, flights[0], value)
        knew = self._knows.copy(agent)
        for flight in flights:
            touch = None
            if flight.barrier >= 0:
                complete = self._knows.barrier + flight.barrier, len(self._bars[flight.barrier].phases) + 1
                self._reaches(agent, self._program.barriers[flight.barrier].cta, *complete)
            elif self._program.ctas > 1:
                raise NotStaticError("a CTA of a cluster has transfers that no mbarrier counts")
            if flight.first < flight.end:
                ends = [] if flight.barrier >= 0 else self._ends.setdefault((agent, flight.engine), [])
                cells = flight.first, flight.end
                touch = OrderedTouch(agent, flight.engine, *cells, flight.writes, flight.item, ends, len(ends))
                if flight.barrier >= 0:
                    ends.append(complete)
                    self._reaches(agent, self._program.cell_ctas[flight.first], *complete)
                self._touch(touch)
            self._flights[flight.sequence] = UnderWay(value, pc, knew, touch)
            if flight.after:
                self._ends.setdefault((agent, flight.engine), []).append(complete)
        self._out.formula.landings.append((value, self._cta(agent), any(f.first < f.end for f in flights)))

    def _close(self, agent: int, op: Operation) -> None:
        """A group is closed: it is finished when all that was issued before has landed."""
        key = (agent, op[ENGINE])
        saved = self._out.saved(agent)
        last = self._engines.last(*key)
        if last >= 0:
            saved = self._out.latest([saved, last])
        groups = self._groups.setdefault(key, [])
        groups.append((saved, last, self._knows.copy(agent)))
        component = self._knows.groups(*key)
        self._ends.setdefault(key, []).append((component, len(groups)))

    def _wait_group(self, agent: int, op: Operation, price: int) -> None:
        engine = op[ENGINE]
        members = self._program.warp_groups[agent] if engine == Engine.WGMMA else (agent,)
        limit = len(self._groups.get((agent, engine), ())) - op[GROUPS]
        self._out.settle(agent)
        ready = -1
        if limit > 0:
            done = [self._groups[member, engine][limit - 1] for member in members]
            ready = self._out.latest([value for value, _, _ in done])
            for member, (_, _, knew) in zip(members, done, strict=True):
                self._knows.learns(agent, knew)
                component = self._knows.groups(member, engine)
                self._knows.clocks[agent][component] = max(limit, self._knows.clocks[agent][component])
        self._out.do(Do.GROUP, agent, ready, price)

    def _registers(self, agent: int, price: int) -> None:
        """A request for registers is granted when others have given theirs back."""
        awaited = releases_awaited(self._program, agent)
        if awaited is None:
            raise NotStaticError("what a request for registers waits for depends on times")
        self._asked[agent] = self._out.saved(agent), self._knows.copy(agent)
        released = [self._asked[other] for other in awaited]
        for _, knew in released:
            self._knows.learns(agent, knew)
        self._out.do(Do.GROUP, agent, self._out.latest([value for value, _ in released]) if released else -1, price)
