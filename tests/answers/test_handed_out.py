"""Kernels that are handed out tiles which do not all do the same: kinds against reading each, right and wrong twins."""

import random
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import pytest

from pipesim.answers.check import check
from pipesim.answers.every_cta.launches import MOST_WALKS, walks
from pipesim.answers.every_size.claims import EverySize
from pipesim.answers.every_size.classes import AnyWord
from pipesim.answers.views.check import CheckReport
from pipesim.errors import ParameterError
from pipesim.model.finding import Verdict
from pipesim.prove.any_size.family import ProvedRange, Stop
from pipesim.prove.check import check as prove
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import Number, Parameter, Policies
from pipesim.ptx.text.read import read_module
from pipesim.report.sentences.check import check_sentence
from pipesim.targets import find
from tests.support.kernel_files import written
from tests.support.small_ptx import kernel_target
from tests.support.tile_kernels import (
    RIGHT,
    TAIL,
    WRONG,
    kernel_of_tiles,
    random_kernel_of_tiles,
    sized_kernel_of_tiles,
)
from tools.judge_ctas import by_contents


@pytest.mark.parametrize("seed", [1, 17])
def test_the_kinds_are_those_of_reading_all_choices_of_tiles(seed: int) -> None:
    """By a counter that has no tile left, and by launch control."""
    text, launch = random_kernel_of_tiles(seed)
    first = extract(read_module(text, "random.ptx"), launch)
    none = next((fewer for fewer in first.fewer_tiles if not fewer.tiles), None)
    _, cases, wrong = by_contents(first if none is None else first.with_fewer(none))
    assert (cases >= 8, wrong) == (True, []), seed


def checked(folder: Path, skip: str, count: str, *settings: str, counter: bool = False) -> CheckReport:
    text, launch = kernel_of_tiles(skip, count, counter=counter)
    return check(find(written(folder / "tiles.ptx", text, launch), sets=settings), {}, quick=True)


#: Tile 5 is a tail where it is handed out, and so is a counter's tile 14.
FIFTH = " setp.eq.u32 %p7, %r20, 5;\n setp.ne.and.u32 %p7, %r10, 0, %p7;"
LATER = " setp.eq.u32 %p7, %r20, 14;\n setp.eq.u32 %p9, %r43, 10;\n mov.u32 %r43, %r20;"
#: As ``WRONG``, but only from the fourth tile on; only where tile 14 comes after tile 10.
LATE = WRONG.replace("setp.ne.u32 %p8, %r41, 0;", "setp.ge.u32 %p8, %r10, 3;\n setp.ne.and.u32 %p8, %r41, 0, %p8;\n")
LATE = LATE.replace(
    " @!%p8", " @%p7 selp.b32 %r41, 1, %r41, %p7;\n setp.ge.u32 %p6, %r10, 3;\n @!%p6 mov.pred %p8, %p7;\n @!%p8"
)
AFTER = " and.pred %p6, %p7, %p9;\n and.pred %p6, %p6, %p1;\n not.pred %p8, %p6;\n and.pred %p8, %p7, %p8;\n @!%p8"


@pytest.mark.parametrize(
    ("skip", "count", "counter", "wrong"),
    [
        (TAIL.format(tail=3), RIGHT, False, {}),
        (TAIL.format(tail=3), WRONG, False, None),  # with the next tiles as well
        pytest.param(FIFTH, RIGHT, False, {}, marks=pytest.mark.long),
        pytest.param(FIFTH, WRONG, False, {"handed_out[0]": 5}, marks=pytest.mark.long),  # a full tile after the tail
        pytest.param(FIFTH, LATE, False, {"handed_out:2": 5}, marks=pytest.mark.long),
        (TAIL.format(tail=2), RIGHT, True, {}),
        (TAIL.format(tail=2), WRONG, True, None),
        pytest.param(LATER, RIGHT, True, {}, marks=pytest.mark.long),
        (LATER, AFTER, True, {"handed_out:1": 10, "handed_out:2": 14}),
    ],
)  # fmt: skip
def test_twins(skip: str, count: str, counter: bool, wrong: dict[str, int] | None, tmp_path: Path) -> None:
    report = checked(tmp_path, skip, count, counter=counter)
    if wrong == {}:
        most = 3 if skip is LATER else 2
        assert (report.verdict, report.scope.any_tiles) == (Verdict.PROVED, most)
        assert f"whichever tiles these are up to {most}" in check_sentence(report)
        return
    assert report.verdict is Verdict.REFUTED
    for name, value in (wrong or {}).items():
        assert f"{name} {value}" in check_sentence(report)
    for found in report.refutations:
        sets = found.command.split(" --set ")[1:]
        assert checked(tmp_path, skip, count, *sets, counter=counter).verdict is Verdict.REFUTED


@pytest.mark.parametrize("seed", range(40))
def test_each_kind_of_tile_follows_each_other_one_where_that_can_be(seed: int) -> None:
    rng = random.Random(seed)
    kinds = [rng.randrange(rng.randrange(2, 5)) for _ in range(rng.randrange(4, 16))]
    found = walks(kinds)
    pairs = {(kinds[a], kinds[b]) for each in found for a, b in pairwise(each)}
    could = {(kinds[a], kinds[b]) for a, b in product(range(len(kinds)), repeat=2) if a < b}
    assert pairs == could or len(found) == MOST_WALKS or len(set(kinds)) == 1
    assert all(list(each) == sorted(set(each)) for each in found)


def test_tiles_that_are_handed_out_are_given_in_their_order() -> None:
    text, launch = kernel_of_tiles(TAIL.format(tail=3), RIGHT, counter=False)
    given = launch.with_setting("handed_out:0", 3).with_setting("handed_out:1", 6)
    assert given.policies == Policies(tile_counter=8, handed_out=(3, 6))
    made = extract(read_module(text, "tiles.ptx"), given)
    assert (made.launch_control, made.fewer_tiles, made.inputs.arrays) == (2, (), {})
    with pytest.raises(ParameterError, match="tiles 2 to 3 that are handed out before are not given"):
        given.with_setting("handed_out:4", 7)


def test_a_number_of_tiles_that_the_launch_fixes_stays(tmp_path: Path) -> None:
    """The kernel that is wrong with a longer choice is proved for this number, and with the tiles that are given."""
    for sets in (["launch_control=2"], ["launch_control=4", "handed_out:0=2"]):
        report = checked(tmp_path, FIFTH, LATE, *sets)
        assert report.verdict is Verdict.PROVED, sets
        assert report.scope.policies == {}
    wrong = checked(tmp_path, FIFTH, LATE, "launch_control=4", "handed_out:0=3", "handed_out:1=4", "handed_out:2=5")
    assert wrong.verdict is Verdict.REFUTED


_HALF = " shr.u32 %r45, %r22, 1;\n"
_NO_TILE = " setp.ne.u32 %p7, %r20, %r20;"
_THIS_TILE = " setp.eq.u32 %p7, %r20, {tile};\n setp.eq.and.u32 %p7, %r22, 7, %p7;"


@pytest.mark.slow
@pytest.mark.parametrize("counter", [False, pytest.param(True, marks=pytest.mark.long)])
def test_every_size_with_each_number_of_tiles(counter: bool, tmp_path: Path) -> None:
    """The wrong twins fail for one tile, or at one number of tiles, at one size alone."""

    def found(skip: str, count: str) -> CheckReport:
        text, launch = sized_kernel_of_tiles(_HALF, skip, count, counter=counter)
        file = written(tmp_path / "tiles.ptx", text, launch)
        report = check(find(file), {}, quick=True)
        assert (report.verdict, report.scope.any_tiles) == (Verdict.PROVED, -1)
        return check(find(file), {}, quick=True, any_words=(AnyWord("n"),))

    right = found(_NO_TILE, RIGHT)
    assert right.verdict is Verdict.PROVED
    assert [(each.parameter, each.is_every, each.lap) for each in right.ranges] == [("n", True, 8)]
    tile = 14 if counter else 5
    one = found(_THIS_TILE.format(tile=tile), WRONG)
    assert one.verdict is Verdict.REFUTED
    assert one.refutations[0].settings["n"] == 7
    second = " setp.eq.u32 %p7, %r10, 0;\n setp.eq.and.u32 %p7, %r22, 7, %p7;"
    assert found(second, WRONG).refutations[0].settings["n"] == 7


@pytest.mark.parametrize("wrong", [False, True])
def test_a_tile_that_fails_at_one_size_alone_is_looked_for_at_each(wrong: bool, tmp_path: Path) -> None:
    """Of three steps for tile 50 the first is a tail; with n = 6, which does the same for all other tiles, none is."""
    skip = " setp.eq.u32 %p7, %r20, 50;\n setp.eq.and.u32 %p7, %r22, 7, %p7;\n setp.ne.and.u32 %p7, %r10, 0, %p7;\n"
    skip += " setp.eq.and.u32 %p7, %r45, 2, %p7;"
    text, launch = sized_kernel_of_tiles(_HALF, skip, WRONG if wrong else RIGHT, counter=False)
    file = written(tmp_path / "tiles.ptx", text, replace(launch, grid=(64, 1, 1)))
    report = check(find(file), {}, quick=True, any_words=(AnyWord("n"),))
    assert [dict(each.settings) for each in report.refutations] == (
        [{"n": 7, "cta": 0, "launch_control": 1, "handed_out:0": 50}] if wrong else []
    )
    assert report.verdict is (Verdict.REFUTED if wrong else Verdict.PROVED)


def _any_number(folder: Path, skip: str, count: str, clusters: int, *, packed: bool = False) -> CheckReport:
    """``packed``: the stage and the phase are a third of a number of 16 bits."""
    text, launch = kernel_of_tiles(skip, count, counter=False, policies=Policies())
    text = text.replace(" mov.u32 %r30, 0;", " mov.u32 %r30, 0;\n mov.u32 %r46, 0;\n mov.u32 %r47, 0;")
    if packed:
        text = text.replace(" and.b32 %r11, %r30, 1;", " div.u32 %r48, %r42, 3;\n and.b32 %r11, %r48, 1;")
        text = text.replace(" shr.u32 %r12, %r30, 1;", " shr.u32 %r12, %r48, 1;").replace(
            " mov.u32 %r30, 0;", " mov.u32 %r30, 0;\n mov.u32 %r42, 0;"
        )
        more = " add.u32 %r30, %r30, 1;\n"
        text = text.replace(more, f"{more} add.u32 %r42, %r42, 3;\n and.b32 %r42, %r42, 65535;\n")
    file = written(folder / "tiles.ptx", text, replace(launch, grid=(clusters, 1, 1)))
    return check(find(file), {}, quick=True, any_words=(AnyWord("launch_control"),))


_NUMBER = " setp.eq.u32 %p7, %r10, {};"
#: Sums, up to 6 each, of what a tile is more than the one before it: they are not the same tile.
_MORE = (
    " sub.u32 %r48, %r20, %r47;\n mov.u32 %r47, %r20;\n min.u32 %r48, %r48, 6;\n"
    " add.u32 %r46, %r46, %r48;\n setp.gt.u32 %p7, %r46, {};"
)
_SUM = " add.u32 %r46, %r46, %r20;\n setp.gt.u32 %p7, %r46, {};"  # of the tiles, which no number of laps bounds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("skip", "count", "clusters", "packed", "lap", "why"),
    [
        (_NO_TILE, RIGHT, 4096, False, 4, None),
        pytest.param(_NO_TILE, RIGHT, 6, False, 0, None, marks=pytest.mark.long),  # each number is looked at
        (_NUMBER.format(5), RIGHT, 4096, False, 4, None),
        pytest.param(_NO_TILE, RIGHT, 4096, True, 4, None, marks=pytest.mark.long),
        pytest.param(
            _NO_TILE, RIGHT, 100_000, True, 0, Stop.NOT_SHOWN, marks=pytest.mark.long
        ),  # after 21,845 it overflows
        pytest.param(" setp.eq.u32 %p7, %r20, 2000;", RIGHT, 4096, False, 0, Stop.HANDED_OUT, marks=pytest.mark.long),
        pytest.param(_SUM.format(100_000), WRONG, 4096, False, 0, Stop.HANDED_OUT, marks=pytest.mark.long),
        pytest.param(_MORE.format(300), WRONG, 4096, False, 0, Stop.HANDED_OUT, marks=pytest.mark.long),
    ],
)
def test_any_number_of_tiles(
    tmp_path: Path, skip: str, count: str, clusters: int, packed: bool, lap: int, why: Stop | None
) -> None:  # fmt: skip
    report = _any_number(tmp_path, skip, count, clusters, packed=packed)
    (found,) = report.ranges
    assert (report.verdict, found.lap, found.why, found.is_every) == (Verdict.PROVED, lap, why, why is None)
    assert report.undecided == (why is not None)
    if why is None:
        said = f"for every launch_control from 0 to {clusters - 1:,}, whichever tiles these are"
        assert said in check_sentence(report)


#: Up to 5 for each tile that is not the next one: beyond 40 it is a tail, and beyond 45 none any more.
_JUMPS = (
    " sub.u32 %r48, %r20, %r47;\n mov.u32 %r47, %r20;\n sub.u32 %r48, %r48, 1;\n min.u32 %r48, %r48, 5;\n"
    " add.u32 %r46, %r46, %r48;\n setp.gt.u32 %p7, %r46, 40;\n setp.le.and.u32 %p7, %r46, 45, %p7;"
)


def test_nothing_is_said_of_other_tiles_than_were_looked_at(tmp_path: Path) -> None:
    """With 9 tiles of which each is 6 more than the one before it fails, with 8 of these not, and never with the next.

    A launch that fixes their number does not say that fewer were looked at.
    """
    report = _any_number(tmp_path, _JUMPS, WRONG, 64)
    assert (report.verdict, report.undecided) == (Verdict.PROVED, True)
    assert "for launch_control from 0 to 7, no further value;" in check_sentence(report)
    tiles = {number: [f"handed_out:{n}={6 * n + 6}" for n in range(number)] for number in (8, 9)}
    file = str(tmp_path / "tiles.ptx")
    for number, verdict in ((8, Verdict.PROVED), (9, Verdict.REFUTED)):
        assert check(find(file, sets=[f"launch_control={number}", *tiles[number]]), {}, quick=True).verdict is verdict
    assert "whichever" not in check_sentence(check(find(file, sets=["launch_control=9"]), {}, quick=True))


@pytest.mark.parametrize("tiles", [5, pytest.param(100, marks=pytest.mark.long)])
def test_what_fails_after_some_tiles_alone_is_refuted(tmp_path: Path, tiles: int) -> None:
    report = _any_number(tmp_path, _NUMBER.format(tiles), WRONG, 4096)
    assert report.verdict is Verdict.REFUTED
    assert report.refutations[0].settings["launch_control"] == tiles + 1


@pytest.mark.long
def test_a_tile_far_on_is_found(tmp_path: Path) -> None:
    """The counter gives tile 300, which is a tail, and tile 302 after it, from 303 on alone."""
    text, launch = kernel_of_tiles(" setp.eq.u32 %p7, %r20, 300;", WRONG, counter=True)
    found = check(find(written(tmp_path / "tiles.ptx", text, launch)), {}, quick=True, any_words=(AnyWord("n"),))
    assert [dict(each.settings) for each in found.refutations] == [{"n": 303, "tile_counter": 20, "cta": 0}]


def _of_a_counter(folder: Path, skip: str, count: str, end: int, most: int = 0) -> ProvedRange | dict[str, int]:
    """What is proved of each number of a counter's tiles, or where it fails. ``most``: a stage's number wraps there."""
    text, launch = kernel_of_tiles(skip, count, counter=True)
    text = text.replace(" mov.u32 %r30, 0;", " mov.u32 %r30, 0;\n mov.u32 %r46, 0;\n mov.u32 %r47, 0;")
    if most:
        more = " add.u32 %r30, %r30, 1;\n"
        text = text.replace(more, f"{more} setp.gt.u32 %p8, %r30, {most};\n @%p8 mov.u32 %r30, 1;\n")
    file = written(folder / "tiles.ptx", text, replace(launch, parameters=(Parameter("n", Number("u32", end)),)))
    every = EverySize(find(file), [AnyWord("tile_counter")])
    for program, settings in every:
        if prove(program).verdict is not Verdict.PROVED:
            return dict(settings)
    (found,) = every.ranges
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("skip", "count", "end", "wraps", "lap", "why"),
    [
        (_NO_TILE, RIGHT, 400, 0, 4, None),
        (_NO_TILE, RIGHT, 24, 0, 0, None),  # each number is looked at
        pytest.param(_NUMBER.format(5), RIGHT, 400, 0, 4, None, marks=pytest.mark.long),
        pytest.param(_NUMBER.format(150), RIGHT, 400, 0, 0, Stop.NOT_SHOWN, marks=pytest.mark.long),
        pytest.param(_NO_TILE, RIGHT, 400, 150, 0, Stop.NOT_SHOWN, marks=pytest.mark.long),
        (" setp.eq.u32 %p7, %r20, 300;", RIGHT, 400, 0, 0, Stop.HANDED_OUT),
        pytest.param(_SUM.format(20_000), RIGHT, 400, 0, 0, Stop.HANDED_OUT, marks=pytest.mark.long),
        pytest.param(_MORE.format(500), WRONG, 400, 0, 0, Stop.NOT_SHOWN, marks=pytest.mark.long),
    ],
)
def test_any_number_of_tiles_of_a_counter(
    tmp_path: Path, skip: str, count: str, end: int, wraps: int, lap: int, why: Stop | None
) -> None:  # fmt: skip
    found = _of_a_counter(tmp_path, skip, count, end, wraps)
    assert isinstance(found, ProvedRange)
    assert (found.lap, found.why, found.most) == (lap, why, end // 2 - 4)


@pytest.mark.long
def test_a_check_says_by_itself_what_is_shown_of_each_number_of_tiles(tmp_path: Path) -> None:
    text, launch = kernel_of_tiles(_NO_TILE, RIGHT, counter=True)
    file = tmp_path / "tiles.ptx"
    file.write_text(text)
    said = []
    for end in (3000, 60):
        file.with_suffix(".json").write_text(
            launch_json(replace(launch, parameters=(Parameter("n", Number("u32", end)),)))
        )
        said.append(check_sentence(check(find(str(file)), {}, quick=True)))
    assert "for every number of the counter's tiles from 0 to 1,496, whichever tiles these are" in said[0]
    assert "with tile_counter 8, 52, 54, 56, 58 and 60, whichever tiles these are" in said[1]


def test_a_kernel_without_a_counter_has_no_number_of_its_tiles(tmp_path: Path) -> None:
    text, launch = kernel_of_tiles(_NO_TILE, RIGHT, counter=False)
    file = written(tmp_path / "tiles.ptx", text, launch)
    with pytest.raises(ParameterError, match="takes no tiles of one counter"):
        EverySize(find(file), [AnyWord("tile_counter")])


#: Each CTA writes the bytes of its tile, and asks for one of a CTA that has not begun.
PERSISTENT = """ .reg .b128 %q1; ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r3, bars; mov.u32 %r4, tile;
 setp.ne.u32 %p0, %r0, 0; @!%p0 mbarrier.init.shared::cta.b64 [%r3], 1; bar.sync 0;
 mov.u32 %r10, %ctaid.x; mov.u32 %r12, 0;
again: @!%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;
 @!%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r4], [%r3];
 mad.lo.u32 %r11, TILE, 32, %r0; mad.wide.u32 %rd2, %r11, 4, %rd1; st.global.u32 [%rd2], %r0;
wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], %r12; @!%p2 bra wait;
 ld.shared.b128 %q1, [%r4]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1;
 @%p3 clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r10, %q1;
 fence.proxy.async.shared::cta; bar.warp.sync -1; xor.b32 %r12, %r12, 1; @%p3 bra again;
"""


@pytest.mark.parametrize(("ctas", "tile", "right"), [(2, "%r10", True), (3, "%r10", True), (2, "0", False)])
def test_a_cta_whose_tile_is_handed_out_does_not_run(ctas: int, tile: str, right: bool) -> None:
    """Where one is handed out those of all others, no two CTAs write anything."""
    found = check(kernel_target(PERSISTENT.replace("TILE", tile), 1, ctas), {}, quick=True)
    assert found.verdict is (Verdict.PROVED if right else Verdict.REFUTED)
