"""The exit code of every answer: the one place where it is decided. (Errors have theirs in ``pipesim.errors``.)"""

from __future__ import annotations

from pipesim.answers.views.conclusion import Answer, Conclusion, worst
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
