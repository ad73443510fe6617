"""What is said of one kind of finding or warning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from pipesim.lang.protocol import Protocol
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind


class WarningKind(Enum):
    """What is not a fault and may not be intended. The value is a title."""

    UNREAD_DATA = "data is left in memory that no agent reads"
    TRANSFER_IN_FLIGHT = "a transfer may still be in flight when its CTA has exited"
    COMMIT_AFTER_EXIT = "a commit may arrive when the CTA of its barrier has exited"
    CP_ASYNC_AFTER_EXIT = "a cp.async arrive may be counted when the CTA of its barrier has exited"
    UNSCOPED_ARRIVE = "an arrive on a barrier of another CTA has no scope"
    REGISTER_REQUESTS = "the warps of a warp group request different numbers of registers"
    CP_ASYNC_COUNT = "a cp.async arrive without .noinc is on a barrier that counts bytes"


Kind = FaultKind | Ending | WarningKind


@dataclass(frozen=True)
class Operations:
    """A smallest example as operations, of which each text is an agent: for what no description of whole warps has."""

    wrong: tuple[str, ...]
    right: tuple[str, ...]


@dataclass(frozen=True)
class PtxBody:
    """A smallest example as instructions of a kernel."""

    wrong: str
    right: str


Example = Callable[..., Protocol] | Operations | PtxBody


@dataclass(frozen=True)
class Topic:
    """One kind: what it is, how it shows on the hardware, how it is corrected, and the smallest example.

    ``example``: a function of ``right`` (0 or 1), or what else a program is made of. ``switches``: the optional rules
    under which it is a finding.
    """

    kind: Kind
    what: str
    shows: str
    corrected: str
    example: Example
    switches: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As JSON and the command line name it: ``over_arrival``."""
        return self.kind.name.lower()

    @property
    def title(self) -> str:
        """What reports call it."""
        return TITLES.get(self.kind, str(self.kind.value))

    @property
    def warns(self) -> bool:
        """True for a warning, which a proved protocol can have."""
        return isinstance(self.kind, WarningKind)


TITLES: dict[Kind, str] = {Ending.DEADLOCK: "agents wait indefinitely"}
