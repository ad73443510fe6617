"""Likely corrections: what is offered for every wrong twin, that it does repair it, and that nothing else is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.finding import Verdict
from pipesim.model.ops import Op
from pipesim.protocols.broken import BROKEN
from pipesim.protocols.broken.ring import right_ring
from pipesim.prove.check import check
from pipesim.prove.repair import correction
from pipesim.prove.repair.applicable import repairs
from pipesim.prove.repair.correction import Correction, corrections
from pipesim.prove.repair.edits import Repair, RepairKind, place_of, repaired
from pipesim.prove.search.breadth_first import explore

K = RepairKind
FULL, EMPTY = "full", "empty"
#: What is offered for a twin: for each of its findings that has one, the same.
OFFERED = {
    "full_count_too_high": [Repair(K.COUNT, "", FULL, 1, 2)],
    "empty_count_too_high": [Repair(K.COUNT, "", EMPTY, 1, 2)],
    "two_producers_one_counted": [Repair(K.COUNT, "", FULL, 2, 1)],
    "two_consumers_one_counted": [Repair(K.COUNT, "", EMPTY, 2, 1)],
    "consumer_arrives_twice": [Repair(K.COUNT, "", EMPTY, 2, 1), Repair(K.DROP, "consumer", EMPTY, 1)],
    "consumer_never_arrives": [Repair(K.ARRIVE, "consumer", EMPTY)],
    "consumer_arrives_every_second": [Repair(K.ARRIVE, "consumer", EMPTY)],
    "every_lane_arrives": [Repair(K.COUNT, "", EMPTY, 32, 1)],
    "consumer_drops": [Repair(K.STAY, "consumer", EMPTY)],
    "producer_starts_at_zero": [Repair(K.PHASES, "producer", EMPTY, 1)],
    "consumer_starts_at_one": [Repair(K.PHASES, "consumer", FULL, 0)],
    "producer_never_toggles": [Repair(K.PHASES, "producer", EMPTY, 1)],
    "consumer_never_toggles": [Repair(K.PHASES, "consumer", FULL, 0)],
    "phase_toggles_a_stage_early": [Repair(K.PHASES, "consumer", FULL, 0)],
    "counters_restart_with_every_tile": [Repair(K.LAPS, "", "")],
    "producer_does_not_wait": [Repair(K.ACQUIRE, "producer", EMPTY, 1)],
    "consumer_does_not_wait": [Repair(K.ACQUIRE, "consumer", FULL, 0)],
    "waits_for_the_stage_before": [Repair(K.STAGES, "consumer", FULL, 0)],
    "waits_for_the_older_of_two": [Repair(K.ACQUIRE, "consumer", "late", 0)],
    "try_ignored": [Repair(K.ACQUIRE, "consumer", FULL, 0)],
    "try_before_the_step": [Repair(K.STAGES, "consumer", FULL, 0)],
    "expects_too_few": [Repair(K.EXPECT, "producer", FULL, 64, 48)],
    "expects_half": [Repair(K.EXPECT, "producer", FULL, 64, 32)],
    "expects_too_many": [Repair(K.EXPECT, "producer", FULL, 64, 68)],
    "expects_nothing": [Repair(K.EXPECT, "producer", FULL, 64, 0)],
    "two_copies_one_expected": [Repair(K.EXPECT, "producer", FULL, 64, 32)],
    "count_of_zero": [Repair(K.COUNT, "", EMPTY, 1, 0)],
    "consumer_arrives_before_reading": [Repair(K.LATER, "consumer", EMPTY)],
    "producer_arrives_before_writing": [Repair(K.LATER, "producer", FULL)],
    "sync_counts_a_third_warp": [Repair(K.THREADS, "", "1", 64, 96)],
    "sync_counts_one_warp": [Repair(K.THREADS, "", "1", 64, 32)],
    "warps_disagree_about_threads": [Repair(K.THREADS, "", "1", 64, 96)],
    "threads_no_multiple_of_32": [Repair(K.THREADS, "", "1", 64, 48)],
    "one_number_for_two_pairs": [Repair(K.THREADS, "", "1", 128, 64)],
    "multicast_misses_a_cta": [Repair(K.MASK, "loader", FULL, 0b11, 0b01)],
    "peer_arrives_uncounted": [Repair(K.COUNT, "", EMPTY, 2, 1)],
    "wgmma_wait_too_deep": [Repair(K.DEPTH, "mma", "2", 0, 1)],
    "wgmma_released_before_its_wait": [Repair(K.LATER, "mma", EMPTY)],
    "store_wait_too_deep": [Repair(K.DEPTH, "epilogue", "0", 0, 1)],
    "cp_async_arrive_counts_itself": [Repair(K.ARRIVE, "producer", FULL)],
}


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "producer_runs_on"])
def test_what_is_offered_for_a_twin_does_mend_it(name: str) -> None:
    """The search of all schedules, not the proof that the offer rests on, says that the twin is right then."""
    program = BROKEN[name]().flatten()
    offered = []
    for found in check(program, max_states=3000).refutations:
        offered += [each.repair for each in corrections(program, found, program)]
    assert list(dict.fromkeys(offered)) == OFFERED.get(name, [])
    for repair in dict.fromkeys(offered):
        right = repaired(program, repair)
        assert right is not None
        seen = explore(right, 20_000)
        assert seen.refutations == ()
        assert seen.verdict is not Verdict.REFUTED
        assert seen.complete or sum(map(len, program.code)) > 60, "the small ones are followed to their ends"


def test_every_kind_of_correction_is_offered_for_some_twin() -> None:
    fences = {RepairKind.FENCE}  # are offered for a finding that only fences mend: test_optional_rules.py
    assert {repair.kind for some in OFFERED.values() for repair in some} == set(RepairKind) - fences


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
        "producer expects 64 bytes on full instead of 32, the number that it copies",
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
    tried = list(repairs(program, frozenset({EMPTY})))
    assert len(tried) == len(set(tried)) > 20
    assert {repair.group for repair in tried[:5]} == {EMPTY}, "those about the group come first"
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
