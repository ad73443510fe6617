"""What happens at once because nothing else is due before: the run is that in which everything queues."""

from __future__ import annotations

import random

import pytest

from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.agenda import Agenda, HappensAt
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile, load_profile
from tests.support.random_profiles import drawn
from tests.support.random_programs import TIMED_FAMILIES
from tests.support.timed_ring import Ring, ring

H100 = load_profile("h100")


def runs(program: Program, profile: Profile, seed: int) -> tuple[int, int]:
    """How many things pass through the queue to the same result, and if whoever looks sees that something is due."""
    passed = []
    results = []
    put = Agenda.put
    for everything in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            count: list[int] = []

            def counted(agenda: Agenda, due: HappensAt, at: int, count: list[int] = count) -> None:
                count.append(at)
                put(agenda, due, at)

            patch.setattr(Agenda, "put", counted)
            if everything:
                patch.setattr(Agenda, "peek", lambda _: -1)
            results.append(simulate(program, profile, traced=seed % 2 == 0, skip=seed % 3 == 0, landings=True))
            passed.append(len(count))
    assert results[0] == results[1]
    return passed[0], passed[1]


@pytest.mark.parametrize("family", TIMED_FAMILIES)
def test_random_programs(family: str) -> None:
    for seed in range(40):
        fewer, all_ = runs(TIMED_FAMILIES[family](seed), random.Random(seed).choice([H100, drawn(seed)]), seed)
        assert fewer <= all_


@pytest.mark.parametrize("name", ["attention_sm90", "cluster_multicast", "gemm_sm90", "persistent_scheduler"])
def test_built_in_protocols(name: str) -> None:
    fewer, all_ = runs(find(name).build({}), H100, 1)
    assert fewer < all_


def test_a_ring_queues_less_than_its_events() -> None:
    fewer, all_ = runs(ring(Ring(stages=3, tiles=200, warps=1, work=30)).flatten({}), H100, 1)
    assert 4 * fewer < 3 * all_
