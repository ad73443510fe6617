"""The exit code of every answer: the one place where it is decided. (Errors have theirs in ``pipesim.errors``.)"""

from __future__ import annotations

from pipesim.answers.views.conclusion import Answer, Conclusion, worst
from pipesim.answers.views.launches import LaunchesReport
from pipesim.answers.views.recording import RecordReport
from pipesim.errors import InternalError

_CODES = {
    Conclusion.AGREES: 0,
    Conclusion.WRONG: 1,
    Conclusion.UNKNOWN: 3,
    Conclusion.OUTSIDE_TOLERANCE: 4,
    Conclusion.INTERNAL_ERROR: InternalError.exit_code,
}


def exit_code(*answers: Answer) -> int:
    """The code of the worst of these answers; 0 of none."""
    return _CODES[worst(answer.conclusion for answer in answers)]


def launches_exit_code(report: LaunchesReport) -> int:
    """The code of a command that ran a program, whose own failure is not lost.

    Without verdicts it is the program's status, or, where that is 0, 3 if nothing was caught. With verdicts 1 is a
    refuted launch, so a program that failed is 3 where nothing is refuted: not everything that it does was seen.
    """
    code = exit_code(report)
    if not report.checked:
        return report.status or code
    return code or (_CODES[Conclusion.UNKNOWN] if report.status else 0)


def record_exit_code(report: RecordReport) -> int:
    """The code of a command that recorded a program: the program's own status, else that of the traces.

    1: a launch did not end by itself, or a trace differs from its PTX; 3: no trace, or one that could not be compared.
    """
    return report.status or exit_code(report)
