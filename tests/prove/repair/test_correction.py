"""Likely corrections: what is offered for every wrong twin, that it does repair it, and that nothing else is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.finding import Verdict
from pipesim.model.ops import Op
from pipesim.protocols.broken import BROKEN
from pipesim.protocols.broken.hopper import MISTAKES
from pipesim.protocols.broken.ring import right_ring
from pipesim.prove.check import check
from pipesim.prove.repair import correction
from pipesim.prove.repair.applicable import repairs
from pipesim.prove.repair.correction import Correction, corrections
from pipesim.prove.repair.edits import place_of, repaired
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.prove.search.breadth_first import explore
from tests.support.lanes import slow_but
from tests.support.more_mistakes import MORE
from tests.support.offered import offered_for, offered_for_slip, without_places

K = RepairKind
FULL, EMPTY = "full", "empty"
SLOW = {"wgmma_ring.no_store_wait"}  #: of a kind that others get as well
#: Tried, and never the likeliest for a mistake here.
NOWHERE_OFFERED = {RepairKind.ONLY_ARRIVES, RepairKind.ONCE}
#: Kinds that only mistakes in these kernels get.
OF_BLIND = [
    ("attention", "v_tma_on_k"), ("attention", "released_crosswise"), ("warp_group_ring", "all_issue"),
    ("partial_sums", "back_local"), ("collective_mma", "no_step"),
]  # fmt: skip
#: What is offered for a twin: for each of its findings that has one, the same; lines in brackets are left out.
OFFERED = {
    "full_count_too_high": ["initialise full with a count of 1 instead of 2"],
    "empty_count_too_high": ["initialise empty with a count of 1 instead of 2"],
    "two_producers_one_counted": ["initialise full with a count of 2 instead of 1"],
    "two_consumers_one_counted": ["initialise empty with a count of 2 instead of 1"],
    "second_consumer_silent": ["every warp of consumer arrives on empty, initialised with a count of 2 instead of 1"],
    "consumer_arrives_twice": ["consumer omits its second arrive on empty"],
    "consumer_never_arrives": ["consumer arrives on empty whenever it has finished with a stage"],
    "consumer_arrives_every_second": ["consumer arrives on empty for every stage: also after the read of tile"],
    "every_lane_arrives": ["consumer: put the arrive on empty inside elect_one(): all 32 lanes execute it"],
    "consumer_drops": ["consumer arrives on empty without dropping out of it"],
    "producer_starts_at_zero": [
        "producer waits for empty with parity 1 in the first lap, alternating in each later lap"
    ],
    "consumer_starts_at_one": ["consumer waits for full with parity 0 in the first lap, alternating in each later lap"],
    "producer_never_toggles": [
        "producer waits for empty with parity 1 in the first lap, alternating in each later lap"
    ],
    "consumer_never_toggles": ["consumer waits for full with parity 0 in the first lap, alternating in each later lap"],
    "phase_toggles_a_stage_early": [
        "consumer waits for full with parity 0 in the first lap, alternating in each later lap"
    ],
    "counters_restart_with_every_tile": [
        "every role flips the parity of its waits exactly once in each lap of the stages"
    ],
    "producer_does_not_wait": ["producer waits for empty, with parity 1 in the first lap, before it uses a stage"],
    "consumer_does_not_wait": ["consumer waits for full, with parity 0 in the first lap, before it uses a stage"],
    "waits_for_the_stage_before": ["consumer waits for full stage by stage, with parity 0 in the first lap"],
    "waits_for_the_older_of_two": ["consumer waits for late, with parity 0 in the first lap, before it uses a stage"],
    "try_ignored": ["consumer waits for full, with parity 0 in the first lap, before it uses a stage"],
    "try_before_the_step": ["consumer waits for full stage by stage, with parity 0 in the first lap"],
    "holds_one_ring_for_the_other": ["consumer executes the wait for b_full only after the arrive on empty"],
    "expects_too_few": ["producer expects 64 bytes on full instead of 48: as many as are copied"],
    "expects_half": ["producer expects 64 bytes on full instead of 32: as many as are copied"],
    "expects_too_many": ["producer expects 64 bytes on full instead of 68: as many as are copied"],
    "expects_nothing": ["producer expects 64 bytes on full instead of 0: as many as are copied"],
    "two_copies_one_expected": ["producer expects 64 bytes on full instead of 32: as many as are copied"],
    "expects_without_arrival": ["producer arrives on full as well when it expects bytes: arrive.expect_tx"],
    "expects_after_arrival": ["producer executes the arrive on full only after the expect on full"],
    "init_not_published": [
        "after the inits come fence.mbarrier_init and a barrier of all threads of the CTA or cluster"
    ],
    "one_stage_forgotten": ["initialise all barriers: the program never initialises some stages"],
    "consumer_reads_the_next_slot": ["consumer: the read of tile is for the slot 1 further: that of its own stage"],
    "count_of_zero": ["initialise empty with a count of 1 instead of 0"],
    "initialised_by_both": ["consumer omits its inits: another role makes them"],
    "used_after_inval": ["consumer executes the inval on full only after the wait for full"],
    "consumer_arrives_before_reading": ["consumer arrives on empty only after its reads and writes of the stage"],
    "producer_arrives_before_writing": ["producer arrives on full only after its reads and writes of the stage"],
    "sync_counts_a_third_warp": ["64 threads at named barrier 1 instead of 96"],
    "sync_counts_one_warp": ["64 threads at named barrier 1 instead of 32"],
    "warps_disagree_about_threads": ["64 threads at named barrier 1 instead of 96"],
    "threads_no_multiple_of_32": ["64 threads at named barrier 1 instead of 48"],
    "writer_is_a_lap_ahead": ["writer waits at named barrier 1 as well: bar_sync instead of bar_arrive"],
    "one_number_for_two_pairs": [
        "give each group of warps that meets at named barrier 1 a number of its own, from 2 on"
    ],
    "sync_inside_a_condition": ["writer executes the bar_sync once more at its end, as many times as its partners"],
    "peer_not_waited_for": ["every warp of consumer arrives on empty, initialised with a count of 2 instead of 1"],
    "multicast_misses_a_cta": ["loader multicasts on full to the CTAs of mask 0b11 instead of 0b1"],
    "peer_arrives_uncounted": ["initialise empty with a count of 2 instead of 1"],
    "peer_counted_and_silent": ["every warp of consumer executes the arrive on empty, not only some of them"],
    "exit_under_a_remote_arrive": ["every warp of the cluster meets the others (cluster_sync) before it exits"],
    "remote_arrive_before_init": [
        "after the inits come fence.mbarrier_init and a barrier of all threads of the CTA or cluster"
    ],
    "cluster_arrive_twice": ["peer omits the sync of the cluster"],
    "cluster_sync_by_one_cta": ["every warp of peer executes the sync of the cluster, not only some of them"],
    "released_before_the_mma_is_done": ["mma commits to empty instead of the arrive: when its MMAs have ended"],
    "commit_missing": ["mma commits to empty whenever it has finished with a stage"],
    "commit_before_the_mma": ["mma arrives on empty only after its reads and writes of the stage"],
    "wgmma_wait_too_deep": ["mma leaves none of its groups pending when it waits for them, instead of 1"],
    "wgmma_released_before_its_wait": ["mma arrives on empty only after it has waited for its wgmmas"],
    "accumulator_read_early": ["mma commits to full instead of the arrive: when its MMAs have ended"],
    "store_not_waited_for": ["epilogue waits for its bulk stores before the write to out"],
    "store_wait_too_deep": ["epilogue leaves none of its groups pending when it waits for them, instead of 1"],
    "store_not_committed": [
        "epilogue executes cp.async.bulk.commit_group after its bulk stores, before it waits for them"
    ],
    "cp_async_not_waited_for": [
        "producer arrives on full by cp.async.mbarrier.arrive.noinc: when its copies have ended"
    ],
    "cp_async_arrive_counts_itself": [
        "producer arrives on full by cp.async with .noinc, so that its arrivals are counted"
    ],
}


@pytest.mark.parametrize("name", slow_but([*BROKEN][::3], [name for name in BROKEN if name != "producer_runs_on"]))
def test_what_is_offered_for_a_twin_does_mend_it(name: str) -> None:
    """The search of all schedules, not the proof that the offer rests on, says that the twin is right then."""
    program, offered = offered_for(name)
    assert list(dict.fromkeys(without_places(each.said) for each in offered)) == OFFERED.get(name, [])
    for each in offered:
        right = repaired(program, each.repair)
        assert right is not None
        seen = explore(right, 20_000)
        assert seen.refutations == ()
        assert seen.verdict is not Verdict.REFUTED
        assert seen.complete or sum(map(len, program.code)) > 60, "the small ones are followed to their ends"


@pytest.mark.slow
def test_every_kind_of_correction_is_offered_for_some_mistake() -> None:
    names = [name for name in (*OFFERED, *MISTAKES, *MORE) if name not in SLOW]
    found = {each.repair.kind for name in names for each in offered_for(name)[1]}
    for name, slip in OF_BLIND:
        found |= {each.repair.kind for each in offered_for_slip(name, slip)[1]}
    assert set(RepairKind) - found == NOWHERE_OFFERED


def test_nothing_is_offered_that_mends_the_small_program_only() -> None:
    """A ring of nine tiles whose consumer is one arrival short is not mended by what mends one of three tiles."""
    small = BROKEN["empty_count_too_high"](stages=2, tiles=3).flatten()
    (found,) = check(small).refutations
    assert [each.repair.kind for each in corrections(small, found, small)] == [K.COUNT]
    still_wrong = BROKEN["consumer_never_arrives"](stages=2, tiles=9).flatten()
    assert corrections(small, found, still_wrong) == ()


def test_nothing_is_tried_beyond_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    program = BROKEN["empty_count_too_high"]().flatten()
    (found,) = check(program).refutations
    assert corrections(program, found, program)
    monkeypatch.setattr(correction, "MOST_TRIED", 0)
    assert corrections(program, found, program) == ()
    monkeypatch.undo()
    monkeypatch.setattr(correction, "MOST_ASKED", 5)
    assert corrections(program, found, program) == ()


def test_a_correction_in_words_with_its_line() -> None:
    program = BROKEN["expects_half"]().flatten()
    found, *_ = check(program).refutations
    (offered,) = corrections(program, found, program)
    assert offered == Correction(
        Repair(K.EXPECT, "producer", FULL, 64, 32),
        "producer expects 64 bytes on full instead of 32: as many as are copied",
        offered.line,
    )
    assert "nbytes.py:" in offered.line


def test_what_is_left_out_at_the_end_has_its_own_line() -> None:
    protocol = Protocol("last")
    bars = protocol.mbarriers("bar", 1, 1)

    @protocol.role("only")
    def only(w: Warp) -> None:
        bars[0].arrive()

    program = protocol.flatten()
    place = place_of(program, Repair(K.DROP, "only", "bar"))
    assert place == program.line(0, len(program.code[0]) - 1)
    assert "test_correction.py:" in place


def test_a_right_ring_could_be_changed_in_many_ways_and_stays_a_program() -> None:
    """Every correction on the list of a right ring makes a program or nothing, and most make it wrong."""
    program = right_ring().flatten()
    ranked = list(repairs(program, frozenset({EMPTY})))
    tried = [repair for _, repair in ranked]
    assert len(tried) == len(set(tried)) > 20
    ranks = [rank for rank, _ in ranked]
    assert ranks == sorted(ranks), "the likeliest come first"
    assert ranked[0][1].group == EMPTY, "and of those the ones about the group"
    verdicts = [check(right, 500).verdict for repair in tried if (right := repaired(program, repair)) is not None]
    assert verdicts.count(Verdict.REFUTED) > 5


def test_what_a_change_does_to_the_operations() -> None:
    program = right_ring(stages=1, tiles=2).flatten()
    producer = [op for op in program.code[0] if op[0] in (Op.WAIT, Op.ARRIVE)]
    assert [op[:4] for op in producer] == [(8, 1, 1, 0), (3, 0, 1, 64), (8, 1, 0, 0), (3, 0, 1, 64)]
    consumer = [op for op in program.code[1] if op[0] in (Op.WAIT, Op.READ, Op.ARRIVE)]
    assert [op[0] for op in consumer] == [Op.WAIT, Op.READ, Op.ARRIVE] * 2

    def ops(repair: Repair, agent: int) -> list[tuple[int, ...]]:
        after = repaired(program, repair)
        assert after is not None
        return [op for op in after.code[agent] if op[0] in (Op.WAIT, Op.READ, Op.ARRIVE)]

    assert [op[2] for op in ops(Repair(K.PHASES, "producer", EMPTY, 0), 0) if op[0] == Op.WAIT] == [0, 1]
    assert [op[0] for op in ops(Repair(K.DROP, "consumer", EMPTY, 0), 1)] == [Op.WAIT, Op.READ] * 2
    assert [op[3] for op in ops(Repair(K.EXPECT, "producer", FULL, 32), 0) if op[0] == Op.ARRIVE] == [32, 32]
    assert repaired(program, Repair(K.PHASES, "producer", EMPTY, 1)) is None, "it is so already"
    assert repaired(program, Repair(K.DROP, "consumer", EMPTY, 1)) is None, "nothing is repeated"
    assert repaired(program, Repair(K.ARRIVE, "consumer", EMPTY)) is None, "it arrives already"
    assert repaired(program, Repair(K.LATER, "consumer", EMPTY)) is None, "it is behind the read"
    silent = replace(program, code=(program.code[0], tuple(op for op in program.code[1] if op[0] != Op.ARRIVE)),
                     lines=(program.lines[0], tuple(
                         at for op, at in zip(program.code[1], program.lines[1], strict=True) if op[0] != Op.ARRIVE
                     )))  # fmt: skip
    again = repaired(silent, Repair(K.ARRIVE, "consumer", EMPTY))
    assert again is not None
    assert again.code == program.code
    assert place_of(silent, Repair(K.ARRIVE, "consumer", EMPTY)).rpartition("/")[2].startswith("ring.py:")
    assert place_of(program, Repair(K.LATER, "consumer", EMPTY)) == ""
