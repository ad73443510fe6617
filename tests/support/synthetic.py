"""Recordings that were never made: simulated with known constants, with noise by a seed, as a GPU would leave them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from pipesim.model.program import Program
from pipesim.model.trips import waits_per_trip
from pipesim.conform.steady import read
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Run, Trace


def synthetic(
    name: str, params: Mapping[str, int], profile: Profile, seed: int = 0, *, ctas: int = 1, noise: float = 0.002
) -> tuple[Program, Trace]:
    """A protocol's program, and a recording of it on a device with these constants.

    ``noise``: the standard deviation of each launch's cycles and period, as a part of them.
    """
    rng = random.Random(f"{seed} {name} {sorted(params.items())}")
    program = find(name).build(dict(params), grid=ctas)
    plain = simulate(program, profile)
    reading = read(plain.trace, waits_per_trip(program))
    period = reading.period_millicycles if reading is not None else None
    runs = []
    for repetition in range(5):
        off = 1 + rng.gauss(0, noise)
        runs.append(
            Run(False, repetition, (round(plain.cycles * off),), (round((period or 0) * (1 + rng.gauss(0, noise))),))
        )
    recorded = simulate(program, profile, traced=True).trace
    meta = replace(recorded.meta, source="hardware", runs=tuple(runs))
    return program, Trace(meta, recorded.events)
