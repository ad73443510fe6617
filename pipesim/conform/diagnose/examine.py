"""What failed in a run that did not do what its protocol says, or was given an injected fault: all that is known."""

from __future__ import annotations

from pipesim.conform.diagnose.autopsy import autopsy
from pipesim.conform.diagnose.code_edits import CodeEdit, in_place
from pipesim.conform.diagnose.diagnose import diagnose, edited
from pipesim.conform.diagnose.examined import Autopsy, Examination, LaunchOutcome
from pipesim.conform.diagnose.outcomes import observed, outcomes
from pipesim.conform.replay.clusters import as_clusters
from pipesim.conform.replay.conformance import recorded_ctas
from pipesim.conform.result import Conformance
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.trace.schema import Trace

_SCHEDULES = 32  #: tried to see how the explaining protocol can end


def examine(program: Program, trace: Trace, found: Conformance) -> Examination | None:
    """Everything about a trace that leaves its protocol was made wrong or held wrong data; None for any other."""
    if found.divergence is None and not trace.meta.fault and not trace.meta.wrong_tiles:
        return None
    trace = as_clusters(program, trace)
    diagnosis = diagnose(program, trace, found)
    outcome = None if trace.meta.status == Ending.UNKNOWN else observed(trace)
    possible: set[LaunchOutcome] = set()
    if diagnosis is not None and diagnosis.explanations:
        possible = set(outcomes(edited(program, diagnosis.explanations[0].edit), None, _SCHEDULES))
        possible |= {outcome} if outcome else set()
    ways = tuple(each for each in LaunchOutcome if each in possible)
    explained = diagnosis.explanations[0].edit if diagnosis is not None and diagnosis.explanations else None
    really = program
    if isinstance(explained, CodeEdit):
        really = in_place(program, explained)
    elif explained is not None:
        really = program = edited(program, explained)  # its records are those of the operations that are left
    return Examination(outcome, diagnosis, ways, _opened(really, program, trace, found))


def _opened(program: Program, meant: Program, trace: Trace, found: Conformance) -> Autopsy | None:
    """The autopsy of the CTA where it shows: the one that diverges, or the first in which somebody waits.

    ``program``: what the kernel does, as far as is known; ``meant``: its protocol.
    """
    if trace.meta.status in (Ending.FINISHED, Ending.UNKNOWN):
        return None
    first = [found.divergence.cta] if found.divergence else []
    opened = [autopsy(trace, cta, program, meant) for cta in dict.fromkeys([*first, *recorded_ctas(trace)])]
    present = [a for a in opened if a is not None]
    return next((a for a in present if a.waiting or a.trap), next(iter(present), None))
