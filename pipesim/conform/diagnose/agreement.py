"""Whether the model follows a recorded run, also one that hung or was given an injected fault.

A kernel that is to hang shows nothing against the model if the model, replaying its records, is stuck at the same
place; one that was made wrong is understood if the fault that was made is among the edits that explain all of its
records.
"""

from __future__ import annotations

from enum import Enum

from pipesim.conform.diagnose.examined import Examination
from pipesim.conform.result import Conformance, DivergenceKind
from pipesim.model.finding import Verdict
from pipesim.trace.schema import TraceMeta


class Agreement(Enum):
    """How one recorded run compares with the program that its parameters make."""

    CONFORMS = "conforms"
    HANGS_TOO = "hangs where the model also blocks"
    FAULT_NAMED = "has an injected fault, which is named"
    DIFFERS = "differs"
    UNKNOWN = "unknown"

    @property
    def agrees(self) -> bool:
        """True if the model follows the run."""
        return self not in (Agreement.DIFFERS, Agreement.UNKNOWN)


def agreement(meta: TraceMeta, found: Conformance, seen: Examination | None) -> Agreement:
    """What ``conform`` and ``examine`` say of a trace, in one word; of its data and other launches nothing is asked."""
    if found.verdict is Verdict.PROVED:
        return Agreement.CONFORMS
    if found.verdict is Verdict.UNKNOWN:
        return Agreement.UNKNOWN
    autopsy = seen.autopsy if seen is not None else None
    if autopsy is not None and (autopsy.contradiction or autopsy.agree is False):
        return Agreement.DIFFERS  # what was left in the barriers speaks against the records
    if meta.fault:
        diagnosis = seen.diagnosis if seen is not None else None
        return Agreement.FAULT_NAMED if diagnosis is not None and diagnosis.named else Agreement.DIFFERS
    first = found.divergence
    assert first is not None
    stuck_too = first.kind is DivergenceKind.NOT_FINISHED and first.stuck is not None
    return Agreement.HANGS_TOO if stuck_too else Agreement.DIFFERS
