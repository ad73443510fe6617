"""The bits of a barrier word, on the two that were read on the chip, and there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipesim.model import word
from pipesim.model.barrier import INVALID, MAX_COUNT, BarrierState

COUNTS = st.integers(0, MAX_COUNT)


@pytest.mark.parametrize(
    ("bits", "state"),
    [
        (0xFFFF0000001FFFC0, BarrierState(32, 32, 0, 1, INVALID)),
        (0x00000000021FFFFE, BarrierState(1, 0, -16, 0, INVALID)),
    ],
)
def test_words_that_were_read_on_the_chip(bits: int, state: BarrierState) -> None:
    assert word.decode(bits) == state
    assert word.encode(state) == bits


@given(COUNTS, COUNTS, st.integers(-MAX_COUNT, MAX_COUNT), st.integers(0, 9))
def test_there_and_back(expected: int, pending: int, tx: int, done: int) -> None:
    bits = word.encode(BarrierState(expected, pending, tx, done))
    assert 0 <= bits < 1 << 64
    assert word.decode(bits) == BarrierState(expected, pending, tx, done & 1, INVALID)
