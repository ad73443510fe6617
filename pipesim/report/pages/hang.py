"""``pipesim hang``: that a program hung, its core dumps, and how to read them."""

from __future__ import annotations

import shlex

from pipesim.answers.views.hang import HangCause, HangReport, ProcessDump
from pipesim.report.text.console import mark
from pipesim.report.text.layout import wrap
from pipesim.report.text.words import count


def hang_lines(report: HangReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells; the commands at its end are whole, to be copied."""
    if report.cause is None:
        return []  # the program ended by itself, and has said what it has to say
    lines = wrap(hang_sentence(report), width, f"{mark(ok=False)} ")
    for each in report.dumps:
        lines += wrap(_words(each), width, "  ", "    ")
    return [*lines, *([""] if report.complete else []), *(_next(each) for each in report.complete)]


def hang_sentence(report: HangReport) -> str:
    """Why the program was dumped, and how many dumps there are."""
    why = report.cause.value if report.cause is not None else ""
    if report.cause is HangCause.STOOD_STILL:
        why += f" for {report.seconds:g} s"
    return f"the program hung, and was ended ({why}): {len(report.complete)} of {count(len(report.dumps), 'core dump')}"


def _words(dump: ProcessDump) -> str:
    rank = f", rank {dump.rank}" if dump.rank else ""
    return f"process {dump.process}{rank}: {dump.nbytes / 1e6:,.1f} MB, {dump.end.value}"


def _next(dump: ProcessDump) -> str:
    return f"  pipesim autopsy {shlex.quote(dump.file)}"
