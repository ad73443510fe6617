"""Evaluates the formula of a program's times under many profiles at once: one pass, a few array operations a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipesim.timed.recurrence.formula import Do, Formula
from pipesim.timed.recurrence.prices import Cycles, PriceTable


@dataclass(frozen=True)
class Evaluated:
    """Times under each profile (the last axis).

    ``undecided``: profiles under which two things that must follow one another happen in one cycle, or in the other
    order than in the run from which the formula was derived: it says nothing about them.
    """

    ends: Cycles
    cycles: Cycles
    undecided: NDArray[np.bool_]


class Evaluation:
    """One pass over the instructions."""

    def __init__(self, formula: Formula, prices: PriceTable) -> None:
        self._formula = formula
        self._prices = prices
        profiles = len(prices.record)
        self._v: list[Cycles] = [np.zeros(profiles, dtype=np.int64)] * formula.values
        self._undecided = np.zeros(profiles, dtype=bool)

    def times(self) -> Evaluated:
        """The times of all profiles."""
        v, p = self._v, self._prices
        self._undecided |= self._not_priced_for()
        for what, *o in self._formula.instructions:  # hot: the most frequent first
            match what:
                case Do.ADD:
                    v[o[0]] = v[o[0]] + p.sums[o[1]]
                case Do.SAVE:
                    v[o[0]] = v[o[1]]
                case Do.LATER:
                    v[o[0]] = np.maximum(v[o[1]], v[o[2]])
                case Do.WAIT:
                    v[o[0]] = self._returned(v[o[0]], o[1], o[2], landed=bool(o[3]), recorded=bool(o[4]))
                case Do.SEEN:
                    v[o[0]] = v[o[1]] + p.visible[o[2]]
                case Do.LEAVE:
                    v[o[0]] = np.maximum(v[o[0]], v[o[1]])
                case _:
                    self._seldom(what, o)
        return self._result()

    def _seldom(self, what: int, o: list[int]) -> None:
        """What agents ask of engines."""
        v, p = self._v, self._prices
        match what:
            case Do.COPY:
                agent, engine, landing, price, cold = o
                start = np.maximum(v[agent], v[engine])
                v[engine] = start + p.engine[price]
                v[landing] = start + p.flight[price] + (p.cold if cold else 0)
            case Do.ENGINE_WORK:
                v[o[1]] = np.maximum(v[o[0]], v[o[1]]) + p.engine[o[2]]
            case Do.FLIGHT:
                v[o[0]] = v[o[0]] + p.flight[o[1]]
            case Do.AFTER:
                self._undecided |= v[o[0]] <= v[o[1]]
            case Do.WAIT_UNLESS:
                seen, tried = v[o[1]], v[o[5]]
                self._undecided |= seen == tried
                waited = self._returned(v[o[0]], o[1], o[2], landed=bool(o[3]), recorded=bool(o[4]))
                v[o[0]] = np.where(seen <= tried, v[o[0]], waited)
            case Do.GROUP:
                v[o[0]] = self._finished(v[o[0]], o[1], o[2])

    def _returned(self, entered: Cycles, seen_at: int, price: int, *, landed: bool, recorded: bool) -> Cycles:
        """When an agent goes on after a wait (``TimedRun._return_time``)."""
        p = self._prices
        tried, record = (entered + p.record, p.record) if recorded else (entered, 0)
        at_once = tried + p.busy[price]
        if seen_at < 0:
            return at_once + record
        seen = self._v[seen_at]
        if landed:
            late = np.maximum(at_once, seen + p.visible[price])
        else:
            late = at_once + p.retry + np.maximum(0, -((tried + p.retry - seen) // p.poll)) * p.poll
        return np.asarray(np.where(seen <= tried, at_once, late) + record, dtype=np.int64)

    def _finished(self, asked: Cycles, ready_at: int, price: int) -> Cycles:
        """When a wait for groups returns."""
        passes = asked + self._prices.busy[price]
        if ready_at < 0:
            return passes
        ready = self._v[ready_at]
        self._undecided |= ready == asked
        return np.where(ready > asked, ready, passes)

    def _not_priced_for(self) -> NDArray[np.bool_]:
        """Profiles whose prices are not of the form that the formula takes for granted."""
        p = self._prices
        wrong = np.zeros(len(p.record), dtype=bool)
        for one, other in self._formula.alike:
            wrong |= p.visible[one] != p.visible[other]
        for price in self._formula.queued:
            wrong |= p.engine[price] == 0
        return wrong

    def _result(self) -> Evaluated:
        ends = np.array(self._v[: self._formula.agents]).reshape(self._formula.agents, -1)
        cycles = ends.max(axis=0, initial=0)
        left: dict[int, Cycles] = {}
        for agent, cta in enumerate(self._formula.ctas):
            left[cta] = np.maximum(left.get(cta, 0), ends[agent])
        for value, cta, holds_memory in self._formula.landings:
            cycles = np.maximum(cycles, self._v[value])
            if holds_memory:  # it outlives its CTA: the simulation says which
                self._undecided |= self._v[value] > left[cta]
        return Evaluated(ends, cycles, self._undecided)
