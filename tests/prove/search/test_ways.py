"""The ways of agents in legs, and a choice of processes that is given up as soon as it cannot be the smallest."""

import pytest

from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.prove.search import ways
from pipesim.prove.search.breadth_first import explore
from pipesim.prove.search.parts import Local
from pipesim.prove.search.persistent import Here, Persistent
from pipesim.prove.search.successors import Successors
from pipesim.prove.search.ways import End, GroupWait, PhaseWait, Stop, Supplies, Sync, Way
from pipesim.targets import target_of
from tests.support.lanes import slow_but
from tests.support.nine_warps import nine_warps
from tests.support.random_programs.corners import random_corners
from tests.support.random_programs.rings import random_ring
from tests.support.small_programs import build

TRY = "TRY_WAIT register=0 barrier=0 parity=1"
INITS = "INIT barrier=0; INIT barrier=1"


def way_of(program: Program, *, for_groups: bool = False, pc: int = 0) -> Way:
    """The whole way of agent 0."""
    successors = Successors(program)
    supplies = Supplies(program, successors.parts, successors.footprints)
    local = Local(pc, (0,) * program.registers, 0, -1)
    way = Way(program, successors.parts, supplies, 0, local, for_groups=for_groups)
    while not isinstance(way.legs[-1].stop, End):
        way.longer()
    return way


def stops(*code: str, **more: bool) -> list[Stop]:
    return [leg.stop for leg in way_of(build("; ".join([INITS, *code]), "FENCE", barriers=2), **more).legs]


def test_a_leg_ends_before_a_wait_and_counts_what_was_brought() -> None:
    program = build(f"{INITS}; ARRIVE barrier=0; ARRIVE barrier=0; WAIT barrier=1; ARRIVE barrier=1", barriers=2)
    parts = Successors(program).parts
    first, second = way_of(program).legs
    assert isinstance(first.stop, PhaseWait)
    assert first.stop.part == parts.barriers[1]
    assert first.counts == ((parts.barriers[0], 2),)
    assert second.counts == ((parts.barriers[1], 1),)
    assert first.adds == 1 << parts.barriers[0]
    assert second.adds == first.adds | 1 << parts.barriers[1]  # all that was touched so far


def test_waits_for_groups_are_stops_where_a_transfer_may_be_held() -> None:
    group = "COMMIT engine=WGMMA barrier=-1; WAIT_GROUP engine=WGMMA groups=0"
    assert [type(stop) for stop in stops(group)] == [End]
    held, _ = stops(group, for_groups=True)
    assert isinstance(held, GroupWait)
    assert held.closed == 1


def test_a_wait_that_a_try_may_spare_remembers_the_try() -> None:
    wait, _ = stops(TRY, "WAIT_UNLESS register=0 barrier=0 parity=1")
    assert isinstance(wait, PhaseWait)
    assert wait.told is not None


@pytest.mark.parametrize("wait", ["barrier=1 parity=1", "barrier=0 parity=0"])
def test_a_try_of_another_phase_may_spare_it_at_any_time(wait: str) -> None:
    """Whether the try can have said yes depends on how far others come: then the wait holds no agent up for sure."""
    assert [type(stop) for stop in stops(TRY, f"WAIT_UNLESS register=0 {wait}")] == [End]


def test_after_a_jump_only_what_is_sure_to_be_carried_out_is_a_stop() -> None:
    found = stops(TRY, "JUMP_IF register=0 value=1 skip=1", "WAIT barrier=0", "WAIT barrier=1", "BAR_SYNC threads=32")
    assert [type(stop) for stop in found] == [PhaseWait, Sync, End]
    assert found[1] == Sync(found[1].part, now=False, loose=True)  # type: ignore[union-attr]


def test_beyond_some_operations_an_agent_may_do_all_that_it_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "_FAR", 4)
    program = build(f"{INITS}; FENCE; FENCE; FENCE; WAIT barrier=0; ARRIVE barrier=1", barriers=2)
    (leg,) = way_of(program).legs
    both = sum(1 << part for part in Successors(program).parts.barriers)
    assert leg.free & both == both
    assert (leg.reads | leg.writes | leg.adds) & both == both


@pytest.mark.sampled(12, 30)
@pytest.mark.parametrize("seed", slow_but(range(12), range(60)))
@pytest.mark.parametrize("family", [random_ring, random_corners])
def test_a_choice_that_is_not_given_up_early_is_the_same(family, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program = family(seed)
    found = explore(program, 1_000)
    monkeypatch.setattr(Persistent, "choose", _patient)
    assert explore(program, 1_000) == found


def _patient(self: Persistent, row, enabled):  # as Persistent.choose, with every choice followed to its end
    for process, outcomes in enabled:
        if self._unnoticed(row, process) and not any(outcome.faults for outcome in outcomes):
            return [(process, outcomes)]
    faulty = {id(process) for process, outcomes in enabled if any(outcome.faults for outcome in outcomes)}
    processes = self._successors.processes(row)
    best, fewest = enabled, sum(len(outcomes) for _, outcomes in enabled)
    for seed, _ in enabled:
        held = [seed]
        while joining := Here(self, row, processes, {}).interfering_processes(held, 0):
            held += joining
        chosen = [(process, outcomes) for process, outcomes in enabled if any(process is one for one in held)]
        moves = sum(len(outcomes) for _, outcomes in chosen)
        if moves < fewest and not faulty & {id(one) for one in held}:
            best, fewest = chosen, moves
            if moves == 1:
                break
    return best


@pytest.mark.slow
@pytest.mark.parametrize(
    ("params", "states", "verdict"),
    [
        ({"tiles": 1, "k_steps": 0}, 119, Verdict.PROVED),
        ({"tiles": 1, "k_steps": 1, "stages": 1}, 1_751, Verdict.PROVED),
        ({"tiles": 1, "k_steps": 2, "stages": 1, "empty_count": 9}, 1_144, Verdict.REFUTED),
    ],
)
def test_the_states_of_nine_warps_are_pinned(params: dict[str, int], states: int, verdict: Verdict) -> None:
    seen = explore(target_of(nine_warps).build(params))
    assert (seen.states, seen.verdict, seen.complete) == (states, verdict, True)
