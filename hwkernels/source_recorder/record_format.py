"""The bits of a record: the one definition. ``recorder.cuh`` has the same numbers as macros, which a test compares.

A record is 8 or 16 bytes: a clock, a tag, and, if both clocks are recorded, the low half of ``%globaltimer`` and 0.
"""

from typing import Final

from hwkernels.records.encodings import POSITIONAL_WORDS, Encoding

# Shift and width of the tag's fields.
TAG_SITE: Final = (0, 6)
TAG_VALUE: Final = (6, 6)
TAG_PARITY: Final = (12, 1)
TAG_STAGE: Final = (13, 5)
TAG_ITERATION: Final = (18, 14)

MAX_SITES: Final = (1 << TAG_SITE[1]) - 1  #: a tag of ones marks a record that was not written
MAX_STAGES: Final = 1 << TAG_STAGE[1]  #: of a barrier group
MAX_VALUE: Final = (1 << TAG_VALUE[1]) - 1

#: PIPESIM_CLOCK, by its name in the schema, and the 32-bit words of a record under it.
CLOCKS: Final = {"clock": 0, "globaltimer": 1, "both": 2}
RECORD_WORDS: Final = {"clock": 2, "globaltimer": 2, "both": 4}

#: PIPESIM_MEMORY, by the name of the memory in the schema. Host memory is written as device memory is.
MEMORIES: Final = {"shared": 0, "device": 1, "host": 1}


def record_words(encoding: Encoding, clock: str) -> int:
    """The 32-bit words of a record; a positional one is a timestamp or a hash."""
    return POSITIONAL_WORDS if encoding is Encoding.POSITIONAL else RECORD_WORDS[clock]
