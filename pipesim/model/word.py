"""The 64 bits of an mbarrier as H100 and H200 hold them, readable only after ``mbarrier.inval``.

Bits 1 to 20 are minus the expected count, 21 to 41 minus tx, 43 to 62 minus the pending count (all in two's
complement), bit 63 is the parity of the phase. How many phases were completed is not in it: only its lowest bit.
"""

from __future__ import annotations

from pipesim.model.barrier import INVALID, BarrierState

_EXPECTED, _TX, _PENDING, _PHASE = (1, 20), (21, 21), (43, 20), (63, 1)  # lowest bit and width


def encode(state: BarrierState) -> int:
    """The word that the chip leaves behind for this state."""
    fields = ((_EXPECTED, -state.expected), (_TX, -state.tx), (_PENDING, -state.pending), (_PHASE, state.done))
    return sum((value & ((1 << width) - 1)) << shift for (shift, width), value in fields)


def decode(word: int) -> BarrierState:
    """The state that a word tells of; ``done`` is 0 or 1, for only its parity is there."""
    expected, pending, done = (_field(word, place) for place in (_EXPECTED, _PENDING, _PHASE))
    tx = _field(word, _TX)
    half = 1 << (_TX[1] - 1)
    signed = tx - 2 * half if tx >= half else tx
    counts = (-expected % (1 << _EXPECTED[1]), -pending % (1 << _PENDING[1]))
    return BarrierState(*counts, -signed, done, INVALID)


def _field(word: int, place: tuple[int, int]) -> int:
    shift, width = place
    return (word >> shift) & ((1 << width) - 1)
