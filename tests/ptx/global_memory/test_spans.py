"""Bytes that several agents of a cluster access, against a count for each byte."""

import random

import numpy as np
import pytest

from pipesim.answers.global_memory.spans import Spans, contested, joined

Bytes = set[tuple[int, int]]  #: of clusters


def spans_of(every: Bytes) -> Spans:
    rows = [(byte, byte + 1, owner) for owner, byte in sorted(every)]
    start, end, owner = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return joined([Spans(start, end, owner)])


def bytes_of(spans: Spans) -> Bytes:
    return {(int(owner), byte) for start, end, owner in zip(*spans, strict=True) for byte in range(start, end)}


@pytest.mark.parametrize("seed", range(40))
def test_contested_bytes_are_those_of_two_agents_one_of_which_writes(seed: int) -> None:
    """Also where what is written, or accessed in an ordinary way, begins and ends inside what is read."""
    rng = random.Random(seed)

    def part(every: Bytes) -> Bytes:
        return {each for each in every if rng.random() < 0.3}

    agents: list[tuple[Bytes, Bytes, Bytes]] = []
    for _ in range(rng.randrange(1, 5)):
        low, high = sorted(rng.sample(range(24), 2))
        every = {(owner, byte) for owner in (0, 5) for byte in range(low, high)}
        agents.append((every, part(every), part(every)))

    def count(at: tuple[int, int], n: int) -> int:
        return sum(at in agent[n] for agent in agents)

    places = [(owner, byte) for owner in (0, 5) for byte in range(24)]
    met = {at for at in places if count(at, 0) > 1 and count(at, 1) and count(at, 2)}
    assert bytes_of(contested([(spans_of(a), spans_of(b), spans_of(c)) for a, b, c in agents])) == met
