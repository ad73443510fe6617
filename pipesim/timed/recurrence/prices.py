"""What the operations of a formula cost, under one profile (whole numbers) or under many (an array for each)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipesim.model.program import Program
from pipesim.timed.costs import Prices, record_cycles
from pipesim.timed.profile import Profile
from pipesim.timed.recurrence.formula import Formula


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
    demand: list[Any]
    ahead: list[Any]
    sums: list[Any]
    record: Any
    retry: Any
    poll: Any
    cold: Any
    start: Any
    limit: Any


def price_table(program: Program, formula: Formula, profiles: Sequence[Profile], *, traced: bool) -> PriceTable:
    """The prices of a formula under these profiles."""
    fields: Any
    rest: list[Any]
    record: Any
    records = [record_cycles(program, profile, traced=traced) for profile in profiles]
    if len(profiles) == 1:
        profile, record = profiles[0], records[0]
        fields = zip(*_costs(program, formula, profile, record, traced=traced), strict=True)
        rest = [profile[name] for name in _NAMES]
    else:
        costs = [
            _costs(program, formula, each, record, traced=traced)
            for each, record in zip(profiles, records, strict=True)
        ]
        flat = np.array(costs, dtype=np.int64).reshape(len(profiles), len(formula.priced), _FIELDS)
        fields = np.ascontiguousarray(flat.transpose(2, 1, 0))
        rest = [np.array([each[name] for each in profiles], dtype=np.int64) for name in _NAMES]
        record = np.array(records, dtype=np.int64)
    busy, visible, engine, flight, demand, ahead = map(list, fields) if formula.priced else ([],) * _FIELDS
    sums = [sum(busy[number] for number in numbers) for numbers in formula.sums]
    return PriceTable(len(profiles) > 1, busy, visible, engine, flight, demand, ahead, sums, record, *rest)


_NAMES = ("wait.retry", "wait.poll", "copy.cold", "cta.start", "try.limit")
_FIELDS = 6


def _costs(program: Program, formula: Formula, profile: Profile, record: int, *, traced: bool) -> list[tuple[int, ...]]:
    price = Prices(program, profile, traced=traced)
    found: list[tuple[int, ...]] = []
    for each in formula.priced:
        cost = price(each.op, each.line)
        busy = cost.busy + record * each.recorded
        found.append((busy, cost.visible, cost.engine, cost.flight, cost.demand, cost.ahead))
    return found
