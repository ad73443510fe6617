"""The 64 bits of an mbarrier as ``mbarrier.inval`` leaves them in shared memory: opaque in PTX, measured on the
hardware.

Bits 1..20 are the expected count, 21..41 the transaction count, 43..62 the pending count, each negated, in two's
complement; bit 63 is the parity of the phase. Bits 0 and 42 were 0 in every word that was read (H100, H200).
"""

from __future__ import annotations

from typing import NamedTuple

from pipesim.errors import ParameterError
from pipesim.model.barrier import MAX_COUNT, BarrierState

_COUNT, _TX = 20, 21  #: bits of a count, and of the transaction count with its sign
_EXPECTED_AT, _TX_AT, _PENDING_AT, _PHASE_AT = 1, 21, 43, 63


class BarrierWord(NamedTuple):
    """What a barrier's word says: arrivals expected in a phase, arrivals pending, bytes outstanding, phase parity."""

    expected: int
    pending: int
    tx: int
    parity: int


def decode_word(word: int) -> BarrierWord:
    """The fields of a 64-bit word. ParameterError if it has more than 64 bits."""
    if not 0 <= word < 1 << 64:
        raise ParameterError(f"{word} is not a 64-bit word", correction="give 0 to 2^64 - 1")
    negated = word >> _TX_AT & (1 << _TX) - 1
    return BarrierWord(
        expected=-(word >> _EXPECTED_AT) & (1 << _COUNT) - 1,
        pending=-(word >> _PENDING_AT) & (1 << _COUNT) - 1,
        tx=-negated if negated < 1 << _TX - 1 else (1 << _TX) - negated,
        parity=word >> _PHASE_AT,
    )


def encode_word(fields: BarrierWord) -> int:
    """The word that holds these fields: the inverse of :func:`decode_word`. ParameterError if one is out of range."""
    expected, pending, tx, parity = fields
    counts = 0 <= expected <= MAX_COUNT and 0 <= pending <= MAX_COUNT
    if not (counts and -MAX_COUNT <= tx <= MAX_COUNT + 1 and parity in (0, 1)):
        raise ParameterError(f"no barrier word holds {fields}")
    count = (1 << _COUNT) - 1
    return (
        (-expected & count) << _EXPECTED_AT
        | (-tx & (1 << _TX) - 1) << _TX_AT
        | (-pending & count) << _PENDING_AT
        | parity << _PHASE_AT
    )


def word_of(state: BarrierState) -> int:
    """The word that the hardware leaves for this state; of the phases done only the parity is in it."""
    return encode_word(BarrierWord(state.expected, state.pending, state.tx, state.done & 1))
