"""Evaluates the formula of a program's times under many profiles at once: one pass, a few array operations a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipesim.timed.recurrence.formula import Do, Formula
from pipesim.timed.recurrence.prices import Cycles, PriceTable


@dataclass(frozen=True)
class Evaluated:
    """Times under each profile (the last axis). ``events``: in the order of the formula's meanings.

    ``undecided``: profiles under which two things happen in one cycle whose order matters, so that the formula says
    nothing.
    """

    ends: Cycles
    cycles: Cycles
    events: Cycles
    undecided: NDArray[np.bool_]


class Evaluation:
    """One pass over the instructions."""

    def __init__(self, formula: Formula, prices: PriceTable, *, events: bool) -> None:
        self._formula = formula
        self._prices = prices
        profiles = len(prices.record)
        self._v: list[Cycles] = [np.zeros(profiles, dtype=np.int64)] * formula.values
        self._events = np.zeros((len(formula.meanings) if events else 0, profiles), dtype=np.int64)
        self._undecided = np.zeros(profiles, dtype=bool)

    def times(self) -> Evaluated:
        """The times of all profiles."""
        v, p = self._v, self._prices
        self._undecided |= self._not_priced_for()
        stamped = 0
        keep = len(self._events) > 0
        for what, *o in self._formula.instructions:  # hot: the most frequent first
            match what:
                case Do.ADD:
                    v[o[0]] = v[o[0]] + p.sums[o[1]]
                case Do.STAMP:
                    if keep:
                        self._events[stamped] = v[o[0]] if o[1] < 0 else v[o[0]] + p.busy[o[1]] - p.record
                    stamped += 1
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
                case Do.COPY:
                    agent, engine, landing, price, cold = o
                    start = np.maximum(v[agent], v[engine])
                    v[engine] = start + p.engine[price]
                    v[landing] = start + p.flight[price] + (p.cold if cold else 0)
                case Do.ENGINE_WORK:
                    v[o[1]] = np.maximum(v[o[0]], v[o[1]]) + p.engine[o[2]]
                case Do.FLIGHT:
                    v[o[0]] = v[o[0]] + p.flight[o[1]]
                case Do.GROUP:
                    v[o[0]] = self._finished(v[o[0]], o[1], o[2])
        return self._result()

    def _returned(self, entered: Cycles, seen_at: int, price: int, *, landed: bool, recorded: bool) -> Cycles:
        """When a wait returns (``TimedRun._return_time``)."""
        p = self._prices
        tried = entered + p.record if recorded else entered
        at_once = tried + p.busy[price]
        if seen_at < 0:
            return at_once
        seen = self._v[seen_at]
        if landed:
            return np.where(seen <= tried, at_once, np.maximum(at_once, seen + p.visible[price]))
        polls = np.maximum(0, -((tried + p.retry - seen) // p.poll))
        later = at_once + p.retry + polls * p.poll
        return np.where(seen <= tried, at_once, later)

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
        return Evaluated(ends, cycles, self._events, self._undecided)
