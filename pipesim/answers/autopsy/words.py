"""The barrier words in the shared memory of a CTA: those that warps wait for, and others by their form."""

import struct
from collections.abc import Iterable

from pipesim.model.barrier import BarrierWord, decode_word

_UNUSED = 1 | 1 << 42  #: bits that were 0 in every barrier word looked at
_MOST = 1024  #: arrivals that a barrier of a CTA expects
_MOST_BYTES = 1 << 20


def word_at(shared: bytes, address: int) -> BarrierWord | None:
    """The barrier word at an address of a CTA's window, None if the dump does not have it, or it is none."""
    if address < 0 or address % 8 or address + 8 > len(shared):
        return None
    (value,) = struct.unpack_from("<Q", shared, address)
    return None if value & _UNUSED else decode_word(value)


def barrier_words(shared: bytes, known: Iterable[int]) -> dict[int, BarrierWord]:
    """The words at ``known`` addresses, and all others that look like barriers, by address."""
    found = {address: word for address in known if (word := word_at(shared, address)) is not None}
    whole = len(shared) // 8 * 8
    for address, (value,) in zip(range(0, whole, 8), struct.iter_unpack("<Q", shared[:whole]), strict=True):
        if value and not value & _UNUSED and address not in found:
            word = decode_word(value)
            if 0 < word.expected <= _MOST and word.pending <= word.expected and abs(word.tx) < _MOST_BYTES:
                found[address] = word
    return dict(sorted(found.items()))
