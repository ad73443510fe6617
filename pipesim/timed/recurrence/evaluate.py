"""Evaluates the formula of a program's times: in whole numbers for one profile, in arrays for many at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from pipesim.timed.recurrence.code.compiled import CompiledFormula
from pipesim.timed.recurrence.code.phrase_book import UndecidedError
from pipesim.timed.recurrence.code.queued import QueuedFormula
from pipesim.timed.recurrence.formula import Formula
from pipesim.timed.recurrence.instructions import Condition, Cycles, Instructions
from pipesim.timed.recurrence.prices import PriceTable, not_priced_for, uses_without_time

LEAST_REORDERED = 8  #: such profiles are worth a compilation, which takes as long as some simulations


@dataclass(frozen=True)
class Evaluated:
    """When each agent ends, and the run.

    ``undecided``: True for profiles under which two things that must follow one another happen in one cycle, or in the
    other order than in the run from which the formula was derived: it says nothing about them.
    """

    ends: list[Cycles]
    cycles: Cycles
    undecided: Any


class OfOne(Instructions):
    """Instructions on whole numbers."""

    undecided = False

    def later(self, one: Cycles, other: Cycles) -> Cycles:
        """The later of two times."""
        return max(one, other)

    def chosen(self, condition: Condition, one: Cycles, other: Cycles) -> Cycles:
        """The one if the condition holds, else the other."""
        return one if condition else other

    def undecided_if(self, condition: Condition) -> None:
        """The formula says nothing if the condition holds."""
        self.undecided |= condition


class OfMany(Instructions):
    """Instructions on arrays."""

    undecided: Any = np.False_

    def later(self, one: Cycles, other: Cycles) -> Cycles:
        """The later of two times, for each profile."""
        return np.maximum(one, other)

    def chosen(self, condition: Condition, one: Cycles, other: Cycles) -> Cycles:
        """For each profile the one if the condition holds, else the other."""
        return np.where(condition, one, other)

    def undecided_if(self, condition: Condition) -> None:
        """The formula says nothing about the profiles for which the condition holds."""
        self.undecided = self.undecided | condition


class FormulaTimes:
    """Evaluates a formula: for many profiles with arrays, for one with whole numbers, from the second time on by
    compiled code. Where copies come in another order, one profile after the other.
    """

    def __init__(self, formula: Formula) -> None:
        self.formula = formula
        self._alone = 0  # how often it was evaluated for one profile
        self._code: CompiledFormula | None = None
        self._queue: QueuedFormula | None = None
        self._reordered = 0  # profiles that could not be evaluated in the order of the formula
        agents, ctas = range(formula.agents), dict.fromkeys(formula.ctas)
        self._free = [*agents, *(value for value, _, holds in formula.landings if not holds)]
        self._held = [
            (
                [agent for agent in agents if formula.ctas[agent] == cta],
                [value for value, where, holds in formula.landings if holds and where == cta],
            )
            for cta in ctas
        ]

    def __call__(self, prices: PriceTable) -> Evaluated:
        """The times of the run, where it has the order of that from which the formula was derived."""
        if not prices.many:
            self._alone += 1
            if self._alone > 1 and self._code is None:  # to compile takes as long as some evaluations
                self._code = CompiledFormula(self.formula)
        return self._evaluated(prices, None if prices.many else self._code)

    def queues(self, profiles: int) -> bool:
        """Whether it is worth while to order the copies of so many more profiles that the formula does not decide."""
        self._reordered += profiles
        return self.formula.orders_copies and self._reordered >= LEAST_REORDERED

    def queued(self, prices: PriceTable) -> Evaluated:
        """The times of the run under one profile, where copy engines may be used in another order."""
        if self._queue is None:
            self._queue = QueuedFormula(self.formula)
        return self._evaluated(prices, self._queue)

    def _evaluated(self, prices: PriceTable, code: CompiledFormula | QueuedFormula | None) -> Evaluated:
        formula = self.formula
        values: list[Cycles] = [prices.record * 0] * formula.values
        values[: formula.agents] = [prices.start] * formula.agents
        hasty = uses_without_time(formula, prices)
        instructions = (OfMany if prices.many else OfOne)(values, prices, hasty)
        instructions.undecided_if(not_priced_for(formula, prices))
        if code is None:
            for each in formula.instructions:
                instructions.carry_out(each)
        elif not instructions.undecided:
            try:
                code(values, prices, hasty=hasty)
            except UndecidedError:
                instructions.undecided_if(True)
        return self._result(prices, values, instructions)

    def _result(self, prices: PriceTable, values: list[Cycles], instructions: OfOne | OfMany) -> Evaluated:
        """The ends of agents and of the run, after all instructions."""

        def latest(numbers: list[int]) -> Cycles:
            times = map(values.__getitem__, numbers)
            return reduce(np.maximum, times, prices.record * 0) if prices.many else max(times, default=0)

        cycles = latest(self._free)
        for agents, landings in self._held:
            landed = latest(landings)
            instructions.undecided_if(landed > latest(agents))  # one outlives its CTA: the simulation says which
            cycles = instructions.later(cycles, landed)
        return Evaluated(values[: self.formula.agents], cycles, instructions.undecided)
