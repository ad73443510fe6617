"""Lanes wait in ``shfl.sync`` and its like for those that a mask names, also where only data comes of it.

Random kernels with branches, loops and masks are judged against lanes that each run by themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pytest

from pipesim.model.coverage import NotJudgedKind
from pipesim.model.finding import Verdict
from pipesim.prove.check import check
from pipesim.ptx.launch.values import Pointer
from tests.support.small_ptx import SET_UP, program_of, word

START = SET_UP.format(first=1, count=1) + """ ld.param.u32 %r5, [n];
 ld.param.u64 %rd1, [data];
 ld.global.u32 %r6, [%rd1];
 mad.wide.u32 %rd2, %r2, 4, %rd1;
 ld.global.u32 %r7, [%rd2];
 and.b32 %r8, %r2, 16;
 shl.b32 %r9, 0xffff, %r8;
 mov.u32 %r10, 0;
"""  # fmt: skip
END = "\nend:\n bar.sync 0;\n"
SHUFFLE = " shfl.sync.bfly.b32 %r10, %r10, 1, 31, {};\n"
LOW = " setp.ge.u32 %p1, %r2, 16;\n @%p1 bra past;\n"
PAST = "past:\n"
GIVEN = " shfl.sync.idx.b32 %r11, %r2, 0, {}, -1;\n setp.ne.u32 %p1, %r11, 0;\n @%p1 bra past;\n"
OPEN = NotJudgedKind.LANES_MEET


def checked(body: str, warps: int = 2, n: int = 20) -> tuple[Verdict, bool]:
    """The verdict, and whether it is about which lanes come to exchanges."""
    program = program_of(
        START + body + END, warps, params=".param .u32 n, .param .u64 data", values=[word(n), Pointer()]
    )
    return check(program).verdict, not any(each.kind is OPEN for each in program.coverage.not_judged)


@pytest.mark.parametrize(
    ("body", "verdict", "judged"),
    [
        (SHUFFLE.format(-1), Verdict.PROVED, True),
        (LOW + SHUFFLE.format(-1) + PAST, Verdict.REFUTED, True),
        (LOW + SHUFFLE.format("0xffff") + PAST, Verdict.PROVED, True),
        (LOW + SHUFFLE.format("%r9") + PAST, Verdict.PROVED, True),
        (LOW + " vote.sync.ballot.b32 %r10, %p1, -1;\n" + PAST, Verdict.REFUTED, True),
        (LOW + " redux.sync.add.s32 %r10, %r2, -1;\n" + PAST, Verdict.REFUTED, True),
        (LOW + " mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r20,%r21}, {%r22}, {%r23}, {%r24,%r25};\n" + PAST,
         Verdict.UNKNOWN, True),
        (" setp.ge.u32 %p1, %r2, 16;\n @!%p1" + SHUFFLE.format(-1), Verdict.UNKNOWN, True),
        (" setp.ge.u32 %p1, %r2, 16;\n @!%p1" + SHUFFLE.format("0xffff"), Verdict.PROVED, True),
        (SHUFFLE.format("0xffff"), Verdict.UNKNOWN, True),
        (SHUFFLE.format("%r9"), Verdict.PROVED, True),
        # of lanes that have ended nothing is waited for
        (" setp.ge.u32 %p1, %r2, 16;\n @%p1 bra end;\n" + SHUFFLE.format(-1), Verdict.REFUTED, True),
        (" setp.ge.u32 %p1, %r2, 16;\n @%p1 exit;\n" + SHUFFLE.format("-1"), Verdict.PROVED, True),
        # what all lanes read at one address is the same
        (" setp.ne.u32 %p1, %r6, 0;\n @%p1 bra past;\n" + SHUFFLE.format(-1) + PAST, Verdict.PROVED, True),
        (" setp.ne.u32 %p1, %r7, 0;\n @%p1 bra past;\n" + SHUFFLE.format(-1) + PAST, Verdict.PROVED, False),
        (" setp.ne.u32 %p1, %r7, 0;\n vote.sync.ballot.b32 %r11, %p1, -1;\n @!%p1 bra past;\n" + SHUFFLE.format("%r11")
         + PAST, Verdict.PROVED, False),
        (" setp.ne.u32 %p1, %r7, 0;\n vote.sync.any.pred %p2, %p1, -1;\n @!%p2 bra past;\n" + SHUFFLE.format(-1) + PAST,
         Verdict.PROVED, True),
        (SHUFFLE.format("%r7"), Verdict.PROVED, False),
        # a shuffle in segments of 16 lanes gives two values
        (GIVEN.format("0x101f") + SHUFFLE.format(-1) + PAST, Verdict.REFUTED, True),
        (GIVEN.format("0x1f") + SHUFFLE.format(-1) + PAST, Verdict.PROVED, True),
        # a branch that is the same in all lanes, inside one that is not, leaves what it writes different
        (" mov.u32 %r11, 0;\n setp.gt.u32 %p2, %r5, 99;\n" + LOW + " @%p2 bra past;\n mov.u32 %r11, 1;\n" + PAST
         + " setp.ne.u32 %p3, %r11, 0;\n @%p3 bra over;\n" + SHUFFLE.format(-1) + "over:\n", Verdict.REFUTED, True),
        # where the ways meet again all lanes are there
        (" setp.ge.u32 %p1, %r2, 16;\n @%p1 bra high;\n bra.uni past;\nhigh:\n" + SHUFFLE.format("%r9") + PAST
         + SHUFFLE.format(-1), Verdict.PROVED, True),
        (LOW + " movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r10;\n" + PAST, Verdict.UNKNOWN, True),
    ],
)  # fmt: skip
def test_lanes_wait_for_those_that_the_mask_names(body: str, verdict: Verdict, *, judged: bool) -> None:
    """PTX ISA, "shfl.sync", "vote.sync", "redux.sync", "mma": until all threads of the mask that have not ended do."""
    assert checked(body) == (verdict, judged)


def test_a_branch_between_warps_parts_no_lanes_and_costs_nothing() -> None:
    assert checked(" setp.ne.u32 %p1, %r1, 0;\n @%p1 bra past;\n" + SHUFFLE.format(-1) + PAST) == (Verdict.PROVED, True)


# random kernels

Statement = tuple["str | Statement | list[Statement] | int", ...]
MASKS = {"-1": lambda _: -1 & 0xFFFFFFFF, "0xffff": lambda _: 0xFFFF, "%r9": lambda lane: 0xFFFF << (lane & 16)}
CONDITIONS = {  # as PTX, and for a lane of a warp
    " setp.lt.u32 {p}, %r2, 16;": lambda lane, warp: lane < 16,
    " and.b32 %r30, %r2, 1;\n setp.ne.u32 {p}, %r30, 0;": lambda lane, warp: lane & 1 == 1,
    " setp.eq.u32 {p}, %r1, 0;": lambda lane, warp: warp == 0,
    " setp.lt.u32 {p}, %r5, 21;": lambda lane, warp: True,
    " setp.lt.u32 {p}, %r2, %r5;": lambda lane, warp: lane < 20,
}
EARLY = {  # computed before all else
    "%p36": lambda lane, warp: lane < 16,
    "%p37": lambda lane, warp: warp == 0,
    "%p38": lambda lane, warp: True,
}
BEGIN = """ and.b32 %r31, %r2, 1;
 shr.u32 %r32, %r2, 4;
 add.u32 %r32, %r32, 1;
 mov.u32 %r33, 0;
 setp.lt.u32 %p36, %r2, 16;
 setp.eq.u32 %p37, %r1, 0;
 setp.lt.u32 %p38, %r5, 21;
"""
HELD = " setp.ne.u32 {p}, %r33, 0;"  #: what was set, perhaps under conditions
SETS = {  # of %r33; the shuffles are exchanges
    " mov.u32 %r33, 0;": lambda lane: 0,
    " mov.u32 %r33, 1;": lambda lane: 1,
    " shfl.sync.idx.b32 %r33, %r2, 0, 0x101f, -1;": lambda lane: lane & 16,
    " shfl.sync.idx.b32 %r33, %r2, 0, 0x1f, -1;": lambda lane: 0,
}
TRIPS = {"2": lambda lane: 2, "%r31": lambda lane: lane & 1, "%r32": lambda lane: 1 + (lane >> 4)}


def made(rng: Random, depth: int) -> list[Statement]:
    """Some statements: exchanges by a mask, branches, loops, and ends of lanes."""
    found: list[Statement] = []
    for _ in range(rng.randint(0, 3)):
        kind = rng.choice(["exchange", "exchange", "if", "loop", "set", "exit" if rng.random() < 0.2 else "if"])
        if kind == "exchange" or depth == 0:
            found.append(("exchange", rng.choice(["-1", "-1", *MASKS]), rng.randrange(1 << 30)))
        elif kind == "set":
            found.append(("set", rng.choice(list(SETS)), rng.randrange(1 << 30)))
        elif kind == "if":
            found.append(
                ("if", rng.choice([*CONDITIONS, *EARLY, *[HELD] * 4]), made(rng, depth - 1), made(rng, depth - 1))
            )
        elif kind == "loop":
            found.append(("loop", rng.choice(list(TRIPS)), made(rng, depth - 1)))
        else:
            found.append(("exit", rng.choice(list(CONDITIONS))))
    return found


def text(body: list[Statement], names: Iterator[int]) -> str:
    """The statements in PTX."""
    lines = ""
    for each in body:
        n = next(names)
        match each:
            case "exchange", mask, _:
                lines += SHUFFLE.format(mask)
            case "if", str(condition), list(then), list(otherwise):
                p = condition if condition in EARLY else f"%p{n % 30 + 5}"
                lines += "" if condition in EARLY else f"{condition.format(p=p)}\n"
                lines += f" @!{p} bra else{n};\n{text(then, names)}"
                lines += f" bra.uni join{n};\nelse{n}:\n{text(otherwise, names)}join{n}:\n"
            case "loop", trips, list(inside):
                p, r = f"%p{n % 30 + 5}", f"%r{n % 20 + 35}"
                lines += f" mov.u32 {r}, 0;\nloop{n}:\n setp.ge.u32 {p}, {r}, {trips};\n @{p} bra left{n};\n"
                lines += f"{text(inside, names)} add.u32 {r}, {r}, 1;\n bra.uni loop{n};\nleft{n}:\n"
            case "set", str(instruction), _:
                lines += f"{instruction}\n"
            case "exit", str(condition):
                lines += f"{condition.format(p=f'%p{n % 30 + 5}')}\n @%p{n % 30 + 5} exit;\n"
    return lines


class Ended(Exception):  # noqa: N818  # a lane has ended
    """A lane ends."""


def run(body: list[Statement], lane: int, warp: int, held: list[int]) -> Iterator[tuple[int, int]]:
    """The exchanges of one lane: which, and with which mask. ``held``: what %r33 holds."""
    for each in body:
        match each:
            case "exchange", str(mask), int(site):
                yield site, MASKS[mask](lane)
            case "if", str(condition), list(then), list(otherwise):
                holds = held[0] != 0 if condition == HELD else (CONDITIONS | EARLY)[condition](lane, warp)
                yield from run(then if holds else otherwise, lane, warp, held)
            case "set", str(instruction), int(site):
                if "shfl" in instruction:
                    yield site, (1 << 32) - 1
                held[0] = SETS[instruction](lane)
            case "loop", str(trips), list(inside):
                for _ in range(TRIPS[trips](lane)):
                    yield from run(inside, lane, warp, held)
            case "exit", str(condition):
                if CONDITIONS[condition](lane, warp):
                    raise Ended


@dataclass
class Lane:
    """A lane that waits, or has ended."""

    steps: Iterator[tuple[int, int]]
    at: tuple[int, int] | None = None

    def next(self) -> None:
        try:
            self.at = next(self.steps, None)
        except Ended:
            self.at = None


def all_meet(body: list[Statement], warp: int) -> bool:
    """Whether each lane names itself, and no lane waits for ever: lanes meet at one exchange, with one mask.

    Those that have come to the end wait at a barrier of the CTA, and those that have ended are not waited for.
    """
    over: set[int] = set()

    def steps(lane: int) -> Iterator[tuple[int, int]]:
        try:
            yield from run(body, lane, warp, [0])
        except Ended:
            over.add(lane)

    lanes = [Lane(steps(lane)) for lane in range(32)]
    for each in lanes:
        each.next()
    while waiting := [n for n, each in enumerate(lanes) if each.at is not None]:
        for n in waiting:
            site, mask = lanes[n].at or (0, 0)
            named = [m for m in range(32) if mask >> m & 1 and m not in over]
            if n not in named:
                return False
            if all(lanes[m].at == (site, mask) for m in named):
                for m in named:
                    lanes[m].next()
                break
        else:
            return False
    return True


@pytest.mark.sampled(30, 100)
@pytest.mark.parametrize("seed", range(1_500))
def test_random_kernels_are_judged_as_lanes_that_run_by_themselves(seed: int) -> None:
    rng = Random(seed)
    body = made(rng, rng.randint(1, 3))
    right = all(all_meet(body, warp) for warp in range(2))
    found = checked(BEGIN + text(body, iter(range(1_000))))
    if right and "exit" in str(body):  # what is waited for may end later, which is not looked for
        assert found in ((Verdict.PROVED, True), (Verdict.UNKNOWN, True))
    else:
        wrong = ((Verdict.UNKNOWN, True), (Verdict.REFUTED, True))  # where the others surely do not come there
        assert found in (((Verdict.PROVED, True),) if right else wrong), body
