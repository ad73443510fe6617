"""Fences that some lanes of a warp execute: what they order for the others, on mbarriers and on words of global memory.

PTX ISA, "Release and acquire patterns": a fence is one of its own thread. Between the proxies it has to come before the
copy, also if another lane issues that.
"""

from pathlib import Path

import pytest

from pipesim.answers.check import check as check_target
from pipesim.model.coverage import Assumption, Strictness
from pipesim.model.finding import Verdict
from pipesim.prove.check import check
from pipesim.ptx.launch.values import Launch, Parameter, Pointer
from pipesim.targets import find
from tests.support.kernel_files import written
from tests.support.random_programs.lane_fences import (
    ALL,
    ARRIVE,
    FENCE,
    FIRST,
    IN_LANE_0,
    LANES_0_AND_1,
    MEET,
    OTHERS,
    READ,
    RELAXED,
    SECOND,
    TO_ACQUIRE,
    TO_RELEASE,
    WAIT,
    handed,
    random_fences,
)
from tests.support.small_ptx import text_of

STRICT = Strictness({Assumption.LANES})
PROXY = "fence.proxy.async;\n"
STORE = """ @!%p5 bra done;
 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 128;
 cp.async.bulk.commit_group;
 cp.async.bulk.wait_group 0;
"""
PROVED, UNKNOWN = (Verdict.PROVED, Verdict.PROVED), (Verdict.UNKNOWN, Verdict.UNKNOWN)
BY_LANES = (Verdict.PROVED, Verdict.REFUTED)  #: strictly


def verdicts(signal: str, wait: str, read: str) -> tuple[Verdict, Verdict]:
    """The verdict, and that without the assumption that lanes are together."""
    program = handed(signal, wait, read)
    return check(program).verdict, check(program.with_strictness(STRICT)).verdict


@pytest.mark.parametrize(
    ("signal", "expected"),
    [
        (MEET + FIRST + FENCE + FIRST + RELAXED, PROVED),
        (MEET + ALL + FENCE + FIRST + RELAXED, PROVED),
        (MEET + ALL + TO_RELEASE + FIRST + RELAXED, PROVED),
        (MEET + ALL + TO_ACQUIRE + FIRST + RELAXED, UNKNOWN),
        (MEET + ALL + FENCE + TO_ACQUIRE + FIRST + RELAXED, PROVED),
        (MEET + SECOND + FENCE + FIRST + RELAXED, UNKNOWN),
        (MEET + SECOND + FENCE + MEET + FIRST + RELAXED, UNKNOWN),
        (MEET + OTHERS + FENCE + FIRST + RELAXED, UNKNOWN),
        (MEET + SECOND + FENCE + FIRST + FENCE + FIRST + RELAXED, PROVED),
        (MEET + FIRST + FENCE + SECOND + FENCE + FIRST + RELAXED, PROVED),
        (ALL + FENCE + MEET + FIRST + RELAXED, BY_LANES),  # the first lane's fence may come before the others' stores
        (MEET + SECOND + FENCE + FIRST + ARRIVE, PROVED),  # it is not needed
    ],
)
def test_a_fence_makes_a_release_of_what_its_own_lane_signals(signal: str, expected: tuple[Verdict, Verdict]) -> None:
    assert verdicts(signal, WAIT.format(order=""), READ) == expected


@pytest.mark.parametrize(
    ("wait", "expected"),
    [
        (WAIT + ALL + FENCE, PROVED),
        (WAIT + ALL + TO_ACQUIRE, PROVED),
        (WAIT + ALL + TO_RELEASE, UNKNOWN),
        (WAIT + FIRST + FENCE + MEET, PROVED),
        (WAIT + FIRST + FENCE, BY_LANES),
        (IN_LANE_0 + MEET + SECOND + FENCE + MEET, UNKNOWN),
        (IN_LANE_0 + MEET + ALL + FENCE, BY_LANES),
        (IN_LANE_0 + MEET + ALL + FENCE + MEET, PROVED),
    ],
)
def test_a_fence_makes_an_acquire_of_what_its_own_lane_has_waited_for(
    wait: str, expected: tuple[Verdict, Verdict]
) -> None:
    assert verdicts(MEET + FIRST + ARRIVE, wait.format(order=".relaxed.cta"), READ) == expected


@pytest.mark.parametrize(
    ("signal", "wait", "expected"),
    [
        (MEET + SECOND + PROXY + MEET + FIRST + ARRIVE, "", PROVED),
        (MEET + SECOND + PROXY + FIRST + ARRIVE, "", BY_LANES),
        (MEET + SECOND + PROXY + ALL + PROXY + FIRST + ARRIVE, "", PROVED),
        (MEET + FIRST + ARRIVE, SECOND + PROXY, BY_LANES),
        (MEET + FIRST + ARRIVE, SECOND + PROXY + MEET, PROVED),
        (MEET + FIRST + ARRIVE, FIRST + PROXY, PROVED),
    ],
)
def test_a_fence_between_the_proxies_comes_before_the_copy_of_another_lane(
    signal: str, wait: str, expected: tuple[Verdict, Verdict]
) -> None:
    assert verdicts(signal, WAIT.format(order="") + MEET + wait, STORE) == expected


#: Two CTAs store a word each, meet at a counter and read the other's; the first lane counts.
COUNTED = (
    LANES_0_AND_1
    + """ ld.param.u64 %rd1, [flags];
 ld.param.u64 %rd2, [x];
 mov.u32 %r4, %ctaid.x;
 mul.wide.u32 %rd3, %r4, 4;
 add.u64 %rd3, %rd2, %rd3;
 xor.b32 %r5, %r4, 1;
 mul.wide.u32 %rd4, %r5, 4;
 add.u64 %rd4, %rd2, %rd4;
 @%p5 st.global.u32 [%rd3], %r4;
 bar.warp.sync -1;
{before} @!%p5 bra meet;
 red.relaxed.gpu.global.add.u32 [%rd1], 1;
again:
 ld.relaxed.gpu.global.u32 %r6, [%rd1];
 setp.lt.u32 %p7, %r6, 2;
 @%p7 bra again;
meet:
 bar.warp.sync -1;
{after} bar.warp.sync -1;
 @%p5 ld.global.u32 %r7, [%rd4];
 red.relaxed.gpu.global.add.u32 [%rd2+64], 1;
"""
)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (FIRST + FENCE, FIRST + FENCE, Verdict.PROVED),
        (SECOND + FENCE, FIRST + FENCE, Verdict.UNKNOWN),
        (FIRST + FENCE, SECOND + FENCE, Verdict.UNKNOWN),
        (ALL + FENCE, ALL + FENCE, Verdict.PROVED),
    ],
)
def test_so_it_is_with_words_of_global_memory(tmp_path: Path, before: str, after: str, expected: Verdict) -> None:
    """What all lanes add at last no CTA asks for, so that no fence has to make it a release."""
    text = text_of(
        " mov.u32 %r2, %tid.x;\n" + COUNTED.format(before=before, after=after), ".param .u64 flags, .param .u64 x"
    )
    pointers = tuple(Parameter(name, Pointer()) for name in ("flags", "x"))
    kernel = written(tmp_path / "counted.ptx", text, Launch("kernel", (2, 1, 1), (32, 1, 1), parameters=pointers))
    assert check_target(find(kernel), {}, quick=True).verdict is expected


@pytest.mark.sampled(30, 40)
@pytest.mark.parametrize("seed", range(60))
def test_random_fences_are_judged_as_the_knowledge_of_each_lane_has_it(seed: int) -> None:
    program, right = random_fences(seed)
    assert right or check(program.with_strictness(STRICT)).verdict is not Verdict.PROVED
    assert not right or check(program).verdict is not Verdict.REFUTED
