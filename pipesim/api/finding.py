"""One finding, its counterexample, and the counterexample's picture."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipesim.answers.views.check import Counterexample
from pipesim.api.result import Result
from pipesim.model.finding import Deadlock, FaultReport
from pipesim.prove.counterexample.words import Line
from pipesim.report.findings.brief import in_short
from pipesim.report.findings.finding import claim_of, finding_lines
from pipesim.report.findings.schedule import schedule_block
from pipesim.report.pages.checks.check import shown_lines
from pipesim.report.pictures.schedule_svg import schedule_svg
from pipesim.report.text.words import place
from pipesim.trace.schema import Rows


@dataclass(frozen=True, repr=False, eq=False)
class CounterexampleDiagram(Result):
    """A schedule that fails: which agent moves when, as text and as a picture with time downwards."""

    data: Counterexample

    @property
    def steps(self) -> tuple[Line, ...]:
        """Every step of the schedule, but the marks of loops."""
        return self.data.schedule

    @property
    def at(self) -> Mapping[str, int]:
        """The parameters that were lowered to make the counterexample small, with their values."""
        return dict(self.data.at)

    @property
    def replay(self) -> str:
        """The schedule in one line, as ``pipesim check --replay`` and ``pipesim run --schedule`` take it."""
        return self.data.replay

    def _in_short(self) -> str:
        return f"{len(self.steps)} steps to {in_short(self.data.finding)}"

    def _lines(self, width: int) -> list[str]:
        return schedule_block(self.data, width)

    def _document(self) -> object:
        return self.data

    def _rows(self) -> Rows:
        columns = {"number": int, "agent": str, "what": str, "barrier": str, "stage": int, "phase": int, "note": str}
        columns |= {"line": str}
        return columns, [{name: getattr(step, name) for name in columns} for step in self.steps]

    def pictures(self) -> Sequence[tuple[str, str]]:
        """The schedule: a lane for each agent, a row for each step, an arrow where one step lets another pass."""
        return ((f"the schedule that leads to {in_short(self.data.finding)}", schedule_svg(self.data)),)


@dataclass(frozen=True, repr=False, eq=False)
class ReportedFinding(Result):
    """What is wrong: a deadlock or a broken rule. ``counterexample`` is None of what one simulation showed."""

    data: Deadlock | FaultReport
    counterexample: CounterexampleDiagram | None = None

    @property
    def kind(self) -> str:
        """``deadlock`` or ``lapped_waiter``, or the name of the rule, such as ``over_arrival``."""
        return self.data.kind if isinstance(self.data, Deadlock) else self.data.kind.name.lower()

    @property
    def claim(self) -> str:
        """What is wrong, in one sentence."""
        return claim_of(self.data)

    @property
    def line(self) -> str:
        """``file:line`` of the author's source as a report prints it, relative to the current folder; "" if unknown."""
        if self.counterexample is not None:
            return place(self.counterexample.data.place)
        if isinstance(self.data, FaultReport):
            return place(self.data.line)
        return place(next((blocked.line for blocked in self.data.blocked if blocked.line), ""))

    @property
    def corrections(self) -> tuple[str, ...]:
        """Likely corrections in words; with each one alone the protocol was proved."""
        if isinstance(self.data, FaultReport) and self.data.correction:
            return (self.data.correction,)
        return tuple(each.said for each in self.counterexample.data.corrections) if self.counterexample else ()

    def _in_short(self) -> str:
        return in_short(self.data)

    def _lines(self, width: int) -> list[str]:
        if self.counterexample is None:
            return finding_lines([self.data], width)
        return shown_lines(self.counterexample.data, width)[1:]

    def _document(self) -> object:
        return self.data

    def _rows(self) -> Rows:
        return finding_rows([self])

    def pictures(self) -> Sequence[tuple[str, str]]:
        """The counterexample's, if there is one."""
        return self.counterexample.pictures() if self.counterexample is not None else ()


@dataclass(frozen=True, repr=False, eq=False)
class CheckFinding(ReportedFinding):
    """What is wrong in some schedule, with the counterexample that shows it."""

    counterexample: CounterexampleDiagram


def finding_rows(findings: Iterable[ReportedFinding]) -> Rows:
    """A row for each finding."""
    columns = {"kind": str, "claim": str, "line": str, "corrections": list, "replay": str}
    return columns, [
        {
            "kind": each.kind,
            "claim": each.claim,
            "line": each.line,
            "corrections": list(each.corrections),
            "replay": each.counterexample.replay if each.counterexample is not None else "",
        }
        for each in findings
    ]


def check_findings(shown: Iterable[Counterexample]) -> tuple[CheckFinding, ...]:
    """The findings of a check."""
    return tuple(CheckFinding(each.finding, CounterexampleDiagram(each)) for each in shown)
