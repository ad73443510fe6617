"""What ``run`` answers: one simulated schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipesim.answers.views.conclusion import Conclusion
from pipesim.answers.views.heading import Heading
from pipesim.model.ending import Ending
from pipesim.model.finding import Advisory, Deadlock, FaultKind, FaultReport, Finding
from pipesim.process.limits import Limit
from pipesim.trace.schema import Trace


@dataclass(frozen=True)
class SimulationLine:
    """One simulation in one line.

    ``outcome`` is how it ended: FINISHED, DEADLOCK, FAULT or UNKNOWN. ``seconds`` is the
    time of computing, None to leave it out; ``bound_by`` names what limits the period ("" if unknown). ``steady`` is
    False where the trips were too few for a period: what was read lies below the bound. ``broken`` is the first rule
    that was broken, also where the run went on; ``budget`` the operations after which it would have been cut off;
    ``cut`` the limit of the process that ended it before.
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

    @property
    def conclusion(self) -> Conclusion:
        """A finding beats a budget that ran out."""
        if self.outcome in (Ending.DEADLOCK, Ending.FAULT) or self.broken is not None:
            return Conclusion.WRONG
        return Conclusion.UNKNOWN if self.outcome is Ending.UNKNOWN else Conclusion.AGREES


@dataclass(frozen=True)
class RunReport:
    """One simulated run. ``cycles`` is its length, ``steps`` what the engine executed.

    ``shares`` is (agent, what) → thousandths of the agent's time, in the order of the rows to print.
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

    @property
    def conclusion(self) -> Conclusion:
        """As the simulation's is."""
        return self.simulation.conclusion

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The deadlock, then the faults."""
        return ((self.deadlock,) if self.deadlock else ()) + self.faults
