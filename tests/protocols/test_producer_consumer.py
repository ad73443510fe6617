"""The ready-made ring: its parameters, its shape, every schedule tried, and wrong twins of it."""

from __future__ import annotations

import inspect
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.errors import ParameterError
from pipesim.explain.blocked import explain
from pipesim.explain.phases import run_canonically
from pipesim.model.barrier import LIVE, BarrierState
from pipesim.model.finding import FaultKind
from pipesim.model.machine import finished, initial_state, land, step
from pipesim.model.moves import can_land
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.protocols.hopper.producer_consumer import producer_consumer

WRONG: dict[str, list[object]] = {
    "stages": [0, 33, -1, 1.0, "4", True, None],
    "tiles": [-1, (1 << 20) + 1, 2.5],
    "tile_bytes": [0, 15, 24, (1 << 20) + 16, "16384"],
    "consumer_warps": [0, 9],
    "work": [-1, (1 << 24) + 1],
    "arrive_lanes": [0, 2, 31, 33],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_wrong_parameter_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        producer_consumer(**{name: value})
    assert caught.value.fact.startswith(name)


def test_every_parameter_has_a_default_and_a_bound() -> None:
    assert list(inspect.signature(producer_consumer).parameters) == list(WRONG)
    assert producer_consumer().flatten().name == "producer_consumer"


def test_the_shape_of_the_program() -> None:
    program = producer_consumer(stages=3, tiles=5, tile_bytes=160, consumer_warps=3, work=9, arrive_lanes=32).flatten()
    assert [program.agent_name(a) for a in range(4)] == ["producer", "consumer/0", "consumer/1", "consumer/2"]
    assert [program.barrier_name(b) for b in range(6)] == [f"{g}[{s}]" for g in ("full", "empty") for s in range(3)]
    assert program.smem_bytes == 3 * 160 + 6 * 8
    assert [op[2] for op in program.code[0] if op[0] == Op.INIT] == [1, 96] * 3
    shares = [next(program.accesses[op[1]] for op in code if op[0] == Op.READ) for code in program.code[1:]]
    assert [(a.offset, a.nbytes) for a in shares] == [(0, 48), (48, 48), (96, 64)], "the last warp reads what is left"
    assert program.loops == ("tiles",)


def test_a_tile_smaller_than_the_warps_is_read_by_the_last_of_them() -> None:
    program = producer_consumer(stages=1, tiles=2, tile_bytes=16, consumer_warps=4).flatten()
    assert [sum(op[0] == Op.READ for op in code) for code in program.code] == [0, 0, 0, 0, 2]
    assert run_canonically(program).finished


def schedule(program: Program, choose: Any) -> tuple[Any, set[FaultKind]]:
    """Let ``choose`` decide who moves and how many bytes land until nobody can, or a fault."""
    state = initial_state(program)
    while True:
        able = []
        for agent in range(len(program.agents)):
            if not finished(program, state, agent):
                made = step(program, state, agent)
                if made.state is not state:
                    able.append(made)
        flights = [f for f in state.flights if can_land(state, f)]
        if not able and not flights:
            return state, set()
        at = choose(len(able) + len(flights))
        piece = (-1, 16)[choose(2)]
        made = able[at] if at < len(able) else land(program, state, flights[at - len(able)], piece)
        state = made.state
        if made.faults:
            return state, {f.kind for f in made.faults}


@settings(max_examples=60, deadline=None)
@given(
    stages=st.integers(1, 4),
    tiles=st.integers(0, 7),
    warps=st.integers(1, 3),
    lanes=st.sampled_from([1, 32]),
    rng=st.randoms(use_true_random=False),
)
def test_any_schedule_ends_with_every_tile_read(stages: int, tiles: int, warps: int, lanes: int, rng: Any) -> None:
    program = producer_consumer(stages, tiles, 64, warps, 1, lanes).flatten()
    state, faults = schedule(program, rng.randrange)
    assert faults == set()
    assert state.pcs == tuple(len(code) for code in program.code)
    laps = [(tiles + stages - 1 - s) // stages for s in range(stages)]
    assert state.barriers == tuple(
        BarrierState(count, count, 0, laps[s], LIVE) for count in (1, warps * lanes) for s in range(stages)
    )
    assert (state.flights, explain(program, state)) == ((), None)


def without(program: Program, role: str, op: Op) -> Program:
    """The program with an operation of a role taken out everywhere after the prologue."""
    keep = [
        [pc for pc, o in enumerate(code) if not (program.agents[a].role == role and o[0] == op)]
        for a, code in enumerate(program.code)
    ]
    return replace(
        program,
        code=tuple(tuple(program.code[a][pc] for pc in pcs) for a, pcs in enumerate(keep)),
        lines=tuple(tuple(program.lines[a][pc] for pc in pcs) for a, pcs in enumerate(keep)),
    )


TWINS = {
    "the right ring": (None, {"finished"}),
    "the producer does not wait": (("producer", Op.WAIT), {"RACE", "WRONG_ITEM", "OVER_ARRIVAL", "stuck", "finished"}),
    "the consumer does not wait": (("consumer", Op.WAIT), {"RACE", "UNINITIALISED_READ", "WRONG_ITEM", "finished"}),
    "the consumer does not arrive": (("consumer", Op.ARRIVE), {"stuck"}),
    "the producer expects nothing": (("producer", Op.ARRIVE), {"stuck"}),
    "the producer copies nothing": (("producer", Op.TMA_LOAD), {"stuck"}),
}


@pytest.mark.parametrize("twin", TWINS)
def test_right_and_wrong_twins(twin: str) -> None:
    removed, expected = TWINS[twin]
    program = producer_consumer(stages=2, tiles=6, tile_bytes=64, consumer_warps=1).flatten()
    if removed is not None:
        program = without(program, *removed)
    seen = set()
    for seed in range(60):
        state, faults = schedule(program, random.Random(seed).randrange)
        ended = all(finished(program, state, a) for a in range(len(program.agents)))
        seen.add(min((f.name for f in faults), default="finished" if ended else "stuck"))
    assert seen <= expected
    assert (seen == {"finished"}) == (removed is None)


def test_a_ring_that_is_never_full_does_not_need_its_consumers_arrivals() -> None:
    """The twin without arrivals is stuck only once the ring wraps: with as many tiles as stages it ends."""
    for tiles, ends in ((2, True), (3, False)):
        program = producer_consumer(stages=2, tiles=tiles, tile_bytes=64, consumer_warps=1).flatten()
        assert run_canonically(without(program, "consumer", Op.ARRIVE)).finished == ends
