"""Speed of the timed engine against a bare SimPy ring with as many events a tile, in the same process in turn:
``python tools/bench_sim.py``.

Every event of the engine goes through the machine and is recorded.

Processor time, the least of several rounds: what else the machine does only adds to it.
"""

import argparse
import sys
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from unittest.mock import patch

import simpy
from simpy.events import NORMAL, Event, EventPriority

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile, load_profile
from pipesim.timed.waits import CycleEnvironment

EVENTS_PER_TILE = 8


class BareRing:
    """Full and empty stages as events; times are whole cycles."""

    def __init__(self, stages: int, tiles: int) -> None:
        self.env = simpy.Environment()
        self.stages = stages
        self.tiles = tiles
        self.full = [self.env.event() for _ in range(tiles)]
        self.free = [self.env.event() for _ in range(tiles)]

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

    def consumer(self) -> Generator[simpy.Event, None, None]:
        """Wait for a full stage, work, give it back."""
        for tile in range(self.tiles):
            yield self.full[tile]
            yield self.env.timeout(83)
            yield self.env.timeout(396)
            yield self.env.timeout(621)
            self.free[tile].succeed()

    def run(self) -> int:
        """Cycles until the last tile is given back."""
        self.env.process(self.producer())
        self.env.process(self.consumer())
        self.env.run()
        return int(self.env.now)


def seconds(run: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    begin = time.process_time()
    run()
    return time.process_time() - begin


def in_turn(rounds: int, *runs: Callable[[], object]) -> list[list[float]]:
    """Seconds of each, run one after the other ``rounds`` times after one round to warm up; a list for each."""
    every = [[seconds(run) for run in runs] for _ in range(rounds + 1)]
    return [list(times) for times in zip(*every[1:], strict=True)]


def ratio(above: list[float], below: list[float]) -> float:
    """The quotient of the least of two lists."""
    return min(above) / min(below)


def scheduled(program: Program, profile: Profile) -> int:
    """How many events a simulation schedules."""
    events = 0
    schedule = CycleEnvironment.schedule

    def counted(env: CycleEnvironment, event: Event, priority: EventPriority = NORMAL, delay: float = 0) -> None:
        nonlocal events
        events += 1
        schedule(env, event, priority, delay)

    with patch.object(CycleEnvironment, "schedule", counted):
        simulate(program, profile)
    return events


def against_simpy(tiles: int, rounds: int, profile: Profile) -> None:
    """The SimPy engine beside the bare ring."""
    program = find("producer_consumer").build({"tiles": tiles, "consumer_warps": 1})
    events = scheduled(program, profile)
    whole, bare = in_turn(
        rounds,
        lambda: simulate(program, profile),
        lambda: BareRing(program.params["stages"], tiles).run(),
    )
    print(f"producer_consumer, {tiles:,} tiles, one consumer, every event recorded")
    for name, times, said in (
        ("SimPy engine", whole, f"{events / tiles:.2f} events a tile"),
        ("bare SimPy ring", bare, f"{EVENTS_PER_TILE:.2f} events a tile"),
    ):
        print(f"   {name:22} {tiles / min(times):10,.0f} tiles/s  {said}")
    print(f"   {'engine to bare ring':22} {100 * ratio(bare, whole):10.1f} %")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiles", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    against_simpy(options.tiles, options.rounds, load_profile("h100"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
