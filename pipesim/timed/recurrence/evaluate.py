"""Evaluates the formula of a program's times: in whole numbers for one profile, in arrays for many at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipesim.timed.recurrence.formula import Do, Formula
from pipesim.timed.recurrence.prices import PriceTable

Cycles = Any  #: a whole number, or an array with one for each profile


@dataclass(frozen=True)
class Evaluated:
    """When each agent ends, and the run.

    ``undecided``: True for profiles under which two things that must follow one another happen in one cycle, or in the
    other order than in the run from which the formula was derived: it says nothing about them.
    """

    ends: list[Cycles]
    cycles: Cycles
    undecided: Any


def _chosen(condition: bool, one: int, other: int) -> int:  # noqa: FBT001  # as np.where
    return one if condition else other


class Evaluation:
    """One pass over the instructions; each kind of instruction is a method."""

    def __init__(self, formula: Formula, prices: PriceTable) -> None:
        self._formula = formula
        self._prices = prices
        self._later: Callable[..., Cycles] = np.maximum if prices.many else max
        self._chosen: Callable[..., Cycles] = np.where if prices.many else _chosen
        self._v: list[Cycles] = [prices.record * 0] * formula.values
        self._v[: formula.agents] = [prices.start] * formula.agents
        self._undecided: Any = prices.record < 0
        self._hasty = self._undecided

    def times(self) -> Evaluated:
        """The times of the run."""
        self._undecided |= self._not_priced_for()
        self._hasty = self._uses_without_time()
        do: dict[Do, Callable[..., None]] = {
            Do.ADD: self._add, Do.SAVE: self._save, Do.LATER: self._latest, Do.SEEN: self._seen, Do.WAIT: self._wait,
            Do.LEAVE: self._leave, Do.AFTER: self._after, Do.COPY: self._copy, Do.ENGINE_WORK: self._engine_work,
            Do.FLIGHT: self._flight, Do.GROUP: self._group, Do.WAIT_UNLESS: self._wait_unless, Do.TRY: self._try,
            Do.IN_TURN: self._in_turn, Do.TRY_AGAIN: self._try_again,
        }  # fmt: skip
        methods = [do[what] for what in Do]
        for what, *operands in self._formula.instructions:
            methods[what](*operands)
        return self._result()

    def _add(self, agent: int, number: int) -> None:
        self._v[agent] = self._v[agent] + self._prices.sums[number]

    def _save(self, value: int, other: int) -> None:
        self._v[value] = self._v[other]

    def _latest(self, value: int, one: int, other: int) -> None:
        self._v[value] = self._later(self._v[one], self._v[other])

    def _seen(self, value: int, complete: int, price: int) -> None:
        self._v[value] = self._v[complete] + self._prices.visible[price]

    def _leave(self, agent: int, met: int) -> None:
        self._v[agent] = self._later(self._v[agent], self._v[met])

    def _after(self, late: int, early: int) -> None:
        self._undecided |= self._v[late] <= self._v[early]

    def _in_turn(self, late: int, early: int) -> None:
        self._undecided |= (self._v[late] < self._v[early]) | ((self._v[late] == self._v[early]) & self._hasty)

    def _copy(self, agent: int, engine: int, landing: int, price: int, cold: int) -> None:
        p = self._prices
        start = self._later(self._v[agent], self._v[engine])
        self._v[engine] = start + p.engine[price]
        self._v[landing] = start + p.flight[price] + (p.cold if cold else 0)

    def _engine_work(self, agent: int, engine: int, done: int, price: int, shared: int) -> None:
        p = self._prices
        if shared:  # its warps are served in turns
            self._undecided |= self._v[engine] > self._v[agent]
        self._v[done] = end = self._later(self._v[agent], self._v[engine]) + p.engine[price]
        self._v[engine] = end
        self._v[agent] = self._later(self._v[agent], end - p.ahead[price] - p.busy[price])  # its busy cycles follow

    def _flight(self, landing: int, price: int) -> None:
        self._v[landing] = self._v[landing] + self._prices.flight[price]

    def _wait(self, agent: int, seen_at: int, price: int, landed: int, recorded: int) -> None:
        """``Waits._passed_at``."""
        p = self._prices
        tried, record = (self._v[agent] + p.record, p.record) if recorded else (self._v[agent], 0)
        at_once = tried + p.busy[price]
        if seen_at < 0:
            self._v[agent] = at_once + record
            return
        seen = self._v[seen_at]
        if landed:
            late = self._later(at_once, seen + p.visible[price])
        else:
            late = at_once + p.retry + self._later(0, -((tried + p.retry - seen) // p.poll)) * p.poll
        self._v[agent] = self._chosen(seen <= tried, at_once, late) + record

    def _wait_unless(self, agent: int, seen_at: int, price: int, landed: int, recorded: int, tried_at: int) -> None:
        asked, seen, tried = self._v[agent], self._v[seen_at], self._v[tried_at]
        self._undecided |= seen == tried
        self._wait(agent, seen_at, price, landed, recorded)
        self._v[agent] = self._chosen(seen <= tried, asked, self._v[agent])

    def _try(self, agent: int, seen_at: int, price: int, landed: int) -> None:
        """``Waits.suspended``; the busy cycles of the try follow, and are part of when it returns."""
        asked, seen, p = self._v[agent], self._v[seen_at], self._prices
        self._undecided |= (seen == asked) | (seen >= asked + p.limit)
        self._wait(agent, seen_at, price, landed, recorded=True)
        self._v[agent] = self._chosen(seen <= asked, asked, self._v[agent] - p.record - p.busy[price])

    def _try_again(self, agent: int, seen_at: int) -> None:
        """``Waits.suspended`` on a barrier of arrives: a try that fails looks once more."""
        asked, again = self._v[agent], self._v[agent] + self._prices.poll
        if seen_at < 0:
            self._v[agent] = again
            return
        self._undecided |= self._v[seen_at] == asked
        self._v[agent] = self._chosen(self._v[seen_at] <= asked, asked, again)

    def _group(self, agent: int, ready_at: int, price: int) -> None:
        self._v[agent] = self._v[agent] + self._prices.busy[price]
        if ready_at >= 0:
            self._v[agent] = self._later(self._v[agent], self._v[ready_at])

    def _not_priced_for(self) -> Any:
        """Profiles whose prices are not of the form that the formula takes for granted."""
        p = self._prices
        wrong: Any = p.record < 0
        for one, other in self._formula.alike:
            wrong |= p.visible[one] != p.visible[other]
        for price in self._formula.queued:
            wrong |= p.engine[price] == 0
        if self._formula.tries:
            wrong |= p.limit == 0
        for price in self._formula.quartered:
            cycles, products = p.engine[price], self._later(p.products[price], 1)
            wrong |= (p.products[price] == 0) | (cycles % products != 0) | (p.interval[price] * products > cycles)
        for one, other in self._formula.paced:
            wrong |= p.engine[one] * p.products[other] != p.engine[other] * p.products[one]
        return wrong

    def _uses_without_time(self) -> Any:
        """Profiles under which the use of an engine can lead to another one in the same cycle, or takes it no time."""
        p = self._prices
        found: Any = p.record < 0
        for price in self._formula.used:
            found |= (p.busy[price] == 0) | (p.engine[price] == 0)
        for price in self._formula.queued:
            found |= p.flight[price] == 0
        return found

    def _result(self) -> Evaluated:
        ends = self._v[: self._formula.agents]
        cycles = self._prices.record * 0
        left: dict[int, Cycles] = {}
        for end, cta in zip(ends, self._formula.ctas, strict=True):
            left[cta] = self._later(left.get(cta, 0), end)
            cycles = self._later(cycles, end)
        for value, cta, holds_memory in self._formula.landings:
            cycles = self._later(cycles, self._v[value])
            if holds_memory:  # it outlives its CTA: the simulation says which
                self._undecided |= self._v[value] > left[cta]
        return Evaluated(ends, cycles, self._undecided)
