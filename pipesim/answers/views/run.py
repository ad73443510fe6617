"""What ``run`` answers: one simulated schedule."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pipesim.answers.views.conclusion import Conclusion, Heading
from pipesim.conform.result import Bottleneck
from pipesim.model.ending import Ending
from pipesim.model.finding import Advisory, Deadlock, FaultKind, FaultReport, Finding
from pipesim.process.limits import Limit
from pipesim.trace.schema import Trace


class NoPeriod(Enum):
    """Why a simulated run has no period. The value is a phrase for a report."""

    NO_WAITS = "no agent waits"
    NO_LOOP = "no loop in which an agent waits"
    TOO_FEW = "too few iterations for a steady state"


class NoBound(Enum):
    """Why the least period of any schedule is not known. The value is a phrase for a report."""

    NO_LOOP = "no loop"
    NO_COMMON_LOOP = "the roles share no loop"
    TOO_FEW = "too few iterations"
    UNEVEN = "iterations differ in their operations or phases"
    JUMPS = "it branches on the result of a try_wait"
    TOO_LARGE = "too many operations"


@dataclass(frozen=True)
class SimulationLine:
    """One simulation in one line.

    ``outcome`` is how it ended: FINISHED, DEADLOCK, FAULT or UNKNOWN. ``seconds`` is the time of computing, None to
    leave it out; ``bound_by`` names what limits the period ("" if unknown). ``steady`` is False where the iterations
    were too few for a period: what was read lies below the bound. ``broken`` is the first rule that was broken, also
    where the run continued; ``budget`` the operations after which it would have been cut off; ``cut`` the limit of the
    process that ended it before. ``period_of``: the inner loop whose period it is, or the role and how many iterations
    of another role are one of its, "" where all roles have the same. ``no_period`` and ``no_bound`` say about a run
    that finished why there is none.
    """

    profile: str
    device: str
    seconds: float | None
    period_millicycles: int | None
    bound_by: str
    outcome: Ending
    steady: bool = True
    broken: FaultKind | None = None
    budget: int = 0
    cut: Limit | None = None
    period_of: str = ""
    no_period: NoPeriod | None = None
    no_bound: NoBound | None = None

    @property
    def conclusion(self) -> Conclusion:
        """A finding beats a budget that ran out."""
        if self.outcome in (Ending.DEADLOCK, Ending.FAULT) or self.broken is not None:
            return Conclusion.WRONG
        return Conclusion.UNKNOWN if self.outcome is Ending.UNKNOWN else Conclusion.AGREES


@dataclass(frozen=True)
class RunReport:
    """One simulated run. ``cycles`` is its length, ``steps`` what the engine executed.

    ``shares`` is (agent, what) → thousandths of the agent's time, in the order of the rows to print; ``engines`` is
    engine → thousandths of the run in which it works. ``limited_by``: what limits the run, by the rule of a sweep.
    """

    heading: Heading
    simulation: SimulationLine
    cycles: int
    steps: int
    shares: Mapping[tuple[str, str], int]
    trace: Trace
    deadlock: Deadlock | None = None
    faults: tuple[FaultReport, ...] = ()
    advisories: tuple[Advisory, ...] = ()
    engines: Mapping[str, int] = field(default_factory=dict)
    limited_by: Bottleneck | None = None

    @property
    def conclusion(self) -> Conclusion:
        """As the simulation's is."""
        return self.simulation.conclusion

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The deadlock, then the faults."""
        return ((self.deadlock,) if self.deadlock else ()) + self.faults
