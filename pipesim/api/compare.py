"""``pipesim.compare``: a recorded trace against its protocol, behaviour first, then time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from pipesim.answers.compare import compare_kernel, compare_long, compare_trace
from pipesim.answers.recorded_program import LongRunError, named_program, recorded_program
from pipesim.answers.views.trace import CompareReport, TraceComparison
from pipesim.api.call_arguments import (
    Given,
    GivenBoxes,
    GivenLaunch,
    GivenProfile,
    GivenTrace,
    GivenWords,
    KernelLaunch,
    profile_from,
    target_from,
    trace_from,
    whole_params,
)
from pipesim.api.result import VerdictResult
from pipesim.api.timelines import MOST_DRAWN, comparison_scene, timeline_picture
from pipesim.conform.agreement import Agreement
from pipesim.conform.result import Conformance, Divergence, Timing, TraceVerdict
from pipesim.conform.times import TimeComparison
from pipesim.errors import ParameterError, UsageError
from pipesim.model.program import Program
from pipesim.report.pages.protocols.verify import compare_lines, moment_of
from pipesim.report.pictures.scene_svg import scene_svg
from pipesim.report.pictures.timeline import Moment
from pipesim.report.sentences.times import time_in_short
from pipesim.report.sentences.trace import comparison_reason
from pipesim.report.text.words import printable
from pipesim.scene.parts import Scene
from pipesim.scene.runs import trace_scene
from pipesim.timed.profile import Profile
from pipesim.trace.arrays import np
from pipesim.trace.schema import Trace

_NEAR = 20  #: around a divergence one twentieth of the run is drawn on either side


@dataclass(frozen=True, repr=False, eq=False)
class ComparisonResult(VerdictResult):
    """One trace compared with ``program``. ``report`` is the whole answer as data.

    ``profile``: the one that was asked for, None: that of the trace's device.
    """

    program: Program
    report: CompareReport
    profile: Profile | None = None

    @property
    def agreement(self) -> Agreement:
        """Whether the recorded run agrees with the protocol."""
        return self.report.comparison.agreement

    @property
    def behaviour(self) -> TraceVerdict:
        """The same in three words: agrees, differs or unknown, whatever the times are."""
        return self.report.comparison.behaviour

    @property
    def time(self) -> TimeComparison:
        """How the simulated times compare with the measured ones, whatever the order of events is."""
        return self.report.comparison.time

    @property
    def trace(self) -> Trace:
        """The trace that was compared."""
        return self.report.comparison.measured

    @property
    def conformance(self) -> Conformance:
        """Whether every recorded event is one that the protocol allows."""
        return self.report.comparison.conformance

    @property
    def divergence(self) -> Divergence | None:
        """The first event that the protocol does not allow, None if there is none."""
        return self.conformance.divergence

    @property
    def timing(self) -> Timing | None:
        """The simulated and the measured run in numbers; None where one of them did not finish."""
        return self.report.comparison.timing

    def svg(self) -> str:
        """The timeline: simulated above measured, around the divergence if there is one."""
        return next((svg for _, svg in reversed(self.pictures())), "")

    def _in_short(self) -> str:
        why = comparison_reason(self.report.comparison)
        said = why or f"time {time_in_short(self.time)}"
        return f"{self.program.name}: behaviour {self.behaviour.value}, {said}"

    def _lines(self, width: int) -> list[str]:
        return compare_lines(self.report, width)

    def to_arrow(self) -> Any:
        """The events of the trace."""
        return self.trace.to_arrow()

    def pictures(self) -> Sequence[tuple[str, str]]:
        """The simulation above the trace, as ``pipesim export`` draws them; then the part around a divergence."""
        return comparison_pictures(self.program, self.report.comparison, self.profile)


def compare(
    x: Given | Trace | None = None,
    trace: GivenTrace | None = None,
    *,
    profile: GivenProfile | None = None,
    tolerance: float | None = None,
    launch: GivenLaunch = None,
    set: GivenWords = None,  # noqa: A002  # as the command's option
    box: GivenBoxes = None,
    **params: int,
) -> ComparisonResult:
    """Compare a recorded trace with its protocol, event by event and in time.

    ``x`` as in :func:`pipesim.check`; leave it out where the trace names a built-in protocol: ``compare(trace)``. A
    parameter that is not given has the trace's value. With a kernel's PTX (``kernel.ptx``, its launch as there) the
    work between two operations is estimated from the instructions. ``trace``: a ``Trace`` or the path of its file.
    ``profile``: the latency profile, that of the trace's device if None. ``tolerance``: percent of the measured
    period. Raises UsageError for what cannot be done, EvidenceError for a trace of another kernel, for one that has
    other parameters than the protocol that it names, and for a file that is not a trace.
    """
    if isinstance(x, Trace) or (isinstance(x, str | PathLike) and Path(x).suffix == ".parquet"):
        if trace is not None:
            raise UsageError(
                "two traces are given, and no protocol",
                cause="compare sets one trace beside its protocol",
                correction="`pipesim diff A B` compares two traces; here leave one out",
            )
        x, trace = None, x
    if trace is None:
        raise UsageError("no trace is given", correction='for example compare(x, "trace.parquet")')
    within, chosen = percentage(tolerance), None if profile is None else profile_from(profile)
    found, source = trace_from(trace)
    whole = whole_params(params)
    target = target_from(x, whole, KernelLaunch(launch, set, box)) if x is not None else None
    if target is not None and target.program is not None and target.kernel is not None:
        if whole or tolerance is not None:
            raise UsageError(
                "a kernel's PTX has no parameters, and its recording no period to be compared",
                cause="parameters and a tolerance are for a protocol",
                correction="leave them out",
            )
        return ComparisonResult(target.program, compare_kernel(target.kernel, found, source, chosen), chosen)
    try:
        if target is not None:
            program = named_program(found.meta, target, whole, place=source, records=len(found.events))
        else:
            how = "give the protocol first: compare(my_kernel, trace)"
            program = recorded_program(found.meta, given=whole, place=source, correction=how, records=len(found.events))
    except LongRunError as long:
        return ComparisonResult(*compare_long(long, found, source, chosen, within), chosen)
    return ComparisonResult(program, compare_trace(program, found, source, chosen, within), chosen)


def percentage(tolerance: object) -> float | None:
    """A tolerance of 0 or more, None for none; ParameterError for anything else."""
    if tolerance is None:
        return None
    if isinstance(tolerance, int | float) and not isinstance(tolerance, bool) and 0 <= tolerance < math.inf:
        return float(tolerance)
    raise ParameterError(f"tolerance is {tolerance!r}", correction="give a percentage of 0 or more, for example 5")


def comparison_pictures(program: Program, found: TraceComparison, profile: Profile | None) -> Sequence[tuple[str, str]]:
    """The pictures of a comparison, each in words and as SVG; () if there is nothing to draw.

    The whole runs, then the part around a divergence. Of a trace with very many events copies and arrows are left out.
    """
    trace, name = found.measured, program.name
    if not len(trace.events):
        return ()
    label = printable(f"{trace.meta.source}, {trace.meta.device.name or 'unknown device'}")
    if found.simulated is None:  # of a kernel's PTX, whose replay needs more than its program
        return (timeline_picture(trace, None, label),)
    if len(trace.events) > MOST_DRAWN:
        runs = (trace_scene(found.simulated, None, "simulation"), trace_scene(trace, None, label))
        scene = Scene(printable(name), runs)
    else:
        scene = comparison_scene(program, trace, profile, label)
    whole = (f"simulation and recording of {name}", scene_svg(scene))
    moment = moment_of(found)
    if moment is None:
        return (whole,)
    here = _picoseconds(trace, moment)
    near = max(run.end for run in scene.runs) // _NEAR
    part = scene_svg(scene, moment.cta, (max(0, here - near), here + near), here)
    return whole, (f"the timeline of {name} around the divergence", part)


def _picoseconds(trace: Trace, moment: Moment) -> int:
    """When an event of this CTA was that is nearest to a cycle of its clock, from the first event of the trace on."""
    events = trace.events
    rows = np.flatnonzero(events.cta == moment.cta)
    nearest = rows[np.argmin(np.abs(events.cycle[rows] - moment.cycle))]
    return int(events.time_ps[nearest] - events.time_ps.min())
