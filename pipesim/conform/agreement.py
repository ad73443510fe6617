"""Whether the model follows a recorded run, also one that hung or has an injected fault: the one answer to that.

A kernel that hung shows nothing against the model if the model, replaying its records, is stuck at the same place; one
with an injected fault is understood if that fault is among the edits that explain all of its records.
"""

from dataclasses import dataclass, replace
from enum import Enum

from pipesim.conform.diagnose.examination import Autopsy, Examination
from pipesim.conform.result import Conformance, DivergenceKind, TraceVerdict
from pipesim.model.ending import HUNG, Ending
from pipesim.model.program import Program
from pipesim.trace.schema import Trace, TraceMeta


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

    @property
    def verdict(self) -> TraceVerdict:
        """The same in three words."""
        if self is Agreement.UNKNOWN:
            return TraceVerdict.UNKNOWN
        return TraceVerdict.AGREES if self.agrees else TraceVerdict.DIFFERS


class ReasonKind(Enum):
    """Why a run does not agree, or why that is not known. The value is what a report says, or a part of that."""

    DIVERGES = "diverges"  #: its records leave the program: see the divergence of the conformance
    RECORDS_CONTRADICT = "its records contradict each other"  #: see the autopsy
    BARRIERS_DIFFER = "the barrier words read afterwards differ for {count} barrier{s}"
    OTHER_FAULT = "{name} was injected into the kernel and is not found"
    WRONG_TILES = "{count} tile{s} with wrong data"
    WRONG_OUTPUT = "output {name} differs from the expected values ({count} element{s} {differ})"
    GAVE_UP = "a launch did not finish"  #: another one of the same recording
    RECORDS_LOST = "{count} record{s} {were} lost"
    CUT_OFF = "the simulation ran out of its budget before it ended"
    NO_CTA = "the trace has no recorded CTA"
    NO_EVENT = "the trace has no event to compare with the protocol"  #: none was recorded, or none in the window
    NOT_FOLLOWED = "the program read from the PTX ends before the trace does: see what was not followed"
    END_NOT_SEEN = "the trace does not show what the kernel did after its window"


@dataclass(frozen=True)
class Reason:
    """Why a run does not agree, as data: what ``count`` and ``name`` are, the kind says."""

    kind: ReasonKind
    count: int = 0
    name: str = ""


@dataclass(frozen=True)
class TraceAgreement:
    """The answer on one trace: the agreement, the reason where it does not agree, and what both rest on.

    ``examination`` is None where nothing failed and no fault was injected.
    """

    agreement: Agreement
    reason: Reason | None
    conformance: Conformance
    examination: Examination | None


def agreement_of(program: Program, trace: Trace, found: Conformance | None = None) -> TraceAgreement:
    """How ``trace`` compares with ``program``; ``found`` is what :func:`conform` says about both, if known.

    EvidenceError if the trace is another kernel's. That the data of a run were wrong or that another launch did not
    finish counts against it, unless it hangs where the model does or its injected fault explains it.
    """
    from pipesim.conform.diagnose.diagnose import examine  # both simulate: a page about recordings does not
    from pipesim.conform.replay.conformance import conform

    found = conform(program, trace) if found is None else found
    seen = examine(program, trace, found)
    agreement, reason = _with_results(trace, found, *_of_behaviour(trace.meta, found, seen))
    return TraceAgreement(agreement, reason, found, seen)


def agreement_of_kernel(program: Program, trace: Trace, found: Conformance) -> TraceAgreement:
    """The same for a program that was read from the kernel's PTX: an injected fault is in both.

    Of a program that was not followed to its end, only an event that differs shows something.
    """
    agreement, reason = _of_behaviour(replace(trace.meta, fault=""), found, None)
    differs = found.divergence is not None and found.divergence.kind is DivergenceKind.OTHER_EVENT
    if agreement is Agreement.DIFFERS and not program.coverage.complete and not differs:
        agreement, reason = Agreement.UNKNOWN, Reason(ReasonKind.NOT_FOLLOWED)
    else:
        agreement, reason = _with_results(trace, found, agreement, reason)
    return TraceAgreement(agreement, reason, found, None)


def _with_results(
    trace: Trace, found: Conformance, agreement: Agreement, reason: Reason | None
) -> tuple[Agreement, Reason | None]:
    """What the records say, and then the data of the run and its other launches."""
    if agreement in (Agreement.CONFORMS, Agreement.UNKNOWN):
        wrong = _wrong_results(trace.meta)
        if wrong is not None:
            agreement, reason = Agreement.DIFFERS, wrong
        elif agreement is Agreement.UNKNOWN:
            reason = _why_unknown(trace, found)
    return agreement, reason


def _of_behaviour(
    meta: TraceMeta, found: Conformance, seen: Examination | None
) -> tuple[Agreement, Reason | None]:  # fmt: skip
    """What the records and the barriers say; data and other launches are not considered."""
    if found.verdict is TraceVerdict.AGREES:
        return Agreement.CONFORMS, None
    if found.verdict is TraceVerdict.UNKNOWN:
        return Agreement.UNKNOWN, None
    contradicted = _contradiction(seen.autopsy) if seen is not None and seen.autopsy is not None else None
    if contradicted is not None:
        return Agreement.DIFFERS, contradicted
    if meta.fault:
        diagnosis = seen.diagnosis if seen is not None else None
        if diagnosis is not None and diagnosis.named:
            return Agreement.FAULT_NAMED, None
        return Agreement.DIFFERS, Reason(ReasonKind.OTHER_FAULT, name=meta.fault)
    if meta.status in HUNG and found.divergence is not None and found.divergence.stuck_too:
        return Agreement.HANGS_TOO, None
    return Agreement.DIFFERS, Reason(ReasonKind.DIVERGES)


def _contradiction(autopsy: Autopsy) -> Reason | None:
    """What speaks against the records themselves, None if nothing does."""
    if autopsy.contradiction:
        return Reason(ReasonKind.RECORDS_CONTRADICT)
    if autopsy.agree is False:
        return Reason(ReasonKind.BARRIERS_DIFFER, sum(barrier.agrees is False for barrier in autopsy.barriers))
    return None


def _wrong_results(meta: TraceMeta) -> Reason | None:
    """What a recording says against its kernel, whatever its events: wrong tiles, wrong outputs; None if nothing."""
    if meta.wrong_tiles:
        return Reason(ReasonKind.WRONG_TILES, meta.wrong_tiles)
    outputs = meta.extra.get("wrong_outputs")
    if isinstance(outputs, dict) and outputs:
        name, wrong = next(iter(outputs.items()))
        return Reason(ReasonKind.WRONG_OUTPUT, wrong, name)
    return Reason(ReasonKind.GAVE_UP) if meta.extra.get("gave_up") else None


def _why_unknown(trace: Trace, found: Conformance) -> Reason:
    if found.lost:
        return Reason(ReasonKind.RECORDS_LOST, found.lost)
    if trace.meta.status == Ending.UNKNOWN:
        return Reason(ReasonKind.CUT_OFF)
    if not found.ctas:
        return Reason(ReasonKind.NO_CTA)
    return Reason(ReasonKind.END_NOT_SEEN if found.events else ReasonKind.NO_EVENT)
