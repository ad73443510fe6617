"""What each ready-made protocol does at each size, in counts; ``tests/golden/protocols.txt`` pins them."""

from __future__ import annotations

from pipesim.explain.lap_counters import Laps
from pipesim.explain.phases import PhaseLog
from pipesim.model.ending import Ending
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.engine import Simulation, simulate
from pipesim.timed.profile import load_profile
from tests.support.paths import GOLDEN
from tests.support.protocol_sizes import SIZES, Params

COUNTS = GOLDEN / "protocols.txt"
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
    assert (result.outcome, result.faults, result.deadlock) == (Ending.FINISHED, (), None), label(name, params)
    assert (laps.tests > 0) == any(op[0] in (Op.WAIT, Op.WAIT_UNLESS) for op in program.operations)
    assert not laps.disagreements, [found.claim(program) for found in laps.disagreements]
    assert not result.state.flights, "something is still under way when every agent has finished"
    phases = [phase for phases in log.phases() for phase in phases]
    completed = sum(phase.complete for phase in phases)
    seen = sum(len(phase.observers) for phase in phases)
    operations = sum(map(len, program.code))
    return f"{label(name, params)}: {operations} operations, {completed} phases, {seen} hand-offs"
