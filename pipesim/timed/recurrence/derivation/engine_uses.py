"""When agents use the engines of a CTA, and when what these carry out ends, as values of a formula."""

from __future__ import annotations

from pipesim.model.machine import TMA, Flight
from pipesim.model.ops import IN_ORDER, Engine, Op
from pipesim.model.program import Program
from pipesim.timed.recurrence.derivation.knowledge import AgentKnowledge
from pipesim.timed.recurrence.derivation.writer import FormulaWriter
from pipesim.timed.recurrence.formula import Do
from pipesim.timed.work import QUARTERS


class EngineUses:
    """The copy engine of each CTA, its matrix engine and those of its quarters."""

    def __init__(self, program: Program, out: FormulaWriter, knows: AgentKnowledge) -> None:
        self._program, self._out, self._knows = program, out, knows
        self._landed: dict[tuple[int, int], int] = {}  # (agent, engine) → value of its last landing
        self._users: dict[tuple[Op, int], tuple[int, int, int]] = {}  # of an engine: who used it last, where, when
        self._multiplied = [out.value() for _ in program.agents]  # when an engine ends what an agent gave it last
        self._paced: dict[int, int] = {}  # of the tensor core of a quarter: a price of what it does
        self._copy_engines = [out.value() for _ in range(program.ctas)]
        self._matrix_engines = [out.value() for _ in range(program.ctas * (1 + QUARTERS))]

    def last(self, agent: int, engine: int) -> int:
        """The value of the last landing of what an agent issued on an engine, -1 if there is none."""
        return self._landed.get((agent, engine), -1)

    def multiply(self, agent: int, pc: int, price: int) -> None:
        """The tensor core of the agent's quarter has more to do; without a known work, that of the whole CTA."""
        where = self._program.agents[agent]
        work = self._program.work_of_line.get(self._program.lines[agent][pc])
        engine = where.cta * (1 + QUARTERS) + (0 if work is None else 1 + where.warp % QUARTERS)
        if work is not None:
            self._out.formula.quartered.add(price)
            self._out.formula.paced.add((price, self._paced.setdefault(engine, price)))
        shared = work is not None and self._users.get((Op.ENGINE_WORK, engine), (agent, 0, 0))[0] != agent
        self._uses(Op.ENGINE_WORK, engine, agent, pc, price)
        self._out.settle(agent)
        self._out.do(Do.ENGINE_WORK, agent, self._matrix_engines[engine], self._multiplied[agent], price, shared)

    def _uses(self, engine: Op, number: int, agent: int, pc: int, price: int) -> None:
        """An agent uses an engine after whoever used it last. If the program does not say so, times must: of two that
        come in one cycle the lower is first (``Agenda.put_last``).
        """
        self._out.formula.used.add(price)
        key = (engine, number)
        last, least, when = self._users.get(key, (agent, 0, agent))
        if last != agent and self._knows.clocks[agent][last] < least:
            self._out.settle(agent)
            self._out.do(Do.IN_TURN, agent, when, agent > last, engine == Op.TMA_LOAD)
        if last != agent or key not in self._users:
            when = self._out.value()
        self._out.settle(agent)
        self._out.do(Do.SAVE, when, agent)
        self._users[key] = (agent, pc + 1, when)

    def landing(self, agent: int, pc: int, price: int, flight: Flight, value: int) -> None:
        """When a flight lands becomes a value."""
        key = (agent, flight.engine)
        last = self._landed.get(key, -1)
        if flight.after:
            self._out.do(Do.SAVE, value, agent)
            if last >= 0:
                self._out.do(Do.LATER, value, value, last)
            return
        if flight.engine == TMA:
            self._copies(agent, pc, price, value)
            return
        if flight.engine == Engine.BULK and not flight.writes:
            self._copies(agent, pc, price, value)
        else:
            self._out.do(Do.SAVE, value, agent)
            if flight.engine in IN_ORDER:
                self._out.do(Do.LATER, value, value, self._multiplied[agent])
            self._out.do(Do.FLIGHT, value, price)
        if last >= 0:
            value = self._out.latest([value, last])
        self._landed[key] = value

    def _copies(self, agent: int, pc: int, price: int, value: int) -> None:
        """The copy engine of the agent's CTA takes a load or a store; when it ends becomes a value."""
        cta = self._program.agents[agent].cta
        cold = (Op.TMA_LOAD, cta) not in self._users
        self._uses(Op.TMA_LOAD, cta, agent, pc, price)
        self._out.formula.queued.add(price)
        self._out.do(Do.COPY, agent, self._copy_engines[cta], value, price, cold)
