"""Barriers have the names of the source's arrays where these are certain, and else the line of their init."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from pipesim.ptx.kernel import read_kernel

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


ONE = chain(18, 5, INIT)
METHOD = [chain(line, 9, METHOD_INIT, SET) for line in (19, 20)]
REPEATED = METHOD[1][-1:]  # nvcc says the innermost place alone
MACRO = [chain(line, 1, INIT) for line in (17, 18)]
HEAD = "void kernel(S& s) {\n"
LOOP = HEAD + "    for (int i = 0; i < 2; ++i) {\n        s.full[i].init(1);\n        s.empty[i].init(2);\n    }"
MANY = HEAD + "    for (int i = 0; i < 2; ++i) init(s.full[i], 1), init(s.empty[i], 2);\n    arrive(s.empty[n]);"
TWO = {0: "s.full[0]", 8: "s.full[1]", 16: "s.empty[0]", 24: "s.empty[1]"}
RING = [chain(11, 13 + 9 * n, (4, "kernel"), at=9) for n in range(2)]
STORIES = (
    Story("one statement of two arrays", MANY, [(at, ONE) for at in (0, 16, 8, 24)], TWO),
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
    Story("a ring with one name", "", [(0, RING[0]), (8, RING[0])], {0: "bars[0][0]", 8: "bars[0][1]"}, file="k.py"),
)


def written(story: Story, folder: Path, *, source: bool = True) -> Path:
    text: list[str] = []
    numbers: dict[str, str] = {}
    for opcode, ops in (("init.shared.b64 [%r1], 1", story.inits), ("arrive.shared.b64 _, [%r1]", story.arrives)):
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
            text.append(f"add.u32 %r1, %r0, {offset}; mbarrier.{opcode};")
    strings = [f"{label}: .b8 {', '.join(map(str, [*name.encode(), 0]))}" for name, label in numbers.items()]
    ptx = folder / "k.ptx"
    body = "\n".join(text)
    ptx.write_text(
        f'.version 8.7\n.target sm_90a\n.address_size 64\n.file 1 "{story.file}"\n'
        f".visible .entry kernel()\n{{\n.reg .b32 %r<2>;\n.shared .align 8 .b8 bars[64];\n"
        f"mov.u32 %r0, bars;\n{body}\nret;\n}}\n"
        ".section .debug_str\n{\n" + "\n".join(strings) + "\n}\n"
    )
    launch = {"format": "pipesim-launch", "version": 1, "entry": "kernel", "grid": [1], "block": [32], "parameters": []}
    ptx.with_suffix(".json").write_text(json.dumps(launch))
    if source:
        (folder / story.file).write_text(GLUON if story.file == "k.py" else WRAPPED + story.source + "\n}\n")
    return ptx


def names_of(ptx: Path) -> dict[int, str]:
    made = read_kernel(ptx)
    pairs = zip(made.places, made.program.barriers, strict=True)
    return {offset: f"{each.name}[{each.stage}]" for (_, offset), each in pairs}


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_names(story: Story, tmp_path: Path) -> None:
    assert names_of(written(story, tmp_path)) == story.expected


def test_without_the_source_the_lines_stay(tmp_path: Path) -> None:
    assert set(names_of(written(STORIES[0], tmp_path, source=False)).values()) == {f"k.cu:18[{n}]" for n in range(4)}
