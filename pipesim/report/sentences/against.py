"""Two versions in words: what is found in which, and each difference of their synchronisation."""

from __future__ import annotations

from typing import assert_never

from pipesim.answers.views.against import AgainstReport
from pipesim.explain.sync_changes import Amount, SyncChange, SyncChangeKind
from pipesim.model.finding import Verdict
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
    return f"{found}: {verdicts}; {differences}{unread}{unknown}"


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
