"""How a run can end for each single mistake, as schedules show it; and the schedules themselves."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.conform.diagnose.edits import Edit, EditKind, apply, edits
from pipesim.conform.diagnose.examination import LaunchOutcome
from pipesim.conform.diagnose.outcomes import outcome_of, outcomes, random_schedule
from pipesim.errors import EvidenceError
from pipesim.model.ending import Ending
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from tests.conform.cases import as_hardware, pc, recorded, stored

R, W, H, T = LaunchOutcome.RIGHT, LaunchOutcome.WRONG_DATA, LaunchOutcome.HANG, LaunchOutcome.TRAP
PRODUCER, CONSUMER = 0, 1


#: Of two stages, eight tiles and two consumers, at tile 4, in the middle; and at tile 7, the last.
SETS: dict[tuple[EditKind, int], tuple[set[LaunchOutcome], set[LaunchOutcome]]] = {
    (EditKind.MISSING_ARRIVE, CONSUMER): ({H}, {R}),
    (EditKind.EXTRA_ARRIVE, CONSUMER): ({R, W, H}, {R}),
    (EditKind.WRONG_PARITY, CONSUMER): ({R, W, H, T}, {R, W, H}),
    (EditKind.WRONG_PARITY, PRODUCER): ({R, W, H, T}, {R, W, H, T}),
    (EditKind.EXPECT_MORE, PRODUCER): ({H}, {H}),
    (EditKind.EXPECT_LESS, PRODUCER): ({R, W, H}, {R, W, H}),
    (EditKind.RELEASE_EARLY, CONSUMER): ({R, W}, {R}),
    (EditKind.NO_ACQUIRE, PRODUCER): ({R, W, H, T}, {R, W, H, T}),
    (EditKind.LEAVES_EARLY, CONSUMER): ({H}, {R}),
    (EditKind.SWAPPED_STAGES, CONSUMER): ({W}, set()),
    (EditKind.PHASE_NOT_TOGGLED, CONSUMER): ({R, W, H}, set()),
}


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize(("kind", "agent"), SETS, ids=lambda v: getattr(v, "value", v))
def test_the_outcomes_of_each_fault(kind: EditKind, agent: int) -> None:
    program = pc(2, 8)
    applies = {edit.iteration for edit in edits(program) if (edit.kind, edit.agent) == (kind, agent)}
    for tile, expected in zip((4, 7), SETS[kind, agent], strict=True):
        if expected:
            assert outcomes(apply(program, Edit(kind, agent, tile)), 200) == expected
        else:
            assert tile not in applies


def test_every_kind_has_its_sets() -> None:
    assert {kind for kind, _ in SETS} == set(EditKind)


@pytest.mark.parametrize("shape", [(1, 4, 1, 1), (2, 6, 2, 32), (4, 9, 3, 1)], ids=str)
def test_a_right_kernel_ends_right(shape: tuple[int, ...]) -> None:
    assert outcomes(pc(*shape), 64) == {R}


@pytest.mark.slow
def test_landing_in_pieces_is_seen() -> None:
    """Half of the bytes expected: only a copy that lands in pieces completes the phase. Whole, it hangs for ever."""
    wrong = apply(pc(2, 8), Edit(EditKind.EXPECT_LESS, PRODUCER, 7))
    assert simulate(wrong, load_profile("h100")).outcome is Ending.DEADLOCK
    assert outcomes(wrong, 200) == {R, W, H}


@pytest.mark.slow
def test_same_seed_same_set() -> None:
    wrong = apply(pc(2, 8), Edit(EditKind.NO_ACQUIRE, CONSUMER, 4))
    few = [outcomes(wrong, 6, seed) for seed in range(12)]
    assert few == [outcomes(wrong, 6, seed) for seed in range(12)]
    assert len(set(few)) > 1  # and another seed may see less


@pytest.mark.long
@settings(max_examples=12, deadline=None, derandomize=True)
@given(shape=st.sampled_from([(1, 4, 1, 1), (2, 6, 2, 32), (3, 7, 2, 1)]), data=st.data(), seed=st.integers(0, 10**6))
def test_what_a_single_run_does_is_in_the_set(shape: tuple[int, ...], data: Any, seed: int) -> None:
    program = pc(*shape)
    edit = data.draw(st.sampled_from(edits(program)))
    wrong = apply(program, edit)
    possible = outcomes(wrong, 200)
    assert outcome_of(recorded(program, wrong, random_schedule(wrong, seed))) in possible | {R}
    assert outcome_of(as_hardware(program, simulate(wrong, load_profile("h100")).trace)) in possible | {R}


@pytest.mark.parametrize(
    ("status", "wrong", "expected"),
    [
        ("finished", 0, R), ("finished", 3, W), ("deadline", 0, H), ("deadline", 3, H), ("trap", 0, T),
        ("deadlock", 0, H), ("fault", 0, T),
    ],
)  # fmt: skip
def test_what_was_observed(status: str, wrong: int, expected: LaunchOutcome) -> None:
    case = stored("h100/producer_consumer-al1-cw1-s1-tb4096-t64-w0-g1.parquet")
    assert outcome_of(case.with_meta(status=status, wrong_tiles=wrong).trace) is expected


def test_a_run_that_was_cut_off_has_no_outcome() -> None:
    case = stored("h100/producer_consumer-al1-cw1-s1-tb4096-t64-w0-g1.parquet")
    with pytest.raises(EvidenceError, match="which is not an outcome"):
        outcome_of(case.with_meta(status="unknown").trace)
