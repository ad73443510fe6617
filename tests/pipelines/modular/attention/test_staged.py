"""``PipelineState``, ``StagedPipeline``, ``KVPipelineGeneric``: slices, which method steps, which slice it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim import pipelines
from pipesim.errors import ProtocolError
from pipesim.explain.phases import run_canonically
from pipesim.lang.predicate import elect
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import Slot
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.ops import Engine, Op, Operation
from pipesim.model.program import Program
from pipesim.pipelines import KVPipelineGeneric, PipelineState, StagedPipeline
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile

KV, QK = 3, 2
N = KV * QK  # producers 0..5, consumers 6..11
Body = Callable[[StagedPipeline, Warp], Any]


def recorded(body: Body, kv: int = KV, qk: int = QK) -> list[Operation]:
    """What ``body`` records in a role of its own, without the prologue."""
    p = Protocol("staged")
    storage = p.mbarriers("pipe", 2 * kv * qk, count=1)

    @p.role("r")
    def r(w: Warp) -> None:
        body(StagedPipeline(storage, kv, qk), w)

    return list(p.flatten().code[0][2 * kv * qk + 2 :])


def in_role(body: Callable[[], Any]) -> None:
    p = Protocol("state")
    p.mbarriers("b", 1, count=1)
    p.role("r")(lambda _: body())
    p.flatten()


def wait(barrier: int, parity: int) -> Operation:
    return (Op.WAIT, barrier, parity, 0)


def commit(barrier: int) -> Operation:
    return (Op.COMMIT, Engine.TCGEN05, barrier)


def stands(state: PipelineState) -> tuple[int, int, int]:
    return state.index(), state.phase(), state.count()


def test_the_api_surface_is_complete() -> None:
    members = {
        "PipelineState": "index phase count step next copy",
        "StagedPipeline": (
            "num_mbars init producer_mbar consumer_mbar producer_acquire consumer_wait consumer_release "
            "consumer_release_at copy"
        ),
        "KVPipelineGeneric": "init producer_acquire consumer_wait consumer_release",
    }
    assert set(pipelines.__all__) >= set(members)
    for name, wanted in members.items():
        for member in wanted.split():
            assert getattr(getattr(pipelines, name), member).__doc__, f"{name}.{member} says what it does"


@pytest.mark.parametrize("stages", [1, 2, 5])
def test_a_state_wraps_and_only_then_its_phase_toggles(stages: int) -> None:
    def body() -> None:
        state = PipelineState(stages)
        for n in range(3 * stages):
            assert stands(state) == (n % stages, n // stages & 1, n)
            state.step()
        primed = PipelineState(stages, 0, 1, 0)
        assert stands(primed) == (0, 1, 0)
        after = primed.next()
        assert stands(after) == stands(primed) == (1 % stages, int(stages > 1), 1)
        after.step()
        assert stands(primed)[2] == 1, "next() returns a copy"

    in_role(body)


def test_a_state_without_stages_never_moves() -> None:
    def body() -> None:
        state = PipelineState(0)
        state.step()
        assert stands(state) == (0, 0, 0)
        with pytest.raises(ProtocolError, match="a ring of -1 stages"):
            PipelineState(-1)

    in_role(body)


def test_producers_lie_first_then_consumers_slice_by_slice() -> None:
    """Not in {producer, consumer} pairs, which is what upstream's comment says."""

    def body(pipe: StagedPipeline, _: Warp) -> None:
        assert (pipe.num_stages, StagedPipeline.num_mbars(KV, QK), StagedPipeline.num_mbars(KV)) == (6, 12, 6)
        for slot in range(KV):
            for q in range(QK):
                assert pipe.producer_mbar(q).index == QK * slot + q
                assert pipe.consumer_mbar(q).index == pipe.consumer_mbar(q, slot).index == N + QK * slot + q
            assert pipe.producer_mbar().index == QK * slot, "a barrier is named for slice 0 unless another is named"
            assert pipe.consumer_mbar().index == N + QK * slot
            pipe.state.step()

    assert recorded(body) == []


CALLS: dict[str, tuple[Body, list[Operation], int]] = {
    "producer_acquire()": (lambda p, _: p.producer_acquire(), [wait(N + 1, 0)], 0),
    "producer_acquire(0)": (lambda p, _: p.producer_acquire(0), [wait(N, 0)], 0),
    "consumer_wait()": (lambda p, _: p.consumer_wait(), [wait(1, 0)], 0),
    "consumer_wait(0)": (lambda p, _: p.consumer_wait(0), [wait(0, 0)], 0),
    "consumer_release(e)": (lambda p, _: p.consumer_release(elect()), [commit(N + 1)], 1),
    "consumer_release(e, 0)": (lambda p, _: p.consumer_release(elect(), 0), [commit(N)], 0),
    "consumer_release(e, 1)": (lambda p, _: p.consumer_release(elect(), 1), [commit(N + 1)], 1),
    "consumer_release(0)": (lambda p, _: p.consumer_release(0), [], 1),
    "consumer_release_at(2, e)": (lambda p, _: p.consumer_release_at(2, elect()), [commit(N + 5)], 0),
    "consumer_release_at(2, 0)": (lambda p, _: p.consumer_release_at(2, 0), [], 0),
    "state.step()": (lambda p, _: p.state.step(), [], 1),
}


@pytest.mark.parametrize("call", CALLS)
def test_each_call_waits_signals_and_steps_as_upstream_does(call: str) -> None:
    body, expected, steps = CALLS[call]

    def then(pipe: StagedPipeline, w: Warp) -> None:
        body(pipe, w)
        assert stands(pipe.state) == (steps, 0, steps)

    assert recorded(then) == expected


def test_a_lap_later_the_same_slots_have_the_other_phase() -> None:
    def body(pipe: StagedPipeline, _w: Warp) -> None:
        for _ in range(3):
            pipe.consumer_wait(0)
            pipe.consumer_release(elect(), 0)
            pipe.consumer_wait()
            pipe.consumer_release(elect())

    assert recorded(body, kv=2) == [
        wait(0, 0), commit(4), wait(1, 0), commit(5), wait(2, 0), commit(6), wait(3, 0), commit(7),
        wait(0, 1), commit(4), wait(1, 1), commit(5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda p: p.producer_mbar(QK), "slice 2 of 2"),
        (lambda p: p.consumer_wait(-1), "slice -1 of 2"),
        (lambda p: p.consumer_release_at(KV, elect()), "slot 3 of 3"),
        (lambda p: StagedPipeline(p.mbar, 0), "0 slots in 1 slices"),
        (lambda p: StagedPipeline(p.mbar, KV, QK + 1), "needs 18 mbarriers; pipe has 12 from 0 on"),
        (lambda p: StagedPipeline(p.mbar.storage[1], KV, QK), "needs 12 mbarriers; pipe has 11 from 1 on"),
    ],
)
def test_what_upstream_does_not_check_is_an_error_here(call: Callable[[StagedPipeline], Any], said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        recorded(lambda pipe, _: call(pipe))


def test_a_pipeline_may_lie_anywhere_in_a_storage_and_keeps_its_name_there() -> None:
    p = Protocol("two")
    storage = p.mbarriers("kv", 7, count=1)

    @p.role("r")
    def r(w: Warp) -> None:
        assert StagedPipeline(storage, 1, name="K").consumer_mbar().index == 1
        v = StagedPipeline(storage[3], 2, name="V")
        assert (v.mbar.index, v.consumer_mbar().index) == (3, 5)
        StagedPipeline(storage[3], 1)

    names = [p.flatten().barrier_name(b) for b in range(7)]
    assert names == ["K.full[0]", "K.empty[0]", "kv[2]", "V.full[0]", "V.full[1]", "V.empty[0]", "V.empty[1]"]


def test_a_copy_has_a_state_of_its_own_over_the_same_barriers() -> None:
    def body(pipe: StagedPipeline, _: Warp) -> None:
        pipe.state.step()
        twin = pipe.copy()
        twin.consumer_release(elect())
        assert (stands(twin.state), stands(pipe.state)) == ((2, 0, 2), (1, 0, 1))
        assert twin.consumer_mbar(0, 0) is pipe.consumer_mbar(0, 0)

    assert recorded(body) == [commit(N + 3)]


def test_another_role_s_counters_are_not_shared() -> None:
    p = Protocol("shared")
    storage = p.mbarriers("pipe", 2, count=1)
    kept: list[StagedPipeline] = []

    @p.role("a")
    def a(w: Warp) -> None:
        kept.append(StagedPipeline(storage, 1))

    @p.role("b")
    def b(w: Warp) -> None:
        kept[-1].consumer_wait()

    with pytest.raises(ProtocolError, match="b uses the StagedPipeline that a made") as caught:
        p.flatten()
    assert "inside each role" in caught.value.correction


@pytest.mark.parametrize(
    ("make", "counts"),
    [
        (lambda s: StagedPipeline(s, 2, 2), [1] * 8),
        (lambda s: KVPipelineGeneric(s, 2, 2, num_producer=128, num_consumer=2), [128] * 4 + [2] * 4),
    ],
)
def test_init_gives_each_side_its_count(make: Callable[[BarrierStorage], StagedPipeline], counts: list[int]) -> None:
    p = Protocol("init")
    storage = p.mbarriers("pipe", 8)
    p.init(lambda: make(storage).init())
    p.role("r")(lambda _: None)
    inits = [op for op in p.flatten().code[0] if op[0] == Op.INIT]
    assert inits == [(Op.INIT, barrier, count) for barrier, count in enumerate(counts)]


# what the traps do when they are run

NBYTES = 4096


def ring(
    *, phase: int = 1, wait_all: bool = True, acquire_all: bool = True, backwards: bool = False, tiles: int = 5
) -> Program:
    """Load → MMA in two slots of two slices, right by default: every slice is waited for on both sides."""
    p = Protocol("ring")
    slots = p.smem("K", 2, QK * NBYTES)
    storage = p.mbarriers("pipe", StagedPipeline.num_mbars(2, QK))
    p.init(lambda: StagedPipeline(storage, 2, QK).init())

    @p.role("load")
    def load(w: Warp) -> None:
        pipe = StagedPipeline(storage, 2, QK)
        pipe.state = PipelineState(2, 0, phase, 0)
        with w.elect_one():
            for i in range(tiles):
                if not acquire_all:
                    pipe.producer_acquire()
                for q in range(QK):
                    if acquire_all:
                        pipe.producer_acquire(q)
                    pipe.producer_mbar(q).expect_bytes(NBYTES)
                    w.tma_load(slots[pipe.state.index()].part(q * NBYTES, NBYTES), pipe.producer_mbar(q), i)
                pipe.state.step()

    @p.role("mma")
    def mma(w: Warp) -> None:
        pipe = StagedPipeline(storage, 2, QK)
        with w.elect_one():
            for i in range(tiles):
                slot = slots[pipe.state.index()]
                slices = [(q, slot.part(q * NBYTES, NBYTES)) for q in range(QK)]
                if backwards:
                    multiply_backwards(w, pipe, slices, i)
                else:
                    multiply(w, pipe, slices, i, wait_all=wait_all)

    return p.flatten()


def multiply(w: Warp, pipe: StagedPipeline, slices: list[tuple[int, Slot]], item: int, *, wait_all: bool) -> None:
    if not wait_all:
        pipe.consumer_wait()
    for q, part in slices:
        if wait_all:
            pipe.consumer_wait(q)
        w.mma(Engine.TCGEN05, reads=[(part, item)])
        pipe.consumer_release(elect(), q)


def multiply_backwards(w: Warp, pipe: StagedPipeline, slices: list[tuple[int, Slot]], item: int) -> None:
    """The last slice first, so that the first is the last to be freed."""
    for q, part in reversed(slices):
        pipe.consumer_wait(q)
        w.mma(Engine.TCGEN05, reads=[(part, item)])
        w.commit(Engine.TCGEN05, pipe.consumer_mbar(q))
    pipe.state.step()


def test_a_ring_that_names_every_slice_is_right(outcomes: Any) -> None:
    assert outcomes(ring(), schedules=100) == {"finished"}
    assert outcomes(ring(backwards=True), schedules=100) == {"finished"}
    assert simulate(ring(), load_profile("h100")).outcome == Ending.FINISHED


def test_a_producer_that_leaves_the_constructor_s_phase_0_waits_for_ever(outcomes: Any) -> None:
    assert outcomes(ring(phase=0), schedules=20) == {"stuck"}
    result = simulate(ring(phase=0), load_profile("h100"))
    assert result.outcome == Ending.DEADLOCK


def test_the_default_of_consumer_wait_is_the_last_slice_alone(outcomes: Any) -> None:
    """The slices land in any order: slice 1 may be there when slice 0 is not."""
    wrong = outcomes(ring(wait_all=False), schedules=100)
    assert wrong - {"finished"} == {"RACE"}


def test_the_default_of_producer_acquire_is_the_last_slice_alone(outcomes: Any) -> None:
    """Enough where the MMA frees slice 0 first, since its commits keep their order; not where it frees it last."""
    assert outcomes(ring(acquire_all=False), schedules=100) == {"finished"}
    wrong = outcomes(ring(acquire_all=False, backwards=True), schedules=200)
    assert "RACE" in wrong, wrong


def fused(*, release_v: bool = True, tiles: int = 4) -> Program:
    """K0 V0 K1 V1 … in one ring of three; V of the iteration before is held while K is, and freed by its index."""
    p = Protocol("fused")
    slots = p.smem("KV", 3, NBYTES)
    storage = p.mbarriers("kv", StagedPipeline.num_mbars(3))
    p.init(lambda: StagedPipeline(storage, 3).init())

    @p.role("load")
    def load(w: Warp) -> None:
        pipe = StagedPipeline(storage, 3)
        pipe.state = PipelineState(3, 0, 1, 0)
        with w.elect_one():
            for i in range(2 * tiles):
                pipe.producer_acquire()
                pipe.producer_mbar().expect_bytes(NBYTES)
                w.tma_load(slots[pipe.state.index()], pipe.producer_mbar(), i)
                pipe.state.step()

    @p.role("mma")
    def mma(w: Warp) -> None:
        pipe = StagedPipeline(storage, 3)

        def multiply(slot: int, item: int) -> None:
            w.mma(Engine.TCGEN05, reads=[(slots[slot], item)])

        with w.elect_one():
            v_slot = -1
            for i in range(tiles):
                pipe.consumer_wait()
                multiply(pipe.state.index(), 2 * i)
                if i:
                    multiply(v_slot, 2 * i - 1)
                    if release_v:
                        pipe.consumer_release_at(v_slot, elect())
                pipe.consumer_release(elect())
                pipe.consumer_wait()
                v_slot = pipe.state.index()
                multiply(v_slot, 2 * i + 1)
                pipe.state.step()
            pipe.consumer_release_at(v_slot, elect())

    return p.flatten()


def test_v_is_freed_late_and_by_its_index(outcomes: Any) -> None:
    assert outcomes(fused(), schedules=60) == {"finished"}
    end = run_canonically(fused())
    assert [b.done for b in end.state.barriers] == [3, 3, 2, 3, 3, 2]


def test_a_v_that_is_never_freed_stops_the_load(outcomes: Any) -> None:
    assert outcomes(fused(release_v=False), schedules=20) == {"stuck"}


def mla(*, lanes: int = 32) -> Program:
    """Filled by a warp of ``cp.async`` lanes, freed by two MMAs: counts other than 1."""
    p = Protocol("mla")
    storage = p.mbarriers("kv", StagedPipeline.num_mbars(2))
    p.init(lambda: KVPipelineGeneric(storage, 2, 1, num_producer=32, num_consumer=2).init())

    @p.role("load")
    def load(w: Warp) -> None:
        pipe = KVPipelineGeneric(storage, 2, 1, 32, 2)
        pipe.state = PipelineState(2, 0, 1, 0)
        for _ in range(5):
            pipe.producer_acquire()
            with w.lanes(lanes):
                pipe.producer_mbar().arrive()
            pipe.state.step()

    @p.role("mma", warps=2)
    def mma(w: Warp) -> None:
        pipe = KVPipelineGeneric(storage, 2, 1, 32, 2)
        for _ in range(5):
            pipe.consumer_wait()
            pipe.consumer_release(elect())

    return p.flatten()


def test_mla_s_pipeline_counts_all_its_arrivals(outcomes: Any) -> None:
    assert outcomes(mla(), schedules=40) == {"finished"}
    assert outcomes(mla(lanes=31), schedules=20) == {"stuck"}
