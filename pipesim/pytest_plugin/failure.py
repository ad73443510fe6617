"""What pytest shows of a protocol that is not proved: the verdict in one line, then the report with source lines."""

from pathlib import Path

# pytest has no public way to make a failure of text that its summary, JUnit and xdist take apart.
from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback

from pipesim.answers.views.check import CheckReport
from pipesim.errors import PipesimError
from pipesim.ptx.source_files import path_of
from pipesim.report.findings.brief import in_one_line
from pipesim.report.pages.checks.check import check_lines
from pipesim.report.text.console import text_of
from pipesim.report.text.words import inert_text, place

WIDTH = 100  #: cells of a message


class NotProvedError(AssertionError):
    """A protocol is refuted or unknown; ``report`` says how."""

    def __init__(self, report: CheckReport) -> None:
        super().__init__(in_one_line(report))
        self.report = report


def failure_of(error: BaseException, file: Path, line: int | None, *, short: bool) -> ReprExceptionInfo | None:
    """The failure of a test at ``line`` (from 0) of ``file``; None for an error whose traceback is needed.

    ``short``: the line of the verdict alone (``--tb=line``).
    """
    match error:
        case NotProvedError():
            report = error.report
            text = text_of([in_one_line(report), "", *check_lines(report, WIDTH)])
            at = place(report.failing[0].place) if report.failing else ""
        case PipesimError():
            text, at = str(error), error.place
        case _:
            return None
    path, _, number = at.rpartition(":")
    path = path_of(path)
    if not path or not number.isdecimal():
        path, number = str(file), str((line or 0) + 1)
    shown = inert_text(text)
    entries = [] if short else [ReprEntryNative([f"{shown}\n"])]
    return ReprExceptionInfo(
        reprcrash=ReprFileLocation(path, int(number), shown.partition("\n")[0]),
        reprtraceback=ReprTraceback(entries, None, style="native"),
    )
