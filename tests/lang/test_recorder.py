"""Recording: lanes become counts, every operation knows its author's line, handles are given back exactly once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipesim.errors import HandleError, ProtocolError
from pipesim.lang import recorder as recording
from pipesim.lang.protocol import Protocol
from pipesim.lang.recorder import recorder
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Op
from pipesim.pipelines import ProducerConsumerPipeline

HERE = Path(__file__).read_text(encoding="utf-8").splitlines()


def line(mark: str) -> str:
    """``file:line`` of the line of this file that ends with the comment ``mark``."""
    return f"{__file__}:{next(i for i, text in enumerate(HERE, 1) if text.endswith(f'# {mark}'))}"


def one_role(body: Callable[[Warp, ProducerConsumerPipeline], object], stages: int = 2) -> Protocol:
    """A protocol whose only role, ``r``, has a pipeline."""
    p = Protocol("one")
    storage = p.mbarriers("pipe", 2 * stages, count=1)

    @p.role("r")
    def r(w: Warp) -> None:
        body(w, ProducerConsumerPipeline(storage, stages))

    return p


def refused(body: Callable[[Warp, ProducerConsumerPipeline], object]) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        one_role(body).flatten()
    return caught.value


def test_an_arrive_counts_the_lanes_that_execute_it() -> None:
    p = Protocol("lanes")
    bars = p.mbarriers("b", 1, count=1)

    @p.role("r")
    def r(w: Warp) -> None:
        bars[0].arrive()
        with w.lanes(4):
            bars[0].arrive(3)
            with w.elect_one():
                bars[0].expect_bytes(64)
            bars[0].expect_bytes(64)
            with w.lanes(32):
                bars[0].arrive()
        bars[0].arrive()

    arrives = [(op[2], op[3]) for op in p.flatten().code[0] if op[0] == Op.ARRIVE]
    assert arrives == [(32, 0), (12, 0), (1, 64), (4, 256), (4, 0), (32, 0)]


def test_an_election_that_leaves_nobody_is_refused_and_changes_nothing() -> None:
    def body(w: Warp, _: ProducerConsumerPipeline) -> None:
        before = recorder().lanes
        with pytest.raises(ProtocolError, match="no lane remains"), recorder().narrow_to(0):
            pass
        assert recorder().lanes == before
        for count in (0, -1, 33):
            with pytest.raises(ProtocolError, match="lanes of a warp"):
                w.lanes(count)
        assert recorder().executing_lanes == 32

    assert one_role(body).flatten()


def test_every_operation_remembers_the_line_of_its_author() -> None:
    def helper(w: Warp) -> None:
        w.work(5)  # in a function of the author's

    def body(w: Warp, pipe: ProducerConsumerPipeline) -> None:
        pipe.full[0].arrive()  # an arrive
        with pipe.consume():  # a context
            helper(w)
        pipe.producer_signal_and_step()  # two operations

    program = one_role(body).flatten()
    found = [program.line(0, pc) for pc in range(len(program.code[0]))]
    assert found[-6:] == [
        line("an arrive"), line("a context"), line("in a function of the author's"), line("a context"),
        line("two operations"), line("two operations"),
    ]  # fmt: skip
    assert program.code[0][-1][0] == Op.ARRIVE


def test_operations_outside_a_role_are_refused_with_their_line() -> None:
    storage = Protocol("p").mbarriers("b", 2)
    with pytest.raises(ProtocolError, match="outside a role") as caught:
        storage[0].arrive()  # outside
    assert caught.value.place == line("outside")
    with pytest.raises(ProtocolError, match="outside a role") as caught:
        ProducerConsumerPipeline(storage, 1)  # made outside
    assert caught.value.place == line("made outside")


def test_a_handle_released_twice() -> None:
    def body(_: Warp, pipe: ProducerConsumerPipeline) -> None:
        stage = pipe.acquire_consumer()  # acquired first
        stage.release()  # released first
        stage.release()  # released again

    error = refused(body)
    assert isinstance(error, HandleError)
    assert error.fact == "r: release() of consumer stage 0 after its release"
    assert error.place == line("released again")
    assert error.cause == f"acquired at {line('acquired first')}, released at {line('released first')}"


def test_a_handle_released_inside_its_with_is_released_twice() -> None:
    def body(_: Warp, pipe: ProducerConsumerPipeline) -> None:
        with pipe.consume_explicit() as stage:
            stage.release()

    assert "after its release" in refused(body).fact


def test_the_result_of_a_try_or_an_arrive_belongs_to_its_role() -> None:
    for use in ("wait_if_needed", "wait_state", "test_state", "pending_count"):
        p = Protocol("two")
        bars = p.mbarriers("b", 1, count=1)
        leaked: list[object] = []

        @p.role("owner")
        def owner(_: Warp) -> None:
            leaked.append(bars[0].try_wait(1) if use == "wait_if_needed" else bars[0].arrive())  # noqa: B023

        @p.role("thief")
        def thief(_: Warp) -> None:
            getattr(bars[0], use)(leaked[-1])  # noqa: B023

        with pytest.raises(ProtocolError, match=r"thief uses a .* that owner holds in a register"):
            p.flatten()


def test_a_role_cannot_branch_on_a_try() -> None:
    def body(_: Warp, pipe: ProducerConsumerPipeline) -> None:
        if pipe.try_wait_consumer():  # branch
            pass

    error = refused(body)
    assert (error.fact, error.place) == (
        "a role cannot branch on the result of a try_wait while it is recorded", line("branch"),
    )  # fmt: skip


def test_a_loop_leaves_balanced_marks() -> None:
    def body(w: Warp, _: ProducerConsumerPipeline) -> None:
        for trip in w.loop(3, "tiles"):
            w.work(trip)
        for _never in w.loop(0):
            w.work(99)

    program = one_role(body).flatten()
    marks = [(Op(op[0]).name, *op[1:]) for op in program.code[0] if Op.WORK <= op[0] <= Op.LOOP_END]
    assert marks == [
        ("LOOP_BEGIN", 0, 3), ("WORK", 0), ("LOOP_NEXT", 0), ("WORK", 1), ("LOOP_NEXT", 0), ("WORK", 2),
        ("LOOP_END", 0), ("LOOP_BEGIN", 1, 0), ("LOOP_END", 1),
    ]  # fmt: skip
    assert program.loops == ("tiles", "")


def test_a_loop_left_early_is_refused() -> None:
    def body(w: Warp, _: ProducerConsumerPipeline) -> None:
        for trip in w.loop(3, "tiles"):  # left
            if trip == 1:
                break

    error = refused(body)
    assert (error.fact, error.place) == ("r: a loop was left before its last iteration", line("left"))
    assert refused(lambda w, _: list(w.loop(-1))).fact == "r: a loop with trip count -1"


def test_a_loop_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_AGENT_OPERATIONS", 1000)

    def forever(w: Warp, _: ProducerConsumerPipeline) -> None:
        while True:
            w.work(1)  # never ends

    error = refused(forever)
    assert (error.fact, error.place) == ("r records more than 1,000 operations", line("never ends"))


def test_what_was_right_before_does_not_hide_what_is_wrong_now() -> None:
    """What a loop repeats is looked up; it may not be found by an operand that only equals the earlier one."""

    def of(call: Callable[[Warp, TileArray, BarrierStorage], object]) -> ProtocolError:
        p = Protocol("again")
        tile, bars = p.smem("tile", slots=1, nbytes=64), p.mbarriers("b", 1, count=1)

        @p.role("r")
        def r(w: Warp) -> None:
            with w.elect_one():
                w.tma_load(tile[0], bars[0], 1, nbytes=16)
                w.async_read(Engine.BULK, tile[0], 1)
                w.read(tile[0], 1)
            w.wait_group(Engine.BULK, 1)
            bars[0].arrive(1)
            bars[0].wait(1)
            call(w, tile, bars)

        with pytest.raises(ProtocolError) as caught:
            p.flatten()
        return caught.value

    number = "not a whole number"
    assert "lanes issue the same copy" in of(lambda w, tile, bars: w.tma_load(tile[0], bars[0], 1, nbytes=16)).fact
    with_one_lane: list[Callable[[Warp, TileArray, BarrierStorage], object]] = [
        lambda w, tile, bars: w.tma_load(tile[0], bars[0], 1, nbytes=16.0),  # type: ignore[arg-type]
        lambda w, tile, bars: w.tma_load(tile[0], bars[0], 1.0, nbytes=16),  # type: ignore[arg-type]
    ]
    for call in with_one_lane:

        def elected(w: Warp, tile: TileArray, bars: BarrierStorage, call: Any = call) -> None:
            with w.elect_one():
                call(w, tile, bars)

        assert number in of(elected).fact
    assert number in of(lambda w, tile, _: w.async_read(Engine.BULK, tile[0], 1.0)).fact  # type: ignore[arg-type]
    assert number in of(lambda w, tile, _: w.read(tile[0], 1.0)).fact  # type: ignore[arg-type]
    assert number in of(lambda w, _, __: w.wait_group(Engine.BULK, 1.0)).fact  # type: ignore[arg-type]
    assert number in of(lambda _, __, bars: bars[0].arrive(1.0)).fact  # type: ignore[arg-type]
    assert number in of(lambda _, __, bars: bars[0].wait(1.0)).fact  # type: ignore[arg-type]
