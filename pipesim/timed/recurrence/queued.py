"""The times of a formula whose copy engines are used in the order of the times, whatever that is.

Which use of an engine comes next is decided while the times are computed: of those whose time is known the earliest is
granted. None that is not known yet can come before it, as that depends on one that is not granted, which comes no
sooner, and takes some time.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from pipesim.timed.recurrence.formula import Formula
from pipesim.timed.recurrence.phrase_book import Call, PhraseBook, PhraseFunction, UndecidedError
from pipesim.timed.recurrence.prices import PriceTable
from pipesim.timed.recurrence.queue_plan import CopyUse, QueuePlan


class _Use(NamedTuple):
    """A use of a copy engine: the value of its time, and what carries it out, if it is the first of all and if not."""

    when: int
    engine: int
    cold: Call
    later: Call

    @classmethod
    def of(cls, use: CopyUse, book: PhraseBook) -> _Use:
        """With its code."""
        cold, later = (book.call([use.instruction(cold=cold)], lambda _: True) for cold in (True, False))
        return cls(use.when, use.engine, cold, later)


class QueuedFormula:
    """The code of a formula, to be called as :class:`~pipesim.timed.recurrence.compiled.CompiledFormula`; it says
    nothing about a profile only where other things than copies come in another order.
    """

    def __init__(self, formula: Formula) -> None:
        plan, book = QueuePlan(formula), PhraseBook()
        self.users, self.values = plan.users, plan.values
        self.blocks: list[tuple[Call, list[tuple[int, int]]]] = []
        self.needed: list[int] = []  # of each block on the uses of how many users it depends
        self.uses = [[_Use.of(use, book) for use in uses] for uses in plan.uses]
        self.after: list[list[list[int]]] = [[[] for _ in range(len(uses) + 1)] for uses in plan.uses]
        for granted in sorted(plan.blocks, key=sum):  # what a block depends on before it
            block = plan.blocks[granted]
            for user, count in enumerate(granted):
                if count:
                    self.after[user][count].append(len(self.blocks))
            self.needed.append(sum(map(bool, granted)))
            call = book.call(block.instructions, plan.shared.__contains__)
            self.blocks.append((call, list(block.timed.items())))
        self.lines = book.lines
        self._bind = book.compiled()

    def __call__(self, values: list[int], prices: PriceTable, *, hasty: bool) -> None:
        """Carry out all instructions."""
        values.extend([0] * (self.values - len(values)))
        _Queue(self, values, self._bind(prices, hasty), hasty=hasty).run()


class _Queue:
    """One evaluation: what has been granted so far, and the next use of each user whose time is known."""

    def __init__(
        self, formula: QueuedFormula, values: list[int], functions: list[PhraseFunction], *, hasty: bool
    ) -> None:
        self._formula, self._values, self._functions, self._hasty = formula, values, functions, hasty
        self._missing = formula.needed.copy()
        self._known = [0] * len(formula.users)  # uses whose time is known
        self._granted = [0] * len(formula.users)
        self._next: list[tuple[int, int, int]] = []  # a heap: when, agent, user
        self._last: dict[int, tuple[int, int]] = {}  # of each engine: when it was used last, and by whom

    def run(self) -> None:
        """Until all uses are granted."""
        formula, values, functions, granted, missing = (
            self._formula, self._values, self._functions, self._granted, self._missing,
        )  # fmt: skip
        for number, needed in enumerate(formula.needed):
            if not needed:
                self._carry_out(number)
        while self._next:
            at, agent, user = heappop(self._next)
            use = formula.uses[user][granted[user]]
            function, where = use.later if self._follows(use.engine, at, agent) else use.cold
            functions[function](values, where)
            granted[user] += 1
            if self._known[user] > granted[user]:
                self._waits(user)
            for number in formula.after[user][granted[user]]:
                missing[number] -= 1
                if not missing[number]:
                    self._carry_out(number)
        assert granted == [len(uses) for uses in formula.uses]

    def _carry_out(self, number: int) -> None:
        (function, where), timed = self._formula.blocks[number]
        self._functions[function](self._values, where)
        for user, count in timed:
            first = self._known[user] == self._granted[user]
            self._known[user] += count
            if first:
                self._waits(user)

    def _waits(self, user: int) -> None:
        """The next use of a user waits to be granted."""
        use = self._formula.uses[user][self._granted[user]]
        heappush(self._next, (self._values[use.when], self._formula.users[user], user))

    def _follows(self, engine: int, at: int, agent: int) -> bool:
        """Whether the engine was used before. Of two that come in one cycle the lower must be first."""
        before = self._last.get(engine)
        self._last[engine] = (at, agent)
        if before is None:
            return False
        last, other = before
        if at < last or (at == last and agent != other and (self._hasty or agent < other)):
            raise UndecidedError
        return True
