"""The 64 bits that ``mbarrier.inval`` leaves: what was measured, and that nothing is lost either way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipesim.errors import ParameterError
from pipesim.model.barrier import MAX_COUNT, BarrierWord, decode_word
from tests.support.barrier_words import encode_word

COUNTS = st.integers(0, MAX_COUNT)
WORDS = st.builds(BarrierWord, COUNTS, COUNTS, st.integers(-MAX_COUNT, MAX_COUNT), st.integers(0, 1))
MEASURED = {
    0xFFFF0000001FFFC0: BarrierWord(expected=32, pending=32, tx=0, parity=1),  # fresh count 32, one phase done
    0x7FFFFA00001FFFFE: BarrierWord(expected=1, pending=1, tx=1 << 20, parity=0),  # one byte more than PTX allows
    0x00000000021FFFFE: BarrierWord(expected=1, pending=0, tx=-16, parity=0),  # 16 bytes more than were expected
}


@pytest.mark.parametrize("word", MEASURED)
def test_the_words_that_were_measured(word: int) -> None:
    assert decode_word(word) == MEASURED[word]
    assert encode_word(MEASURED[word]) == word


@given(WORDS)
def test_what_is_written_is_read(fields: BarrierWord) -> None:
    word = encode_word(fields)
    assert 0 <= word < 1 << 64
    assert decode_word(word) == fields


@pytest.mark.parametrize("word", [-1, 1 << 64])
def test_more_than_64_bits_are_refused(word: int) -> None:
    with pytest.raises(ParameterError, match="not a 64-bit word"):
        decode_word(word)


@pytest.mark.parametrize("fields", [(MAX_COUNT + 1, 0, 0, 0), (1, -1, 0, 0), (1, 1, MAX_COUNT + 2, 0), (1, 1, 0, 2)])
def test_what_no_barrier_holds_is_refused(fields: tuple[int, int, int, int]) -> None:
    with pytest.raises(ParameterError, match="no barrier word holds"):
        encode_word(BarrierWord(*fields))
