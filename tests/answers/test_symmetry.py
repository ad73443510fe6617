"""Waits for words of global memory in a grid whose CTAs do the same: they end, and none before all have come so far."""

from __future__ import annotations

from random import Random

import pytest

from pipesim.answers.check import check
from pipesim.answers.every_cta.symmetry import all_meet
from pipesim.model.coverage import Assumption
from pipesim.model.finding import Verdict
from tests.answers.test_together import kernel, target

ADD = "red.release.gpu.global.add.u32 [%rd1], {0};"
WAIT = "spin{0}: ld.acquire.gpu.global.u32 %r8, [%rd1]; setp.{1}.u32 %p2, %r8, %r7; @%p2 bra spin{0};"
#: One thread of each CTA counts, and waits until all of the grid have.
MEET = ADD.format(1) + " mov.u32 %r7, %nctaid.x; COUNT " + WAIT.format(0, "lt")
#: The same twice, with a counter that goes on.
LAPS = MEET + ADD.format(1) + " add.u32 %r7, %r7, %r7;" + WAIT.format(1, "lt")

SEEN = MEET.replace("COUNT", "") + " add.u32 %r9, %r7, 4;"  #: more than N + 4 is seen in grids of 6 CTAs and more


def meets(body: str, grid: int = 40) -> bool:
    made = kernel(body, grid).kernel
    assert made is not None
    return all_meet(made)


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
    assert meets(body) is right


def test_a_count_that_is_right_for_the_ctas_that_are_followed_is_not_claimed_for_more() -> None:
    """The verdict of the wrong twin holds for 2, 3 and 4 CTAs, and says what it assumes of 40."""
    said = {}
    for name, count in (("right", ""), ("wrong", "min.u32 %r7, %r7, 4;")):
        found = check(kernel(MEET.replace("COUNT", count), 40), {}, quick=True)
        assert (found.verdict, found.scope.together) == (Verdict.PROVED, (2, 3, 4))
        said[name] = [each.what for each in found.scope.assuming if each.kind is Assumption.GLOBAL_LOOPS]
        assert found.scope.meet is (name == "right")
    assert said == {"right": [], "wrong": ["40 CTAs wait for each other, and order what they access, as 4 do"]}


def test_what_such_ctas_access_is_still_assumed() -> None:
    found = check(target("counter_barrier_0"), {}, quick=True)
    assert found.scope.meet
    said = [each.what for each in found.scope.assuming if each.kind is Assumption.GLOBAL_LOOPS]
    assert said == ["132 CTAs order what they access as 4 do"]


Steps = list[tuple[str, int]]  #: "add", or how a value is compared with which a wait does not end


def is_right(steps: Steps, ctas: int) -> bool:
    """Whether no schedule of CTAs that take these steps stops before its end, or leads past a wait too early."""
    mine = [0]
    for what, number in steps:
        mine.append(mine[-1] + (number if what == "add" else 0))
    open_, seen = [(0,) * ctas], {(0,) * ctas}
    while open_:
        state = open_.pop()
        value, moved = sum(mine[at] for at in state), False
        for cta, at in enumerate(state):
            what, number = steps[at] if at < len(steps) else ("end", 0)
            if what == "end" or (what == "lt" and value < number) or (what == "ne" and value != number):
                continue
            if what != "add" and any(mine[other] < mine[at] for other in state):
                return False
            moved = True
            after = (*state[:cta], at + 1, *state[cta + 1 :])
            if after not in seen:
                seen.add(after)
                open_.append(after)
        if not moved and any(at < len(steps) for at in state):
            return False
    return True


def random_steps(random: Random, ctas: int) -> Steps:
    """Additions, and waits for what is mostly right."""
    steps: Steps = [("add", random.randrange(1, 4))]
    for _ in range(random.randrange(1, 5)):
        if random.random() < 0.4:
            steps.append(("add", random.randrange(1, 4)))
        else:
            so_far = ctas * sum(number for what, number in steps if what == "add")
            steps.append((random.choice(("lt", "lt", "ne")), max(so_far + random.choice((0, 0, 0, 0, -1, 1, -2)), 0)))
    return steps


@pytest.mark.sampled(4, 5)
@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_claimed_that_a_schedule_contradicts(seed: int) -> None:
    random, claimed, wrong = Random(seed), 0, 0
    for _ in range(25):
        ctas = random.randrange(2, 5)
        steps = random_steps(random, ctas)
        made = [
            ADD.format(number) if what == "add" else f"mov.u32 %r7, {number}; {WAIT.format(n, what)}"
            for n, (what, number) in enumerate(steps)
        ]
        right = is_right(steps, ctas)
        wrong += not right
        if meets(" ".join(made), ctas):
            claimed += 1
            assert right, (steps, ctas)
    assert claimed
    assert wrong
