"""Walks through machine code: what lanes do that part and meet again, and where a branch is not known."""

from collections.abc import Sequence

import pytest

from pipesim.coredump.cubin import cubins_of
from pipesim.coredump.dump import open_dump
from pipesim.coredump.line_table import LineTable
from pipesim.coredump.sass.lanes import LaneState, of_lane
from pipesim.coredump.sass.operands import CodeInputs
from pipesim.coredump.sass.steps import step_of
from pipesim.coredump.sass.sync import SassSync
from pipesim.coredump.sass.walk import Walk, WalkEnd, WarpCode, taken
from pipesim.coredump.sass.word import Word
from tests.coredump.test_dump import RING
from tests.support.present import present

NOTHING = CodeInputs(lambda _bank, _offset, _size: None, lambda _number: None, lambda _address, _size: None, wide=False)

#: Instructions as the toolkit's disassembler shows them: the registers that they read, and the one that they write.
STEPS = [
    ("IADD3 R0, -R2, 0x100000, RZ", 0x0010000002007810, 0x07FFE1FF, {2: 5}, 0x100000 - 5),
    ("LEA R2, R3, R0, 0x18", 0x0000000003027211, 0x078EC0FF, {3: 2, 0: 0x400}, 0x2000400),
    ("LOP3.LUT R2, R7, 0x1f, RZ, 0xc0, !PT", 0x0000001F07027812, 0x078EC0FF, {7: 0x47}, 7),
    ("IMAD R3, R4, -0x3, R2", 0xFFFFFFFD04037824, 0x078E0202, {4: 5, 2: 17}, 2),
    ("IMAD.HI.U32 R7, R6, -0x55555555, RZ", 0xAAAAAAAB06077827, 0x078E00FF, {6: 9}, 6),
    ("SHF.L.U32 R0, R0, 0x1f, RZ", 0x0000001F00007819, 0x000006FF, {0: 3}, 0x80000000),
    ("SHF.R.S32.HI R3, RZ, 0x1f, R2", 0x0000001FFF037819, 0x00011402, {2: 0x80000000}, 0xFFFFFFFF),
    ("SHF.R.U32.HI R2, RZ, 0x5, R2", 0x00000005FF027819, 0x00011602, {2: 0x80}, 4),
    ("PRMT R5, R16, 0x654, R9", 0x0000065410057816, 0x00000009, {16: 1, 9: 0x848}, 0x1000848),
    ("HFMA2.MMA R0, -RZ, RZ, 0, 4.17e-07", 0x00000007FF007435, 0x000001FF, {}, 7),
    ("VIADD R9, R18, 0x8", 0x0000000812097836, 0x00000000, {18: 8}, 16),
    ("VIADDMNMX R4, R29, R3, R0, PT", 0x000000031D047246, 0x03800100, {29: 6, 3: 2, 0: 24}, 8),
    ("VIMNMX R4, R5, R3, !PT", 0x0000000305047248, 0x07800100, {5: 0xFFFFFFFF, 3: 2}, 2),
    ("VIMNMX3 R6, R0, R11, R6, PT", 0x0000000B0006720F, 0x03800106, {0: 24, 11: 6, 6: 2}, 2),
    ("VIMNMX3.U32 R6, R0, R11, R6, PT", 0x0000000B0006720F, 0x03800006, {0: 24, 11: 6, 6: 0xFFFFFFFF}, 6),
    ("VIADDMNMX.RELU R4, R29, R3, R0, PT", 0x000000031D047246, 0x03801100, {29: 6, 3: 2, 0: 24}, None),
    ("FADD R5, R4, R5", 0x0000000504057221, 0x00000000, {4: 1, 5: 1}, None),
]


@pytest.mark.parametrize(("text", "low", "high", "reads", "result"), STEPS, ids=[each[0] for each in STEPS])
def test_an_instruction_computes_what_its_text_says(
    text: str, low: int, high: int, reads: dict[int, int], result: int | None
) -> None:
    lanes, step = LaneState(1, 0), step_of(Word(low, high), NOTHING)
    for number, value in reads.items():
        lanes.registers[number] = value
    assert step is not None
    step(lanes, True)
    assert lanes.registers[int(text.split(" R")[1].split(",", maxsplit=1)[0])] == result


#: i / 3 of 64 bits as ptxas multiplies it by 0xAAAAAAAAAAAAAAAB: the word of i in UR4 and UR5, the result in UR6.
DIVISION = [
    ("UIMAD.WIDE.U32 UR6, UR5, -0x55555555, URZ", 0xAAAAAAAB050678A5, 0x0F8E003F),
    ("UIMAD.WIDE.U32 UR10, UR4, -0x55555555, URZ", 0xAAAAAAAB040A78A5, 0x0F8E003F),
    ("UIMAD.WIDE.U32 UR6, UP0, UR4, -0x55555556, UR6", 0xAAAAAAAA040678A5, 0x0F800006),
    ("UIADD3.X UR9, URZ, URZ, URZ, UP0, !UPT", 0x0000003F3F097290, 0x087FE43F),
    ("UIADD3 URZ, UP0, UR11, UR6, URZ", 0x000000060B3F7290, 0x0FF1E03F),
    ("UMOV UR8, UR7", 0x0000000700087C82, 0x08000000),
    ("UIMAD.WIDE.U32.X UR6, UR5, -0x55555556, UR8, UP0", 0xAAAAAAAA050678A5, 0x080E0408),
]


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 5, 6, 63, 1 << 32, (1 << 33) + 3, (1 << 63) + 1])
def test_a_division_carries_from_word_to_word(number: int) -> None:
    """Triton's stage of an iteration; without the carry 3 / 3 is 0, and the ring has a stage too many."""
    lanes = LaneState(1, 0)
    lanes.uniform[4], lanes.uniform[5] = number & 0xFFFFFFFF, number >> 32
    for text, low, high in DIVISION:
        step = step_of(Word(low, high), NOTHING)
        assert step is not None, text
        step(lanes, True)
    low_word, high_word = lanes.uniform[6], lanes.uniform[7]
    assert isinstance(low_word, int)
    assert isinstance(high_word, int)
    assert (high_word << 32 | low_word) >> 1 == number // 3


def walk(warp: int, most: int = 20_000, parameters: Sequence[int] = (0,) * 4 + (64, 17)) -> Walk:
    """The way of a warp of the ring, with the number of tiles and the tile whose arrive is forgotten."""
    dump = open_dump(RING)
    code = next(c for cubin in cubins_of(dump.images()) for c in cubin.functions if c.name == "ring")
    special = {0x21: tuple(range(32 * warp, 32 * warp + 32)), 0x88: 0}

    def constant(bank: int, offset: int, size: int) -> int | None:
        at = (offset - dump.grids[0].parameters_at) // 4
        return parameters[at] if bank == 0 and size == 4 and 0 <= at < len(parameters) else None

    inputs = CodeInputs(constant, special.get, lambda _address, _size: None, wide=False)
    return Walk(WarpCode(code.words, inputs), [LaneState((1 << 32) - 1, 0)], most)


@pytest.mark.parametrize(("warp", "arrives"), [(0, 64), (1, 63)])
def test_a_warp_arrives_once_a_tile_but_for_the_one_that_is_forgotten(warp: int, arrives: int) -> None:
    way = walk(warp)
    events = list(way.events())
    waits = [each.address for each in events if each.sync.kind is SassSync.WAIT]
    assert waits == [0x1000 + 8 * (tile % 3) for tile in range(64)]
    assert sum(each.sync.kind is SassSync.ARRIVE for each in events) == arrives
    assert all(each.lanes == 1 for each in events if each.sync.kind is SassSync.ARRIVE)
    assert (set(way.ends), all(each.sure for each in events)) == ({WalkEnd.EXIT}, True)


def test_a_branch_on_what_is_not_known_goes_both_ways_and_says_so() -> None:
    way = walk(0, parameters=())
    events = list(way.events())
    assert {each.sure for each in events} == {True, False}
    assert way.steps < 20_000


def test_lanes_that_meet_have_what_each_of_them_had() -> None:
    lanes, others = LaneState(0b01, 0), LaneState(0b10, 0)
    lanes.registers[3], others.registers[3], others.uniform[2] = 7, 9, 1
    lanes.join(others)
    assert (lanes.mask, [of_lane(lanes.registers[3], n) for n in (0, 1)], lanes.uniform[2]) == (3, [7, 9], None)


def test_a_damaged_table_of_lines_ends_where_the_damage_is() -> None:
    cubin = next(cubin for cubin in cubins_of(open_dump(RING).images()) if cubin.ptx)
    data, code = cubin.section(".debug_line"), next(c for c in cubin.functions if c.name == "ring")
    assert LineTable(data).lines_of(code.address + 0x1940)[-1][1] == 29
    assert [LineTable(data[:end]).lines_of(code.address) for end in (0, 9, 40, 200)] == [[]] * 4
    assert cubin.ptx_lines.lines_of(code.address + 0x1F0)[0][1] == cubin.ptx.split("\n").index("bar.sync \t0;") + 1


def test_what_only_one_word_of_code_says() -> None:
    """``LDCU UR7, c[0x0][UR7+0x2b0]``, ``@!UP1 SYNCS.EXCH`` and ``@P2 BRA.U.ANY``, which no lane takes alone."""
    constants = CodeInputs(lambda _bank, offset, _size: offset, lambda _: None, lambda _address, _size: None, wide=True)
    lanes, load = LaneState(0b11, 0), step_of(Word(0x00005600070777AC, 0x0008000800), constants)
    lanes.uniform[7], lanes.predicates[1], lanes.uniform_predicates[1] = 8, True, False
    assert load is not None
    load(lanes, True)
    assert lanes.uniform[7] == 0x2B8
    code = WarpCode([Word(0x04060080FF0079B2 & ~0xF000 | 0x9000, 0)], NOTHING)
    guard = present(code.at(0).guard)
    assert guard(lanes) is True
    branch, either = Word(0xFFFFFFFD00E42947, 0x000FEA000393FFFF), (False, True) + (False,) * 30
    assert [taken(lanes, branch, each) for each in (either, False, None)] == [True, False, None]
    assert taken(lanes, Word(0x0000000000A09947, 0x000FEC0003800000), either) == either


@pytest.mark.parametrize(("between", "known"), [((), 7), (((0x0000000F0C007985, 0x000FE8000C101904),), None)])
def test_a_store_by_a_generic_address_may_change_local_memory(
    between: tuple[tuple[int, int], ...], known: int | None
) -> None:
    """``STL.128 [R1+0x10], R8``, ``ST.E [R12.64], R15`` and ``LDL R0, [R0]``, as ptxas has them for sm_90a."""
    lanes = LaneState(1, 0)
    lanes.registers[0], lanes.registers[1], lanes.registers[8] = 0x10, 0, 7
    for low, high in ((0x0000100801007387, 0x000FE20000100C00), *between, (0x0000000000007983, 0x000EA20000100800)):
        step = present(step_of(Word(low, high), NOTHING))
        step(lanes, True)
    assert lanes.registers[0] == known
