"""Kernels that run longer than is followed, without laps that are like others: against reading all laps."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from pipesim.answers.check import check
from pipesim.answers.views.check import CheckReport
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.model.tables import LeftOutLaps
from pipesim.prove.any_size.left_out import does_the_same
from pipesim.prove.check import How
from pipesim.prove.check import check as prove
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.emulate.laps.left_out import LapsLeftOut
from pipesim.ptx.emulate.stop import Status
from pipesim.ptx.emulation import emulate, emulate_without_laps
from pipesim.ptx.extract import emit
from pipesim.ptx.launch.values import Launch, Number, Parameter, Policies
from pipesim.ptx.prepare import prepare
from pipesim.ptx.text.read import read_module
from pipesim.report.pages.checks.check import check_lines
from pipesim.targets import find
from tests.support.kernel_files import written
from tests.support.lanes import long_after, slow_after, slow_but
from tests.support.nested_loops import nested_kernel
from tests.support.tile_kernels import RIGHT, WRONG, kernel_of_tiles, sized_kernel_of_tiles
from tools.judge_sizes import judge_laps


def program_of(kernel: tuple[str, Launch]) -> Program:
    """What is followed of it."""
    text, launch = kernel
    made = prepare(read_module(text, "nested.ptx"), launch)
    return emit(made, emulate_without_laps(made, launch, EmulationLimits())).program


def checked(folder: Path, kernel: tuple[str, Launch]) -> CheckReport:
    return check(find(written(folder / "nested.ptx", kernel[0], kernel[1])), {}, quick=True)


@pytest.mark.sampled(2, 5)
@pytest.mark.parametrize("seed", slow_but((3, 6), range(16)))
def test_the_laps_that_are_left_out_are_those_of_the_kernel(seed: int) -> None:
    """Of random kernels: rings whose depth divides no count, parities carried from tile to tile, tails, two rings."""
    assert not any(word.isupper() for word in judge_laps(seed))


@pytest.mark.parametrize(("count", "verdict"), [(RIGHT, Verdict.PROVED), (WRONG, Verdict.REFUTED)])
def test_a_tile_that_its_number_decides_is_in_no_lap_like_others(count: str, verdict: Verdict) -> None:
    """Tile 100 of those that the launch gives is odd: the others follow each other as a counter gives them."""
    given = tuple(8 + 2 * n + (n == 100) for n in range(120))
    odd = " and.b32 %r48, %r20, 1;\n setp.eq.u32 %p7, %r48, 1;"
    text, launch = kernel_of_tiles(odd, count, counter=True, policies=Policies(tile_counter=8, handed_out=given))
    assert (
        prove(program_of((text, replace(launch, parameters=(Parameter("n", Number("u32", 260)),))))).verdict is verdict
    )


SIZES = [(24, 20_000), (4_096, 1_024), (4, 100_000), (100_000, 3), (1_000_000, 7_002)]


@pytest.mark.parametrize(("tiles", "steps"), long_after(1, slow_after(0, SIZES)))
def test_two_long_loops_cost_what_some_laps_do(tmp_path: Path, tiles: int, steps: int) -> None:
    """The text says how many instructions there are: 17 or 18 for each step, of each warp."""
    report = checked(tmp_path, nested_kernel(tiles, steps))
    (read, *_) = report.heading.coverage.extracted
    assert (report.verdict, read.endswith("in laps like others")) == (Verdict.PROVED, True)
    assert 34 < int(read.split()[0].replace(",", "")) / (tiles * steps) < 60
    assert any("one run represents every schedule" in line for line in check_lines(report, 80))


@pytest.mark.slow
def test_a_tile_that_is_not_as_the_others_is_read() -> None:
    """In tile 15 of 20 the second warp gives no stage back: it is not among the laps that are left out."""
    right, wrong = nested_kernel(20, 200), nested_kernel(20, 200, " setp.eq.u32 %p6, %r12, 15;\n @%p6 bra useda;\n")
    text, launch = wrong
    made = prepare(read_module(text, "nested.ptx"), launch)
    run = emulate_without_laps(made, launch, EmulationLimits())
    assert prove(program_of(right)).verdict is Verdict.PROVED
    assert any(warp.status is Status.BLOCKED for warp in run.cluster.warps)
    assert 15 * 200 * 34 < run.instructions + run.left_out < 16 * 200 * 60
    assert prove(emit(made, run).program).verdict is Verdict.UNKNOWN


@pytest.mark.long
@pytest.mark.parametrize("most", [1 << 22, 200])
def test_moments_store_what_changed(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Of two warps with 1,000 registers more, 670 moments would store 1,400,000 values: they store 133,000.

    Where too many would be stored the older half is forgotten, and the laps are found in the others.
    """
    monkeypatch.setattr("pipesim.ptx.emulate.laps.left_out._MOST_STORED", most)
    text, launch = nested_kernel(400, 20)
    more = " .reg .b32 %more<1000>;\n" + "".join(f" mov.u32 %more{each}, {each};\n" for each in range(1_000))
    begin = " mov.u32 %r0, %tid.x;\n"
    made = prepare(read_module(text.replace(begin, more + begin), "nested.ptx"), launch)
    run = emulate_without_laps(made, launch, EmulationLimits())
    watcher = run.cluster.watcher
    assert isinstance(watcher, LapsLeftOut)
    assert len(run.cluster.warps[0].R) > 1_000
    assert watcher.snapshots.stored < 140_000
    assert prove(emit(made, run).program).verdict is Verdict.PROVED


def test_what_other_ctas_leave_of_a_counter_is_run_without_laps_as_well() -> None:
    """The tiles that are left are any: how many laps a run has is that of the run in full."""
    text, launch = sized_kernel_of_tiles(" mov.u32 %r45, %r22;\n", " setp.ne.u32 %p7, %r20, %r20;", RIGHT, counter=True)
    launch = replace(launch, parameters=(Parameter("n", Number("u32", 600)),))
    made, limits = prepare(read_module(text, "tiles.ptx"), launch), EmulationLimits(20_000)
    fewer = emit(made, emulate(made, limits)).fewer_tiles
    assert [each.tiles for each in fewer] == [0, 1, 2, 3]
    for each in (replace(made, launch=fewer[n].of(launch)) for n in (1, 3)):
        run, full = emulate(each, limits), emulate(replace(each, leaves_laps_out=False), EmulationLimits(_ALL, _ALL))
        assert run.left_out > 9 * run.instructions
        assert run.instructions + run.left_out == full.instructions


def test_a_word_that_each_step_is_compared_with_is_followed_to_where_laps_are_left_out() -> None:
    """How many steps are counted is a sum of as many comparisons, all but a few of which are held."""
    text, launch = sized_kernel_of_tiles(" mov.u32 %r45, %r22;\n", " setp.eq.u32 %p7, %r45, 7;", RIGHT, counter=False)
    launch = replace(launch, parameters=(Parameter("n", Number("u32", 20_000)),))
    made = prepare(read_module(text, "tiles.ptx"), launch)
    run = emulate(made, EmulationLimits(100_000))
    assert run.left_out > 1_200_000
    assert prove(emit(made, run).program).verdict is Verdict.PROVED


_ALL = 1 << 22  #: instructions and operations


@cache
def laps() -> Program:
    return program_of(nested_kernel(64, 96))


def test_steps_may_be_counted_down() -> None:
    """They are left out until the count is too small for another lap: a register has no sign."""
    program = program_of(nested_kernel(1, 10_000, down=True))
    assert [1_600 < each.more < 1_667 for each in program.laps] == [True]
    assert prove(program).verdict is Verdict.PROVED


_OR_NONE = " add.u32 %r12, %r12, 1;\n setp.lt.u32 %p7, %r12, %r10;\n selp.u32 %r12, %r12, -1, %p7;\n"
_BY_VOTE = " setp.eq.u32 %p7, %r5, 3;\n bar.red.popc.u32 %r44, 1, 64, %p7;\n shr.u32 %r44, %r44, 1;\n"


@pytest.mark.parametrize("chosen", [_OR_NONE, f"{_BY_VOTE} add.u32 %r12, %r12, %r44;\n"], ids=["or none", "by vote"])
def test_each_lap_may_choose_the_next_tile(chosen: str) -> None:
    """It may be -1 after the last one: left out are laps that choose as this one does. All warps may vote on it."""
    text, launch = nested_kernel(2_000, 3)
    program = program_of((text.replace(" add.u32 %r12, %r12, 1;\n", chosen), launch))
    assert [470 < each.more < 500 for each in program.laps] == [True]  # of four tiles
    assert prove(program).verdict is Verdict.PROVED


@pytest.mark.slow
def test_a_program_does_the_same_as_one_with_all_laps() -> None:
    inner, outer = min(laps().laps, key=sum_of), max(laps().laps, key=sum_of)
    assert any(inner.begin[0] >= outer.begin[0] and inner.end[0] <= outer.end[0] for inner in laps().laps)
    assert sum_of(outer) > 2 * sum_of(inner)
    assert does_the_same(laps())
    assert prove(laps()).verdict is Verdict.PROVED


def sum_of(part: LeftOutLaps) -> int:
    return sum(part.end) - sum(part.begin)


def _moved(part: LeftOutLaps, by: int) -> LeftOutLaps:
    begin, end = (tuple(each + by for each in side) for side in part[:2])
    return part._replace(begin=begin, end=end)


@pytest.mark.parametrize("change", ["other place", "other lap", "one lap", "other number inside", "overlap"])
def test_what_is_no_lap_is_not_taken_for_one(change: str) -> None:
    outer = max(laps().laps, key=sum_of)
    inside = next(
        each
        for each in laps().laps
        if outer.begin[0] <= each.begin[0] and each.end[0] <= outer.end[0] and each is not outer
    )
    others = tuple(each for each in laps().laps if each is not inside)
    wrong = {
        "other place": (*others, _moved(inside, 40)),
        "other lap": (*others, inside._replace(lap=tuple(each + 1 for each in inside.lap))),
        "one lap": (*others, inside._replace(begin=tuple(e - s for e, s in zip(inside.end, inside.lap, strict=True)))),
        "other number inside": (*others, inside._replace(more=inside.more + 1)),
        "overlap": (*laps().laps, _moved(inside, inside.lap[0])),
    }[change]
    program = replace(laps(), laps=wrong)
    assert not does_the_same(program)
    assert (prove(program).verdict, prove(program).how) == (Verdict.UNKNOWN, How.CUT)
