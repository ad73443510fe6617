"""The yardstick of ``bench_sim.py``: a producer/consumer ring in bare SimPy, with no rules, no names and no records.

It moves as many events through SimPy's queue for each tile as the timed engine has for one producer and one consumer
(:data:`EVENTS_PER_TILE`): three of the producer's, one landing, four of the consumer's.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial

import simpy

EVENTS_PER_TILE = 8


class BareRing:
    """Full and empty stages as events; times are whole cycles."""

    def __init__(self, stages: int, tiles: int) -> None:
        self.env = simpy.Environment()
        self.stages = stages
        self.tiles = tiles
        self.full = [self.env.event() for _ in range(tiles)]
        self.free = [self.env.event() for _ in range(tiles)]
        self.queued = 0

    def _landed(self, tile: int, _: simpy.Event) -> None:
        self.full[tile].succeed()

    def producer(self) -> Generator[simpy.Event, None, None]:
        """Wait for a free stage, then two operations and a landing for each tile."""
        for tile in range(self.tiles):
            if tile >= self.stages:
                yield self.free[tile - self.stages]
            yield self.env.timeout(8)
            yield self.env.timeout(182)
            landing = self.env.timeout(433)
            landing.callbacks.append(partial(self._landed, tile))
            self.queued += 3

    def consumer(self) -> Generator[simpy.Event, None, None]:
        """Wait for a full stage, work, give it back."""
        for tile in range(self.tiles):
            yield self.full[tile]
            yield self.env.timeout(83)
            yield self.env.timeout(396)
            yield self.env.timeout(621)
            self.free[tile].succeed()
            self.queued += 5

    def run(self) -> int:
        """Cycles until the last tile is given back."""
        self.env.process(self.producer())
        self.env.process(self.consumer())
        self.env.run()
        return int(self.env.now)
