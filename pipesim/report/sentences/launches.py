"""What was launched, caught and recorded, in words."""

from collections import Counter

from pipesim.answers.views.launches import CaughtLaunch, LaunchesReport, LaunchRecording, RecordReport
from pipesim.model.ending import Ending
from pipesim.model.finding import Verdict
from pipesim.ptx.launch.values import Shape
from pipesim.report.text.words import count, listed, number

_ENDINGS = {Ending.FINISHED: "finished", Ending.DEADLINE: "did not end in time", Ending.TRAP: "ended by an exception"}


def launches_sentence(report: LaunchesReport) -> str:
    """The conclusion: the number of launch files, verdicts if they were asked for, and a program that failed."""
    written = len(report.written)
    failed = f"; the command ended with status {report.status}" if report.status else ""
    if not written:
        seen = f"of {count(len(report.kernels), 'kernel')}" if report.kernels else "because no launch was observed"
        return f"no launch file was written {seen}{failed}"
    kernels = sum(any(each.file for each in kernel.caught) for kernel in report.kernels)
    if not report.checked:
        return f"{count(written, 'launch file')} of {count(kernels, 'kernel')} written to {report.folder}{failed}"
    found = Counter(each.verdict for kernel in report.kernels for each in kernel.caught)
    parts = [f"{number(found[verdict])} {verdict.value}" for verdict in Verdict if found[verdict]]
    return f"{launches_words(sum(found.values()))}: {listed(parts)}{failed}"


def launches_words(value: int) -> str:
    """``1 launch``, ``2 launches``."""
    return f"{number(value)} launch{'' if value == 1 else 'es'}"


def shape_words(each: CaughtLaunch) -> str:
    """``grid 64 · block 384 · cluster 2``; of a cluster of one CTA nothing."""
    graph = " · in a graph" if each.via == "graph" else ""
    return shape_of(each.grid, each.block, each.cluster) + graph


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
