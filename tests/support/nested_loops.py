"""Random kernels of rings in loops in loops, and what a program is from which laps of them are left out."""

import random

from pipesim.model.ops import Operation
from pipesim.model.program import Program
from pipesim.prove.any_size.laps import Outline
from pipesim.ptx.launch.values import Launch, Number, Parameter, Pointer
from tests.support.small_ptx import text_of

_BEGIN = """ mov.u32 %r0, %tid.x;
 shr.u32 %r1, %r0, 5;
 mov.u32 %r3, bars;
 mov.u32 %r4, tile;
 mov.u32 %r2, %ctaid.x;
 ld.param.u32 %r10, [tiles];
 ld.param.u32 %r11, [steps];
 ld.param.u64 %rd1, [table];
 ld.global.u32 %r46, [%rd1];
 setp.ne.u32 %p0, %r0, 0;
 setp.ne.u32 %p1, %r1, 0;
 and.b32 %r5, %r0, 31;
 setp.ne.u32 %p9, %r5, 0;
 @%p0 bra ready;
{inits}
 fence.mbarrier_init.release.cluster;
ready:
 bar.sync 0;
{trips}
 mov.u32 %r12, 0;
{zeros}
tiles_loop:
 setp.ge.u32 %p2, %r12, %r10;
 @%p2 bra done;
{uneven}
 mov.u32 %r13, 0;
 mov.u32 %r14, %r11;
steps_loop:
 setp.ge.u32 %p3, %r13, %r11;
 @%p3 bra steps_done;
{inside}
 add.u32 %r13, %r13, 1;
{again}
steps_done:
{epilogue}
 add.u32 %r12, %r12, 1;
 bra tiles_loop;
done:
"""
#: A use of a ring: warp 0 fills the stage, the others empty it. ``stage`` and ``parity`` are registers.
_USE = """ mad.lo.u32 %r40, {stage}, 8, %r3;
 @%p1 bra take{name};
 xor.b32 %r41, {parity}, 1;
room{name}:
 mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r40+{empty}], %r41;
 @!%p4 bra room{name};
 mad.lo.u32 %r47, {stage}, 64, %r4;
 @!%p0 st.shared.u32 [%r47+{write}], %r46;
 @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r40+{full}];
 bra used{name};
take{name}:
 mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r40+{full}], {parity};
 @!%p4 bra take{name};
 mad.lo.u32 %r47, {stage}, 64, %r4;
 ld.shared.u32 %r48, [%r47+{read}];
{more} @!%p9 mbarrier.arrive.shared::cta.b64 _, [%r40+{empty}];
used{name}:
{turn}
"""
#: The next step: counted up to their number, or down from it.
_UP = " bra steps_loop;"
_DOWN = " add.s32 %r14, %r14, -1;\n setp.ne.b32 %p8, %r14, 0;\n @%p8 bra steps_loop;"
#: Stage and parity are carried, or computed of a count.
_CARRIED = """ add.u32 {stage}, {stage}, 1;
 setp.eq.u32 %p5, {stage}, {depth};
 selp.u32 {stage}, 0, {stage}, %p5;
 selp.u32 %r42, 1, 0, %p5;
 xor.b32 {parity}, {parity}, %r42;"""
_COUNTED = """ add.u32 {count}, {count}, 1;
 {rest}
 div.u32 %r43, {count}, {depth};
 and.b32 {parity}, %r43, 1;"""

#: All warps meet at the end of a tile, and may vote on which tile is next.
_MEETINGS = (
    " bar.sync 1, {threads};\n",
    " setp.eq.u32 %p8, %r12, 9;\n bar.red.or.pred %p8, 1, {threads}, %p8;\n @%p8 add.u32 %r12, %r12, 1;\n",
    " setp.eq.u32 %p8, %r5, %r12;\n bar.red.popc.u32 %r44, 1, {threads}, %p8;\n add.u32 %r12, %r12, %r44;\n",
)


def _ring(rng: random.Random, name: str, first: int, register: int, warps: int) -> tuple[str, str, str]:
    """A ring of random depth, in which an arrive may be missing or the next stage be read."""
    depth, turn, more = rng.choice((1, 2, 2, 3, 4)), rng.choice((_CARRIED, _COUNTED)), ""
    if rng.random() < 0.15:  # one consumer's arrive is missing, now and then or once
        tests = (
            f"setp.ne.u32 %p6, %r12, {rng.randrange(12)};",
            "setp.ne.u32 %p6, %r13, %r12;",
            f"rem.u32 %r44, %r13, {rng.choice((7, 16))};\n setp.ne.u32 %p6, %r44, 5;",
        )
        more = f" {rng.choice(tests)}\n setp.ne.u32 %p7, %r1, 1;\n or.pred %p6, %p6, %p7;\n @!%p6 bra used{name};\n"
    return _ring_of(turn, name, first, register, warps, depth, more, next_stage=rng.random() < 0.05)


def _ring_of(
    turn: str, name: str, first: int, register: int, warps: int, depth: int, more: str = "", *, next_stage: bool = False
) -> tuple[str, str, str]:
    """Inits of a ring, the zeros of its registers, and a use of it."""
    stage, parity, count = (f"%r{register + n}" for n in range(3))
    full, empty = first, first + 8 * depth
    inits = "".join(
        f" mbarrier.init.shared::cta.b64 [%r3+{full + 8 * n}], 1;\n"
        f" mbarrier.init.shared::cta.b64 [%r3+{empty + 8 * n}], {warps - 1};\n"
        for n in range(depth)
    )
    zeros = "".join(f" mov.u32 {each}, 0;\n" for each in (stage, parity, count))
    rest = f"rem.u32 {stage}, {count}, {depth};" if depth != 4 else f"and.b32 {stage}, {count}, 3;"
    turn = turn.format(stage=stage, parity=parity, count=count, depth=depth, rest=rest)
    write = 1024 + 2 * first
    use = _USE.format(
        stage=stage, parity=parity, full=full, empty=empty, name=name, turn=turn, more=more, write=write,
        read=write + 64 * next_stage,
    )  # fmt: skip
    return inits, zeros, use


def random_nested_kernel(seed: int) -> tuple[str, Launch]:
    """The PTX of a random kernel of two or three warps that goes through rings in two loops, and its launch."""
    rng = random.Random(seed)
    warps = rng.choice((2, 2, 2, 3))
    inner = [_ring(rng, "a", 0, 50, warps)]
    if rng.random() < 0.3:
        inner.append(_ring(rng, "b", 96, 53, warps))
    outer = [_ring(rng, "c", 192, 56, warps)] if rng.random() < 0.6 else []
    trips = rng.choice(
        ("", "", "", " mad.lo.u32 %r10, %r2, 3, %r10;\n", " add.u32 %r11, %r11, %r2;\n", " sub.u32 %r10, %r10, %r2;\n")
    )
    uneven = ""
    if rng.random() < 0.2:  # not all tiles have as many steps
        uneven = rng.choice((" add.u32 %r11, %r12, 1;\n", " and.b32 %r11, %r12, 7;\n add.u32 %r11, %r11, 3;\n",
                             " setp.eq.u32 %p8, %r12, 17;\n @%p8 add.u32 %r11, %r11, 1;\n"))  # fmt: skip
    epilogue = "".join(use for *_, use in outer)
    if rng.random() < 0.4:
        epilogue += _MEETINGS[seed % 3].format(threads=32 * warps)
    if rng.random() < 0.15:
        epilogue += " add.u32 %r12, %r12, 1;\n"
    inside = "".join(use for *_, use in inner)
    if rng.random() < 0.3:  # words through shared memory
        word = rng.choice(("%r13", "%r12", "%r5", "7"))
        inside += f" mov.u32 %r45, {word};\n @!%p0 st.shared.u32 [%r4+3072], %r45;\n"
    body = _BEGIN.format(
        inits="".join(each[0] for each in (*inner, *outer)), zeros="".join(each[1] for each in (*inner, *outer)),
        trips=trips, uneven=uneven, inside=inside, epilogue=epilogue, again=rng.choice((_UP, _DOWN)),
    )  # fmt: skip
    tiles, steps = (rng.randrange(most) for most in rng.choice(((70, 5), (8, 90), (160, 3), (24, 24))))
    return _kernel(body, warps, tiles, steps)


def _kernel(body: str, warps: int, tiles: int, steps: int) -> tuple[str, Launch]:
    words = Parameter("tiles", Number("u32", tiles)), Parameter("steps", Number("u32", steps))
    text = text_of(body, ".param .u32 tiles, .param .u32 steps, .param .u64 table")
    given = (*words, Parameter("table", Pointer()))
    return text, Launch("kernel", (3, 1, 1), (32 * warps, 1, 1), parameters=given)


def with_all_laps(program: Program) -> list[list[Operation]]:
    """The operations of each agent, items aside, with the laps that are left out: those of inner loops first."""
    code = Outline(program).code
    agents = range(len(code))
    parts = [
        (list(each.begin), list(each.end), max((e - b) // s for b, e, s in zip(*each[:3], strict=True) if s), each.more)
        for each in sorted(program.laps, key=lambda each: sum(each.end) - sum(each.begin))
    ]
    for begin, end, times, more in parts:
        added, ends = [], list(end)
        for a in agents:
            step = (ends[a] - begin[a]) // times
            code[a][ends[a] : ends[a]] = code[a][ends[a] - step : ends[a]] * more
            added.append(step * more)
        for other in parts:
            for side in other[:2]:
                for a in agents:
                    side[a] += added[a] if side[a] >= ends[a] else 0
    return code


def nested_kernel(tiles: int, steps: int, more: str = "", *, down: bool = False) -> tuple[str, Launch]:
    """A ring of three stages that each tile goes through in many steps, with one of two stages for tiles.

    ``more``: instructions of the second warp before it gives a stage of the first ring back. ``down``: steps are
    counted down.
    """
    inner = _ring_of(_CARRIED, "a", 0, 50, 2, 3, more)
    outer = _ring_of(_COUNTED, "c", 192, 56, 2, 2)
    body = _BEGIN.format(
        inits=inner[0] + outer[0],
        zeros=inner[1] + outer[1],
        trips="",
        uneven="",
        inside=inner[2],
        epilogue=outer[2],
        again=_DOWN if down else _UP,
    )
    return _kernel(body, 2, tiles, steps)
