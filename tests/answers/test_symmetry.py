"""Waits for words of global memory in a grid whose CTAs do the same: they end, and none before all have come so far."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from pipesim.answers.check import check
from pipesim.answers.every_cta.symmetry import all_meet, most_that_meet
from pipesim.errors import LaunchFileError
from pipesim.model.coverage import Assumption
from pipesim.model.finding import Verdict
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.file import launch_json, read_launch
from pipesim.ptx.text.read import read_module
from pipesim.targets import Target
from tests.answers.test_together import kernel, target
from tests.support.random_meetings import ADD, HEAD, MEETING, WAIT, judged_meeting

#: One thread of each CTA counts, and waits until all of the grid have.
MEET = ADD.format(1) + " mov.u32 %r7, %nctaid.x; COUNT " + WAIT.format(0, "lt")
#: The same twice, with a counter that goes on.
LAPS = MEET + ADD.format(1) + " add.u32 %r7, %r7, %r7;" + WAIT.format(1, "lt")

LAUNCH = {"format": "pipesim-launch", "version": 1, "entry": "meet", "grid": [40], "block": [1]}
SEEN = MEET.replace("COUNT", "") + " add.u32 %r9, %r7, 4;"  #: more than N + 4 is seen in grids of 6 CTAs and more


@pytest.mark.parametrize(
    ("body", "right"),
    [
        (MEET.replace("COUNT", ""), True),
        (LAPS.replace("COUNT", ""), True),
        (MEET.replace("COUNT", "").replace("], 1;", "], 3;").replace("spin0:", "mul.lo.u32 %r7, %r7, 3; spin0:"), True),
        (MEET.replace("COUNT", "").replace(".lt.", ".ne."), True),
        (LAPS.replace("COUNT", "").replace(".lt.", ".ne."), False),  # who comes late finds the count of the next lap
        (MEET.replace("COUNT", "mov.u32 %r7, 4;"), False),  # a count that is right for 4 CTAs alone
        (MEET.replace("COUNT", "min.u32 %r7, %r7, 4;"), False),  # and one that is right for 2, 3 and 4
        (MEET.replace("COUNT", "sub.u32 %r7, %r7, 1;"), False),
        (MEET.replace("COUNT", "add.u32 %r7, %r7, 1;"), False),
        ("setp.eq.u32 %p3, %r1, 17; @%p3 ret;" + MEET.replace("COUNT", ""), False),  # one CTA never comes
        ("mov.u32 %r9, 1; setp.eq.u32 %p3, %r1, 17; @%p3 mov.u32 %r9, 2;"
         + MEET.replace("COUNT", "").replace("], 1;", "], %r9;"), False),
        (SEEN + "setp.gt.u32 %p3, %r8, %r9; @!%p3 red.release.gpu.global.add.u32 [%rd1], 1;", False),  # what was seen
        (SEEN + "setp.gt.u32 %p3, %r8, %r9; @%p3 trap;", False),
        (SEEN + "mov.u32 %r8, 0; setp.gt.u32 %p3, %r8, %r9; @%p3 trap;", True),  # and what was not
        ("setp.eq.u32 %p3, %r1, 17; @%p3 st.relaxed.gpu.global.u32 [%rd1], 0;" + MEET.replace("COUNT", ""), False),
    ],
)  # fmt: skip
def test_all_ctas_of_a_grid_meet_where_each_does_the_same(body: str, *, right: bool) -> None:
    made = kernel(body, 40).kernel
    assert made is not None
    assert all_meet(made) is right
    assert bool(most_that_meet(made)) is right


def test_a_count_that_is_that_of_one_grid_is_not_claimed_for_others() -> None:
    made = kernel(MEET.replace("COUNT", "mov.u32 %r7, 40;")).kernel
    assert made is not None
    assert all_meet(replace(made, kernel=replace(made.kernel, launch=replace(made.kernel.launch, grid=(40, 1, 1)))))
    assert not most_that_meet(made)


def test_a_count_that_is_right_for_the_ctas_that_are_followed_is_not_claimed_for_more() -> None:
    """The verdict of the wrong twin holds for 2, 3 and 4 CTAs, and says what it assumes of 40."""
    said = {}
    for name, count in (("right", ""), ("wrong", "min.u32 %r7, %r7, 4;")):
        found = check(kernel(MEET.replace("COUNT", count), 300), {}, quick=True)
        assert (found.verdict, found.scope.together) == (Verdict.PROVED, (2, 3, 4))
        said[name] = [each.what for each in found.scope.assuming if each.kind is Assumption.GLOBAL_LOOPS]
        assert found.scope.meet is (name == "right")
    assert said == {"right": [], "wrong": ["300 CTAs wait for each other, and order what they access, as 4 do"]}


def test_what_such_ctas_access_is_still_assumed() -> None:
    found = check(target("counter_barrier_0", 300), {}, quick=True)
    assert found.scope.meet
    said = [each.what for each in found.scope.assuming if each.kind is Assumption.GLOBAL_LOOPS]
    assert said == ["300 CTAs order what they access as 4 do"]


@pytest.mark.slow
def test_a_count_that_the_launch_file_says_is_the_grid_s() -> None:
    """In 2, 3 and 4 CTAs it is that of them; half of it, or more than it, is not."""
    wait = "ld.param.{0} %r7, [count{1}]; " + WAIT.format(0, "lt")
    for how, at, of_grid, right in (("u32", "", True, True), ("u32", "", False, False), ("u16", "", True, False)):
        text = HEAD.replace("words)", "words, .param .u32 count)") + ADD.format(1) + wait.format(how, at) + "ret; }\n"
        given = {"name": "count", "kind": "value", "type": "u32", "value": 40} | (
            {"equals": "gridDim.x"} if of_grid else {}
        )
        launch = read_launch(json.dumps(LAUNCH | {"parameters": [{"name": "words", "kind": "pointer"}, given]}), "x")
        assert read_launch(launch_json(launch), "x") == launch
        made = extract(read_module(text, "k.ptx"), launch)
        assert bool(most_that_meet(made)) is right
        found = check(Target("meet", None, made.program, {}, "", kernel=made), {}, quick=True)
        assert (found.scope.any_ctas, found.scope.together[-1]) == (65_536 if right else 0, 40)
    with pytest.raises(LaunchFileError, match=r"not that of gridDim\.x"):
        read_launch(json.dumps(LAUNCH | {"parameters": [given | {"value": 41}]}), "x")


@pytest.mark.sampled(2, 3)
@pytest.mark.parametrize("first", range(0, 200, 25))
def test_nothing_is_claimed_that_a_schedule_contradicts(first: int) -> None:
    found = Counter(map(judged_meeting, range(first, first + 25)))
    assert found.keys() <= set(MEETING)
    assert found["claimed"]
    assert found["wrong"]
