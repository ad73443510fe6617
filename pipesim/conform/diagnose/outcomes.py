"""How a run can end, and how a recorded one did: the question that every fault put into a kernel is asked.

What a run of the model says about the hardware:

* no agent can move and one has not finished: HANG; a rule broken at which the hardware traps: TRAP, whatever the data;
* all end and no data rule is broken: RIGHT;
* bytes of another item are read, and no race could have brought the right ones: WRONG_DATA;
* a race, or a read of bytes that nothing wrote: WRONG_DATA or RIGHT. A race may be won, and shared memory still holds
  what an earlier launch left there, which may be the very bytes.

The set is what the tried schedules show: more schedules can only add to it. It is not a proof that an outcome cannot
be.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipesim.conform.diagnose.examined import Outcome
from pipesim.conform.diagnose.random_schedule import wander
from pipesim.errors import EvidenceError
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.program import Program
from pipesim.timed.engine import Outcome as Ended
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Trace

SCHEDULES = 64
_UNCERTAIN = frozenset({FaultKind.RACE, FaultKind.UNINITIALISED_READ})


def outcomes(
    program: Program, profile: Profile | None = None, schedules: int = SCHEDULES, seed: int = 0
) -> frozenset[Outcome]:
    """How ``program`` can end: by the timed engine, if a profile is given, and in ``schedules`` random schedules.

    In those, landings come whole or in pieces of 16 bytes, at any time. Same arguments, same set.
    """
    found: set[Outcome] = set()
    if profile is not None:
        run = simulate(program, profile)
        if run.outcome is not Ended.UNKNOWN:
            found |= _means(run.faults, ended=run.outcome is Ended.FINISHED)
    for n in range(schedules):
        walk = wander(program, seed * 1_000_003 + n)
        if not walk.exhausted:
            found |= _means(walk.faults, ended=walk.ended)
    return frozenset(found)


def observed(trace: Trace) -> Outcome:
    """How the recorded (or simulated) run ended. EvidenceError if the trace does not say."""
    match trace.meta.status:
        case "finished":
            return Outcome.WRONG_DATA if trace.meta.wrong_tiles else Outcome.RIGHT
        case "deadline" | "deadlock":
            return Outcome.HANG
        case "trap" | "fault":
            return Outcome.TRAP
        case other:
            raise EvidenceError(f"the trace ended as “{other}”, which is not an outcome")


def _means(faults: Iterable[Fault], *, ended: bool) -> set[Outcome]:
    kinds = {fault.kind for fault in faults}
    if any(kind.traps for kind in kinds):
        return {Outcome.TRAP}
    if not ended:
        return {Outcome.HANG}
    if kinds & _UNCERTAIN:
        return {Outcome.RIGHT, Outcome.WRONG_DATA}
    return {Outcome.WRONG_DATA} if FaultKind.WRONG_ITEM in kinds else {Outcome.RIGHT}
