"""Kernels that arrays in memory decide about, for all contents: kinds against reading each, right and wrong twins."""

import random
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import pytest

from pipesim.answers.check import check
from pipesim.answers.every_cta import contents
from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.answers.views.check import CheckReport
from pipesim.errors import LaunchFileError
from pipesim.model.finding import Verdict
from pipesim.prove.check import How
from pipesim.ptx.extract import extract
from pipesim.ptx.free.arrays import FreeArray
from pipesim.ptx.launch.values import Array, Content, Field, Free, Parameter, Pointer
from pipesim.ptx.text.read import read_module
from pipesim.report.pages.checks.check import check_lines
from pipesim.report.sentences.check import check_sentence, kinds_words
from pipesim.targets import Target, find
from tests.support.kernel_files import written
from tests.support.random_cta_kernels import random_free_kernel, ring_of_cta
from tools.judge_ctas import by_contents

GRID = (4, 1, 1)
MOST = (1 << 32) - 1  #: what a word holds


@pytest.mark.parametrize("seed", [3, 4, 7, 8])
def test_the_kinds_are_those_of_reading_all_contents(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "EACH", contents.EACH if seed % 2 else 1)  # by combinations, or by parts
    monkeypatch.setattr(contents, "_TOGETHER", contents._TOGETHER if seed % 4 else 1)  # of values, or of ranges
    text, launch = random_free_kernel(seed)
    _, cases, wrong = by_contents(extract(read_module(text, "random.ptx"), launch))
    assert (cases > 6, wrong) == (True, []), seed


def target_of(folder: Path, made: str, free: Free, *settings: str, value: int = 1, **chosen: int) -> Target:
    """A ring of CTAs whose ``lens`` holds ``value`` at first; ``%r24`` is the element of this CTA."""
    text, launch = ring_of_cta(made, GRID, **chosen)
    array = Array("u32", tuple(value + n * (free.rises_by or (0, 0))[1] for n in range(5)), free)
    lens = Parameter("lens", Pointer(contents=(Field(0, array),)))
    file = written(folder / "ring.ptx", text, replace(launch, parameters=(launch.parameters[0], lens)))
    return find(file, sets=settings)


def checked(folder: Path, made: str, free: Free, *settings: str, value: int = 1, **chosen: int) -> CheckReport:
    return check(target_of(folder, made, free, *settings, value=value, **chosen), {}, quick=True)


NEXT = " ld.global.u32 %r30, [%rd3+4];\n sub.u32 %r31, %r30, %r24;"  #: how many rows this CTA has, by offsets
FIRST = " ld.global.u32 %r30, [%rd1];"
FEW = " min.u32 %r30, %r24, 5;"  #: tiles, at most
ONE_LENGTH = FEW + " setp.eq.u32 %p4, %r24, 1000000;\n selp.u32 %r31, 1, 0, %p4;\n add.u32 %r31, %r31, %r30;"
ROUNDED = " shr.u32 %r30, %r24, 20;\n add.u32 %r31, %r24, 77;\n shr.u32 %r31, %r31, 20;\n"
ROUNDED += " shr.u32 %r30, %r30, 10;\n shr.u32 %r31, %r31, 10;"
TILES = " add.u32 %r30, %r24, 127;\n shr.u32 %r30, %r30, 7;\n shr.u32 %r31, %r24, 7;"


@pytest.mark.parametrize(
    ("made", "free", "trips", "wrong"),
    [
        # (what the producer fills, what the consumer takes), right and wrong
        (" max.u32 %r30, %r24, 1;", Free(0, 3), (24, 24), None),
        (" max.u32 %r30, %r24, 1;", Free(0, 3), (24, 30), {"lens[0]": 0}),  # a group of size 0
        (" max.u32 %r30, %r24, 1;", Free(1, 3), (24, 30), None),
        (TILES, Free(0, 384, 64), (30, 30), None),
        (TILES, Free(0, 384, 64), (31, 30), {"lens[0]": 64}),  # a length that is no multiple of the tile
        (TILES, Free(0, 384, 128), (31, 30), None),
        (FEW, Free(0, MOST), (30, 30), None),
        (ONE_LENGTH, Free(0, MOST), (30, 31), {"lens[0]": 1000000}),
        (ONE_LENGTH, Free(0, MOST - 3, 3), (30, 31), None),
        (ROUNDED, Free(0, MOST >> 1), (30, 31), {"lens[0]": (1 << 30) - 77}),  # a tile more, 77 elements too early
        (ROUNDED, Free(0, MOST >> 1), (31, 30), None),  # one is not taken
        (FIRST, Free(1, 1), (30, 24), None),
        (FIRST, Free(0, 2), (24, 24), None),
        (FIRST, Free(0, 2), (30, 24), {"lens[0]": 0}),  # the first group is smaller than this CTA's
        (NEXT + " max.u32 %r32, %r31, 1;", Free(0, 9, 1, (1, 2)), (31, 32), None),
        (NEXT + " max.u32 %r32, %r31, 1;", Free(0, 9, 1, (0, 2)), (31, 32), {"lens[1]": 0}),
    ],
)  # fmt: skip
def test_twins(made: str, free: Free, trips: tuple[int, int], wrong: dict[str, int] | None, tmp_path: Path) -> None:
    start = 0 if free.rises_by or free.step > 1 else 1
    report = checked(tmp_path, made, free, value=start, trips=trips[0], other=trips[1])
    if wrong is None:
        assert report.verdict is Verdict.PROVED
        assert report.scope.contents == {"lens": (free.low, free.high, free.step)} or free.low == free.high
        assert ("for all contents of lens" in check_sentence(report)) is (free.low < free.high)
        return
    assert report.verdict is Verdict.REFUTED
    bad = next(each for each in report.kinds if each.verdict is Verdict.REFUTED)
    assert bad.contents == wrong
    said = " and ".join(f"{name} {value}" for name, value in wrong.items())
    assert f"with {said}" in check_sentence(report)
    (found,) = report.refutations
    options = [f"--set lens:{4 * int(name[5])}={value}" for name, value in wrong.items()]
    assert all(each in found.command for each in options), found.command
    again = [f"cta={bad.cta}", *(each.removeprefix("--set ") for each in options)]
    alone = checked(tmp_path, made, free, *again, value=start, trips=trips[0], other=trips[1])
    assert (alone.verdict, alone.kinds) == (Verdict.REFUTED, ())


def test_the_condition_is_in_the_words_of_the_kernel(tmp_path: Path) -> None:
    report = checked(tmp_path, TILES, Free(0, 384, 64), value=0, trips=31, other=30)
    assert "CTA 0 with lens[0] 64 refuted (lens[blockIdx.x] > 0 at ring.ptx:49)" in kinds_words(report)
    (where,) = [line for line in check_lines(report, 200) if line.startswith("  in ")]
    assert "with lens[0] 64" in where
    assert "lens:0" not in where


def test_of_more_contents_than_are_looked_at_nothing_is_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The element is the count of a barrier: each value is a kind of its own."""
    monkeypatch.setattr("pipesim.answers.every_cta.kinds.MOST_KINDS", 6)
    own = " add.u32 %r31, %r24, 5;\n setp.ne.u32 %p9, %r0, 0;\n @!%p9 mbarrier.init.shared::cta.b64 [%r3+48], %r31;"
    kernel = target_of(tmp_path, own, Free(0, 80), trips=50, other=50).kernel
    assert kernel is not None
    every = EveryCta(kernel)
    assert len(list(every)) == 5
    assert (len(every.kinds), every.complete, every.undecided) == (6, False, "")


def test_what_cannot_be_found_out_is_unknown_with_the_element(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "EACH", 1)
    monkeypatch.setattr(contents, "_MOST_CELLS", 3)
    report = checked(tmp_path, FIRST, Free(0, 2), trips=24, other=24)
    assert (report.verdict, report.how, report.open_word) == (Verdict.UNKNOWN, How.SOME_CONTENTS, "lens[0]")
    assert "depends on lens[0] in too many ways" in check_sentence(report)


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        (Array("u64", (0,), Free(0, 1)), "an array that is free is passed by value"),
        (Pointer(contents=(Field(2, Array("u32", (0,), Free(0, 1))),)), "an array that is free begins at byte 2"),
    ],
)
def test_an_array_is_free_in_memory_alone(content: Content, fact: str) -> None:
    text, launch = ring_of_cta("", GRID)
    given = replace(launch, parameters=(launch.parameters[0], Parameter("lens", content)))
    with pytest.raises(LaunchFileError, match=fact):
        extract(read_module(text, "ring.ptx"), given)


@pytest.mark.parametrize("seed", range(20))
def test_elements_that_rise_are_completed_as_they_may_be(seed: int) -> None:
    """Some of all that fit are chosen: the others are given values with which all fit."""
    rng = random.Random(seed)
    least, most = sorted(rng.choices(range(4), k=2))
    count = rng.randrange(2, 6)
    array = FreeArray("a", 0, 1, least * (count - 1) + rng.randrange(4), count, (0,) * count, (least, most))
    fits = [v for v in product(*map(array.numbers, range(count))) if _rises(v, least, most)]
    assert fits
    chosen = {n: value for n, value in enumerate(rng.choice(fits)) if rng.random() < 0.5}
    found = tuple(array.completed(chosen).values())
    assert found in fits
    assert all(found[n] == value for n, value in chosen.items())


def _rises(values: tuple[int, ...], least: int, most: int) -> bool:
    return all(least <= b - a <= most for a, b in pairwise(values))
