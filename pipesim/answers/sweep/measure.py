"""One configuration of a program: proved, simulated, and what it takes of the hardware. The one place of a sweep, and
of advice, that simulates.
"""

from dataclasses import dataclass

from pipesim.answers.views.sweep import Outcome, Resources, Times, WorkUnit
from pipesim.conform.compare import period_pair
from pipesim.conform.result import LimitKind
from pipesim.conform.steady import bottleneck
from pipesim.model.ending import Ending
from pipesim.model.finding import Verdict
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.model.steady import iterations
from pipesim.prove.check import Check
from pipesim.timed.bounds.critical import least_period
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile

MOST_STATES = 20_000  #: of the search for one configuration: a few seconds
MOST_STEPS = 2_000_000  #: operations of one simulation: about a minute
_MOSTLY = 2000  #: half of a run, as a factor in thousandths: then a role that feeds the matrix engine is at its pace
_WARP = 32
#: Of what ran to its end: what it is by its verdict.
OF_VERDICT = {Verdict.PROVED: Outcome.USABLE, Verdict.REFUTED: Outcome.REFUTED, Verdict.UNKNOWN: Outcome.UNDECIDED}


@dataclass(frozen=True)
class SimulationSummary:
    """A simulation in short: how it ended, its times if it finished, else what failed ("" if nothing did)."""

    outcome: Ending
    times: Times | None
    why: str = ""


def simulate_once(program: Program, profile: Profile, max_steps: int = MOST_STEPS) -> SimulationSummary:
    """Simulate a program once."""
    result = simulate(program, profile, max_steps=max_steps)
    if result.outcome is not Ending.FINISHED or result.faults:
        wrong = result.faults[0].kind.value if result.faults else "deadlock"
        return SimulationSummary(result.outcome, None, "" if result.outcome is Ending.UNKNOWN else wrong)
    bound = least_period(program, profile)
    amount, unit = work_of(program)
    limited = bottleneck(result.trace)
    times = Times(
        cycles=result.cycles,
        period_millicycles=period_pair(program, profile, result.trace, traced=False).simulated,
        work=amount,
        unit=unit,
        limited_by=limited,
        at_matrix=limited is not None
        and limited.limit is LimitKind.ROLE
        and limited.role in _matrix_roles(program)
        and unit is WorkUnit.MATRIX
        and _MOSTLY * amount >= 1000 * result.cycles,
        bound_by=bound.by if bound else "",
        iterations=iterations(program),
    )
    return SimulationSummary(result.outcome, times)


def _matrix_roles(program: Program) -> set[str]:
    """The roles that give work to the matrix engine."""
    return {
        agent.role
        for agent, code in zip(program.agents, program.code, strict=True)
        if any(op[0] == Op.ENGINE_WORK for op in code)
    }


def work_of(program: Program) -> tuple[int, WorkUnit]:
    """The work of a run that does not depend on how it is cut into tiles: of one CTA, the average of a cluster.

    Cycles of matrix multiplication at the full rate of an SM, else bytes that are loaded.
    """
    matrix = sum(operand(op, "cycles") for op in program.operations if op[0] == Op.ENGINE_WORK)
    if matrix:
        return matrix // program.ctas, WorkUnit.MATRIX
    loaded = sum(operand(op, "bytes") for op in program.operations if op[0] == Op.TMA_LOAD)
    return loaded // program.ctas, WorkUnit.BYTES


def resources_of(program: Program) -> Resources:
    """What the first CTA takes of its SM.

    Registers are those that its warps ask for in the end, else those that it is launched with.
    """
    held: dict[int, int] = {}
    for agent, code in zip(program.agents, program.code, strict=True):
        if agent.cta == 0:
            held.setdefault(agent.warp, program.launch_registers)
            for op in code:
                if op[0] == Op.SETMAXNREG:
                    held[agent.warp] = operand(op, "registers")
    known = all(held.values())
    return Resources(program.smem_bytes, _WARP * len(held), _WARP * sum(held.values()) if known else 0)


def why_not(found: Check) -> str:
    """What a verdict other than proved rests on, as a fact: the kind of the first finding, or the limit."""
    if found.verdict is Verdict.PROVED:
        return ""
    return found.refutations[0].kind.value if found.refutations else found.how.value
