"""Corrections of several objects that belong together: who gives a stage back and its count, whom copies reach.

Every wrong description is the text of a right one with one change.
"""

import re
from pathlib import Path

import pytest

from pipesim.answers.check import check
from pipesim.model.finding import Deadlock, Verdict
from pipesim.report.findings.finding import deadlock_lines
from tests.support.kernel_files import described

#: A ring of tiles that one thread copies.
LOAD = """
    @p.role("load")
    def load(w):
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                empty[i % stages].wait(i // stages % 2 ^ 1)
                full[i % stages].expect_bytes(4096)
                w.tma_load(a[i % stages], full[i % stages], i)
"""
RAW_LOAD = LOAD.replace("empty[", "raw_empty[").replace("full[", "raw_full[").replace("(a[", "(raw[")
#: Tiles are changed in place by two warps and stored by another one, which gives the slot back.
STORED = (
    """
from pipesim import Engine, Fence, Protocol
def stored(stages: int = 3, tiles: int = 7, last: int = 1):
    p = Protocol("stored")
    x = p.smem("x", stages, 4096)
    full, done = p.mbarriers("full", stages, count=1), p.mbarriers("done", stages, count=2)
    empty = p.mbarriers("empty", stages, count=1 if last else 2)
"""
    + LOAD.replace("(a[", "(x[")
    + """
    @p.role("math", warps=2)
    def math(w):
        for i in w.loop(tiles, "tiles"):
            full[i % stages].wait(i // stages % 2)
            w.write(x[i % stages].part(w.index * 2048, 2048), 100 + i)
            w.fence(Fence.PROXY_ASYNC)
            with w.elect_one():
                done[i % stages].arrive()
                if not last:
                    empty[i % stages].arrive()

    @p.role("store")
    def store(w):
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                done[i % stages].wait(i // stages % 2)
                w.async_read(Engine.BULK, x[i % stages], 100 + i)
                w.commit(Engine.BULK)
                w.wait_group(Engine.BULK)
                if last:
                    empty[i % stages].arrive()

    return p
"""
)
#: 2 x 2 CTAs: half of A is multicast along a row, half of B along a column.
SQUARE = """
from pipesim import Protocol
def square(stages: int = 2, tiles: int = 5, told: int = 3):
    p = Protocol("square", cluster=4)
    a, b = p.smem("a", stages, 4096), p.smem("b", stages, 4096)
    full, empty = p.mbarriers("full", stages, count=1), p.mbarriers("empty", stages, count=told)

    @p.role("load")
    def load(w):
        row, col = w.cta // 2, w.cta % 2
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                s = i % stages
                empty[s].wait(i // stages % 2 ^ 1)
                full[s].expect_bytes(8192)
                w.tma_load(a[s].part(col * 2048, 2048), full[s], i, cta_mask=0b11 << 2 * row)
                w.tma_load(b[s].part(row * 2048, 2048), full[s], i, cta_mask=0b101 << col)
        w.cluster_sync()

    @p.role("math")
    def math(w):
        for i in w.loop(tiles, "tiles"):
            s = i % stages
            full[s].wait(i // stages % 2)
            w.read(a[s], i)
            w.read(b[s], i)
            w.sync_warp()
            with w.elect_one():
                for cta in (w.cta, w.cta ^ 1, w.cta ^ 2)[:told]:
                    empty[s].arrive_cluster(cta)
        w.cluster_sync()

    return p
"""
#: Two roles take the tiles of one ring in turn, two at a time.
TURNS = (
    """
from pipesim import Protocol
def turns(stages: int = 4, pairs: int = 3):
    p = Protocol("turns")
    a, full, empty = p.smem("a", stages, 4096), p.mbarriers("full", stages, 1), p.mbarriers("empty", stages, 1)
"""
    + LOAD.replace('tiles, "tiles"', "4 * pairs")
    + """
    def math(w, group):
        n = 2 * group
        for turn in w.loop(pairs, "pairs"):
            if group or turn:
                w.bar_sync(1 + group, 64)
            for _ in range(2):
                full[n % stages].wait(n // stages % 2)
                w.read(a[n % stages], n)
                with w.elect_one():
                    empty[n % stages].arrive()
                n += 1
            if not (group and turn + 1 == pairs):
                w.bar_arrive(2 - group, 64)
            n += 2

    p.role("math0")(lambda w: math(w, 0))
    p.role("math1")(lambda w: math(w, 1))
    return p
"""
)
#: Two warps take tiles in turn: with an odd number of tiles one is left, and load waits for it in vain.
EVEN = (
    """
from pipesim import Protocol
def even(stages: int = 4, tiles: int = 8):
    p = Protocol("even")
    a, full, empty = p.smem("a", stages, 4096), p.mbarriers("full", stages, 1), p.mbarriers("empty", stages, 1)
"""
    + LOAD
    + """            for i in range(tiles, tiles + stages):
                empty[i % stages].wait(i // stages % 2 ^ 1)

    @p.role("math", warps=4)
    def math(w):
        group = w.index // 2
        for turn in w.loop(tiles // 2, "turns"):
            n = 2 * turn + group
            if w.index % 2 == 0:
                full[n % stages].wait(n // stages % 2)
            w.bar_sync(1 + group, 64)
            w.read(a[n % stages].part(w.index % 2 * 2048, 2048), n)
            w.bar_sync(3 + group, 64)
            if w.index % 2 == 0:
                with w.elect_one():
                    empty[n % stages].arrive()

    return p
"""
)
#: Widened tiles and B go to the MMA, which has to give B back; the wait for B's room says nothing about what is read.
BESIDE = """
from pipesim import Protocol
def beside(stages: int = 3, tiles: int = 7, last: int = 1):
    p = Protocol("beside")
    a, b = p.smem("a", stages, 4096), p.smem("b", stages, 4096)
    a_full, a_empty = p.mbarriers("a_full", stages, 1), p.mbarriers("a_empty", stages, 1)
    b_full, b_empty = p.mbarriers("b_full", stages, 1), p.mbarriers("b_empty", stages, 1 if last else 2)

    @p.role("load")
    def load(w):
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                for tile, full, empty in ((a, a_full, a_empty), (b, b_full, b_empty)):
                    empty[i % stages].wait(i // stages % 2 ^ 1)
                    full[i % stages].expect_bytes(4096)
                    w.tma_load(tile[i % stages], full[i % stages], i)

    @p.role("widen", warps=2)
    def widen(w):
        for i in w.loop(tiles, "tiles"):
            a_full[i % stages].wait(i // stages % 2)
            w.read(a[i % stages], i)
            w.bar_sync(1, 64)
            with w.elect_one():
                if w.index == 0:
                    a_empty[i % stages].arrive()
                if not last:
                    b_empty[i % stages].arrive()

    @p.role("mma")
    def mma(w):
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                b_full[i % stages].wait(i // stages % 2)
                w.read(b[i % stages], i)
                if last:
                    b_empty[i % stages].arrive()

    return p
"""
#: Two groups of four warps, each of two roles, that write a number and read those of their group.
GROUPS = """
from pipesim import Protocol
def groups(numbers: int = 2, turns: int = 3):
    p = Protocol("groups")
    x = p.smem("x", 2, 512)

    def work(w, group, place):
        for i in w.loop(turns, "turns"):
            w.write(x[group].part(place * 128, 128), i)
            w.bar_sync(1 + group % numbers, 128)
            w.read(x[group].part((place + 1) % 4 * 128, 128), i)
            w.bar_sync(1 + group % numbers, 128)

    p.role("first", warps=1)(lambda w: work(w, 0, 0))
    p.role("others", warps=3)(lambda w: work(w, 0, 1 + w.index))
    p.role("second", warps=2)(lambda w: work(w, 1, w.index))
    p.role("rest", warps=2)(lambda w: work(w, 1, 2 + w.index))
    return p
"""
#: What is stored of three stages lies over the first slot, so that the next round of copies waits for it.
ROUNDS = """
from pipesim import Engine, Fence, Protocol
def rounds(stages: int = 2, tiles: int = 3, steps: int = 3):
    p = Protocol("rounds")
    a, full = p.smem("a", stages, 4096), p.mbarriers("full", stages, 1)
    empty, stored = p.mbarriers("empty", stages, 2), p.mbarriers("stored", 1, 1)

    @p.role("load")
    def load(w):
        with w.elect_one():
            for i in w.loop(tiles * steps, "steps"):
                if i and i % steps == 0:
                    stored[0].wait((i // steps - 1) % 2)
                empty[i % stages].wait(i // stages % 2 ^ 1)
                full[i % stages].expect_bytes(4096)
                w.tma_load(a[i % stages], full[i % stages], i)

    @p.role("math", warps=2)
    def math(w):
        for i in w.loop(tiles * steps, "steps"):
            full[i % stages].wait(i // stages % 2)
            w.read(a[i % stages].part(w.index * 2048, 2048), i)
            with w.elect_one():
                empty[i % stages].arrive()
            if i % steps == steps - 1:
                w.bar_sync(1, 64)
                w.write(a[0].part(w.index * 2048, 2048), 100 + i)
                w.bar_sync(1, 64)
                w.read(a[0].part(2048 - w.index * 2048, 2048), 100 + i)
                w.bar_sync(1, 64)
                if w.index == 0:
                    with w.elect_one():
                        w.fence(Fence.PROXY_ASYNC)
                        stored[0].arrive()

    return p
"""
#: One product stays under way: what is given back is the stage before.
LATE = (
    """
from pipesim import Engine, Fence, Protocol
def late(stages: int = 3, tiles: int = 7):
    p = Protocol("late")
    a, full, empty = p.smem("a", stages, 4096), p.mbarriers("full", stages, 1), p.mbarriers("empty", stages, 4)
"""
    + LOAD
    + """
    @p.role("math", warps=4, align=4)
    def math(w):
        for i in w.loop(tiles, "tiles"):
            full[i % stages].wait(i // stages % 2)
            w.mma(Engine.WGMMA, reads=[(a[i % stages], i)], cycles=128)
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA, groups=1)
            if i > 0:
                with w.elect_one():
                    empty[(i - 1) % stages].arrive()
        w.wait_group(Engine.WGMMA)

    return p
"""
)
#: Two warps take a raw tile and fill a part of another one, each.
UNPACK = (
    """
from pipesim import Protocol
def unpack(stages: int = 2, tiles: int = 5, counted: int = 2):
    p = Protocol("unpack")
    raw, tile = p.smem("raw", stages, 4096), p.smem("tile", stages, 8192)
    raw_full, raw_empty = p.mbarriers("raw_full", stages, 1), p.mbarriers("raw_empty", stages, counted)
    full, empty = p.mbarriers("full", stages, counted), p.mbarriers("empty", stages, 1)
"""
    + RAW_LOAD
    + """
    @p.role("widen", warps=2)
    def widen(w):
        for i in w.loop(tiles, "tiles"):
            s, phase = i % stages, i // stages % 2
            raw_full[s].wait(phase)
            w.read(raw[s].part(w.index * 2048, 2048), i)
            with w.elect_one():
                raw_empty[s].arrive()
            empty[s].wait(phase ^ 1)
            w.write(tile[s].part(w.index * 4096, 4096), i)
            with w.elect_one():
                full[s].arrive()

    @p.role("add")
    def add(w):
        for i in w.loop(tiles, "tiles"):
            full[i % stages].wait(i // stages % 2)
            w.read(tile[i % stages], i)
            with w.elect_one():
                empty[i % stages].arrive()

    return p
"""
)
COPY = "load: the copy to full goes to the CTAs"
HAS = "whenever it has finished with a stage of"
MISTAKES = {
    "stored: who changes it gives it back": (
        STORED, "last: int = 1", "last: int = 0",
        f"store arrives on empty instead of math, {HAS} done; it has a count of 1 instead of 2"),
    "beside: who does not use it gives it back": (
        BESIDE, "last: int = 1", "last: int = 0",
        f"mma arrives on b_empty instead of widen, {HAS} b_full; it has a count of 1 instead of 2"),
    "square: the CTA of the column is not told": (
        SQUARE, "told: int = 3", "told: int = 2",
        ("math arrives on empty of every CTA whose copies land in its own "
        "and initialise empty with a count of 3 instead of 2")),
    "square: the CTA on the diagonal is told": (
        SQUARE, "w.cta ^ 2)", "w.cta ^ 3)", "math arrives on empty of every CTA whose copies land in its own"),
    "square: B goes along the row": (
        SQUARE, "0b101 << col", "0b11 << 2 * row", COPY + " whose rank % 2 is its own"),
    "square: A goes along the column": (
        SQUARE, "0b11 << 2 * row", "0b101 << col", COPY + " whose rank // 2 is its own"),
    "turns: does not pass the other's tiles": (
        TURNS, "            n += 2\n", "",
        "each of math0 and math1 advances stage and phase of full by 2 more each time, past what others take"),
    "groups: at one number": (
        GROUPS, "numbers: int = 2", "numbers: int = 1",
        "give each group of warps that meets at named barrier 1 a number of its own, from 2 on"),
    "rounds: copies over what is still to be stored": (
        ROUNDS, "if i and i % steps == 0", "if i < 0",
        "load waits for stored, with parity 1 in the first lap, before each round of the copy to full"),
    "late: gives back what it never had": (LATE, "if i > 0", "if i >= 0",
                                           "math omits the arrive on empty the first time"),
    "unpack: a warp more than both counts have": (
        UNPACK, "counted: int = 2", "counted: int = 1", "initialise full and raw_empty with a count of 2 instead of 1"),
    "even: one gives it back for both": (
        EVEN, "            w.bar_sync(3 + group, 64)\n", "",
        "math executes bar_sync at named barriers 1 and 2 after the read of a"),
}  # fmt: skip


@pytest.mark.sampled(0, 3)
@pytest.mark.parametrize("name", MISTAKES)
def test_all_that_is_meant_comes_first(name: str, tmp_path: Path) -> None:
    text, right, wrong, said = MISTAKES[name]
    assert right in text
    found = check(described(tmp_path, text.replace(right, wrong)), {})
    assert found.verdict is Verdict.REFUTED
    first = [shown.corrections[0].said for shown in found.refutations if shown.corrections]
    assert {re.sub(r" \([^)]*\)", "", each) for each in first} - {"the same as of the finding below"} == {said}


@pytest.mark.parametrize("text", [STORED, SQUARE, TURNS, EVEN, BESIDE, GROUPS, ROUNDS, LATE, UNPACK])
def test_the_right_one_is_proved(text: str, tmp_path: Path) -> None:
    assert check(described(tmp_path, text), {}, quick=True).verdict is Verdict.PROVED


def test_the_line_of_what_comes_later_is_its_own(tmp_path: Path) -> None:
    early = """            with w.elect_one():
                w.fence(Fence.PROXY_ASYNC)
                empty[i % stages].arrive()
            w.read(a[i % stages], i)
"""
    begin, _, rest = LATE.partition("            w.mma(")
    text = begin + early + "    return p" + rest[-1]
    found = check(described(tmp_path, text), {})
    lines = [shown.corrections[0].line for shown in found.refutations if shown.corrections]
    number = next(n for n, line in enumerate(text.splitlines(), 1) if "].arrive()" in line)
    assert [line.rpartition(":")[2] for line in lines] == [str(number)]


def test_who_took_the_phase_that_is_missed_is_named(tmp_path: Path) -> None:
    found = check(described(tmp_path, TURNS.replace("            n += 2\n", "")), {}, quick=True)
    hang = next(each.finding for each in found.refutations if isinstance(each.finding, Deadlock))
    assert {each.rivals for each in hang.blocked if each.missed >= 0} <= {("math1",), ("math0",)}
    assert "took that phase: step past it" in "\n".join(deadlock_lines(hang, 160))
