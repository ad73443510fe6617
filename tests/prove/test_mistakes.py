"""Wrong programs: a search of all schedules shows what is claimed, `check` says the same, and what corrects them."""

from functools import cache
from itertools import product
from pathlib import PurePath

import pytest

from pipesim.findings.catalog import MEMORY_ORDER, NO_MOVE_SHOWS
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.groups import ON_NAMED_BARRIER, PRIVATE, TOUCHES_MEMORY
from pipesim.model.ops import Op, Operation, operand, with_operand
from pipesim.model.program import Program
from pipesim.prove.check import Check, How, check
from pipesim.prove.repair.edits import apply_repair
from pipesim.prove.search.breadth_first import Exploration, explore
from tests.support.lanes import slow_but
from tests.support.mistakes.kernel_mistakes import KERNEL_MISTAKES
from tests.support.mistakes.ring import right_ring
from tests.support.mistakes.ring_mistakes import RING_MISTAKES
from tests.support.offered import offered_for, without_places

MOST_STATES = 30_000
SMALL = 3000  #: states that `check` may visit where it searches
Size = dict[str, int]


def around(s: int) -> list[int]:
    """No tile, one, and around one and two laps of a ring of ``s`` stages."""
    return sorted({0, 1, s - 1, s, s + 1, 2 * s, 2 * s + 1})


def ring_sizes(*stages: int) -> list[Size]:
    return [{"stages": s, "tiles": n} for s in stages for n in around(s)]


def k_sizes(*k_iters: int) -> list[Size]:
    return [{"stages": s, "tiles": n, "k_iters": k} for s, n, k in product((1, 2), (0, 1, 2, 3), k_iters)]


def sizes(name: str) -> list[Size]:
    match name:
        case "phase_toggles_every_tile" | "phase_toggles_a_stage_early" | "consumer_arrives_twice":
            return ring_sizes(1, 2, 3)
        case "consumer_peels_a_step" | "producer_peels_a_step":
            return k_sizes(0, 1, 2)
        case "counters_restart_with_every_tile":
            longer = [{"stages": s, "tiles": 2, "k_iters": k} for s, k in ((2, 5), (2, 7), (3, 4), (3, 6))]
            return [*k_sizes(0, 1, 2, 3, 4), *longer]
        case "consumer_stops_early":
            return [{**size, "missing": m} for size in ring_sizes(1, 2) for m in range(size["tiles"] + 1)]
        case "one_number_for_two_pairs":
            return [{"tiles": n} for n in range(2)]
    parameters = RING_MISTAKES[name].right.__annotations__
    if RING_MISTAKES[name].right.__name__ == "multicast":
        return [{"stages": s, "tiles": n} for s in (1, 2) for n in range(5 - s)][:7]
    if "slots" in parameters:
        return [{"slots": s, "tiles": n} for s in (1, 2) for n in around(s)]
    if name.startswith("wgmma"):
        return [{"stages": 1, "tiles": n} for n in (1, 2)]
    return ring_sizes(1, 2) if "stages" in parameters else [{"tiles": n} for n in range(4)]


@cache
def flat(name: str, *size: tuple[str, int]) -> Program:
    return RING_MISTAKES[name].wrong(**dict(size)).flatten()


@cache
def searched(name: str, *size: tuple[str, int]) -> Exploration:
    return explore(flat(name, *size), MOST_STATES, reduced=name.startswith("wgmma"))  # four warps: many states


def checked(name: str, size: Size) -> Check:
    return check(flat(name, *size.items()), SMALL)


@pytest.mark.sampled(14, 32)
@pytest.mark.parametrize("name", slow_but([*RING_MISTAKES][1::2], RING_MISTAKES))
def test_every_schedule_shows_what_is_claimed_and_check_does_not_contradict(name: str) -> None:
    """And it refutes wherever there is something: an engine that says `unknown` contradicts nothing."""
    for size in sizes(name):
        judge, said, claimed = searched(name, *size.items()), checked(name, size), RING_MISTAKES[name].kinds(size)
        assert said.verdict in ((Verdict.REFUTED,) if claimed else (Verdict.PROVED, Verdict.UNKNOWN)), size
        assert judge.complete
        assert {kind.name for kind in judge.kinds} == claimed, size
        assert {refutation.kind for refutation in said.refutations} - NO_MOVE_SHOWS <= judge.kinds, size
        assert (said.verdict is Verdict.UNKNOWN) == (said.how is How.NOTHING), size


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_the_right_ring_is_proved_at_every_size(stages: int) -> None:
    for tiles in around(stages):
        program = right_ring(stages, tiles).flatten()
        assert (check(program).verdict, check(program).how) == (Verdict.PROVED, How.CERTIFICATE)
        assert explore(program, MOST_STATES, reduced=False).verdict is Verdict.PROVED


def test_what_mistakes_are_made_in_is_proved() -> None:
    mistakes = (RING_MISTAKES | KERNEL_MISTAKES).values()
    for right in {(each.right, str(each.rights)): each for each in mistakes}.values():
        assert [check(make().flatten()).verdict for make in right.corrected] == [Verdict.PROVED], right.name


def test_the_mistakes_show_every_kind_of_fault_that_a_protocol_can_have() -> None:
    """What is missing is about single instructions; or memory order, which no schedule shows (test_memory_order.py);
    or work under way at the end, which is a finding with a switch only (search/test_outcomes.py).

    And warps, 32 threads each, never overrun a multiple of 32; no protocol branches (test_outcomes.py), and none is
    read from PTX (tests/ptx/emulate/test_lanes.py).
    """
    shown = {kind for name, each in RING_MISTAKES.items() for size in sizes(name) for kind in each.kinds(size)}
    missing = {kind.name for kind in FaultKind} | {Ending.DEADLOCK.name}
    assert missing - shown - {kind.name for kind in MEMORY_ORDER} == {
        "ARRIVE_COUNT", "TX_EDGE", "NO_COMPLETE", "STALE_STATE", "BARRIER_OVERRUN", "TWO_OUTCOMES", "LANES_APART",
        "WARP_SHAPE", "TOO_MANY_REGISTERS", "TENSOR_ALLOCATION", "READ_BEFORE_WAIT", "ILLEGAL_OPERAND", "WGMMA_FENCE",
        "STALE_WAIT", "UNDER_WAY_AT_EXIT", "GLOBAL_RACE", "BEFORE_GRID_WAIT", "TENSOR_MAP_FENCE",
    }  # fmt: skip


@pytest.mark.sampled(12, 24)
@pytest.mark.parametrize("name", slow_but([*RING_MISTAKES][::3], RING_MISTAKES))
def test_what_is_offered_for_a_small_mistake_does_correct_it(name: str) -> None:
    """The search of all schedules, not the proof that the offer rests on, says that the program is right then."""
    program, offered = offered_for(name)
    assert list(dict.fromkeys(without_places(each.said) for each in offered)) == list(RING_MISTAKES[name].offered)
    for each in offered:
        right = apply_repair(program, each.repair)
        assert right is not None
        seen = explore(right, 20_000)
        assert seen.refutations == ()
        assert seen.complete or sum(map(len, program.code)) > 60, "the small ones are followed to their ends"


#: Mistakes whose correction is another spelling of the right kernel: the operation stands beside the place where the
#: right kernel has it, or in iterations in which it makes no difference.
ELSEWHERE = {
    "grouped_ring.no_wait", "multistage.no_commit_in_tail", "multicast.relaxed",
    "multicast.narrow", "hand_over.another_number",
}  # fmt: skip


@pytest.mark.sampled(12, 22)
@pytest.mark.parametrize("name", KERNEL_MISTAKES)
def test_what_is_offered_for_a_mistake_in_a_kernel(name: str) -> None:
    mistake = KERNEL_MISTAKES[name]
    program, offered = offered_for(name)
    assert {refuted.kind.name for refuted in check(program, SMALL).refutations} == mistake.kinds({})
    assert sorted({without_places(each.said) for each in offered}) == sorted(mistake.offered)
    as_meant: list[bool] = []
    for each in offered:
        right = apply_repair(program, each.repair)
        assert right is not None
        assert check(right, 1).verdict is Verdict.PROVED
        as_meant.append(does(right) == does(mistake.corrected[0]().flatten()))
        assert PurePath(each.line.rpartition(":")[0]).name in ("kernels.py", "ring.py", "small.py")
    assert any(as_meant) == (bool(offered) and name not in ELSEWHERE)


def does(program: Program) -> list[list[Operation]]:
    """What every agent does to others: no times and names, registers of tokens or numbers of tables."""
    return [[_plain(program, op) for op in code if op[0] not in PRIVATE or op[0] == Op.FENCE] for code in program.code]


def _plain(program: Program, op: Operation) -> Operation:
    if op[0] == Op.ARRIVE:
        return (*op[:4], op[5])
    if op[0] in ON_NAMED_BARRIER:
        return (op[0], *program.named_barriers[operand(op, "named_barrier")], *op[2:])
    if op[0] in TOUCHES_MEMORY:
        return with_operand(op, "access", program.accesses[operand(op, "access")].offset)
    return op
