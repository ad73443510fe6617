"""What the operations of a formula cost, under one profile (whole numbers) or under many (an array for each)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipesim.model.program import Program
from pipesim.timed.costs import Cost, Prices
from pipesim.timed.profile import Profile
from pipesim.timed.recurrence.formula import Formula

Cycles = NDArray[np.int64]  #: an array of one number for each profile


@dataclass(frozen=True)
class PriceTable:
    """Cycles by the number of a price, or of a sum; each an array with one entry for each profile."""

    busy: list[Cycles]
    visible: list[Cycles]
    engine: list[Cycles]
    flight: list[Cycles]
    sums: list[Cycles]
    record: Cycles
    retry: Cycles
    poll: Cycles
    cold: Cycles


def price_table(program: Program, formula: Formula, profiles: Sequence[Profile], *, traced: bool) -> PriceTable:
    """The prices of a formula under these profiles."""
    costs = [_costs(program, formula, profile, traced=traced) for profile in profiles]
    flat = np.array(costs, dtype=np.int64).reshape(len(profiles), len(formula.priced), 4)
    by_field = np.ascontiguousarray(flat.transpose(2, 1, 0))
    busy, visible, engine, flight = (list(each) for each in by_field)
    record = _values(profiles, "record.issue") * traced
    return PriceTable(
        busy, visible, engine, flight,
        [np.sum([busy[number] for number in numbers], axis=0) for numbers in formula.sums],
        record, _values(profiles, "wait.retry"), _values(profiles, "wait.poll"), _values(profiles, "copy.cold"),
    )  # fmt: skip


def _values(profiles: Sequence[Profile], name: str) -> Cycles:
    return np.array([profile[name] for profile in profiles], dtype=np.int64)


def _costs(program: Program, formula: Formula, profile: Profile, *, traced: bool) -> list[tuple[int, int, int, int]]:
    price = Prices(program, profile, traced=traced)
    record = profile["record.issue"] if traced else 0
    found: list[tuple[int, int, int, int]] = []
    for each in formula.priced:
        cost: Cost = price(each.op)
        found.append((cost.busy + record * each.recorded, cost.visible, cost.engine, cost.flight))
    return found
