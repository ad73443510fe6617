"""What is recorded of a process, and how much; from one process to the next it travels in environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

SPOOL = "PIPESIM_LAUNCHES_SPOOL"
PATTERNS = "PIPESIM_LAUNCHES_PATTERNS"
ONCE = "PIPESIM_LAUNCHES_ONCE"
LAUNCHES = "PIPESIM_LAUNCHES_LAUNCHES"
BYTES = "PIPESIM_LAUNCHES_BYTES"
ORDERED = "PIPESIM_LAUNCHES_ORDERED"
COPIES = "PIPESIM_LAUNCHES_COPIES"
DUMP = "PIPESIM_LAUNCHES_DUMP"
LIBRARY = "PIPESIM_LAUNCHES_LIBRARY"  #: which counts launches like one before in a Python process
OBSERVED = "PIPESIM_LAUNCHES_OBSERVED"  #: the id of a process that observes itself: an injected library leaves it alone


@dataclass(frozen=True)
class Limits:
    """Which kernels are recorded, and how many launches.

    ``patterns``: shell patterns, of which a kernel's name must match one; all kernels without one. ``once``: each
    kernel's first launch only. ``launches``: distinct launches of a process. ``nbytes``: of all records of a process.
    ``ordered``: launches, events and waits of which the order is recorded. ``copies``: bytes that are copied of what
    the parameters of launches lead to. ``dump``: launches of kernels without PTX as well, which a compiler's dump has;
    in Python processes.
    """

    patterns: tuple[str, ...] = ()
    once: bool = False
    launches: int = 256
    nbytes: int = 1 << 26
    ordered: int = 0
    copies: int = 0
    dump: bool = False

    def wants(self, kernel: str) -> bool:
        """Whether a kernel's name matches one of the patterns."""
        return not self.patterns or any(fnmatchcase(kernel, pattern) for pattern in self.patterns)

    def to_environment(self) -> dict[str, str]:
        """The variables that say the same to a child process."""
        return {
            PATTERNS: "\n".join(self.patterns),
            ONCE: "1" if self.once else "",
            LAUNCHES: str(self.launches),
            BYTES: str(self.nbytes),
            ORDERED: str(self.ordered),
            COPIES: str(self.copies),
            DUMP: "1" if self.dump else "",
        }

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Limits":
        """What the variables say; the defaults where one is missing or is not a number."""
        made = cls()
        return cls(
            tuple(each for each in environment.get(PATTERNS, "").split("\n") if each),
            environment.get(ONCE, "") == "1",
            _number(environment.get(LAUNCHES, ""), made.launches),
            _number(environment.get(BYTES, ""), made.nbytes),
            _number(environment.get(ORDERED, ""), made.ordered),
            _number(environment.get(COPIES, ""), made.copies),
            environment.get(DUMP, "") == "1",
        )


def _number(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else default
