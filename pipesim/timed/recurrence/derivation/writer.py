"""Writes the formula of a program's times, one instruction after the other."""

from __future__ import annotations

from collections.abc import Sequence

from pipesim.model.groups import RETURNS_LATE
from pipesim.model.program import Program
from pipesim.timed.costs import form
from pipesim.timed.outline import outline
from pipesim.timed.recurrence.formula import Do, Formula, Priced
from pipesim.trace.sites import kinds


class FormulaWriter:
    """The formula so far. An agent's time is a value; what its next operations cost is added when it is asked for."""

    def __init__(self, program: Program) -> None:
        agents = len(program.agents)
        self._program = program
        self._outline = outline(program)
        self._prices: dict[tuple[tuple[int, ...], bool], int] = {}
        self._of_distinct: list[dict[int, int]] = [{} for _ in range(agents)]
        self._sums: dict[tuple[int, ...], int] = {}
        self._spent: list[list[int]] = [[] for _ in range(agents)]  # busy cycles that are not yet in the agent's time
        self.formula = Formula(tuple(agent.cta for agent in program.agents))
        self.formula.values = agents

    def value(self) -> int:
        """A new value."""
        self.formula.values += 1
        return self.formula.values - 1

    def do(self, what: Do, *operands: int) -> None:
        """Write an instruction."""
        self.formula.instructions.append((what, *operands))

    def price(self, agent: int, pc: int) -> int:
        """The number of an operation's price; of all that cost the same by their form the same."""
        number = self._outline.places[agent][pc]
        found = self._of_distinct[agent].get(number)
        if found is None:
            each = self._outline.distinct[agent][number]
            extra = each.recorded and not kinds(each.op) and each.op[0] not in RETURNS_LATE
            key = (*form(self._program, each.op), each.line)
            found = self._prices.setdefault((key, extra), len(self.formula.priced))
            if found == len(self.formula.priced):
                self.formula.priced.append(Priced(each.op, each.line, extra))
            self._of_distinct[agent][number] = found
        return found

    def spend(self, agent: int, price: int) -> None:
        """The agent spends the busy cycles of a price."""
        self._spent[agent].append(price)

    def settle(self, agent: int) -> None:
        """Bring an agent's time up to its next operation."""
        spent = self._spent[agent]
        if spent:
            key = tuple(spent)
            number = self._sums.setdefault(key, len(self.formula.sums))
            if number == len(self.formula.sums):
                self.formula.sums.append(key)
            self.do(Do.ADD, agent, number)
            spent.clear()

    def saved(self, agent: int) -> int:
        """The agent's time as a value that stays."""
        self.settle(agent)
        value = self.value()
        self.do(Do.SAVE, value, agent)
        return value

    def latest(self, values: Sequence[int]) -> int:
        """The value that is the latest of these."""
        latest = values[0]
        if len(values) > 1:
            found = self.value()
            for value in values[1:]:
                self.do(Do.LATER, found, latest, value)
                latest = found
        return latest
