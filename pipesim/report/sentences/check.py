"""The verdict for every schedule in words, and what is known about one schedule."""

from __future__ import annotations

from typing import assert_never

from pipesim.answers.views.check import CheckReport, LeftOut, ProvedRange, WalkReport
from pipesim.model.finding import Deadlock, Verdict
from pipesim.prove.check import How
from pipesim.report.sentences.scope import scope_words
from pipesim.report.text.words import count


def check_sentence(report: CheckReport) -> str:
    """The verdict in one line; it says for which sizes."""
    name = report.heading.protocol
    if report.replayed is not None:
        wrong = report.verdict is Verdict.REFUTED
        return f"{name} fails in this schedule" if wrong else "no finding at the end of this schedule"
    return f"{verdict_words(report)}, {scope_words(report)}"


def verdict_words(report: CheckReport) -> str:
    """The verdict without its scope."""
    name = report.heading.protocol
    match report.verdict:
        case Verdict.PROVED:
            return f"proved: no schedule of {name} deadlocks or breaks a rule"
        case Verdict.REFUTED:
            fails = f"a schedule of {name} fails" if report.quick else f"{name} fails in the schedule above"
            return f"refuted: {fails}{_not_read_words(report.heading.coverage.stopped)}"
        case Verdict.UNKNOWN if report.how is How.CUT:
            return f"unknown: {name} was not followed to its end"
        case Verdict.UNKNOWN if report.how is How.PERHAPS:
            return f"unknown: what fails in {name} may not happen, as values decide that are not known"
        case Verdict.UNKNOWN if report.how is How.UNREAD:
            return f"unknown: {name} has accesses that were not understood, and that may touch what others use"
        case Verdict.UNKNOWN if report.how is How.UNSIZED:
            maps = "; ".join(report.heading.coverage.unsized)
            return f"unknown: the bytes of copies in {name} are not known, without a box of {maps}"
        case Verdict.UNKNOWN if report.how is How.UNDEFINED:
            return f"unknown: {name} does what PTX leaves undefined"
        case Verdict.UNKNOWN if report.how is How.ASSUMES:
            return f"unknown: {name} is proved only with an assumption that was ruled out"
        case Verdict.UNKNOWN if report.how is How.WEAKENED:
            return f"unknown: what is refuted may be right in {name}, which has an order that was not read"
        case Verdict.UNKNOWN:
            return f"unknown: neither proved nor refuted when {limit_words(report)}"
        case _:
            assert_never(report.verdict)


_MOST_NAMED = 3


def _not_read_words(stopped: tuple[str, ...]) -> str:
    """Which warps continue beyond what was read, without the reasons, which the coverage gives."""
    places = [": ".join(each.split(": ")[:2]).replace(": not followed beyond", " beyond") for each in stopped]
    more = f"; and {len(places) - _MOST_NAMED} more" if len(places) > _MOST_NAMED else ""
    return f"; not read: {'; '.join(places[:_MOST_NAMED])}{more}" if places else ""


def limit_words(report: CheckReport) -> str:
    """What ended an unknown check: the limit of the search, or one of the process."""
    return "the search reached its limit" if report.cut is None else f"the {report.cut.value} was reached"


def how_words(report: CheckReport) -> str:
    """What the verdict rests on."""
    if report.how is not None:
        return report.how.value
    return f"one schedule of {count(report.replayed or 0, 'move')}"


def left_out_words(report: CheckReport) -> list[str]:
    """The steps that did not finish, each with the reason: ``other sizes: time limit, after 12 units``."""
    if report.quick:
        return ["everything but the verdict: not asked for"]
    return [f"{each.step.value}: {each.why.value}{_units_done(each)}" for each in report.left_out]


def _units_done(cut: LeftOut) -> str:
    if cut.of:
        return f" after {cut.done:,} of {cut.of:,}"
    return f" after {cut.done:,} tried" if cut.done else ""


def why_not_every(found: ProvedRange) -> str:
    """Why a trip count is not proved for every value; "" if it is."""
    if found.refuted:
        return "it fails"
    return found.why.value if found.why is not None else ""


def walk_sentence(report: WalkReport) -> str:
    """What is wrong where one schedule ends."""
    if not report.findings:
        ended = "every agent has finished" if report.ended else "not every agent has finished"
        return f"no finding at the end of this schedule: {ended}"
    kind = "a deadlock" if isinstance(report.findings[0], Deadlock) else "a fault"
    return f"the schedule ends in {kind}"
