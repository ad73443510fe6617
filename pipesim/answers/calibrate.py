"""A latency profile from recordings: which of them are read, the fit, and the captures that would make it better."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipesim.answers.calibrate_candidates import candidates, informed
from pipesim.answers.calibrate_inputs import Inputs, Tell, observations_of
from pipesim.answers.calibrate_workers import FitWorkers
from pipesim.answers.views.calibrate import CalibratedValue, CalibrationReport, ResidualRow, ValueState
from pipesim.conform.fit.observation import RunObservation, Vector
from pipesim.conform.fit.problem import FitProblem
from pipesim.conform.fit.propose import propose
from pipesim.conform.fit.solve import ProfileFit, SoFar, fit_profile, fit_so_far
from pipesim.conform.quantities import QuantityKind
from pipesim.errors import ParameterError
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.process.watch import current
from pipesim.timed.profile import Profile


@dataclass(frozen=True)
class Calibration:
    """A report, and the profile with how each value was obtained."""

    report: CalibrationReport
    profile: Profile
    how: Mapping[str, str]


def calibrate(
    inputs: Inputs,
    base: Profile,
    name: str,
    only: frozenset[str] = frozenset(),
    tell: Tell = lambda _: None,
    known: Mapping[str, int] | None = None,
) -> tuple[Calibration, FitProblem]:
    """Fit a profile called ``name`` to recordings of one device. ``only``: these values alone. ``known``: values of the
    base that were measured otherwise, which are not fitted.

    EvidenceError if the recordings are of several devices; ParameterError for a value that no profile has.
    """
    observations = observations_of(inputs, base, tell)
    device = observations[0].trace.meta.device
    base = replace(base, device=device.name, sms=device.sms or base.sms)
    known = known or {}
    base = replace(base, values={**base.values, **known})
    problem = FitProblem(observations, base, only, frozenset(known))
    _require_known(only, problem, base)
    fit, ended = _fit(problem, tell)
    values = tuple(_value(each.name, fit, base) for each in fit.values) + tuple(
        CalibratedValue(
            unused, base[unused], base[unused], None, ValueState.MEASURED if unused in known else ValueState.ASSUMED
        )
        for unused in base.values
        if unused not in problem.start
    )
    how = {each.name: each.state.value for each in values}
    profile = replace(
        fit.profile,
        name=name,
        fitted=f"by pipesim calibrate, from {len(observations)} recordings, on top of {base.name}",
        values=_kept(values, base),
        errors=(),
    )
    order = tuple(sorted(values, key=lambda each: (each.state is ValueState.ASSUMED, each.name)))
    report = CalibrationReport(
        name, device.name, base.name, tuple(each.label for each in observations), inputs.left_out, order,
        tuple(residual_rows(observations, fit.before, fit.after)), repeated=inputs.repeated,
        not_chosen=len(inputs.files) - len(observations), ended=ended,
    )  # fmt: skip
    return Calibration(report, profile, how), problem


def _fit(problem: FitProblem, tell: Tell) -> tuple[ProfileFit, str]:
    """The fit, and what ended it before it was done ("" if nothing did); LimitReachedError if nothing is known yet."""
    so_far = SoFar()
    try:
        with FitWorkers(problem.observations, problem.base) as workers, problem.evaluated_by(workers):
            return fit_profile(problem, tell, so_far), ""
    except LimitReachedError as reached:
        if reached.limit is not Limit.TIME or not so_far.names:
            raise
        current().resume()
        return fit_so_far(problem, so_far), reached.in_words()


def with_proposals(
    calibration: Calibration, problem: FitProblem, tell: Callable[[int, int], None]
) -> CalibrationReport:
    """The report with the captures of pipesim's kernels that would determine what is only assumed, or with the limit
    that was reached before they were known.
    """
    if calibration.report.ended:
        return replace(calibration.report, no_proposals=calibration.report.ended)
    wanted = [each.name for each in calibration.report.values if each.state is ValueState.ASSUMED]
    try:
        with FitWorkers(problem.observations, problem.base) as workers, problem.evaluated_by(workers):
            chosen, never = propose(problem, wanted, list(candidates()), calibration.profile, tell, informed)
    except LimitReachedError as reached:
        if reached.limit is not Limit.TIME:
            raise
        current().resume()
        return replace(calibration.report, no_proposals=reached.in_words())
    return replace(calibration.report, proposals=chosen, never=never)


def _require_known(only: frozenset[str], problem: FitProblem, base: Profile) -> None:
    for name in sorted(only - problem.start.keys()):
        raise ParameterError(
            f"no recording depends on {name}" if name in base.values else f"a profile has no value {name}",
            correction=f"values that they depend on: {', '.join(FitProblem(problem.observations, base).start)}",
        )


def _kept(values: Sequence[CalibratedValue], base: Profile) -> dict[str, int]:
    """The values of the new profile: those of the base, and of a named work that it lacks both constants if one of
    them is fitted.
    """
    works = {each.name.rpartition(".")[0] for each in values if each.state is ValueState.FITTED}
    return {
        each.name: each.value for each in values if each.name in base.values or each.name.rpartition(".")[0] in works
    }


def _value(name: str, fit: ProfileFit, base: Profile) -> CalibratedValue:
    each = next(value for value in fit.values if value.name == name)
    state = ValueState.FITTED if each.determined else ValueState.ASSUMED
    return CalibratedValue(name, base.values.get(name, each.base), each.value, each.half_width, state, each.with_others)


def residual_rows(
    observations: Sequence[RunObservation], before: Iterable[Vector], after: Iterable[Vector]
) -> Iterator[ResidualRow]:
    """The errors of each kind of quantity; ``before`` and ``after`` are the deviations of each observation."""
    offs = list(before), list(after)
    for kind in QuantityKind:
        first, last = (_relative(observations, off, kind) for off in offs)
        if first:
            yield ResidualRow(kind.value, len(first), *_summary(first), *_summary(last))


def _relative(observations: Sequence[RunObservation], each: Iterable[Vector], kind: QuantityKind) -> list[float]:
    return [
        abs(observation.relative(name, float(deviation)))
        for observation, deviations in zip(observations, each, strict=True)
        for name, deviation in zip(observation.names, deviations, strict=True)
        if name.kind is kind
    ]


def _summary(sizes: Sequence[float]) -> tuple[int, int]:
    return round(1000 * float(np.median(sizes))), round(1000 * max(sizes))
