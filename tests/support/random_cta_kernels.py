"""Random kernels whose CTAs do not all do the same: trips, branches, stages and bytes that depend on the CTA's place.

Each is a ring of two warps whose numbers are made by random instructions of ``%ctaid``, a parameter and an array.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

from pipesim.ptx.launch.values import Array, Field, Free, Launch, Number, Parameter, Pointer
from tests.support.small_ptx import text_of

GRID = (6, 5, 1)
_OPS = ("add", "sub", "mul.lo", "and", "or", "xor", "min", "max", "shl", "shr", "div", "rem")
_PARAMS = ".param .u32 n, .param .u64 table"

#: A ring of two stages: warp 0 fills ``trips`` of them, and warp 1 empties ``other``.
RING_OF_CTA = """ mov.u32 %r0, %tid.x;
 shr.u32 %r1, %r0, 5;
 mov.u32 %r3, bars;
 mov.u32 %r4, tile;
 mov.u32 %r20, %ctaid.x;
 mov.u32 %r21, %ctaid.y;
 ld.param.u32 %r22, [n];
 ld.param.u64 %rd1, [table];
 mad.lo.u32 %r23, %r21, 6, %r20;
 mul.wide.u32 %rd2, %r23, 4;
 add.u64 %rd3, %rd1, %rd2;
 ld.global.u32 %r24, [%rd3];
{made}
 setp.ne.u32 %p0, %r0, 0;
 @%p0 bra ready;
 mbarrier.init.shared::cta.b64 [%r3], 1;
 mbarrier.init.shared::cta.b64 [%r3+8], 1;
 mbarrier.init.shared::cta.b64 [%r3+16], 1;
 mbarrier.init.shared::cta.b64 [%r3+24], {count};
 fence.mbarrier_init.release.cluster;
 and.b32 %r49, %r{put}, {words};
 add.u32 %r49, %r49, %r4;
 st.shared.u32 [%r49+2048], %r{shared};
ready:
 bar.sync 0;
 and.b32 %r49, %r{got}, {words};
 add.u32 %r49, %r49, %r4;
 ld.shared.u32 %r50, [%r49+2048];
 and.b32 %r51, %r{trips}, {most};
 and.b32 %r52, %r{other}, {most};
 setp.ne.u32 %p1, %r1, 0;
 selp.b32 %r53, %r52, %r51, %p1;
 setp.{compare} %p3, %r{a}, %r{b};
 mov.u32 %r54, 0;
loop:
 setp.ge.u32 %p2, %r54, %r53;
 @%p2 bra done;
 and.b32 %r55, %r54, 1;
 mad.lo.u32 %r56, %r55, 8, %r3;
 shr.u32 %r57, %r54, 1;
 and.b32 %r57, %r57, 1;
 @%p1 bra take;
 xor.b32 %r58, %r57, 1;
room:
 mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r56+16], %r58;
 @!%p4 bra room;
 @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r56];
 bra next;
take:
 mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r56], %r57;
 @!%p4 bra take;
 and.b32 %r59, %r0, 31;
 setp.ne.u32 %p5, %r59, 0;
 {guard}or.pred %p5, %p5, %p3;
 @!%p5 mbarrier.arrive.shared::cta.b64 _, [%r56+16];
next:
 add.u32 %r54, %r54, 1;
 bra loop;
done:
"""


def _chosen_by_logic(rng: random.Random, register: int, known: list[int]) -> str:
    """One of two registers, by two comparisons that are joined."""
    a, b, c, d, x, y = (f"%r{rng.choice(known)}" for _ in range(6))
    one, two = (rng.choice(("lt.u32", "ge.u32", "gt.s32", "eq.u32", "ne.s32")) for _ in range(2))
    second, _, kind = two.partition(".")
    logic = rng.choice(("and", "or", "xor"))
    if rng.random() < 0.5:  # the same for all CTAs
        c, d = "%r22", str(rng.randrange(9))
    joined = f" setp.{one} %p20, {a}, {b};\n setp.{second}.{logic}.{kind} %p21, {c}, {d}, %p20;"
    last = rng.choice(("not.pred %p22, %p21;", "xor.pred %p22, %p20, %p21;", "and.pred %p22, %p21, %p20;"))
    return f"{joined}\n {last}\n selp.b32 %r{register}, {x}, {y}, %p22;"


def ring_of_cta(made: str, grid: tuple[int, int, int] = GRID, n: int = 0, **chosen: object) -> tuple[str, Launch]:
    """The ring with these instructions first, ``chosen`` registers, and its launch."""
    usual = {
        "trips": 50, "other": 50, "shared": 22, "put": 20, "got": 20, "words": 0, "a": 20, "b": 20,
        "compare": "ne.u32", "guard": "// ", "count": 1, "most": 3,
    }  # fmt: skip
    body = RING_OF_CTA.format(made=made, **(usual | chosen))
    given = (Number("u32", n), Pointer(contents=(Field(0, Array("u32", (0,) * 30)),)))
    launch = Launch("kernel", grid, (64, 1, 1), parameters=tuple(Parameter("", each) for each in given))
    return text_of(body, _PARAMS), launch


#: Loads of further elements: the first one, that of the next CTA, of the row, and one that another element chooses.
_LOADS = (
    "ld.global.u32 %r{0}, [%rd1];",
    "ld.global.u32 %r{0}, [%rd3+4];",
    "mul.wide.u32 %rd4, %r21, 4;\n add.u64 %rd4, %rd4, %rd1;\n ld.global.u32 %r{0}, [%rd4];",
    "and.b32 %r{0}, %r24, 1;\n mul.wide.u32 %rd4, %r{0}, 4;\n add.u64 %rd4, %rd4, %rd1;\n ld.global.s32 %r{0}, [%rd4];",
    "ld.global.u8 %r{0}, [%rd3];",
)
_FREE = (Free(0, 2), Free(0, 3), Free(0, 6, 3), Free(1, 3), Free(-1, 1), Free(0, 3, 1, (0, 2)), Free(0, 12, 2, (2, 4)))
SMALL_GRID = (3, 2, 1)


def random_free_kernel(seed: int) -> tuple[str, Launch]:
    """A random kernel of six CTAs whose array is free, and its launch."""
    rng = random.Random(seed)
    loads = [(25 + n, rng.choice(_LOADS).format(25 + n)) for n in range(rng.randrange(3))]
    text, launch = random_cta_kernel(seed, loads)
    free = rng.choice(_FREE)
    least = free.rises_by[0] if free.rises_by is not None else 0
    # one element more than there are CTAs, as an array of offsets has
    array = Array("s32", tuple(free.low + n * least if least else free.low for n in range(7)), free)
    n, _ = launch.parameters
    given = (n, Parameter("lens", Pointer(contents=(Field(0, array),))))
    return text.replace("mad.lo.u32 %r23, %r21, 6", "mad.lo.u32 %r23, %r21, 3"), replace(
        launch, grid=SMALL_GRID, parameters=given
    )


def random_cta_kernel(seed: int, loads: Sequence[tuple[int, str]] = ()) -> tuple[str, Launch]:
    """The PTX of a random kernel, and its launch. ``loads``: what comes first, and the registers that it writes."""
    rng = random.Random(seed)
    lines, known = [f" {each}" for _, each in loads], [20, 21, 22, 23, 24, *(register for register, _ in loads)]
    for register in range(30, 30 + rng.randrange(2, 9)):
        if rng.random() < 0.3:
            lines.append(_chosen_by_logic(rng, register, known))
            known.append(register)
            continue
        op, a = rng.choice(_OPS), rng.choice(known)
        amount = str(rng.choice((1, 2, 3, 4, 7, 31)))
        b = f"%r{rng.choice(known)}" if rng.random() < 0.5 and op != "shl" else amount
        kind = "b32" if op in ("and", "or", "xor", "shl") else rng.choice(("u32", "s32"))
        lines.append(f" {op}.{kind} %r{register}, %r{a}, {b};")
        known.append(register)
    late = known[-4:]
    same = rng.random() < 0.7
    trips = rng.choice([*late, 50])
    chosen = {
        "trips": trips, "other": trips if same else rng.choice(late), "shared": rng.choice(late),
        "a": rng.choice(known), "b": rng.choice(known),
        "guard": "" if rng.random() < 0.3 else "// ",
        "compare": rng.choice(("lt.u32", "gt.s32", "eq.u32", "ne.u32", "le.s32")), "count": rng.choice((1, 1, 1, 2)),
        "put": rng.choice(late), "got": rng.choice(late), "words": rng.choice((0, 0, 4, 12)),
        "most": 3,
    }  # fmt: skip
    values = tuple(rng.randrange(6) for _ in range(GRID[0] * GRID[1]))
    given = (Number("u32", rng.randrange(9)), Pointer(contents=(Field(0, Array("u32", values)),)))
    body = RING_OF_CTA.format(made="\n".join(lines), **chosen)
    launch = Launch("kernel", GRID, (64, 1, 1), parameters=tuple(Parameter("", each) for each in given))
    return text_of(body, _PARAMS), launch


def random_sized_kernel(seed: int) -> tuple[str, Launch]:
    """A random kernel whose trips grow with ``n``, mostly; some CTAs have more, and some sizes are different."""
    rng = random.Random(seed)
    lines = [f" add.u32 %r30, %r22, {rng.choice((0, 1, 3, 7))};"]
    if rng.random() < 0.4:
        lines.append(f" mad.lo.u32 %r30, %r2{rng.choice('013')}, {rng.choice((1, 2, 5))}, %r30;")
    lines.append(f" {rng.choice(('shr.u32', 'div.u32'))} %r30, %r30, {rng.choice((1, 2, 3))};")
    if rng.random() < 0.3:
        lines.append(f" and.b32 %r31, %r22, {rng.choice((1, 2, 3, 4))};\n add.u32 %r30, %r30, %r31;")
    if rng.random() < 0.3:
        lines.append(f" {rng.choice(('min', 'max'))}.u32 %r30, %r30, {rng.choice((2, 5, 40))};")
    other = 30
    if rng.random() < 0.4:
        test = rng.choice(("eq", "gt", "lt"))
        lines.append(f" setp.{test}.u32 %p4, %r{rng.choice((20, 22, 30))}, {rng.choice((1, 3, 9, 30, 70))};")
        lines.append(f" selp.u32 %r32, {rng.choice((0, 1))}, 0, %p4;\n add.u32 %r32, %r32, %r30;")
        other = 32
    a, b = rng.choice(((20, 20), (22, 30), (30, 22)))
    text, launch = ring_of_cta(
        "\n".join(lines), (3, 2, 1), rng.randrange(1, 9), trips=30, other=other, most=0x7FFFFFFF,
        shared=rng.choice((20, 22, 30)), put=rng.choice((20, 22, 30)), got=rng.choice((20, 22)),
        words=rng.choice((0, 0, 4, 12)), a=a, b=b, compare=rng.choice(("lt.u32", "gt.s32", "eq.u32", "ne.u32")),
        guard="" if rng.random() < 0.3 else "// ",
    )  # fmt: skip
    if rng.random() < 0.4:  # the loop is gone through in each of some rows
        rows = rng.choice(("2", "3", "%r20"))
        again = " add.u32 %r47, %r47, 1;\n add.u32 %r53, %r53, %r46;\n setp.lt.u32 %p7, %r47, {};\n @%p7 bra loop;\n"
        text = text.replace("loop:\n", " mov.u32 %r47, 0;\n mov.u32 %r46, %r53;\nloop:\n", 1)
        text = text.replace("done:\n", f"done:\n{again.format(rows)}", 1)
    if rng.random() < 0.4:  # some tile is the last, or none is
        field = f"bfe.u32 %r48, %r54, {rng.choice((0, 1, 3))}, {rng.choice((1, 2, 9))}"
        found = rng.choice(
            (field, "shf.r.wrap.b32 %r48, %r54, 0, 2", "bfi.b32 %r48, %r54, 0, 1, 2", "rem.u32 %r48, %r54, 6")
        )
        ends = f" {found};\n setp.eq.u32 %p6, %r48, {rng.choice((1, 6, 100, 300))};\n @%p6 bra done;\n"
        text = text.replace("loop:\n", f"loop:\n{ends}", 1)
    return (_with_running_offset(rng, text) if rng.random() < 0.3 else text), launch


def _with_running_offset(rng: random.Random, text: str) -> str:
    """With a register that each lap adds to until it is cut off, of which what is left over is compared, or cancels."""
    step, mask = rng.choice(((0x30000000, -1), (0xD0000000, -1), (0x15555556, -1), (96, 255), (24, 63), (200, 255)))
    first = rng.choice((0, 40, 0xFFFFFFF0)) & mask & 0xFFFFFFFF
    cut = f" and.b32 {{0}}, {{0}}, {mask};\n" if mask > 0 else ""
    again = f" mad.lo.u32 %r61, %r54, {step}, {first};\n{cut.format('%r61')} sub.u32 %r61, %r60, %r61;\n"
    again += f"{cut.format('%r61')} add.u32 %r56, %r56, %r61;\n"
    test = rng.choice(("eq", "lt", "gt"))
    value = rng.choice((0, first, (first + 5 * step) & mask & 0xFFFFFFFF, (1 << 31) & mask, 0xFFFFFFFF))
    ends = f" setp.{test}.u32 %p6, %r60, {value};\n @%p6 bra done;\n" if rng.random() < 0.3 else ""
    text = text.replace("loop:\n", f" mov.u32 %r60, {first};\nloop:\n{ends}", 1)
    text = text.replace(" mad.lo.u32 %r56, %r55, 8, %r3;\n", f" mad.lo.u32 %r56, %r55, 8, %r3;\n{again}", 1)
    return text.replace(" bra loop;", f" add.u32 %r60, %r60, {step};\n{cut.format('%r60')} bra loop;", 1)
