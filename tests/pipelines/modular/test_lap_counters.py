"""The parity machine against the unbounded specification: monotone counters per slot, and lap numbers.

A consumer may take lap p of a slot iff its full arrivals reach (p + 1) times the producers' count; a producer may fill
on lap p, counted from 1, iff its empty arrivals reach (p - 1) times the consumers' count. This is written out here for
rings, beside the observer for any program (``explain.lap_counters``), which knows neither roles nor counts.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.explain.lap_counters import Aliasing, Laps
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model import barrier as mbarrier
from pipesim.model.machine import State
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.pipelines import ProducerConsumerPipeline


def ring(
    stages: int,
    tiles: int,
    producers: int = 1,
    consumers: int = 1,
    lanes: int = 1,
    *,
    pressure: bool = True,
    twice: bool = False,
) -> Program:
    """Roles that only signal; without ``pressure`` nobody waits for empty; ``twice``: two arrives a tile."""
    p = Protocol("ring")
    storage = p.mbarriers("pipe", 2 * stages)
    p.init(lambda: ProducerConsumerPipeline(storage, stages).init_mbars(producers * lanes, consumers * lanes))

    @p.role("producer", warps=producers)
    def producer(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.lanes(lanes):
            for _ in range(tiles):
                if pressure:
                    pipe.producer_signal_and_step()
                else:
                    pipe.full[pipe.producer_stage()].arrive()
                    pipe.producer_step()

    @p.role("consumer", warps=consumers)
    def consumer(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.lanes(lanes):
            for _ in range(tiles):
                with pipe.consume() as stage:
                    if twice:
                        stage.arrive()

    return p.flatten()


class RingLaps:
    """Watches a run: at every wait that an agent stands at, does the parity say what the counters say?"""

    def __init__(self, program: Program, stages: int, producers: int, consumers: int) -> None:
        self.program = program
        self.stages = stages
        self.counts = (producers, consumers)
        self.tests = 0
        self.disagreements: list[tuple[str, int, bool, bool]] = []

    def __call__(self, state: State) -> None:
        arrivals = [0] * len(self.program.barriers)
        for code, pc in zip(self.program.code, state.pcs, strict=True):
            for op in code[:pc]:
                if op[0] == Op.ARRIVE:
                    arrivals[op[1]] += op[2]
        for agent, (code, pc) in enumerate(zip(self.program.code, state.pcs, strict=True)):
            if pc < len(code) and code[pc][0] == Op.WAIT:
                _, bar, parity, _ = code[pc]
                uses = sum(1 for op in code[:pc] if op[0] == Op.WAIT and op[1] == bar)
                may = self._may(bar, uses, arrivals[bar])
                passes = mbarrier.passes(state.barriers[bar], parity)
                self.tests += 1
                if may != passes:
                    self.disagreements.append((self.program.agent_name(agent), uses, may, passes))

    def _may(self, bar: int, uses: int, arrivals: int) -> bool:
        if bar < self.stages:
            return arrivals >= (uses + 1) * self.counts[0]
        lap = uses + 1  # a producer's laps start at 1
        return arrivals >= (lap - 1) * self.counts[1]


@settings(max_examples=60, deadline=None)
@given(
    stages=st.integers(1, 4),
    tiles=st.integers(0, 9),
    producers=st.integers(1, 2),
    consumers=st.integers(1, 3),
    lanes=st.sampled_from([1, 2, 32]),
    seed=st.integers(0, 1 << 30),
    bias=st.sampled_from([1, 6]),
)
def test_the_parity_agrees_with_the_laps_at_every_wait(
    run: Any, stages: int, tiles: int, producers: int, consumers: int, lanes: int, seed: int, bias: int
) -> None:
    program = ring(stages, tiles, producers, consumers, lanes)
    laps, general = RingLaps(program, stages, producers * lanes, consumers * lanes), Laps(program)
    end = run(program, seed, laps, bias, [general])
    assert (end.outcome, laps.disagreements, general.disagreements) == ("finished", [], ())
    assert general.tests >= (producers + consumers) * tiles
    assert laps.tests >= (producers + consumers) * tiles
    assert [b.done for b in end.state.barriers] == [(tiles + stages - 1 - s) // stages for s in range(stages)] * 2


@pytest.mark.parametrize(
    ("wrong", "role"), [({"pressure": False}, "consumer"), ({"twice": True}, "producer")],
    ids=["no back-pressure", "over-arrival"],
)  # fmt: skip
def test_a_wrong_ring_disagrees_visibly(run: Any, wrong: dict[str, bool], role: str) -> None:
    """Two phases complete before one wait is tested: the parity is back where it was, the counters are not."""
    seen: list[tuple[str, int, bool, bool]] = []
    missed: list[Aliasing] = []
    for seed in range(40):
        program = ring(2, 7, **wrong)
        laps, general = RingLaps(program, 2, 1, 1), Laps(program)
        run(program, seed, laps, bias=6, observers=[general])
        seen += laps.disagreements
        reported = {(who, may, passes) for who, _, may, passes in laps.disagreements}
        assert {(program.agent_name(a.agent), not a.passed, a.passed) for a in general.disagreements} <= reported
        missed += general.disagreements
    assert any(who == role and may and not passes for who, _, may, passes in seen), "it may, but its wait blocks"
    assert any(program.agent_name(a.agent) == role and not a.passed for a in missed)
    right = RingLaps(ring(2, 7), 2, 1, 1)
    for seed in range(40):
        assert run(right.program, seed, right, bias=6).outcome == "finished"
    assert (right.disagreements, right.tests > 500) == ([], True)
