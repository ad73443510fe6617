"""``pipesim diff A B``: compare two traces, behaviour first, then time."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli.output import emit, progress
from pipesim.errors import PipesimError, UsageError

if TYPE_CHECKING:
    from pipesim.answers.pair_view import PairSide
    from pipesim.conform.pair.result import Pair
    from pipesim.trace.schema import Trace


def compare_pair(options: argparse.Namespace) -> int:
    """Carry out ``pipesim diff A B``; the exit code."""
    _refuse_options(options)

    from pipesim.answers.assemble import mark_of
    from pipesim.answers.pair_view import PairReport
    from pipesim.conform.pair.pair import compare_traces
    from pipesim.report.pages.pair import paint_pair
    from pipesim.trace.files import read_trace

    one, two = read_trace(options.trace), read_trace(options.other)
    with progress(f"comparing {options.trace.name} with {options.other.name}"):
        pair = compare_traces(one, two)
        a, b = _side("A", options.trace, one), _side("B", options.other, two)
    code, verdict = _meaning(pair, a, b, options.tolerance)
    report = PairReport(one.meta.protocol, a, b, pair, verdict, mark_of(code))
    emit(
        options,
        {"exit_code": code, "findings": [], "report": report},
        lambda console: paint_pair(console, report),
    )
    return code


def _refuse_options(options: argparse.Namespace) -> None:
    """Raise UsageError for an option that means something with one trace only."""
    given = (("--protocol", options.protocol), ("-p", options.param), ("--profile", options.profile))
    for name, value in given:
        if value:
            raise UsageError(
                f"{name} has no effect with two traces",
                cause="two traces are compared with each other, not with a protocol or a simulation",
                correction=f"leave {name} out, or name one trace only",
            )


def _side(label: str, path: Path, trace: Trace) -> PairSide:
    """One of the traces, held against its own protocol where that is built in: a trace never makes us run a file."""
    from pipesim.answers.pair_view import PairSide
    from pipesim.conform.replay.conformance import conform
    from pipesim.protocols.catalog import BUILT_IN
    from pipesim.targets import find

    meta = trace.meta
    if meta.protocol not in BUILT_IN:
        return PairSide(label, str(path), trace, None, f"not compared with {meta.protocol}, which is not built in")
    target = find(meta.protocol)
    try:
        program = target.build({n: v for n, v in meta.params.items() if n in target.defaults}, grid=meta.grid)
        return PairSide(label, str(path), trace, conform(program, trace))
    except PipesimError as error:
        return PairSide(label, str(path), trace, None, f"not compared with {meta.protocol}: {error.fact}")


def _meaning(pair: Pair, a: PairSide, b: PairSide, tolerance: float | None) -> tuple[int, str]:
    """The exit code and the verdict: a difference beats the unknown, the unknown the tolerance."""
    from pipesim.answers.assemble import AGREES, FINDINGS, UNKNOWN
    from pipesim.model.finding import Verdict
    from pipesim.report.pages.pair_figures import time_words
    from pipesim.report.pages.pair_verdict import behaviour_words, conformance_clause, unfinished_words

    said = behaviour_words(pair.behaviour)
    agree, clause = conformance_clause(a.conformance, b.conformance)
    unfinished = unfinished_words(a.trace.meta, b.trace.meta)
    clause = (f"; {unfinished}" if unfinished else "") + clause
    if pair.behaviour.verdict is Verdict.REFUTED or not agree:
        return FINDINGS, said + clause
    if pair.behaviour.verdict is Verdict.UNKNOWN:
        return UNKNOWN, said + clause
    if unfinished:
        return _of_unfinished(tolerance, said + clause)
    time = time_words(pair.timing) if pair.timing else ""
    said += clause + (f"; {time}" if time else "")
    if tolerance is None:
        return AGREES, said
    return _within(pair, tolerance, said)


def _of_unfinished(tolerance: float | None, said: str) -> tuple[int, str]:
    """Of two runs that hung or trapped alike nothing is said about speed, so no tolerance can be met or missed."""
    from pipesim.answers.assemble import AGREES, UNKNOWN

    if tolerance is None:
        return AGREES, said
    return UNKNOWN, f"{said}; neither finished, so the tolerance cannot be applied"


def _within(pair: Pair, tolerance: float, said: str) -> tuple[int, str]:
    """Whether B's period is near enough to A's, by the numbers themselves, not rounded."""
    from pipesim.answers.assemble import AGREES, TOLERANCE, UNKNOWN, off_by

    figure = pair.timing.decides if pair.timing else None
    if figure is None or not figure.a or figure.b is None or not figure.name.startswith("period"):
        return UNKNOWN, f"{said}; not both have a period, so the tolerance cannot be applied"
    off = 100 * (figure.b - figure.a) / figure.a
    if abs(off) > tolerance:
        return TOLERANCE, f"{said}; B's period is {off_by(off)} off A's, outside {tolerance:g} %"
    return AGREES, said
