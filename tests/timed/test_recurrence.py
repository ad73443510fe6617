"""Times without a queue are those of the simulation, to the last cycle; where order depends on times it is said."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.ops import Engine, Fence
from pipesim.model.program import Program
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile, load_profile
from pipesim.timed.recurrence.timings import Timings, times_of
from tests.support.lanes import long_but, slow_but
from tests.support.paths import ROOT
from tests.support.random_profiles import drawn
from tests.support.random_programs import TIMED_FAMILIES
from tests.support.timed_ring import Ring, ring, toy

H100 = load_profile("h100")


def agrees(program: Program, profiles: list[Profile], *, traced: bool) -> Timings:
    """The times of all profiles, each of which is the simulated one; also of each alone."""
    found = times_of(program, profiles, traced=traced)
    for i, profile in enumerate(profiles):
        run = simulate(program, profile, traced=traced)
        alone = times_of(program, [profile], traced=traced)
        assert (run.cycles, *run.ends) == (alone.cycles[0], *alone.ends[:, 0]), profile.name
        assert alone.simulated[0] <= found.simulated[i]  # other orders are worth a compilation by then
        assert (run.cycles, *run.ends) == (found.cycles[i], *found.ends[:, i]), profile.name
        assert found.simulated[i] or (run.outcome, run.faults) == (Ending.FINISHED, ())
    return found


@pytest.mark.parametrize("first", long_but([0, 40], slow_but([0], range(0, 400, 40))))
@pytest.mark.parametrize("family", TIMED_FAMILIES)
def test_random_programs_on_random_profiles(family: str, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipesim.timed.recurrence.evaluate.LEAST_REORDERED", 1)
    kinds: Counter[str] = Counter()
    for seed in range(first, first + 40):
        program = TIMED_FAMILIES[family](seed)
        found = agrees(program, [H100, drawn(seed), drawn(seed + 1000)], traced=seed % 2 == 0)
        kinds["static" if not found.reason else "not static"] += 1
        kinds["by formula"] += not found.simulated[0]
    assert kinds["static"] > 0 or first
    assert kinds["not static"] > 0 or first or family == "copies"


@pytest.mark.parametrize("seed", range(12))
def test_random_rings(seed: int) -> None:
    draw = random.Random(seed)
    stages, tiles, warps = draw.randint(1, 4), draw.randint(0, 12), draw.randint(1, 3)
    program = ring(Ring(stages=stages, tiles=tiles, warps=warps, work=draw.choice([0, 7, 30]))).flatten({})
    found = agrees(program, [H100, *(drawn(100 * seed + n) for n in range(10))], traced=seed % 2 == 0)
    assert found.reason == ""
    assert not found.simulated.all()


def test_it_is_not_blind() -> None:
    """Its twin: a price on everybody's path that is one cycle higher gives other times."""
    program = find("producer_consumer").build({"tiles": 12})
    for name in ("wait.issue", "expect.issue", "copy.latency", "sync.latency", "work.issue"):
        raised = replace(H100, values=H100.values | {name: H100[name] + 1})
        one, other = times_of(program, [H100, raised]).cycles
        assert one != other, name


_REGISTERS = "what a request for registers waits for depends on times"
_TOGETHER = "two warp groups use the same tensor cores"
_SLOWED = "works slow each other, by how much depends on times"
#: Why a built-in protocol has no formula, "": it has one (docs/times.md).
REASONS = {
    "attention_sm100": _REGISTERS,
    "attention_sm90": _SLOWED,
    "attention_sm90_fused": _SLOWED,
    "cluster_multicast": "",
    "conv_epilogue": "",
    "cutlass_sm100": "",
    "cutlass_sm90_cooperative": "",
    "cutlass_sm90_pingpong": "",
    "epilogue_residual": _SLOWED,
    "gemm_sm100": "",
    "gemm_sm100_block_scaled": "",
    "gemm_sm100_blockwise": "",
    "gemm_sm100_grouped": "",
    "gemm_sm100_grouped_1d1d": "",
    "gemm_sm90": _TOGETHER,
    "persistent_scheduler": "",
    "producer_consumer": "",
}


def _multiplies(products: int, batches: int) -> Program:
    """A warp that gives its tensor core products and then works, while the core does them."""
    p = Protocol("multiplies")
    tile, sums = p.smem("tile", 1, 512), p.registers("sums", 1, 512)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        for _ in range(batches):
            w.mma(Engine.WGMMA, reads=[], writes=[(sums[0], 0)], cycles=100)
            w.compute("multiplies/product", mma=products * 32768, products=products)
        w.commit(Engine.WGMMA)
        w.work(3000)
        w.wait_group(Engine.WGMMA)
        w.write(tile[0], 0)

    return p.flatten({})


@pytest.mark.parametrize(("products", "batches"), [(4, 1), (12, 1), (4, 4), (5, 2)])
def test_products_of_one_warp(products: int, batches: int) -> None:
    """A core takes some in advance, then its warp waits; the twin: how many, and how long it issues, is told apart."""
    profiles = [
        replace(H100, values=H100.values | {"mma.queue": ahead, "mma.issue_permille": issue})
        for ahead in (1, 2, 3, 8)
        for issue in (0, 250, 900)
    ]
    found = agrees(_multiplies(products, batches), profiles, traced=False)
    assert found.reason == ""
    assert not found.simulated.any()
    assert len({*found.cycles.tolist()}) > 3


def test_any_number_of_products_is_simulated() -> None:
    """Of a multiplication that is divided among a million instructions many count as one."""
    few, many = (simulate(_multiplies(products, 1), H100).cycles for products in (256, 10**6))
    assert few < many < 10**8


def test_products_that_take_longer_to_issue_than_to_multiply_are_simulated() -> None:
    program = find("gemm_sm90").build({"num_consumer": 1, "tiles": 2, "k_iters": 3})
    slow = replace(H100, values=H100.values | {"mma.issue_permille": 1100})
    assert agrees(program, [H100, slow], traced=False).simulated.tolist() == [False, True]


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_built_in_protocols(name: str) -> None:
    program = find(name).build({})
    draw = random.Random(name)
    near = {field: max(1, value * draw.randint(80, 125) // 100) for field, value in H100.values.items()}
    found = agrees(program, [H100, replace(H100, values=near)], traced=False)
    assert found.reason == REASONS[name]
    assert found.simulated[0] == bool(found.reason)


def test_the_page_says_the_same() -> None:
    page = (ROOT / "docs" / "times.md").read_text()
    said = {name: f"none: {reason}" if reason else "yes" for name, reason in REASONS.items()}
    rows = [f"| `{name}` | {answer} |" for name, answer in said.items()]
    assert "\n".join(rows) in page
    assert f"{list(REASONS.values()).count('')} of the {len(REASONS)} built-in protocols" in page


def test_two_things_in_one_cycle_are_left_to_the_simulation() -> None:
    """A try that asks in the very cycle in which others can see its phase: who is first decides what it finds.

    So under one latency for its first look, and under one for its second.
    """
    program = ring(Ring(stages=2, tiles=3, tries=True)).flatten({})
    waits = replace(toy(), values=toy().values | {"try.limit": 5000})
    profiles = [replace(waits, values=waits.values | {"copy.latency": latency}) for latency in range(1, 80)]
    found = agrees(program, profiles, traced=False)
    assert found.reason == ""
    assert found.simulated.sum() == 2


def test_who_is_first_does_not_matter_to_a_wait_for_a_group() -> None:
    """It asks in the very cycle in which the group is finished, for one of these latencies."""
    found = agrees(_store(), [toy(transfer_latency=latency, other_issue=3) for latency in range(20, 60)], traced=False)
    assert found.reason == ""
    assert not found.simulated.any()


@pytest.mark.parametrize("warps", [1, 4, 5, 8])
def test_of_those_that_use_an_engine_in_one_cycle_the_lower_is_first(warps: int) -> None:
    """Warps begin together and copy: the copies land in the order of their warps, by formula, too."""
    program = _copies(warps)
    profiles = [toy(copy_latency=latency, copy_bytes_per_kcycle=64) for latency in range(10, 30)]
    found = agrees(program, profiles, traced=False)
    assert not found.simulated.any()
    landed = [agent for agent, *_ in simulate(program, profiles[0], landings=True).landings]
    assert landed == list(range(warps))
    assert len(set(found.ends[:, 0])) == warps


def _copies(warps: int) -> Program:
    """Each warp copies a tile and waits for it."""
    p = Protocol("copies")
    tile = p.smem("tile", warps, 64)
    full = p.mbarriers("full", warps)

    def init() -> None:
        for bar in full:
            bar.init(1)

    p.init(init)

    @p.role("copy", warps=warps)
    def copy(w: Warp) -> None:
        with w.elect_one():
            full[w.index].expect_bytes(64)
            w.tma_load(tile[w.index], full[w.index], 0)
            full[w.index].wait(0)

    return p.flatten({})


def _store() -> Program:
    """One agent stores a tile, works, and waits for its group."""
    p = Protocol("store")
    tile = p.smem("tile", 1, 64)

    @p.role("store")
    def store(w: Warp) -> None:
        w.write(tile[0], 0)
        w.fence(Fence.PROXY_ASYNC)
        w.async_read(Engine.BULK, tile[0], 0)
        w.commit(Engine.BULK)
        w.work(30)
        w.wait_group(Engine.BULK)

    return p.flatten({})


def test_works_that_share_a_quarter_are_left_to_the_simulation() -> None:
    """Warps 0 and 4 compute on one quarter: by how much they slow each other depends on when."""
    for warps, simulated in ((1, False), (5, True)):
        found = agrees(_exponentials(warps), [H100, drawn(3)], traced=False)
        assert found.reason == (_SLOWED if simulated else "")
        assert found.simulated.tolist() == [simulated, simulated]


def _exponentials(warps: int) -> Program:
    """Each warp computes exponentials, one tile after the other."""
    p = Protocol("exponentials")

    @p.role("compute", warps=warps)
    def compute(w: Warp) -> None:
        for _ in w.loop(3):
            w.work(500)
            w.compute("exponentials/tile", exp2=64, fma=64)

    return p.flatten({})
