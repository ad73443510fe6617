"""The machine in place against the pure one: the same moves in the same order, the same state after each of them."""

import random

import pytest

from pipesim.model.groups import ACCESSES, TRIES
from pipesim.model.live import rules
from pipesim.model.live.live_run import MOVED, LiveRule, LiveRun, ObservedRun, blocked_on
from pipesim.model.live.rules import rules_of
from pipesim.model.machine import Flight, State, Step, begin, finished, initial_state, land, step
from pipesim.model.moves import can_land, fail_try, opens
from pipesim.model.ops import Op, Operation
from pipesim.model.program import Program
from pipesim.targets import find
from tests.support.random_programs import FAMILIES

MOST_MOVES = 1500
SEEDS = range(30)


def outcome(result: Step) -> int:
    return blocked_on(result.blocked) if result.blocked >= 0 else result.signalled


class Both:
    """A pure state and a running program that make the same moves."""

    def __init__(self, program: Program, running: LiveRun, seed: int) -> None:
        self.program, self.running = program, running
        self.rules: list[LiveRule] = rules_of(running)
        self.state = initial_state(program)
        self.random = random.Random(seed)
        self.seen: set[tuple[Op, str]] = set()  # operations, and whether they moved, were blocked or broke a rule

    def run(self) -> None:
        """Random moves until none is possible, or for long enough."""
        for _ in range(MOST_MOVES):
            agents = [a for a in range(len(self.program.agents)) if not finished(self.program, self.state, a)]
            landings = [f for f in self.state.flights if can_land(self.program, self.state, f)]
            if landings and (not agents or self.random.random() < 0.3):
                self.on_landing(self.random.choice(landings))
            elif agents and self.moved(self.random.choice(agents)):
                continue
            elif not any(self.moved(agent) for agent in agents) and not landings:
                return

    def moved(self, agent: int) -> bool:
        """One agent moves in both; False if it is blocked and nothing changed."""
        pc = self.state.pcs[agent]
        op = self.program.code[agent][pc]
        if op[0] in ACCESSES and opens(self.program, self.state, agent) and self.random.random() < 0.7:
            self.running.begin(agent)
            self.agree(begin(self.program, self.state, agent))
            return True
        before = self.state
        result = step(self.program, before, agent)
        assert self.rules[op[0]](self.running, agent, op) == outcome(result)
        self.seen.add((Op(op[0]), "fault" if result.faults else "blocked" if result.blocked >= 0 else "moved"))
        self.agree(result)
        if op[0] in TRIES and self.random.random() < 0.3 and not result.faults:
            self.running.refuse(agent, pc)
            self.agree(Step(fail_try(self.program, self.state, agent, pc)))
        return self.state is not before

    def on_landing(self, flight: Flight) -> None:
        """A transfer lands in both."""
        result = land(self.program, self.state, flight)
        assert self.running.land(flight) == result.signalled
        self.agree(result)

    def agree(self, result: Step) -> None:
        """The pure result and the running program are the same to the last integer."""
        assert self.running.faults == result.faults
        self.running.faults = ()
        self.state = result.state
        assert self.running.state() == self.state


@pytest.mark.parametrize("family", FAMILIES)
def test_random_programs_in_random_order(family: str) -> None:
    seen: set[tuple[Op, str]] = set()
    for seed in SEEDS:
        program = FAMILIES[family](seed)
        both = Both(program, LiveRun(program), seed)
        both.run()
        seen |= both.seen
    assert len(seen) > 4, f"the programs of {family} do too little to compare"


@pytest.mark.parametrize(
    "name",
    ["gemm_sm90", "attention_sm90", "cluster_multicast", "epilogue_residual", "gemm_sm100", "persistent_scheduler"],
)
def test_built_in_protocols_in_random_order(name: str) -> None:
    program = find(name).build({})
    both = Both(program, LiveRun(program), 1)
    both.run()
    assert {kind for _, kind in both.seen} == {"moved", "blocked"}


def test_a_wrong_rule_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its twin: an arrive that counts nothing."""

    def counts_nothing(live: LiveRun, agent: int, _: Operation) -> int:
        live.pcs[agent] += 1
        return MOVED

    monkeypatch.setitem(rules.RULES, Op.ARRIVE, counts_nothing)
    program = find("producer_consumer").build({"tiles": 3})
    with pytest.raises(AssertionError):
        Both(program, LiveRun(program), 1).run()


class Log:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def on_step(self, before: State, agent: int, result: Step) -> None:
        self.told.append((before, agent, result))

    def on_landing(self, flight: Flight, nbytes: int, result: Step) -> None:
        self.told.append((flight, nbytes, result))


def test_observers_are_told_of_each_move_with_the_states_of_the_pure_machine() -> None:
    program = find("producer_consumer").build({"tiles": 2, "stages": 1})
    log = Log()
    both = Both(program, ObservedRun(program, [log]), 3)
    both.run()
    steps = [told for told in log.told if isinstance(told[0], State)]
    assert all(told[2] == step(program, told[0], told[1]) for told in steps)  # type: ignore[arg-type]
    assert sum(len(told) == 3 and isinstance(told[0], Flight) for told in log.told) == 2
    assert all(finished(program, both.state, agent) for agent in range(len(program.agents)))
