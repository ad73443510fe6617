"""A latency profile from recordings: which of them are read, the fit, and the captures that would make it better."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from pipesim.answers.views.calibrate import CalibratedValue, CalibrationReport, ResidualRow, ValueState
from pipesim.conform.fit.observation import RunObservation, Vector, observe
from pipesim.conform.fit.propose import propose
from pipesim.conform.fit.solve import FitProblem, ProfileFit, fit_profile
from pipesim.conform.quantities import QuantityKind
from pipesim.errors import ConfigurationError, EvidenceError, ParameterError, UsageError
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.profile import Profile
from pipesim.trace.files import read_meta, read_trace
from pipesim.trace.schema import READ_FROM, TraceMeta
from pipesim.trace.split import FILE, Split, SplitPart, read_split

Tell = Callable[[str], None]
_LARGER = (1, 2, 4)  #: what a parameter of a candidate is multiplied with, or divided by
_ABOVE = 3  #: folders in which a split is looked for: that of the file, and those above
_FULL = 132  #: CTAs of a launch on every SM
_MOST_OPERATIONS = 20_000  #: of a candidate's program: it is simulated many times
_SAME_AS = {"shared_bytes": "own_bytes"}


@dataclass(frozen=True)
class Inputs:
    """The recordings that may be fitted, by the name that a profile calls them, and how many are held out."""

    files: tuple[tuple[str, Path], ...]
    left_out: int


@dataclass(frozen=True)
class Calibration:
    """A report, and the profile with how each value was obtained."""

    report: CalibrationReport
    profile: Profile
    how: Mapping[str, str]


def choose_inputs(paths: Sequence[Path], *, split: bool = True) -> Inputs:
    """The recordings among files and folders that may be fitted.

    Where a split (``split.json``) lies in the folder of a recording, or in one of two above, those that are held out
    are left out, unless ``split`` is False. EvidenceError if nothing is left, or a file that was named is no recording
    of a GPU.
    """
    found, left_out = [], 0
    for path in _files(paths):
        meta = read_meta(path)
        if not _is_usable(meta):
            if path in paths:
                raise EvidenceError(
                    "a profile cannot be fitted to this trace",
                    place=str(path),
                    cause="it is simulated, of a part of a run or one that did not finish, or of no protocol",
                    correction="give whole runs that `pipesim capture` recorded",
                )
            continue
        known = _split_of(path) if split else None
        if known is not None and known.of_trace(meta) is not SplitPart.FIT:
            left_out += 1
            continue
        found.append((f"{path.parent.name}/{path.name}", path))
    if not found:
        raise EvidenceError(
            "there is no recording to fit a profile to",
            cause=f"{left_out} are held out by {FILE}" if left_out else "no whole run of a protocol's kernel was given",
            correction="give other traces, or --no-split" if left_out else "give traces or folders of traces",
        )
    return Inputs(tuple(found), left_out)


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
    observations = [each for each in _observations(inputs, base, tell) if each is not None]
    device = observations[0].trace.meta.device
    base = replace(base, device=device.name, sms=device.sms or base.sms)
    known = known or {}
    base = replace(base, values={**base.values, **known})
    problem = FitProblem(observations, base, only, frozenset(known))
    _require_known(only, problem, base)
    fit = fit_profile(problem, tell)
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
        fitted=f"by pipesim calibrate, from {len(inputs.files)} recordings, on top of {base.name}",
        values=_kept(values, base),
        errors=(),
    )
    order = tuple(sorted(values, key=lambda each: (each.state is ValueState.ASSUMED, each.name)))
    report = CalibrationReport(
        name, device.name, base.name, tuple(label for label, _ in inputs.files), inputs.left_out, order,
        tuple(residual_rows(observations, fit.before, fit.after)),
    )  # fmt: skip
    return Calibration(report, profile, how), problem


def with_proposals(
    calibration: Calibration, problem: FitProblem, tell: Callable[[int, int], None]
) -> CalibrationReport:
    """The report with the captures of pipesim's kernels that would determine what is only assumed."""
    wanted = [each.name for each in calibration.report.values if each.state is ValueState.ASSUMED]
    chosen, never = propose(problem, wanted, list(candidates()), calibration.profile, tell)
    return replace(calibration.report, proposals=chosen, never=never)


def candidates() -> Iterator[tuple[str, Program]]:
    """Captures that can be made: of each kernel the defaults, each parameter smaller and larger, and a CTA an SM."""
    from hwkernels.twins import REGISTRY, registered

    for name in REGISTRY:
        defaults, twin = dict(find(name).defaults), registered(name)
        seen = set()
        for params, ctas in _variations(defaults):
            params |= {mine: params[other] for mine, other in _SAME_AS.items() if mine in params}
            key = tuple(params.items()), ctas
            if key in seen:
                continue
            seen.add(key)
            try:
                twin.check(params, max(1, ctas // max(params.get("cluster", 1), 1)))
                program = find(name).build(params, grid=ctas)
            except (ParameterError, ConfigurationError, UsageError):
                continue
            if sum(map(len, program.code)) <= _MOST_OPERATIONS:
                yield _command(name, defaults, params, ctas), program


def _variations(defaults: Mapping[str, int]) -> Iterator[tuple[dict[str, int], int]]:
    ctas = defaults.get("cluster", 1)
    yield dict(defaults), ctas
    yield dict(defaults), _FULL // ctas * ctas
    for name, value in defaults.items():
        for factor in _LARGER:
            for other in ({value * factor, value // factor} if value > 1 else {0, 1, 2}) - {value}:
                yield dict(defaults) | {name: other}, max(other, 1) if name == "cluster" else ctas


def _command(name: str, defaults: Mapping[str, int], params: Mapping[str, int], ctas: int) -> str:
    words = ["pipesim", "capture", name]
    words += [word for key, value in params.items() if defaults[key] != value for word in ("-p", f"{key}={value}")]
    return " ".join([*words, *(["--ctas", str(ctas)] if ctas != defaults.get("cluster", 1) else [])])


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.rglob("*.parquet"))
        else:
            yield path


def _is_usable(meta: TraceMeta) -> bool:
    whole = meta.status is Ending.FINISHED and not (meta.fault or meta.window)
    return meta.source == "hardware" and whole and READ_FROM not in meta.extra


def _split_of(path: Path) -> Split | None:
    """The nearest split: of the folder in which a recording lies, or of one above."""
    beside = next((folder / FILE for folder in path.resolve().parents[:_ABOVE] if (folder / FILE).is_file()), None)
    return None if beside is None else _read_once(beside)


_read_once = cache(read_split)


def _observations(inputs: Inputs, base: Profile, tell: Tell) -> Iterator[RunObservation | None]:
    devices = set()
    for number, (label, path) in enumerate(inputs.files, start=1):
        tell(f"reading {number} of {len(inputs.files)} recordings")
        trace = read_trace(path)
        devices.add(trace.meta.device.name)
        if len(devices) > 1:
            raise EvidenceError(
                "a profile is of one device, and these recordings are of several",
                cause=", ".join(sorted(devices)),
                correction="give recordings of one of them",
            )
        program = find(trace.meta.protocol).build(trace.meta.params, grid=trace.meta.grid)
        yield observe(label, program, trace, base)


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
