"""The critical cycle: no schedule is faster, it says what sets the period, and it is silent where there is none."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.conform.steady import read
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.moves import run_canonically
from pipesim.model.ops import Engine, Op
from pipesim.model.program import Program
from pipesim.model.steady import waits_per_trip
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.protocols.blackwell.attention_sm100 import attention_sm100
from pipesim.timed.bounds import critical
from pipesim.timed.bounds.critical import Bound, least_period
from pipesim.timed.bounds.earliest import Earliest
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile
from tests.support.present import present
from tests.support.timed_ring import TOY, Ring, stamps, toy
from tests.support.timed_ring import flat_ring as ring
from tests.support.timed_ring import ring as ring_of

BYTES = 64


@dataclass(frozen=True)
class Link:
    """One role of a chain: it takes from the ring before it, works, and hands on to a ring of ``stages``.

    With ``engine`` cycles it hands on by an MMA's commit, which also hands back what it took.
    """

    stages: int = 2
    work: int = 0
    warps: int = 1
    engine: int = 0


def chain(links: list[Link], tiles: int = 64) -> Protocol:
    """A load role, then a role for each link; the last hands on to nobody. Link 0's stages are the load's ring."""
    p = Protocol("chain")
    slots = p.smem("tile", links[0].stages, BYTES)
    acc = [p.tmem(f"acc{n}", link.stages, BYTES) for n, link in enumerate(links)]
    bars = [p.mbarriers(f"p{n}", 2 * link.stages) for n, link in enumerate(links)]

    @p.init
    def init() -> None:
        for n, link in enumerate(links):  # the MMA is one arrival, an elected lane of each warp is one
            taker = 1 if link.engine else link.warps
            giver = 1 if n == 0 or links[n - 1].engine else links[n - 1].warps
            ProducerConsumerPipeline(bars[n], link.stages).init_mbars(giver, taker)

    @p.role("load")
    def load(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(bars[0], links[0].stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(BYTES)
                    w.tma_load(slots[stage.index()], stage.mbar(), i)

    for n, link in enumerate(links):
        p.role(f"r{n}", warps=1 if link.engine else link.warps)(_role(links, bars, acc, slots, n, tiles))
    return p


def _role(
    links: list[Link], bars: list[BarrierStorage], acc: list[TileArray], slots: TileArray, n: int, tiles: int
) -> Callable[[Warp], None]:
    """What link ``n`` of the chain does."""
    link, last = links[n], n + 1 == len(links)

    def body(w: Warp) -> None:
        takes = ProducerConsumerPipeline(bars[n], link.stages)
        gives = None if last else ProducerConsumerPipeline(bars[n + 1], links[n + 1].stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                takes.wait_producer()
                source = takes.consumer_mbar(takes.consumer_stage())
                if gives is not None:
                    gives.wait_consumer()
                if link.engine:
                    reads = [(slots[takes.consumer_stage()], i)] if n == 0 else []
                    to = acc[n][0] if gives is None else acc[n][gives.producer_stage() % link.stages]
                    w.mma(Engine.TCGEN05, reads=reads, writes=[(to, i)], cycles=link.engine)
                    w.commit(Engine.TCGEN05, source)
                else:
                    if n == 0:
                        w.read(slots[takes.consumer_stage()], i)
                    w.work(link.work)
                    source.arrive()
                if gives is not None:
                    full = gives.producer_mbar(gives.producer_stage())
                    if link.engine:
                        w.commit(Engine.TCGEN05, full)
                    else:
                        full.arrive()
                    gives.producer_step()
                takes.consumer_step()

    return body


SMALL = st.integers(0, 40)
SMOOTH = {
    "wait_issue": SMALL, "wait_wake_up": SMALL, "arrive_issue": SMALL, "arrive_latency": SMALL, "expect_issue": SMALL,
    "copy_issue": SMALL, "copy_latency": st.integers(0, 300), "copy_bytes_per_kcycle": st.integers(500, 20_000),
    "read_issue": SMALL, "work_issue": SMALL, "loop_issue": SMALL, "other_issue": SMALL, "sync_latency": SMALL,
    "transfer_latency": st.integers(0, 300),
}  # fmt: skip
ROUGH = SMOOTH | {
    "wait_retry": SMALL, "wait_poll": st.integers(1, 60), "copy_cold": st.integers(0, 100),
    "record_issue": st.integers(0, 9),
}  # fmt: skip
RINGS = st.fixed_dictionaries({
    "stages": st.integers(1, 5), "warps": st.integers(1, 3), "work": st.integers(0, 200), "tries": st.booleans(),
})  # fmt: skip
LINKS = st.lists(
    st.builds(
        Link, st.integers(1, 3), st.integers(0, 200), st.integers(1, 2), st.one_of(st.just(0), st.integers(1, 200))
    ),
    min_size=2,
    max_size=4,
)


def period(program: Program, profile: Profile) -> int:
    reading = present(read(simulate(program, profile).trace, waits_per_trip(program)))
    return present(reading.period_millicycles)


def bound(program: Program, profile: Profile) -> Bound:
    return present(least_period(program, profile))


# A trip of the toy ring: the producer waits 5, expects 4, copies 6, loops 2; a consumer waits 5, reads 2, arrives 7,
# loops 2; the engine takes 4. Round the ring: 4 to the copy's issue, 54 for it, 3 + 5 for the two waits, 2 to read, 2
# until the arrive is seen.
AROUND = "the critical cycle load's copy → full → use's arrive → empty"
CONSUMED = "the critical cycle load's copy → p0.full → r0's arrive → p0.empty"


@pytest.mark.parametrize(
    ("by", "cycles", "program", "prices"),
    [
        # waits 5 + 5, work 91, arrives 7 + 7, loop 2
        ("the iteration of r1", 117, chain([Link(3, 20), Link(3, 90), Link(3, 20)]), {}),
        ("the matrix engine", 150, chain([Link(4, engine=150), Link(4, 20)]), {}),
        (CONSUMED, 136, chain([Link(1, 60), Link(4, 10)]), {}),
        (CONSUMED + " over 2 iterations", 39, chain([Link(2, 2), Link(4, 10)]), {}),
        (
            "the critical cycle r0's arrive → p1.full → r1's arrive → p1.empty",
            135,
            chain([Link(4, 20), Link(1, 90)]),
            {},
        ),
        (
            "the critical cycle r0's commit → p1.full → r1's arrive → p1.empty",
            201,
            chain([Link(4, engine=50), Link(1, 50)]),
            {},
        ),
        ("the iteration of load", 17, ring_of(Ring(stages=8, tiles=64)), {}),
        ("the iteration of use", 47, ring_of(Ring(stages=8, tiles=64, work=30)), {}),
        ("the copy engine", 40, ring_of(Ring(stages=8, tiles=64)), {"copy_bytes_per_kcycle": 1_600}),
        (AROUND, 70, ring_of(Ring(stages=1, tiles=64)), {}),
        (AROUND + " over 2 iterations", 35, ring_of(Ring(stages=2, tiles=64)), {}),
    ],
)
def test_what_sets_the_period(by: str, cycles: int, program: Protocol, prices: dict[str, int]) -> None:
    flat, profile = program.flatten({}), toy(**prices)
    found = bound(flat, profile)
    assert found.by == by
    assert dict(found.terms)[by] == found.period_millicycles == max(value for _, value in found.terms)
    assert period(flat, profile) == found.period_millicycles == 1000 * cycles  # and here it is reached


#: A chip whose copies hold up no attention kernel.
QUICK_COPIES = {name: 40_000_000 for name in TOY if name.startswith("copy.") and name.endswith("bytes_per_kcycle")}


def attention(softmax: int) -> Program:
    return attention_sm100(kv_blocks=48, softmax=softmax).flatten({})


@pytest.mark.slow
def test_what_sets_the_period_of_an_attention() -> None:
    """Quick softmax: the MMAs; slow: from the first MMA to the probabilities that the second one needs."""
    profile = toy(**{name.replace(".", "_"): value for name, value in QUICK_COPIES.items()})
    for cycles, by, expected in (
        (10, "the matrix engine", 2_048_000),
        (4_000, "the critical cycle mma's commit → S0_prod → softmax0's arrive → S0_cons", 5_144_000),
    ):
        program = attention(cycles)
        found = bound(program, profile)
        assert (found.by, found.period_millicycles) == (by, expected) == (found.by, period(program, profile))


@pytest.mark.slow
def test_a_period_is_that_of_a_trip_however_often_the_last_agent_waits() -> None:
    program = attention(4_000)
    assert waits_per_trip(program) == 2
    per_trip, per_wait = read(simulate(program, toy()).trace, 2), read(simulate(program, toy()).trace)
    assert per_trip is not None
    assert per_wait is not None
    assert per_trip.period_millicycles == pytest.approx(2 * (per_wait.period_millicycles or 0), rel=0.01)
    assert bound(program, toy()).period_millicycles <= (per_trip.period_millicycles or 0)


@pytest.mark.slow
@settings(max_examples=10, deadline=None, derandomize=True)
@given(links=LINKS, prices=st.fixed_dictionaries(ROUGH), traced=st.booleans())
def test_no_event_of_a_simulated_chain_is_earlier_than_the_earliest(
    links: list[Any], prices: dict[str, int], traced: bool
) -> None:
    program = chain(links, tiles=7).flatten({})
    profile = toy(**prices, copy_latency_loaded=prices["copy_latency"])
    never_before(program, profile, traced=traced)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(shape=RINGS, prices=st.fixed_dictionaries(ROUGH), traced=st.booleans())
def test_no_event_of_a_simulated_ring_is_earlier_than_the_earliest(
    shape: dict[str, Any], prices: dict[str, int], traced: bool
) -> None:
    profile = toy(**prices, copy_latency_loaded=prices["copy_latency"])
    never_before(ring(**shape, tiles=9), profile, traced=traced)


def never_before(program: Program, profile: Profile, *, traced: bool) -> None:
    times = Earliest(program, profile, traced=traced)
    assert run_canonically(program, times).finished
    result = simulate(program, profile, traced=traced)
    assert result.outcome is Ending.FINISHED
    assert result.cycles >= times.end
    if not any(op[0] in (Op.TRY_WAIT, Op.WAIT_UNLESS) for op in program.operations):
        for (agent, pc), seen in stamps(program, result.trace).items():
            assert not seen or seen[0] >= times.events[times.issues[agent][pc]].time


@pytest.mark.slow
@settings(max_examples=10, deadline=None, derandomize=True)
@given(links=LINKS, prices=st.fixed_dictionaries(ROUGH), traced=st.booleans())
def test_no_chain_is_faster_than_its_bound(links: list[Any], prices: dict[str, int], traced: bool) -> None:
    """A chain of T tiles takes at least T - S periods, S the stages of all its rings.

    A window of the steady part may show less by up to S tiles in its length: it is not whole laps of every ring.
    """
    tiles = 48
    program = chain(links, tiles=tiles).flatten({})
    profile = toy(**prices, copy_latency_loaded=prices["copy_latency"])
    found = present(least_period(program, profile, traced=traced))
    result = simulate(program, profile, traced=traced)
    assert 1000 * result.cycles >= found.period_millicycles * (tiles - sum(link.stages for link in links))


def test_it_is_silent_about_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ring(stages=2, tiles=16, work=30)
    assert least_period(whole, toy()) is not None
    work = [pc for pc, op in enumerate(whole.code[1]) if op[0] == Op.WORK][8]
    longer = (*whole.code[1][:work], (int(Op.WORK), 999), *whole.code[1][work + 1 :])
    jump = (int(Op.JUMP_IF), 0, 1, 0)
    for other in (
        replace(whole, code=(whole.code[0], longer)),
        replace(
            whole,
            registers=1,
            code=(whole.code[0], (*whole.code[1], jump)),
            lines=(whole.lines[0], (*whole.lines[1], 0)),
        ),
        ring(stages=2, tiles=16, arrives=3),
        ring(stages=2, tiles=0),
    ):
        assert least_period(other, toy()) is None
    monkeypatch.setattr(critical, "MOST_OPERATIONS", 100)
    assert least_period(whole, toy()) is None


def everything(trips: int, cluster: int = 2) -> Program:
    """What chains lack: named and cluster barriers, groups, cp.async, multicasts, states, stores, two CTAs."""
    p = Protocol("everything", cluster=cluster)
    tile, out = p.smem("tile", 1, 64), p.smem("out", 1, 64)
    full, empty, copied, mine = (p.mbarriers(name, 1) for name in ("full", "empty", "copied", "mine"))

    @p.init
    def init() -> None:
        for bars, count in ((full, 1), (empty, cluster), (copied, 33), (mine, 32)):
            bars[0].init(count)

    @p.role("load")
    def load(w: Any) -> None:
        for i in w.loop(trips, "tiles"):
            with w.elect_one():
                if w.cta == 0:
                    empty[0].wait(1 - (i & 1))
                full[0].expect_bytes(64)
                if w.cta == 0:
                    w.tma_load(tile[0], full[0], i, cta_mask=(1 << cluster) - 1)
            w.cluster_sync()

    @p.role("use")
    def use(w: Any) -> None:
        for i in w.loop(trips, "tiles"):
            full[0].wait(i & 1)
            w.read(tile[0], i)
            w.cluster_sync()
            with w.elect_one():
                empty[0].arrive_cluster(0)
                w.write(out[0], i)
                w.async_read(Engine.BULK, out[0], i)
                w.commit(Engine.BULK)
                w.wait_group(Engine.BULK, 0)
            w.bar_sync(1, 64)

    @p.role("other")
    def other(w: Any) -> None:
        for i in w.loop(trips, "tiles"):
            w.cluster_sync()
            mine[0].wait_state(mine[0].arrive())
            copied[0].cp_async_arrive(noinc=True)
            with w.elect_one():
                copied[0].arrive()
            copied[0].wait(i & 1)
            w.bar_sync(1, 64)

    @p.role("last")
    def last(w: Any) -> None:
        for _ in w.loop(trips, "tiles"):
            w.cluster_sync()

    return p.flatten()


@pytest.mark.slow
@settings(max_examples=8, deadline=None, derandomize=True)
@given(prices=st.fixed_dictionaries(ROUGH), traced=st.booleans())
def test_no_event_of_anything_else_is_earlier_than_the_earliest(prices: dict[str, int], traced: bool) -> None:
    profile = toy(**prices, copy_latency_loaded=prices["copy_latency"])
    result = simulate(everything(4), profile, traced=traced)
    times = Earliest(everything(4), profile, traced=traced)
    assert run_canonically(everything(4), times).finished
    assert result.outcome is Ending.FINISHED
    assert times.end <= result.cycles
    found = least_period(everything(12), profile)
    whole = simulate(everything(12), profile).cycles
    assert found is not None
    assert found.period_millicycles * 11 <= 1000 * whole


def test_barriers_that_are_no_mbarriers_are_named_too() -> None:
    way = "the critical cycle"
    for latency, by, cycles in (
        (500, f"{way} use's arrive → the cluster barrier → use's store → its own transfers", 545),
        (5, f"{way} load's copy → full → use's arrive → the cluster barrier", 80),
    ):
        found = bound(everything(40), toy(transfer_latency=latency))
        assert (found.by, found.period_millicycles) == (by, 1000 * cycles)
