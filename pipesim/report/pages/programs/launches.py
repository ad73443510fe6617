"""``pipesim launches`` and ``record``: kernels with their launch files or traces, and the others with the reason."""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from rich.cells import cell_len

from pipesim.answers.views.launches import (
    CaughtKernel,
    CaughtLaunch,
    KernelRecording,
    LaunchesReport,
    LaunchRecording,
    RecordReport,
)
from pipesim.conform.result import TraceVerdict
from pipesim.model.ending import Ending
from pipesim.model.finding import Verdict
from pipesim.ptx.names.paths import kernel_name
from pipesim.report.sentences.launches import (
    change_words,
    ending_words,
    launches_sentence,
    launches_words,
    record_sentence,
    shape_of,
    shape_words,
)
from pipesim.report.text.console import mark
from pipesim.report.text.layout import columns, middle, pad, wrap
from pipesim.report.text.words import number

_HEAD = ("kernel", "PTX from", "launches", "distinct")
_ORIGIN = 24  #: cells of where the PTX comes from
_MOST_FILES = 16  #: launches of a kernel that are listed
_HEAD_RECORDED = ("kernel", "PTX from", "launches", "registers", "spills")
_AGREES = {TraceVerdict.AGREES: True, TraceVerdict.DIFFERS: False, TraceVerdict.UNKNOWN: None}
_OK = {Verdict.PROVED: True, Verdict.REFUTED: False, Verdict.UNKNOWN: None}
_Kernel = TypeVar("_Kernel", CaughtKernel, KernelRecording)


def launches_lines(report: LaunchesReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells; the commands at its end are whole, to be copied."""
    caught = [kernel for kernel in report.kernels if kernel.caught]
    lines = _table([_HEAD, *map(_row, caught)], [_launches(kernel, width) for kernel in caught], width)
    for reason, alike in _by_reason(kernel for kernel in report.kernels if not kernel.caught):
        lines += [*([""] if lines else []), *wrap(reason or "no launch file", width, "  "), *_alike(alike, width)]
    lines += _end(report, launches_sentence(report), width, after=bool(lines))
    return [*lines, *_by_hand(report)]


def _row(kernel: CaughtKernel) -> tuple[str, ...]:
    return kernel_name(kernel.name), middle(kernel.origin, _ORIGIN), number(kernel.launches), _distinct(kernel)


def _distinct(kernel: CaughtKernel) -> str:
    return number(kernel.distinct) + (f" ({number(kernel.left_out)} left out)" if kernel.left_out else "")


def _launches(kernel: CaughtKernel, width: int) -> list[str]:
    """The launches of a kernel: the file of each with its verdict, or else its sizes, and what is to be known."""
    shown = kernel.caught[:_MOST_FILES]
    most = max(cell_len(each.file) for each in shown)
    lines: list[str] = []
    for each in shown:
        name = f"    {mark(_OK[each.verdict])} " if each.verdict is not None else "    "
        name += pad(each.file, most) + "  " if most else ""
        if cell_len(name) > width // 2:  # a file's name is whole, to be copied
            lines.append(name.rstrip())
            name = "      "
        said = each.said or each.reason or shape_words(each)
        lines += wrap(said, width, name, "      ")
        for note in each.notes:
            lines += wrap(f"note: {note}", width, "      ", "        ")
    rest = len(kernel.caught) - len(shown)
    return [*lines, f"    and {number(rest)} more"] if rest else lines


def _alike(kernels: Sequence[CaughtKernel], width: int) -> list[str]:
    """Kernels without a launch file that have one reason, a line each."""
    rows = [
        (kernel_name(each.name), "" if each.launches is None else launches_words(each.launches)) for each in kernels
    ]
    return [f"  {line}" for line in columns(rows, 1, width - 2)]


def _by_hand(report: LaunchesReport) -> list[str]:
    """How to check one launch; of those that were checked, one that is not proved."""
    pairs = [(kernel, each) for kernel in report.kernels for each in kernel.caught if each.file]
    if not pairs:
        return []
    kernel, each = next((pair for pair in pairs if pair[1].verdict not in (None, Verdict.PROVED)), pairs[0])
    return ["", f"  {check_command(report.folder, kernel, each)}"]


def check_command(folder: str, kernel: CaughtKernel, each: CaughtLaunch) -> str:
    """``pipesim check launches/gemm.ptx --launch launches/gemm-2.json``, as a shell takes it."""
    ptx, launch = Path(folder) / kernel.ptx, Path(folder) / each.file
    given = "" if launch == ptx.with_suffix(".json") else f" --launch {shlex.quote(str(launch))}"
    return f"pipesim check {shlex.quote(str(ptx))}{given}"


# recordings


def recording_lines(report: RecordReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells; commands and the pages of single traces are whole."""
    made = [kernel for kernel in report.kernels if kernel.recorded]
    lines = _table([_HEAD_RECORDED, *map(_recorded_row, made)], [_recordings(kernel, width) for kernel in made], width)
    for reason, alike in _by_reason(kernel for kernel in report.kernels if not kernel.recorded):
        lines += [*([""] if lines else []), *wrap(reason, width, "  ")]
        lines += [f"    {kernel_name(each.name)}" for each in alike]
    for each in report.traces:
        if each.page:
            lines += ["", *each.page]
    lines += _end(report, record_sentence(report), width, after=bool(lines))
    return [*lines, *_diff_by_hand(report)]


def _recorded_row(kernel: KernelRecording) -> tuple[str, ...]:
    launches = "" if kernel.launches is None else number(kernel.launches)
    registers, spills = change_words(kernel.registers), change_words(kernel.spills)
    return kernel_name(kernel.name), middle(kernel.origin, _ORIGIN), launches, registers, spills


def _recordings(kernel: KernelRecording, width: int) -> list[str]:
    """The launches of a kernel: the trace of each with its events, or the reason why there is none."""
    lines: list[str] = []
    for each in kernel.recorded[:_MOST_FILES]:
        lines += wrap(_recording_words(each), width, f"    {mark(_went_well(each))} ", "      ")
    rest = len(kernel.recorded) - _MOST_FILES
    lines += [f"    and {number(rest)} more"] if rest > 0 else []
    for warning in kernel.warnings:
        lines += wrap(f"note: {warning}", width, "      ", "        ")
    return lines


def _went_well(each: LaunchRecording) -> bool | None:
    if not each.trace:
        return None
    if each.ending is not Ending.FINISHED:
        return False
    return True if each.agreement is None else _AGREES[each.agreement.verdict]


def _recording_words(each: LaunchRecording) -> str:
    shape = shape_of(each.grid, each.block, each.cluster) + (f" · {each.in_graph}" if each.in_graph else "")
    if not each.trace:
        kept = f"; its buffer is {each.buffer}" if each.buffer else ""
        return f"{shape}: {each.reason}{kept}"
    compared = f" · {each.agreement.value}" if each.agreement is not None else ""
    return f"{each.trace} · {shape} · {number(each.events)} events · {ending_words(each)}{compared}"


def _diff_by_hand(report: RecordReport) -> list[str]:
    """How to compare one trace; one that did not end, if there is one."""
    pairs = [(kernel, each) for kernel in report.kernels for each in kernel.recorded if each.trace]
    if not pairs:
        return []
    kernel, each = next((pair for pair in pairs if pair[1].ending is not Ending.FINISHED), pairs[0])
    trace, ptx, launch = (Path(report.folder) / name for name in (each.trace, kernel.ptx, each.launch))
    given = "" if launch == ptx.with_suffix(".json") else f" --launch {shlex.quote(str(launch))}"
    return ["", f"  pipesim diff {shlex.quote(str(trace))} --protocol {shlex.quote(str(ptx))}{given}"]


# what both have


def _table(rows: Sequence[tuple[str, ...]], below: Sequence[list[str]], width: int) -> list[str]:
    """The kernels under the head of a table, each with its launches below it; nothing without kernels."""
    if not below:
        return []
    head, *lines = columns(rows, 2, width)
    return [head, *(line for row, launches in zip(lines, below, strict=True) for line in (row, *launches))]


def _by_reason(kernels: Iterable[_Kernel]) -> list[tuple[str, list[_Kernel]]]:
    """Kernels of which there is nothing, those with one reason together."""
    found: dict[str, list[_Kernel]] = {}
    for kernel in kernels:
        found.setdefault(kernel.reason, []).append(kernel)
    return list(found.items())


def _end(report: LaunchesReport | RecordReport, sentence: str, width: int, *, after: bool) -> list[str]:
    """The notes and the conclusion; ``after``: something is printed above them."""
    lines = [""] if after and report.notes else []
    for note in report.notes:
        lines += wrap(f"note: {note}", width, "  ", "    ")
    lines += [""] if after or lines else []
    return lines + wrap(sentence, width, f"{mark(report.conclusion.ok)} ")
