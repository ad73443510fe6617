"""What a simulation has found."""

from dataclasses import dataclass

from pipesim.model.ending import Ending
from pipesim.model.finding import Deadlock, Fault
from pipesim.model.machine import State
from pipesim.model.program import Program
from pipesim.process.limits import Limit
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Trace


@dataclass(frozen=True)
class Simulation:
    """One simulated run: how it ended (``outcome``), its events, and everything that failed.

    ``cycles`` is the time at which the last agent ended (or the last thing happened), ``ends`` that of each agent, -1
    for one that did not end. ``late`` are the transfers (agent, operation) that were
    still under way when the last agent of their CTA had ended. ``cut``: the limit of this process that ended it.
    ``landings``: (agent, operation, barrier or -1, cycle) of each transfer that ended, if they were asked for.
    """

    program: Program
    profile: Profile
    outcome: Ending
    cycles: int
    ends: tuple[int, ...]
    trace: Trace
    deadlock: Deadlock | None
    faults: tuple[Fault, ...]
    steps: int
    state: State
    late: tuple[tuple[int, int], ...] = ()
    cut: Limit | None = None
    landings: tuple[tuple[int, int, int, int], ...] = ()
