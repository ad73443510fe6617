"""What JSON says about an answer beside its data: the sentences that a painted report makes of the same."""

from dataclasses import asdict

from pipesim.answers.views.autopsy import AutopsyReport
from pipesim.answers.views.check import AgainstReport, CheckReport, WalkReport
from pipesim.answers.views.conclusion import VerdictScope
from pipesim.answers.views.redundant import RedundantReport
from pipesim.answers.views.sequence import SharedBytes
from pipesim.answers.views.summary import Failure, ProtocolReport, SummaryReport, TraceLine
from pipesim.answers.views.sweep import Advice, AdviseReport, Configuration, SweepReport
from pipesim.answers.views.trace import CompareReport, PairReport, TraceComparison, VerifyReport
from pipesim.confirm.report import ConfirmReport, StressReport
from pipesim.conform.times import TimeComparison
from pipesim.explain.sync_changes import SyncChange
from pipesim.model.coverage import NotJudged
from pipesim.model.finding import Deadlock
from pipesim.prove.any_size.family import ProvedRange
from pipesim.report.findings.brief import brief_of
from pipesim.report.findings.finding import claim_of
from pipesim.report.pages.checks.against import against_sentence, change_sentence
from pipesim.report.pages.checks.redundant import redundant_sentence
from pipesim.report.pages.checks.sequence import shared_claim
from pipesim.report.pages.programs.autopsy import autopsy_brief
from pipesim.report.pages.programs.confirm import chip_sentence
from pipesim.report.pages.programs.stress import stress_sentence
from pipesim.report.pages.protocols.advise import advise_members
from pipesim.report.sentences.check import (
    assumptions_counted,
    check_sentence,
    how_words,
    not_judged_words,
    walk_sentence,
    why_not_every,
)
from pipesim.report.sentences.pair import pair_sentence
from pipesim.report.sentences.stage import failure_words
from pipesim.report.sentences.sweep import sweep_members
from pipesim.report.sentences.times import time_words
from pipesim.report.sentences.trace import (
    compare_sentence,
    device_words,
    source_words,
    trace_line_reason,
    verify_sentence,
)


def in_words(value: object) -> dict[str, object]:  # one case a class
    """The members that an object of JSON gets beside its fields, or in place of them; none for most."""
    match value:
        case CheckReport():
            also = [kind.value for kind in value.also]
            said = {"how": how_words(value), "said": check_sentence(value), "also": also}
            return said | {"brief": asdict(brief_of(value))}
        case AgainstReport():
            return {"said": against_sentence(value), "ok": value.conclusion.ok}
        case SweepReport() | Configuration():
            return sweep_members(value)
        case AdviseReport() | Advice():
            return advise_members(value)
        case RedundantReport():
            why = value.withheld.value if value.withheld is not None else ""
            return {"said": redundant_sentence(value), "withheld": why}
        case ProvedRange():
            return {"why": why_not_every(value)}
        case TimeComparison():
            return {"said": time_words(value)}
        case WalkReport():
            return {"said": walk_sentence(value)}
        case TraceComparison():
            named: dict[str, object] = {"source": source_words(value), "device": device_words(value)}
            return named | {"behaviour": value.behaviour.name.lower()}
        case VerifyReport():
            return {"verdict": verify_sentence(value), "ok": value.conclusion.ok}
        case CompareReport():
            return {"verdict": compare_sentence(value), "ok": value.conclusion.ok}
        case PairReport():
            apart = {"behaviour": value.behaviour.name.lower(), "time": value.time.name.lower()}
            return {"verdict": pair_sentence(value), "ok": value.conclusion.ok, **apart}
        case ProtocolReport() | SummaryReport():
            return {"ok": value.conclusion.ok}
        case _:
            return _of_part(value)


def _of_part(value: object) -> dict[str, object]:
    """The same of what is part of an answer, and of one that has a brief alone."""
    match value:
        case AutopsyReport():
            return {"brief": asdict(autopsy_brief(value))}
        case ConfirmReport():
            return {"said": [chip_sentence(each, value.device.name) for each in value.findings_on_chip]}
        case StressReport():
            return {"said": stress_sentence(value)}
        case SyncChange():
            return {"said": change_sentence(value)}
        case Deadlock():
            return {"claim": claim_of(value)}
        case SharedBytes():
            return {"claim": shared_claim(value)}
        case VerdictScope():
            return {"assumptions": [asdict(each) for each in assumptions_counted(value)]}
        case NotJudged():
            return {"said": not_judged_words(value)}
        case TraceLine():
            return {"why": trace_line_reason(value), "behaviour": value.behaviour.name.lower()}
        case Failure():
            return {"what": failure_words(value)}
        case _:
            return {}
