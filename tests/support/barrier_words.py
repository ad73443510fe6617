"""The word that an mbarrier leaves in shared memory, made of its state: the inverse of ``decode_word``."""

from pipesim.errors import ParameterError
from pipesim.model.barrier import MAX_COUNT, BarrierState, BarrierWord


def encode_word(fields: BarrierWord) -> int:
    """The word that holds these fields. ParameterError if one is out of range."""
    expected, pending, tx, parity = fields
    counts = 0 <= expected <= MAX_COUNT and 0 <= pending <= MAX_COUNT
    if not (counts and -MAX_COUNT <= tx <= MAX_COUNT + 1 and parity in (0, 1)):
        raise ParameterError(f"no barrier word holds {fields}")
    count = (1 << 20) - 1
    return (-expected & count) << 1 | (-tx & (1 << 21) - 1) << 21 | (-pending & count) << 43 | parity << 63


def word_of(state: BarrierState) -> int:
    """The word that the hardware leaves for this state; of the phases done only the parity is in it."""
    return encode_word(BarrierWord(state.expected, state.pending, state.tx, state.done & 1))
