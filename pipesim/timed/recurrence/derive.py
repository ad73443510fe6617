"""Derives the formula of a program's times by watching one run, and finds out whether its order is static.

What the run shows is right for every profile if the program itself orders whatever the times depend on: the arrivals
of one phase before those of the next, each wait between the completions around it, accesses to the same memory, and
who uses an engine after whom. That is asked of :mod:`~pipesim.timed.recurrence.knowledge` at each step. Where phases
and engines are not ordered so, the formula says which times must follow one another for it to be right (``Do.AFTER``).
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
    RETURNS_LATE,
    SIGNALS,
    TIMED_SIGNALS,
)
from pipesim.model.machine import TMA, Flight, State, Step
from pipesim.model.ops import IN_ORDER, Engine, Op, Operation
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
from pipesim.timed.costs import form
from pipesim.timed.outline import outline
from pipesim.timed.recurrence.formula import Do, Formula, Priced
from pipesim.timed.recurrence.history import BarrierHistory, MeetingHistory, PhaseContribution, SeenPhase, UnderWay
from pipesim.timed.recurrence.knowledge import AgentKnowledge, KnowledgeClock
from pipesim.timed.recurrence.ordered_memory import OrderedMemory, OrderedTouch
from pipesim.timed.recurrence.register_waits import releases_awaited
from pipesim.timed.work import QUARTERS
from pipesim.trace.sites import kinds


class NotStaticError(Exception):
    """The order depends on times. Raised and caught here: the text is the reason."""


ANSWERED = -1  #: in place of the time of a try: it has waited for its phase, the wait after it does not


class Derivation:
    """Watches one run of a program. ``formula`` is its formula, None with the ``reason`` if the order is not static."""

    def __init__(self, program: Program) -> None:
        agents = len(program.agents)
        self._program = program
        self._outline = outline(program)
        self._knows = AgentKnowledge(program)
        self._memory = OrderedMemory(program.cell_count)
        self._formula = Formula(tuple(agent.cta for agent in program.agents))
        self._prices: dict[tuple[tuple[int, ...], bool], int] = {}
        self._of_distinct: list[dict[int, int]] = [{} for _ in range(agents)]
        self._sums: dict[tuple[int, ...], int] = {}
        self._spent: list[list[int]] = [[] for _ in range(agents)]  # busy cycles that are not yet in the agent's time
        self._bars = [BarrierHistory() for _ in program.barriers]
        self._meetings = [MeetingHistory() for _ in range(len(program.named_barriers) + 1)]
        self._flights: dict[int, UnderWay] = {}
        self._landed: dict[tuple[int, int], int] = {}  # (agent, engine) → value of its last landing
        self._groups: dict[tuple[int, int], list[tuple[int, int, KnowledgeClock]]] = {}
        self._open: dict[tuple[int, int], list[OrderedTouch]] = {}  # accesses of the group that is not yet closed
        self._users: dict[tuple[Op, int], tuple[int, int, int]] = {}  # of an engine: who used it last, where, when
        self._uncommitted: dict[tuple[int, int], list[OrderedTouch]] = {}
        self._fed = self._outline.fed
        self._asked: dict[int, tuple[int, KnowledgeClock]] = {}  # who asked for registers: when, and what it knew
        self._tries: dict[tuple[int, int], tuple[int, int, int]] = {}  # (agent, register) → barrier, phase, when
        self._away: list[tuple[int, int, int]] = []  # what happens in another CTA: which, component, least value
        self._formula.values = agents
        self._multiplied = [self._value() for _ in range(agents)]  # when an engine ends what an agent gave it last
        self._copy_engines = [self._value() for _ in range(program.ctas)]
        self._matrix_engines = [self._value() for _ in range(program.ctas * (1 + QUARTERS))]
        self.reason = "agents end at a cluster barrier that others wait at" if program.leaves_cluster_barrier else ""

    @property
    def formula(self) -> Formula | None:
        """The formula, once the run is over."""
        if self.reason:
            return None
        for agent in range(self._formula.agents):
            self._settle(agent)
        self._formula.drop_unread()
        return self._formula

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
        price = self._price(agent, pc)
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
            self._spent[agent].append(price)

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
            self._multiply(agent, pc, price)
        elif result.state.issued > before.issued:
            self._issue(agent, pc, op, price, result.state.flights[before.issued - result.state.issued :])
        elif code in COMMITS:
            self._close(agent, op)
        elif code not in NO_EFFECT:
            raise NotStaticError(f"the result of {Op(code).name} depends on when it is executed")

    # values

    def _value(self) -> int:
        self._formula.values += 1
        return self._formula.values - 1

    def _do(self, what: Do, *operands: int) -> None:
        self._formula.instructions.append((what, *operands))

    def _price(self, agent: int, pc: int) -> int:
        """The number of an operation's price; of all that cost the same by their form the same."""
        number = self._outline.places[agent][pc]
        found = self._of_distinct[agent].get(number)
        if found is None:
            each = self._outline.distinct[agent][number]
            extra = each.recorded and not kinds(each.op) and each.op[0] not in RETURNS_LATE
            key = (*form(self._program, each.op), each.line)
            found = self._prices.setdefault((key, extra), len(self._formula.priced))
            if found == len(self._formula.priced):
                self._formula.priced.append(Priced(each.op, each.line, extra))
            self._of_distinct[agent][number] = found
        return found

    def _settle(self, agent: int) -> None:
        """Bring an agent's time up to its next operation."""
        spent = self._spent[agent]
        if spent:
            key = tuple(spent)
            number = self._sums.setdefault(key, len(self._formula.sums))
            if number == len(self._formula.sums):
                self._formula.sums.append(key)
            self._do(Do.ADD, agent, number)
            spent.clear()

    def _saved(self, agent: int) -> int:
        self._settle(agent)
        value = self._value()
        self._do(Do.SAVE, value, agent)
        return value

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
        part = PhaseContribution(self._saved(agent), price, agent, pc, self._knows.copy(agent))
        self._reaches(agent, self._program.barriers[op[BARRIER]].cta, agent, pc + 1)
        self._contribute(op[BARRIER], part, result)

    def _contribute(self, barrier: int, part: PhaseContribution, result: Step) -> None:
        """Part of a phase has come, after the phase before it is complete."""
        bar = self._bars[barrier]
        if not self._reached(barrier, part.knew, 0):
            raise NotStaticError("an mbarrier is used by agents that do not know of its init")
        if not self._reached(barrier, part.knew, len(bar.phases)):
            self._do(Do.AFTER, part.value, bar.phases[-1].complete)
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
        complete = value = self._latest([part.value for part in deciding])
        for part in others:
            self._do(Do.AFTER, complete, part.value)
        for agent, pc, returned in bar.waiters.pop(len(bar.phases) - 1, ()):
            if knew[agent] < pc + 1:
                self._do(Do.AFTER, complete, returned)
        knew[self._knows.barrier + barrier] = len(bar.phases) + 1
        if not landed:
            price, value = deciding[0].price, self._value()
            self._formula.alike |= {(price, part.price) for part in deciding if part.price != price}
            self._do(Do.SEEN, value, complete, price)
        bar.phases.append(SeenPhase(complete, value, landed, knew))
        bar.parts = []

    def _latest(self, values: list[int]) -> int:
        if len(values) == 1:
            return values[0]
        found = self._value()
        self._do(Do.SAVE, found, values[0])
        for value in values[1:]:
            self._do(Do.LATER, found, found, value)
        return found

    def _asks(self, barrier: int, agent: int, phase: int) -> None:
        """An agent asks for a phase, after the phase before it is complete."""
        clock = self._knows.clocks[agent]
        if not self._reached(barrier, clock, 0):
            raise NotStaticError("an mbarrier is used by agents that do not know of its init")
        self._settle(agent)
        if phase > 0 and not self._reached(barrier, clock, phase):
            self._do(Do.AFTER, agent, self._bars[barrier].phases[phase - 1].complete)

    def _try(self, before: State, agent: int, pc: int, op: Operation, price: int) -> None:
        """A try is made; what it finds decides whether the wait after it is skipped."""
        barrier, parity = op[BARRIER], op[PARITY]
        done = before.barriers[barrier].done
        phase = done - 1 if (done & 1) != parity else done
        self._asks(barrier, agent, phase)
        suspended = op[0] == Op.TRY_WAIT and barrier in self._fed
        if suspended:
            if phase == done:
                raise NotStaticError("a try gives up before its phase is complete")
            self._formula.tries.add(price)
            if phase >= 0:
                seen = self._bars[barrier].phases[phase]
                self._settle(agent)
                self._do(Do.TRY, agent, seen.value, price, seen.landed)
                self._knows.learns(agent, seen.knew)
        when = self._saved(agent)
        self._bars[barrier].waiters.setdefault(phase, []).append((agent, pc, when))
        if op[ANSWER] >= 0:
            self._tries[agent, op[ANSWER]] = (barrier, phase, ANSWERED if suspended else when)

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
                self._do(Do.WAIT, agent, -1, price, False, recorded)
        else:
            seen = bar.phases[phase]
            if tried is None:
                self._do(Do.WAIT, agent, seen.value, price, seen.landed, recorded)
            elif tried[2] != ANSWERED:
                self._do(Do.WAIT_UNLESS, agent, seen.value, price, seen.landed, recorded, tried[2])
            self._knows.learns(agent, seen.knew)
        bar.waiters.setdefault(phase, []).append((agent, pc, self._saved(agent)))

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
        saved = self._saved(agent)
        meeting.gathered.append((saved, self._knows.copy(agent)))
        full = result.signalled == len(program.barriers) + where
        if full:
            value = self._latest([value for value, _ in meeting.gathered])
            self._do(Do.SEEN, value, value, price)
            knew = np.maximum.reduce([clock for _, clock in meeting.gathered])
            knew[self._knows.named + where] = len(meeting.met) + 1
            meeting.met.append((value, knew))
            meeting.gathered = []
        if op[0] == Op.BAR_SYNC and full:
            self._leave(agent, where, len(meeting.met) - 1)
        elif op[0] != Op.BAR_SYNC:
            self._spent[agent].append(price)

    def _leave(self, agent: int, where: int, generation: int) -> None:
        value, knew = self._meetings[where].met[generation]
        self._settle(agent)
        self._do(Do.LEAVE, agent, value)
        self._knows.learns(agent, knew)

    # transfers

    def _touch(self, touch: OrderedTouch) -> None:
        if not self._memory.touched(touch, self._knows.clocks[touch.agent]):
            raise NotStaticError("two accesses to the same memory are in an order that depends on times")

    def _multiply(self, agent: int, pc: int, price: int) -> None:
        """The tensor core of the agent's quarter has more to do; without a known work, that of the whole CTA."""
        where = self._program.agents[agent]
        work = self._program.work_of_line.get(self._program.lines[agent][pc])
        engine = where.cta * (1 + QUARTERS) + (0 if work is None else 1 + where.warp % QUARTERS)
        if work is not None:
            self._formula.quartered.add(price)
        self._uses(Op.ENGINE_WORK, engine, agent, pc, price)
        self._settle(agent)
        self._do(Do.ENGINE_WORK, agent, self._matrix_engines[engine], self._multiplied[agent], price)

    def _uses(self, engine: Op, number: int, agent: int, pc: int, price: int) -> None:
        """An agent uses an engine after whoever used it last. If the program does not say so, times must: of two that
        come in one cycle the lower is first (``Agenda.put_last``).
        """
        self._formula.used.add(price)
        key = (engine, number)
        last, least, when = self._users.get(key, (agent, 0, agent))
        if last != agent and self._knows.clocks[agent][last] < least:
            self._settle(agent)
            self._do(Do.IN_TURN if agent > last else Do.AFTER, agent, when)
        if last != agent or key not in self._users:
            when = self._value()
        self._settle(agent)
        self._do(Do.SAVE, when, agent)
        self._users[key] = (agent, pc + 1, when)

    def _issue(self, agent: int, pc: int, op: Operation, price: int, flights: tuple[Flight, ...]) -> None:
        """Something is put under way."""
        if op[0] == Op.CP_ASYNC_ARRIVE and not op[NOINC]:
            raise NotStaticError("a phase waits for one arrival more as soon as copies are counted on it")
        self._settle(agent)
        value = self._value()
        self._landing(agent, pc, price, flights[0], value)
        knew = self._knows.copy(agent)
        for flight in flights:
            touch = None
            if flight.barrier >= 0:
                complete = self._knows.barrier + flight.barrier, len(self._bars[flight.barrier].phases) + 1
                self._reaches(agent, self._program.barriers[flight.barrier].cta, *complete)
            elif self._program.ctas > 1:
                raise NotStaticError("a CTA of a cluster has transfers that no mbarrier counts")
            if flight.first < flight.end:
                touch = OrderedTouch(agent, flight.engine, flight.first, flight.end, flight.writes, flight.item)
                if flight.barrier >= 0:
                    touch.ends.append(complete)
                    self._reaches(agent, self._program.cell_ctas[flight.first], *complete)
                else:
                    self._uncommitted.setdefault((agent, flight.engine), []).append(touch)
                self._touch(touch)
            self._flights[flight.sequence] = UnderWay(value, pc, knew, touch)
            if flight.after:
                for pending in self._uncommitted.get((agent, flight.engine), ()):
                    pending.ends.append(complete)
        self._formula.landings.append((value, self._cta(agent), any(f.first < f.end for f in flights)))

    def _landing(self, agent: int, pc: int, price: int, flight: Flight, value: int) -> None:
        """When a flight lands becomes a value."""
        cta = self._cta(agent)
        key = (agent, flight.engine)
        last = self._landed.get(key, -1)
        if flight.after:
            self._do(Do.SAVE, value, agent)
            if last >= 0:
                self._do(Do.LATER, value, value, last)
            return
        if flight.engine == TMA:
            cold = (Op.TMA_LOAD, cta) not in self._users
            self._uses(Op.TMA_LOAD, cta, agent, pc, price)
            self._formula.queued.add(price)
            self._do(Do.COPY, agent, self._copy_engines[cta], value, price, cold)
            return
        self._do(Do.SAVE, value, agent)
        if flight.engine in IN_ORDER:
            self._do(Do.LATER, value, value, self._multiplied[agent])
        self._do(Do.FLIGHT, value, price)
        if last >= 0:
            latest = self._value()
            self._do(Do.SAVE, latest, value)
            self._do(Do.LATER, latest, latest, last)
            value = latest
        self._landed[key] = value

    def _close(self, agent: int, op: Operation) -> None:
        """A group is closed: it is finished when all that was issued before has landed."""
        key = (agent, op[ENGINE])
        saved = self._saved(agent)
        last = self._landed.get(key, -1)
        if last >= 0:
            self._do(Do.LATER, saved, saved, last)
        groups = self._groups.setdefault(key, [])
        groups.append((saved, last, self._knows.copy(agent)))
        component = self._knows.groups(*key)
        for touch in self._uncommitted.pop(key, []):
            touch.ends.append((component, len(groups)))

    def _wait_group(self, agent: int, op: Operation, price: int) -> None:
        engine = op[ENGINE]
        members = self._program.warp_groups[agent] if engine == Engine.WGMMA else (agent,)
        limit = len(self._groups.get((agent, engine), ())) - op[GROUPS]
        self._settle(agent)
        ready = -1
        if limit > 0:
            done = [self._groups[member, engine][limit - 1] for member in members]
            ready = self._latest([value for value, _, _ in done])
            for member, (_, _, knew) in zip(members, done, strict=True):
                self._knows.learns(agent, knew)
                component = self._knows.groups(member, engine)
                self._knows.clocks[agent][component] = max(limit, self._knows.clocks[agent][component])
        self._do(Do.GROUP, agent, ready, price)

    def _registers(self, agent: int, price: int) -> None:
        """A request for registers is granted when others have given theirs back."""
        awaited = releases_awaited(self._program, agent)
        if awaited is None:
            raise NotStaticError("what a request for registers waits for depends on times")
        self._asked[agent] = self._saved(agent), self._knows.copy(agent)
        released = [self._asked[other] for other in awaited]
        for _, knew in released:
            self._knows.learns(agent, knew)
        self._do(Do.GROUP, agent, self._latest([value for value, _ in released]) if released else -1, price)
