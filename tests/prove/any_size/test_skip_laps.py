"""A long run without the laps that repeat: it says what the whole run says, whatever is wrong in any one of them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from pipesim.errors import ProgramFormatError
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import OPERANDS, Engine, Op, Operation, Order, order_of
from pipesim.model.program import Program
from pipesim.protocols.catalog import BUILT_IN
from pipesim.prove import check as check_module
from pipesim.prove.any_size import skip_laps as accelerated_module
from pipesim.prove.any_size.skip_laps import phases_by_laps
from pipesim.prove.certificate.canonical import CanonicalRun
from pipesim.prove.check import check
from pipesim.prove.happens_before.snapshot import Snapshot
from pipesim.prove.memory_order.may_fail import memory_order
from pipesim.prove.memory_order.order import MemoryOrder
from pipesim.targets import find
from tests.prove.any_size.test_skipped_random_loops import whole
from tests.support.lanes import long_after, slow_after


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What is left out of every run: (laps, operations of one)."""
    seen: list[tuple[int, int]] = []
    leave_out = accelerated_module._LapRun._leave_out

    def told(self, lap, more, before):
        seen.append((more, sum(lap.end) - sum(lap.begin)))
        leave_out(self, lap, more, before)

    monkeypatch.setattr(accelerated_module._LapRun, "_leave_out", told)
    return seen


@pytest.mark.slow
def test_a_ring_of_any_length_takes_one_cut(cuts):
    for tiles in (100, 1_000, 4_096):
        program = find("producer_consumer").build({"tiles": tiles, "consumer_warps": 1}, twice=False)
        assert phases_by_laps(program) == 2 * tiles
    assert cuts == [(8, 72), (121, 72), (508, 72)]


@pytest.mark.slow
def test_every_lap_but_a_few_is_left_out(cuts):
    """Of 250 tiles 236; of the 64 steps of each tile 40."""
    assert phases_by_laps(find("gemm_sm100").build({"tiles": 250, "k_iters": 30}, twice=False)) == 16_501
    assert cuts == [(59, 2_088)]
    cuts.clear()
    assert phases_by_laps(find("gemm_sm90").build({"tiles": 8, "k_iters": 64}, twice=False)) == 1_028
    assert cuts == 8 * [(5, 568)]


WITHOUT = {("conv_epilogue", "tiles"), ("gemm_sm100", "k_iters")}  #: the one is wrong, the other too short to repeat
TRIPS = ({"tiles": 40}, {"kv_blocks": 60}, {"k_iters": 40}, {"k_tiles": 40})


def long_protocols() -> Iterator[tuple[str, dict[str, int]]]:
    for name in BUILT_IN:
        for trips in TRIPS:
            if trips.keys() <= find(name).defaults.keys():
                yield name, trips


@pytest.mark.slow
@pytest.mark.parametrize(("name", "params"), long_after(3, slow_after(2, long_protocols())))
def test_it_says_what_the_whole_run_says(name, params, cuts):
    program = find(name).build(params, twice=False)
    assert phases_by_laps(program) == whole(program)
    assert (not cuts) == ((name, *params) in WITHOUT)


def ring(tiles: int, *, stages: int = 2, constant: bool = False, count: int = 0, relaxed: bool = False) -> Protocol:
    """A ring; ``constant``: beside every tile the consumer reads one that was loaded before the first.

    ``relaxed``: it waits for every tile without acquiring first. ``count``: it arrives for every tile on a barrier that
    expects this many, for which no agent waits.
    """
    p = Protocol("ring")
    tile, kept = p.smem("tile", slots=stages, nbytes=64), p.smem("kept", slots=1, nbytes=64)
    counted = p.mbarriers("counted", 1, count or 1)
    full, empty, ready = p.mbarriers("full", stages, 1), p.mbarriers("empty", stages, 1), p.mbarriers("ready", 1, 1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            ready[0].expect_bytes(64)
            w.tma_load(kept[0], ready[0], 7)
            for i in range(tiles):
                empty[i % stages].wait(i // stages + 1 & 1)
                full[i % stages].expect_bytes(64)
                w.tma_load(tile[i % stages], full[i % stages], i)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        with w.elect_one():
            ready[0].wait(0)
            for i in range(tiles):
                if relaxed:
                    full[i % stages].wait_relaxed(i // stages & 1)
                full[i % stages].wait(i // stages & 1)
                w.read(tile[i % stages], i)
                if constant:
                    w.read(kept[0], 7)
                empty[i % stages].arrive()
                if count:
                    counted[0].arrive()
            w.read(tile[(tiles - 1) % stages], tiles - 1)

    return p


def with_operation(program: Program, agent: int, pc: int, *operations: Operation) -> Program:
    """The program with these in place of one operation."""
    code, lines = list(program.code), list(program.lines)
    code[agent] = (*code[agent][:pc], *operations, *code[agent][pc + 1 :])
    lines[agent] = (*lines[agent][:pc], *[lines[agent][pc]] * len(operations), *lines[agent][pc + 1 :])
    return replace(program, code=tuple(code), lines=tuple(lines))


def item_changed(operation: Operation, by: int) -> Operation:
    at = OPERANDS[Op(operation[0])].index("item") + 1
    return (*operation[:at], operation[at] + by, *operation[at + 1 :])


def reads(program: Program, agent: int) -> list[int]:
    return [pc for pc, op in enumerate(program.code[agent]) if op[0] == Op.READ]


@pytest.mark.slow
@pytest.mark.parametrize("constant", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_wrong_item_in_any_lap_is_not_left_out(constant, cuts):
    """Each read of a loop in turn names another item; also one that is loaded once, and the one behind the loop."""
    right = ring(40, constant=constant).flatten({})
    assert phases_by_laps(right) == whole(right) == 81
    assert cuts
    for pc in reads(right, 1):
        for by in (1, 100):
            wrong = with_operation(right, 1, pc, item_changed(right.code[1][pc], by))
            assert phases_by_laps(wrong) is None


@pytest.mark.parametrize("moves", [0, 1])
def test_what_two_agents_write_alike_is_compared_in_every_lap(moves, cuts):
    """In one lap one of them writes another item, which no agent names: a race. ``moves``: by lap."""
    p = Protocol("alike")
    word = p.smem("word", slots=1, nbytes=64)
    full, empty = p.mbarriers("full", 1, 2), p.mbarriers("empty", 1, 1)

    @p.role("writer", warps=2)
    def writer(w: Warp) -> None:
        for i in range(90):
            empty[0].wait(i + 1 & 1)
            w.write(word[0], 5 + moves * i)
            with w.elect_one():
                full[0].arrive()

    @p.role("reader")
    def reader(w: Warp) -> None:
        for i in range(90):
            full[0].wait(i & 1)
            w.read(word[0], -1)
            with w.elect_one():
                empty[0].arrive()

    right = p.flatten({})
    assert phases_by_laps(right) == whole(right) == 180
    assert bool(cuts) is bool(moves)
    pc = [pc for pc, op in enumerate(right.code[1]) if op[0] == Op.WRITE][70]
    wrong = with_operation(right, 1, pc, item_changed(right.code[1][pc], 1_000))
    assert phases_by_laps(wrong) is whole(wrong) is None


def test_an_unnamed_item_is_any(cuts):
    right = ring(60).flatten({})
    anything = right
    for pc in reads(right, 1):
        op = right.code[1][pc]
        anything = with_operation(anything, 1, pc, item_changed(op, -1 - op[2]))
    assert phases_by_laps(anything) == 121
    assert cuts


def test_without_a_look_at_the_items_a_wrong_one_would_pass(monkeypatch):
    right = ring(60).flatten({})
    pc = reads(right, 1)[40]
    wrong = with_operation(right, 1, pc, item_changed(right.code[1][pc], 1))
    monkeypatch.setattr(accelerated_module._LapRun, "_items_go_on", lambda *_: True)
    assert phases_by_laps(wrong) == 121


@pytest.mark.parametrize(("tiles", "right"), [(50, True), (51, False), (120, False)])
def test_what_grows_from_lap_to_lap_is_no_lap(tiles, right, cuts, monkeypatch):
    """The 51st arrive comes early. Where nothing records how many there were, all laps look the same."""
    program = ring(tiles, count=50).flatten({})
    assert (phases_by_laps(program) is not None, whole(program) is not None, cuts) == (right, right, [])
    snapshot = CanonicalRun.snapshot

    def forgetful(self):
        taken = snapshot(self)
        return taken._replace(snapshots=tuple(Snapshot((), (), ()) for _ in taken.snapshots))

    monkeypatch.setattr(CanonicalRun, "snapshot", forgetful)
    assert phases_by_laps(program) is not None
    assert cuts


def test_the_memory_order_is_watched_too(cuts):
    """A wait that only looks, and one behind it that acquires; in one lap the second looks only as well."""
    right = ring(80, relaxed=True).flatten({})
    observer = memory_order(right)
    assert observer is not None
    assert phases_by_laps(right, observer) == whole(right)
    assert cuts
    waits = [pc for pc, op in enumerate(right.code[1]) if op[0] == Op.WAIT]
    relaxed, strong = (right.code[1][waits[n]] for n in (99, 100))
    assert (order_of(relaxed[3]), order_of(strong[3])) == (Order.RELAXED, Order.DEFAULT)
    wrong = with_operation(right, 1, waits[100], relaxed)
    assert phases_by_laps(wrong, memory_order(wrong)) is None
    assert whole(wrong) is not None, "nothing else is wrong with it"


@pytest.mark.slow
def test_a_search_in_vain_costs_no_more_than_a_run(monkeypatch):
    """Tiles of uneven numbers of steps: whatever lies ahead is too little to be worth a cut."""
    looks = []
    again = accelerated_module._LapRun._again

    def told(self, lap):
        looks.append(lap)
        return again(self, lap)

    monkeypatch.setattr(accelerated_module._LapRun, "_again", told)
    random = Random(0)
    program = uneven([40 + 2 * random.randrange(10) for _ in range(60)])
    operations = sum(map(len, program.code))
    assert phases_by_laps(program) == whole(program)
    assert operations // 4 < len(looks) <= 2_000 + operations // 2


def uneven(steps: list[int]) -> Program:
    """A ring of two stages through which tiles pass in this many steps each; the consumer works after every tile."""
    p = Protocol("uneven")
    tile = p.smem("tile", slots=2, nbytes=64)
    full, empty = p.mbarriers("full", 2, 1), p.mbarriers("empty", 2, 1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            for i in range(sum(steps)):
                empty[i % 2].wait(i // 2 + 1 & 1)
                full[i % 2].expect_bytes(64)
                w.tma_load(tile[i % 2], full[i % 2], i)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        with w.elect_one():
            i = 0
            for n in steps:
                for _ in range(n):
                    full[i % 2].wait(i // 2 & 1)
                    w.read(tile[i % 2], i)
                    empty[i % 2].arrive()
                    i += 1
                w.work(100)

    return p.flatten({})


def test_a_warp_beside_those_that_multiply_has_no_part_in_their_groups(cuts):
    """The producer is of the warp group whose other warp commits wgmmas: it is no further behind in each lap."""
    p = Protocol("beside")
    tile, sums = p.smem("tile", slots=2, nbytes=1024), p.registers("sums", slots=1, nbytes=1024)
    full, empty = p.mbarriers("full", 2, 1), p.mbarriers("empty", 2, 1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            for i in range(60):
                empty[i % 2].wait(i // 2 + 1 & 1)
                full[i % 2].expect_bytes(1024)
                w.tma_load(tile[i % 2], full[i % 2], i)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(60):
            full[i % 2].wait(i // 2 & 1)
            w.mma(Engine.WGMMA, reads=[(tile[i % 2], i)], writes=[(sums[0], i)])
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA, 0)
            with w.elect_one():
                empty[i % 2].arrive()

    program = p.flatten({})
    assert program.warp_groups == ((1,), (1,))
    assert phases_by_laps(program) == whole(program) == 120
    assert cuts


LONG_LOOPS = {
    "producer_consumer": {"tiles": 50, "stages": 2, "consumer_warps": 2},
    "cluster_multicast": {"tiles": 24, "stages": 2},
    "gemm_sm90": {"tiles": 2, "k_iters": 24, "stages": 2},
    "attention_sm90": {"kv_blocks": 24},
    "attention_sm90_fused": {"kv_blocks": 24, "stages": 3},
    "persistent_scheduler": {"tiles": 24},
}


def mutated(program: Program, seed: int) -> Program:
    """One operation anywhere is left out, doubled, put behind the next one, or has an operand that is one off."""
    random = Random(seed)
    agent = random.choices(range(len(program.code)), [len(code) for code in program.code])[0]
    pc = random.randrange(len(program.code[agent]) - 1)
    op, following = program.code[agent][pc : pc + 2]
    try:
        match random.randrange(4):
            case 0:
                return with_operation(program, agent, pc)
            case 1:
                return with_operation(program, agent, pc, op, op)
            case 2:
                return with_operation(with_operation(program, agent, pc + 1, op), agent, pc, following)
            case _:
                at = random.randrange(1, len(op)) if len(op) > 1 else 0
                other = (*op[:at], op[at] ^ 1, *op[at + 1 :]) if at else op
                return with_operation(program, agent, pc, other)
    except ProgramFormatError:  # no program, such as one with the end of a loop that has not begun
        return program


@pytest.mark.slow
@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("mutants", [10, pytest.param(30, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", LONG_LOOPS)
def test_of_a_mutant_it_says_what_the_whole_run_says(name, mutants, cuts):
    """The counts: mutants that are right, and those of them that had laps left out; wrong ones as well."""
    program = find(name).build(LONG_LOOPS[name], twice=False)
    counts: Counter[tuple[bool, bool]] = Counter()
    for seed in range(mutants):
        cuts.clear()
        mutant = mutated(program, seed)
        said = phases_by_laps(mutant)
        assert said == whole(mutant), seed
        counts[said is not None, bool(cuts)] += 1
    assert dict(counts) == MUTANTS[name][mutants]


#: By the number of mutants.
MUTANTS = {
    "producer_consumer": {
        10: {(False, False): 1, (False, True): 4, (True, True): 5},
        30: {(False, False): 5, (False, True): 10, (True, True): 15},
    },
    "cluster_multicast": {
        10: {(False, False): 3, (True, False): 3, (True, True): 4},
        30: {(False, False): 7, (False, True): 3, (True, False): 6, (True, True): 14},
    },
    "gemm_sm90": {
        10: {(False, False): 2, (False, True): 1, (True, True): 7},
        30: {(False, False): 2, (False, True): 6, (True, True): 22},
    },
    "attention_sm90": {
        10: {(False, False): 4, (False, True): 1, (True, False): 3, (True, True): 2},
        30: {(False, False): 6, (False, True): 4, (True, False): 6, (True, True): 14},
    },
    "attention_sm90_fused": {
        10: {(False, False): 1, (False, True): 1, (True, True): 8},
        30: {(False, False): 6, (False, True): 4, (True, True): 20},
    },
    "persistent_scheduler": {
        10: {(False, False): 2, (False, True): 2, (True, False): 1, (True, True): 5},
        30: {(False, False): 7, (False, True): 3, (True, False): 3, (True, True): 17},
    },
}


@pytest.mark.slow
def test_a_long_program_is_judged_so(monkeypatch):
    """What is not proved so is run as it is, to tell why."""
    asked = []

    def told(program: Program, memory: MemoryOrder | None) -> int | None:
        asked.append(phases_by_laps(program, memory))
        return asked[-1]

    monkeypatch.setattr(check_module, "phases_by_laps", told)
    monkeypatch.setattr(check_module, "LONG", 500)
    right = ring(80, constant=True).flatten({})
    wrong = with_operation(right, 1, reads(right, 1)[-1], item_changed(right.code[1][reads(right, 1)[-1]], 1))
    assert check(right).verdict is Verdict.PROVED
    assert [found.kind for found in check(wrong).refutations] == [FaultKind.WRONG_ITEM]
    assert check(ring(20).flatten({})).verdict is Verdict.PROVED
    assert asked == [161, None]
    assert memory_order(right) is None
