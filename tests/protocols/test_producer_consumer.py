"""The ready-made ring: its parameters, its shape, and how schedules of it end."""

import inspect

import pytest

from pipesim.errors import ParameterError
from pipesim.protocols.hopper.producer_consumer import producer_consumer

WRONG: dict[str, list[object]] = {
    "stages": [0, 33, "4"],
    "tiles": [-1, (1 << 20) + 1],
    "tile_bytes": [0, 24, (1 << 20) + 16],
    "consumer_warps": [0, 9],
    "work": [-1, (1 << 24) + 1],
    "arrive_lanes": [0, 31, 33],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_parameter_is_refused_by_its_name(name: str) -> None:
    assert list(inspect.signature(producer_consumer).parameters) == list(WRONG)
    for value in WRONG[name]:
        with pytest.raises(ParameterError) as caught:
            producer_consumer(**{name: value})  # type: ignore[arg-type]
        assert caught.value.fact.startswith(name)
