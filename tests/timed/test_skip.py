"""What is left out because it repeats: the result is that of a run in which nothing is, to the last integer."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from pipesim.model.ending import Ending
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.engine import Simulation, simulate
from pipesim.timed.profile import Profile, load_profile
from pipesim.timed.skip.leaping_run import RepeatedCode
from tests.support.lanes import slow_after, slow_but
from tests.support.timed_ring import Ring, ring, toy

H100 = load_profile("h100")
EAGER = replace(H100, values=H100.values | {"wait.poll": 1})  # a wait returns at once, so that periods are short


def both(program: Program, profile: Profile, *, traced: bool = False, max_steps: int = 1 << 30) -> Simulation:
    """The run with all that can be left out, which must be the one without in everything else."""
    whole = simulate(program, profile, traced=traced, max_steps=max_steps, landings=True, skip=False)
    short = simulate(program, profile, traced=traced, max_steps=max_steps, landings=True)
    assert short.trace == whole.trace
    assert replace(short, skipped=0, trace=whole.trace) == whole
    assert whole.skipped == 0
    return short


@pytest.mark.sampled(2, 3)
@pytest.mark.parametrize(
    ("name", "params", "least"),
    slow_after(
        4,
        [
            ("producer_consumer", {"tiles": 150}, 60),
            ("cluster_multicast", {"tiles": 160}, 50),
            ("producer_consumer", {"tiles": 150, "work": 0, "stages": 2}, 50),
            ("persistent_scheduler", {"tiles": 120}, 30),
            ("epilogue_residual", {"tiles": 100}, 25),
            ("gemm_sm90", {"tiles": 30, "k_iters": 8}, 30),
            ("cutlass_sm90_pingpong", {"tiles": 48}, 20),
            ("attention_sm90", {"kv_blocks": 60}, 0),
        ],
    ),
)
def test_long_runs_of_the_built_in_protocols(name: str, params: dict[str, int], least: int) -> None:
    short = both(find(name).build(params), EAGER)
    assert short.outcome is Ending.FINISHED
    assert 100 * short.skipped >= least * short.steps, f"{short.skipped} of {short.steps} were left out"


@pytest.mark.sampled(8, 14)
@pytest.mark.parametrize("seed", slow_but(range(8), range(24)))
def test_random_rings_on_random_profiles(seed: int) -> None:
    draw = random.Random(seed)
    stages, tiles, warps = draw.randint(1, 4), draw.randint(110, 200), draw.randint(1, 3)
    shape = Ring(stages=stages, tiles=tiles, warps=warps, work=draw.choice([0, 7, 30]))
    names = ["wait_issue", "wait_wake_up", "wait_retry", "arrive_issue", "arrive_latency", "copy_latency", "loop_issue"]
    profile = toy(wait_poll=draw.randint(1, 5), **{name: draw.randint(0, 40) for name in names})
    both(ring(shape).flatten({}), profile, traced=draw.random() < 0.5, max_steps=draw.choice([1 << 30, 900]))


def test_an_item_that_breaks_the_series_is_found() -> None:
    """Its twin: one read that expects another item than the copy brings is no repetition, and its fault is found."""
    program = find("producer_consumer").build({"tiles": 150})
    reader = max(range(len(program.agents)), key=lambda agent: sum(op[0] == Op.READ for op in program.code[agent]))
    reads = [pc for pc, op in enumerate(program.code[reader]) if op[0] == Op.READ]
    code = list(program.code[reader])
    code[reads[120]] = (*code[reads[120]][:-1], 7)
    wrong = replace(program, code=(*program.code[:reader], tuple(code), *program.code[reader + 1 :]))
    assert len(both(wrong, EAGER).faults) == 1
    assert both(program, EAGER).faults == ()
    laps = reads[8], reads[16]  # four stages, both parities
    assert RepeatedCode(program).more(reader, *laps) > RepeatedCode(wrong).more(reader, *laps) > 0
