"""One trace against one program: behaviour first, then time."""

from __future__ import annotations

from dataclasses import replace

from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import Comparison
from pipesim.conform.steady import beats, read
from pipesim.conform.timing import PeriodPair, compare_timing, like
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.timed.choice import profile_for
from pipesim.timed.critical import least_period, waits_per_trip
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Trace
from pipesim.trace.sites import optional_of


def compare(program: Program, measured: Trace, profile: Profile | None = None) -> Comparison:
    """Replay ``measured`` on the machine, and set it beside two simulations, with and without the cost of recording.

    ``profile``: of the device that recorded, if not given. Raises EvidenceError if the trace was recorded from another
    kernel than ``program`` describes. Without timing if a simulation did not finish.
    """
    behaviour = conform(program, measured)
    profile = profile or profile_for(measured.meta.device.name)
    program = replace(program, grid=max(1, measured.meta.grid // program.ctas))  # the launch that was measured
    # a simulation without records is compared with one without records
    stamps = measured.meta.source == "hardware" or bool(measured.meta.extra.get("recording"))
    also = optional_of(measured.meta)
    traces = {t: simulate(program, profile, traced=t and stamps, also=also).trace for t in (False, True)}
    pairs = {traced: _period(program, profile, traces[traced], traced=traced and stamps) for traced in traces}
    whole = all(trace.meta.status == Ending.FINISHED for trace in traces.values())
    timing = compare_timing(traces[True], measured, pairs, waits_per_trip(program)) if whole else None
    return Comparison(behaviour, timing, like(traces[True], measured))


def _period(program: Program, profile: Profile, trace: Trace, *, traced: bool) -> PeriodPair:
    bound = least_period(program, profile, traced=traced)
    reading = read(trace, waits_per_trip(program))
    least = None if bound is None else bound.period_millicycles
    period = None if reading is None else reading.period_millicycles
    return PeriodPair(least, None if period and least and beats(period, least) else period)
