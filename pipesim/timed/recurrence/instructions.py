"""What each kind of instruction of a formula does to its values.

It is written once, for whatever can be added and compared: whole numbers, arrays with one for each of many profiles
(:mod:`~pipesim.timed.recurrence.evaluate`), and the source text of an expression, from which Python code is made
(:mod:`~pipesim.timed.recurrence.code.compiled`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from pipesim.timed.recurrence.formula import Do, Instruction
from pipesim.timed.recurrence.prices import PriceTable

Cycles = Any  #: a whole number, an array with one for each profile, or an expression
Condition = Any  #: the same, of truth values


class Values(Protocol):
    """The values of a formula by their numbers."""

    def __getitem__(self, number: int, /) -> Cycles: ...

    def __setitem__(self, number: int, value: Cycles, /) -> None: ...


class Instructions(ABC):
    """Carries out instructions on ``values``, each kind by a method.

    ``hasty``: whether the use of an engine can lead to another one in the same cycle, or takes it no time.
    """

    def __init__(self, values: Values, prices: PriceTable, hasty: Condition) -> None:
        self._v, self._prices, self._hasty = values, prices, hasty
        do: dict[Do, Callable[..., None]] = {
            Do.ADD: self._add, Do.SAVE: self._save, Do.LATER: self._latest, Do.SEEN: self._seen, Do.WAIT: self._wait,
            Do.LEAVE: self._leave, Do.AFTER: self._after, Do.COPY: self._copy, Do.ENGINE_WORK: self._engine_work,
            Do.FLIGHT: self._flight, Do.GROUP: self._group, Do.WAIT_UNLESS: self._wait_unless, Do.TRY: self._try,
            Do.IN_TURN: self._in_turn, Do.TRY_AGAIN: self._try_again,
        }  # fmt: skip
        self._methods = [do[what] for what in Do]

    def carry_out(self, instruction: Instruction) -> None:
        """One instruction."""
        self._methods[instruction[0]](*instruction[1:])

    @abstractmethod
    def later(self, one: Cycles, other: Cycles) -> Cycles:
        """The later of two times."""

    @abstractmethod
    def chosen(self, condition: Condition, one: Cycles, other: Cycles) -> Cycles:
        """The one where the condition holds, else the other."""

    @abstractmethod
    def undecided_if(self, condition: Condition) -> None:
        """The formula says nothing about the profiles for which the condition holds."""

    def named(self, value: Cycles) -> Cycles:
        """The same, that is used several times."""
        return value

    def _add(self, agent: int, number: int) -> None:
        self._v[agent] = self._v[agent] + self._prices.sums[number]

    def _save(self, value: int, other: int) -> None:
        self._v[value] = self._v[other]

    def _latest(self, value: int, one: int, other: int) -> None:
        self._v[value] = self.later(self._v[one], self._v[other])

    def _seen(self, value: int, complete: int, price: int) -> None:
        self._v[value] = self._v[complete] + self._prices.visible[price]

    def _leave(self, agent: int, met: int) -> None:
        self._v[agent] = self.later(self._v[agent], self._v[met])

    def _after(self, late: int, early: int) -> None:
        self.undecided_if(self._v[late] <= self._v[early])

    def _in_turn(self, late: int, early: int, higher: int, copies: int) -> None:  # noqa: ARG002  # as others see it
        second, first = self._v[late], self._v[early]
        if higher:  # of two that come in one cycle the lower is first
            self.undecided_if((second < first) | ((second == first) & self._hasty))
        else:
            self.undecided_if(second <= first)

    def _copy(self, agent: int, engine: int, landing: int, price: int, cold: int) -> None:
        p = self._prices
        start = self.named(self.later(self._v[agent], self._v[engine]))
        self._v[engine] = start + p.engine[price]
        self._v[landing] = start + p.flight[price] + (p.cold if cold else 0)

    def _engine_work(self, agent: int, engine: int, done: int, price: int, shared: int) -> None:
        p = self._prices
        if shared:  # its warps are served in turns
            self.undecided_if(self._v[engine] > self._v[agent])
        end = self.named(self.later(self._v[agent], self._v[engine]) + p.engine[price])
        self._v[engine] = self._v[done] = end
        self._v[agent] = self.later(self._v[agent], end - p.ahead[price] - p.busy[price])  # its busy cycles follow

    def _flight(self, landing: int, price: int) -> None:
        self._v[landing] = self._v[landing] + self._prices.flight[price]

    def _wait(self, agent: int, seen_at: int, price: int, landed: int, recorded: int) -> None:
        """``Waits._passed_at``."""
        p = self._prices
        tried, record = (self.named(self._v[agent] + p.record), p.record) if recorded else (self._v[agent], 0)
        at_once = tried + p.busy[price]
        if seen_at < 0:
            self._v[agent] = at_once + record
            return
        seen = self._v[seen_at]
        if landed:
            late = self.later(at_once, seen + p.visible[price])
        else:
            late = at_once + p.retry + self.later(0, -((tried + p.retry - seen) // p.poll)) * p.poll
        self._v[agent] = self.chosen(seen <= tried, at_once, late) + record

    def _wait_unless(self, agent: int, seen_at: int, price: int, landed: int, recorded: int, tried_at: int) -> None:
        asked, seen, tried = self._v[agent], self._v[seen_at], self._v[tried_at]
        self.undecided_if(seen == tried)
        self._wait(agent, seen_at, price, landed, recorded)
        self._v[agent] = self.chosen(seen <= tried, asked, self._v[agent])

    def _try(self, agent: int, seen_at: int, price: int, landed: int) -> None:
        """``Waits.suspended``; the busy cycles of the try follow, and are part of when it returns."""
        asked, seen, p = self._v[agent], self._v[seen_at], self._prices
        self.undecided_if((seen == asked) | (seen >= asked + p.limit))
        self._wait(agent, seen_at, price, landed, recorded=True)
        self._v[agent] = self.chosen(seen <= asked, asked, self._v[agent] - p.record - p.busy[price])

    def _try_again(self, agent: int, seen_at: int) -> None:
        """``Waits.suspended`` on a barrier of arrives: a try that fails looks once more."""
        asked, again = self._v[agent], self._v[agent] + self._prices.poll
        if seen_at < 0:
            self._v[agent] = again
            return
        seen = self._v[seen_at]
        self.undecided_if(seen == asked)
        self._v[agent] = self.chosen(seen <= asked, asked, again)

    def _group(self, agent: int, ready_at: int, price: int) -> None:
        ready = self._v[agent] + self._prices.busy[price]
        self._v[agent] = self.later(ready, self._v[ready_at]) if ready_at >= 0 else ready
