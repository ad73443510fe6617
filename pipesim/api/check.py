"""``pipesim.check``: a protocol in every schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipesim.answers.check import judge
from pipesim.answers.view import CheckReport
from pipesim.api.finding import CheckFinding, check_findings
from pipesim.api.given import Given, at_least_one, built
from pipesim.api.result import Answer
from pipesim.api.show import diagram_svg
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.prove.check import MOST_STATES
from pipesim.report.findings.annotations import in_short
from pipesim.report.pages.check import check_lines

_OK = {Verdict.PROVED: True, Verdict.REFUTED: False, Verdict.UNKNOWN: None}
_CODES = {Verdict.PROVED: 0, Verdict.REFUTED: 1, Verdict.UNKNOWN: 3}  #: as the command exits


@dataclass(frozen=True, repr=False)
class CheckResult(Answer):
    """The verdict on every schedule of ``program``, and what is wrong. ``report`` is the whole answer as data."""

    program: Program
    report: CheckReport

    @property
    def verdict(self) -> Verdict:
        """Proved, refuted, or unknown: the search reached its limit."""
        return self.report.verdict

    @property
    def ok(self) -> bool | None:
        """True: proved. False: refuted. None: unknown, which is never called safe."""
        return _OK[self.verdict]

    @property
    def findings(self) -> tuple[CheckFinding, ...]:
        """What is wrong, each with its counterexample; empty if nothing is."""
        return check_findings(self.report.refutations)

    def _in_short(self) -> str:
        wrong = "; ".join(in_short(each.finding) for each in self.report.refutations)
        return f"{self.program.name}: {self.verdict.value}{f', {wrong}' if wrong else ''}"

    def _lines(self, width: int) -> list[str]:
        return check_lines(self.report, width)

    def _document(self) -> object:
        findings = [each.finding for each in self.report.refutations]
        return {"exit_code": _CODES[self.verdict], "findings": findings, "report": self.report}

    def _pictures(self) -> Sequence[tuple[str, str]]:
        shown = [picture for each in self.findings for picture in each._pictures()]  # noqa: SLF001  # a result, too
        return shown or ((f"the roles and barriers of {self.program.name}", diagram_svg(self.program)),)


def check(x: Given, *, max_states: int = MOST_STATES, ctas: int | None = None, **params: int) -> CheckResult:
    """Check a protocol in every schedule: proved, refuted with a counterexample, or unknown.

    ``x``: a function that makes a protocol, a ``Protocol``, a ``Program``, a built-in's name or a path
    (``file.py:function``, ``program.json``). ``params`` are the protocol's, whole numbers, its defaults for the rest.
    ``max_states``: states to search where one run does not decide. ``ctas``: CTAs of the launch, whole clusters.
    Raises UsageError for what cannot be built; what is wrong with the protocol is in the result.
    """
    most = at_least_one("max_states", max_states)
    target, given, program = built(x, params, ctas)
    return CheckResult(program, judge(target, given, program, most, ctas))
