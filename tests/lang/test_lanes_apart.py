"""Roles whose lanes run independently: what is recorded, what is refused, and what the engines find."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipesim.answers.check import check as answer
from pipesim.errors import ProgramFormatError, ProtocolError
from pipesim.formats.promela.text import to_promela
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.coverage import Assumption, Strictness
from pipesim.model.finding import FaultKind
from pipesim.model.ops import Engine, Fence, Op, Operation, Order, Scope
from pipesim.model.program import Program
from pipesim.model.program_json import dumps, loads
from pipesim.model.tables import Agent
from pipesim.prove.check import check
from pipesim.prove.search.breadth_first import search_memory_order
from pipesim.report.sentences.check import check_sentence
from pipesim.targets import target_of
from tests.support.random_programs.lanes import random_lanes
from tests.support.random_schedules import every_end, outcomes

ALL, ELECTED, ANOTHER, OTHERS = 0xFFFFFFFF, 1, 2, 0xFFFFFFFC
SOURCE = Path(__file__).read_text(encoding="utf-8").splitlines()


def ring(*, sync: bool = True, elected: bool = True, warps: int = 1, tiles: int = 5, apart: bool = True) -> Program:
    """A producer refills a tile when its readers have arrived: one lane of each warp, or all."""
    p = Protocol("ring")
    tile = p.smem("tile", 2, 64)
    full, empty = p.mbarriers("full", 2, 1), p.mbarriers("empty", 2, warps * (1 if elected else 32))

    @p.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            if i >= 2:
                empty[i % 2].wait((i // 2 - 1) & 1)
            with w.elect_one():
                full[i % 2].expect_bytes(64)
                w.tma_load(tile[i % 2], full[i % 2], i)  # refill

    @p.role("consumer", warps=warps, lanes_apart=apart)
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            full[i % 2].wait(i // 2 & 1)
            w.read(tile[i % 2], i)
            if sync:
                w.sync_warp()
            if elected:
                with w.elect_one():
                    empty[i % 2].arrive()
            else:
                empty[i % 2].arrive()

    return p.flatten()


def one_role(body: Callable[[Warp, TileArray, BarrierStorage], None], cluster: int = 1, count: int = 1) -> Program:
    p = Protocol("one", cluster=cluster)
    tile, bars = p.smem("tile", 2, 64), p.mbarriers("bars", 2, count)
    p.role("r", lanes_apart=True)(lambda w: body(w, tile, bars))
    return p.flatten()


def test_each_warp_is_three_agents_and_only_the_first_does_what_is_elected() -> None:
    program = ring(warps=2, tiles=1)
    assert program.agents == (
        Agent(0, 0, ALL, "producer", 0),
        *(Agent(0, 1 + i, ELECTED, "consumer", i) for i in range(2)),
        *(Agent(0, 1 + i, ANOTHER, "consumer_lane1", i) for i in range(2)),
        *(Agent(0, 1 + i, OTHERS, "consumer_others", i) for i in range(2)),
    )
    assert program.named_barriers == ((0, 0), (0, 17), (0, 18))
    wait, read = (op for op in program.code[1] if op[0] in (Op.WAIT, Op.READ))
    for agent, lanes in (1, 1), (3, 1), (5, 30):
        arrive = [op for op in program.code[agent] if op[0] == Op.ARRIVE]
        assert len(arrive) == (agent == 1)
        assert program.code[agent] == (
            (Op.BAR_SYNC, 0, 96, lanes), wait, read, (Op.BAR_SYNC, 1, 32, lanes), *arrive
        )  # fmt: skip


def test_an_arrive_of_all_lanes_counts_the_lanes_of_each_agent() -> None:
    program = ring(sync=False, elected=False, tiles=1)
    counts = [op[2] for code in program.code[1:] for op in code if op[0] == Op.ARRIVE]
    assert counts == [1, 1, 30]


@pytest.mark.parametrize("warps", [1, 2])
@pytest.mark.parametrize("elected", [True, False])
def test_the_right_twins_are_proved(elected: bool, warps: int) -> None:  # a parameter
    program = ring(sync=elected, elected=elected, warps=warps)
    assert check(program).verdict.value == "proved"
    assert outcomes(program) == {"finished"}


def test_an_elected_arrive_that_runs_ahead_of_lanes_that_read_is_refuted() -> None:
    found = check(ring(sync=False))
    assert found.verdict.value == "refuted"
    fault = found.refutations[0].fault
    assert fault is not None
    program = ring(sync=False)
    lines = {program.line(fault.agent, fault.pc), program.line(fault.other_agent, fault.other_pc)}
    wanted = {n for n, line in enumerate(SOURCE, 1) if "# refill" in line or "w.read(tile[i % 2], i)" in line}
    assert fault.kind is FaultKind.RACE
    assert {int(line.rpartition(":")[2]) for line in lines} <= wanted
    assert "refill" in SOURCE[int(program.line(fault.agent, fault.pc).rpartition(":")[2]) - 1]
    assert outcomes(ring(sync=False)) != {"finished"}


def test_other_engines_agree() -> None:
    """No certificate: every schedule, by the plain search and by that of memory order."""
    assert every_end(ring(tiles=3)) == {"finished"}
    assert "RACE" in every_end(ring(sync=False, tiles=3))
    right = search_memory_order(ring(tiles=3))
    assert right.complete
    assert right.refutations == ()


def test_two_lanes_that_are_not_elected_are_told_apart() -> None:
    """The elected lane is ordered with every other one in both directions, any two others are not."""

    def body(w: Warp, tile: TileArray, bars: BarrierStorage) -> None:
        w.write(tile[0], 1)
        with w.elect_one():
            bars[0].arrive(32)
        bars[0].wait(0)
        bars[1].arrive()
        with w.elect_one():
            bars[1].wait(0)
        w.write(tile[0], 2)

    found = check(one_role(body, count=32))
    fault = found.refutations[0].fault
    assert fault is not None
    assert fault.kind is FaultKind.RACE
    assert {fault.agent, fault.other_agent} == {1, 2}


def store(*, fence: bool = True, before: bool = True, after: bool = True) -> Program:
    """All lanes write a tile, one stores it."""

    def body(w: Warp, tile: TileArray, _: BarrierStorage) -> None:
        for i in range(2):
            w.write(tile[0], i)
            if fence:
                w.fence(Fence.PROXY_ASYNC)
            if before:
                w.sync_warp()
            with w.elect_one():
                w.async_read(Engine.BULK, tile[0], i)
                w.commit(Engine.BULK)
                w.wait_group(Engine.BULK, 0)
            if after:
                w.sync_warp()

    return one_role(body)


def test_a_store_by_one_lane_waits_for_the_writes_of_all_and_the_next_writes_for_the_store() -> None:
    assert check(store()).verdict.value == "proved"
    assert _kind(store(before=False)) is FaultKind.RACE
    assert _kind(store(after=False)) is FaultKind.RACE
    assert _kind(store(fence=False)) is FaultKind.MISSING_PROXY_FENCE


def _kind(program: Program) -> FaultKind | None:
    fault = check(program).refutations[0].fault
    return fault.kind if fault is not None else None


def test_lanes_that_never_meet_are_named() -> None:
    def body(w: Warp, _: TileArray, bars: BarrierStorage) -> None:
        with w.elect_one():
            bars[0].wait(0)
        w.sync_warp()

    deadlock = check(one_role(body)).refutations[0].deadlock
    assert deadlock is not None
    assert [each.barrier for each in deadlock.blocked] == ["bars[0]", "the lanes of warp 0", "the lanes of warp 0"]


def _use_elsewhere(w: Warp, _: TileArray, bars: BarrierStorage) -> None:
    with w.elect_one():
        state = bars[0].arrive()
    bars[0].wait_state(state)


def _four(w: Warp, _: TileArray, bars: BarrierStorage) -> None:
    with w.lanes(4):
        bars[0].arrive()


def _elected_sync(w: Warp, _: TileArray, __: BarrierStorage) -> None:
    with w.elect_one():
        w.sync_warp()


REFUSED: dict[str, Callable[[Warp, TileArray, BarrierStorage], object]] = {
    "wgmma in a role": lambda w, t, _: w.mma(Engine.WGMMA, reads=[(t[0], 1)]),
    "wgmma.wait_group in a role": lambda w, *_: w.wait_group(Engine.WGMMA),
    "wgmma.commit_group in a role": lambda w, *_: w.commit(Engine.WGMMA),
    "setmaxnreg in a role": lambda w, *_: w.setmaxnreg(40),
    "bar.arrive in a role": lambda w, *_: w.bar_arrive(1, 64),
    "barrier.cluster.arrive in a role": lambda w, *_: w.cluster_sync(),
    "barrier.cluster.wait in a role": lambda w, *_: w.cluster_wait(),
    "a copy that each lane makes a part of in a role": lambda w, t, _: w.async_write(Engine.BULK, t[0], 1),
    "64 bytes are copied by 32 lanes": lambda w, t, _: w.async_write(Engine.CP_ASYNC, t[0], 1),
    "a result is used by lanes that do not have it": _use_elsewhere,
    "4 lanes execute, in a role": _four,
    "1 of 32 lanes execute bar.warp.sync": _elected_sync,
}


@pytest.mark.parametrize("fact", REFUSED)
def test_what_needs_the_warp_together_is_refused(fact: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        one_role(REFUSED[fact])  # type: ignore[arg-type]  # what it returns is of no interest
    assert fact in caught.value.fact
    assert caught.value.place.startswith(f"{__file__}:")
    assert caught.value.cause
    assert caught.value.correction


@pytest.mark.parametrize("space", ["tmem", "registers"])
def test_tensor_memory_and_registers_are_refused(space: str) -> None:
    p = Protocol("p")
    acc = getattr(p, space)("acc", 1, 64)
    p.role("r", lanes_apart=True)(lambda w: w.read(acc[0]))
    with pytest.raises(ProtocolError, match=r"access to acc\[0\]"):
        p.flatten()


def test_the_warps_of_its_own_alone_come_to_its_barrier() -> None:
    program = ring(tiles=1)
    assert loads(dumps(program)) == program
    assert "is the lanes of warp 1" in to_promela(program)
    for number, threads, place in (
        (16, 32, r"number 16"),  # the one agent of warp 0 has all its lanes
        (18, 32, r"number 18"),  # there is no warp 2
        (17, 64, r"number 17"),
    ):
        code = tuple(tuple(_threads(op, threads) for op in each) for each in program.code)
        with pytest.raises(ProgramFormatError, match=place):
            replace(program, named_barriers=((0, 0), (0, number)), code=code)
    stranger = ((*program.code[0], (int(Op.BAR_SYNC), 1, 32, 32)), *program.code[1:])
    with pytest.raises(ProgramFormatError, match="number 17"):
        replace(program, code=stranger, lines=((*program.lines[0], 0), *program.lines[1:]))


def _threads(op: Operation, threads: int) -> Operation:
    """The operation, with as many threads if it is on the lanes' own barrier."""
    return (*op[:2], threads, op[3]) if op[:2] == (Op.BAR_SYNC, 1) else op


def copied(*, noinc: bool = True, sync: bool = True, arrive: bool = True, apart: bool = True) -> Program:
    """Every lane copies a part of a tile by ``cp.async``, and arrives when its own copies have landed, or they meet."""
    p = Protocol("copied")
    tile, full, empty = p.smem("tile", 2, 512), p.mbarriers("full", 2, 32 if arrive else 1), p.mbarriers("empty", 2, 32)

    @p.role("copy", lanes_apart=apart)
    def copy(w: Warp) -> None:
        for i in range(4):
            empty[i % 2].wait((i // 2 + 1) & 1)
            w.async_write(Engine.CP_ASYNC, tile[i % 2], i)  # copy
            if arrive:
                full[i % 2].cp_async_arrive(noinc=noinc)
                continue
            w.commit(Engine.CP_ASYNC)
            w.wait_group(Engine.CP_ASYNC)
            if sync:
                w.sync_warp()
            with w.elect_one():
                full[i % 2].arrive()  # arrive

    @p.role("consumer", lanes_apart=apart)
    def consumer(w: Warp) -> None:
        for i in range(4):
            full[i % 2].wait(i // 2 & 1)
            w.read(tile[i % 2], i)  # read
            empty[i % 2].arrive()

    return p.flatten()


@pytest.mark.parametrize("arrive", [True, False])
def test_lanes_copy_their_parts(arrive: bool) -> None:  # a parameter
    program = copied(arrive=arrive)
    copies = {op[2] for code in program.code[:3] for op in code if op[0] == Op.TRANSFER_WRITE}
    assert sorted(program.accesses[each].nbytes for each in copies) == [16, 16, 16, 16, 480, 480]
    assert check(program).verdict.value == "proved"
    assert outcomes(program) == {"finished"}


def test_copies_of_lanes_that_did_not_meet_are_not_waited_for() -> None:
    wrong = copied(arrive=False, sync=False)
    found = check(wrong).refutations[0].fault
    assert found is not None
    assert found.kind in (FaultKind.RACE, FaultKind.UNINITIALISED_READ)
    lines = {wrong.line(found.agent, found.pc), wrong.line(found.other_agent, found.other_pc)}
    assert any("# copy" in SOURCE[int(line.rpartition(":")[2]) - 1] for line in lines)
    assert check(copied(noinc=False)).verdict.value == "refuted"


STRICT = Strictness({Assumption.LANES})


def elected(*, before: bool = True, after: bool = True, barrier: bool = False, tiles: int = 3) -> Program:
    """A ring whose consumer elects a lane for its arrive; its lanes meet before, and after, or at a barrier."""
    p = Protocol("elected")
    tile, full, empty = p.smem("tile", 2, 64), p.mbarriers("full", 2, 1), p.mbarriers("empty", 2, 1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles):
                empty[i % 2].wait((i // 2 + 1) & 1)
                full[i % 2].expect_bytes(64)
                w.tma_load(tile[i % 2], full[i % 2], i)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            full[i % 2].wait(i // 2 & 1)  # wait
            w.read(tile[i % 2], i)
            if before:
                w.sync_warp()
            with w.elect_one():
                empty[i % 2].arrive()  # elected
            if barrier:
                w.bar_sync(1, 32)
            if after:
                w.sync_warp()

    return p.flatten()


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        (elected(), []),
        (elected(after=False, barrier=True), []),
        (elected(after=False), ["# wait"]),
        (elected(before=False), ["# elected"]),
        (elected(before=False, after=False), ["# elected", "# wait"]),
        (elected(before=False, tiles=1), ["# elected"]),
        (elected(after=False, tiles=1), []),
        (ring(sync=False), []),
    ],
)
def test_what_rests_on_lanes_that_are_together_is_assumed_and_a_finding_where_that_is_ruled_out(
    program: Program, lines: list[str]
) -> None:
    mine = [each for each in program.coverage.assumed if "producer" not in each.what]
    assert {each.kind for each in mine} <= {Assumption.LANES}
    assert [SOURCE[int(each.lines[0].rpartition(":")[2]) - 1].rpartition("  ")[2] for each in mine] == lines
    if program.name == "elected":
        assert check(program).verdict.value == "proved"
        strict = check(program.with_strictness(STRICT))
        assert strict.verdict.value == ("refuted" if lines else "proved")
        assert {each.kind for each in strict.refutations} == ({FaultKind.LANES_APART} if lines else set())


@pytest.mark.parametrize(
    ("meet", "lines"),
    [
        (lambda w: w.bar_sync(1, 32), 0),
        (lambda w: w.bar_arrive(1, 32), 1),
        (lambda w: (w.cluster_arrive(), w.cluster_wait()), 0),
        (lambda w: (w.cluster_arrive(Order.RELAXED), w.cluster_wait()), 1),
    ],
)
def test_what_has_lanes_execute_together_orders_their_accesses_only_if_they_wait(
    meet: Callable[[Warp], object], lines: int
) -> None:
    p = Protocol("together")
    tile, empty = p.smem("tile", 1, 64), p.mbarriers("empty", 1, 1)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        w.write(tile[0], 0)
        meet(w)
        with w.elect_one():
            empty[0].arrive()

    assert len(p.flatten().coverage.assumed) == lines


def fenced(said: str) -> Program:
    """A warp writes and signals, another one waits and reads, or copies what was written.

    Each step is what all lanes do or an elected one does, or that they meet; ``weak``: without a release or acquire.
    """
    p = Protocol("fenced")
    tile, full = p.smem("tile", 1, 128), p.mbarriers("full", 1, 32 if "all weak arrive" in said else 1)[0]
    order, proxies = (lambda w: w.fence(Fence.ACQ_REL, Scope.CTA)), (lambda w: w.fence(Fence.PROXY_ASYNC))

    def copy(w: Warp) -> None:
        w.async_read(Engine.BULK, tile[0], 1)
        w.commit(Engine.BULK)
        w.wait_group(Engine.BULK)

    acts: dict[str, Callable[[Warp], object]] = {
        "write": lambda w: w.write(tile[0], 1), "read": lambda w: w.read(tile[0], 1), "copy": copy,
        "fence": order, "proxy": proxies, "arrive": lambda _: full.arrive(), "wait": lambda _: full.wait(0),
        "weak arrive": lambda _: full.arrive(order=Order.RELAXED), "weak wait": lambda _: full.wait_relaxed(0),
    }  # fmt: skip

    def does(w: Warp, steps: str) -> None:
        for step in steps.split(", "):
            who, _, what = step.partition(" ")
            if who == "meet":
                w.sync_warp()
            elif who == "all":
                acts[what](w)
            else:
                with w.elect_one():
                    acts[what](w)

    first, second = said.split(" | ")
    p.role("writer")(lambda w: does(w, first))
    p.role("reader")(lambda w: does(w, second))
    return p.flatten()


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("all write, all proxy, meet, elect arrive | elect wait, elect copy", True),
        ("all write, meet, elect proxy, elect arrive | elect wait, elect copy", True),
        ("all write, elect proxy, meet, elect arrive | elect wait, elect copy", False),  # too early for the others
        ("all write, meet, all fence, elect weak arrive | all wait, all read", True),
        ("all write, all fence, meet, elect weak arrive | all wait, all read", False),
        ("all write, elect fence, meet, all weak arrive | all wait, all read", False),
        ("all write, all fence, meet, all weak arrive | all wait, all read", True),
        ("all write, meet, elect arrive | all weak wait, all fence, all read", True),
        ("all write, meet, elect arrive | all weak wait, elect fence, all read", False),
        ("all write, meet, elect arrive | all weak wait, elect fence, meet, all read", True),
        ("all write, meet, elect arrive | elect weak wait, meet, all fence, all read", False),
        ("all write, meet, elect arrive | elect weak wait, meet, all fence, meet, all read", True),
    ],
)
def test_a_fence_orders_what_its_own_lane_knows_of(said: str, *, right: bool) -> None:
    program = fenced(said)
    assert check(program).verdict.value == "proved"
    strict = check(program.with_strictness(STRICT))
    assert strict.verdict.value == ("proved" if right else "refuted")
    assert {each.kind for each in strict.refutations} == (set() if right else {FaultKind.LANES_APART})


def test_the_verdict_names_what_rests_on_lanes() -> None:
    said = check_sentence(answer(target_of(elected(after=False)), {}))
    assert "(--strict-lanes, 1)" in said
    assert "lanes" not in check_sentence(answer(target_of(elected()), {}))


@pytest.mark.slow
def test_random_roles_that_rest_on_no_lanes_are_right_with_lanes_apart() -> None:
    verdicts = set()
    for seed in range(60):
        together = check(random_lanes(seed, apart=False).with_strictness(STRICT), 3_000).verdict.value
        verdicts.add((together, check(random_lanes(seed, apart=True), 3_000).verdict.value))
    assert verdicts == {("proved", "proved"), ("refuted", "proved"), ("refuted", "refuted")}
