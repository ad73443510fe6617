"""Format 2 of a record, in two encodings: the one definition for ``recorder.cuh``, the PTX rewriter and the decoders.

*Full* (:func:`full_tag`): 8 bytes, a 32-bit ``%clock`` and a tag with the site, flags and a running number. For kernels
whose control depends on data.

*Positional* (:func:`hash_step`): 4-byte ``%clock`` timestamps; the place of one in the stream says its site and its
iteration. Once a lap, at the last block of an iteration of the agent's loop, the stream has one 4-byte word that is not
a timestamp: the running hash of all sites that the agent executed up to there. A timestamp that is missing, or in
another place than the description says, leaves another hash.

All functions are on plain integers or numpy arrays of them, and know nothing about a kernel or a program.
"""

from enum import IntEnum, IntFlag
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

# Shift and width of the fields of a full tag, from bit 0: site, flags, sequence.
FULL_SITE: Final = (0, 12)
FULL_FLAGS: Final = (12, 4)
FULL_SEQUENCE: Final = (16, 16)

UNWRITTEN: Final = 0xFF  #: every byte of a host buffer before the launch: no record has a tag of ones

MAX_FULL_SITES: Final = (1 << FULL_SITE[1]) - 1  #: a tag of ones marks a record that was not written
SEQUENCE_PERIOD: Final = 1 << FULL_SEQUENCE[1]  #: the running number of a record is modulo this
POSITIONAL_WORDS: Final = 1  #: of a timestamp, and of the hash

HASH_FACTOR: Final = 0x9E3779B1  #: odd, so that no two hashes meet by a step with the same site
HASH_START: Final = 0
FIRST_BLOCK: Final = 1 << FULL_SITE[1]  #: blocks from this number on are no sites: see :func:`wait_block`

_MASK = (1 << 32) - 1


class Encoding(IntEnum):
    """What a record is: PIPESIM_ENCODING of ``recorder.cuh``."""

    TAGGED = 0  #: format 1: a clock or two, and a tag with site, stage, parity, iteration and value
    FULL = 1
    POSITIONAL = 2


class Flag(IntFlag):
    """What a full record says besides its site."""

    TRIED = 1  #: this is a try, or a wait's first one
    PASSED = 2  #: the try succeeded, or the wait returned
    GAVE_UP = 4  #: the wait was left without success: at its deadline, or stopped
    PARITY = 8  #: the parity with which the wait or try was really executed


class FullTags(NamedTuple):
    """The fields of full tags, as arrays of one shape."""

    site: npt.NDArray[np.int64]
    flags: npt.NDArray[np.int64]
    sequence: npt.NDArray[np.int64]


def full_tag(site: int, flags: int, sequence: int) -> int:
    """The tag of a full record; ``sequence``: its running number in its stream, from 0, of which the low bits are kept.

    Raises ValueError for a site or flags that have no room.
    """
    if not 0 <= site < MAX_FULL_SITES or not 0 <= flags < 1 << FULL_FLAGS[1]:
        raise ValueError(f"no tag for site {site} with flags {flags}")
    return site | flags << FULL_FLAGS[0] | sequence % SEQUENCE_PERIOD << FULL_SEQUENCE[0]


def split_tags(tags: npt.NDArray[np.integer]) -> FullTags:
    """The fields of an array of full tags."""
    fields = (
        (tags.astype(np.int64) >> shift) & ((1 << width) - 1) for shift, width in (FULL_SITE, FULL_FLAGS, FULL_SEQUENCE)
    )
    return FullTags(*fields)


def first_gap(sequence: npt.NDArray[np.integer]) -> int | None:
    """The first row of a stream whose running number is not its own, because a record was lost or moved; None if none.

    A loss of a whole number of ``SEQUENCE_PERIOD`` records cannot be seen.
    """
    wrong = sequence.astype(np.int64) != np.arange(len(sequence)) % SEQUENCE_PERIOD
    return int(np.argmax(wrong)) if wrong.any() else None


def hash_step(value: int, block: int) -> int:
    """The running hash after one executed site or block."""
    return (value * HASH_FACTOR + block + 1) & _MASK


def wait_block(site: int, stage: int, parity: int) -> int:
    """What ``recorder.cuh`` hashes for a wait or a try: its site, and the stage and parity that were waited for."""
    return site + FIRST_BLOCK * (1 + 2 * stage + parity)
