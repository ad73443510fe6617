"""What ``sweep`` and ``advise`` answer: the result of each configuration, and which are the best."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from pipesim.answers.views.conclusion import Conclusion, Heading, of_verdict
from pipesim.conform.result import Bottleneck
from pipesim.model.finding import Verdict


class Metric(Enum):
    """What configurations are ranked by. The value is what a report says; ``what``: throughput counts."""

    PERIOD = "cycles an iteration in the steady state; lower is better"
    RUN = "cycles of the whole run; lower is better"  #: of a CTA or cluster, from its first operation to its last
    THROUGHPUT = "throughput: {what}, over the whole run; higher is better"  #: work in the time of the whole run


class Comparable(Enum):
    """What configurations have in common, by which a metric is chosen. The value is a phrase for a report."""

    PERIODS = "all configurations do the same work in the same number of iterations"
    NOT_STEADY = "not every configuration reaches a steady state"  #: but all do the same work
    OTHER_ITERATIONS = (
        "the configurations do the same work in different numbers of iterations, so that an iteration is not the same "
        "work in each"
    )
    OTHER_WORK = "the configurations do different amounts of work"
    NO_WORK = "no configuration loads or multiplies matrices, so that it is not known whether they do the same work"


class WorkUnit(Enum):
    """What throughput counts. The value is a phrase for a report."""

    MATRIX = "share of the matrix engine's time"  #: cycles of matrix multiplication in a cycle
    BYTES = "bytes loaded in a cycle"  #: of a program without matrix multiplications


class Outcome(Enum):
    """How far a configuration came. The value is a phrase for a report."""

    USABLE = "finishes"  #: and is proved, where that was asked for
    REFUSED = "refused"  #: its parameters are out of range, or it does not fit the hardware
    REFUTED = "not correct"  #: some schedule fails
    UNDECIDED = "not proved"  #: the proof reached a limit
    UNFINISHED = "does not finish"  #: the simulated schedule ends in a deadlock or a fault
    CUT = "not simulated to its end"  #: more operations than a simulation may have
    FAILED = "failed"  #: pipesim failed, or the memory limit was reached
    NOT_REACHED = "not reached"  #: the sweep ended before


#: Configurations of which the sweep says nothing, or not enough.
NOT_KNOWN = frozenset({Outcome.UNDECIDED, Outcome.CUT, Outcome.FAILED, Outcome.NOT_REACHED})


@dataclass(frozen=True)
class Resources:
    """What one CTA takes of an SM: bytes of shared memory, threads, registers of all its threads (0: not stated)."""

    smem_bytes: int
    threads: int
    registers: int

    @property
    def size(self) -> tuple[int, int, int]:
        """What is smaller by: shared memory first, then registers, then threads."""
        return self.smem_bytes, self.registers, self.threads


@dataclass(frozen=True)
class Times:
    """The result of one simulation of a configuration.

    ``period_millicycles``: None where the run never became steady. ``iterations`` of the loop that the period is of
    are in the run, 0 if none is. ``work``: in the unit of ``unit``, of the whole run.
    ``at_matrix``: the role that limits the run has the matrix engine at work for most of it.
    ``bound_by``: what sets the least period of any schedule, "" if that is not known.
    """

    cycles: int
    period_millicycles: int | None
    work: int
    unit: WorkUnit
    limited_by: Bottleneck | None = None
    at_matrix: bool = False
    bound_by: str = ""
    iterations: int = 0


@dataclass(frozen=True)
class Configuration:
    """One configuration: its parameters that are swept, how far it came, and why no further.

    ``why`` is a fact: what was refused, the kind of finding, the error. ``times`` are those of a run that finished.
    """

    params: Mapping[str, int]
    state: Outcome
    why: str = ""
    resources: Resources | None = None
    times: Times | None = None

    @property
    def usable(self) -> bool:
        """True if it finishes, and is proved where that was asked for."""
        return self.state is Outcome.USABLE


@dataclass(frozen=True)
class RankedConfiguration:
    """A usable configuration by the metric of the sweep.

    ``value``: in thousandths of a cycle, of a share or of a byte. ``off_permille``: how much worse than the best it is,
    None where one of the two is 0 and the other is not.
    """

    configuration: Configuration
    value: int
    off_permille: int | None


@dataclass(frozen=True)
class SweepReport:
    """The configurations of a sweep, those that are usable from the best on, and the smallest that is nearly as good.

    ``axes``: the swept parameters with their values, in order; ``fixed``: the others that were given.
    ``configurations`` are in the order of the axes, the last changing fastest. ``chosen``: no metric was given;
    ``comparable``: what it is chosen by. ``command``: the command line that runs the best one, "" where there is none.
    ``proved``: each usable configuration is. ``reused``: how many come from the results file; ``changed``: how many are
    in it, but of another program, and were computed again. ``interrupted``: what ended the sweep.
    """

    protocol: str
    profile: str
    device: str
    axes: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, int]
    ctas: int | None
    metric: Metric
    unit: WorkUnit | None
    chosen: bool
    proved: bool
    configurations: tuple[Configuration, ...]
    ranked: tuple[RankedConfiguration, ...]
    smallest: RankedConfiguration | None
    within_permille: int
    comparable: Comparable
    command: str = ""
    reused: int = 0
    changed: int = 0
    interrupted: str = ""
    assumed: tuple[str, ...] = ()

    @property
    def conclusion(self) -> Conclusion:
        """Wrong if a configuration is refuted or does not finish, unknown if one is not known or none is usable."""
        states = {each.state for each in self.configurations}
        if states & {Outcome.REFUTED, Outcome.UNFINISHED}:
            return Conclusion.WRONG
        if states & NOT_KNOWN or not self.ranked:
            return Conclusion.UNKNOWN
        return Conclusion.AGREES


class ChangeKind(Enum):
    """A kind of change. The value is what a report says; ``by``: the percentage by which times are shorter."""

    MORE_STAGES = "more stages"  #: a parameter is higher, and a ring has more barriers: the report gives its value
    FEWER_STAGES = "fewer stages"
    WORK = "{role} work −{by} %{where}"  #: of one role in one of its loops
    READS = "tile reads −{by} %"  #: of tiles in shared memory by threads
    MATRIX = "multiplications −{by} %"
    LOAD_LATENCY = "load latency −{by} %"
    LOAD_RATE = "load transfer −{by} %"
    SIGNALS = "signal latency −{by} %"  #: of an arrive until another role's wait sees it


@dataclass(frozen=True)
class AdvisedChange:
    """One change. ``parameter`` gets ``value`` (of stages); ``role`` works less in ``loop`` ("": outside of any)."""

    kind: ChangeKind
    parameter: str = ""
    value: int = 0
    role: str = ""
    loop: str = ""


@dataclass(frozen=True)
class Advice:
    """What one change brings: ``gain_permille`` of the time before, below 0 for a loss; None where it is not known.

    ``value`` and the gain are of ``metric``: that of the report, or the whole run where the period of the changed
    protocol is not known, or is that of another loop. None where it does another amount of work.
    ``reached`` and ``why``: as of a configuration of a sweep. ``verdict``: of the changed protocol for every schedule;
    a change of times alone leaves it as it was.
    """

    change: AdvisedChange
    reached: Outcome
    why: str = ""
    verdict: Verdict | None = None
    resources: Resources | None = None
    times: Times | None = None
    value: int | None = None
    gain_permille: int | None = None
    metric: Metric = Metric.PERIOD


@dataclass(frozen=True)
class AdviseReport:
    """What limits a protocol, and the changes, those that gain most first.

    ``percent``: by how much the changes of times change them. ``metric``: the period where there is one, else the whole
    run; ``value`` of it in 1/1000 cycle. ``times`` None: the run does not finish, as ``why`` says.
    """

    heading: Heading
    profile: str
    device: str
    percent: int
    verdict: Verdict
    resources: Resources
    metric: Metric
    times: Times | None
    value: int
    advice: tuple[Advice, ...]
    why: str = ""
    assumed: tuple[str, ...] = ()

    @property
    def conclusion(self) -> Conclusion:
        """Wrong for a protocol that is refuted or does not finish: it has to be corrected first."""
        if self.times is None and self.verdict is Verdict.PROVED:
            return Conclusion.WRONG if self.why else Conclusion.UNKNOWN
        return of_verdict(self.verdict)
