"""What each ready-made protocol does at each size, in counts; ``tests/golden/protocols.txt`` pins them."""

from pipesim.explain.lap_counters import Laps
from pipesim.model.ending import Ending
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.engine import Simulation, simulate
from pipesim.timed.profile import load_profile
from tests.support.paths import GOLDEN
from tests.support.phase_log import PhaseLog
from tests.support.protocol_sizes import SIZES, Params

COUNTS = GOLDEN / "protocols.txt"
CASES = [(name, params) for name, sizes in SIZES.items() for params in sizes]


def label(name: str, params: Params) -> str:
    return " ".join([name, *(f"{k}={v}" for k, v in params.items())])


#: Protocols some of whose agents wait for some phases only: counters take that for the same phase again.
SOME_PHASES = ("cutlass_sm90_pingpong", "attention_sm100")


def run(program: Program) -> tuple[Simulation, PhaseLog, Laps]:
    log, laps = PhaseLog(program), Laps(program)
    return simulate(program, load_profile("h100"), observers=[log, laps]), log, laps


def counted(name: str, params: Params) -> str:
    """One line of the pinned counts: operations of all agents, phases completed, waits that saw one."""
    program = find(name).build(params)
    result, log, laps = run(program)
    assert (result.outcome, result.faults, result.deadlock) == (Ending.FINISHED, (), None), label(name, params)
    assert (laps.tests > 0) == any(op[0] in (Op.WAIT, Op.WAIT_UNLESS) for op in program.operations)
    assert name in SOME_PHASES or not laps.disagreements, [found.claim(program) for found in laps.disagreements]
    assert not result.state.flights, "something is still under way when every agent has finished"
    operations, seen = sum(map(len, program.code)), sum(map(len, log.seen.values()))
    return f"{label(name, params)}: {operations} operations, {len(log.completed)} phases, {seen} hand-offs"
