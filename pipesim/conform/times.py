"""Whether simulated and measured times agree: an answer of its own, whatever the order of events says.

A time is compared by the steady period of launches without recording where both sides have one, else by the whole run
with recording. The profile states how far off it may be for the kernels that it was measured with. For any other the
difference is given as it is, with what the simulation assumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pipesim.conform.assumed import Assumed, assumed_of
from pipesim.conform.result import Figure
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.timed.profile import Profile
from pipesim.timed.stated_error import StatedError
from pipesim.trace.schema import Trace

PERIOD, WHOLE_RUN = "period", "whole run, traced"  #: the figures by which times are compared, the better one first


class TimeVerdict(Enum):
    """How simulated times compare with those of one recorded run."""

    WITHIN_STATED_ERROR = "within the profile's stated error"
    OFF = "off"  #: by ``off_permille``
    NOT_MODELLED = "not modelled"  #: they rest on what is ``assumed``; a difference is given as well
    NOT_COMPARED = "not compared"  #: ``why`` says why


class NoTime(Enum):
    """Why there is no time to compare."""

    UNFINISHED = "unfinished"  #: the recorded run did not finish
    FAULT = "fault"  #: it has an injected fault, which the simulation does not have
    NOT_SIMULATED = "not simulated"  #: the simulation did not finish
    LIMIT = "limit"  #: a limit of time or memory ended the simulation
    KERNEL = "kernel"  #: the program was read from a kernel's PTX, and not to its end, or the run did not finish
    CLOCK = "clock"  #: the kernel reads a clock: how long it waits for a time to pass is not known
    NOT_RECORDED = "not recorded"  #: too few iterations for a period, and the run was not recorded from end to end


@dataclass(frozen=True)
class TimeComparison:
    """The answer on the times of one recorded run.

    ``figure`` is that by which they were compared ("" if none): PERIOD or WHOLE_RUN; ``simulated`` and ``measured`` are
    in 1/1000 cycle, ``off_permille`` is their signed difference in thousandths of the measured one. ``stated`` is what
    the profile ``profile`` states of such launches, None if nothing.
    """

    verdict: TimeVerdict
    profile: str
    figure: str = ""
    simulated: int | None = None
    measured: int | None = None
    off_permille: int | None = None
    stated: StatedError | None = None
    assumed: tuple[Assumed, ...] = ()
    why: NoTime | None = None


def no_time(profile: Profile, why: NoTime) -> TimeComparison:
    """There is nothing to compare."""
    return TimeComparison(TimeVerdict.NOT_COMPARED, profile.name, why=why)


def why_no_time(measured: Trace) -> NoTime | None:
    """Why the times of this run say nothing of the program's, None if they do."""
    if measured.meta.status != Ending.FINISHED:
        return NoTime.UNFINISHED
    return NoTime.FAULT if measured.meta.fault else None


def deciding(figures: Sequence[Figure]) -> Figure | None:
    """The figure by which times are compared: the first of the two that both sides have."""
    both = {figure.name: figure for figure in figures if figure.error_permille is not None}
    return both.get(PERIOD) or both.get(WHOLE_RUN)


def compare_times(program: Program, profile: Profile, measured: Trace, figure: Figure | None) -> TimeComparison:
    """The answer on ``measured``, of a launch of ``program``, by the ``figure`` that decides; None: there is none."""
    why = why_no_time(measured)
    if why is not None:
        return no_time(profile, why)
    assumed = assumed_of(program, profile, measured)
    if figure is None:
        if assumed:
            return TimeComparison(TimeVerdict.NOT_MODELLED, profile.name, assumed=assumed)
        return no_time(profile, NoTime.NOT_RECORDED)
    stated = None
    if figure.name == PERIOD and profile.device == measured.meta.device.name:
        stated = profile.stated_error(program.name, measured.meta.grid)
    verdict = _verdict(figure, stated, assumed)
    return TimeComparison(
        verdict, profile.name, figure.name, figure.simulated, figure.measured, figure.error_permille, stated,
        () if stated is not None else assumed,
    )  # fmt: skip


def _verdict(figure: Figure, stated: StatedError | None, assumed: tuple[Assumed, ...]) -> TimeVerdict:
    """A kernel whose error the profile states was measured with all that it uses."""
    off = figure.error_permille
    assert off is not None
    if stated is not None:
        return TimeVerdict.WITHIN_STATED_ERROR if abs(off) <= stated.worst_permille else TimeVerdict.OFF
    return TimeVerdict.NOT_MODELLED if assumed else TimeVerdict.OFF
