"""A computation with the columns of many profiles says of each what the same computation says of it alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pipesim.bounds import MAX_CYCLES
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import find
from pipesim.timed.costs import Prices
from pipesim.timed.outline import outline
from pipesim.timed.profile import Profile, load_profile
from pipesim.timed.recurrence.column import Column, PartedError
from pipesim.timed.recurrence.many import ManyProfiles
from tests.support.random_profiles import drawn

H100 = load_profile("h100")
NAMES = ("wait.issue", "copy.issue", "copy.bytes_per_kcycle")


def near(seed: int) -> Profile:
    draw = random.Random(seed)
    values = {name: max(1, value * draw.randint(70, 130) // 100) for name, value in H100.values.items()}
    return replace(H100, sms=draw.choice([1, 100, 132]), values=values)


def arithmetic(profile: Profile) -> list[int]:
    """Everything that a column can do."""
    a, b, c = (profile[name] for name in NAMES)
    found = [a + b, a - b, a * b, a // c, -a, 7 + a, 7 - a, 7 * a, 7 // c, -(-a * 1000 // c), sum([a, b, c])]
    found += [min(a, b), max(a, 3, b), a or b, b if a < 20 else c, b if a <= 20 else c, min(b, a)]
    return [
        *found,
        int(a == b),
        int(a != b),
        profile.values.get("wait.poll", 5),
        profile.values.get("none", 5),
        profile.sms,
    ]


def same(profiles: Sequence[Profile], compute: object, which: Sequence[int] | None = None) -> None:
    numbers = np.array(range(len(profiles)) if which is None else which, dtype=np.int64)
    found = ManyProfiles(profiles).computed(numbers, compute)  # type: ignore[arg-type]
    assert found.T.tolist() == [compute(profiles[i]) for i in numbers]  # type: ignore[operator]


def test_arithmetic() -> None:
    same([drawn(seed) for seed in range(60)], arithmetic)
    same([drawn(seed) for seed in range(60)], arithmetic, [5, 3, 40, 41, 42, 59, 6])
    same([drawn(0)], arithmetic)


def test_profiles_with_other_values_or_too_large_ones() -> None:
    """A kernel's constants are in one and not in the other; and no array holds the product of the largest values."""
    more = [replace(H100, values={**H100.values, "none": seed}) for seed in range(8)]
    large = replace(H100, values={**H100.values, "wait.issue": MAX_CYCLES, "copy.issue": MAX_CYCLES})
    same([*more, *map(near, range(8)), *more[:3]], lambda profile: arithmetic(profile)[-2:])
    same([large, *map(near, range(8))], lambda profile: arithmetic(profile)[:2])
    with pytest.raises(OverflowError):
        same([large, *map(near, range(8))], arithmetic)


def test_it_is_not_computed_one_by_one() -> None:
    """The twin: profiles that differ in no answer are computed with once, and others as often as they part."""
    calls = []

    def compute(profile: Profile) -> list[int]:
        calls.append(profile)
        return [profile["wait.issue"] + (1 if profile.sms > 100 else 2)]

    profiles = [near(seed) for seed in range(90)]
    ManyProfiles(profiles).computed(np.arange(90), compute)
    assert len(calls) == 4


def test_a_question_that_parts() -> None:
    column = Column.of(np.array([1, 5, 9]))
    with pytest.raises(PartedError) as parted:
        bool(column > 4)
    assert parted.value.yes.tolist() == [False, True, True]
    assert column > 0
    assert not column > 9


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_prices_of_the_built_in_protocols(name: str) -> None:
    program = find(name).build({})
    known = {(each.op, each.line) for distinct in outline(program).distinct for each in distinct}

    def costs(profile: Profile) -> list[int]:
        price = Prices(program, profile, traced=True)
        return [number for op, line in sorted(known) for number in vars(price(op, line)).values()]

    same([near(seed) for seed in range(12)], costs)
