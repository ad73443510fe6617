"""One trace against one program: behaviour first, then time."""

from __future__ import annotations

from pipesim.conform.replay import conform
from pipesim.conform.result import Comparison
from pipesim.conform.steady import read
from pipesim.conform.timing import PeriodPair, compare_timing
from pipesim.model.program import Program
from pipesim.timed.bound import ring_law
from pipesim.timed.choice import profile_for
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Trace


def compare(program: Program, measured: Trace, profile: Profile | None = None) -> Comparison:
    """Replay ``measured`` on the machine, and set it beside two simulations, with and without the cost of recording.

    ``profile``: of the device that recorded, if not given. Raises EvidenceError if the trace was recorded from another
    kernel than ``program`` describes.
    """
    behaviour = conform(program, measured)
    profile = profile or profile_for(measured.meta.device.name)
    pairs = {traced: _period(program, profile, traced=traced) for traced in (False, True)}
    recorded = simulate(program, profile, recording=True)
    return Comparison(behaviour, compare_timing(recorded.trace, measured, pairs), recorded.trace)


def _period(program: Program, profile: Profile, *, traced: bool) -> PeriodPair:
    bound = ring_law(program, profile, recording=traced)
    reading = read(simulate(program, profile, recording=traced).trace)
    return PeriodPair(None if bound is None else bound.period_millicycles, None if reading is None else reading.period_millicycles)
