"""CUTLASS's pipelines of SM100: commits in place of arrivals, their masks in a cluster, and a pair of CTAs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim.errors import ProtocolError
from pipesim.explain.phases import run_canonically
from pipesim.lang.intrinsics import elect
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Op, Operation
from pipesim.model.program import Program
from pipesim.pipelines import (
    AsyncParams,
    PipelineState,
    PipelineTmaUmmaAsync,
    PipelineUmmaAsync,
    TmaParams,
    make_producer_start_state,
)
from tests.pipelines.structs import arrive, commit, role_code

Shape = tuple[int, int]
Body = Callable[[Any, PipelineState], Any]
ONE: Shape = (1, 1)
PAIR: Shape = (2, 1)


def recorded(make: Callable[[Any], Any], body: Body, cluster: int = 1) -> list[list[Operation]]:
    """What each CTA's role records at stage 1, phase 0, of two; full[1] is barrier 4c + 1, empty[1] is 4c + 3."""
    p = Protocol("umma", cluster=cluster)
    storage = p.mbarriers("pipe", 4, count=1)
    p.role("r")(lambda _: body(make(storage), PipelineState(2, 1, 0, 1)) and None)
    program = p.flatten()
    return [role_code(program, cta) for cta in range(cluster)]


@pytest.mark.parametrize(
    ("shape", "atom", "masks"),
    [
        ((2, 1), ONE, [0b11, 0b11]),
        ((2, 2), ONE, [0b0111, 0b1011, 0b1101, 0b1110]),
        ((2, 1), PAIR, [0b11, 0b11]),
        ((4, 1), PAIR, [0b1111] * 4),
        ((4, 2), PAIR, [0b00111111, 0b00111111, 0b11001111, 0b11001111,
                                                0b11110011, 0b11110011, 0b11111100, 0b11111100]),
    ],
)  # fmt: skip
def test_in_a_cluster_it_reaches_every_cta_that_loaded(shape: Shape, atom: Shape, masks: list[int]) -> None:
    ctas = shape[0] * shape[1]
    got = recorded(
        lambda s: PipelineTmaUmmaAsync(s, 2, TmaParams(), shape, atom),
        lambda p, s: p.consumer_release(s),
        ctas,
    )
    assert got == [[commit(4 * cta + 3, mask)] for cta, mask in enumerate(masks)]
    # each barrier gets as many commits as init expects, from one MMA a pair
    leaders = [cta for cta in range(ctas) if not cta % shape[0] % atom[0]]
    expected = inits(lambda s: PipelineTmaUmmaAsync.init_barriers(s, 1, TmaParams(), shape, atom), ctas)
    assert expected[0] == 1
    for cta in range(ctas):
        assert sum(masks[leader] >> cta & 1 for leader in leaders) == expected[1]


def inits(initialise: Callable[[Any], None], cluster: int = 1) -> tuple[int, ...]:
    p = Protocol("init", cluster=cluster)
    storage = p.mbarriers("pipe", 2)
    p.init(lambda: initialise(storage))
    p.role("r")(lambda _: None)
    return tuple(op[2] for op in p.flatten().code[0] if op[0] == Op.INIT)


@pytest.mark.parametrize("kind", [PipelineTmaUmmaAsync, PipelineUmmaAsync])
def test_a_cluster_of_three_holds_no_pairs(kind: Any) -> None:
    params = TmaParams() if kind is PipelineTmaUmmaAsync else AsyncParams()
    with pytest.raises(ProtocolError, match=r"multiply together as \(2, 1\) in a cluster of \(3, 1\)"):
        recorded(lambda s: kind(s, 2, params, (3, 1), PAIR), lambda p, s: None, 3)


# MMA to threads, and back


def test_in_a_pair_the_commit_reaches_both_ctas_and_both_arrive_in_the_leader() -> None:
    def make(storage: Any) -> PipelineUmmaAsync:
        return PipelineUmmaAsync(storage, 2, AsyncParams(1, 256), (4, 1), PAIR)

    assert recorded(make, lambda p, s: p.producer_commit(s), 4) == [
        [commit(1, 0b0011)], [commit(5, 0b0011)], [commit(9, 0b1100)], [commit(13, 0b1100)],
    ]  # fmt: skip
    assert recorded(make, lambda p, s: p.consumer_release(s), 4) == [
        [arrive(3)], [arrive(3)], [arrive(11)], [arrive(11)],
    ]  # fmt: skip


# the kernel


def gemm(tiles: int = 3, k: int = 3, *, early: bool = False, epilogue_lanes: int = 32) -> Program:
    """Load, MMA and four epilogue warps. ``early``: the MMA warp arrives on ``empty`` itself instead of committing."""
    p = Protocol("gemm")
    tile = p.smem("tile", 2, 256)
    accumulator = p.tmem("accumulator", 2, 256)
    inputs = p.mbarriers("mainloop", 4)
    outputs = p.mbarriers("accum", 4)

    @p.init
    def init() -> None:
        PipelineTmaUmmaAsync.init_barriers(inputs, 2, TmaParams())
        PipelineUmmaAsync.init_barriers(outputs, 2, AsyncParams(1, 128))

    @p.role("load")
    def load(w: Warp) -> None:
        pipe, state = PipelineTmaUmmaAsync(inputs, 2, TmaParams(256, elect())), make_producer_start_state(2)
        for item in range(tiles * k):
            pipe.producer_acquire(state, pipe.producer_try_acquire(state))
            with w.elect_one():
                w.tma_load(tile[state.index()], pipe.producer_get_barrier(state), item)
            state.step()
        pipe.producer_tail(state)

    @p.role("mma")
    def mma(w: Warp) -> None:
        pipe, state = PipelineTmaUmmaAsync(inputs, 2, TmaParams()), PipelineState(2)
        out, out_state = PipelineUmmaAsync(outputs, 2, AsyncParams(1, 128)), make_producer_start_state(2)
        for n in range(tiles):
            out.producer_acquire(out_state)
            for i in range(k):
                pipe.consumer_wait(state)
                with w.elect_one():
                    reads = [(tile[state.index()], n * k + i)]
                    w.mma(Engine.TCGEN05, reads=reads, writes=[(accumulator[out_state.index()], n)], cycles=64)
                    if early:
                        pipe.empty[state.index()].arrive()
                if not early:
                    pipe.consumer_release(state)
                state.step()
            out.producer_commit(out_state)
            out_state.step()
        out.producer_tail(out_state)

    @p.role("epilogue", warps=4)
    def epilogue(w: Warp) -> None:
        out, state = PipelineUmmaAsync(outputs, 2, AsyncParams(1, 128)), PipelineState(2)
        for n in range(tiles):
            out.consumer_wait(state)
            w.read(accumulator[state.index()], n)
            with w.lanes(epilogue_lanes):
                out.consumer_release(state)
            state.step()

    return p.flatten()


def test_an_arrival_instead_of_the_commit_gives_the_tile_back_while_the_mma_reads_it(outcomes: Any) -> None:
    assert "RACE" in outcomes(gemm(early=True))


def test_an_epilogue_that_arrives_with_one_lane_a_warp_stops_the_mma() -> None:
    assert not run_canonically(gemm(epilogue_lanes=1)).finished


def pair(tiles: int = 3, *, expects: str = "both") -> Program:
    """Two CTAs multiply together: each loads half a tile, the leader expects the bytes of both and multiplies."""
    p = Protocol("pair", cluster=2)
    tile = p.smem("tile", 2, 256)
    accumulator = p.tmem("accumulator", 2, 256)
    inputs = p.mbarriers("mainloop", 4)
    outputs = p.mbarriers("accum", 4)

    @p.init
    def init() -> None:
        PipelineTmaUmmaAsync.init_barriers(inputs, 2, TmaParams(), PAIR, PAIR)
        PipelineUmmaAsync.init_barriers(outputs, 2, AsyncParams(1, 64))

    @p.role("load")
    def load(w: Warp) -> None:
        nbytes = 512 if expects == "both" else 256
        leader = elect() if w.cta == 0 else 0
        pipe = PipelineTmaUmmaAsync(inputs, 2, TmaParams(nbytes, leader), PAIR, PAIR)
        state = make_producer_start_state(2)
        for item in range(tiles):
            pipe.producer_acquire(state)
            with w.elect_one():
                w.tma_load(tile[state.index()], pipe.producer_get_barrier(state).mapa(0), item)
            state.step()
        pipe.producer_tail(state)

    @p.role("mma")
    def mma(w: Warp) -> None:
        if w.cta:
            return
        pipe, state = PipelineTmaUmmaAsync(inputs, 2, TmaParams(), PAIR, PAIR), PipelineState(2)
        out, out_state = PipelineUmmaAsync(outputs, 2, None, PAIR, PAIR), make_producer_start_state(2)
        for item in range(tiles):
            out.producer_acquire(out_state)
            pipe.consumer_wait(state)
            with w.elect_one():
                reads = [(tile[state.index()], item)]
                w.mma(Engine.TCGEN05, reads=reads, writes=[(accumulator[out_state.index()], item)])
            pipe.consumer_release(state)
            out.producer_commit(out_state)
            state.step()
            out_state.step()
        out.producer_tail(out_state)

    @p.role("epilogue")
    def epilogue(w: Warp) -> None:
        out, state = PipelineUmmaAsync(outputs, 2, None, PAIR, PAIR), PipelineState(2)
        for _ in range(tiles):
            out.consumer_wait(state)
            out.consumer_release(state)
            state.step()

    return p.flatten()


def test_a_pair_finishes_in_every_schedule_tried(outcomes: Any) -> None:
    assert outcomes(pair(), schedules=30) == {"finished"}


def test_a_leader_that_expects_its_own_bytes_only_reads_a_tile_that_has_not_landed(outcomes: Any) -> None:
    ends = outcomes(pair(expects="own"), schedules=60)
    assert ends >= {"RACE", "UNINITIALISED_READ", "stuck"}
