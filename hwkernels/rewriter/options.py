"""What a rewritten kernel records, and how."""

from dataclasses import dataclass
from enum import Enum


class Encoding(Enum):
    """The two encodings of :mod:`hwkernels.records.encodings`, and the choice between them.

    ``AUTO``: positional where the path of every warp follows from the launch, full where it depends on data.
    """

    AUTO = "auto"
    FULL = "full"
    POSITIONAL = "positional"


class Level(Enum):
    """Which steps are recorded: all, or only waits and tries, where registers are short."""

    ALL = "all"
    WAITS = "waits"


@dataclass(frozen=True)
class RewriteOptions:
    """What is recorded, and how.

    ``roles``: only warps of these roles, as the program read from the PTX calls them; empty: all. ``stop_flag``: waits
    that spin end with a record once the first word of the buffer is not 0. ``eager``: each record is stored before the
    instruction that may block, so that a hang leaves it. ``room``: how many times the expected records a buffer holds
    where control depends on data.
    """

    encoding: Encoding = Encoding.AUTO
    level: Level = Level.ALL
    roles: frozenset[str] = frozenset()
    stop_flag: bool = False
    eager: bool = False
    room: int = 2
