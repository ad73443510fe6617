"""Values nearby for which a check says the same: against reading them, and where nothing is said."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from pipesim.answers.check import check
from pipesim.answers.every_size.classes import AnyWord
from pipesim.answers.views.check import CheckReport, NearbyValues
from pipesim.model.finding import Verdict
from pipesim.ptx.launch.values import Launch
from pipesim.report.pages.checks.check import check_lines
from pipesim.report.sentences.check import nearby_words
from pipesim.targets import Target, find
from tests.support.kernel_files import written
from tests.support.random_cta_kernels import random_cta_kernel, random_sized_kernel, ring_of_cta
from tests.support.tile_kernels import random_kernel_of_tiles
from tools.judge_sizes import nearby


def target_of(folder: Path, text: str, launch: Launch) -> Target:
    """A kernel whose first parameter is ``n``."""
    given = (launch.parameters[0]._replace(name="n"), *launch.parameters[1:])
    return find(written(folder / "kernel.ptx", text, replace(launch, parameters=given)))


def ring(folder: Path, made: str, n: int, ctas: int = 4, **chosen: object) -> CheckReport:
    """The report on a ring whose trips are made of ``n``, which is in %r22."""
    usual = {"trips": 30, "other": 30, "most": 0x7FFFFFFF}
    text, launch = ring_of_cta(made, (ctas, 1, 1), n, **usual | chosen)
    return check(target_of(folder, text, launch), {}, quick=True)


TILES = " add.u32 %r30, %r22, 127;\n shr.u32 %r30, %r30, 7;\n"


def test_a_size_is_proved_with_those_of_as_many_tiles(tmp_path: Path) -> None:
    report = ring(tmp_path, TILES, 600)
    assert (report.verdict, report.nearby) == (Verdict.PROVED, (NearbyValues("n", 513, 640),))
    same = "the same for n from 513 to 640, but for global memory"
    assert nearby_words(report) == f"{same}; --any n asks for others"
    alone = replace(report, nearby=(NearbyValues("540", 5, 5), NearbyValues("n", 1, 9)))  # two words that decide
    assert nearby_words(alone).endswith("; --any n or --any params+540 asks for others")
    one = replace(report, nearby=alone.nearby[:1])
    assert nearby_words(one) == "those of the launch; --any params+540 asks for others"
    assert "  sizes        the same for n from 513 to 640, but for global memory; --any n" in check_lines(report, 80)


def test_what_is_refuted_is_so_for_values_nearby(tmp_path: Path) -> None:
    """One warp takes a tile more than the other loads."""
    report = ring(tmp_path, f"{TILES} add.u32 %r31, %r30, 1;\n", 600, other=31)
    assert (report.verdict, report.nearby) == (Verdict.REFUTED, (NearbyValues("n", 513, 640),))


@pytest.mark.parametrize(("n", "least", "most"), [(500, 384, 511), (320, 256, 383), (128, 128, 255)])
def test_a_word_that_places_are_compared_with_is_looked_at_for_each_kind(
    tmp_path: Path, n: int, least: int, most: int
) -> None:
    """CTAs whose tile is whole take two of them: of the four with n = 500 the first three."""
    made = " mad.lo.u32 %r29, %r20, 128, 128;\n setp.le.u32 %p4, %r29, %r22;\n selp.u32 %r30, 2, 1, %p4;\n"
    report = ring(tmp_path, made, n)
    assert (report.verdict, len(report.kinds)) == (Verdict.PROVED, 2)
    assert report.nearby == (NearbyValues("n", least, most),)


def test_a_word_that_decides_nothing_may_have_any_value(tmp_path: Path) -> None:
    report = ring(tmp_path, " mov.u32 %r30, 3;\n", 600)
    assert (report.verdict, report.nearby) == (Verdict.PROVED, (NearbyValues("n"),))
    assert nearby_words(report) == "the same for any value of n, but for global memory"


def test_nothing_more_is_said_where_every_value_is_asked_for(tmp_path: Path) -> None:
    text, launch = ring_of_cta(TILES, (4, 1, 1), 600, trips=30, other=30, most=0x7FFFFFFF)
    target = target_of(tmp_path, text, launch)
    assert check(target, {}, quick=True, any_words=(AnyWord("n", 1, 9),)).nearby == ()


@pytest.mark.sampled(4, 8)
@pytest.mark.parametrize("seed", range(120))
def test_random_kernels_do_the_same_with_values_nearby(tmp_path: Path, seed: int) -> None:
    kinds = random_sized_kernel, random_cta_kernel, random_kernel_of_tiles
    _, _, wrong = nearby(target_of(tmp_path, *kinds[seed % 3](seed)), random.Random(seed))
    assert not wrong
