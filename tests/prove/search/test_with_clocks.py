"""Memory order where the schedule decides who completes a phase: the search carries the clocks."""

import random
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from itertools import permutations

import pytest

from pipesim import Engine, Fence, Protocol, Warp
from pipesim.model.coverage import LENIENT, STRICTEST
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.groups import ANSWER
from pipesim.model.moves import moves
from pipesim.model.ops import Op, Operation
from pipesim.model.program import Program
from pipesim.prove import check as checking
from pipesim.prove.check import How, check
from pipesim.prove.counterexample.play import Play
from pipesim.prove.memory_order import may_fail
from pipesim.prove.memory_order.may_fail import memory_faults_of, order_may_fail
from pipesim.prove.search.breadth_first import MemorySearch, search_memory_order
from tests.support.lanes import long_after, slow_but
from tests.support.memory_order_graph import Graph
from tests.support.random_programs.contested import contested


def three_arrive_two_count(fenced: tuple[int, ...], order: tuple[int, ...] = (0, 1, 2)) -> Program:
    """Role 0 writes, the three meet, those in ``fenced`` fence, all arrive; two arrivals let the copy go."""
    p = Protocol("contested")
    tile, full = p.smem("tile", 1, 128), p.mbarriers("full", 1, count=2)

    def arriver(n: int) -> None:
        @p.role(f"arriver{n}")
        def role(w: Warp) -> None:
            if n == 0:
                w.write(tile[0], 0)
            w.bar_sync(1, 96)
            if n in fenced:
                w.fence(Fence.PROXY_ASYNC)
            with w.elect_one():
                full[0].arrive()

    for n in order:
        arriver(n)

    @p.role("store")
    def store(w: Warp) -> None:
        with w.elect_one():
            full[0].wait(0)
            w.async_read(Engine.BULK, tile[0], 0)
            w.commit(Engine.BULK)
            w.wait_group(Engine.BULK)

    return p.flatten()


@pytest.mark.sampled(12, 24)
@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("fenced", [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_two_of_three_must_not_be_two_without_a_fence(fenced: tuple[int, ...], order: tuple[int, ...]) -> None:
    program = three_arrive_two_count(fenced, order)
    said = check(program)
    if len(fenced) >= 2:
        assert (said.verdict, said.how, said.refutations) == (Verdict.PROVED, How.SEARCH, ())
        return
    assert said.verdict is Verdict.REFUTED
    (shown,) = said.refutations
    assert shown.kind is FaultKind.MISSING_PROXY_FENCE
    assert memory_faults_of(program, shown.schedule)[-1] == shown.fault


def test_a_limit_leaves_it_unknown() -> None:
    program = three_arrive_two_count((0, 1))
    assert search_memory_order(program, 20) == MemorySearch(complete=False, states=22, refutations=())
    whole = search_memory_order(program)
    assert whole == MemorySearch(complete=True, states=whole.states, refutations=())
    said = check(program, max_states=whole.states - 1)
    assert (said.verdict, said.how) == (Verdict.UNKNOWN, How.MEMORY_NOT_SEARCHED)


def jumped_over(skip: int) -> Program:
    """A fence that a failed try leaves out, or (skip 0) no try can."""
    p = Protocol("jump")
    tile, full, side = p.smem("tile", 1, 128), p.mbarriers("full", 1, count=1), p.mbarriers("side", 1, count=1)

    @p.role("writer")
    def writer(w: Warp) -> None:
        with w.elect_one():
            w.write(tile[0], 0)
            side[0].try_wait(0)
            w.fence(Fence.PROXY_ASYNC)
            full[0].arrive()

    @p.role("store")
    def store(w: Warp) -> None:
        with w.elect_one():
            side[0].arrive()
            full[0].wait(0)
            w.async_read(Engine.BULK, tile[0], 0)
            w.commit(Engine.BULK)
            w.wait_group(Engine.BULK)

    return _with_a_jump(p.flatten(), skip)


def _with_a_jump(program: Program, skip: int) -> Program:
    code, lines = list(program.code), list(program.lines)
    for a, ops in enumerate(code):
        for pc, op in enumerate(ops):
            if op[0] == Op.TRY_WAIT:
                tried = (*op[:ANSWER], 0, *op[ANSWER + 1 :])
                code[a] = (*ops[:pc], tried, (int(Op.JUMP_IF), 0, 0, skip), *ops[pc + 1 :])
                lines[a] = (*lines[a][: pc + 1], *lines[a][pc:])
    return replace(program, code=tuple(code), lines=tuple(lines), registers=1)


def test_a_fence_that_is_jumped_over_is_no_fence() -> None:
    wrong, right = jumped_over(1), jumped_over(0)
    assert order_may_fail(wrong)
    assert not order_may_fail(right)
    said = check(wrong)
    assert said.verdict is Verdict.REFUTED
    assert FaultKind.MISSING_PROXY_FENCE in {shown.kind for shown in said.refutations}
    assert check(right).verdict is Verdict.PROVED


def contradictions(seeds: range, *, overwrites: bool = False) -> tuple[list[int], Counter[object]]:
    """The programs proved of which a schedule made at random shows a fault of memory order, by the naive graph."""
    wrong, seen = [], Counter[object]()
    for seed in seeds:
        program = contested(seed, overwrites=overwrites).with_strictness(STRICTEST if overwrites else LENIENT)
        said = check(program, max_states=3_000)
        seen[said.verdict, said.how] += 1
        seen.update(shown.kind for shown in said.refutations)
        if said.verdict is Verdict.PROVED and any(_faulty(program, 50 * seed + n) for n in range(10)):
            wrong.append(seed)
    return wrong, seen


def _faulty(program: Program, seed: int) -> bool:
    rng, graph = random.Random(seed), Graph(program)
    play = Play(program, observers=[graph])
    while possible := moves(program, play.state):
        play.make(rng.choice(possible))
    return bool(graph.faults())


@pytest.mark.slow
@pytest.mark.parametrize("first", long_after(1, slow_but([0], range(0, 300, 50))))
def test_no_schedule_at_random_contradicts_a_proof(first: int) -> None:
    wrong, seen = contradictions(range(first, first + 50))
    assert wrong == []
    wanted = [FaultKind.MISSING_PROXY_FENCE, FaultKind.WEAK_ORDER, (Verdict.PROVED, How.SEARCH)]
    assert all(seen[each] >= 2 for each in wanted), seen


@pytest.mark.slow
@pytest.mark.parametrize("first", long_after(1, slow_but([0], range(0, 300, 50))))
def test_nor_one_of_reads_under_the_strict_rule(first: int) -> None:
    wrong, seen = contradictions(range(first, first + 50), overwrites=True)
    assert wrong == []
    wanted = [FaultKind.READ_NOT_FENCED, FaultKind.WEAK_ORDER, (Verdict.PROVED, How.SEARCH)]
    assert all(seen[each] >= 2 for each in wanted), seen


@pytest.mark.slow
def test_a_cheap_test_that_forgets_reads_is_contradicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(may_fail, "reads_may_be_unfenced", lambda _: False)
    wrong, _ = contradictions(range(50), overwrites=True)
    assert len(wrong) >= 1


@pytest.mark.slow
def test_a_search_without_clocks_is_contradicted(monkeypatch: pytest.MonkeyPatch) -> None:
    blind = MemorySearch(complete=True, states=1, refutations=())
    monkeypatch.setattr(checking, "search_memory_order", lambda *_: blind)
    wrong, _ = contradictions(range(50))
    assert len(wrong) >= 1


def test_a_fence_read_as_a_straight_line_would_pass_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def straight(code: Sequence[Operation], what: Set[Operation], by: Set[Fence]) -> bool:
        return fenced([op for op in code if op[0] != Op.JUMP_IF], what, by)

    fenced = may_fail._fenced
    monkeypatch.setattr(may_fail, "_fenced", straight)
    assert not order_may_fail(jumped_over(1))
