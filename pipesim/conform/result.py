"""What a comparison says, as data. Painted by ``report``, tested as it is."""

from dataclasses import dataclass, field
from enum import Enum

from pipesim.model.finding import Deadlock


class TraceVerdict(Enum):
    """What one recorded run shows beside the model, or beside another trace: no proof for other schedules."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNKNOWN = "unknown"  #: as far as the records go there is no difference, and they do not go to the end


class DivergenceKind(Enum):
    """How a trace leaves what the model allows."""

    OTHER_EVENT = "an event differs from the protocol"
    MISSING_EVENT = "an event of the protocol is missing"
    EXTRA_EVENT = "the kernel has more events than the protocol"
    BACKWARDS = "the timestamps of an agent go backwards"
    TOO_EARLY = "a wait returned before its phase can have completed"
    TOO_SOON = "a wait returned sooner after its release than the hardware can"
    FAULT = "the model breaks a rule when it replays the trace"
    NOT_FINISHED = "the kernel did not finish"
    BARRIER_WORD = "the final state of a barrier differs from the protocol"


@dataclass(frozen=True)
class ComparedEvent:
    """One event beside what the model has instead. ``index`` counts the CTA's events in order of time."""

    index: int
    agent: str
    cycle: int
    hardware: str
    model: str


@dataclass(frozen=True)
class EarlyReturn:
    """A wait that returned ``after_cycles`` after an operation that released it, sooner than the bound of its path.

    ``operation`` in words, its ``agent`` and source ``line``. Each of ``samples`` measurements took ``bound_cycles`` or
    more; ``source`` says which.
    """

    operation: str
    agent: str
    line: str
    after_cycles: int
    bound_cycles: int
    samples: int
    source: str


@dataclass(frozen=True)
class LatencyCheck:
    """How many returns were compared with the least latencies of their releases.

    ``device``: whose measured latencies these are, "" if there are none for the device that recorded. ``unchecked``
    returns were not compared: a timestamp or a measurement of an operation that released them is missing.
    """

    device: str
    checked: int = 0
    unchecked: int = 0


@dataclass(frozen=True)
class Divergence:
    """The first place where a trace and the model part.

    ``barrier`` is its name with stage ("" if none is concerned), ``phase_wanted`` and ``phase_now`` count from 0 (-1
    where no phase is concerned), ``late_by`` is how many cycles too early a wait returned at least. Of a barrier's
    word, which is not an agent's, ``agent`` is "" and ``iteration`` -1. ``early``: of a wait that returned too soon.
    """

    kind: DivergenceKind
    claim: str
    cta: int
    agent: str
    iteration: int
    event: int
    events: int
    cycle: int
    barrier: str = ""
    phase_wanted: int = -1
    phase_now: int = -1
    late_by: int = 0
    line: str = ""
    moments: tuple[ComparedEvent, ...] = ()
    stuck: Deadlock | None = None
    early: EarlyReturn | None = None

    @property
    def stuck_too(self) -> bool:
        """True if the kernel did not finish, and the model can go no further either where its records end."""
        return self.kind is DivergenceKind.NOT_FINISHED and self.stuck is not None


@dataclass(frozen=True)
class Conformance:
    """Whether the recorded behaviour is one that the model has.

    AGREES means: every recorded event was replayed, there was one at least, and every agent went through all its
    iterations. ``ctas`` counts
    the CTAs whose records these are, each of a cluster by itself. ``lost`` counts
    records that the capture dropped: with any, the verdict is at best UNKNOWN, ``events`` of it having been replayed.
    ``window`` is the trace's: (first, end) of the iterations that were kept, () for all; of the others, of the
    ``iterations`` that the protocol has, nothing is claimed. ``ended``: that all were gone through is known. ``words``
    counts the barrier words that were read at the end of a finished run and say what the model says. ``latency``: how
    soon waits returned beside what the device can, None of a simulation.
    """

    verdict: TraceVerdict
    events: int
    ctas: int
    lost: int
    uncertainty_cycles: int
    divergence: Divergence | None = None
    window: tuple[int, ...] = ()
    iterations: int = 0
    ended: bool = field(default=True, kw_only=True)
    words: int = field(default=0, kw_only=True)
    latency: LatencyCheck | None = field(default=None, kw_only=True)

    @property
    def hides(self) -> bool:
        """True if the window left out some iterations that the protocol has."""
        return bool(self.window) and (self.window[0] > 0 or self.window[1] < self.iterations)


@dataclass(frozen=True)
class Spread:
    """Median and 95th percentile of a number of cycles."""

    p50: int
    p95: int


@dataclass(frozen=True)
class SiteTiming:
    """Cycles from one site to the agent's next event: simulated and measured."""

    role: str
    kind: str
    barrier: str
    simulated: Spread
    measured: Spread


@dataclass(frozen=True)
class Share:
    """Part of an agent's time, in thousandths: simulated and measured."""

    agent: str
    what: str
    simulated: int
    measured: int


@dataclass(frozen=True)
class Figure:
    """One compared number in 1/1000 cycle; None where it does not exist. ``noise`` is the run-to-run half spread."""

    name: str
    bound: int | None
    simulated: int | None
    measured: int | None
    noise: int | None = None

    @property
    def error_permille(self) -> int | None:
        """(simulated - measured) / measured in thousandths."""
        if self.simulated is None or not self.measured:
            return None
        return round(1000 * (self.simulated - self.measured) / self.measured)


@dataclass(frozen=True)
class Timing:
    """The simulated and the measured run in numbers."""

    figures: tuple[Figure, ...]
    sites: tuple[SiteTiming, ...]
    shares: tuple[Share, ...]
    matched: int  #: events found in both by (agent, site, iteration)
    bias_cycles: int  #: median of measured minus simulated time of an event, first events aligned
    spread_cycles: int  #: 95th percentile of the absolute difference around the bias


class LimitKind(Enum):
    """What limits a run. The value is what a table says of it."""

    ROLE = "{role}"  #: which is always busy
    LOADS = "loads into {group}"  #: that arrive late
    SIGNALS = "signals on {group}"  #: between roles


@dataclass(frozen=True)
class Bottleneck:
    """What limits a run: ``role`` waits least for others, ``waits_permille`` of the time, longest for ``group``.

    ``group`` is "" for a role that never waits.
    """

    limit: LimitKind
    role: str
    waits_permille: int
    group: str = ""

    @property
    def name(self) -> tuple[LimitKind, str]:
        """What two runs have in common that are limited by the same: the role, or the group of barriers."""
        return self.limit, self.role if self.limit is LimitKind.ROLE else self.group
