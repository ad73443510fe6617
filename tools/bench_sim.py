"""Tiles per second of the timed engine against a bare SimPy ring: ``python tools/bench_sim.py``.

Both run in this process, in turn, with the same number of queue events for each tile; every event of the engine goes
through the machine and is recorded. Prints medians and their ratio, then (``--where``) where the engine's time goes.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile, load_profile
from tools.yardstick_ring import EVENTS_PER_TILE, BareRing


def engine_seconds(program: Program, profile: Profile) -> tuple[float, float]:
    """Seconds of one simulation, and its queue events for each tile."""
    begin = time.perf_counter()
    result = simulate(program, profile)
    return time.perf_counter() - begin, result.queue_events / program.params["tiles"]


def yardstick_seconds(stages: int, tiles: int) -> tuple[float, float]:
    """Seconds of one run of the bare ring, and its queue events for each tile."""
    ring = BareRing(stages, tiles)
    begin = time.perf_counter()
    ring.run()
    return time.perf_counter() - begin, ring.queued / tiles


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--where", action="store_true", help="profile the engine once")
    options = parser.parse_args()
    params = {"tiles": options.tiles, "consumer_warps": 1}
    program = find("producer_consumer").build(params)
    profile = load_profile("h100")
    engine, yardstick = [], []
    for _ in range(options.rounds + 1):  # the first round warms up
        engine.append(engine_seconds(program, profile))
        yardstick.append(yardstick_seconds(program.params["stages"], options.tiles))
    mine = statistics.median(s for s, _ in engine[1:])
    bare = statistics.median(s for s, _ in yardstick[1:])
    ratios = sorted(b / m for (m, _), (b, _) in zip(engine[1:], yardstick[1:], strict=True))
    print(f"timed engine, recording   {options.tiles / mine:10,.0f} tiles/s  {engine[1][1]:.2f} queue events a tile")
    print(
        f"bare SimPy ring           {options.tiles / bare:10,.0f} tiles/s  {yardstick[1][1]:.2f} queue events a tile "
        f"(declared {EVENTS_PER_TILE})"
    )
    print(
        f"ratio                     {100 * bare / mine:10.1f} %        median of {options.rounds} pairs, "
        f"{100 * ratios[0]:.1f} to {100 * ratios[-1]:.1f} %"
    )
    if options.where:
        watch = cProfile.Profile()
        watch.runcall(simulate, program, profile)
        pstats.Stats(watch).sort_stats("tottime").print_stats(14)
    return 0


if __name__ == "__main__":
    sys.exit(main())
