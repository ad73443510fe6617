"""Memory order: the observer against a naive graph, wrong twins and right ones, and everything that must not alarm."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from pipesim.answers.check import replay, replay_report
from pipesim.answers.checking.state import looked_for
from pipesim.findings.catalog import MEMORY_ORDER
from pipesim.model.coverage import LENIENT, STRICTEST, Assumption
from pipesim.model.finding import Fault, FaultKind, FaultReport, Verdict
from pipesim.model.machine import TMA, finished, initial_state, land, step
from pipesim.model.moves import can_land, moves, run_canonically
from pipesim.model.ops import Engine, Fence, Op, Order, Scope, Space, semantics
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier
from pipesim.prove.any_size.family import Family
from pipesim.prove.check import How, check
from pipesim.prove.counterexample.play import Play, to_text
from pipesim.prove.happens_before.snapshot import Snapshot, repeats
from pipesim.prove.memory_order import may_fail
from pipesim.prove.memory_order.may_fail import (
    may_rely_on_a_wgmma,
    memory_order,
    order_may_fail,
    reads_may_be_unfenced,
)
from pipesim.prove.memory_order.order import MemoryOrder
from pipesim.targets import find
from tests.support.lanes import long_after, slow_after, slow_but
from tests.support.memory_order_graph import Graph, Said
from tests.support.mistakes import MEMORY
from tests.support.mistakes.memory_mistakes import MEMORY_MISTAKES
from tests.support.protocol_sizes import SIZES
from tests.support.random_programs.orders_and_scopes import random_orders

OF_PROGRAMS = MEMORY_ORDER - {FaultKind.ABSENT_CTA}  #: those that are not of kernels alone


def memory_faults(program: Program) -> tuple[Fault, ...]:
    """What is wrong with the memory order of the canonical run, each pair of lines once."""
    order = memory_order(program)
    if order is not None:
        run_canonically(program, order)
    return order.faults if order is not None else ()


def pair(fault: Fault) -> Said:
    return fault.kind, fault.agent, fault.pc, fault.other_agent, fault.other_pc


def both(program: Program) -> tuple[set[Said], set[Said]]:
    """What the observer and the naive graph say of the same run."""
    order, graph = MemoryOrder(program), Graph(program)
    run_canonically(program, order, graph)
    return {pair(fault) for fault in order.faults}, graph.faults()


# the observer against the graph


@pytest.mark.parametrize("first", long_after(1, slow_but([0], range(0, 400, 100))))
def test_the_observer_says_what_the_graph_says(first: int) -> None:
    seen: Counter[object] = Counter()
    for seed in range(first, first + 100):
        program = replace(random_orders(seed), architecture=(0, 90, 100)[seed // 3 % 3])
        program = program.with_strictness(STRICTEST if seed % 3 else LENIENT)
        mine, its = both(program)
        assert mine == its, seed
        assert Assumption.PROXIES not in program.strictness or reads_may_be_unfenced(program) or not _reads(its), seed
        assert order_may_fail(program) or not its, seed
        seen.update({said[0] for said in its})
        seen["right"] += not its
        seen["no concern"] += not order_may_fail(program)
    assert all(seen[kind] >= 3 for kind in (*OF_PROGRAMS, "right", "no concern")), seen


@pytest.mark.slow
def test_what_holds_of_the_canonical_run_holds_of_every_schedule() -> None:
    """Where the certificate holds: in schedules made at random the same pairs are at fault."""
    certified = 0
    for seed in range(120):
        program = random_orders(seed)
        if check(program, max_states=1).doubts or not run_canonically(program).finished:
            continue
        certified += 1
        order, graph, rng = MemoryOrder(program), Graph(program), random.Random(seed)
        play = Play(program, observers=[order, graph])
        while possible := moves(program, play.state):
            play.make(rng.choice(possible))
        mine, _ = both(program)
        assert {pair(fault) for fault in order.faults} == graph.faults() == mine, seed
    assert certified >= 40


def _reads(said: set[Said]) -> set[Said]:
    return {each for each in said if each[0] is FaultKind.READ_NOT_FENCED}


@pytest.mark.slow
@pytest.mark.parametrize("first", long_after(1, slow_but([0], range(0, 400, 100))))
def test_an_optional_rule_adds_findings_of_its_own_kind_and_hides_none(first: int) -> None:
    more: Counter[FaultKind] = Counter()
    for seed in range(first, first + 100):
        lenient, strict = (both(random_orders(seed).with_strictness(how))[0] for how in (LENIENT, STRICTEST))
        assert lenient <= strict, seed
        more.update({kind for kind, *_ in strict - lenient})
    assert set(more) == {FaultKind.READ_NOT_FENCED, FaultKind.UNPUBLISHED_INIT, FaultKind.TENSOR_FENCE}
    assert min(more.values()) >= 5


def _blind(monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> int:
    """On how many programs the two disagree when one rule of the observer is broken."""
    monkeypatch.setattr(f"pipesim.prove.memory_order.{name}", value)
    found = 0
    for seed in range(150):
        program, expected = _of_graph(seed)
        order = MemoryOrder(program)
        run_canonically(program, order)
        found += {pair(fault) for fault in order.faults} != expected
    return found


@cache
def _of_graph(seed: int) -> tuple[Program, set[Said]]:
    """A program at random, and what the naive graph says of it."""
    program = random_orders(seed).with_strictness(STRICTEST if seed % 2 else LENIENT)
    return program, both(program)[1]


@pytest.mark.sampled(2, 5)
@pytest.mark.parametrize(
    ("name", "value"),
    slow_after(
        4,
        [
            ("order._RELEASES", frozenset(Order)),
            ("comparison._ACQUIRES", frozenset(Order)),
            ("order.MemoryOrder._fence", lambda *_: None),
            ("order._RELEASE_THE_ISSUE", frozenset({TMA, *Engine})),
            ("order.MemoryOrder._wait_group", lambda *_: None),
            ("comparison.AccessOrder.use", lambda *_, **__: None),
            (
                "comparison.AccessOrder._needs_fence",
                lambda _, other, __: other.writes and other.generic,
            ),  # reads need none
            ("comparison.AccessOrder._needs_fence", lambda *_: True),  # everybody needs one
            ("comparison.AccessOrder._asks_for_tensor_fence", lambda *_: False),
            ("comparison.AccessOrder._asks_for_tensor_fence", lambda *_: True),
            ("order.needs_tensor_fences", lambda _: False),
            ("comparison.AccessOrder._is_enough", lambda *_: False),
            ("comparison.AccessOrder._is_enough", lambda *_: True),
        ],
    ),
)
def test_a_rule_less_is_seen(monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> None:
    assert _blind(monkeypatch, name, value) >= 3


# the twins


def sizes(name: str) -> Iterator[dict[str, int]]:
    for stages in (1, 2) if "stages" in MEMORY[name].__annotations__ else (0,):
        for tiles in (0, 1, 2, 3, 5):
            yield {"tiles": tiles} | ({"stages": stages} if stages else {})


@pytest.mark.parametrize("name", MEMORY)
def test_a_mistake_shows_where_it_is_claimed(name: str) -> None:
    for size in sizes(name):
        program = MEMORY[name](**size).flatten().with_strictness(MEMORY_MISTAKES[name].rules)
        found, kinds = check(program), MEMORY_MISTAKES[name].kinds(size)
        assert {shown.kind.name for shown in found.refutations} == kinds, size
        assert found.verdict is (Verdict.REFUTED if kinds else Verdict.PROVED), size
        assert not found.doubts, "one run represents every schedule: only the memory order is wrong"
        for shown in found.refutations:
            again = replay(program, to_text(shown.schedule))
            (replayed,) = again.refutations
            assert isinstance(replayed.finding, FaultReport)
            assert replayed.finding.kind is shown.kind, size
            (fault,) = replay_report(program, to_text(shown.schedule)).findings
            assert isinstance(fault, FaultReport)
            assert fault.kind is shown.kind, size


@pytest.mark.parametrize("name", MEMORY)
def test_its_right_twins_are_proved(name: str) -> None:
    for size in sizes(name):
        for right in MEMORY_MISTAKES[name].corrected:
            found = check(right(**size).flatten().with_strictness(MEMORY_MISTAKES[name].rules))
            assert (found.verdict, found.how) == (Verdict.PROVED, How.CERTIFICATE), size


def test_the_twins_show_every_kind() -> None:
    assert {kind for name in MEMORY for size in sizes(name) for kind in MEMORY_MISTAKES[name].kinds(size)} == {
        kind.name for kind in OF_PROGRAMS
    }


def test_a_fault_names_both_accesses_and_what_is_too_weak_between_them() -> None:
    program = MEMORY["release_relaxed"](stages=1, tiles=2).flatten()
    (fault,) = [f for f in memory_faults(program) if program.code[f.other_agent][f.other_pc][0] == Op.READ]
    producer, consumer = 0, 1
    code = program.code
    assert (fault.kind, fault.agent, fault.other_agent) == (FaultKind.WEAK_ORDER, producer, consumer)
    assert code[producer][fault.pc] == (Op.TMA_LOAD, 0, 0, 64, 1, 0)
    assert code[consumer][fault.other_pc] == (Op.READ, 0, 0)
    assert (fault.cause_agent, fault.cause_pc) == (consumer, fault.other_pc + 1)
    assert code[consumer][fault.cause_pc] == (Op.ARRIVE, 1, 1, 0, -1, semantics(Order.RELAXED))


# what must not alarm


SOME = {name: [SIZES[name][0], SIZES[name][len(SIZES[name]) // 2]] for name in SIZES}


#: Whose copies signal another CTA's barrier as well, or are expected only when they are under way.
COPIES_WITHOUT_ARRIVAL = {"cluster_multicast", "cutlass_sm100", "gemm_sm100"}


@pytest.mark.sampled(4, 8)
@pytest.mark.parametrize("name", SIZES)
def test_no_protocol_has_a_fault(name: str) -> None:
    """At every size `check` looks where there is concern; here it is watched where there is none as well."""
    for params in SOME[name]:
        program = find(name).build(params | ({"fence": 1} if name in ("conv_epilogue", "gemm_sm100_blockwise") else {}))
        order = MemoryOrder(program)
        run_canonically(program, order)
        assert order.faults == (), params
        if name not in COPIES_WITHOUT_ARRIVAL:
            assert order_may_fail(program) is may_rely_on_a_wgmma(program), "others are not even watched by `check`"


@pytest.mark.slow
def test_only_a_producer_that_copies_as_threads_do_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(may_fail, "may_rely_on_a_wgmma", lambda _: False)
    watched = [params for params in SIZES["gemm_sm90"] if order_may_fail(find("gemm_sm90").build(params))]
    assert watched == [params for params in SIZES["gemm_sm90"] if not params.get("tma", 1)]
    assert watched


def test_an_arrive_of_another_cta_without_a_scope_is_noted() -> None:
    def noted(scope: Scope) -> list[str]:
        end = [(Op.CLUSTER_ARRIVE, 0), (Op.CLUSTER_WAIT, 0)]
        program = assembled([wait(), *end], [arrive(scope=scope), arrive(scope=scope), *end], ctas=2)
        return [advisory.claim for advisory in looked_for(program)]

    claim = "r1 arrives on b of another CTA without a scope, so with CTA scope, as libraries do"
    assert noted(Scope.DEFAULT) == [claim, claim], "once for each line"
    assert noted(Scope.CLUSTER) == noted(Scope.CTA) == []
    for name in ("cluster_multicast", "producer_consumer"):
        assert bool(looked_for(find(name).build({}))) == (name == "cluster_multicast")


# single rules, on programs of a few operations


def assembled(*codes: list[tuple[int, ...]], barriers: int = 1, ctas: int = 1) -> Program:
    """Agents 0, 1, … of CTA 0 (agent 1 of CTA 1 in a cluster) around the barriers of CTA 0 and one tile."""
    prologue: list[tuple[int, ...]] = [(Op.INIT, b, 1) for b in range(barriers)]
    prologue.append((Op.FENCE, Fence.MBARRIER_INIT, 0))
    meet = [(Op.CLUSTER_ARRIVE, 0), (Op.CLUSTER_WAIT, 0)] if ctas > 1 else [(Op.BAR_SYNC, 0, 32 * len(codes), 32)]
    whole = [[*(prologue if a == 0 else []), *meet, *code] for a, code in enumerate(codes)]
    lengths = [len(code) for code in whole]
    return Program(
        name="small", params={},
        agents=tuple(Agent(int(ctas > 1 and a > 0), 4 * a, ALL_LANES, f"r{a}", 0) for a in range(len(codes))),
        barriers=tuple(Barrier(0, "b", b) for b in range(barriers)),
        accesses=(Access(Space.SHARED, 0, 0, 64), Access(Space.TENSOR, 0, 0, 64)), tiles=(),
        code=tuple(tuple(tuple(map(int, op)) for op in code) for code in whole),
        lines=tuple(tuple(range(sum(lengths[:a]), sum(lengths[: a + 1]))) for a in range(len(codes))),
        sources=tuple(f"small:{n}" for n in range(sum(lengths))), named_barriers=((0, 0),), registers=1, ctas=ctas,
    )  # fmt: skip


def kinds(program: Program) -> list[FaultKind]:
    mine, its = both(program)
    assert mine == its
    assert check(program).verdict is (Verdict.REFUTED if mine else Verdict.PROVED)
    assert {pair(fault) for fault in memory_faults(program)} == mine, "what gives no concern has no fault"
    return sorted((fault.kind for fault in memory_faults(program)), key=lambda kind: kind.name)


def arrive(order: Order = Order.DEFAULT, scope: Scope = Scope.DEFAULT) -> tuple[int, ...]:
    return (Op.ARRIVE, 0, 1, 0, -1, semantics(order, scope))


def wait(order: Order = Order.DEFAULT, scope: Scope = Scope.DEFAULT) -> tuple[int, ...]:
    return (Op.WAIT, 0, 0, semantics(order, scope))


WRITE, READ = (Op.WRITE, 0, 1), (Op.READ, 0, 1)
STORE = (Op.TRANSFER_READ, Engine.BULK, 0, 64, 1)
PROXY = (Op.FENCE, Fence.PROXY_ASYNC, 0)


def fence(scope: Scope) -> tuple[int, ...]:
    return (Op.FENCE, Fence.ACQ_REL, semantics(scope=scope))


#: One after the other, a fence for the CTA and one for the cluster; the second reaches farther.
BOTH = [fence(Scope.CTA), fence(Scope.CLUSTER)]
RELAXED = arrive(Order.RELAXED, Scope.CLUSTER)


def tried(*between: tuple[int, ...]) -> list[tuple[int, ...]]:
    """A relaxed try, these, and a wait that is skipped if the try said yes."""
    return [(Op.TRY_WAIT, 0, 0, 0, semantics(Order.RELAXED)), *between, (Op.WAIT_UNLESS, 0, 0, 0, 0)]


@pytest.mark.parametrize(
    ("writer", "reader", "expected"),
    [
        ([WRITE, arrive()], [wait(), READ], []),
        ([WRITE, arrive(Order.RELAXED)], [wait(), READ], [FaultKind.WEAK_ORDER]),
        ([WRITE, arrive()], [wait(Order.RELAXED), READ], [FaultKind.WEAK_ORDER]),
        ([WRITE, fence(Scope.CTA), arrive(Order.RELAXED)], [wait(), READ], []),
        ([fence(Scope.CTA), WRITE, arrive(Order.RELAXED)], [wait(), READ], [FaultKind.WEAK_ORDER]),
        ([WRITE, arrive()], [wait(Order.RELAXED), fence(Scope.CTA), READ], []),
        ([WRITE, arrive(Order.RELAXED)], [wait(Order.RELAXED)], []),
        ([WRITE, arrive()], [wait(), STORE], [FaultKind.MISSING_PROXY_FENCE]),
        ([WRITE, PROXY, arrive()], [wait(), STORE], []),
        ([PROXY, WRITE, arrive()], [wait(), STORE], [FaultKind.MISSING_PROXY_FENCE]),
        ([WRITE, arrive()], [wait(), PROXY, STORE], []),
        ([WRITE, arrive()], [PROXY, wait(), STORE], [FaultKind.MISSING_PROXY_FENCE]),
        ([WRITE, PROXY, arrive(Order.RELAXED)], [wait(), STORE], [FaultKind.WEAK_ORDER]),
        ([WRITE, STORE], [], [FaultKind.MISSING_PROXY_FENCE]),
        ([WRITE, PROXY, STORE], [], []),
        ([(Op.WRITE, 1, 1), (Op.TRANSFER_READ, Engine.TCGEN05, 1, 64, 1)], [], []),  # tensor memory has one proxy
        ([WRITE, arrive(scope=Scope.CTA)], [wait(scope=Scope.CTA), READ], []),
        ([WRITE, arrive()], [*tried(fence(Scope.CTA)), READ], []),
        ([WRITE, arrive()], [*tried(PROXY), READ], [FaultKind.WEAK_ORDER]),
        ([WRITE, arrive()], [fence(Scope.CTA), *tried(), READ], [FaultKind.WEAK_ORDER]),
        ([WRITE, arrive()], [*tried(), fence(Scope.CTA), READ], []),
    ],
)
def test_of_one_cta(writer: list[Any], reader: list[Any], expected: list[FaultKind]) -> None:
    assert kinds(assembled(writer, reader)) == expected


@pytest.mark.parametrize(
    ("writer", "reader", "expected"),
    [
        ([WRITE, arrive()], [wait(), READ], []),  # as upstream writes it: at most an advisory
        ([WRITE, arrive(scope=Scope.CLUSTER)], [wait(scope=Scope.CLUSTER), READ], []),
        ([WRITE, arrive(scope=Scope.CTA)], [wait(), READ], [FaultKind.NARROW_SCOPE]),
        ([WRITE, arrive()], [wait(scope=Scope.CTA), READ], [FaultKind.NARROW_SCOPE]),
        ([WRITE, fence(Scope.CTA), arrive(Order.RELAXED, Scope.CLUSTER)], [wait(), READ], [FaultKind.NARROW_SCOPE]),
        ([WRITE, fence(Scope.CLUSTER), arrive(Order.RELAXED, Scope.CLUSTER)], [wait(), READ], []),
        ([WRITE, arrive()], [wait(Order.RELAXED), fence(Scope.CTA), READ], [FaultKind.NARROW_SCOPE]),
        ([WRITE, arrive()], [wait(Order.RELAXED), fence(Scope.CLUSTER), READ], []),
        ([WRITE, *BOTH, RELAXED], [wait(), READ], []),
        ([WRITE, *BOTH[::-1], RELAXED], [wait(), READ], []),
        ([*BOTH, WRITE, RELAXED], [wait(), READ], [FaultKind.WEAK_ORDER]),
        ([BOTH[0], WRITE, BOTH[1], RELAXED], [wait(), READ], []),
        ([BOTH[1], WRITE, BOTH[0], RELAXED], [wait(), READ], [FaultKind.NARROW_SCOPE]),
        ([WRITE, arrive()], [wait(Order.RELAXED), *BOTH, READ], []),
        ([WRITE, arrive()], [wait(Order.RELAXED), *BOTH[::-1], READ], []),
        ([WRITE, arrive()], [*BOTH, wait(Order.RELAXED), READ], [FaultKind.WEAK_ORDER]),
        ([WRITE, arrive()], [*tried(fence(Scope.CLUSTER)), READ], []),
        ([WRITE, arrive()], [*tried(fence(Scope.CTA)), READ], [FaultKind.NARROW_SCOPE]),
        ([WRITE, arrive()], [*tried(fence(Scope.CTA)), fence(Scope.CLUSTER), READ], []),
        ([WRITE, arrive()], [*tried(*BOTH), READ], []),
    ],
)
def test_across_two_ctas(writer: list[Any], reader: list[Any], expected: list[FaultKind]) -> None:
    """The writer is in CTA 1, barrier, tile and reader are in CTA 0."""
    end = [(Op.CLUSTER_ARRIVE, 0), (Op.CLUSTER_WAIT, 0)]
    assert kinds(assembled([*reader, *end], [*writer, *end], ctas=2)) == expected


COPY = (Op.TMA_LOAD, 0, 1, 64, 1, 0)
EXPECT = (Op.ARRIVE, 0, 1, 64, -1, 0)


def copied(issuer: list[Any], reader: list[Any]) -> Program:
    """The issuer's copy fills a tile beside the one that it writes."""
    program = assembled(issuer, reader)
    return replace(program, accesses=(program.accesses[0], Access(Space.SHARED, 0, 64, 64)))


@pytest.mark.parametrize(
    ("issuer", "reader", "expected"),
    [
        ([WRITE, EXPECT, COPY], [wait(), READ, (Op.READ, 1, 1)], []),  # the arrival hands the write on
        ([EXPECT, COPY], [wait(), (Op.READ, 1, 1)], []),  # the bytes hand on themselves
        ([EXPECT, WRITE, COPY], [wait(), READ], [FaultKind.WEAK_ORDER]),  # and nothing else
        ([WRITE, EXPECT, COPY], [wait(Order.RELAXED), READ], [FaultKind.WEAK_ORDER]),
        ([WRITE, COPY], [EXPECT, wait(), READ], [FaultKind.WEAK_ORDER]),  # another agent's arrival
        ([WRITE, (Op.EXPECT_TX, 0, 64, 0), COPY, arrive()], [wait(), READ], []),  # or one after it
    ],
)
def test_the_bytes_of_a_copy_tell_of_nothing_else(
    issuer: list[Any], reader: list[Any], expected: list[FaultKind]
) -> None:
    """PTX ISA, asynchronous operations: complete-tx establishes no order with prior instructions of its thread."""
    assert kinds(copied(issuer, reader)) == expected


def test_an_arrival_of_cp_async_tells_of_nothing_else() -> None:
    fill = [(Op.TRANSFER_WRITE, Engine.CP_ASYNC, 1, 64, 1), (Op.CP_ASYNC_ARRIVE, 0, 1, 1)]
    assert kinds(copied([WRITE, *fill], [wait(), READ])) == [FaultKind.WEAK_ORDER]
    assert kinds(copied(fill, [wait(), (Op.READ, 1, 1)])) == []


# snapshots


def rounds(program: Program, order: MemoryOrder) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], Snapshot]]:
    """The canonical run: after each round where the agents stand, the phases completed, and the snapshot."""
    state, moved = initial_state(program), True
    while moved:
        moved = False
        for agent in range(len(program.agents)):
            while not finished(program, state, agent):
                result = step(program, state, agent)
                order.on_step(state, agent, result)
                moved = moved or result.state is not state
                state = result.state
                if result.blocked >= 0:
                    break
        for flight in state.flights:
            if can_land(program, state, flight):
                result = land(program, state, flight)
                order.on_landing(flight, flight.remaining, result)
                state, moved = result.state, True
        channels = (*(b.done for b in state.barriers), *(g for _, _, g in state.named), state.cluster[1])
        yield state.pcs, channels, order.snapshot()


@pytest.mark.parametrize("name", MEMORY)
def test_a_lap_later_it_stands_where_it_stood(name: str) -> None:
    """In the wrong twins as in the right ones: after their fault is told they go on as before."""
    for build in (MEMORY[name], *MEMORY_MISTAKES[name].corrected):
        size = {"tiles": 12} | ({"stages": 2} if "stages" in MEMORY[name].__annotations__ else {})
        program = build(**size).flatten()
        seen = list(rounds(program, MemoryOrder(program)))
        laps = [
            (n, m) for n, (pcs, done, shot) in enumerate(seen) for m in range(n + 1, len(seen))
            if seen[m][0] != pcs and repeats(
                shot, seen[m][2], [b - a for a, b in zip(pcs, seen[m][0], strict=True)],
                [b - a for a, b in zip(done, seen[m][1], strict=True)],
            )
        ]  # fmt: skip
        assert laps or name == "init_behind_a_relaxed_arrive", "whose barriers are used once each"


def test_any_number_of_tiles_is_proved_of_the_right_twin_and_not_of_the_wrong_one() -> None:
    (_, right), wrong = MEMORY_MISTAKES["release_relaxed"].corrected, MEMORY["release_relaxed"]
    assert order_may_fail(right(stages=2, tiles=3).flatten()), "a relaxed arrive behind a fence"
    every = Family("tiles", lambda tiles: right(stages=2, tiles=tiles).flatten()).verdict()
    assert every.lap
    some = Family("tiles", lambda tiles: wrong(stages=2, tiles=tiles).flatten()).verdict()
    assert not some.lap
    assert (some.least, some.checked, some.fails) == (0, 2, 3)


def test_a_snapshot_tells_a_fenced_write_from_one_that_is_not() -> None:
    shots = []
    for code in ([WRITE, PROXY, arrive()], [PROXY, WRITE, arrive()]):
        program = assembled([*code], [wait()])
        order = MemoryOrder(program)
        shots.append([shot for *_, shot in rounds(program, order)][-1])
    assert shots[0] != shots[1]
