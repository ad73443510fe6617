"""What ``verify`` answers about one protocol."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.answers.views.check import CheckReport
from pipesim.answers.views.conclusion import Conclusion, Heading, worst
from pipesim.answers.views.run import SimulationLine
from pipesim.answers.views.trace import TraceComparison
from pipesim.errors import EvidenceError
from pipesim.model.finding import Advisory, Finding
from pipesim.process.limits import Limit


@dataclass(frozen=True)
class VerifyReport:
    """The verdict for every schedule, the simulations, and every trace compared.

    ``missing``: why there is no (more) evidence of the hardware; ``left_out``: none was asked for. ``findings`` are
    those of the proof, then those of the simulations. ``interrupted``: the work was ended after the verdict, and what
    is not here was not done. ``cut``: the limit of time or memory that was reached; nothing more was simulated or
    compared then.
    """

    heading: Heading
    proof: CheckReport
    simulations: tuple[SimulationLine, ...] = ()
    hardware: tuple[TraceComparison, ...] = ()
    missing: EvidenceError | None = None
    left_out: bool = False
    findings: tuple[Finding, ...] = ()
    advisories: tuple[Advisory, ...] = ()
    interrupted: bool = False
    cut: Limit | None = None

    @property
    def conclusion(self) -> Conclusion:
        """That of the worst of its parts; evidence that is missing, a limit or an interrupt leaves it unknown."""
        parts = [self.proof.conclusion]
        parts += [line.conclusion for line in self.simulations]
        parts += [found.conclusion for found in self.hardware]
        lacking = self.missing is not None or self.cut is not None or self.interrupted
        return worst(parts + [Conclusion.UNKNOWN] * lacking)
