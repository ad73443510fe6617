"""What orders agents in every schedule and no memory: never proved where it is all that orders two accesses."""

from dataclasses import replace

import pytest

from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import Engine, Fence, Op, Operation, Order, Scope, Space, semantics
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier
from pipesim.prove.check import check
from pipesim.prove.search.breadth_first import explore
from tests.support.lanes import slow_but

RELAXED = semantics(Order.RELAXED)
CLUSTER: list[Operation] = [(Op.CLUSTER_ARRIVE, 0), (Op.CLUSTER_WAIT, 0)]
WRITE, READ = (Op.WRITE, 0, 7), (Op.READ, 0, 7)
STORE = [(Op.TRANSFER_READ, Engine.BULK, 0, 64, 7), (Op.COMMIT, Engine.BULK, -1), (Op.WAIT_GROUP, Engine.BULK, 0)]


def arrive(barrier: int, written: int = 0) -> Operation:
    return (int(Op.ARRIVE), barrier, 1, 0, -1, written)


def wait(barrier: int, parity: int = 0, written: int = 0) -> Operation:
    return (int(Op.WAIT), barrier, parity, written)


def made(
    *codes: list[Operation],
    ctas: int = 1,
    space: Space = Space.SHARED,
    launch: int = 0,
    counts: tuple[int, ...] = (1, 1),
) -> Program:
    """Each agent in a warp group of its own, in a CTA of its own if there are several, after the usual prologue."""
    start: list[Operation] = [*((Op.INIT, b, count) for b, count in enumerate(counts)), (Op.FENCE, 0, 0)]
    meet: list[Operation] = [*CLUSTER] if ctas > 1 else [(Op.BAR_SYNC, 0, 32 * len(codes), 32)]
    whole = [[*(start if a == 0 else []), *meet, *code] for a, code in enumerate(codes)]
    code = tuple(tuple(tuple(map(int, op)) for op in agent) for agent in whole)
    return Program(
        name="made",
        params={},
        agents=tuple(Agent(a if ctas > 1 else 0, 4 * a, ALL_LANES, f"r{a}", 0) for a in range(len(codes))),
        barriers=tuple(Barrier(0, "b", b) for b in range(len(counts))),
        accesses=(Access(space, 0, 0, 64),),
        tiles=(),
        code=code,
        lines=tuple((0,) * len(agent) for agent in code),
        sources=("made.py:1",),
        named_barriers=((0, 0),),
        registers=2,
        ctas=ctas,
        smem_bytes=1024,
        launch_registers=launch,
    )


NOT_PROVED: dict[str, Program] = {
    "the end of an agent": made([*CLUSTER, WRITE], [*CLUSTER, *CLUSTER, READ]),
    "the end of an agent, then a store": made([*CLUSTER, WRITE], [*CLUSTER, *CLUSTER, *STORE]),
    "a request for registers": made([WRITE, (Op.SETMAXNREG, 40)], [(Op.SETMAXNREG, 168), READ], launch=104),
    "a try of another barrier": made(
        [WRITE, arrive(0, RELAXED), arrive(1)], [(Op.TRY_WAIT, 0, 0, 0, 0), (Op.WAIT_UNLESS, 1, 0, 0, 0), READ]
    ),
    "a phase before the init": made(
        [WRITE, arrive(0), (Op.INVAL, 0), (Op.INIT, 0, 1), arrive(1, RELAXED)], [wait(1), wait(0, 1), READ]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_PROVED)
def test_what_orders_no_memory_is_never_proved(name: str) -> None:
    assert check(NOT_PROVED[name], 2_000).verdict is not Verdict.PROVED


def test_a_fence_of_the_cta_does_not_reach_through_the_cluster_barrier() -> None:
    fence = (Op.FENCE, Fence.ACQ_REL, semantics(scope=Scope.CTA))
    wide = (Op.FENCE, Fence.ACQ_REL, semantics(scope=Scope.CLUSTER))
    relaxed = [(Op.CLUSTER_ARRIVE, RELAXED), (Op.CLUSTER_WAIT, 0)]

    def program(between: Operation) -> Program:
        return made([WRITE, between, *relaxed, *CLUSTER], [*CLUSTER, READ, *CLUSTER], ctas=2, space=Space.GLOBAL)

    assert {shown.kind for shown in check(program(fence)).refutations} == {FaultKind.NARROW_SCOPE}
    assert check(program(wide)).verdict is Verdict.PROVED


def test_an_end_that_is_counted_with_the_generation_in_which_it_came() -> None:
    program = made([(Op.CLUSTER_ARRIVE, 0), (Op.WORK, 1)], [*CLUSTER, *CLUSTER])
    plain, reduced = explore(program, reduced=False), explore(program)
    assert (plain.verdict, plain.outcomes) == (reduced.verdict, reduced.outcomes) == (Verdict.PROVED, 1)
    assert check(program).verdict is Verdict.PROVED


@pytest.mark.parametrize("laps", slow_but({2, 3}, [2, 3, 1_500]))
def test_requests_after_laps_that_are_left_out(laps: int) -> None:
    """Where requests stand in the code moves with what is cut: two agents wait for each other if others go first."""
    first, second, give, take = [], [], (Op.SETMAXNREG, 24), (Op.SETMAXNREG, 104)
    for lap in range(laps):
        first += [wait(1, lap & 1 ^ 1), arrive(0)]
        second += [wait(0, lap & 1), arrive(1)]
    program = made(
        [*first, give, take, arrive(2)],
        [*second, wait(2), give],
        [*second, (Op.SETMAXNREG, 184)],
        [*second, take],
        launch=104,
        counts=(1, 3, 1),
    )
    begun = [code if a < 2 else ((int(Op.SETMAXNREG), 24), *code) for a, code in enumerate(program.code)]
    program = replace(program, code=tuple(begun), lines=tuple((0,) * len(code) for code in begun))
    assert check(program, 2_000).verdict is not Verdict.PROVED
