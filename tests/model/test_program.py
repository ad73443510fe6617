"""The flat program: names for people, cells, and what the constructor refuses."""

import random
from dataclasses import replace
from typing import Any

import pytest

from pipesim.errors import ProgramFormatError
from pipesim.model.ops import Op, Space
from pipesim.model.rules.validation import _all_right, _limits, _wrong_operation
from pipesim.model.tables import Access, Agent, Barrier, Tile
from tests.support.small_programs import build


def test_cells_cut_each_memory_at_every_bound() -> None:
    accesses = (
        Access(Space.GLOBAL, 0, 0, 8), Access(Space.SHARED, 0, 0, 64), Access(Space.SHARED, 0, 32, 64),
        Access(Space.SHARED, 0, 0, 96),
    )  # fmt: skip
    program = build("", accesses=accesses)
    assert program.cells == ((4, 5), (0, 2), (1, 3), (0, 3))
    assert program.cell_count == 5
    assert build("", accesses=(Access(Space.SHARED, 0, 0, 64),), tiles=()).cell_count == 1


def test_the_place_of_a_multicast_in_another_cta() -> None:
    program = build(
        "", ctas=2,
        barriers=(Barrier(0, "a", 0), Barrier(0, "b", 0), Barrier(1, "b", 0), Barrier(1, "a", 0)),
        accesses=(Access(Space.SHARED, 0, 8, 8), Access(Space.SHARED, 1, 0, 8), Access(Space.SHARED, 1, 8, 8)),
        tiles=(),
    )  # fmt: skip
    assert [program.at_rank(0, 0, rank) for rank in (0, 1)] == [(0, 0), (3, 2)]
    assert program.at_rank(2, 2, 0) == (1, 0)


def test_a_multicast_that_names_the_barrier_of_its_pairs_leader_signals_the_leader_of_every_pair() -> None:
    program = build(
        "", ctas=4, tiles=(),
        barriers=tuple(Barrier(rank, "full", 0) for rank in range(4)),
        accesses=tuple(Access(Space.SHARED, rank, 0, 8) for rank in range(4)),
    )  # fmt: skip
    assert [program.at_rank(0, 1, rank) for rank in (1, 3)] == [(0, 1), (2, 3)]
    assert [program.at_rank(1, 1, rank) for rank in (1, 3)] == [(1, 1), (3, 3)]
    assert [program.at_rank(1, 0, rank) for rank in (0, 2)] == [(1, 0), (3, 2)]
    assert program.cell_ctas[program.cells[3][0]] == 3


FORWARD = "leaves the program: a jump goes forward, at most to the end"
WRONG = {
    "ARRIVE barrier=1": "ARRIVE: barrier 1 is outside the table of 1",
    "ARRIVE barrier=-1": "ARRIVE: barrier -1 is outside the table of 1",
    "COMMIT barrier=-2": "COMMIT: barrier -2 is outside the table of 1",
    "READ access=1": "READ: access 1 is outside the table of 1",
    "BAR_SYNC named_barrier=1": "BAR_SYNC: named_barrier 1 is outside the table of 1",
    "BAR_SYNC lanes=0 threads=32": "BAR_SYNC: lanes 0 is outside 1..4,294,967,296",
    "LOOP_BEGIN loop=1": "LOOP_BEGIN: loop 1 is outside the table of 1",
    "LOOP_BEGIN trips=-1": "LOOP_BEGIN: trips -1 is outside 0..4,294,967,296",
    "WAIT parity=2": "WAIT: parity 2 is outside 0..1",
    "ARRIVE semantics=40": "ARRIVE: semantics 40 is outside 0..36",
    "ARRIVE semantics=7": "semantics 7: there is no scope 7",
    "ARRIVE expect=-1": "ARRIVE: expect -1 is outside 0..1,099,511,627,776",
    "EXPECT_TX bytes=-16": "EXPECT_TX: bytes -16 is outside 0..1,099,511,627,776",
    "TMA_LOAD bytes=-16 item=0": "TMA_LOAD: bytes -16 is outside 0..1,099,511,627,776",
    "TMA_LOAD item=-1": "TMA_LOAD: item -1 is outside 0..4,611,686,018,427,387,904",
    "TMA_LOAD item=0 cta_mask=2": "TMA_LOAD: cta_mask 2 is outside 0..1",
    "WRITE item=-1": "WRITE: item -1 is outside 0..4,611,686,018,427,387,904",
    "READ item=-2": "READ: item -2 is outside -1..4,611,686,018,427,387,904",
    "TRANSFER_READ engine=4": "TRANSFER_READ: engine 4 is outside 0..3",
    "FENCE fence=7": "FENCE: fence 7 is outside 0..6",
    "CP_ASYNC_ARRIVE noinc=2": "CP_ASYNC_ARRIVE: noinc 2 is outside 0..1",
    "WORK cycles=-1": "WORK: cycles -1 is outside 0..1,000,000,000,000",
    "WAIT_GROUP groups=-1": "WAIT_GROUP: groups -1 is outside 0..4,294,967,296",
    "WAIT_STATE register=-1": "WAIT_STATE: register -1 is outside the table of 0",
    "TRY_WAIT register=-2": "TRY_WAIT: register -2 is outside the table of 0",
    "JUMP_IF register=0 skip=2; WORK": f"a jump over 2 operations {FORWARD}",
    "JUMP_IF register=0 skip=-1; WORK": f"a jump over -1 operations {FORWARD}",
}


@pytest.mark.parametrize("code", WRONG)
def test_a_wrong_operand_is_refused_with_its_place(code: str) -> None:
    registers = 1 if code.startswith("JUMP") else 0
    with pytest.raises(ProgramFormatError) as caught:
        build("", f"WORK; {code}", registers=registers)
    assert caught.value.fact == WRONG[code]
    assert caught.value.place.startswith("story.py:1 (")
    assert caught.value.place.endswith(" of story, operation 1 of agent 1)")
    assert caught.value.cause.startswith(f"the operation there is {code.partition(' ')[0]} ")
    assert caught.value.correction.startswith(("give ", "enter ", "skip "))


@pytest.mark.parametrize(
    ("wrong", "fact"),
    [
        ((99,), "this is not an operation of version 1"),
        ((), "this is not an operation of version 1"),
        ((int(Op.WORK),), "WORK takes 1 integers: cycles"),
        ((int(Op.WORK), 1, 2), "WORK takes 1 integers: cycles"),
        ((int(Op.WORK), True), "WORK takes 1 integers: cycles"),
        ((int(Op.WORK), "1"), "WORK takes 1 integers: cycles"),
    ],
)
def test_what_is_no_operation(wrong: tuple[Any, ...], fact: str) -> None:
    with pytest.raises(ProgramFormatError) as caught:
        build("WORK", code=(((int(Op.WORK), 1), wrong),), lines=((0, 0),))
    assert caught.value.fact == fact


def test_a_multicast_needs_the_same_place_in_every_cta() -> None:
    fields: dict[str, Any] = {
        "ctas": 2,
        "tiles": (),
        "barriers": (Barrier(0, "b", 0), Barrier(1, "b", 0)),
        "accesses": (Access(Space.SHARED, 0, 0, 64), Access(Space.SHARED, 1, 0, 64)),
    }
    assert build("TMA_LOAD item=0 cta_mask=3", **fields)
    for key, lacking in (("barriers", (Barrier(0, "b", 0), Barrier(1, "c", 0))), ("accesses", fields["accesses"][:1])):
        with pytest.raises(ProgramFormatError, match="to CTA 1 has no barrier or no access at the same offset"):
            build("TMA_LOAD item=0 cta_mask=3", **{**fields, key: lacking})


def test_a_multicast_signals_no_cta_outside_its_pair() -> None:
    fields: dict[str, Any] = {
        "ctas": 4,
        "tiles": (),
        "barriers": tuple(Barrier(rank, "b", 0) for rank in range(4)),
        "accesses": tuple(Access(Space.SHARED, rank, 0, 64) for rank in range(4)),
    }
    assert build("TMA_LOAD barrier=0 access=1 item=0 cta_mask=10", **fields)
    with pytest.raises(ProgramFormatError, match="from CTA 2 signals CTA 0, which is not of the same pair"):
        build("TMA_LOAD barrier=0 access=2 item=0 cta_mask=5", **fields)


TABLES: dict[str, dict[str, Any]] = {
    "story: 0 CTAs, 1 copies: 1 to 1024 and at least 1 are possible": {"ctas": 0},
    "story: 1 CTAs, 0 copies: 1 to 1024 and at least 1 are possible": {"grid": 0},
    "story: -1 registers: 0 to 65536 are possible": {"registers": -1},
    "story: 1000000000000 registers: 0 to 65536 are possible": {"registers": 10**12},
    "story: -8 bytes of shared memory": {"smem_bytes": -8},
    "story: agent 0 has lanes 0x0 of a warp's 32": {"agents": (Agent(0, 0, 0, "r", 0),)},
    "story: agent 0 has lanes 0x100000000 of a warp's 32": {"agents": (Agent(0, 0, 1 << 32, "r", 0),)},
    "story: named barrier 0 has number 16; a CTA has 0 to 15": {"named_barriers": ((0, 16),)},
    "story: agent 0 is in CTA 1 of 1": {"agents": (Agent(1, 0, 1, "r", 0),)},
    "story: barrier 0 is in CTA 1 of 1": {"barriers": (Barrier(1, "b", 0),)},
    "story: access 0 is in CTA -1 of 1": {"accesses": (Access(Space.SHARED, -1, 0, 8),)},
    "story: named barrier 0 is in CTA 3 of 1": {"named_barriers": ((3, 0),)},
    "story: access 0 is 0 bytes at 0": {"accesses": (Access(Space.SHARED, 0, 0, 0),)},
    "story: access 0 is 8 bytes at -8": {"accesses": (Access(Space.SHARED, 0, -8, 8),)},
    "story: tile t is 0 slots of 8 bytes at 0": {"tiles": (Tile("t", Space.SHARED, 0, 0, 8, 0),)},
    "story: 2,147,483,648 copies of 1 CTAs: a launch has at most 2,147,483,647 CTAs": {"grid": 1 << 31},
    "story: 257 registers a thread: 0 (not known) to 256 are possible": {"launch_registers": 257},
    "story: parameter tiles does not fit 64 bits": {"params": {"tiles": 1 << 64}},
    "story: agent 0 is in warp -1: warps are numbered 0 to 1023": {"agents": (Agent(0, -1, 1, "r", 0),)},
    "story: agent 0 is in warp 1000000: warps are numbered 0 to 1023": {"agents": (Agent(0, 10**6, 1, "r", 0),)},
    "story: agent 0 is number -1 of its role: numbers are 0 to 1023": {"agents": (Agent(0, 0, 1, "r", -1),)},
    "story: barrier 0 is stage -1 of b: stages are 0 to 32767": {"barriers": (Barrier(0, "b", -1),)},
    f"story: barrier 0 is stage {1 << 61} of b: stages are 0 to 32767": {"barriers": (Barrier(0, "b", 1 << 61),)},
    f"story: barrier 0 is stage {1 << 64} of b: stages are 0 to 32767": {"barriers": (Barrier(0, "b", 1 << 64),)},
    "story: two barriers are stage 0 of b in CTA 0": {"barriers": (Barrier(0, "b", 0), Barrier(0, "b", 0))},
    "story: named barrier 1 of CTA 0 is in the table twice": {"named_barriers": ((0, 1), (0, 1))},
    f"story: access 0 is 8 bytes at {1 << 40}": {"accesses": (Access(Space.SHARED, 0, 1 << 40, 8),)},
    f"story: tile t is {1 << 40} slots of 8 bytes at 0": {"tiles": (Tile("t", Space.SHARED, 0, 0, 8, 1 << 40),)},
    "the program's name is '': it is empty": {"name": ""},
    "the role of agent 0 is '\\ud800': it has the character U+D800": {"agents": (Agent(0, 0, 1, "\ud800", 0),)},
    "the name of barrier 0 is 'a\\nb': it has the character U+000A": {"barriers": (Barrier(0, "a\nb", 0),)},
    "the name of tile 0 is '\\x1b[0m': it has the character U+001B": {
        "tiles": (Tile("\x1b[0m", Space.SHARED, 0, 0, 8, 1),)
    },
    "source 0 is 'a\\rb': it has the character U+000D": {"sources": ("a\rb",)},
    "a parameter's name is '*/ c_code { system(\"x\") }': a letter or _ comes first, then letters, digits and _": {
        "params": {'*/ c_code { system("x") }': 1}
    },
    "story: 2 agents, 1 lists of operations, 1 lists of lines": {"agents": (Agent(0, 0, 1, "r", 0),) * 2},
    "story: agent 0 does not have one valid source line for each operation": {"lines": ((0, 0),)},
    " story: agent 0 does not have one valid source line for each operation": {"lines": ((1,),)},
}


@pytest.mark.parametrize("fact", TABLES)
def test_wrong_tables_are_refused(fact: str) -> None:
    good = build("WORK")
    with pytest.raises(ProgramFormatError) as caught:
        replace(good, **TABLES[fact])
    assert caught.value.fact == fact.strip()


HALF = (1 << 16) - 1


def test_two_agents_may_share_a_warp_but_no_lane() -> None:
    good = build("WORK", "WORK")
    one, other = Agent(0, 0, HALF, "a", 0), Agent(0, 0, HALF << 16, "b", 0)
    assert replace(good, agents=(one, other)).agents == (one, other)
    with pytest.raises(ProgramFormatError) as caught:
        replace(good, agents=(one, replace(other, lanes=HALF << 15)))
    assert caught.value.fact == "story: agent 1 has lanes of warp 0 of CTA 0 that another agent has, too"


def test_no_two_agents_of_a_cta_are_alike() -> None:
    good = build("WORK", "WORK", ctas=2, agents=(Agent(0, 0, 1, "a", 0), Agent(1, 0, 1, "a", 0)))
    with pytest.raises(ProgramFormatError) as caught:
        replace(good, agents=(Agent(0, 0, 1, "a", 0), Agent(0, 1, 1, "a", 0)))
    assert caught.value.fact == "story: two agents are number 0 of role a in CTA 0"


NOT_BEGUN = {
    "LOOP_NEXT": (0, "LOOP_NEXT of loop 0, which has not begun here"),
    "WORK; LOOP_END": (1, "LOOP_END of loop 0, which has not begun here"),
    "LOOP_BEGIN trips=2; LOOP_END; LOOP_NEXT loop=1": (2, "LOOP_NEXT of loop 1, which has not begun here"),
}


@pytest.mark.parametrize("code", NOT_BEGUN)
def test_marks_of_a_loop_that_has_not_begun_are_refused(code: str) -> None:
    pc, fact = NOT_BEGUN[code]
    with pytest.raises(ProgramFormatError) as caught:
        build("", code, loops=("", "k"))
    assert caught.value.fact == fact
    assert caught.value.place == f"story.py:1 (role1 of story, operation {pc} of agent 1)"


@pytest.mark.parametrize("seed", range(20))
def test_operations_are_checked_together_as_they_are_one_by_one(seed: int) -> None:
    """Every operation there is, operands at the edges of their ranges and a little beyond, on two CTAs."""
    program = build(
        "", ctas=2, registers=2, barriers=(Barrier(0, "b", 0), Barrier(1, "b", 0), Barrier(0, "c", 0)),
        accesses=(Access(Space.SHARED, 0, 0, 64), Access(Space.SHARED, 1, 0, 64), Access(Space.SHARED, 0, 64, 64)),
    )  # fmt: skip
    dice, limits, seen = random.Random(seed), _limits(program), set()
    for _ in range(400):
        code = tuple(_operation(dice, limits) for _ in range(dice.choice((1, 2, 8))))
        wrong = [pc for pc, op in enumerate(code) if _wrong_operation(program, op, limits, len(code) - pc)]
        assert _all_right(program, code, limits) is not bool(wrong), code
        seen.add(bool(wrong))
    assert seen == {True, False}


def _operation(dice: random.Random, limits: dict[Op, tuple[tuple[str, int, int], ...]]) -> tuple[int, ...]:
    op = dice.choice(list(Op))
    operands = [dice.choice((low, min(high, low + 2), max(low, min(high, low + 1)))) for _, low, high in limits[op]]
    code: list[Any] = [int(op), *operands]
    if dice.random() < 0.1:
        at = dice.randrange(len(code))
        code[at] = dice.choice((code[at] - 1, code[at] + 7, True, 1.0, 1 << 63))
    if dice.random() < 0.02:
        code = code[: dice.randrange(len(code))]
    return tuple(code)
