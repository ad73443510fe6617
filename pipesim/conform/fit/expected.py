"""What a recording of a program would say if the device had a profile's values: for captures that were not made yet."""

from __future__ import annotations

from dataclasses import replace

from pipesim.conform.steady import read
from pipesim.model.program import Program
from pipesim.model.trips import waits_per_trip
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Run, Trace


def expected_trace(program: Program, profile: Profile) -> Trace:
    """The events of a recorded launch, and one launch without recording with its cycles and period."""
    plain = simulate(program, profile)
    reading = read(plain.trace, waits_per_trip(program))
    period = reading.period_millicycles if reading is not None else None
    recorded = simulate(program, profile, traced=True).trace
    runs = (Run(traced=False, repetition=0, cycles=(plain.cycles,), period_millicycles=(period or 0,)),)
    return Trace(replace(recorded.meta, runs=runs), recorded.events)
