"""``RolePipeline`` and ``MBarPipeline``: the hand-overs of flash attention, and what forgetting a step does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim import pipelines
from pipesim.errors import ProtocolError
from pipesim.lang.predicate import elect
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.ops import Engine, Op, Operation
from pipesim.model.program import Program
from pipesim.pipelines import MBarPipeline, RolePipeline
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile

S, PRODUCER_SUBS, CONSUMER_SUBS = 2, 2, 3
PRODUCERS, CONSUMERS = 0, S * PRODUCER_SUBS  # first barrier of each side
SIZE = S * (PRODUCER_SUBS + CONSUMER_SUBS)
Body = Callable[[RolePipeline, Warp], Any]


def recorded(body: Body, *, is_producer: bool) -> list[Operation]:
    """What ``body`` records in a role of its own, without the prologue."""
    p = Protocol("role")
    storage = p.mbarriers("pipe", SIZE, count=1)

    @p.role("r")
    def r(w: Warp) -> None:
        pipe = RolePipeline(
            storage, storage[CONSUMERS], S,
            is_producer=is_producer, producer_sub_stages=PRODUCER_SUBS, consumer_sub_stages=CONSUMER_SUBS,
        )  # fmt: skip
        body(pipe, w)

    return list(p.flatten().code[0][SIZE + 2 :])


def wait(barrier: int, parity: int) -> Operation:
    return (Op.WAIT, barrier, parity, 0)


def arrive(barrier: int, lanes: int = 32) -> Operation:
    return (Op.ARRIVE, barrier, lanes, 0, -1, 0)


def commit(barrier: int) -> Operation:
    return (Op.COMMIT, Engine.TCGEN05, barrier)


def test_the_api_surface_is_complete() -> None:
    members = {
        "RolePipeline": "producer_mbar consumer_mbar acquire commit commit_mma wait release release_no_step step copy",
        "MBarPipeline": "init num_mbars",
    }
    assert set(pipelines.__all__) >= set(members)
    for name, wanted in members.items():
        for member in wanted.split():
            assert getattr(getattr(pipelines, name), member).__doc__, f"{name}.{member} says what it does"


@pytest.mark.parametrize("is_producer", [True, False])
def test_a_producer_starts_at_phase_1_and_a_consumer_at_0(is_producer: bool) -> None:
    def body(pipe: RolePipeline, _: Warp) -> None:
        assert (pipe.state.index(), pipe.state.phase()) == (0, int(is_producer))
        assert (pipe.num_stages, pipe.is_producer, pipe.cta_group) == (S, is_producer, 1)
        assert (pipe.producer_mbar_base.index, pipe.consumer_mbar_base.index) == (PRODUCERS, CONSUMERS)

    assert recorded(body, is_producer=is_producer) == []


def test_each_stage_has_its_sub_stages_side_by_side() -> None:
    def body(pipe: RolePipeline, _: Warp) -> None:
        for stage in range(S):
            for sub in range(PRODUCER_SUBS):
                assert pipe.producer_mbar(sub).index == PRODUCERS + stage * PRODUCER_SUBS + sub
            for sub in range(CONSUMER_SUBS):
                assert pipe.consumer_mbar(sub).index == CONSUMERS + stage * CONSUMER_SUBS + sub
            pipe.step()

    recorded(body, is_producer=True)


CALLS: dict[str, tuple[Body, bool, list[Operation], int]] = {
    "acquire": (lambda p, _: p.acquire(), True, [wait(CONSUMERS, 1)], 0),
    "acquire(2)": (lambda p, _: p.acquire(2), True, [wait(CONSUMERS + 2, 1)], 0),
    "commit": (lambda p, _: p.commit(), True, [arrive(PRODUCERS)], 1),
    "commit_mma": (lambda p, _: p.commit_mma(), True, [commit(PRODUCERS)], 0),
    "commit_mma(e)": (lambda p, _: p.commit_mma(elect()), True, [commit(PRODUCERS)], 0),
    "commit_mma(0)": (lambda p, _: p.commit_mma(0), True, [], 0),
    "wait": (lambda p, _: p.wait(), False, [wait(PRODUCERS, 0)], 0),
    "release": (lambda p, _: p.release(), False, [arrive(CONSUMERS)], 1),
    "release(2)": (lambda p, _: p.release(2), False, [arrive(CONSUMERS + 2)], 1),
    "release_no_step": (lambda p, _: p.release_no_step(), False, [arrive(CONSUMERS)], 0),
    "release_no_step(1)": (lambda p, _: p.release_no_step(1), False, [arrive(CONSUMERS + 1)], 0),
    "step": (lambda p, _: p.step(), False, [], 1),
}


@pytest.mark.parametrize("call", CALLS)
def test_each_call_waits_signals_and_steps_as_upstream_does(call: str) -> None:
    body, is_producer, expected, steps = CALLS[call]

    def then(pipe: RolePipeline, w: Warp) -> None:
        body(pipe, w)
        assert (pipe.state.index(), pipe.state.phase()) == (steps, int(is_producer))

    assert recorded(then, is_producer=is_producer) == expected


def test_an_arrive_counts_the_lanes_and_a_commit_takes_one() -> None:
    def body(pipe: RolePipeline, w: Warp) -> None:
        with w.lanes(4):
            pipe.commit()
        with w.elect_one():
            pipe.commit()
        with pytest.raises(ProtocolError, match="2 lanes execute"):
            pipe.commit_mma(0b11)

    assert recorded(body, is_producer=True) == [arrive(0, 4), arrive(2, 1)]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda p: p.producer_mbar(PRODUCER_SUBS), "producer sub-stage 2 of 2"),
        (lambda p: p.acquire(CONSUMER_SUBS), "consumer sub-stage 3 of 3"),
        (lambda p: RolePipeline(p.producer_mbar_base, p.consumer_mbar_base, 0), "pipeline of 0 stages"),
        (lambda p: RolePipeline(p.producer_mbar_base, p.consumer_mbar_base, 1, cta_group=3), "CTA group 3"),
        (lambda p: RolePipeline(p.producer_mbar_base, p.consumer_mbar_base, 7), "needs 7 mbarriers; pipe has 6 from 4"),
        (lambda p: MBarPipeline(p.producer_mbar_base, 0), "a pipeline of 0 stages"),
        (lambda p: MBarPipeline(p.producer_mbar_base, 6), "needs 12 mbarriers; pipe has 10"),
    ],
)
def test_what_upstream_does_not_check_is_an_error_here(call: Callable[[RolePipeline], Any], said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        recorded(lambda pipe, _: call(pipe), is_producer=True)


def test_the_sides_of_a_pipeline_are_not_shared_between_roles() -> None:
    p = Protocol("shared")
    storage = p.mbarriers("pipe", 2, count=1)
    kept: list[RolePipeline] = []
    p.role("a")(lambda _: kept.append(RolePipeline(storage[0], storage[1], 1)))
    p.role("b")(lambda _: kept[-1].step())
    with pytest.raises(ProtocolError, match="b uses the RolePipeline that a made"):
        p.flatten()


def test_mbar_pipeline_lies_producers_first_and_counts_each_side() -> None:
    """Not in {producer, consumer} pairs, which is what upstream's comment says."""
    assert MBarPipeline.num_mbars(3) == 6
    p = Protocol("mbar")
    storage = p.mbarriers("S", 6)
    p.init(lambda: MBarPipeline(storage, 3, name="S").init(num_producer=1, num_consumer=128))

    @p.role("r")
    def r(w: Warp) -> None:
        pipe = MBarPipeline(storage, 3)
        assert (pipe.mbar.index, pipe.num_stages, pipe.state.index(), pipe.state.phase()) == (0, 3, 0, 0)

    program = p.flatten()
    inits = [op for op in program.code[0] if op[0] == Op.INIT]
    assert inits == [(Op.INIT, barrier, 1 if barrier < 3 else 128) for barrier in range(6)]
    assert [program.barrier_name(b) for b in (0, 2, 3)] == ["S.full[0]", "S.full[2]", "S.empty[0]"]


def scores(*, stepped: bool = True, released: str = "in slices", tiles: int = 6) -> Program:
    """S of flash attention: the MMA commits a tile of scores, a softmax group gives it back as P in two slices.

    ``released``: "in slices" as it must be, "stepping" if the softmax steps at each slice, "once" if it forgets one.
    """
    p = Protocol("scores")
    tile = p.tmem("scores", 1, 512)
    storage = p.mbarriers("S", 3)

    @p.init
    def init() -> None:
        storage[0].init(1)
        storage[1].init(128)
        storage[2].init(128)

    @p.role("mma")
    def mma(w: Warp) -> None:
        pipe = RolePipeline(storage[0], storage[1], 1, consumer_sub_stages=2)
        with w.elect_one():
            for i in range(tiles):
                for q in range(2):
                    pipe.acquire(q)
                w.mma(Engine.TCGEN05, writes=[(tile[0], i)])
                pipe.commit_mma()
                if stepped:
                    pipe.step()

    @p.role("softmax", warps=4)
    def softmax(w: Warp) -> None:
        pipe = RolePipeline(storage[0], storage[1], 1, is_producer=False, consumer_sub_stages=2)
        for i in range(tiles):
            pipe.wait()
            w.read(tile[0], i)
            if released == "stepping":
                pipe.release(0)
            else:
                pipe.release_no_step(0)
            if released == "once":
                pipe.step()
            else:
                pipe.release(1)

    return p.flatten()


def test_scores_go_to_the_softmax_and_come_back_in_slices(outcomes: Any) -> None:
    assert outcomes(scores(), schedules=60) == {"finished"}
    assert simulate(scores(), load_profile("h100")).outcome == Ending.FINISHED


def test_a_slice_that_is_never_released_hangs(outcomes: Any) -> None:
    assert outcomes(scores(released="once"), schedules=30) == {"stuck"}
    assert simulate(scores(released="once"), load_profile("h100")).outcome == Ending.DEADLOCK


def test_commit_mma_does_not_step(outcomes: Any) -> None:
    """Without the step the producer asks for the phase before the first again: it overwrites, or waits indefinitely."""
    ends = outcomes(scores(stepped=False), schedules=60)
    assert "stuck" in ends
    assert "finished" not in ends


def test_a_step_at_every_slice_lets_the_softmax_run_ahead(outcomes: Any) -> None:
    """Two steps of one stage toggle the phase twice: the next wait looks for the phase that has just completed."""
    wrong = outcomes(scores(released="stepping"), schedules=60)
    assert wrong <= {"WRONG_ITEM", "RACE", "OVER_ARRIVAL"}, wrong
    assert "finished" not in wrong


def ping_pong(*, as_consumer: bool, tiles: int = 4) -> Program:
    """C between softmax and correction over an ``MBarPipeline``; the right consumer is a consumer."""
    p = Protocol("ping-pong")
    storage = p.mbarriers("C", MBarPipeline.num_mbars(1))
    p.init(lambda: MBarPipeline(storage, 1).init(32, 32))

    @p.role("softmax")
    def softmax(w: Warp) -> None:
        pipe = RolePipeline(storage[0], storage[1], 1, is_producer=not as_consumer)
        for _ in range(tiles):
            pipe.acquire()
            pipe.commit()

    @p.role("correction")
    def correction(w: Warp) -> None:
        pipe = RolePipeline(storage[0], storage[1], 1, is_producer=False)
        for _ in range(tiles):
            pipe.wait()
            pipe.release()

    return p.flatten()


def test_a_producer_made_as_a_consumer_waits_for_ever(outcomes: Any) -> None:
    assert outcomes(ping_pong(as_consumer=False), schedules=30) == {"finished"}
    assert outcomes(ping_pong(as_consumer=True), schedules=10) == {"stuck"}
