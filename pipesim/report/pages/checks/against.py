"""``pipesim check NEW --against OLD``: new findings in full, the others in a line each, and what is done otherwise."""

from collections.abc import Sequence
from typing import assert_never

from pipesim.answers.views.check import AgainstReport, Brief, CheckReport, Counterexample
from pipesim.explain.sync_changes import Amount, SyncChange, SyncChangeKind
from pipesim.model.finding import Verdict
from pipesim.report.findings.brief import brief_of_findings, in_short
from pipesim.report.findings.finding import finding_lines
from pipesim.report.pages.checks.check import shown_lines
from pipesim.report.sentences.check import how_words, left_out_words
from pipesim.report.text.console import mark
from pipesim.report.text.layout import field, heading_lines, wrap
from pipesim.report.text.words import count, listed, number, ordinal, place


def against_sentence(report: AgainstReport) -> str:
    """``1 new finding, 2 gone, 1 unchanged; 3 differences in the synchronisation``."""
    found = f"{count(len(report.appeared), 'new finding')}, {len(report.gone)} gone, {len(report.unchanged)} unchanged"
    if not (report.appeared or report.gone or report.unchanged):
        found = "no finding in either"
    verdicts = f"was {report.old.verdict.value}, is {report.new.verdict.value}"
    if report.old.verdict is report.new.verdict:
        verdicts = f"both are {report.new.verdict.value}"
    differences = count(len(report.synchronisation.changes), "difference") + " in the synchronisation"
    unread = "; not all of it was read" if report.synchronisation.unread else ""
    unknown = "; more may be wrong in what is unknown" if report.new.verdict is Verdict.UNKNOWN else ""
    if report.new.guessed:
        unknown = f"; what fails in it may not happen, as guesses decide it: {report.new.guessed}"
    return f"{found}: {verdicts}; {differences}{unread}{unknown}"


def against_brief(report: AgainstReport) -> Brief:
    """What is new in at most 2 kB, with the first new finding."""
    new = report.new_findings
    said = f"{report.new.heading.protocol}: {against_sentence(report)}"
    return brief_of_findings(report.conclusion.value, said, [each.finding for each in new], next(iter(new), None))


def change_sentence(change: SyncChange) -> str:
    """``load: 1 more arrive on full[0..2] in each of 8 iterations, 9 → 17 times in all (x.cu:40)``."""
    said = _change_words(change)
    at = listed([place(line) for line in change.lines])
    return f"{said} ({'was at ' if at and _fewer(change) else ''}{at})" if at else said


def _fewer(change: SyncChange) -> bool:
    return change.kind is SyncChangeKind.TIMES and change.after.times < change.before.times


def _change_words(change: SyncChange) -> str:
    before, after = change.before, change.after
    on = f" on {change.on}" if change.on else ""
    match change.kind:
        case SyncChangeKind.WARPS if not before.times:
            return f"{change.role}: a new role of {count(after.times, 'warp')}"
        case SyncChangeKind.WARPS if not after.times:
            return f"{change.role}: gone, was a role of {count(before.times, 'warp')}"
        case SyncChangeKind.WARPS:
            return f"{change.role}: {number(before.times)} → {count(after.times, 'warp')}"
        case SyncChangeKind.COUNT if change.what:
            return f"{change.on}: {number(before.times)} → {number(after.times)} {change.what}"
        case SyncChangeKind.COUNT if before.times < 0:
            return f"{change.on}: a new barrier, initialised with a count of {number(after.times)}"
        case SyncChangeKind.COUNT if after.times < 0:
            return f"{change.on}: gone, was initialised with a count of {number(before.times)}"
        case SyncChangeKind.COUNT:
            return f"init count of {change.on}: {number(before.times)} → {number(after.times)}"
        case SyncChangeKind.PARITY if change.nth:
            parities = f"parity {after.times} instead of {before.times}"
            return f"{change.role}: its {ordinal(change.nth)} {change.what}{on} is for {parities}"
        case SyncChangeKind.AMOUNT:
            times = f"{number(before.times)} → {count(after.times, 'arrival')}" if before.times != after.times else ""
            nbytes = f"{number(before.nbytes)} → {count(after.nbytes, 'byte')}" if before.nbytes != after.nbytes else ""
            amounts = ", ".join(filter(None, (times, nbytes)))
            return f"{change.role}: its {ordinal(change.nth)} {change.what}{on}: {amounts}"
        case SyncChangeKind.PARITY:
            return f"{change.role}: first waits for parity {after.times} instead of {before.times}{on}"
        case SyncChangeKind.ORDER:
            return f"{change.role}: another sequence, {change.what} where {change.instead_of} was"
        case SyncChangeKind.TIMES:
            return f"{change.role}: {_times_words(change, on)}"
        case _:
            assert_never(change.kind)


def _times_words(change: SyncChange, on: str) -> str:
    before, after, (were, are) = change.before, change.after, change.iterations
    each, more = after.each - before.each, after.more - before.more
    nbytes = _bytes_words(before, after)
    in_all = f"{number(before.times)} → {number(after.times)} times in all"
    if before.times == after.times and (each, more) == (0, 0):
        return f"{change.what}{on}: {nbytes}"
    if not after.times or not before.times:
        some, rounds = (after, are) if after.times else (before, were)
        often = f"{number(some.times)} times" if some.times > 1 else "once"
        every = f", {number(some.each)} in each of {number(rounds)} iterations" if some.each and rounds > 1 else ""
        had = "new" if after.times else "gone, was executed"
        return f"{change.what}{on}: {had} {often}{every}{_copied(some)}"
    if more == 0 and max(were, are) > 1:
        loops = f"{number(are)} iterations" if were == are else "iteration"
        every = f" in each{f' of {loops}' if were == are else ' iteration'}"
        return f"{_difference(each)} {change.what}{on}{every}, {in_all}{_rates(change)}{nbytes and f'; {nbytes}'}"
    return f"{change.what}{on}: {in_all}{_rates(change)}{nbytes and f'; {nbytes}'}"


def _rates(change: SyncChange) -> str:
    """Where the iterations are not equally many: ``, of 8 and 16 iterations``."""
    were, are = change.iterations
    return "" if were == are else f", in {number(were)} and {number(are)} iterations"


def _difference(each: int) -> str:
    return f"{number(each)} more" if each > 0 else f"{number(-each)} fewer"


def _copied(amount: Amount) -> str:
    return f", {count(amount.nbytes, 'byte')}" if amount.nbytes else ""


def _bytes_words(before: Amount, after: Amount) -> str:
    """``4,096 → 8,192 bytes each``, "" where they are the same."""
    if before.nbytes * after.times == after.nbytes * before.times:
        return ""
    if before.nbytes % before.times == 0 and after.nbytes % after.times == 0:
        return f"{number(before.nbytes // before.times)} → {count(after.nbytes // after.times, 'byte')} each"
    return f"{number(before.nbytes)} → {count(after.nbytes, 'byte')} in all"


def against_lines(report: AgainstReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    lines = heading_lines(report.new.heading, width)
    lines += ["", *_version("old", report.old, width), *_version("new", report.new, width)]
    changes = report.synchronisation.changes
    if changes:
        lines += ["", "  differences in the synchronisation"]
        lines += [line for each in changes for line in wrap(change_sentence(each), width, "    ", "      ")]
    if report.synchronisation.unread:
        roles = listed(report.synchronisation.unread)
        said = f"not read to the end in both, so that only their beginnings are compared: {roles}"
        lines += ["", *wrap(said, width, "  ", "    ")]
    for label, findings in (("gone", report.gone_findings), ("unchanged", report.unchanged_findings)):
        lines += ["", *_listed_findings(label, findings, width)] if findings else []
    for left in dict.fromkeys(tuple(left_out_words(each)) for each in (report.old, report.new)):
        lines += ["", *field("left out", left, width)] if left else []
    for shown in report.new_findings:
        block = finding_lines([shown.finding], width) if report.new.quick else shown_lines(shown, width)[1:]
        lines += ["", "  new", "", *block]
    return [*lines, "", *wrap(against_sentence(report), width, f"{mark(report.conclusion.ok)} ")]


def _version(label: str, report: CheckReport, width: int) -> list[str]:
    parts = [report.heading.protocol, report.verdict.value, count(report.operations, "operation"), how_words(report)]
    return field(label, parts, width)


def _listed_findings(label: str, findings: Sequence[Counterexample], width: int) -> list[str]:
    lines: list[str] = []
    for shown in findings:
        at = f" ({place(shown.place)})" if shown.place else ""
        lines += field(label, [f"{in_short(shown.finding)}{at}"], width)
    return lines
