"""``pipesim.check``: a protocol in every schedule. ``new.against(old)``: two results of it compared."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pipesim.answers.budget import Budget
from pipesim.answers.check import against as compare_versions
from pipesim.answers.check import check as check_answer
from pipesim.answers.every_size.classes import AnyWord
from pipesim.answers.project_settings import Triage, TriagePolicy
from pipesim.answers.views.check import AgainstReport, Brief, CheckReport
from pipesim.answers.views.conclusion import Basis
from pipesim.api.call_arguments import (
    Given,
    GivenBoxes,
    GivenLaunch,
    GivenWords,
    KernelLaunch,
    above_zero,
    at_least_one,
    build_target,
)
from pipesim.api.finding import CheckFinding, check_findings, finding_rows
from pipesim.api.result import VerdictResult, diagram_picture
from pipesim.errors import UsageError
from pipesim.model.coverage import strictness_from
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.prove.check import MOST_STATES
from pipesim.ptx.source_files import lines_read_from
from pipesim.report.findings.brief import brief_of, in_short
from pipesim.report.pages.checks.against import against_brief, against_lines, against_sentence, change_sentence
from pipesim.report.pages.checks.check import check_lines
from pipesim.report.text.source import text_of, whole_text_of
from pipesim.trace.schema import Rows


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
        return against_brief(self.report)

    def _in_short(self) -> str:
        return f"{self.report.new.heading.protocol}: {against_sentence(self.report)}"

    def _lines(self, width: int) -> list[str]:
        return against_lines(self.report, width)

    def _rows(self) -> Rows:
        return finding_rows(self.findings)


@dataclass(frozen=True, repr=False, eq=False)
class CheckResult(VerdictResult):
    """The verdict on every schedule of ``program``, and what is wrong. ``report`` is the whole answer as data."""

    program: Program
    report: CheckReport

    @property
    def verdict(self) -> Verdict:
        """Proved, refuted, or unknown: the search reached its limit."""
        return self.report.verdict

    @property
    def findings(self) -> tuple[CheckFinding, ...]:
        """What is wrong, each with its counterexample; empty if nothing is."""
        with self._source_reader():
            return check_findings(self.report.refutations)

    @property
    def brief(self) -> Brief:
        """The verdict and the first finding in at most 2 kB, as the JSON has it."""
        return brief_of(self.report)

    def against(self, old: "CheckResult") -> AgainstResult:
        """Compare it with an older version: findings that are new or gone, and what is synchronised otherwise."""
        if not isinstance(old, CheckResult):
            raise UsageError(
                f"against takes the result of a check, not {type(old).__name__}",
                correction="for example pipesim.check(new).against(pipesim.check(old))",
            )
        with self._source_reader():
            return AgainstResult(compare_versions(old.report, self.report, old.program, self.program))

    def _in_short(self) -> str:
        wrong = "; ".join(in_short(each) for each in self.report.findings)
        return f"{self.program.name}: {self.verdict.value}{f', {wrong}' if wrong else ''}"

    def _lines(self, width: int) -> list[str]:
        return check_lines(self.report, width)

    def _rows(self) -> Rows:
        return finding_rows(self.findings)

    def pictures(self) -> Sequence[tuple[str, str]]:
        """The counterexamples; of what is proved the diagram."""
        shown = [picture for each in self.findings for picture in each.pictures()]
        return shown or (diagram_picture(self.program),)


def check(
    x: Given,
    *,
    max_states: int = MOST_STATES,
    ctas: int | None = None,
    quick: bool = False,
    time_limit: float | None = None,
    strict: bool | Collection[str] = (),
    launch: GivenLaunch = None,
    set: GivenWords = None,  # noqa: A002  # as the command's option
    box: GivenBoxes = None,
    any: str | Sequence[str] = (),  # noqa: A002  # as the command's option
    **params: int,
) -> CheckResult:
    """Check a protocol in every schedule: proved, refuted with a counterexample, or unknown.

    ``x``: a function that makes a protocol, a ``Protocol``, a ``Program``, a built-in's name or a path
    (``file.py:function``, ``program.json``, ``kernel.ptx``). ``params`` are the protocol's, whole numbers, its defaults
    for the rest. Of a kernel's PTX ``launch`` is the launch file, the ``.json`` beside it if None; ``set`` gives words
    of its parameters, by name or byte offset (``{"m_tiles": 2}``), ``box`` boxes of its tensor maps, the innermost size
    first (``{"tma_a": (64, 128)}``); ``any`` names words that may have any value (``"K=64..:64"``, or several).
    ``max_states``: states to search where one run does not decide. ``ctas``: CTAs of the launch, whole clusters.
    ``quick``: the verdict alone. ``time_limit``: seconds of each step after the verdict (smallest size, shorter
    schedule, corrections, other sizes); None: a limit of work. ``report.left_out`` has the steps that ended early.
    ``strict``: assumptions that the verdict may not make, by name (``("proxies", "commits")``), or True for all: what
    needs one is a finding then, or unknown (:class:`~pipesim.model.coverage.Assumption`).
    Raises UsageError for what cannot be built; what is wrong with the protocol is in the result.
    """
    most = at_least_one("max_states", max_states)
    target, given, program = build_target(
        x, params, ctas, strictness_from(strict), launch=KernelLaunch(launch, set, box)
    )
    budget = Budget(above_zero("time_limit", time_limit))
    words = tuple(map(AnyWord.read, [any] if isinstance(any, str) else any))
    report = check_answer(
        target, given, max_states=most, ctas=ctas, program=program, quick=quick, budget=budget, any_words=words
    )
    policy = TriagePolicy(Basis.LETTER if target.strictness else Basis.POSSIBLE)
    with lines_read_from(target.sources):
        return CheckResult(program, Triage(policy, text_of, whole_text_of).of(report, program.sources, last=True))
