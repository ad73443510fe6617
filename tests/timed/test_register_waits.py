"""For whom a request for registers waits in every schedule, and when that depends on who comes first."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pipesim.model.finding import FaultKind
from pipesim.model.machine import initial_state, step
from pipesim.model.ops import Op
from pipesim.model.program import ALL_LANES, Agent, Program
from pipesim.targets import find
from pipesim.timed.recurrence.derivation.register_waits import releases_awaited


def asking(launched: int, *groups: Sequence[int]) -> Program:
    """Warp groups whose warps make one request each: of so many registers, 0 for one that makes none."""
    agents = [Agent(0, 4 * g + w, ALL_LANES, f"g{g}", w) for g, group in enumerate(groups) for w in range(len(group))]
    code = tuple(((int(Op.SETMAXNREG), asked),) if asked else () for group in groups for asked in group)
    base = find("producer_consumer").build({"tiles": 1})
    return replace(
        base, agents=tuple(agents), code=code, lines=tuple((0,) * len(each) for each in code), barriers=(), tiles=(),
        accesses=(), named_barriers=(), work=(), launch_registers=launched, grid=1,
    )  # fmt: skip


def awaited(program: Program) -> list[tuple[int, ...] | None]:
    return [releases_awaited(program, agent) for agent in range(len(program.agents)) if program.code[agent]]


def test_groups_that_share_what_one_gives_back() -> None:
    """64 warps' worth of registers: 128 fewer for each of four warps, 64 more for each of the eight others."""
    program = asking(168, [40] * 4, [232] * 4, [232] * 4)
    assert awaited(program) == [()] * 4 + [(0, 1, 2, 3)] * 8


def test_who_asks_for_no_more_than_it_has_waits_for_nobody() -> None:
    assert awaited(asking(104, [40, 40], [104, 104], [24, 32])) == [()] * 6


def test_two_that_give_back_of_which_one_is_enough() -> None:
    """Either is enough for the one that asks: it waits for whoever is first."""
    assert awaited(asking(104, [40], [168], [40]))[1] is None
    assert awaited(asking(104, [40], [232], [40])) == [(), (0, 2), ()]


def test_two_that_ask_of_which_only_the_first_gets_enough_from_one() -> None:
    assert awaited(asking(104, [40], [168], [24], [184])) == [(), None, (), None]


def test_a_group_gives_back_when_its_last_warp_does() -> None:
    assert awaited(asking(104, [40, 24], [168, 168])) == [(), (), (0, 1), (0, 1)]
    assert awaited(asking(104, [40, 0], [168, 168])) == [(), None, None], "it never does"


def test_several_requests_of_one_warp_are_not_told() -> None:
    program = asking(104, [40], [168])
    twice = replace(program, code=(program.code[0] * 2, program.code[1]), lines=((0, 0), (0,)))
    assert awaited(twice) == [None, None]


@pytest.mark.parametrize("seed", range(60))
def test_no_order_says_otherwise(seed: int) -> None:
    """In a random order of requests, whoever is told to wait is blocked until then, and not after."""
    draw = random.Random(seed)
    groups = [[draw.choice([24, 40, 104, 168, 232])] * draw.choice([1, 1, 2]) for _ in range(draw.randint(2, 4))]
    program = asking(draw.choice([0, 104, 136]), *groups)
    told = awaited(program)
    state, done = initial_state(program), set[int]()
    left = list(range(len(program.agents)))
    while left:
        results = {agent: step(program, state, agent) for agent in left}
        for agent, result in results.items():
            waits_for = told[agent]
            if waits_for is not None:
                assert (result.blocked >= 0) is bool(set(waits_for) - done)
            assert all(fault.kind is not FaultKind.RACE for fault in result.faults)
        free = [agent for agent, result in results.items() if result.blocked < 0]
        if not free:
            return
        agent = draw.choice(free)
        state = results[agent].state
        done.add(agent)
        left.remove(agent)
