"""Two traces compared with each other, and each with its own protocol."""

from __future__ import annotations

from pipesim.answers.recorded_program import recorded_program
from pipesim.answers.views.trace import PairReport, PairSide, PeriodCheck
from pipesim.conform.agreement import agreement_of
from pipesim.conform.pair.pair import compare_traces
from pipesim.conform.pair.result import Pair
from pipesim.errors import PipesimError, UnknownProtocolError
from pipesim.model.ending import Ending
from pipesim.trace.schema import Trace


def compare_pair(a: Trace, b: Trace, sources: tuple[str, str] = ("", ""), tolerance: float | None = None) -> PairReport:
    """``b`` beside ``a``: their behaviour, then their times.

    ``sources``: the files of both. ``tolerance``: of B's period, in percent of A's.
    """
    pair = compare_traces(a, b)
    one, two = _side("A", sources[0], a), _side("B", sources[1], b)
    period = _period(pair, a, b, tolerance) if tolerance is not None else None
    return PairReport(a.meta.protocol, one, two, pair, period)


def _side(label: str, source: str, trace: Trace) -> PairSide:
    """One of the traces, compared with its own protocol where that is built in."""
    try:
        found = agreement_of(recorded_program(trace.meta, place=source, records=len(trace.events)), trace)
    except UnknownProtocolError:
        return PairSide(label, source, trace, None)
    except PipesimError as error:
        return PairSide(label, source, trace, None, refused=error)
    return PairSide(label, source, trace, found.conformance, found.agreement, reason=found.reason)


def _period(pair: Pair, a: Trace, b: Trace, tolerance: float) -> PeriodCheck:
    """How far B's period is off A's; of two runs that hung or trapped alike nothing is said about speed."""
    figure = pair.timing.decides if pair.timing else None
    unfinished = Ending.FINISHED not in (a.meta.status, b.meta.status)
    if unfinished or figure is None or not figure.a or figure.b is None or not figure.name.startswith("period"):
        return PeriodCheck(None, tolerance)
    return PeriodCheck(100 * (figure.b - figure.a) / figure.a, tolerance)
