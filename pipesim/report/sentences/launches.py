"""What was launched and caught, in words."""

from __future__ import annotations

from collections import Counter

from pipesim.answers.views.launches import CaughtLaunch, LaunchesReport
from pipesim.model.finding import Verdict
from pipesim.report.sentences.recording import shape_of
from pipesim.report.text.words import count, listed, number


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
