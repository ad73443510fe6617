"""Every ready-made protocol at a dozen sizes, from none to several laps: it ends, without a fault, in pinned counts."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from pipesim.explain.lap_counters import Laps
from pipesim.explain.phases import PhaseLog
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import find
from pipesim.timed.engine import Outcome, Simulation, simulate
from pipesim.timed.profile import load_profile

HERE = Path(__file__).parent
COUNTS = HERE.parent / "golden" / "protocols.txt"
Params = dict[str, int]
SIZES: dict[str, list[Params]] = runpy.run_path(str(HERE / "sizes.py"))["SIZES"]
CASES = [(name, params) for name, sizes in SIZES.items() for params in sizes]


def label(name: str, params: Params) -> str:
    return " ".join([name, *(f"{k}={v}" for k, v in params.items())])


Takes = dict[tuple[int, int], list[int]]


def takes(program: Program) -> Takes:
    """The phases that agents take who wait for some phases only: no parity tells which, the protocol does."""
    return {"cutlass_sm90_pingpong": _of_the_own_tiles, "attention_sm100": _of_the_last_block}.get(
        program.name, lambda _: {}
    )(program)


def _of_the_own_tiles(program: Program) -> Takes:
    """The two groups of the ping-pong kernel take the phases of every second tile, whichever they are."""
    found: Takes = {}
    sizes, subtiles = program.params, program.params["block_n"] // 32
    rings = {"mainloop.full": (sizes["k_tiles"], sizes["stages"]), "epi_load.full": (subtiles, min(subtiles, 4))}
    rings["full"] = rings["mainloop.full"]  # its name where it is alone
    barriers = {(b.cta, b.name, b.stage): index for index, b in enumerate(program.barriers)}
    for number, agent in enumerate(program.agents):
        first = {"consumer0": 0, "consumer1": 1}.get(agent.role, sizes["tiles"])
        for name, (steps, stages) in rings.items():
            for item in (t * steps + k for t in range(first, sizes["tiles"], 2) for k in range(steps)):
                barrier = barriers.get((agent.cta, name, item % stages), -1)
                found.setdefault((number, barrier), []).append(item // stages)
    return found


def _of_the_last_block(program: Program) -> Takes:
    """A softmax group of attention waits for its output once: when the last of its blocks is multiplied."""
    blocks, groups = program.params["kv_blocks"], 3 - program.params["num_qo"]
    barriers = {(b.cta, b.stage): index for index, b in enumerate(program.barriers) if b.name == "O_prod"}
    return {
        (number, barriers[agent.cta, group]): [(blocks + groups - 1 - (group if groups == 2 else 0)) // groups - 1]
        for number, agent in enumerate(program.agents)
        for group in (0, 1)
        if agent.role == f"softmax{group}"
    }


def run(program: Program) -> tuple[Simulation, PhaseLog, Laps]:
    log, laps = PhaseLog(program), Laps(program, takes(program))
    return simulate(program, load_profile("h100"), observers=[log, laps]), log, laps


def counted(name: str, params: Params) -> str:
    """One line of the pinned counts: operations of all agents, phases completed, waits that saw one."""
    program = find(name).build(params)
    result, log, laps = run(program)
    assert (result.outcome, result.faults, result.deadlock) == (Outcome.FINISHED, (), None), label(name, params)
    assert (laps.tests > 0) == any(op[0] in (Op.WAIT, Op.WAIT_UNLESS) for code in program.code for op in code)
    assert not laps.disagreements, [found.claim(program) for found in laps.disagreements]
    assert not result.state.flights, "something is still under way when every agent has finished"
    phases = [phase for phases in log.phases() for phase in phases]
    completed = sum(phase.complete for phase in phases)
    seen = sum(len(phase.observers) for phase in phases)
    operations = sum(map(len, program.code))
    return f"{label(name, params)}: {operations} operations, {completed} phases, {seen} hand-offs"


def test_every_protocol_has_a_dozen_sizes() -> None:
    assert sorted(SIZES) == sorted(BUILT_IN)
    assert {name: len(sizes) for name, sizes in SIZES.items() if len(sizes) < 12} == {}


@pytest.mark.parametrize(("name", "params"), CASES, ids=[label(*case) for case in CASES])
def test_it_ends_well_and_its_counts_are_pinned(name: str, params: Params) -> None:
    pinned = dict(line.split(": ") for line in COUNTS.read_text(encoding="utf-8").splitlines())
    mine, _, counts = counted(name, params).partition(": ")
    assert counts == pinned[mine]


def test_no_count_is_pinned_for_nothing() -> None:
    pinned = [line.partition(": ")[0] for line in COUNTS.read_text(encoding="utf-8").splitlines()]
    assert pinned == [label(*case) for case in CASES]
