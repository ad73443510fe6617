"""The values of a word of a kernel's parameters: classes against reading every value, and verdicts about all."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from pipesim.answers.check import check
from pipesim.answers.every_cta.conditions import covered
from pipesim.answers.every_size.classes import AnyWord, SizeClasses
from pipesim.answers.views.check import CheckReport
from pipesim.answers.views.conclusion import Conclusion
from pipesim.errors import ParameterError
from pipesim.model.coverage import NotJudged, NotJudgedKind
from pipesim.model.finding import Verdict
from pipesim.prove.any_size.family import Stop
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.free.varying import FreeInputs
from pipesim.ptx.launch.image import PARAMETERS, Image
from pipesim.ptx.launch.settings import with_free_word
from pipesim.ptx.launch.values import Array, Field, FreeRange, Launch, Number, Parameter, Pointer, Struct
from pipesim.ptx.text.declarations import Param
from pipesim.ptx.text.read import read_module
from pipesim.report.pages.checks.check import check_lines
from pipesim.report.sentences.check import ctas_words, sizes_words
from pipesim.targets import Target, find
from tests.support.kernel_files import written
from tests.support.random_cta_kernels import ring_of_cta
from tests.support.small_ptx import text_of

#: A stage for every four of n, and for what is left.
TILES = " add.u32 %r30, %r22, 3;\n shr.u32 %r30, %r30, 2;\n"


def ring(folder: Path, more: str = "", each: str = "", ctas: int = 4, word: str = "n", **chosen: object) -> Target:
    """A ring that loads and takes as many tiles as n has, or what ``more`` makes of it; ``each``: in each iteration."""
    text, launch = ring_of_cta(
        TILES + more, (ctas, 1, 1), n=5, **{"trips": 30, "other": 30, "most": 0x7FFFFFFF, **chosen}
    )
    text = text.replace("loop:\n", f"loop:\n{each}", 1)
    n, table = launch.parameters
    launch = replace(launch, parameters=(n._replace(name=word), table))
    return find(written(folder / "ring.ptx", text, launch))


def checked(target: Target, *words: str) -> CheckReport:
    return check(target, {}, any_words=tuple(map(AnyWord.read, words)), quick=True)


@pytest.mark.slow
def test_a_ring_is_proved_for_every_size(tmp_path: Path) -> None:
    """The lap of two stages is four tiles, which are 16 of n."""
    report = checked(ring(tmp_path), "n")
    (found,) = report.ranges
    assert (report.verdict, found.step, found.lap, found.most) == (Verdict.PROVED, 1, 16, (1 << 29) - 1)
    assert sizes_words(report.ranges) == "for every n from 1 to 536,870,911"


@pytest.mark.slow
def test_a_word_of_the_launch_file_needs_no_value(tmp_path: Path) -> None:
    """With a tile more than is loaded the least value is said, which the file does not give."""
    for more, least in (("", {}), (" add.u32 %r31, %r30, 1;\n", {"n": 6})):
        ring(tmp_path, more, other=31 if more else 30)
        file = tmp_path / "ring.json"
        file.write_text(file.read_text().replace('"value": 5', '"value": null'))
        report = checked(find(str(tmp_path / "ring.ptx")), "n=6..")
        assert dict(report.refutations[0].settings if report.refutations else {}) == least
    assert report.verdict is Verdict.REFUTED


@pytest.mark.slow
@pytest.mark.parametrize("word", ["quotient", "zero"])
def test_a_word_may_be_called_what_an_operation_is(tmp_path: Path, word: str) -> None:
    report = checked(ring(tmp_path, word=word), word)
    assert sizes_words(report.ranges) == f"for every {word} from 1 to 536,870,911"


@pytest.mark.parametrize("then", ["@%p4 add.u32 %r30, %r30, 1;", "@!%p4 bra usual;\n bar.sync 1;\nusual:"])
def test_what_one_size_alone_does_ends_no_further_class(tmp_path: Path, then: str) -> None:
    """Where n is 12 there is a tile or a barrier more; from 13 on n is never 12 again, and each CTA has its 3 tiles."""
    more = f" mov.u32 %r30, 3;\n setp.eq.u32 %p4, %r22, 12;\n {then}\n"
    (found,) = checked(ring(tmp_path, more), "n").ranges
    assert (sizes_words([found]), found.lap) == ("for every n from 1 to 536,870,911", 0)


@pytest.mark.parametrize("tiles", [0, 1])
def test_a_window_is_the_same_from_its_end_on(tmp_path: Path, tiles: int) -> None:
    """The last 7 of the first 12 tiles, a sum of what rises and falls; the twin takes one more where n is 60,000."""
    window = " min.s32 %r30, %r22, 12;\n sub.s32 %r31, %r30, 7;\n max.s32 %r31, %r31, 0;\n sub.s32 %r30, %r30, %r31;\n"
    more = f" setp.eq.u32 %p4, %r22, 60000;\n selp.u32 %r31, {tiles}, 0, %p4;\n add.u32 %r31, %r31, %r30;\n"
    report = checked(ring(tmp_path, window + more, other=31, trips=30), "n=1..100000")
    if tiles:
        assert report.refutations[0].settings["n"] == 60_000
    else:
        assert sizes_words(report.ranges) == "for every n from 1 to 100,000"


@pytest.mark.parametrize("twin", [False, True])
def test_a_sum_that_also_falls_is_the_same_where_its_bounds_are_beyond_what_decides(
    tmp_path: Path, *, twin: bool
) -> None:
    """``min(n / 128 + (n % 128 != 0), 3)``, which the twin is not where ``n / 128 + n % 128`` is 2,000,000."""
    more = (
        " shr.u32 %r33, %r22, 7;\n and.b32 %r32, %r22, 127;\n setp.ne.u32 %p4, %r32, 0;\n selp.u32 %r31, 1, 0, %p4;\n"
    )
    more += " add.u32 %r30, %r33, %r31;\n min.u32 %r30, %r30, 3;\n mov.u32 %r31, %r30;\n"
    more += (
        " add.u32 %r32, %r32, %r33;\n setp.eq.u32 %p4, %r32, 2000000;\n @%p4 add.u32 %r31, %r31, 1;\n" if twin else ""
    )
    report = checked(ring(tmp_path, more, other=31), "n")
    claimed = sizes_words(report.ranges) == "for every n from 1 to 536,870,911"
    assert claimed is not twin


@pytest.mark.slow
@pytest.mark.parametrize("twin", [False, True])
def test_two_classes_may_do_the_same(tmp_path: Path, *, twin: bool) -> None:
    """A tile for what is left: 4 and 1 to 3 are of two classes, with one tile each."""
    more = " shr.u32 %r30, %r22, 2;\n and.b32 %r45, %r22, 3;\n setp.eq.u32 %p4, %r45, 0;\n @%p4 bra whole;\n"
    more += " add.u32 %r30, %r30, 1;\nwhole:\n mov.u32 %r31, %r30;\n"
    more += " setp.eq.u32 %p4, %r22, 47;\n @%p4 add.u32 %r31, %r31, 1;\n" if twin else ""
    report = checked(ring(tmp_path, more, other=31), "n")
    assert report.verdict is (Verdict.REFUTED if twin else Verdict.PROVED)
    assert twin or report.ranges[0].is_every


def test_two_programs_may_take_turns(tmp_path: Path) -> None:
    """Of each eight values one has no tile."""
    report = checked(ring(tmp_path, " and.b32 %r30, %r22, 7;\n min.u32 %r30, %r30, 1;\n"), "n")
    assert sizes_words(report.ranges) == "for every n from 1 to 536,870,911"


def test_what_fails_at_another_size_is_said_with_the_size(tmp_path: Path) -> None:
    """The CTAs are of two kinds where n is 5, and right; one waits for a tile more than are loaded where n is above 6.

    With the finding waived it is not known what is wrong at further sizes.
    """
    wrong = " add.u32 %r30, %r22, %r20;\n shr.u32 %r30, %r30, 2;\n setp.gt.u32 %p4, %r22, 6;\n"
    wrong += " selp.u32 %r31, 1, 0, %p4;\n add.u32 %r31, %r31, %r30;"
    report = checked(ring(tmp_path, wrong, other=31), "n")
    assert (report.verdict, report.kinds, report.undecided) == (Verdict.REFUTED, (), True)
    assert report.refutations[0].settings["n"] == 7
    assert "  with n 7" in check_lines(report, 80)


@pytest.mark.slow
def test_a_count_in_global_memory_is_not_shown_to_repeat(tmp_path: Path) -> None:
    """What a lap leaves there is another word each time; of the count in a register it is shown."""
    count = "ld.global.u32 %r54, [%rd1+64]", "add.u32 %r59, %r54, 1", "st.global.u32 [%rd1+64], %r59"
    report = checked(ring(tmp_path, each="".join(f" @!%p1 {each};\n" for each in count), ctas=1), "n")
    assert [(each.is_every, each.why) for each in report.ranges] == [(False, Stop.NOT_SHOWN)]
    assert (report.verdict, report.conclusion) == (Verdict.PROVED, Conclusion.UNKNOWN)


@pytest.mark.parametrize(("lap", "shown"), [(8, False), (16, True), (24, False), (48, True)])
def test_the_code_shows_whole_laps(tmp_path: Path, lap: int, shown: bool) -> None:
    """A lap of the word may be several of the loop, whose phases are those of before after 16.

    What the loop has left is far more than both laps that show it: the rest is not looked at as another loop.
    """
    classes = SizeClasses.of(ring(tmp_path), AnyWord("n"))
    assert classes.repeats(classes.at(513), lap, classes.free.high) is shown


@pytest.mark.parametrize(("tile", "n", "shown"), [(10, 66, False), (10, 82, False), (10, 114, False), (-1, 82, True)])
def test_what_fewer_laps_do_than_are_seen_is_not_taken_for_granted(
    tmp_path: Path, *, tile: int, n: int, shown: bool
) -> None:
    """The run has 98 of n, two laps more than 66. A tile is skipped there, at a lap more or less, or nowhere."""
    each = f" setp.eq.u32 %p6, %r54, {tile % (1 << 32)};\n setp.eq.u32 %p7, %r22, {n};\n"
    each += " and.pred %p6, %p6, %p7;\n @%p6 bra done;\n"
    classes = SizeClasses.of(ring(tmp_path, each=each), AnyWord("n"))
    assert classes.repeats(classes.at(66), 16, classes.free.high) is shown


@pytest.mark.parametrize(("count", "lap"), [(2, 8), (3, 16), pytest.param(7, 16, marks=pytest.mark.long)])
def test_a_loop_that_each_of_some_rows_goes_through_is_shown_in_each(tmp_path: Path, count: int, lap: int) -> None:
    """No warp waits where a row ends: the cluster is where it was in the row before."""
    rows = " mov.u32 %r47, 0;\n mov.u32 %r46, %r53;\nloop:\n"
    again = "done:\n add.u32 %r47, %r47, 1;\n add.u32 %r53, %r53, %r46;\n"
    again += f" setp.lt.u32 %p7, %r47, {count};\n @%p7 bra loop;\n"
    ring(tmp_path)
    file = tmp_path / "ring.ptx"
    file.write_text(file.read_text().replace("loop:\n", rows, 1).replace("done:\n", again, 1))
    (found,) = checked(find(str(file)), "n").ranges
    assert (found.is_every, found.lap) == (True, lap)


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
def test_a_value_of_the_lap_before_may_differ_if_no_lap_reads_it(tmp_path: Path, *, late: bool) -> None:
    """A rest of the tile's number, never 100. The twin asks for that of the tile before: one in many is the last."""
    rest, ask = " rem.u32 %r48, %r54, {};\n", " setp.eq.u32 %p6, %r48, {};\n @%p6 bra done;\n"
    each = ask.format(59_999) + rest.format(60_000) if late else rest.format(6) + ask.format(100)
    (found,) = checked(ring(tmp_path, " mov.u32 %r48, 0;\n", each=each), "n").ranges
    assert (found.is_every, found.why) == ((False, Stop.NOT_SHOWN) if late else (True, None))


@pytest.mark.parametrize(("last", "shown"), [(0x7FFFFFFF, True), pytest.param(5_999, False, marks=pytest.mark.long)])
def test_a_tile_that_is_handed_on_through_shared_memory(tmp_path: Path, *, last: int, shown: bool) -> None:
    """Warp 0 writes its number, another one in each lap, and warp 1 reads it; the twin leaves at one of many, and a
    size at which it does is found.
    """
    ring(tmp_path)
    file, at = tmp_path / "ring.ptx", "shl.b32 %r47, %r55, 2;\n add.u32 %r47, %r47, %r4;\n"
    put = f" {at} @!%p0 st.shared.u32 [%r47+2112], %r54;\n @!%p0 mbarrier.arrive"
    got = f" @!%p4 bra take;\n {at} ld.shared.u32 %r48, [%r47+2112];\n setp.eq.u32 %p6, %r48, {last};\n"
    text = file.read_text().replace(" @!%p0 mbarrier.arrive", put, 1)
    file.write_text(text.replace(" @!%p4 bra take;\n", f"{got} @%p6 bra done;\n", 1))
    report = checked(find(str(file)), "n")
    assert [each.is_every for each in report.ranges] == [True] * shown
    assert report.verdict is (Verdict.PROVED if shown else Verdict.REFUTED)
    assert shown or 4 * last < report.refutations[0].settings["n"] < 4 * last + 200


_FROM_512 = " setp.gt.u32 %p4, %r22, 512;\n and.b32 %r45, %r22, 7;\n setp.eq.u32 %p5, %r45, 5;\n"
_BROKEN_LATE = {
    "a size": (f"{_FROM_512} and.pred %p4, %p4, %p5;\n", 517),
    "a byte count": (" shl.b32 %r45, %r22, 8;\n shr.u32 %r45, %r45, 8;\n setp.ne.u32 %p4, %r45, %r22;\n", 1 << 24),
}


@pytest.mark.parametrize("what", ["a size", pytest.param("a byte count", marks=pytest.mark.long)])
def test_what_fails_far_beyond_the_sizes_that_were_looked_at_is_found(tmp_path: Path, what: str) -> None:
    """One tile more than is loaded is waited for from a size on, or where a register of 32 bits overflows."""
    more, first = _BROKEN_LATE[what]
    more += " selp.u32 %r31, 1, 0, %p4;\n add.u32 %r31, %r31, %r30;\n"
    report = checked(ring(tmp_path, more, other=31, ctas=1), "n")
    assert (report.verdict, dict(report.refutations[0].settings)) == (Verdict.REFUTED, {"n": first, "cta": 0})


@pytest.mark.slow
def test_what_a_tile_in_millions_does_is_not_claimed(tmp_path: Path) -> None:
    """A product stands for the division by 4, of which no rest is 4; its twin leaves the loop at one tile of many."""
    stage = " mul.wide.u32 %rd4, %r54, 2147483649;\n shr.u64 %rd4, %rd4, 33;\n cvt.u32.u64 %r48, %rd4;\n"
    stage += " shl.b32 %r48, %r48, 2;\n sub.u32 %r48, %r54, %r48;\n"
    leaves = " setp.eq.u32 %p6, {}, {};\n @%p6 bra done;\n"
    (shown,) = checked(ring(tmp_path, each=stage + leaves.format("%r48", 4)), "n").ranges
    assert (shown.is_every, shown.lap) == (True, 16)
    each = " and.b32 %r48, %r54, 65535;\n" + leaves.format("%r48", 60_000)
    (found,) = checked(ring(tmp_path, each=each), "n").ranges
    assert (found.is_every, found.last, found.why) == (False, 1 << 16, Stop.NOT_SHOWN)


@pytest.mark.slow
def test_a_counter_that_overflows_bounds_the_claim(tmp_path: Path) -> None:
    """64 times the tiles are less than 2^32 up to n = 2^28 alone, which is shown up to 2^24; up to 4,096 of n it is."""
    each = " shl.b32 %r48, %r54, 6;\n shr.u32 %r48, %r48, 6;\n setp.ne.u32 %p6, %r48, %r54;\n @%p6 bra done;\n"
    (found,) = checked(ring(tmp_path, each=each), "n").ranges
    assert (found.is_every, found.last, found.why) == (False, 1 << 24, Stop.NOT_SHOWN)
    running = " add.u32 %r48, %r48, 1048576;\n mad.lo.u32 %r47, %r54, 1048576, 1048576;\n sub.u32 %r47, %r47, %r48;\n"
    running += " setp.ne.u32 %p6, %r47, 0;\n @%p6 bra done;\n"  # of two that overflow alike the difference is shown
    assert checked(ring(tmp_path, " mov.u32 %r48, 0;\n", running), "n").ranges[0].is_every
    report = checked(ring(tmp_path, each=each), "n=1..4096")
    assert ([each.is_every for each in report.ranges], report.conclusion) == ([True], Conclusion.AGREES)


@pytest.mark.slow
def test_of_many_classes_the_last_ones_are_checked_as_well(tmp_path: Path) -> None:
    more = " setp.eq.u32 %p4, %r22, 72;\n selp.u32 %r31, 1, 0, %p4;\n add.u32 %r31, %r31, %r30;"
    wrong = checked(ring(tmp_path, more, other=31), "n=4..80:4")
    assert (wrong.verdict, "--set n=72" in wrong.refutations[0].command) == (Verdict.REFUTED, True)
    (found,) = checked(ring(tmp_path), "n=4..80:4").ranges
    assert (found.is_every, found.checked) == (True, 76)


def test_values_are_of_one_class_only_if_they_align_copies_alike() -> None:
    inputs, launch = FreeInputs(), Launch("kernel", (1, 1, 1), (32, 1, 1))
    function = read_module(text_of("", ".param .u32 n"), "n.ptx").entries[0]
    free = Parameter("n", Number("u32", 40, FreeRange(0, 4096, 4, "n")))
    image = Image(replace(launch, parameters=(free,)), function)
    assert image.remainder(inputs, 0, 4) == (16, 8)
    values = np.arange(0, 20, dtype=np.int64)  # of 4 each
    assert values[covered(inputs, {"n": values})].tolist() == [2, 6, 10, 14, 18]


@pytest.mark.parametrize(("nbytes", "last"), [(16, 4), (8, 1)])
def test_what_no_copy_aligns_differently_is_one_class(tmp_path: Path, nbytes: int, last: int) -> None:
    """A copy, which no CTA executes, from n times some bytes on."""
    copy = f" mul.wide.u32 %rd5, %r22, {nbytes};\n add.u64 %rd5, %rd5, %rd1;\n setp.gt.u32 %p9, %r20, 9;\n @%p9 "
    copy += "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd5], 128, [%r3];\n"
    assert SizeClasses.of(ring(tmp_path, copy), AnyWord("n")).at(1).last == last


#: CTA 0 sets a flag where n is at most 100, and CTA 1 waits for it.
UP_TO_100 = """ ld.param.u64 %rd1, [flag];
 ld.param.u32 %r22, [n];
 mov.u32 %r20, %ctaid.x;
 setp.ne.u32 %p1, %r20, 0;
 @%p1 bra wait;
 setp.gt.u32 %p2, %r22, 100;
 @%p2 bra done;
 mov.u32 %r23, 1;
 st.release.gpu.global.u32 [%rd1], %r23;
 bra done;
wait:
 ld.acquire.gpu.global.u32 %r24, [%rd1];
 setp.eq.u32 %p3, %r24, 0;
 @%p3 bra wait;
done:
"""


def test_what_ctas_tell_each_other_is_not_claimed_of_other_values(tmp_path: Path) -> None:
    words = Parameter("flag", Pointer()), Parameter("n", Number("u32", 8))
    launch = Launch("kernel", (2, 1, 1), (1, 1, 1), parameters=words)
    file = written(tmp_path / "talk.ptx", text_of(UP_TO_100, ".param .u64 flag, .param .u32 n"), launch)
    found = checked(find(file), "n")
    assert (found.verdict, found.ranges, found.conclusion) == (Verdict.PROVED, (), Conclusion.UNKNOWN)
    assert NotJudged(NotJudgedKind.OTHER_SIZES, 0) in found.scope.not_judged
    other = check(find(file).with_setting("n", 101), {}, quick=True)  # nothing in the grid writes the word
    assert NotJudgedKind.WORDS in {each.kind for each in other.scope.not_judged}


_TRIPS_OF_TWO = {
    "neither decides": " mov.u32 %r30, 2;\n",
    "order": " setp.gt.u32 %p4, %r25, %r22;\n selp.u32 %r30, 3, 2, %p4;\n",
    "one decides": " setp.gt.u32 %p4, %r25, 9;\n mov.u32 %r30, %r22;\n @%p4 add.u32 %r30, %r30, 1;\n",
    "both": " add.u32 %r30, %r22, %r25;\n",
}


@pytest.mark.parametrize(
    ("kind", "twin"),
    [
        ("order", False),
        ("neither decides", True),
        ("one decides", False),
        *(pytest.param(kind, True, marks=pytest.mark.slow) for kind in ("order", "one decides")),
        *(pytest.param("both", twin, marks=pytest.mark.long) for twin in (False, True)),
    ],
)
def test_every_combination_of_two_words_is_proved(tmp_path: Path, kind: str, *, twin: bool) -> None:
    """The twin hangs where n is 77 and s 23,456, which no value of one of them shows while the other is as it was."""
    made = f" ld.param.u32 %r25, [s];\n{_TRIPS_OF_TWO[kind]} mov.u32 %r31, %r30;\n"
    if twin:
        made += " setp.eq.u32 %p4, %r22, 77;\n setp.eq.and.u32 %p4, %r25, 23456, %p4;\n @%p4 add.u32 %r31, %r31, 1;\n"
    text, launch = ring_of_cta(made, (2, 1, 1), n=5, trips=30, other=31, most=0x7FFFFFFF)
    n, table = launch.parameters
    launch = replace(launch, parameters=(n._replace(name="n"), Parameter("s", Number("u32", 6)), table))
    file = written(tmp_path / "ring.ptx", text.replace(".param .u32 n,", ".param .u32 n, .param .u32 s,"), launch)
    report = checked(find(file), "n", "s")
    every = report.together.every if report.together is not None else ()
    assert [(each.parameter, each.last) for each in every] == [("n", 536_870_911), ("s", 536_870_911)] * (not twin)
    assert report.verdict is (Verdict.REFUTED if kind == "neither decides" else Verdict.PROVED)
    if report.verdict is Verdict.REFUTED:
        assert report.refutations[0].settings == {"n": 77, "s": 23_456, "cta": 0}


@pytest.mark.slow
def test_each_number_of_tiles_is_looked_at_where_launch_control_hands_them_out() -> None:
    """Their number is part of the verdict, and which they are decides nothing; where it does, no size is claimed."""
    (found,) = checked(find("tests/ptx/kernels/gemm_clc-sm_100a.ptx"), "k=64..192:64").ranges
    assert (found.is_every, found.checked) == (True, 192)


@pytest.mark.slow
def test_a_run_beyond_the_limit_is_proved_without_most_laps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its twin waits for one tile more than are loaded wherever n is above 16."""
    monkeypatch.setattr("pipesim.ptx.emulation.EmulationLimits", partial(EmulationLimits, instructions=3_000))
    report = check(ring(tmp_path).with_setting("n", 100_000), {})
    assert (report.verdict, ctas_words(report.scope)) == (Verdict.PROVED, "every CTA")
    assert (report.ranges, report.nearby, report.heading.coverage.stopped) == ((), (), ())
    open_ = {each.kind for each in report.scope.not_judged}  # it was not read at this size
    assert (report.scope.on_global, NotJudgedKind.GLOBAL_LOADS in open_) == ((), True)
    more = " setp.gt.u32 %p4, %r22, 16;\n selp.u32 %r31, 1, 0, %p4;\n add.u32 %r31, %r31, %r30;"
    wrong = ring(tmp_path, more, other=31)
    for least in (False, True):  # where it hangs at the end of the run without laps, and where that is not asked
        report = check(wrong.with_setting("n", 100_000), {}, quick=True)
        assert (report.verdict, "--set n=17" in report.refutations[0].command) == (Verdict.REFUTED, least)
        monkeypatch.setattr("pipesim.answers.checking.verdict._hangs_after_laps", lambda *_: None)


#: A loop of arithmetic for each two of n, before any warp waits; three times as often in the sum.
_COUNTS = """ mov.u32 %r31, 0;
 mov.u32 %r32, 0;
sum:
 setp.ge.u32 %p4, %r31, %r22;
 @%p4 bra summed;
 add.u32 %r32, %r32, 3;
 add.u32 %r31, %r31, 2;
 bra sum;
summed:
 min.u32 %r30, %r32, 2;
"""


@pytest.mark.parametrize("trips", [30, 31])
def test_a_loop_of_arithmetic_is_shown_for_every_size(tmp_path: Path, trips: int) -> None:
    """What it leaves decides how often the ring is filled: twice, or as often as n says."""
    (found,) = checked(ring(tmp_path, _COUNTS, trips=trips, other=trips), "n").ranges
    assert (found.is_every, found.lap > 0) == (True, True)
    late = " setp.gt.u32 %p4, %r32, 1000;\n selp.u32 %r33, 1, 0, %p4;\n add.u32 %r33, %r33, %r30;\n"
    wrong = checked(ring(tmp_path, _COUNTS + late, other=33), "n")
    assert wrong.refutations[0].settings["n"] == 667  # of 334 laps


def test_sizes_that_are_few_are_looked_at_each(tmp_path: Path) -> None:
    report = checked(ring(tmp_path), "n=4..40:4")
    (found,) = report.ranges
    assert (report.verdict, found.lap, found.checked, found.is_every) == (Verdict.PROVED, 0, 40, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "value", "cta"),
    [
        pytest.param(" setp.gt.u32 %p4, %r22, 16;\n selp.b32 %r31, 0, %r30, %p4;", 17, 0, id="above 16"),
        pytest.param(
            " setp.eq.u32 %p4, %r22, 7;\n setp.eq.u32 %p5, %r20, 2;\n and.pred %p4, %p4, %p5;\n"
            " selp.u32 %r31, 1, 0, %p4;\n add.u32 %r31, %r31, %r30;",
            7, 2, id="of 7 in CTA 2",
        ),
    ],
)  # fmt: skip
def test_a_ring_that_hangs_at_some_size_is_refuted_there(tmp_path: Path, wrong: str, value: int, cta: int) -> None:
    """It is right as it was launched, in every CTA."""
    target = ring(tmp_path, wrong, other=31)
    assert checked(target).verdict is Verdict.PROVED
    report = checked(target, "n")
    assert report.verdict is Verdict.REFUTED
    assert f"--set n={value} --set cta={cta}" in report.refutations[0].command


def test_a_word_of_an_array_may_have_any_value(tmp_path: Path) -> None:
    """As the launches have it that are recorded: words of one parameter after the other."""
    target = ring(tmp_path, " setp.gt.u32 %p4, %r22, 16;\n selp.b32 %r31, 0, %r30, %p4;", other=31)
    file = tmp_path / "ring.ptx"
    data = json.loads(file.with_suffix(".json").read_text())
    data["parameters"][0] = {"name": "n", "kind": "array", "type": "u32", "values": [5]}
    file.with_suffix(".json").write_text(json.dumps(data))
    report = checked(find(str(file)), "n")
    assert (report.verdict, report.refutations[0].settings["n"]) == (Verdict.REFUTED, 17)
    assert target.kernel is not None
    array = Parameter("", Struct(12, (Field(0, Array("u32", (1, 2, 3))),)))
    launch = replace(target.kernel.kernel.launch, parameters=(array,))
    function = replace(target.kernel.kernel.entry, params=(Param("all", "b8", 12, 4, 0),))
    free, values = with_free_word(launch, function, "4", 1, None, 1)
    image = Image(free, function)
    assert (list(image.free_words), values.high) == ([PARAMETERS + 4], (1 << 29) - 1)
    assert [image.parameter(at, 4) for at in (0, 4, 8)] == [1, 2, 3]


def test_classes_are_those_of_reading_every_value(tmp_path: Path) -> None:
    target = ring(tmp_path, " and.b32 %r31, %r22, 2;\n add.u32 %r30, %r30, %r31;")
    every = AnyWord("n", 1, 20)
    classes = SizeClasses.of(target, every)
    found = [classes[n] for n in range(20)]
    ends = [each.last for each in found if each is not None]
    programs = [target.with_setting("n", value).program for value in range(1, 21)]
    codes = [None if program is None else program.code for program in programs]
    assert ends == [value for value in range(1, 21) if value == 20 or codes[value - 1] != codes[value]]


@pytest.mark.parametrize("text", ["", "n=", "n=5..4", "n=1..9:0", "n=x..", "no such", "table"])
def test_what_is_no_word_or_no_range_is_said(tmp_path: Path, text: str) -> None:
    with pytest.raises(ParameterError, match="--any"):
        checked(ring(tmp_path), text)
