"""What the operations of a formula cost, under one profile (whole numbers) or under many (an array for each)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipesim.model.ops import Operation
from pipesim.model.program import Program
from pipesim.timed.costs import Prices, record_cycles
from pipesim.timed.kept import kept
from pipesim.timed.outline import outline
from pipesim.timed.profile import Profile
from pipesim.timed.recurrence.formula import Formula
from pipesim.timed.recurrence.many import ManyProfiles
from pipesim.timed.work import Works


@dataclass(frozen=True)
class PriceTable:
    """Cycles by the number of a price, or of a sum; each a whole number, or if ``many`` an array of one for each
    profile.
    """

    many: bool
    busy: list[Any]
    visible: list[Any]
    engine: list[Any]
    flight: list[Any]
    ahead: list[Any]
    products: list[Any]
    interval: list[Any]
    sums: list[Any]
    record: Any
    retry: Any
    poll: Any
    cold: Any
    start: Any
    limit: Any


def price_table(
    program: Program, formula: Formula, many: ManyProfiles, which: NDArray[np.int64], *, traced: bool
) -> PriceTable:
    """The prices of a formula under these of the profiles."""
    alone = len(which) == 1
    costs = partial(_costs, program, formula, traced=traced)
    return _table(formula, costs(many.profiles[which[0]]) if alone else list(many.computed(which, costs)), alone=alone)


def price_tables(
    program: Program, formula: Formula, many: ManyProfiles, which: NDArray[np.int64], *, traced: bool
) -> Iterator[PriceTable]:
    """The prices of a formula under each of these profiles."""
    if len(which) == 1:
        return iter([price_table(program, formula, many, which, traced=traced)])
    found = many.computed(which, partial(_costs, program, formula, traced=traced))
    return (_table(formula, prices, alone=True) for prices in found.T.tolist())


def _table(formula: Formula, rows: list[Any], *, alone: bool) -> PriceTable:
    """The table of what ``_costs`` says."""
    rest, fields = rows[: len(_NAMES) + 1], rows[len(_NAMES) + 1 :]
    busy, visible, engine, flight, ahead, products, interval = (fields[n::_FIELDS] for n in range(_FIELDS))
    sums = [sum(busy[number] for number in numbers) for numbers in formula.sums]
    return PriceTable(not alone, busy, visible, engine, flight, ahead, products, interval, sums, *rest)


_NAMES = ("wait.retry", "wait.poll", "copy.cold", "cta.start", "try.limit")
_FIELDS = 7
_NO_LIMIT = 1 << 40  #: more cycles than any run has


def _costs(program: Program, formula: Formula, profile: Profile, *, traced: bool) -> list[int]:
    """The cycles of a record, some values of the profile, and the fields of each price."""
    price = Prices(program, profile, traced=traced)
    record = record_cycles(program, profile, traced=traced)
    found = [record, *(profile[name] for name in _NAMES)]
    for each in formula.priced:
        cost = price(each.op, each.line)
        busy = cost.busy + record * each.recorded
        ahead = cost.engine * profile["mma.queue"] // cost.products if cost.products else _NO_LIMIT
        found += (busy, cost.visible, cost.engine, cost.flight, ahead, cost.products, cost.interval)
    return found


def not_priced_for(formula: Formula, prices: PriceTable) -> Any:
    """Profiles whose prices are not of the form that the formula takes for granted."""
    p = prices
    wrong: Any = p.record < 0
    for one, other in formula.alike:
        wrong |= p.visible[one] != p.visible[other]
    for price in formula.queued:
        wrong |= p.engine[price] == 0
    if formula.tries:
        wrong |= p.limit == 0
    for price in formula.quartered:
        cycles, count = p.engine[price], p.products[price]
        products = count + (count == 0)
        wrong |= (count == 0) | (cycles % products != 0) | (p.interval[price] * products > cycles)
    for one, other in formula.paced:
        wrong |= p.engine[one] * p.products[other] != p.engine[other] * p.products[one]
    return wrong


def uses_without_time(formula: Formula, prices: PriceTable) -> Any:
    """Profiles under which the use of an engine can lead to another one in the same cycle, or takes it no time."""
    p = prices
    found: Any = p.record < 0
    for price in formula.used:
        found |= (p.busy[price] == 0) | (p.engine[price] == 0)
    for price in formula.queued:
        found |= p.flight[price] == 0
    return found


def demands(program: Program, profile: Profile) -> list[int]:
    """What the works of a program ask of what they share with others: 0 where nobody can slow them."""
    worked, names = _worked(program), program.work_of_line
    slowed = Works(program, profile).slowed if worked else frozenset()
    if not slowed:
        return [0] * len(worked)
    price = Prices(program, profile, traced=False)
    return [price(op, line).demand if names[line].name in slowed else 0 for op, line in worked]


@kept
def _worked(program: Program) -> list[tuple[Operation, int]]:
    """The distinct operations of a program that do a work, and the lines that say which."""
    return sorted(
        {(each.op, each.line) for distinct in outline(program).distinct for each in distinct if each.line >= 0}
    )
