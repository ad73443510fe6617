"""Work that only a launch does that is recorded, or only one that records nothing; products whose warp never comes."""

from __future__ import annotations

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.ops import Engine, Op
from pipesim.model.program import Program
from pipesim.protocols.warp_group import GROUP
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile

BASE = load_profile("h200")


@pytest.mark.parametrize("name", ["attention_sm90", "attention_sm90_fused"])
@pytest.mark.parametrize(("block_n", "depth", "turns"), [(64, 64, 0), (64, 128, 1), (128, 64, 1), (128, 128, 0)])
def test_recorded_or_not_a_softmax_is_whole(name: str, block_n: int, depth: int, turns: int) -> None:
    """However the compiler orders it: the exponentials, comparisons and sums of all parts, but for rounding."""
    sizes = {"block_n": block_n, "depth": depth, "pingpong": turns, "kv_blocks": 3}
    program = find(name).build(sizes)
    agent = next(a for a, each in enumerate(program.agents) if each.role == "consumer")
    lines = set(program.lines[agent])
    blocks = sum(1 for op in program.code[agent] if op[0] == Op.WORK)
    for kind, whole in (("exp2", block_n // 2 + 2), ("fma", block_n + depth // 2), ("alu", 3 * block_n // 4)):
        for launch in ("recorded", "unrecorded"):
            works = {
                work.line: work.amount(kind) for work in program.work if work.amount(launch) and work.line in lines
            }
            done = sum(works.get(line, 0) for line in program.lines[agent])
            assert 0 <= whole * blocks - done <= 4 * blocks, (kind, launch)


def late_warp(*, comes: bool) -> Program:
    """Two warp groups multiply on the same tensor cores; a warp of the first waits for a phase that may never come."""
    p = Protocol("late")
    sums, never = p.registers("sums", 2, 512), p.mbarriers("never", 1)

    @p.init
    def init() -> None:
        never[0].init(1)

    @p.role("multiply", warps=2 * GROUP)
    def multiply(w: Warp) -> None:
        group, warp = divmod(w.index, GROUP)
        if w.index == 0:
            never[0].wait(0)
        w.mma(Engine.WGMMA, reads=[], writes=[(sums[group].part(128 * warp, 128), 0)], cycles=100)
        w.compute("late/multiply", mma=64 * 128 * 64 // GROUP, products=4)
        w.commit(Engine.WGMMA)
        w.wait_group(Engine.WGMMA)

    if comes:

        @p.role("signal", warps=GROUP)
        def signal(w: Warp) -> None:
            if w.index == 0:
                with w.elect_one():
                    never[0].arrive()

    return p.flatten()


def test_a_group_waits_for_its_last_warp_and_no_longer() -> None:
    """Products that wait for a warp that never comes do not keep the run alive: the deadlock is reported."""
    found = simulate(late_warp(comes=False), BASE)
    assert found.outcome is Ending.DEADLOCK
    assert found.deadlock is not None
    assert simulate(late_warp(comes=True), BASE).outcome is Ending.FINISHED
