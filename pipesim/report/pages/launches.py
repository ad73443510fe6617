"""``pipesim launches``: the kernels that were caught, each with its launch files, and the others with the reason."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len

from pipesim.answers.views.launches import CaughtKernel, CaughtLaunch, LaunchesReport
from pipesim.model.finding import Verdict
from pipesim.ptx.emit.names import kernel_name
from pipesim.report.sentences.launches import launches_sentence, launches_words, shape_words
from pipesim.report.text.console import mark
from pipesim.report.text.layout import columns, middle, pad, wrap
from pipesim.report.text.words import number

_HEAD = ("kernel", "PTX from", "launches", "distinct")
_ORIGIN = 24  #: cells of where the PTX comes from
_MOST_FILES = 16  #: launches of a kernel that are listed
_OK = {Verdict.PROVED: True, Verdict.REFUTED: False, Verdict.UNKNOWN: None}


def launches_lines(report: LaunchesReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells; the commands at its end are whole, to be copied."""
    caught = [kernel for kernel in report.kernels if kernel.caught]
    lines: list[str] = []
    if caught:
        head, *rows = columns([_HEAD, *(_row(kernel) for kernel in caught)], 2, width)
        lines.append(head)
        for row, kernel in zip(rows, caught, strict=True):
            lines += [row, *_launches(kernel, width)]
    for reason in dict.fromkeys(kernel.reason for kernel in report.kernels if not kernel.caught):
        alike = [kernel for kernel in report.kernels if not kernel.caught and kernel.reason == reason]
        lines += [*([""] if lines else []), *wrap(reason or "no launch file", width, "  "), *_alike(alike, width)]
    lines += [""] if lines and report.notes else []
    for note in report.notes:
        lines += wrap(f"note: {note}", width, "  ", "    ")
    lines += [""] if lines else []
    lines += wrap(launches_sentence(report), width, f"{mark(report.conclusion.ok)} ")
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
