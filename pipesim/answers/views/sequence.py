"""What ``check --sequence`` answers: for pairs of launches what both access, and what orders it or does not."""

from dataclasses import dataclass
from enum import Enum

from pipesim.answers.views.conclusion import Basis, Conclusion


class Promise(Enum):
    """Whether a launch is complete, and its memory visible, before an access of a later one."""

    NONE = "not ordered"
    SEEN = "not promised by PTX"  #: measured hardware did it in all runs
    PROMISED = "ordered"


@dataclass(frozen=True)
class SharedBytes:
    """Bytes of an allocation that both launches access at these lines, one of them writing; ``end`` -1: to its end.

    ``missing``: what would order the accesses, "" if they are ordered. ``basis``: how sure it is that they fail so.
    """

    allocation: str
    first: int
    end: int
    earlier_line: str
    earlier_writes: bool
    later_line: str
    later_writes: bool
    promise: Promise
    missing: str = ""
    basis: Basis | None = None


@dataclass(frozen=True)
class LaunchPair:
    """Two launches by their numbers from 1 on, and their kernels. ``by``: what lets the later one begin."""

    earlier: int
    later: int
    earlier_kernel: str
    later_kernel: str
    by: str
    shared: tuple[SharedBytes, ...]


@dataclass(frozen=True)
class SequenceReport:
    """The pairs that share bytes. ``superfluous``: waits that order nothing; ``unread``: accesses not known."""

    file: str
    launches: int
    pairs: tuple[LaunchPair, ...]
    superfluous: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[SharedBytes, ...]:
        """What is not ordered, without what PTX alone does not promise."""
        every = (each for pair in self.pairs for each in pair.shared)
        return tuple(each for each in every if each.basis in (Basis.CERTAIN, Basis.POSSIBLE))

    @property
    def conclusion(self) -> Conclusion:
        """Wrong with a finding, else unknown if some access is not known."""
        if self.findings:
            return Conclusion.WRONG
        return Conclusion.UNKNOWN if self.unread else Conclusion.AGREES
