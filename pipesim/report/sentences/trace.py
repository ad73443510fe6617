"""How a trace agrees with its program, in words: the reason where it does not agree, and what it was compared by."""

from pipesim.answers.views.conclusion import Conclusion
from pipesim.answers.views.run import SimulationLine
from pipesim.answers.views.summary import TraceLine
from pipesim.answers.views.trace import CAPTURED_NOW, CompareReport, PeriodCheck, TraceComparison, VerifyReport
from pipesim.conform.agreement import Agreement, Reason, ReasonKind
from pipesim.conform.times import NoTime
from pipesim.errors import EvidenceError, HardwareError, NoTraceError
from pipesim.model.ending import Ending
from pipesim.model.finding import Verdict
from pipesim.report.sentences.check import limit_words
from pipesim.report.sentences.times import time_words, times_clause
from pipesim.report.text.words import iterations, number
from pipesim.trace.schema import Trace

HANGS_TOO = "the recorded run hung, and the model hangs in the same state"
FAULT_NAMED = "an injected fault, which is named"


def compare_sentence(report: CompareReport) -> str:
    """The verdict on one trace; of one that was captured also where it is."""
    found = report.comparison
    if report.captured:
        why = comparison_reason(found) or _agreement(found)
        said = f"recorded {number(len(found.measured.events))} events in {found.source}"
        return said + (f"; {why}" if why else _outputs(found.measured))
    why = comparison_reason(found)
    if why:
        return why
    who = "simulated" if is_simulated(found) else "recorded"
    conformance = found.conformance
    part = f" in {iterations(conformance.window)}" if conformance.hides else ""
    said = _agreement(found) or f"the {who} trace conforms to the protocol{part}"
    return f"{said} ({device_words(found)}){_and_times(found)}"


def side_words(found: TraceComparison) -> str:
    """What the times of a trace are called."""
    return "trace" if is_simulated(found) else "measured"


def comparison_reason(found: TraceComparison) -> str:
    """Why a trace does not agree, why that is unknown, or how far its period is off; "" if nothing is wrong."""
    if found.reason is not None:
        return _reason_words(found.reason, _divergence_words(found))
    if found.time.why is NoTime.LIMIT:
        return f"the order of events agrees; times: {time_words(found.time, side_words(found))}"
    return period_words(found.period, "the simulated period is", "") if found.period is not None else ""


def trace_line_reason(line: TraceLine) -> str:
    """The same for one of many traces, which names its divergence by its claim."""
    if line.reason is None:
        return line.unusable
    return line.claim or _reason_words(line.reason, "")


def results_words(reason: Reason | None) -> str:
    """What is wrong with a run whose records conform; "" if nothing, or if it is the records that differ."""
    results = (ReasonKind.WRONG_TILES, ReasonKind.WRONG_OUTPUT, ReasonKind.GAVE_UP)
    return _reason_words(reason, "") if reason is not None and reason.kind in results else ""


def period_words(found: PeriodCheck, whose: str, than: str) -> str:
    """How far a period is outside its tolerance, or that there is none; "" if it is within."""
    if found.off is None:
        return "no period was measured, so the tolerance cannot be applied"
    if abs(found.off) <= found.tolerance:
        return ""
    return f"{whose} {_off_by(found.off)} off{than}, outside {found.tolerance:g} %"


def is_simulated(found: TraceComparison) -> bool:
    """Whether the trace is itself simulated: nothing of it may be called hardware or measured."""
    return found.measured.meta.source == "simulation"


def device_words(found: TraceComparison) -> str:
    """The device, or that it was simulated."""
    return f"simulation of {found.device}" if is_simulated(found) else found.device


def source_words(found: TraceComparison) -> str:
    """The file of a trace, or that it is a fresh one."""
    return "captured now" if found.source == CAPTURED_NOW else found.source


def agreeing_device(found: TraceComparison) -> str:
    """A device that agrees, with the iterations where only some were kept."""
    part = f", {iterations(found.conformance.window)}" if found.conformance.hides else ""
    return device_words(found) + part


def _and_times(found: TraceComparison) -> str:
    """How its times compare; "" of a run that ended early or has an injected fault."""
    if found.agreement is not Agreement.CONFORMS:
        return ""
    return f"; times: {time_words(found.time, side_words(found))}"


def _agreement(found: TraceComparison) -> str:
    """What a run that agrees did nevertheless, "" if it did what the protocol says."""
    match found.agreement:
        case Agreement.HANGS_TOO:
            return HANGS_TOO if not is_simulated(found) else HANGS_TOO.replace("recorded", "simulated")
        case Agreement.FAULT_NAMED:
            return f"the kernel has {FAULT_NAMED}{_explanation(found)}"
        case _:
            return ""


def _divergence_words(found: TraceComparison) -> str:
    """How the records leave the program, with the one edit that explains them."""
    divergence = found.conformance.divergence
    return divergence.kind.value + _explanation(found) if divergence is not None else ""


def _explanation(found: TraceComparison) -> str:
    """The claim of the edit that explains the records, if there is just one."""
    diagnosis = found.examination.diagnosis if found.examination else None
    one = diagnosis is not None and len(diagnosis.explanations) == 1
    return f": {diagnosis.explanations[0].claim}" if diagnosis is not None and one else ""


#: Said after how the records leave the program.
_BESIDE = (ReasonKind.RECORDS_CONTRADICT, ReasonKind.BARRIERS_DIFFER, ReasonKind.OTHER_FAULT)


def _reason_words(reason: Reason, divergence: str) -> str:
    """A reason in words; ``divergence``: how the records leave the program, if they do."""
    if reason.kind is ReasonKind.DIVERGES:
        return divergence
    s, differ, were = ("", "differs", "was") if reason.count == 1 else ("s", "differ", "were")
    said = reason.kind.value.format(count=number(reason.count), name=reason.name, s=s, differ=differ, were=were)
    return _join(divergence, said) if reason.kind in _BESIDE else said


def _join(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _off_by(percentage: float) -> str:
    """A percentage with its sign, to a hundredth, as it is compared with a tolerance: ``+0.25 %``, ``−36.51 %``."""
    return f"{percentage:+.2f} %".replace("-", "−")


def _outputs(trace: Trace) -> str:
    """What is known about the kernel's outputs."""
    outputs = trace.meta.extra.get("outputs", {})
    words = [
        f"{name} is {hashes[0]} after each launch" if len(hashes) == 1 else f"{name} differs between launches"
        for name, hashes in outputs.items()
    ]
    return "".join(f"; {word}" for word in words)


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
