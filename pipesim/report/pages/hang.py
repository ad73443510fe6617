"""``pipesim hang``: that a program hung, its core dumps, and who waits for whom in them."""

from __future__ import annotations

from collections.abc import Sequence

from pipesim.answers.views.hang import DumpsAlike, HangCause, HangReport, ProcessDump
from pipesim.report.pages.autopsy import autopsy_lines
from pipesim.report.text.console import UNSURE, mark
from pipesim.report.text.layout import wrap
from pipesim.report.text.words import count, listed


def hang_lines(report: HangReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    if report.cause is None:
        return []  # the program ended by itself, and has said what it has to say
    lines = wrap(hang_sentence(report), width, f"{mark(ok=False)} ")
    for each in report.dumps:
        lines += wrap(_words(each), width, "  ", "    ")
    for group in report.alike:
        lines += ["", *_group_lines(group, width, alone=len(report.dumps) == 1)]
    return lines


def hang_sentence(report: HangReport) -> str:
    """Why the program was dumped, and how many dumps there are."""
    why = report.cause.value if report.cause is not None else ""
    if report.cause is HangCause.STOOD_STILL:
        why += f" for {report.seconds:g} s"
    return f"the program hung, and was ended ({why}): {len(report.complete)} of {count(len(report.dumps), 'core dump')}"


def _words(dump: ProcessDump) -> str:
    rank = f", rank {dump.rank}" if dump.rank else ""
    return f"process {dump.process}{rank}: {dump.nbytes / 1e6:,.1f} MB, {dump.end.value}: {dump.file}"


def _group_lines(group: DumpsAlike, width: int, *, alone: bool) -> list[str]:
    """``ranks 0 and 2 are in the same state``, and the autopsy."""
    several = len(group.dumps) > 1
    head = f"{_names(group.dumps)} {'are in the same state' if several else 'is in this state'}"
    lines = [] if alone else [*wrap(head, width), ""]
    if group.autopsy is None:
        return [*lines, *wrap(f"cannot be read: {group.problem}", width, f"{UNSURE} ")]
    return [*lines, *autopsy_lines(group.autopsy, width)]


def _names(dumps: Sequence[ProcessDump]) -> str:
    noun = "rank" if all(each.rank for each in dumps) else "process"
    names = [each.rank if noun == "rank" else str(each.process) for each in dumps]
    plural = "" if len(dumps) == 1 else "s" if noun == "rank" else "es"
    return f"{noun}{plural} {listed(names)}"
