"""Every ready-made protocol at a dozen sizes, from none to several laps: it ends, without a fault, in pinned counts."""

import pytest

from pipesim.protocols.catalog import BUILT_IN
from tests.support.protocol_counts import CASES, COUNTS, counted, label
from tests.support.protocol_sizes import SIZES, Params


def test_every_protocol_has_a_dozen_sizes() -> None:
    assert sorted(SIZES) == sorted(BUILT_IN)
    assert {name: len(sizes) for name, sizes in SIZES.items() if len(sizes) < 12} == {}


def lane(name: str, params: Params) -> tuple[pytest.MarkDecorator, ...]:
    """The first five sizes are in the fast lane; of the others every other one runs at length only."""
    place = SIZES[name].index(params)
    return () if place < 5 else (pytest.mark.long if place % 2 else pytest.mark.slow,)


@pytest.mark.sampled(12, 26)
@pytest.mark.parametrize(
    ("name", "params"),
    [pytest.param(*case, id=label(*case), marks=lane(*case)) for case in CASES],
)
def test_it_ends_well_and_its_counts_are_pinned(name: str, params: Params) -> None:
    pinned = dict(line.split(": ") for line in COUNTS.read_text(encoding="utf-8").splitlines())
    mine, _, counts = counted(name, params).partition(": ")
    assert counts == pinned[mine]


def test_no_count_is_pinned_for_nothing() -> None:
    pinned = [line.partition(": ")[0] for line in COUNTS.read_text(encoding="utf-8").splitlines()]
    assert pinned == [label(*case) for case in CASES]
