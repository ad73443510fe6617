"""What ``check --against`` answers: two versions of a protocol or kernel, their findings and their synchronisation."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.answers.views.check import CheckReport, Counterexample, Level
from pipesim.answers.views.conclusion import Conclusion, of_verdict
from pipesim.explain.sync_changes import SyncComparison
from pipesim.model.finding import Finding, Verdict


@dataclass(frozen=True)
class AgainstReport:
    """``new`` compared with ``old``. The findings are numbers in the refutations of the report that has them.

    ``appeared``: those of ``new`` that ``old`` has not; ``gone``: those of ``old`` that ``new`` has not; ``unchanged``:
    pairs, of ``new`` and of ``old``. ``synchronisation``: what is done otherwise, also where both are proved.
    """

    old: CheckReport
    new: CheckReport
    appeared: tuple[int, ...]
    gone: tuple[int, ...]
    unchanged: tuple[tuple[int, int], ...]
    synchronisation: SyncComparison

    @property
    def conclusion(self) -> Conclusion:
        """Wrong if a new finding fails a check; unknown if the new version is, as it may have one; else it agrees."""
        if any(self.new.level(shown) is Level.ERROR for shown in self.new_findings):
            return Conclusion.WRONG
        return of_verdict(Verdict.UNKNOWN) if self.new.verdict is Verdict.UNKNOWN else Conclusion.AGREES

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The new findings."""
        return tuple(shown.finding for shown in self.new_findings)

    @property
    def new_findings(self) -> tuple[Counterexample, ...]:
        """Those of the new version that the old one has not, each with its schedule."""
        return tuple(self.new.refutations[n] for n in self.appeared)

    @property
    def gone_findings(self) -> tuple[Counterexample, ...]:
        """Those of the old version that the new one has not."""
        return tuple(self.old.refutations[n] for n in self.gone)

    @property
    def unchanged_findings(self) -> tuple[Counterexample, ...]:
        """Those that both have, as the new version has them."""
        return tuple(self.new.refutations[n] for n, _ in self.unchanged)
