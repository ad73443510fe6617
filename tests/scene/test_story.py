"""A counterexample as a story: each step changes what the machine changes, and the end is the finding's."""

from functools import cache

from pipesim.answers.check import check
from pipesim.answers.views.check import Counterexample
from pipesim.model.finding import Deadlock
from pipesim.model.program import Program
from pipesim.scene.story import AgentStanding, BarrierAt, Story, story
from pipesim.targets import find
from tests.support.paths import EXAMPLES

RING = str(EXAMPLES / "ring_forgets.py") + ":ring"


@cache
def told() -> tuple[Program, Counterexample, Story]:
    target = find(RING)
    (shown,) = check(target, {"stages": 2}).refutations
    program = target.build({"stages": 2} | dict(shown.at))
    return program, shown, story(program, shown)


def test_the_steps_are_those_of_the_schedule() -> None:
    _, shown, found = told()
    assert tuple(step.line for step in found.steps) == shown.schedule
    assert (found.agents, found.left_out) == (("load", "mma"), 0)


def test_the_end_is_who_waits_for_what() -> None:
    _, shown, found = told()
    assert isinstance(shown.finding, Deadlock)
    last = found.steps[-1]
    for agent in shown.finding.blocked:
        at = last.agents[found.agents.index(agent.agent)]
        assert at.standing is AgentStanding.BLOCKED
        assert at.next.startswith(f"wait {agent.barrier} parity {agent.parity}")
        assert at.line == agent.line
        barrier = last.barriers[found.barriers.index(agent.barrier)]
        assert barrier is not None
        assert (barrier.done, barrier.pending) == (agent.phase_now, agent.arrivals_missing)
    assert last.flights == ()


def test_a_barrier_is_there_from_its_init_on_and_changes_with_the_steps_that_are_on_it() -> None:
    _, _, found = told()
    before: tuple[BarrierAt | None, ...] = (None,) * len(found.barriers)
    for step in found.steps:
        changed = {found.barriers[n] for n, now in enumerate(step.barriers) if now != before[n]}
        assert changed <= {f"{step.line.barrier}[{step.line.stage}]"}, step.line
        if step.line.what.startswith(("init ", "arrive ")):
            assert changed, step.line
        before = step.barriers
    assert None not in before


def test_what_is_in_flight_is_there_from_its_issue_to_its_landing() -> None:
    _, _, found = told()
    flying = 0
    for step in found.steps:
        flying += step.line.what.startswith("copy ") - (" land in " in step.line.what)
        assert len(step.flights) == flying


def test_before_the_first_step_no_agent_has_finished() -> None:
    _, _, found = told()
    assert {agent.standing for agent in found.start} <= {AgentStanding.READY, AgentStanding.BLOCKED}
    assert all(agent.next for agent in found.start)
