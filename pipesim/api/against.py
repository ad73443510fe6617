"""``new.against(old)``: two results of :func:`pipesim.check`, of two versions, compared."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.answers.views.against import AgainstReport
from pipesim.answers.views.check import Brief
from pipesim.api.finding import CheckFinding, check_findings, finding_rows
from pipesim.api.result import VerdictResult
from pipesim.report.findings.brief import brief_of_findings
from pipesim.report.pages.against import against_lines, against_sentence, change_sentence
from pipesim.trace.tables import Rows


@dataclass(frozen=True, repr=False, eq=False)
class AgainstResult(VerdictResult):
    """Two versions: it is ``ok`` if no finding is new. ``report`` is the whole answer as data."""

    report: AgainstReport

    @property
    def findings(self) -> tuple[CheckFinding, ...]:
        """The findings that are new, each with its counterexample."""
        with self._source_reader():
            return check_findings(self.report.new_findings)

    @property
    def gone(self) -> tuple[CheckFinding, ...]:
        """The findings of the old version that the new one has not."""
        return check_findings(self.report.gone_findings)

    @property
    def unchanged(self) -> tuple[CheckFinding, ...]:
        """The findings of both, as the new version has them."""
        return check_findings(self.report.unchanged_findings)

    @property
    def changes(self) -> tuple[str, ...]:
        """Each difference of the synchronisation in a sentence; ``report.synchronisation`` has them as data."""
        return tuple(map(change_sentence, self.report.synchronisation.changes))

    @property
    def brief(self) -> Brief:
        """What is new, in at most 2 kB: of the first finding what is wrong, how sure it is, where, and what to do."""
        new = self.report.new_findings
        findings = [each.finding for each in new]
        return brief_of_findings(self.conclusion.value, self._in_short(), findings, next(iter(new), None))

    def _in_short(self) -> str:
        return f"{self.report.new.heading.protocol}: {against_sentence(self.report)}"

    def _lines(self, width: int) -> list[str]:
        return against_lines(self.report, width)

    def _rows(self) -> Rows:
        return finding_rows(self.findings)
