"""What ``advise`` answers: what limits a protocol, and what each of several changes would bring."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pipesim.answers.views.conclusion import Conclusion, Heading, of_verdict
from pipesim.answers.views.sweep import Metric, Outcome, Resources, Times
from pipesim.model.finding import Verdict


class ChangeKind(Enum):
    """A kind of change. The value is a phrase for a report."""

    MORE_STAGES = "more stages"  #: a parameter is higher, and a ring has more barriers
    FEWER_STAGES = "fewer stages"
    WORK = "less work"  #: of one role in one of its loops
    READS = "faster reads"  #: of tiles in shared memory by threads
    MATRIX = "faster matrix multiplications"
    LOAD_LATENCY = "loads with less latency"
    LOAD_RATE = "loads with a higher rate"
    SIGNALS = "signals seen sooner"  #: an arrive by another role's wait


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
