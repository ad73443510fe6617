"""The timed engine: :func:`simulate` runs a program by simulated time."""

from collections.abc import Sequence

from pipesim.model.machine import Observer
from pipesim.model.program import Program
from pipesim.timed.profile import Profile
from pipesim.timed.simulation import Simulation
from pipesim.timed.timed_run import TimedRun
from pipesim.trace.schema import SiteKey
from pipesim.trace.sites import NO_SITES

__all__ = ["DEFAULT_BUDGET", "Simulation", "simulate"]

DEFAULT_BUDGET = 20_000_000


def simulate(
    program: Program,
    profile: Profile,
    *,
    traced: bool = False,
    max_steps: int = DEFAULT_BUDGET,
    observers: Sequence[Observer] = (),
    also: frozenset[SiteKey] = NO_SITES,
    until_time_limit: bool = False,
    landings: bool = False,
) -> Simulation:
    """Run one CTA (or cluster) of ``program`` under ``profile``.

    ``traced`` adds what each record costs on the GPU, to be compared with a traced kernel. ``observers`` see
    every move (which operation completed which phase, whether parity waits mean what they say) and change nothing.
    ``also``: optional sites at which records are made, as a trace to compare with has them.
    ``until_time_limit``: a time limit of the process ends the run, as ``max_steps`` does. ``landings``: keep the cycle
    at which each transfer ended, which no event of a trace says.
    Same arguments, same result, to the last event.
    """
    run = TimedRun(program, profile, traced=traced, max_steps=max_steps, observers=observers, also=also)
    run.landings = [] if landings else None
    return run.result(until_time_limit=until_time_limit)
