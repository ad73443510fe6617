"""Where no other number or parity is the correction: barriers of two pipelines, and waits that no operation serves."""

from __future__ import annotations

from pipesim.explain.blocked import committed, contributes
from pipesim.model.finding import Blocked, Deadlock
from pipesim.model.groups import ARRIVALS, ASKS
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program

_MOST = 2  #: barriers that are named


def own_barriers(program: Program) -> str:
    """The correction of pipelines that overlap; "" if none do."""
    return f"give each pipeline its own barriers: {'; '.join(program.overlaps)}" if program.overlaps else ""


def correction_of(program: Program, found: Deadlock, asked: Program) -> str:
    """What fixes a deadlock whatever the counts and parities are; "" if nothing is known. ``asked``: at other sizes."""
    if program.overlaps:
        return own_barriers(program)
    if found.cut:
        return ""  # what brings it may follow a wait, where nothing was read
    unserved = next((each for each in found.blocked if is_unserved(program, each, asked)), None)
    if unserved is None:
        return ""
    barrier, agent = unserved.barrier, unserved.agent
    lacks = f"no role arrives on {barrier}" if unserved.arrivals_missing else f"no copy lands on {barrier}"
    do = "add the arrive" if unserved.arrivals_missing else "add the copy"
    others = _unawaited(program) if unserved.arrivals_missing else []
    if others:
        named = " and ".join(others[:_MOST]) + (" and others" if len(others) > _MOST else "")
        return f"{lacks}, and no role waits for {named}, on which arrivals are made: use one barrier for both"
    return f"{lacks}: {do} to the role that {agent} waits for, or omit this wait"


def is_unserved(program: Program, blocked: Blocked, asked: Program) -> bool:
    """True of an agent that waits for an mbarrier to which no operation of the program brings what is missing.

    Nor does one of the program that was ``asked`` about, whose loops may have iterations that the other has not.
    """
    missing = {"arrival": blocked.arrivals_missing > 0, "bytes": blocked.bytes_missing > blocked.bytes_in_flight}
    barriers = {program.barrier_name(n) for n in range(len(program.barriers))}
    if blocked.barrier not in barriers or blocked.suppliers or not any(missing.values()):
        return False
    at = [n for n in range(len(asked.barriers)) if asked.barrier_name(n) == blocked.barrier]
    brings = [contributes(asked, n, part) for n in at for part, lacking in missing.items() if lacking]
    return not any(each(op) for each in brings for code in asked.code for op in code)


def _unawaited(program: Program) -> list[str]:
    """Barriers on which agents arrive, and for which none waits or asks."""
    served: dict[int, None] = {}
    awaited: set[int] = set()
    for code in program.code:
        for op in code:
            if op[0] in ARRIVALS or op[0] == Op.CP_ASYNC_ARRIVE:
                served[operand(op, "barrier")] = None
            elif op[0] in ASKS:
                awaited.add(operand(op, "barrier"))
            else:
                served |= dict.fromkeys(committed(program, op))
    return [program.barrier_name(n) for n in served if n not in awaited]
