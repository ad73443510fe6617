"""Copies whose order depends on times: a formula decides it while it is evaluated, as the simulation does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import AT_LEAST_ONE, Profile, load_profile
from pipesim.timed.recurrence.code.queue_plan import QueuePlan
from pipesim.timed.recurrence.evaluate import LEAST_REORDERED, FormulaTimes
from pipesim.timed.recurrence.formula import Do
from pipesim.timed.recurrence.many import ManyProfiles
from pipesim.timed.recurrence.prices import demands, price_table
from pipesim.timed.recurrence.timings import derived, times_of
from tests.support.lanes import long_but, slow_but
from tests.support.random_profiles import drawn
from tests.support.random_programs import TIMED_FAMILIES
from tests.support.timed_ring import toy

H100 = load_profile("h100")


def near(seed: int) -> Profile:
    """A profile whose values are up to a fifth off."""
    draw = random.Random(seed)
    values = {name: max(1, value * draw.randint(80, 120) // 100) for name, value in H100.values.items()}
    return replace(H100, name=f"near {seed}", values=values)


def tight(seed: int) -> Profile:
    """A profile under which nearly everything takes a few cycles, so that many things fall into one."""
    draw = random.Random(seed)
    least = draw.choice([0, 1])
    values = {name: draw.randint(1 if name in AT_LEAST_ONE else least, 3) for name in H100.values}
    values |= {name: draw.choice([16_000, 64_000, 4_000_000]) for name in values if name.endswith("per_kcycle")}
    return replace(H100, name=f"tight {seed}", values=H100.values | values)


def compared(program: Program, profiles: Sequence[Profile]) -> Counter[str]:
    """How often a formula decides in its own order, and how often else in any; whatever is decided is right."""
    kinds: Counter[str] = Counter()
    times = derived(program, profiles[0]).times
    if times is None:
        return kinds
    for profile in profiles:
        if any(demands(program, profile)):
            continue
        prices = price_table(program, times.formula, ManyProfiles([profile]), np.arange(1), traced=False)
        own, queued = times(prices), times.queued(prices)
        if not queued.undecided:
            run = simulate(program, profile)
            assert (run.cycles, *run.ends) == (queued.cycles, *queued.ends), profile.name
            assert run.faults == ()
        kinds["own order" if not own.undecided else "other order" if not queued.undecided else "undecided"] += 1
    return kinds


@pytest.mark.parametrize("first", long_but([0, 20], slow_but([0], range(0, 400, 20))))
@pytest.mark.parametrize("family", TIMED_FAMILIES)
def test_random_programs(family: str, first: int) -> None:
    """Also where the program says all order: then nothing is left to decide."""
    kinds: Counter[str] = Counter()
    for seed in range(first, first + 20):
        others = [make(10 * seed + n) for make in (near, drawn, tight) for n in range(3)]
        kinds += compared(TIMED_FAMILIES[family](seed), [H100, *others])
    assert kinds["own order"] or first
    assert kinds["other order"] > 20 or family != "copies"


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("gemm_sm100", {"tiles": 5}),
        ("cutlass_sm90_cooperative", {}),
        ("cutlass_sm90_pingpong", {}),
        ("conv_epilogue", {}),
        ("persistent_scheduler", {}),
        ("cluster_multicast", {}),
    ],
)
def test_built_in_protocols(name: str, params: dict[str, int]) -> None:
    program = find(name).build(params)
    kinds = compared(program, [near(seed) for seed in range(12)])
    assert kinds["own order"]
    assert kinds["other order"] or name not in {"gemm_sm100", "cutlass_sm90_cooperative"}
    assert kinds["undecided"] <= 4 or name == "cutlass_sm90_pingpong"  # its groups multiply in many orders


def copies(begins: Sequence[int], nbytes: int) -> Program:
    """Each warp works for so many cycles, then loads a tile and waits for it, twice."""
    p = Protocol("copies")
    warps = len(begins)
    tile, full = p.smem("tile", 2 * warps, nbytes), p.mbarriers("full", 2 * warps)

    def init() -> None:
        for bar in full:
            bar.init(1)

    p.init(init)

    @p.role("copy", warps=warps)
    def copy(w: Warp) -> None:
        w.work(begins[w.index])
        with w.elect_one():
            for n in (2 * w.index, 2 * w.index + 1):
                full[n].expect_bytes(nbytes)
                w.tma_load(tile[n], full[n], 0)
                full[n].wait(0)

    return p.flatten({})


def formula_of(program: Program, profile: Profile) -> FormulaTimes:
    times = derived(program, profile).times
    assert times is not None
    return times


def test_the_order_matters() -> None:
    """The twin: evaluated in the order of another run, without asking for it, the times are wrong."""
    program = copies([1, 150], 640)
    early, late = toy(copy_latency=5), toy(copy_latency=300, copy_latency_loaded=300)
    times = formula_of(program, early)
    prices = price_table(program, times.formula, ManyProfiles([late]), np.arange(1), traced=False)
    own, queued = times(prices), times.queued(prices)
    assert own.undecided
    assert not queued.undecided
    assert own.ends != queued.ends
    assert tuple(queued.ends) == simulate(program, late).ends


@pytest.mark.parametrize("begins", [(5, 5), (5, 5, 5), (9, 5, 5, 7)])
def test_of_two_in_one_cycle_the_lower_is_first(begins: tuple[int, ...]) -> None:
    profiles = [toy(copy_latency=latency, copy_bytes_per_kcycle=rate) for latency in (1, 9) for rate in (999, 16_000)]
    assert compared(copies(begins, 64), profiles)["undecided"] == 0


def test_copies_that_take_no_time_to_issue_are_in_doubt() -> None:
    """Then one in a cycle can lead to another one in the same."""
    instant = toy(copy_issue=0)
    assert compared(copies([5, 5], 64), [instant])["undecided"] == 1
    assert compared(copies([5, 400], 64), [instant])["undecided"] == 0


def test_some_profiles_are_worth_it() -> None:
    """Few profiles of another order are simulated; of many none is, in whatever calls they come."""
    profiles = [near(seed) for seed in range(40)]
    few, many = (find("gemm_sm100").build({"tiles": 5}) for _ in range(2))
    assert times_of(few, profiles[:6]).simulated.any()
    assert not times_of(many, profiles).simulated.any()
    one_by_one = [bool(times_of(few, [profile]).simulated[0]) for profile in profiles]
    assert 0 < sum(one_by_one) < LEAST_REORDERED
    assert not any(one_by_one[-20:])


def test_every_instruction_is_in_one_block() -> None:
    """A use and what depends on it are in different ones, which name how many uses of each agent they need."""
    formula = formula_of(find("gemm_sm100").build({"tiles": 3}), H100).formula
    plan = QueuePlan(formula)
    kinds = Counter(what for block in plan.blocks.values() for what, *_ in block.instructions)
    for what, times in Counter(what for what, *_ in formula.instructions).items():
        if what == Do.COPY:
            assert times == sum(map(len, plan.uses)) == sum(block.timed.total() for block in plan.blocks.values())
        elif what != Do.IN_TURN and what != Do.SAVE:
            assert kinds[what] == times
    assert all(granted[user] <= len(uses) for granted in plan.blocks for user, uses in enumerate(plan.uses))
