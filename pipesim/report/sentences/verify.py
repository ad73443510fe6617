"""The conclusion of the verification of one protocol, in one sentence."""

from __future__ import annotations

from pipesim.answers.views.conclusion import Conclusion
from pipesim.answers.views.run import SimulationLine
from pipesim.answers.views.trace import VerifyReport
from pipesim.conform.agreement import Agreement, ReasonKind
from pipesim.errors import EvidenceError, HardwareError, NoTraceError
from pipesim.model.ending import Ending
from pipesim.model.finding import Verdict
from pipesim.report.sentences.check import limit_words
from pipesim.report.sentences.times import times_clause
from pipesim.report.sentences.trace import HANGS_TOO, agreeing_device, comparison_reason, device_words, side_words
from pipesim.report.text.words import number


def verify_sentence(report: VerifyReport) -> str:
    """The first reason for the conclusion, or that all agrees; and which recorded runs hung as the model does.

    That the order of events agrees says nothing about the times: these have a clause of their own.
    """
    conclusion = report.conclusion
    if conclusion is not Conclusion.AGREES:
        hung = [device_words(found) for found in report.hardware if found.agreement is Agreement.HANGS_TOO]
        also = f"; {HANGS_TOO} ({', '.join(hung)})" if hung else ""
        return next(said for its, said in _reasons(report) if its is conclusion) + also
    if report.left_out:
        return f"{_without_hardware(report)} (hardware left out)"
    devices = ", ".join(agreeing_device(found) for found in report.hardware)
    said = f"{_without_hardware(report)}; the order of events agrees with the hardware ({devices})"
    names, sides = ([words(found) for found in report.hardware] for words in (device_words, side_words))
    return f"{said}; {times_clause(report.hardware, names, sides)}" if report.hardware else said


def _reasons(report: VerifyReport) -> list[tuple[Conclusion, str]]:
    """Every part that does not agree, with its conclusion."""
    reasons = [(line.conclusion, _simulation_words(line)) for line in report.simulations]
    if report.proof.verdict is Verdict.REFUTED:
        reasons.append((Conclusion.WRONG, "the protocol fails in the schedule above"))
    elif report.proof.verdict is Verdict.UNKNOWN:
        said = f"neither proved nor refuted: {limit_words(report.proof)}"
        reasons.append((Conclusion.UNKNOWN, said))
    for found in report.hardware:
        said = f"{device_words(found)}: {comparison_reason(found)}"
        empty = found.reason is not None and found.reason.kind is ReasonKind.NO_EVENT
        reasons.append((found.conclusion, f"{_without_hardware(report)}, but {said}" if empty else said))
    if report.interrupted:
        reasons.append((Conclusion.UNKNOWN, f"{_without_hardware(report)}; interrupted before {_left_undone(report)}"))
    if report.cut is not None:
        said = f"the {report.cut.value} was reached before everything was simulated and compared"
        reasons.append((Conclusion.UNKNOWN, f"{_without_hardware(report)}, but {said}"))
    if report.missing is not None:
        reasons.append((Conclusion.UNKNOWN, f"{_without_hardware(report)}, but {_missing_words(report.missing)}"))
    return reasons


def _without_hardware(report: VerifyReport) -> str:
    """What the proof and the simulations say."""
    wrong = next((line for line in report.simulations if line.conclusion is not Conclusion.AGREES), None)
    said = _simulation_words(wrong) if wrong is not None else "the simulation finishes without a finding"
    if report.interrupted and not report.simulations:
        said = ""
    proved = "proved for every schedule" if report.proof.verdict is Verdict.PROVED else ""
    return "; ".join(filter(None, (proved, said)))


def _left_undone(report: VerifyReport) -> str:
    """What an interrupt left undone, as far as it is not said about the proof."""
    if not report.simulations:
        return "the simulation"
    return "the end of the simulations" if report.left_out else "every trace was compared"


def _simulation_words(line: SimulationLine) -> str:
    """Why a simulation does not agree, "" if it does."""
    if line.outcome is Ending.DEADLOCK:
        return "the simulation ends in a deadlock"
    if line.broken is not None:
        return f"the simulation breaks a rule: {line.broken.value}"
    if line.outcome is Ending.UNKNOWN:
        if line.cut is not None:
            return f"the {line.cut.value} ended the simulation"
        return f"the simulation ran out of its budget of {number(line.budget)} operations"
    return ""


def _missing_words(missing: EvidenceError) -> str:
    if isinstance(missing, NoTraceError):
        return "there is nothing to compare it with"
    return "the GPU gave no trace" if isinstance(missing, HardwareError) else "the recorded evidence cannot be used"
