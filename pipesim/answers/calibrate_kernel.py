"""A latency profile with the segments of one recorded kernel that was read from its PTX, in place of estimates."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.answers.calibrate import Calibration, residual_rows
from pipesim.answers.calibrate_inputs import unusable
from pipesim.answers.compare import with_ctas_of
from pipesim.answers.views.calibrate import CalibrationReport, ResidualRow
from pipesim.conform.compare import compare
from pipesim.conform.fit.observation import RunObservation, observe
from pipesim.conform.fit.segments import measured_works, with_measured
from pipesim.conform.fit.values import CalibratedValue, ValueState
from pipesim.conform.recorded_kernel import recorded_kernel
from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import TraceVerdict
from pipesim.conform.timing import TRACED_PERIOD
from pipesim.errors import EvidenceError
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.timed.profile import WHOLE_RUN, Profile
from pipesim.timed.work import OVERHEAD, SCALE
from pipesim.trace.schema import Trace

if TYPE_CHECKING:
    from pipesim.ptx.extract import Extraction


def calibrate_kernel(read: "Extraction", trace: Trace, source: str, base: Profile, name: str) -> Calibration:
    """A profile called ``name``: ``base``, with what the recording says about the work between the kernel's operations.

    EvidenceError for a recording that is of another kernel, differs from it or did not finish.
    """
    if trace.meta.source != "hardware":
        raise unusable(Path(source))
    read = with_ctas_of(read, trace)
    kernel = recorded_kernel(read.program, read.places, trace, read.by_line)
    found = conform(kernel.program, kernel.trace, kernel.sites)
    if found.verdict is not TraceVerdict.AGREES or trace.meta.status is not Ending.FINISHED:
        raise EvidenceError(
            f"the trace is not a finished run of {read.program.name}",
            place=source,
            cause="it differs from the program that is read from the PTX, or was stopped",
            correction="`pipesim diff` says where; give a whole run that conforms",
        )
    timed = recorded_kernel(read.timed, read.places, trace, read.by_line)
    works = measured_works(timed.program, timed.trace, base)
    if not works:
        raise EvidenceError(
            "the trace shows no segment between two events without a wait",
            place=source,
            correction="give a recording of `pipesim record`, without --waits-only",
        )
    device = trace.meta.device
    after = replace(
        with_measured(base, works),
        name=name,
        device=device.name,
        sms=device.sms or base.sms,
        fitted=f"by pipesim calibrate, the work of {read.program.name[:80]}, on top of {base.name}",
        errors=(),
    )
    new = {each.name + end for each in works for end in (OVERHEAD, SCALE)}
    how = {each: "measured" if each in new else base.how.get(each, "assumed") for each in after.values}
    values = tuple(
        CalibratedValue(each.name + OVERHEAD, each.estimated, each.cycles, each.half_width, ValueState.MEASURED)
        for each in works
    )
    observation = observe(source, timed.program, timed.trace, base)
    rows = _of_run(timed.program, timed.trace, (base, after))
    rows += () if observation is None else _rows(observation, base, after)
    report = CalibrationReport(name, device.name, base.name, (source,), 0, values, rows, kernel=read.program.name)
    return Calibration(report, after, how)


def _rows(observation: RunObservation, before: Profile, after: Profile) -> tuple[ResidualRow, ...]:
    """The errors of the recording's waits and segments on both profiles."""
    return tuple(residual_rows([observation], [observation.deviations(before)], [observation.deviations(after)]))


def _of_run(program: Program, trace: Trace, profiles: tuple[Profile, Profile]) -> tuple[ResidualRow, ...]:
    """The errors of the period and of the whole run on both profiles, where both sides have them."""
    figures = [_figures(program, trace, each) for each in profiles]
    return tuple(
        ResidualRow(name, 1, before, before, after, after)
        for name, before in figures[0].items()
        if (after := figures[1].get(name)) is not None
    )


def _figures(program: Program, trace: Trace, profile: Profile) -> dict[str, int]:
    """How far the period and the whole run are off, in thousandths."""
    timing = compare(program, trace, profile).timing
    return {
        each.name: round(1000 * abs(each.simulated - each.measured) / each.measured)
        for each in (timing.figures if timing is not None else ())
        if each.name in (TRACED_PERIOD, WHOLE_RUN) and each.simulated and each.measured
    }
