"""Barriers have the names of the source's arrays where these are certain, and else the line of their init."""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from pipesim.ptx.kernel import read_kernel
from tests.support.paths import ROOT
from tests.support.ptx_programs import kernel_paths

WRAPPED = """\
struct Bar {
    unsigned long long word_;
    __device__ void init(int count) const {
        set(&this->word_, count);
    }
    __device__ static void set(const unsigned long long* word, int count) {
        unsigned at = to_shared(word);
        asm volatile("mbarrier.init.shared.b64 [%1], %0;" ::"r"(count), "r"(at));
    }
};
__device__ void init(unsigned long long& bar, int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at(&bar)), "r"(count));
}
__device__ void arrive(unsigned long long& bar) {
    asm volatile("mbarrier.arrive.b64 _, [%0];" ::"r"(at(&bar)));
}
"""
GLUON = """\
def ring(COUNT):
    bars = allocate([COUNT, 1])
    for i in range(COUNT):
        mbarrier.init(bars.index(i), count=1)
    return bars
def work(bars):
    full, empty = bars
    mbarrier.arrive(full.index(0), count=1)
    mbarrier.arrive(empty.index(0), count=1)
def kernel():
    bars = (ring(2), ring(2))
"""
TRITON = """\
import triton.language as tl
def part(desc, i):
    return desc.load([i]).T
def kernel(x_desc, y_desc, a, b):
    x = x_desc.load([0])  # b = b.load([0])
    x = y_desc.load(["y = part(a, 0)"])
    k, v = part(x_desc, 0), part(y_desc, 0)
    for i in tl.range(0, 8):
        sums = tl.dot(a.load([i]), b.load([i]).T, sums)
        more = tl.dot(w.to(half), b.load([i]), more)
"""
METHOD_INIT, SET, INIT, ARRIVE = (
    (4, "_ZNK3Bar4initEi"),
    (8, "_ZN3Bar3setEPKyi"),
    (12, "_Z4initRyi"),
    (15, "_Z6arriveRy"),
)
Chain = Sequence[tuple[int, int, str]]  #: line, column and function, the outermost first


def chain(line: int, column: int, *inner: tuple[int, str], at: int = 5) -> Chain:
    return [(line, column, ""), *((line, at, name) for line, name in inner)]


class Story(NamedTuple):
    """A kernel's line 17 and those after it; its inits and arrives, each with its places and how many are repeated."""

    name: str
    source: str
    inits: Sequence[tuple[int, Chain]]
    expected: dict[int, str]
    arrives: Sequence[tuple[int, Chain]] = ()
    file: str = "k.cu"
    copies: Sequence[tuple[int, int, Chain]] = ()  #: barrier, destination, places
    tiles: Sequence[str] = ()
    waits: Sequence[tuple[int, Chain]] = ()  #: for the phase before the first
    code: Sequence[tuple[str, Chain]] = ()  #: after these


ONE = chain(18, 5, INIT)
METHOD = [chain(line, 9, METHOD_INIT, SET) for line in (19, 20)]
REPEATED = METHOD[1][-1:]  # nvcc says the innermost place alone
NO_INIT = -8
CHECKED = chain(20, 9, METHOD_INIT, (7, SET[1]))
MACRO = [chain(line, 1, INIT) for line in (17, 18)]
HEAD = "void kernel(S& s) {\n"
LOOP = HEAD + "    for (int i = 0; i < 2; ++i) {\n        s.full[i].init(1);\n        s.empty[i].init(2);\n    }"
MANY = HEAD + "    for (int i = 0; i < 2; ++i) init(s.full[i], 1), init(s.empty[i], 2);\n    arrive(s.empty[n]);"
TWO = {0: "s.full[0]", 8: "s.full[1]", 16: "s.empty[0]", 24: "s.empty[1]"}
EACH = HEAD + "    for (int i = 1; i >= 0; --i) {}\n    arrive(s.empty[n]);"
LOADS = [chain(5, 9), chain(6, 9), chain(9, 23), chain(9, 36)]
PARTS = [((7, column, "kernel"), (3, 12, "part")) for column in (12, 29)]
IN_LOOP, SUMS, MORE, LOAD_B = chain(8, 5), chain(9, 16), chain(10, 16), chain(10, 35)
PRODUCT = (
    f"mov.u32 %r4, {64 >> 3 << 17 | 128 >> 4 << 24}; mov.u64 %rd0, 0; mov.u32 %r5, 0;"
    "mov.u32 %r3, %tid.x; setp.eq.u32 %p1, %r3, 0; @%p1 tcgen05.mma.cta_group::1.kind::f16 [%r5], %rd0, %rd0, %r4, %p1;"
)
COMMIT = "add.u32 %r1, %r0, {}; @%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];"
HAND_ON = "st.shared.u32 [%r0+96], %r0; add.u32 %r1, %r0, 16; mbarrier.arrive.shared.b64 _, [%r1];"
ROOM = "add.u32 %r1, %r0, 32; mbarrier.try_wait.parity.shared.b64 %p0, [%r1], 1;"
DRAIN = "add.u32 %r1, %r0, {}; mbarrier.try_wait.parity.shared.b64 %p0, [%r1], 0;"
RING = [chain(11, 13 + 9 * n, (4, "kernel"), at=9) for n in range(2)]


def in_lambda(parameters: str, arguments: str) -> tuple[str, Sequence[tuple[int, Chain]]]:
    source = (
        f"    auto ring = [&]({parameters}) {{\n        init(s.full[i], 1);\n        return 0;\n    }}({arguments});"
    )
    places = [(18, 25, ""), (19, 9, "_ZZ6kernelENKUlvE_clEv"), (*INIT[:1], 5, INIT[1])]
    return HEAD + source, [(0, places), (8, places)]


def cute(destination: str, *tiles: str) -> Story:
    source = (
        HEAD
        + "    Tensor sA = make_tensor(make_smem_ptr(s.smem_A.data()), Layout{});\n"
        + "    auto tAsA = load.partition_D(sA);\n"
        + f"    copy(load, tAgA(_, k), {destination});\n    init(s.full[i], 1);"
    )
    into = [(20, 5, ""), (3, 5, "_ZN4cute4copyIvEvv")]
    inits = [(at, chain(21, 5, INIT)) for at in (0, 8)]
    names = {0: "s.full[0]", 8: "s.full[1]"}
    return Story(
        f"CuTe's copy into {destination}", source, inits, names, copies=[(0, 64, into), (8, 80, into)], tiles=tiles
    )


def in_tuple(name: str, other: str, *tiles: str) -> Story:
    source = (
        f"{HEAD}    init(s.full[i], 1);\n    step(state_a, i);\n}}\nvoid step(State const& state, int i) {{\n"
        f"    copy(load, get<0>(state)(_, i), get<1>(state)(_, i));\n{other}}}"
    )
    into = [(19, 5, ""), (22, 5, "_Z4stepRK5Statei"), (3, 5, "_ZN4cute4copyIvEvv")]
    inits = [(at, chain(18, 5, INIT)) for at in (0, 8)]
    copies = [(0, 64, into), (8, 80, into)]
    return Story(name, source, inits, {0: "s.full[0]", 8: "s.full[1]"}, copies=copies, tiles=tiles)


STORIES = (
    in_tuple("a tensor of the tuple that a function is given", "", "state_a 64 2"),
    in_tuple(
        "one of two that it writes",
        "    copy(load, x, get<2>(state)(_, i));\n",
        "tile from k.cu:19 64 1",
        "tile from k.cu:19 (2) 80 1",
    ),
    Story("one statement of two arrays", MANY, [(at, ONE) for at in (0, 16, 8, 24)], TWO),
    cute("tAsA(_, _, stage)", "s.smem_A 64 2"),
    cute("parts(tAsA)(_, stage)", "tile from k.cu:20 64 1", "tile from k.cu:20 (2) 80 1"),
    cute("s(_, _, stage)", "tile from k.cu:20 64 1", "tile from k.cu:20 (2) 80 1"),  # whose it is the caller says
    Story("whose uses agree", MANY, [(at, ONE) for at in (0, 16, 8, 24)], TWO, [(16, chain(19, 5, ARRIVE))]),
    Story(
        "whose uses say the opposite",
        MANY,
        [(at, ONE) for at in (0, 16, 8, 24)],
        {at: f"k.cu:18[{at // 8}]" for at in (0, 8, 16, 24)},
        [(0, chain(19, 5, ARRIVE))],
    ),
    Story(
        "methods of a class, in a loop that nvcc unrolled",
        LOOP,
        [(0, METHOD[0]), (16, METHOD[1]), (8, REPEATED), (24, REPEATED)],
        TWO,
    ),
    Story(
        "a method in one line, with a column before its asm",
        f'struct M {{ void init(int n) {{ asm volatile("init [%0], %1;" ::"r"(at()), "r"(n)); }} }};\n{HEAD}'
        "    s.full[i].init(1);",
        [(at, chain(19, 5, (17, "_ZN1M4initEi"), at=25)) for at in (0, 8)],
        {0: "s.full[0]", 8: "s.full[1]"},
    ),
    Story(
        "whose second array is first seen at a check before its init",
        LOOP,
        [(0, METHOD[0]), (NO_INIT, CHECKED), (16, REPEATED), (8, REPEATED), (24, REPEATED)],
        TWO,
    ),
    Story(
        "whose first array is, and begins behind the second",
        LOOP,
        [(NO_INIT, CHECKED), (0, METHOD[0]), (16, REPEATED), (8, REPEATED), (24, REPEATED)],
        {0: "s.full[0]", 8: "s.full[1]", 16: "k.cu:19[0]", 24: "k.cu:19[1]"},
    ),
    Story("a lambda that is called at once", *(in_lambda("", "")), {0: "s.full[0]", 8: "s.full[1]"}),
    Story("whose parameter is another", *(in_lambda("S& s", "other")), {0: "k.cu:18[0]", 8: "k.cu:18[1]"}),
    Story(
        "the same at unequal distances",
        LOOP,
        [(0, METHOD[0]), (16, METHOD[1]), (8, REPEATED), (32, REPEATED)],
        {0: "k.cu:19[0]", 16: "k.cu:20[1]", 8: "k.cu:20[0]", 32: "k.cu:20[2]"},
    ),
    Story(
        "elements by number",
        HEAD + "    init(bars[0], 1);\n    init(bars[1], 1);\n    init(done, 1);",
        [(8, ONE), (16, chain(19, 5, INIT)), (0, chain(20, 5, INIT))],
        {8: "bars[0]", 16: "bars[1]", 0: "done[0]"},
    ),
    Story(
        "numbers that are not in the order of the addresses",
        HEAD + "    init(bars[1], 1);\n    init(bars[0], 1);",
        [(8, ONE), (16, chain(19, 5, INIT))],
        {8: "k.cu:18[0]", 16: "k.cu:19[0]"},
    ),
    Story(
        "a macro", "BARRIER(full, 2)\nBARRIER(empty, 2)", [(0, MACRO[0]), (8, MACRO[1])], {0: "full[0]", 8: "empty[0]"}
    ),
    Story(
        "an address in a variable",
        HEAD + "    auto& bar = s.done;\n    init(bar, 1);",
        [(0, chain(19, 5, INIT))],
        {0: "s.done[0]"},
    ),
    Story(
        "rings that a function makes, and a tuple of them",
        "",
        [(0, RING[0]), (8, RING[0]), (24, RING[1]), (32, RING[1])],
        {0: "full[0]", 8: "full[1]", 24: "empty[0]", 32: "empty[1]"},
        [(0, chain(8, 5)), (24, chain(9, 5))],
        "k.py",
    ),
    *(
        Story(f"one array: {text}", EACH.replace("{}", text), [(8, ONE), (0, ONE)], {8: "s.full[1]", 0: "s.full[0]"})
        for text in (
            "init(s.full[i], 1);  // init(s.empty[i], 1)",
            "init(/* s.empty[i] */ s.full[i], 1);",
            'note("init(s.empty[i], 1)"), init(s.full[i], 1);',
            "init(OF(s.full[i]), 1);",
        )
    ),
    *(
        Story(f"no array: {text}", EACH.replace("{}", text), [(8, ONE), (0, ONE)], {8: "k.cu:18[1]", 0: "k.cu:18[0]"})
        for text in (
            "init(s.full[order[i]], 1);",
            "init(i ? s.full : s.empty, 1);",
            "init(s.full[i + 1], 1);",
            "init(FULL(i), 1);",
        )
    ),
    Story(
        "every second element on another line",
        HEAD + "    init(bars[2 * i], 1);\n    init(bars[2 * i + 1], 1);",
        [(at, chain(18 + at // 8 % 2, 5, INIT)) for at in (0, 8, 16, 24)],
        {at: f"k.cu:{18 + at // 8 % 2}[{at // 16}]" for at in (0, 8, 16, 24)},
    ),
    Story(
        "one barrier for two loads, and an element that nothing uses",
        "",
        [(at, IN_LOOP) for at in (0, 8, 16)],
        {0: "a+b.full[0]", 8: "a+b.full[1]", 16: "a+b.full[2]"},
        file="k.py",
        copies=[(0, 96, LOADS[3]), (0, 64, LOADS[2]), (8, 80, LOADS[2]), (8, 112, LOADS[3])],
        tiles=["a 64 2", "b 96 2"],
    ),
    Story(
        "a ring of which a load of the second element is missing, and those of the third",
        "",
        [(at, IN_LOOP) for at in (0, 8, 16, 24)],
        {0: "a+b.full[0]", 8: "a+b.full[1]", 16: "a+b.full[2]", 24: "a+b.full[3]"},
        file="k.py",
        copies=[*((0, 64, LOADS[2]), (0, 96, LOADS[3]), (8, 64, LOADS[2])), *((24, 64, LOADS[2]), (24, 96, LOADS[3]))],
        tiles=["a 64 1", "b 96 1"],
        code=[(DRAIN.format(16), IN_LOOP)],
    ),
    Story(
        "one variable loaded on two lines",
        "",
        [(0, IN_LOOP), (8, IN_LOOP)],
        {0: "x:5.full[0]", 8: "x:6.full[0]"},
        file="k.py",
        copies=[(0, 64, LOADS[0]), (8, 80, LOADS[1])],
        tiles=["x:5 64 1", "x:6 80 1"],
    ),
    Story(
        "a wait at the place of a load, whose first lap is skipped",
        "",
        [(0, IN_LOOP), (16, IN_LOOP)],
        {0: "a.empty[0]", 16: "a.full[0]"},
        file="k.py",
        copies=[(16, 64, LOADS[2])],
        tiles=["a 64 1"],
        code=[(DRAIN.format(0), LOADS[2])],
    ),
    Story(
        "a product's result, and the operand that no copy loads",
        "",
        [(at, IN_LOOP) for at in (0, 16, 32, 48)],
        {0: "more.full[0]", 16: "w.full[0]", 32: "w.empty[0]", 48: "b.full[0]"},
        file="k.py",
        copies=[(48, 64, LOAD_B)],
        tiles=["b 64 1"],
        code=[
            (ROOM + HAND_ON + DRAIN.format(16) + PRODUCT + COMMIT.format(0) + COMMIT.format(32) + DRAIN.format(0), MORE)
        ],
    ),
    Story(
        "room in what a product is added to",
        "",
        [(at, IN_LOOP) for at in (0, 16, 48)],
        {0: "more.full[0]", 16: "more.empty[0]", 48: "b.full[0]"},
        file="k.py",
        copies=[(48, 64, LOAD_B)],
        tiles=["b 64 1"],
        code=[
            (PRODUCT + COMMIT.format(0) + DRAIN.format(0), MORE),
            ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r5]; add.u32 %r1, %r0, 16;", MORE),
            ("mbarrier.arrive.shared.b64 _, [%r1];" + DRAIN.format(16), MORE),
        ],
    ),
    Story(
        "two barriers of one value that nothing tells apart",
        "",
        [(at, IN_LOOP) for at in (0, 16, 32)],
        {0: "a.full[0]", 16: "k.py:8[0]", 32: "k.py:8[1]"},
        [(16, SUMS), (32, SUMS)],
        "k.py",
        copies=[(0, 64, LOADS[2])],
        tiles=["a 64 1"],
    ),
    Story(
        "one variable loaded on two lines into one slot",
        "",
        [(0, IN_LOOP)],
        {0: "x.full[0]"},
        file="k.py",
        copies=[(0, 64, LOADS[0]), (0, 64, LOADS[1])],
        tiles=["x 64 1"],
    ),
    Story(
        "loads of a function that is inlined twice",
        "",
        [(0, IN_LOOP), (8, IN_LOOP)],
        {0: "k.full[0]", 8: "v.full[0]"},
        file="k.py",
        copies=[(0, 64, PARTS[0]), (8, 80, PARTS[1])],
        tiles=["k 64 1", "v 80 1"],
    ),
    Story(
        "room for what two loads write",
        "",
        [(0, IN_LOOP), (16, IN_LOOP)],
        {0: "a+b.empty[0]", 16: "a+b.full[0]"},
        file="k.py",
        copies=[(16, 64, LOADS[2]), (16, 96, LOADS[3])],
        tiles=["a 64 1", "b 96 1"],
        waits=[(0, LOADS[2])],
    ),
    Story(
        "of which one is used where the other is meant",
        "",
        [(0, RING[0]), (8, RING[0]), (24, RING[1]), (32, RING[1])],
        {0: "full[0]", 8: "full[1]", 24: "empty[0]", 32: "empty[1]"},
        [(0, chain(8, 5)), (24, chain(9, 5)), (24, chain(8, 5))],
        "k.py",
    ),
    Story(
        "that functions call by one name",
        "",
        [(0, RING[0]), (8, RING[0]), (24, RING[1]), (32, RING[1])],
        {0: "bars[0][0]", 8: "bars[0][1]", 24: "bars[1][0]", 32: "bars[1][1]"},
        [(0, chain(8, 5)), (24, chain(8, 5))],
        "k.py",
    ),
    Story("a ring with one name", "", [(0, RING[0]), (8, RING[0])], {0: "bars[0][0]", 8: "bars[0][1]"}, file="k.py"),
)


def written(story: Story, folder: Path, *, source: bool = True) -> Path:
    text: list[str] = []
    numbers: dict[str, str] = {}
    copies = [(f"{barrier}; add.u32 %r2, %r0, {to}", places) for barrier, to, places in story.copies]
    for opcode, ops in (
        ("mbarrier.init.shared.b64 [%r1], 1", story.inits),
        ("mbarrier.arrive.shared.b64 _, [%r1]", story.arrives),
        ("mbarrier.try_wait.parity.shared.b64 %p0, [%r1], 1", story.waits),
        ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [data], 16, [%r1]", copies),
        ("", story.code),
    ):
        for offset, places in ops:
            alone = len(places) == 1 and places[0][2]
            outer = METHOD[1][-2] if alone else None
            for line, column, function in places:
                inlined = ""
                if outer is not None:
                    label = numbers.setdefault(function, f"$S{len(numbers)}")
                    inlined = f", function_name {label}, inlined_at 1 {outer[0]} {outer[1]}"
                text.append(f".loc 1 {line} {column}{inlined}")
                outer = (line, column, function)
            made = f"add.u32 %r1, %r0, {offset};" + f" {opcode};" * (offset != NO_INIT)
            text.append(made if opcode else str(offset))
    strings = [f"{label}: .b8 {', '.join(map(str, [*name.encode(), 0]))}" for name, label in numbers.items()]
    ptx = folder / "k.ptx"
    body = "\n".join(text)
    ptx.write_text(
        f'.version 8.7\n.target sm_100a\n.address_size 64\n.file 1 "{story.file}"\n.global .align 16 .b8 data[16];\n'
        ".extern .shared .align 16 .b8 everything[];\n"
        ".visible .entry kernel()\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd<1>;\n.reg .pred %p<2>;\n"
        f"mov.u32 %r0, everything;\n{body}\nret;\n}}\n"
        ".section .debug_str\n{\n" + "\n".join(strings) + "\n}\n"
    )
    launch = {"format": "pipesim-launch", "version": 1, "entry": "kernel", "grid": [1], "block": [32], "parameters": []}
    ptx.with_suffix(".json").write_text(json.dumps(launch | {"dynamic_shared_bytes": 128}))
    if source:
        python = TRITON if story.copies else GLUON
        (folder / story.file).write_text(python if story.file == "k.py" else WRAPPED + story.source + "\n}\n")
    return ptx


def names_of(ptx: Path) -> dict[int, str]:
    made = read_kernel(ptx)
    pairs = zip(made.places, made.program.barriers, strict=True)
    return {offset: f"{each.name}[{each.stage}]" for (_, offset), each in pairs}


@pytest.mark.sampled(12, 26)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_names(story: Story, tmp_path: Path) -> None:
    ptx = written(story, tmp_path)
    assert names_of(ptx) == story.expected
    assert [f"{each.name} {each.offset} {each.slots}" for each in read_kernel(ptx).program.tiles] == [*story.tiles]


@pytest.mark.slow
def test_the_barriers_of_a_kernel_that_triton_specialised() -> None:
    """The source is found under the folder in which it was compiled."""
    ptx = next(path for path in kernel_paths() if path.stem == "gemm_tma_ws-sm_100a")
    with contextlib.chdir(ROOT):
        assert list(names_of(ptx).values()) == [
            *("sums.empty[0]", "sums.full[0]"),
            *(f"a+b.{what}[{n}]" for what in ("empty", "full") for n in range(3)),
        ]
        program = read_kernel(ptx).program
    assert [each.name for each in program.tiles] == ["b", "a"]
    roles = [each.role for each in program.agents]
    assert roles == [
        "store",
        "store_2",
        "compute",
        "compute",
        "load",
        "waiting",
        "mma",
        "idle",
    ]  # all read their number
