"""Masks of lanes: what votes, elections and barriers of some lanes of a warp give, and masks that PTX forbids."""

from random import Random

import pytest

from pipesim.model.finding import Verdict
from pipesim.prove.check import check
from pipesim.ptx.emulate.lanes.collectives import WarpLanes
from pipesim.ptx.emulate.values import FULL, PerLane, Value, of_lane
from tests.support.small_ptx import SET_UP, program_of

#: %r5: of each lane the lanes of its half; lanes of warp 0 arrive, warp 1 waits for {count} arrivals.
START = SET_UP.format(first="{count}", count=1) + """ setp.ne.u32 %p1, %r1, 0;
 @%p1 bra waits;
 and.b32 %r4, %r2, 16;
 shl.b32 %r5, 0xffff, %r4;
 and.b32 %r6, %r2, 15;
 setp.ne.u32 %p2, %r6, 0;
 setp.eq.u32 %p3, %r2, 3;
"""  # fmt: skip
END = """ bra.uni end;
waits:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;
 @!%p9 bra waits;
end:
"""
COUNT = " popc.b32 %r8, %r7;\n @!%p2 mbarrier.arrive.shared::cta.b64 _, [%r3], %r8;\n"
ONE = " @%p4 mbarrier.arrive.shared::cta.b64 _, [%r3];\n"


@pytest.mark.parametrize(
    ("body", "right"),
    [
        (" vote.sync.ballot.b32 %r7, %p1, %r5;\n not.b32 %r7, %r7;\n and.b32 %r7, %r7, %r5;\n" + COUNT, 32),
        (" match.any.sync.b32 %r7, 5, %r5;\n" + COUNT, 32),
        (" mov.u32 %r9, 1;\n redux.sync.add.s32 %r7, %r9, %r5;\n sub.u32 %r7, %r7, 1;\n" + COUNT, 8),
        (" elect.sync _|%p4, %r5;\n" + ONE, 2),
        (" vote.sync.any.pred %p4, %p3, %r5;\n" + ONE, 16),
        (" vote.sync.all.pred %p4, !%p3, %r5;\n" + ONE, 16),
    ],
)
def test_each_lane_exchanges_with_those_that_its_mask_names(body: str, right: int) -> None:
    """As tiles of 16 threads are: PTX ISA, "vote.sync", "match.sync", "redux.sync", "elect.sync"."""
    for count in {8, 16, 32, 64, 1, 2, right}:
        program = program_of(START.format(count=count) + body + END)
        expected = Verdict.PROVED if count == right else Verdict.REFUTED
        assert check(program).verdict is expected, count


SOME = " setp.lt.u32 %p5, %r2, 16;\n @!%p5 bra others;\n{0} bra.uni others;\nothers:\n bar.warp.sync -1;\n"
ALL = " mbarrier.arrive.shared::cta.b64 _, [%r3];\n"


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (" bar.warp.sync %r5;\n", Verdict.PROVED),
        (" bar.warp.sync 0xffff;\n", Verdict.UNKNOWN),
        (" bar.warp.sync 0;\n", Verdict.UNKNOWN),
        (" @%p5 mov.u32 %r5, -1;\n bar.warp.sync %r5;\n", Verdict.UNKNOWN),
        (" elect.sync _|%p4, 0xffff;\n @%p4 st.shared.u32 [tile], 1;\n", Verdict.UNKNOWN),
        (SOME.format(" bar.warp.sync 0xffff;\n"), Verdict.PROVED),
        (SOME.format(" bar.warp.sync 0xff;\n"), Verdict.UNKNOWN),
        (SOME.format(" bar.warp.sync -1;\n"), Verdict.UNKNOWN),
    ],
)
def test_a_lane_is_one_of_those_that_its_mask_names(body: str, verdict: Verdict) -> None:
    """PTX ISA, "bar.warp.sync": it is undefined if the executing thread is not; lanes of one mask meet, wherever."""
    half = " setp.lt.u32 %p5, %r2, 16;\n"
    assert check(program_of(START.format(count=32) + half + body + ALL + END)).verdict is verdict


@pytest.mark.parametrize("seed", range(40))
def test_of_random_masks_every_lane_gets_what_ptx_says(seed: int) -> None:
    rng, lanes = Random(seed), WarpLanes()
    lanes.mask = lanes.lanes = lanes.all_lanes = FULL
    group = [rng.randrange(rng.randint(1, 5)) for _ in range(32)]
    named = [sum(1 << n for n in range(32) if group[n] == mine) for mine in group]
    masks = PerLane(named)
    value = [rng.randrange(3) for _ in range(32)]
    some, twos = PerLane([int(each > 0) for each in value]), PerLane([int(each > 1) for each in value])
    first = PerLane([(n & -n).bit_length() - 1 for n in named])
    found: dict[str, Value] = {
        "ballot": lanes.among(masks, lanes.vote_ballot, some),
        "any": lanes.among(masks, lanes.vote_any, twos),
        "all": lanes.among(masks, lanes.vote_all, some),
        "uni": lanes.among(masks, lanes.vote_uni, some),
        "match": lanes.among(masks, lanes.match_any, PerLane(value)),
        "add": lanes.among(masks, lanes.reduce, PerLane(value), "add", 0),
        "elect": lanes.among(masks, lanes.elect_lane),
        "shuffle": lanes.among(masks, lanes.shuffle, PerLane(value), first, 31, "idx"),
    }
    for lane in range(32):
        mine = [n for n in range(32) if named[lane] >> n & 1]
        assert {name: int(of_lane(each, lane)) for name, each in found.items()} == {
            "ballot": sum(1 << n for n in mine if value[n]),
            "any": int(any(value[n] > 1 for n in mine)),
            "all": int(all(value[n] for n in mine)),
            "uni": int(len({value[n] > 0 for n in mine}) == 1),
            "match": sum(1 << n for n in mine if value[n] == value[lane]),
            "add": sum(value[n] for n in mine),
            "elect": int(lane == mine[0]),
            "shuffle": value[mine[0]],
        }
