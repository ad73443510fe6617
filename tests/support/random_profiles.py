"""Random latency profiles."""

import random
from dataclasses import replace

from pipesim.timed.profile import AT_LEAST_ONE, FIELDS, Profile, load_profile


def drawn(seed: int) -> Profile:
    """A profile of numbers from 0 on, many of them equal, so that things fall into one cycle."""
    draw = random.Random(seed)
    values = {name: draw.choice([0, 1, 2, draw.randint(0, 60)]) for name in FIELDS}
    values |= {name: draw.randint(1, 20_000) for name in FIELDS if "bytes" in name or name in AT_LEAST_ONE}
    return replace(load_profile("h100"), name=f"drawn {seed}", values=values)
