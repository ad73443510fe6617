"""The times of a formula whose copy engines are used in the order of the times, whatever that is.

Which use of an engine comes next is decided while the times are computed: of those whose time is known the earliest is
granted. None that is not known yet can come before it, as that depends on one that is not granted, which comes no
sooner, and takes some time.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from pipesim.timed.recurrence.code.phrase_book import Call, PhraseBook, PhraseFunction, UndecidedError
from pipesim.timed.recurrence.code.queue_plan import CopyUse, QueuePlan
from pipesim.timed.recurrence.formula import Formula
from pipesim.timed.recurrence.prices import PriceTable


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
    """The code of a formula, to be called as :class:`~pipesim.timed.recurrence.code.compiled.CompiledFormula`; it says
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
        _grant_all(self, values, self._bind(prices, hasty), hasty=hasty)


def _grant_all(formula: QueuedFormula, values: list[int], functions: list[PhraseFunction], *, hasty: bool) -> None:
    """Grant one use after the other, and carry out the blocks that are possible then."""
    users, uses, blocks, after = formula.users, formula.uses, formula.blocks, formula.after
    missing = formula.needed.copy()
    known, granted = [0] * len(users), [0] * len(users)  # of each user: uses whose time is known, and that are granted
    heads: list[tuple[int, int, int]] = []  # a heap of the next use of each user, if known: when, agent, user
    last: dict[int, tuple[int, int]] = {}  # when and by whom each engine was used
    ready = [number for number, needed in enumerate(missing) if not needed]
    while ready or heads:
        for number in ready:
            (function, where), timed = blocks[number]
            functions[function](values, where)
            for user, count in timed:
                if known[user] == granted[user]:
                    heappush(heads, (values[uses[user][known[user]].when], users[user], user))
                known[user] += count
        if not heads:
            break
        at, agent, user = heappop(heads)
        use = uses[user][granted[user]]
        before = last.get(use.engine)
        if before is not None and _in_doubt(before, (at, agent), hasty=hasty):
            raise UndecidedError
        last[use.engine] = at, agent
        function, where = use.cold if before is None else use.later
        functions[function](values, where)
        granted[user] = count = granted[user] + 1
        if known[user] > count:
            heappush(heads, (values[uses[user][count].when], agent, user))
        ready = []
        for number in after[user][count]:
            missing[number] -= 1
            if not missing[number]:
                ready.append(number)
    assert granted == [len(each) for each in uses]


def _in_doubt(before: tuple[int, int], use: tuple[int, int], *, hasty: bool) -> bool:
    """Whether one use after another, each by when and by whom, is not certain to be in the order of the simulation: of
    two that come in one cycle the lower agent is first.
    """
    return use < before or (hasty and use[0] == before[0] and use[1] != before[1])
