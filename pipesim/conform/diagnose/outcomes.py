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

from pipesim.conform.diagnose.examined import LaunchOutcome
from pipesim.conform.diagnose.random_schedule import random_schedule
from pipesim.errors import EvidenceError
from pipesim.model.ending import HUNG, TRAPPED, Ending
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.program import Program
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Trace

SCHEDULES = 64
_UNCERTAIN = frozenset({FaultKind.RACE, FaultKind.UNINITIALISED_READ})


def outcomes(
    program: Program, profile: Profile | None = None, schedules: int = SCHEDULES, seed: int = 0
) -> frozenset[LaunchOutcome]:
    """How ``program`` can end: by the timed engine, if a profile is given, and in ``schedules`` random schedules.

    In those, landings come whole or in pieces of 16 bytes, at any time. Same arguments, same set.
    """
    found: set[LaunchOutcome] = set()
    if profile is not None:
        run = simulate(program, profile)
        if run.outcome is not Ending.UNKNOWN:
            found |= _means(run.faults, ended=run.outcome is Ending.FINISHED)
    for n in range(schedules):
        walk = random_schedule(program, seed * 1_000_003 + n)
        if not walk.exhausted:
            found |= _means(walk.faults, ended=walk.ended)
    return frozenset(found)


def observed(trace: Trace) -> LaunchOutcome:
    """How the recorded (or simulated) run ended. EvidenceError if the trace does not say."""
    status = trace.meta.status
    if status == Ending.FINISHED:
        return LaunchOutcome.WRONG_DATA if trace.meta.wrong_tiles else LaunchOutcome.RIGHT
    if status in HUNG:
        return LaunchOutcome.HANG
    if status in TRAPPED:
        return LaunchOutcome.TRAP
    raise EvidenceError(f"the trace ended as “{status}”, which is not an outcome")


def _means(faults: Iterable[Fault], *, ended: bool) -> set[LaunchOutcome]:
    kinds = {fault.kind for fault in faults}
    if any(kind.traps for kind in kinds):
        return {LaunchOutcome.TRAP}
    if not ended:
        return {LaunchOutcome.HANG}
    if kinds & _UNCERTAIN:
        return {LaunchOutcome.RIGHT, LaunchOutcome.WRONG_DATA}
    return {LaunchOutcome.WRONG_DATA} if FaultKind.WRONG_ITEM in kinds else {LaunchOutcome.RIGHT}
