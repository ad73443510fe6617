"""``pipesim record``: the kernels that were recorded, each with its traces, and the others with the reason."""

from __future__ import annotations

import shlex
from pathlib import Path

from pipesim.answers.views.recording import KernelRecording, LaunchRecording, RecordReport
from pipesim.conform.result import TraceVerdict
from pipesim.model.ending import Ending
from pipesim.ptx.emit.names import kernel_name
from pipesim.report.sentences.recording import change_words, ending_words, record_sentence, shape_of
from pipesim.report.text.console import mark
from pipesim.report.text.layout import columns, middle, wrap
from pipesim.report.text.words import number

_HEAD = ("kernel", "PTX from", "launches", "registers", "spills")
_ORIGIN = 24  #: cells of where the PTX comes from
_MOST = 16  #: launches of a kernel that are listed
_OK = {TraceVerdict.AGREES: True, TraceVerdict.DIFFERS: False, TraceVerdict.UNKNOWN: None}


def recording_lines(report: RecordReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells; commands and the pages of single traces are whole."""
    made = [kernel for kernel in report.kernels if kernel.recorded]
    lines: list[str] = []
    if made:
        head, *rows = columns([_HEAD, *(_row(kernel) for kernel in made)], 2, width)
        lines.append(head)
        for row, kernel in zip(rows, made, strict=True):
            lines += [row, *_launches(kernel, width)]
    for reason in dict.fromkeys(kernel.reason for kernel in report.kernels if not kernel.recorded):
        alike = [kernel for kernel in report.kernels if not kernel.recorded and kernel.reason == reason]
        lines += [*([""] if lines else []), *wrap(reason, width, "  ")]
        lines += [f"    {kernel_name(each.name)}" for each in alike]
    for each in report.traces:
        if each.page:
            lines += ["", *each.page]
    lines += [""] if lines and report.notes else []
    for note in report.notes:
        lines += wrap(f"note: {note}", width, "  ", "    ")
    lines += [""] if lines else []
    lines += wrap(record_sentence(report), width, f"{mark(report.conclusion.ok)} ")
    return [*lines, *_by_hand(report)]


def _row(kernel: KernelRecording) -> tuple[str, ...]:
    launches = "" if kernel.launches is None else number(kernel.launches)
    registers, spills = change_words(kernel.registers), change_words(kernel.spills)
    return kernel_name(kernel.name), middle(kernel.origin, _ORIGIN), launches, registers, spills


def _launches(kernel: KernelRecording, width: int) -> list[str]:
    """The launches of a kernel: the trace of each with its events, or the reason why there is none."""
    lines: list[str] = []
    for each in kernel.recorded[:_MOST]:
        lines += wrap(_said(each), width, f"    {mark(_ok(each))} ", "      ")
    rest = len(kernel.recorded) - _MOST
    lines += [f"    and {number(rest)} more"] if rest > 0 else []
    for warning in kernel.warnings:
        lines += wrap(f"note: {warning}", width, "      ", "        ")
    return lines


def _ok(each: LaunchRecording) -> bool | None:
    if not each.trace:
        return None
    if each.ending is not Ending.FINISHED:
        return False
    return True if each.agreement is None else _OK[each.agreement.verdict]


def _said(each: LaunchRecording) -> str:
    shape = shape_of(each.grid, each.block, each.cluster)
    if not each.trace:
        kept = f"; its buffer is {each.buffer}" if each.buffer else ""
        return f"{shape}: {each.reason}{kept}"
    compared = f" · {each.agreement.value}" if each.agreement is not None else ""
    return f"{each.trace} · {shape} · {number(each.events)} events · {ending_words(each)}{compared}"


def _by_hand(report: RecordReport) -> list[str]:
    """How to compare one trace; one that did not end, if there is one."""
    pairs = [(kernel, each) for kernel in report.kernels for each in kernel.recorded if each.trace]
    if not pairs:
        return []
    kernel, each = next((pair for pair in pairs if pair[1].ending is not Ending.FINISHED), pairs[0])
    trace, ptx, launch = (Path(report.folder) / name for name in (each.trace, kernel.ptx, each.launch))
    given = "" if launch == ptx.with_suffix(".json") else f" --launch {shlex.quote(str(launch))}"
    return ["", f"  pipesim diff {shlex.quote(str(trace))} --protocol {shlex.quote(str(ptx))}{given}"]
