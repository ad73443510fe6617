"""The copy engine of an SM, a SimPy resource, and the events of landing transfers."""

from __future__ import annotations

import simpy
from simpy.resources.base import BaseResource, Get, Put

from pipesim.model.machine import Flight
from pipesim.timed.costs import Cost
from pipesim.timed.environment import CycleEnvironment, TimedEvent


class LandingTimeout(simpy.Timeout):
    """The end of a transfer that uses no engine, or whose engine has done its part: all bytes have arrived."""

    def __init__(self, env: CycleEnvironment, delay: int, flight: Flight) -> None:
        super().__init__(env, delay)
        self.flight = flight


class Copy(TimedEvent, Get["CopyEngine"]):
    """A bulk copy, load or store, as a request to the copy engine. It happens when all bytes have arrived."""

    def __init__(self, engine: CopyEngine, cost: Cost, flight: Flight) -> None:
        self.cost = cost
        self.flight = flight
        Get.__init__(self, engine)


class CopyEngine(BaseResource[Put["CopyEngine"], Copy]):
    """One copy after another, in the order of the requests: when each lands is known as soon as it is requested.

    ``free``: the cycle at which it has started all that was requested. ``cold``: how much later the first copy lands.
    """

    def __init__(self, env: CycleEnvironment, cold: int) -> None:
        super().__init__(env, capacity=1)
        self.free = 0
        self.cold = cold

    def request(self, cost: Cost, flight: Flight) -> Copy:
        """The engine takes a copy after those that it has."""
        return Copy(self, cost, flight)

    def _do_get(self, event: Copy) -> None:
        """Grant a request, as SimPy's resources do."""
        now, cost = int(event.env.now), event.cost
        start = max(now, self.free)
        self.free = start + cost.engine
        event.succeed_in(start + cost.flight + self.cold - now)
        self.cold = 0
