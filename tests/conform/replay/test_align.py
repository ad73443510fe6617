"""Stretches of operations that nothing decides about are aligned in one go, with the same result as one by one.

CTAs that recorded the same are aligned once; a CTA that recorded anything else is aligned by itself.
"""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from pipesim.conform.replay import align
from pipesim.conform.replay.align import EVERY, AgentAlignment, Alignments, Sight
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.schema import Events, Trace
from pipesim.trace.sites import site_table

PROTOCOLS = {"producer_consumer": {"tiles": 9}, "epilogue_residual": {}, "attention_sm90": {}}
COLUMNS = ("site", "stage", "parity", "iteration", "value", "cycle")


def aligned(name: str, trace: Trace, sight: Sight) -> list[AgentAlignment]:
    program = find(name).build(PROTOCOLS[name])
    alignments = Alignments(program, site_table(program), trace)
    return [alignments(trace.events, agent, sight) for agent in range(len(program.agents))]


def one_by_one(walk: align._Walk, pc: int) -> int:
    return pc


def damaged(events: Events, random: Random) -> Events:
    """One value of one event is another, or its row is missing."""
    row = random.randrange(len(events))
    name = random.choice((*COLUMNS, "row"))
    if name == "row":
        return events.select(np.arange(len(events)) != row)
    column = getattr(events, name).copy()
    column[row] += random.choice((-1, 1)) if name != "cycle" else -10_000
    return replace(events, **{name: column})


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize(
    ("name", "sight"),
    [
        *((name, Sight()) for name in PROTOCOLS),
        *(("producer_consumer", each) for each in (Sight(lost=True), Sight(first=2, end=4), Sight(0, EVERY, False, 3))),
    ],
)
def test_a_stretch_is_aligned_as_its_operations_one_by_one(
    name: str, sight: Sight, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = simulate(find(name).build(PROTOCOLS[name]), load_profile("h100")).trace
    seed = 20
    random = Random(seed)
    variants = [trace, *(replace(trace, events=damaged(trace.events, random)) for _ in range(6))]
    at_once = [aligned(name, each, sight) for each in variants]
    if sight == Sight():
        assert all(each.mismatch is None for each in at_once[0])
        assert any(each.mismatch for variant in at_once[1:] for each in variant), f"seed {seed}"
    monkeypatch.setattr(align._Walk, "_take_plain", one_by_one)
    assert at_once == [aligned(name, each, sight) for each in variants], f"seed {seed}"
