"""Whose products a tensor core takes when: as it was measured, and as a plain model of every cycle says."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from pipesim.model.tables import Agent
from pipesim.timed.sm.tensor_cores import TensorCores

AHEAD = 8
#: One warp of each group, as the second began so many cycles after the first: products of a batch (the second batch
#: begins when the first has been issued), cycles of a product, cycles from the first warp's begin to the second's, and
#: when the results of all of either were there, less the 79 cycles that a wait takes after the last product
#: (NVIDIA H200).
MEASURED = (
    ((4,), 64, 59, (258, 514)),
    ((4,), 64, 69, (256, 512)),
    ((4,), 64, 267, (264, 524)),
    ((8,), 64, 141, (513, 1025)),
    ((8,), 64, 351, (514, 1025)),
    ((16,), 64, 140, (1025, 2064)),
    ((16,), 64, 332, (1033, 2072)),
    ((4,), 128, 151, (512, 1024)),
    ((8,), 128, 214, (1025, 2064)),
)


def agents(count: int) -> list[Agent]:
    """Warps that share one tensor core."""
    return [Agent(cta=0, warp=4 * number, lanes=1, role="multiply", index=number) for number in range(count)]


@pytest.mark.parametrize(("batches", "cycles", "later", "measured"), MEASURED)
def test_two_groups_end_as_they_did_on_the_chip(
    batches: Sequence[int], cycles: int, later: int, measured: tuple[int, int]
) -> None:
    cores = TensorCores(agents(2), AHEAD)
    for agent in range(2):
        for products in batches:
            cores.give(agent, later * agent, products * cycles, products, cycles // 4)
    found = cores.ends(0, cores.given[0], 0), cores.ends(1, cores.given[1], 0)
    assert all(abs(mine - chip) <= cycles for mine, chip in zip(found, measured, strict=True)), found


@dataclass
class PlainBatch:
    """What a warp has still to issue, by the plain model."""

    agent: int
    begins: int
    cycles: list[int]
    interval: int
    begun: int = -1
    last: int = -(10**9)


def plain(batches: Sequence[PlainBatch], ahead: int) -> dict[int, tuple[int, int]]:
    """Cycle by cycle: of each agent when its last product is issued, and when it ends."""
    found: dict[int, tuple[int, int]] = {}
    under_way: list[int] = []
    free = now = 0
    while any(batch.cycles for batch in batches):
        under_way = [end for end in under_way if end > now]
        while len(under_way) < ahead:
            firsts: dict[int, PlainBatch] = {}
            for batch in batches:
                if batch.cycles:
                    firsts.setdefault(batch.agent, batch)
            ready = [b for b in firsts.values() if b.begins <= now and b.last + b.interval <= now]
            if not ready:
                break
            one = min(ready, key=lambda b: (b.begun < 0, b.begun if b.begun >= 0 else b.begins, b.agent))
            free = max(free, now) + one.cycles.pop(0)
            under_way.append(free)
            one.begun, one.last = one.begun if one.begun >= 0 else now, now
            found[one.agent] = now, free
        now += 1
    return found


@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_plain_model_of_every_cycle(seed: int) -> None:
    draw = random.Random(seed)
    count, ahead = draw.randint(1, 4), draw.choice([1, 2, 8])
    cores, batches, now = TensorCores(agents(count), ahead), [], 0
    for _ in range(draw.randint(1, 6)):
        agent, products, cycles = draw.randrange(count), draw.randint(1, 9), draw.randint(4, 40)
        interval = draw.randint(1, 12)
        if cores.issues(agent, now) > now:
            continue
        cores.give(agent, now, products * cycles, products, interval)
        batches.append(PlainBatch(agent, now, [cycles] * products, interval))
        now += draw.choice([0, 1, 30, draw.randint(0, 300)])
        cores.issues(agent, now)
    for agent, (issued, ended) in plain(batches, ahead).items():
        asked = max(batch.begins for batch in batches)
        assert cores.issues(agent, asked) == max(asked, issued), agent
        assert cores.ends(agent, cores.given[agent], asked) == max(asked, ended), agent
