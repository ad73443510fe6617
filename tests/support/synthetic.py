"""Recordings that were never made: simulated with known constants, with noise by a seed, as a GPU would leave them."""

import random
from collections.abc import Mapping
from dataclasses import replace

from pipesim.conform.fit.propose import expected_trace
from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Device, Trace


def synthetic(
    name: str,
    params: Mapping[str, int],
    profile: Profile,
    seed: int = 0,
    *,
    ctas: int = 1,
    noise: float = 0.002,
    works: bool = True,
) -> tuple[Program, Trace]:
    """A protocol's program, and a recording of it on a device with these constants: five launches.

    ``noise``: the standard deviation of each launch's cycles and period, as a part of them. ``works``: whether the
    program has its named works, which have constants of their own.
    """
    rng = random.Random(f"{seed} {name} {sorted(params.items())}")
    program = find(name).build(dict(params), grid=ctas)
    program = program if works else replace(program, work=())
    trace = expected_trace(program, profile)

    def off(values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(round(value * (1 + rng.gauss(0, noise))) for value in values)

    runs = tuple(
        replace(run, repetition=number, cycles=off(run.cycles), period_millicycles=off(run.period_millicycles))
        for run in trace.meta.runs
        for number in range(5)
    )
    device = Device(name=profile.device, sms=profile.sms, sm_khz=profile.sm_khz)
    return program, Trace(replace(trace.meta, source="hardware", runs=runs, device=device), trace.events)
