"""Which findings of a report fail a check: each gets its identity, and the waiver that it is set aside by, if any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from pipesim.answers.views.check import CheckReport, CheckStep, Counterexample
from pipesim.findings.identity import Identity, identity_of
from pipesim.findings.kind import Basis
from pipesim.findings.waivers import Waiver, baseline_text, comments_at
from pipesim.model.finding import FaultReport, Verdict

TextOf = Callable[[str], str]  #: the text of a source line ``file:number``, "" of one that cannot be read


@dataclass(frozen=True)
class TriagePolicy:
    """Findings less sure than ``fail_on`` do not fail; nor do those that a waiver matches.

    ``baseline``: a waiver for each finding that was there before, of a ``file``; ``update``: it is to be written, so
    that whatever is found is in it. ``project``: waivers of the settings, which are about all of the project's targets;
    ``whole``: these are checked.
    """

    fail_on: Basis = Basis.POSSIBLE
    waivers: tuple[Waiver, ...] = ()
    project: tuple[Waiver, ...] = ()
    whole: bool = False
    baseline: tuple[Waiver, ...] = ()
    file: Path | None = None
    update: bool = False


class Triage:
    """The triage of the reports of one command, so that it is known in the end which waivers matched nothing.

    ``text_of`` is that of a line without its comment, ``whole_text_of`` with it.
    """

    def __init__(self, policy: TriagePolicy, text_of: TextOf, whole_text_of: TextOf) -> None:
        self._policy = policy
        self._text_of = text_of
        self._whole_text_of = whole_text_of
        self._used: set[Waiver] = set()
        self._comments: dict[Waiver, None] = {}
        self._functions: set[str] = set()
        self._found: list[Identity] = []  # without those that another waiver sets aside
        self._complete = True

    def of(self, report: CheckReport, lines: Iterable[str], *, last: bool = False) -> CheckReport:
        """The report with its findings looked up; the ``last`` one says which waivers matched nothing.

        ``lines``: those that the program has, where comments may stand.
        """
        places = (line for shown in report.refutations for line in (shown.place, shown.origin.other))
        comments = comments_at((*lines, *places), self._whole_text_of)
        self._comments |= dict.fromkeys(comments)
        waivers = (*comments, *self._policy.waivers, *self._policy.project, *self._policy.baseline)
        function, again = report.heading.protocol, Counter[Identity]()
        found: list[Counterexample] = []
        for shown in report.refutations:
            plain = identity_of(shown.finding, function, shown.names, self._text_of(shown.place))
            identity = replace(plain, nth=again[plain])
            again[plain] += 1
            other = shown.finding.other_line if isinstance(shown.finding, FaultReport) else ""
            at = (shown.place, other, shown.origin.other)
            waiver = next((each for each in waivers if each.matches(identity, at)), None)
            self._used |= {each for each in waivers if each.matches(identity, at)}
            if waiver is None or waiver.identity is not None:
                self._found.append(identity)
            if waiver is None and self._policy.update:
                waiver = Waiver(identity.kind, f"baseline {self._policy.file}", identity=identity)
            found.append(replace(shown, identity=identity, waived=waiver))
        if _has_all_findings(report):
            self._functions.add(function)
        else:
            self._complete = False
        return replace(
            report, refutations=tuple(found), fail_on=self._policy.fail_on, unused=self.unused() if last else ()
        )

    def unused(self) -> tuple[Waiver, ...]:
        """The waivers that matched nothing (of a baseline: of functions that were checked); () if it is not known."""
        given = (*self._comments, *self._policy.waivers, *(self._policy.project if self._policy.whole else ()))
        checked = self._functions if not self._policy.update else set()
        old = (each for each in self._policy.baseline if each.identity and each.identity.function in checked)
        return tuple(each for each in (*given, *old) if each not in self._used) if self._complete else ()

    def give_up(self) -> None:
        """Something was not checked: which waivers match nothing is not known."""
        self._complete = False

    def baseline(self) -> str:
        """The baseline as it is now: of functions that were not checked what it had before."""
        old = (each.identity for each in self._policy.baseline if each.identity is not None)
        return baseline_text([*self._found, *(each for each in old if each.function not in self._functions)])


def _has_all_findings(report: CheckReport) -> bool:
    """Whether a finding that is not in the report was looked for."""
    left = {each.step for each in report.left_out} & {CheckStep.CTAS, CheckStep.HIDDEN, CheckStep.OTHERS}
    return report.verdict is Verdict.PROVED or (report.verdict is Verdict.REFUTED and not left)
