"""A wgmma that four warps issue together keeps them in step, and orders none of their own accesses."""

import pytest

from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import Engine, Fence, Op, Space
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Access, Agent
from pipesim.prove.check import check
from pipesim.prove.memory_order import may_fail
from pipesim.prove.memory_order.may_fail import may_rely_on_a_wgmma

Code = list[tuple[int, ...]]
WRITE, READ = (Op.WRITE, 0, 7), (Op.READ, 0, 7)
MEET = (Op.BAR_SYNC, 0, 64, 32)
START = (Op.BAR_SYNC, 1, 160, 32)
WGMMA: Code = [
    (Op.TRANSFER_READ, Engine.WGMMA, 1, 64, -1), (Op.COMMIT, Engine.WGMMA, -1), (Op.WAIT_GROUP, Engine.WGMMA, 0)
]  # fmt: skip


def of(*codes: Code) -> Program:
    """A warp group, two of whose warps have a tile of their own; another warp has written the one that wgmma reads."""
    first: Code = [(Op.WRITE, 1, 1), (Op.FENCE, Fence.PROXY_ASYNC, 0), START]
    others = [[START, *WGMMA]] * 2
    each_warp = ([START, *codes[0]], [START, *codes[1]], *others, first)
    code = tuple(tuple(tuple(map(int, op)) for op in each) for each in each_warp)
    known = {op: n for n, op in enumerate(WGMMA)}  # one line for each instruction of the warp group
    return Program(
        name="warp group",
        params={},
        agents=tuple(Agent(0, warp, ALL_LANES, "math", n) for n, warp in enumerate(range(5))),
        barriers=(),
        accesses=(Access(Space.SHARED, 0, 0, 64), Access(Space.SHARED, 0, 64, 64)),
        tiles=(),
        code=code,
        lines=tuple(tuple(known.get(op, len(known) + n) for n, op in enumerate(each)) for each in code),
        sources=tuple(f"math:{n}" for n in range(1, max(map(len, code)) + len(known) + 1)),
        named_barriers=((0, 0), (0, 1)),
        smem_bytes=128,
    )


def test_what_a_warp_has_written_needs_a_barrier_before_another_reads_it() -> None:
    wrong = of([WRITE, *WGMMA], [*WGMMA, READ])
    found = check(wrong)
    (shown,) = found.refutations
    assert (found.verdict, shown.kind) == (Verdict.REFUTED, FaultKind.WEAK_ORDER)
    assert shown.fault is not None
    assert (shown.fault.agent, shown.fault.other_agent) == (1, 0)
    right = of([WRITE, *WGMMA, MEET], [*WGMMA, MEET, READ])
    assert may_rely_on_a_wgmma(right)
    assert check(right).verdict is Verdict.PROVED


def test_nobody_is_looked_at_twice_whose_own_accesses_are_his_alone() -> None:
    alone = of([WRITE, *WGMMA, READ], WGMMA)
    assert not may_rely_on_a_wgmma(alone)
    assert check(alone).verdict is Verdict.PROVED


def test_a_program_that_gets_no_second_look_is_taken_for_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(may_fail, "may_rely_on_a_wgmma", lambda _: False)
    assert check(of([WRITE, *WGMMA], [*WGMMA, READ])).verdict is Verdict.PROVED
