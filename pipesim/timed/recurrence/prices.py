"""What the operations of a formula cost, under one profile (whole numbers) or under many (an array for each)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipesim.model.program import Program
from pipesim.timed.costs import Prices
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
    sums: list[Any]
    record: Any
    retry: Any
    poll: Any
    cold: Any


def price_table(program: Program, formula: Formula, profiles: Sequence[Profile], *, traced: bool) -> PriceTable:
    """The prices of a formula under these profiles."""
    fields: Any
    rest: list[Any]
    if len(profiles) == 1:
        profile = profiles[0]
        fields = zip(*_costs(program, formula, profile, traced=traced), strict=True)
        rest = [profile[name] for name in _NAMES]
    else:
        costs = [_costs(program, formula, profile, traced=traced) for profile in profiles]
        flat = np.array(costs, dtype=np.int64).reshape(len(profiles), len(formula.priced), _FIELDS)
        fields = np.ascontiguousarray(flat.transpose(2, 1, 0))
        rest = [np.array([each[name] for each in profiles], dtype=np.int64) for name in _NAMES]
    record, retry, poll, cold = rest
    busy, visible, engine, flight = map(list, fields) if formula.priced else ([], [], [], [])
    sums = [sum(busy[number] for number in numbers) for numbers in formula.sums]
    return PriceTable(len(profiles) > 1, busy, visible, engine, flight, sums, record * traced, retry, poll, cold)


_NAMES = ("record.issue", "wait.retry", "wait.poll", "copy.cold")
_FIELDS = 4


def _costs(program: Program, formula: Formula, profile: Profile, *, traced: bool) -> list[tuple[int, int, int, int]]:
    price = Prices(program, profile, traced=traced)
    record = profile["record.issue"] if traced else 0
    found = []
    for each in formula.priced:
        cost = price(each.op)
        found.append((cost.busy + record * each.recorded, cost.visible, cost.engine, cost.flight))
    return found
