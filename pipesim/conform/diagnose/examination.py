"""What an examination of a run says, as data: edits that explain it, how it can end, what it left."""

from dataclasses import dataclass
from enum import Enum

from pipesim.conform.diagnose.code_edits import CodeEdit
from pipesim.conform.diagnose.edits import Edit
from pipesim.model.barrier import BarrierWord
from pipesim.model.ending import Ending
from pipesim.model.finding import BlockedAgent, Deadlock, FaultReport


class LaunchOutcome(Enum):
    """How a launch ends and with which data, as its host sees it."""

    RIGHT = "finishes with correct data"
    WRONG_DATA = "finishes with wrong data"
    HANG = "hangs"
    TRAP = "traps"


@dataclass(frozen=True)
class Explanation:
    """One edit of the protocol that makes the whole trace conform: of one operation, or of a line of a role's code.

    ``agent`` is the agent, or the role, whose mistake it is; ``iteration`` is -1 for one that is always made.
    ``barrier`` is its name with stage, ``line`` the protocol's line that the kernel does not follow. ``hazards``,
    ``trap`` and ``stuck`` are what the edited protocol breaks on the way and how it ends.
    """

    edit: Edit | CodeEdit
    claim: str
    agent: str
    barrier: str
    iteration: int
    line: str
    hazards: tuple[FaultReport, ...]
    trap: FaultReport | None
    stuck: Deadlock | None


@dataclass(frozen=True)
class Diagnosis:
    """Which single edits explain a trace, those with the fewest assumptions first.

    ``tried`` is the length of the closed list. ``made`` is the fault that was injected into the kernel ("" if
    none), ``named`` whether it is among the explanations; ``manifest`` False if the trace conforms in spite of it.
    """

    explanations: tuple[Explanation, ...]
    tried: int
    made: str = ""
    named: bool = False
    manifest: bool = True


@dataclass(frozen=True)
class RebuiltBarrier:
    """One barrier at the end: its phase (from 0), arrivals pending of its count, bytes outstanding, who waits for it.

    ``in_flight`` of the bytes were under way when a trap ended the launch; they may have landed or not.
    ``read`` is what its word said after ``mbarrier.inval``, None if it was not read; ``agrees``: it is the same.
    """

    name: str
    phase: int
    pending: int
    count: int
    tx: int
    waiting: tuple[str, ...]
    read: BarrierWord | None = None
    agrees: bool | None = None
    in_flight: int = 0


@dataclass(frozen=True)
class Autopsy:
    """What the records of one CTA say about its end.

    ``cycle`` is its last record's by the trace's clock (-1 without a record), ``picoseconds`` are from the first to it.
    ``deadlock`` is there if every agent waits or has ended, ``waiting`` names those that wait in any case; ``stopped``
    agents were somewhere between two records. ``trap`` is the operation at which the hardware ended the launch.
    ``contradiction``: the first record that does not fit the others, "" if all do; then the barriers are as far as the
    records fit. ``agree``: whether all barrier words that were read afterwards say the same, None if none was read.
    ``supplied``: operations that leave no records in this trace were taken from the protocol.
    """

    cta: int
    status: Ending
    cycle: int
    picoseconds: int
    barriers: tuple[RebuiltBarrier, ...]
    deadlock: Deadlock | None
    waiting: tuple[BlockedAgent, ...]
    stopped: tuple[str, ...]
    trap: FaultReport | None
    contradiction: str = ""
    agree: bool | None = None
    supplied: bool = False


@dataclass(frozen=True)
class Examination:
    """How a run ended, what explains it, and what it left.

    ``possible`` is how the protocol with the first explaining edit can end, as far as schedules were tried; the replay
    of the trace on it is a witness of its own, so the outcome is among them. () without an explanation.
    """

    outcome: LaunchOutcome | None
    diagnosis: Diagnosis | None
    possible: tuple[LaunchOutcome, ...]
    autopsy: Autopsy | None
