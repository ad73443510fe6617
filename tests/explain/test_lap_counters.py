"""The lap-counter specification: silent where parity and counters agree; it sees a missed phase and an early pass."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.explain.lap_counters import Aliasing, Laps
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.machine import State, Step, finished, initial_state, land, step
from pipesim.model.moves import can_land, run_canonically
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.pipelines import ProducerConsumerPipeline
from tests.support.small_programs import build


def chance(program: Program, seed: int, laps: Laps, starved: int = -1) -> State:
    """A random schedule to its end, in which those who are blocked test again before every move.

    The agent ``starved`` moves only when no other agent can.
    """
    rng = random.Random(seed)
    state = initial_state(program)
    while True:
        ready = [a for a in range(len(program.agents)) if not finished(program, state, a)]
        able = [a for a in ready if step(program, state, a).state is not state]
        for agent in set(ready) - set(able):
            laps.on_step(state, agent, step(program, state, agent))
        flights = (f for f in state.flights if can_land(program, state, f))
        moves: list[Any] = [*(a for a in able if a != starved), *flights]
        moves = moves or able
        if not moves:
            return state
        chosen = rng.choice(moves)
        if isinstance(chosen, int):
            made: Step = step(program, state, chosen)
            laps.on_step(state, chosen, made)
        else:
            made = land(program, state, chosen)
            laps.on_landing(chosen, chosen.remaining, made)
        state = made.state


def ends(program: Program, starved: int = -1, schedules: int = 60) -> tuple[set[str], list[Aliasing]]:
    """How the schedules ended, and everything that the observer reported."""
    seen: set[str] = set()
    found: list[Aliasing] = []
    for seed in range(schedules):
        laps = Laps(program)
        state = chance(program, seed, laps, starved)
        seen.add("finished" if all(finished(program, state, a) for a in range(len(program.agents))) else "stuck")
        found += laps.disagreements
    return seen, found


def load_order(tiles: int, waits: int) -> Program:
    """Upstream's LoadOrderBarrier: the main load arrives, the epilogue load waits, with nothing that holds either."""
    p = Protocol("order")
    order = p.mbarriers("order", 1, count=1)

    @p.role("main")
    def main(w: Warp) -> None:
        with w.elect_one():
            for _ in range(waits):
                order[0].arrive()

    @p.role("epilogue")
    def epilogue(w: Warp) -> None:
        with w.elect_one():
            for tile in range(waits):
                order[0].wait(tile & 1)
            w.work(tiles)

    return p.flatten()


def test_two_arrivals_before_one_wait_are_missed() -> None:
    """The load-order hazard: with a starved waiter the parity is back where it was, and it hangs."""
    program = load_order(tiles=2, waits=2)
    assert "stuck" in ends(program)[0]
    seen, found = ends(program, starved=1)
    assert seen == {"stuck"}
    pc = next(pc for pc, op in enumerate(program.code[1]) if op[0] == Op.WAIT)
    assert set(found) == {Aliasing(1, pc, 0, 0, meant=0, completed=2, passed=False)}
    assert found[0].claim(program) == (
        "epilogue misses phase 0 of order[0]: it waits with parity 0 while 2 phases of it are complete"
    )


def ring(tiles: int, *, phase: int = 1, primed: bool = False, pressure: bool = True) -> Program:
    """A ring of two stages: its producer's first phase, consumers that pre-arrive, a producer that does not wait."""
    p = Protocol("ring")
    storage = p.mbarriers("pipe", 4)
    p.init(lambda: ProducerConsumerPipeline(storage, 2).init_mbars(1, 1))

    @p.role("producer")
    def producer(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, 2)
        pipe.producer_phase = phase
        with w.elect_one():
            for _ in range(tiles):
                if pressure:
                    pipe.wait_consumer()
                pipe.full[pipe.producer_stage()].arrive()
                pipe.producer_step()

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, 2)
        with w.elect_one():
            for stage in range(2 if primed else 0):
                pipe.consumer_mbar(stage).arrive()
            for _ in range(tiles):
                pipe.consumer_signal_and_step()

    return p.flatten()


def test_phase_1_with_priming_blocks_a_producer_that_comes_second() -> None:
    seen, found = ends(ring(6, phase=1, primed=True), starved=0)
    assert seen == {"stuck"}
    assert {(a.agent, a.meant, a.completed, a.passed) for a in found} == {(0, -1, 1, False)}
    assert ends(ring(6, phase=0, primed=True), starved=0) == ({"finished"}, [])
    assert ends(ring(6, phase=1), starved=0) == ({"finished"}, [])


def test_a_pass_one_lap_early_is_seen() -> None:
    """The other answer: after a try for phase 0 the wait is for phase 1, and a fresh barrier lets its parity pass."""
    program = build("INIT; TRY_WAIT; WAIT parity=1")
    laps = Laps(program)
    run_canonically(program, laps)
    (found,) = laps.disagreements
    assert (found.meant, found.completed, found.passed) == (1, 0, True)
    assert found.claim(program) == (
        "role0 passes b[0] with parity 1 before phase 1 is complete: 0 phases of it are complete"
    )


def test_a_try_and_its_wait_mean_one_phase_and_a_life_begins_at_an_init() -> None:
    life = "TRY_WAIT register=0; ARRIVE; WAIT_UNLESS register=0; ARRIVE; WAIT parity=1; INVAL; INIT; "
    program = build("INIT; " + 2 * life)
    laps = Laps(program)
    assert run_canonically(program, laps).finished
    assert (laps.disagreements, laps.tests, laps.phase_meant(0, 0)) == ((), 6, -1)


def test_a_dead_barrier_answers_nothing() -> None:
    program = build("INIT; INVAL; WAIT")
    laps = Laps(program)
    run_canonically(program, laps)
    assert (laps.tests, laps.disagreements) == (0, ())


# a naive model beside it: the generator knows the laps, the counters are plain integers


Script = list[tuple[str, int, int]]


@st.composite
def scripts(draw: Any) -> tuple[list[int], list[Script]]:
    """Counts of the barriers; for each agent what it does: arrive (at), wait or try (for, lap)."""
    counts = draw(st.lists(st.integers(1, 2), min_size=1, max_size=3))
    agents = []
    for _ in range(draw(st.integers(1, 3))):
        laps = [draw(st.sampled_from([-1, 0])) - 1] * len(counts)
        first = list(laps)
        script: Script = []
        for _ in range(draw(st.integers(0, 8))):
            kind, bar = draw(st.sampled_from(["arrive", "wait", "try"])), draw(st.integers(0, len(counts) - 1))
            if kind != "arrive":
                laps[bar] += 1 if laps[bar] == first[bar] else draw(st.integers(0, 1))
            script.append((kind, bar, laps[bar]))
        agents.append(script)
    return counts, agents


def written(counts: list[int], agents: list[Script]) -> Program:
    p = Protocol("random")
    bars = p.mbarriers("b", len(counts))
    p.init(lambda: [bars[b].init(n) for b, n in enumerate(counts)] and None)  # type: ignore[arg-type]

    def role(script: Script) -> Any:
        def body(w: Warp) -> None:
            with w.elect_one():
                for kind, bar, lap in script:
                    if kind == "arrive":
                        bars[bar].arrive()
                    elif kind == "wait":
                        bars[bar].wait(lap & 1)
                    else:
                        bars[bar].try_wait(lap & 1)

        return body

    for n, script in enumerate(agents):
        p.role(f"r{n}")(role(script))
    return p.flatten()


@pytest.mark.slow
@settings(max_examples=50, deadline=None, derandomize=True)
@given(case=scripts(), seed=st.integers(0, 1 << 20))
def test_it_says_what_unbounded_counters_say(case: tuple[list[int], list[Script]], seed: int) -> None:
    disagreements = against_counters(case, seed)
    laps, naive, tests = disagreements
    assert laps.tests == tests
    assert [(a.agent, a.pc, a.meant, a.passed) for a in laps.disagreements] == naive


def against_counters(case: tuple[list[int], list[Script]], seed: int) -> tuple[Laps, list[Any], int]:
    """The observer, what plain counters disagree with the machine about, and how many tests there were."""
    counts, agents = case
    program = written(*case)
    rng, state, laps = random.Random(seed), initial_state(program), Laps(program)
    arrivals = [0] * len(counts)
    done = [0] * len(agents)
    naive: dict[Any, Any] = {}
    tests = 0
    for _ in range(400):
        agent = rng.randrange(len(agents))
        if finished(program, state, agent):
            continue
        pc = state.pcs[agent]
        op = program.code[agent][pc]
        made = step(program, state, agent)
        laps.on_step(state, agent, made)
        if op[0] in (Op.ARRIVE, Op.WAIT, Op.TRY_WAIT):
            kind, bar, lap = agents[agent][done[agent]]
            phases = arrivals[bar] // counts[bar]
            passed = made.blocked < 0 if kind == "wait" else (phases & 1) != (lap & 1)
            if kind == "arrive":
                arrivals[bar] += 1
            else:
                tests += 1
                if passed != (phases > lap):
                    naive.setdefault((agent, pc, phases), (agent, pc, lap, passed))
            done[agent] += made.blocked < 0
        state = made.state
    return laps, list(naive.values()), tests
