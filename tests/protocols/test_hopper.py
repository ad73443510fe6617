"""Hopper's kernels in every schedule: accumulators, stages given back for a warp group, responses; and wrong twins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pipesim.explain.anatomy.read import anatomy
from pipesim.lang.protocol import Protocol
from pipesim.model.ops import Engine, Op, Operation, Space
from pipesim.model.program import Program
from pipesim.protocols.hopper.attention_sm90 import attention_sm90
from pipesim.protocols.hopper.attention_sm90_fused import attention_sm90_fused
from pipesim.protocols.hopper.gemm_sm90 import gemm_sm90
from pipesim.protocols.hopper.persistent_scheduler import persistent_scheduler
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from tests.support.lanes import slow_but
from tests.support.random_schedules import outcomes

Edit = Callable[[Program], Program]


def edited(program: Program, role: str, change: Callable[[tuple[Operation, ...]], list[int]]) -> Program:
    """The agents of ``role`` run the operations at the positions that ``change`` gives, in that order."""
    code, lines = list(program.code), list(program.lines)
    for number, agent in enumerate(program.agents):
        if agent.role == role:
            order = change(code[number])
            code[number] = tuple(program.code[number][n] for n in order)
            lines[number] = tuple(program.lines[number][n] for n in order)
    return replace(program, code=tuple(code), lines=tuple(lines))


def without_waits(groups: int) -> Edit:
    """Nobody waits until at most so many groups of products are unfinished."""
    wait = (int(Op.WAIT_GROUP), int(Engine.WGMMA), groups)
    return lambda p: edited(p, "consumer", lambda code: [n for n, op in enumerate(code) if op != wait])


def softmax_first(program: Program) -> Program:
    """The scores are read before the wait for them, and not after it."""

    def early(code: tuple[Operation, ...]) -> list[int]:
        order = list(range(len(code)))
        for n, op in enumerate(code):
            if op[0] == Op.READ and program.accesses[op[1]].space == Space.REGISTERS:
                wait = max(m for m in range(n) if code[m][0] == Op.WAIT_GROUP)
                order.remove(n)
                order.insert(order.index(wait), n)
        return order

    return edited(program, "consumer", early)


def the_same(program: Program) -> Program:
    """Nothing is wrong."""
    return program


H100 = load_profile("h100")
#: A slot that is given back too early is written while it is multiplied: on an H100 the products are over by then.
SLOW_PRODUCTS = replace(H100, values=H100.values | {"mma.per_kcycle": 200_000, "mma.queue": 64})
GEMM = {"tiles": 2, "k_iters": 3, "stages": 2, "block_n": 64}
ATTENTION = {"kv_blocks": 3, "stages": 3, "block_n": 64}
TWINS: dict[str, tuple[Callable[..., Protocol], dict[str, int], Edit, set[str]]] = {
    "gemm": (gemm_sm90, GEMM, the_same, {"finished"}),
    "gemm with one group": (gemm_sm90, GEMM | {"num_consumer": 1, "k_group_size": 2}, the_same, {"finished"}),
    "one lane gives a stage back for warps that multiply": (gemm_sm90, GEMM, without_waits(0), {"RACE"}),
    "the accumulators are stored before the wait": (gemm_sm90, GEMM, softmax_first, {"RACE"}),
    "attention": (attention_sm90, ATTENTION, the_same, {"finished"}),
    "the softmax does not wait for its scores": (attention_sm90, ATTENTION, softmax_first, {"RACE"}),
    "values are given back while they are multiplied": (attention_sm90, ATTENTION, without_waits(0), {"RACE"}),
    "attention in slices": (attention_sm90, ATTENTION | {"depth": 128, "qk_stages": 2}, the_same, {"finished"}),
    "slices are given back while they are multiplied": (
        attention_sm90, ATTENTION | {"qk_stages": 2}, without_waits(1), {"RACE"}
    ),
    "attention with one ring": (attention_sm90, ATTENTION | {"fused": 1}, the_same, {"finished"}),
    "the softmax does not wait, with one ring": (attention_sm90, ATTENTION | {"fused": 1}, softmax_first, {"RACE"}),
    "values of one ring, while they are multiplied": (
        attention_sm90, ATTENTION | {"fused": 1}, without_waits(0), {"RACE"}
    ),
    "attention with K and V in turn": (attention_sm90_fused, ATTENTION, the_same, {"finished"}),
    "the softmax does not wait, with K and V in turn": (attention_sm90_fused, ATTENTION, softmax_first, {"RACE"}),
    "scheduler": (persistent_scheduler, {"tiles": 3, "k_iters": 2}, the_same, {"finished"}),
}  # fmt: skip


@pytest.mark.parametrize("name", slow_but(list(TWINS)[:6], TWINS))
def test_right_kernels_end_in_every_schedule_and_wrong_twins_are_found(name: str) -> None:
    make, params, edit, expected = TWINS[name]
    program = edit(make(**params).flatten())
    seen = outcomes(program, 10)
    assert seen == expected
    kinds = {f.kind.name for profile in (H100, SLOW_PRODUCTS) for f in simulate(program, profile).faults}
    assert kinds == expected - {"finished"}


def test_a_gemm_has_no_barrier_in_its_main_loop() -> None:
    """Upstream has none: the wait for a wgmma is that of its warp group."""

    def syncs(k_iters: int) -> int:
        return sum(op[0] == Op.BAR_SYNC for code in gemm_sm90(k_iters=k_iters).flatten().code for op in code)

    assert syncs(1) == syncs(9) > 0


def test_a_softmax_reads_the_scores_of_its_own_warp() -> None:
    program = attention_sm90().flatten()
    spaces = {t.name: (t.space, t.slots, t.nbytes) for t in program.tiles}
    assert spaces["scores"] == (Space.REGISTERS, 2, 64 * 128 * 4)
    assert spaces["result"] == (Space.REGISTERS, 2, 64 * 128 * 4)
    mine = {
        program.accesses[op[1]].offset
        for code in program.code
        for op in code
        if op[0] == Op.READ and program.accesses[op[1]].space == Space.REGISTERS
    }
    assert len(mine) == 2 * 8  # eight warps, each its part of both


def test_nobody_passes_a_turn_that_nobody_takes() -> None:
    for blocks in (0, 1, 2):
        run = simulate(attention_sm90(kv_blocks=blocks).flatten(), load_profile("h100"))
        assert run.state.named == tuple((0, 0, generation) for _, _, generation in run.state.named), "no half barrier"


def test_the_scheduler_takes_its_own_responses() -> None:
    """Upstream's count: the scheduler warp itself, the load warp and every consumer give a response back."""
    (empty,) = (g for g in anatomy(persistent_scheduler(consumer_warps=2).flatten(), 0).groups if g.name == "clc.empty")
    assert empty.count == 32 + 32 * (1 + 2)
    assert {s.role: s.agents * s.arrivals.high for s in empty.signals} == {"scheduler": 32, "load": 32, "consumer": 64}
