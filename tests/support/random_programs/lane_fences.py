"""Two warps of which lanes execute fences, as PTX: what the first stores and the second loads, and random ones.

What is right is said lane by lane: a fence is one of its own thread (PTX ISA, "Release and acquire patterns").
"""

import random
from collections.abc import Callable

from pipesim.model.program import Program
from tests.support.small_ptx import SET_UP, program_of

_LANES = range(32)
LANES_0_AND_1 = " setp.eq.u32 %p5, %r2, 0;\n setp.eq.u32 %p6, %r2, 1;\n"
#: All lanes of warp 0 store and {signal}, those of warp 1 {wait} and {read}.
_HANDED = (
    SET_UP.replace("{first}", "{{count}}").format(count=4_096)
    + LANES_0_AND_1
    + """ and.b32 %r20, %r2, 1;
 mad.lo.u32 %r24, %r20, 8, %r3;
 shl.b32 %r20, %r2, 2;
 mov.u32 %r21, tile;
 add.u32 %r21, %r21, %r20;
 mov.u64 %rd1, 268435456;
 setp.ne.u32 %p4, %r1, 0;
 @%p4 bra second;
 st.shared.u32 [%r21], %r2;
{signal} bra done;
second:
{wait}{read}done:
"""
)
MEET = " bar.warp.sync -1;\n"
FENCE = "fence.acq_rel.gpu;\n"
TO_RELEASE, TO_ACQUIRE = "fence.release.gpu;\n", "fence.acquire.gpu;\n"
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [%r3];\n"
RELAXED = "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%r3];\n"
ELSEWHERE = "mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n"  #: for which the second warp does not wait
WAIT = """again:
 mbarrier.try_wait.parity{order}.shared::cta.b64 %p9, [%r3], 0;
 @!%p9 bra again;
"""
IN_LANE_0 = " @!%p5 bra meet;\n" + WAIT + "meet:\n"
READ = " ld.shared.u32 %r9, [tile+64];\n"
ALL, FIRST, SECOND, OTHERS = " ", " @%p5 ", " @%p6 ", " @!%p5 "
_WHO: dict[str, Callable[[int], bool]] = {
    ALL: lambda _: True,
    FIRST: lambda lane: lane == 0,
    SECOND: lambda lane: lane == 1,
    OTHERS: lambda lane: lane != 0,
}
_BY_TWO = "  "  #: all lanes, the even ones on the first mbarrier


def handed(signal: str, wait: str, read: str = READ, count: int = 1) -> Program:
    """The program of what the warps do; ``count``: of the mbarrier."""
    return program_of(_HANDED.format(signal=signal, wait=wait, read=read, count=count))


def random_fences(seed: int) -> tuple[Program, bool]:
    """The program of this seed, and whether every lane of the second warp knows of the store of each of the first."""
    rng = random.Random(seed)
    known, released = [{lane} for lane in _LANES], [set[int]() for _ in _LANES]
    signal = _steps(rng, known, TO_RELEASE, lambda lane: released[lane].update(known[lane] - released[lane]))
    who, weak = rng.choice([FIRST, FIRST, FIRST, SECOND, ALL, _BY_TWO]), rng.random() < 0.7
    lanes = [lane for lane in _LANES if (lane % 2 == 0 if who == _BY_TWO else _WHO[who](lane))]
    arrive = (RELAXED if weak else ARRIVE).replace("%r3", "%r24" if who == _BY_TWO else "%r3")
    before = rng.choice([ALL, FIRST, OTHERS]) + ELSEWHERE if rng.random() < 0.3 else ""
    told = set[int]().union(*((released if weak else known)[lane] for lane in lanes))
    weak_wait, alone = rng.random() < 0.7, rng.random() < 0.5
    waited = [told if lane == 0 or not alone else set[int]() for lane in _LANES]
    knows = [set[int]() if weak_wait else set(each) for each in waited]
    wait = (IN_LANE_0 if alone else WAIT).format(order=".relaxed.cta" if weak_wait else "")
    wait += _steps(rng, knows, TO_ACQUIRE, lambda lane: knows[lane].update(waited[lane]))
    program = handed(signal + before + who + arrive, wait, count=len(lanes))
    return program, all(each == {*_LANES} for each in knows)


def _steps(rng: random.Random, known: list[set[int]], half: str, fence: Callable[[int], None]) -> str:
    """Meetings of all lanes, which share what they know, and fences of some; ``half``: all that is needed of one."""
    text = ""
    for _ in range(rng.randint(0, 4)):
        if rng.random() < 0.4:
            text += MEET
            every = set[int]().union(*known)
            known[:] = [set(every) for _ in _LANES]
            continue
        who = rng.choice([*_WHO])
        text += who + (kind := rng.choice([FENCE, "fence.sc.cta;\n", TO_RELEASE, TO_ACQUIRE]))
        if kind in {TO_RELEASE, TO_ACQUIRE} - {half}:
            continue
        for lane in (lane for lane in _LANES if _WHO[who](lane)):
            fence(lane)
    return text
