"""What ``confirm`` and ``stress`` answer: what was tried on the GPU, and what its launches showed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pipesim.answers.views.conclusion import Conclusion, Heading
from pipesim.confirm.choose import Sign, WaitingWarp
from pipesim.confirm.delays import Delay
from pipesim.confirm.plans import LateWay
from pipesim.model.finding import Finding, Verdict


@dataclass(frozen=True)
class ChipDevice:
    """What launched: the GPU's name, and its driver."""

    name: str = ""
    driver: str = ""


class ChipVerdict(Enum):
    """What the launches say of a finding."""

    CONFIRMED = "confirmed"
    OTHERWISE = "seen otherwise"  #: something fails that does not without the delays, but not what was predicted
    NOT_SEEN = "not seen"
    NOT_TRIED = "not tried"


@dataclass(frozen=True)
class WarpsAtWait:
    """Warps of a CTA that gave up at one statement; ``predicted``: the schedule ends with each of them there."""

    cta: int
    warps: tuple[int, ...]
    line: str
    predicted: bool


@dataclass(frozen=True)
class Tries:
    """Launches of one kernel, how many showed what was predicted, and how many something else that is wrong.

    ``waits``, ``error``, ``differ`` (bytes) and ``first`` (a buffer's name, offset): of the first of these.
    """

    launches: int = 0
    seen: int = 0
    otherwise: int = 0
    waits: tuple[WarpsAtWait, ...] = ()
    error: str = ""
    differ: int = 0
    first: tuple[str, int] = ("", -1)
    stuck: bool = False


@dataclass(frozen=True)
class FindingOnChip:
    """One finding. ``delays``: () if none is needed. ``modelled``: a run of the program with them shows it.

    ``zeros``: the buffers that hold zeros. ``reason``: why it was not tried, or why its launches say nothing.
    ``files``: what was saved.
    """

    number: int
    finding: Finding
    verdict: ChipVerdict
    sign: Sign = Sign.NONE
    delays: tuple[Delay, ...] = ()
    waiting: tuple[WaitingWarp, ...] = ()
    modelled: bool = False
    tried: Tries = Tries()
    control: Tries = Tries()
    zeros: tuple[str, ...] = ()
    reason: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class ConfirmReport:
    """All findings of a kernel on a chip. ``verdict``: of check."""

    heading: Heading
    verdict: Verdict
    device: ChipDevice
    findings_on_chip: tuple[FindingOnChip, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those that the GPU has shown, if differently."""
        shown = (ChipVerdict.CONFIRMED, ChipVerdict.OTHERWISE)
        return tuple(each.finding for each in self.findings_on_chip if each.verdict in shown)

    @property
    def conclusion(self) -> Conclusion:
        """Wrong if the GPU has shown a finding; else nothing is known."""
        return Conclusion.WRONG if self.findings else Conclusion.UNKNOWN


@dataclass(frozen=True)
class LaunchOnChip:
    """A launch of a program: its kernel, the names of its PTX and its launch file ("" if there is none).

    ``verdict``: of check, and ``said`` a line of it, or why the launch was not checked, or not launched again.
    """

    kernel: str
    ptx: str
    launch: str
    verdict: Verdict
    said: str
    on_chip: ConfirmReport | None = None


@dataclass(frozen=True)
class ConfirmProgramReport:
    """The launches of a program on a chip; ``status``: of the program. ``notes``: what was not observed."""

    folder: str
    command: tuple[str, ...]
    status: int | None
    launches: tuple[LaunchOnChip, ...]
    notes: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those that the GPU has shown."""
        return tuple(found for each in self.launches if each.on_chip is not None for found in each.on_chip.findings)

    @property
    def conclusion(self) -> Conclusion:
        """Wrong if the GPU has shown a finding; it agrees if all are proved, and there is one."""
        if self.findings:
            return Conclusion.WRONG
        proved = self.launches and all(each.verdict is Verdict.PROVED for each in self.launches)
        return Conclusion.AGREES if proved else Conclusion.UNKNOWN


@dataclass(frozen=True)
class StressSeen:
    """What a launch showed: its number, how its warps were late, and what launches with these delays show again."""

    number: int
    way: LateWay
    sign: Sign
    delays: tuple[Delay, ...]
    again: Tries
    control: Tries
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class StressReport:
    """``launches`` that were made, and of those by each way. ``verdict``: of check.

    ``varies``: launches without delays leave different results, so that results are not compared. ``control``: the
    first launches, without delays; where these fail, no others are made. ``reason``: why none was made.
    """

    heading: Heading
    verdict: Verdict
    device: ChipDevice
    seed: int
    launches: int = 0
    ways: Mapping[LateWay, int] = field(default_factory=dict)
    seen: tuple[StressSeen, ...] = ()
    control: Tries = Tries()
    varies: bool = False
    zeros: tuple[str, ...] = ()
    reason: str = ""
    files: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is seen has no kind."""
        return ()

    @property
    def conclusion(self) -> Conclusion:
        """Wrong if something was seen; nothing is known if nothing was launched; else the launches agree."""
        if self.seen or self.control.otherwise or self.control.seen:
            return Conclusion.WRONG
        return Conclusion.AGREES if self.launches else Conclusion.UNKNOWN
