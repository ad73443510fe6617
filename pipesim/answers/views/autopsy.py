"""What ``autopsy`` answers: of each launch in a core dump, how its CTAs stand, and who waits for whom."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from pipesim.answers.views.check import Counterexample
from pipesim.answers.views.conclusion import Conclusion
from pipesim.conform.diagnose.examination import RebuiltBarrier
from pipesim.model.finding import Deadlock, Finding, Verdict

UNKNOWN_PLACE = "unknown: its code is not in the dump"  #: what warps do there
UNKNOWN_LANES = "unknown: in what is missing of the dump"  #: what those may do whose lanes were cut off


class Detail(Enum):
    """How much is known of the code. The value is a phrase for a report."""

    CODE = "machine code alone"
    LINES = "machine code with its lines"
    PTX = "machine code with its lines and its PTX"


@dataclass(frozen=True)
class WarpPlace:
    """Warps that wait for nothing that other warps of their CTA supply: ``does`` says what, ``line`` where.

    ``exception``: that stopped them, "" if none did.
    """

    warps: tuple[str, ...]
    does: str
    line: str
    exception: str = ""


@dataclass(frozen=True)
class DumpedCtas:
    """CTAs, or clusters of CTAs, that stand alike: how many, their numbers in the grid, and what the first looks like.

    ``others``: warps that wait for nothing: that run or sleep. ``stopped``: by an exception of some warp of the dump,
    so that it is not known what the others would have done.
    """

    ctas: int
    numbers: tuple[int, ...]
    deadlock: Deadlock
    barriers: tuple[RebuiltBarrier, ...]
    others: tuple[WarpPlace, ...] = ()
    stopped: bool = False

    @property
    def hangs(self) -> bool:
        """Whether all warps wait: where one runs, what the others wait for may come."""
        return bool(self.deadlock.blocked) and not self.others and not self.stopped


@dataclass(frozen=True)
class PredictedHang:
    """What ``check`` says of the launch in the dump, and the hang that its program reaches (``shown``), if it does.

    ``same``: of the warps that wait in the dump, those that wait in that hang for a barrier that lacks the same;
    ``of``: all of them. ``replayed``: it is the state of the dump; ``by_check``: check finds it. ``reason``: why it
    could not be checked, "" if it was. ``files``: the PTX and the launch file, if they were kept. ``spins``: warps wait
    for a word of global memory, of which check ``assumes`` something. ``names``: the program's, of barriers of the dump
    """

    verdict: Verdict
    shown: Counterexample | None = None
    same: int = 0
    of: int = 0
    reason: str = ""
    files: tuple[str, ...] = ()
    replayed: bool = False
    by_check: bool = False
    spins: bool = False
    assumes: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


class WriterState(Enum):
    """Why a CTA does not store what a word of global memory is waited for, the most certain cause first."""

    HOLDS = "has the lock"
    SKIPPED = "has ended without its store"
    NOT_BEGUN = "has not begun"
    WOULD = "waits itself"
    DONE = "has stored it, if the word was 0 at first"
    MAY_HOLD = "may have the lock"
    MAY = "could store it"


@dataclass(frozen=True)
class WordWriter:
    """CTAs of the launch with this number that could store what is waited for. ``warp``: of the first of them.

    ``value``: that it would store, or adds (``+1``); "" if that is not known. ``line``: of the store, "" if there is
    none; ``taken``: where it took the lock. ``waits_for``: what it waits for before it. ``branch``: led past the store.
    ``sure``: False if the store is after a branch that is not known.
    """

    launch: int
    ctas: tuple[int, ...]
    state: WriterState
    warp: str
    value: str
    line: str
    taken: str = ""
    waits_for: str = ""
    branch: str = ""
    sure: bool = True


class WordWaiter(NamedTuple):
    """CTAs of a launch that wait for a word to have a value: ``wanted`` in words, "" if it is not known which."""

    launch: int
    ctas: tuple[int, ...]
    warp: str
    line: str
    wanted: str


@dataclass(frozen=True)
class AwaitedWord:
    """A word of global memory that warps spin on: its name, its value ("" if not known), and who could store it.

    ``whole``: whether all CTAs of the launches in the dump were followed. ``cycle``: launches and CTAs that wait for
    each other.
    """

    name: str
    value: str
    lock: bool
    waits: tuple[WordWaiter, ...]
    writers: tuple[WordWriter, ...]
    whole: bool
    cycle: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class DumpedLaunch:
    """One launch: its kernel and shape, and how its CTAs stand that had not ended.

    ``number``: its row in the dump. ``started``: CTAs that are in the dump; the others had ended, or had not begun.
    """

    number: int
    kernel: str
    arch: str
    device: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    detail: Detail
    started: int
    groups: tuple[DumpedCtas, ...]
    predicted: PredictedHang | None = None

    @property
    def hung(self) -> DumpedCtas:
        """The first CTAs that hang, else the first of all."""
        return next((each for each in self.groups if each.hangs), self.groups[0])

    @property
    def ctas(self) -> int:
        """The CTAs of the launch."""
        x, y, z = self.grid
        return x * y * z


@dataclass(frozen=True)
class AutopsyReport:
    """What a core dump says. ``notes``: what is missing of it; ``words``: of global memory, that warps wait for."""

    dump: str
    launches: tuple[DumpedLaunch, ...]
    notes: tuple[str, ...] = ()
    words: tuple[AwaitedWord, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The hang of each group of CTAs."""
        return tuple(each.deadlock for launch in self.launches for each in launch.groups if each.hangs)

    @property
    def exceptions(self) -> tuple[tuple[DumpedLaunch, WarpPlace], ...]:
        """The warps that an exception stopped, with their launches."""
        every = ((launch, each) for launch in self.launches for group in launch.groups for each in group.others)
        return tuple((launch, each) for launch, each in every if each.exception)

    @property
    def conclusion(self) -> Conclusion:
        """WRONG if warps wait for something that does not come, or an exception stopped them; else UNKNOWN."""
        return Conclusion.WRONG if self.findings or self.exceptions else Conclusion.UNKNOWN
