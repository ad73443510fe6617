"""What was launched and recorded, in words."""

from __future__ import annotations

from pipesim.answers.views.recording import LaunchRecording, RecordReport
from pipesim.model.ending import Ending
from pipesim.ptx.launch.values import Shape
from pipesim.report.text.words import count, number

_ENDINGS = {Ending.FINISHED: "finished", Ending.DEADLINE: "did not end in time", Ending.TRAP: "ended by an exception"}


def record_sentence(report: RecordReport) -> str:
    """The conclusion: the number of traces, those that did not end, those that differ, and a program that failed."""
    failed = f"; the command ended with status {report.status}" if report.status else ""
    traces = report.traces
    if not traces:
        seen = f"of {count(len(report.kernels), 'kernel')}" if report.kernels else "because no launch was observed"
        return f"no trace was recorded {seen}{failed}"
    kernels = sum(any(each.trace for each in kernel.recorded) for kernel in report.kernels)
    said = f"{count(len(traces), 'trace')} of {count(kernels, 'kernel')} written to {report.folder}"
    unended = sum(each.ending is not Ending.FINISHED for each in traces)
    said += f"; {number(unended)} launch{'' if unended == 1 else 'es'} did not end by itself" if unended else ""
    differing = sum(each.agreement is not None and not each.agreement.agrees for each in traces)
    said += f"; {number(differing)} not like {'its' if differing == 1 else 'their'} PTX" if differing else ""
    return said + failed


def ending_words(each: LaunchRecording) -> str:
    """``finished in 1.2 ms``; of a launch that did not, when it was stopped."""
    milliseconds = f"{each.took_ns / 1e6:,.1f} ms"
    if each.ending is Ending.FINISHED:
        return f"finished in {milliseconds}"
    return f"{_ENDINGS.get(each.ending, 'ended')}: {milliseconds}" if each.ending is not None else ""


def change_words(pair: tuple[int, int]) -> str:
    """``90``, or ``90 → 96``: a number before and after the records were put in."""
    before, after = pair
    return number(before) if before == after else f"{number(before)} → {number(after)}"


def shape_of(grid: Shape, block: Shape, cluster: Shape) -> str:
    """``grid 64 · block 384 · cluster 2``; of a cluster of one CTA nothing."""
    sizes = [("grid", grid), ("block", block), *([("cluster", cluster)] if cluster != (1, 1, 1) else [])]
    return " · ".join(f"{name} {'×'.join(map(str, _short(shape)))}" for name, shape in sizes)


def _short(shape: Shape) -> tuple[int, ...]:
    """A shape without the sizes of 1 at its end."""
    x, y, z = shape
    return (x, y, z) if z > 1 else (x, y) if y > 1 else (x,)
