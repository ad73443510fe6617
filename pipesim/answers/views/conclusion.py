"""The conclusion of an answer, whatever was asked."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Protocol

from pipesim.model.finding import Verdict


class Conclusion(Enum):
    """The conclusion of an answer; the command line has an exit code for each."""

    AGREES = "agrees"  #: proved, finished without a finding, or the same as what it was compared with
    OUTSIDE_TOLERANCE = "outside the tolerance"  #: agrees, but for the time
    UNKNOWN = "unknown"  #: a limit was reached, or evidence is missing
    WRONG = "wrong"  #: a finding, or a difference
    INTERNAL_ERROR = "internal error"  #: pipesim itself failed in a part of it

    @property
    def ok(self) -> bool | None:
        """True if it agrees, None if that is not known, False for anything else."""
        not_known = (Conclusion.UNKNOWN, Conclusion.INTERNAL_ERROR)
        return None if self in not_known else self is Conclusion.AGREES


class Answer(Protocol):
    """Every answer has a conclusion."""

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion."""


_BY_WEIGHT = (Conclusion.INTERNAL_ERROR, Conclusion.WRONG, Conclusion.UNKNOWN, Conclusion.OUTSIDE_TOLERANCE)
_OF_VERDICT = {
    Verdict.PROVED: Conclusion.AGREES,
    Verdict.REFUTED: Conclusion.WRONG,
    Verdict.UNKNOWN: Conclusion.UNKNOWN,
}


def worst(conclusions: Iterable[Conclusion]) -> Conclusion:
    """The conclusion of several: an internal error precedes what is wrong, that the unknown, that the tolerance."""
    found = set(conclusions)
    return next((each for each in _BY_WEIGHT if each in found), Conclusion.AGREES)


def of_verdict(verdict: Verdict) -> Conclusion:
    """The conclusion of a verdict for every schedule."""
    return _OF_VERDICT[verdict]
