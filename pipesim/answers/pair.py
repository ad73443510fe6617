"""Two traces compared with each other, and each with its own protocol."""

from __future__ import annotations

from pipesim.answers.views.trace import PairReport, PairSide, PeriodCheck
from pipesim.conform.agreement import agreement_of
from pipesim.conform.pair.pair import compare_traces
from pipesim.conform.pair.result import Pair
from pipesim.errors import PipesimError
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import find
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
    """One of the traces, compared with its own protocol where that is built in: a trace never makes us run a file."""
    meta = trace.meta
    if meta.protocol not in BUILT_IN:
        return PairSide(label, source, trace, None)
    target = find(meta.protocol)
    try:
        program = target.build({n: v for n, v in meta.params.items() if n in target.defaults}, grid=meta.grid)
        found = agreement_of(program, trace)
    except PipesimError as error:
        return PairSide(label, source, trace, None, refused=error)
    return PairSide(label, source, trace, found.conformance, found.agreement)


def _period(pair: Pair, a: Trace, b: Trace, tolerance: float) -> PeriodCheck:
    """How far B's period is off A's; of two runs that hung or trapped alike nothing is said about speed."""
    figure = pair.timing.decides if pair.timing else None
    unfinished = "finished" not in (a.meta.status, b.meta.status)
    if unfinished or figure is None or not figure.a or figure.b is None or not figure.name.startswith("period"):
        return PeriodCheck(None, tolerance)
    return PeriodCheck(100 * (figure.b - figure.a) / figure.a, tolerance)
