"""``assert_verified``: silent for what is proved; else the finding is the message."""

from __future__ import annotations

import pytest

from pipesim.errors import ProtocolError
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import find
from pipesim.testing import assert_verified
from tests.support.mistakes import BROKEN
from tests.support.mistakes.ring import right_ring


def test_what_is_right_in_every_schedule_passes() -> None:
    assert_verified(BUILT_IN["gemm_sm100"], tiles=2, k_iters=3)
    assert_verified(find("producer_consumer").build({"tiles": 5}))


def test_the_message_is_the_finding() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_verified(BROKEN["consumer_never_arrives"], stages=2, tiles=9)
    said = str(caught.value)
    first, empty, _ = said.split("\n", 2)  # pytest's short summary shows the first line
    assert first.startswith("refuted: consumer_never_arrives: deadlock: ")
    assert empty == ""
    assert "✗ refuted: consumer_never_arrives fails in the schedule above" in said
    assert "✗ deadlock" in said
    assert "producer waits for phase 0 of empty[0]" in said
    assert max(map(len, said.splitlines())) <= 100


def test_what_hits_a_limit_is_not_verified() -> None:
    with pytest.raises(AssertionError, match="unknown: neither proved nor refuted"):
        assert_verified(BROKEN["consumer_arrives_twice"], stages=3, tiles=3, max_states=10)


def test_wrong_parameters_are_not_a_failure_of_the_protocol() -> None:
    from pipesim.errors import ParameterError

    with pytest.raises(ParameterError, match="has no parameter 'tile'"):
        assert_verified(BUILT_IN["producer_consumer"], tile=2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (right_ring(), "not an object of type Protocol\n  probable cause: the function was called"),
        ("producer_consumer", "not an object of type str\n  try: for a built-in protocol give pipesim.find"),
    ],
)
def test_what_is_no_protocol_is_told(given: object, said: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        assert_verified(given)  # type: ignore[arg-type]
    assert said in str(caught.value)
