"""The device structures of ``recorder.cuh`` and of the twins' ``report.cuh``, as numpy types."""

from typing import Any

import numpy as np

from hwkernels.records.clocks import ANCHOR

MAX_AGENTS = 32  #: PIPESIM_MAX_AGENTS
MAX_REPORTED_AGENTS = 16
MAX_BARRIERS = 2 * 32  #: of which a CTA leaves the words: PIPESIM_MAX_WORDS

#: ``PipesimCta``: what a traced CTA says about its recording.
HEADER: np.dtype[Any] = np.dtype(
    [("smid", "<u4"), ("reserved", "<u4", (3,)), ("anchors", ANCHOR, (2,)), ("counts", "<u4", (MAX_AGENTS, 2))]
)

#: ``PipesimLaunch``: what the host gives to a launch that records or marks.
LAUNCH: np.dtype[Any] = np.dtype(
    [
        ("ctas", "<u8"),
        ("records", "<u8"),
        ("capacity", "<u4"),
        ("record_ctas", "<u4"),
        ("first", "<u4"),
        ("span", "<u4"),
        ("agents", "<u4"),
        ("reserved", "<u4"),
        ("words", "<u8"),
        ("marks", "<u8"),
        ("mark", "<u4", (2,)),
    ]
)

#: ``CtaReport``: how a CTA's run went, traced or not.
REPORT: np.dtype[Any] = np.dtype(
    [
        ("status", "<u4"),
        ("site", "<u4"),
        ("agent", "<u4"),
        ("iteration", "<u4"),
        ("loop_begin", "<u8"),
        ("loop_end", "<u8"),
        ("marks", "<u8", (2,)),
        ("iterations", "<u4", (MAX_REPORTED_AGENTS,)),
        ("barrier_words", "<u8", (MAX_BARRIERS,)),
    ]
)

FINISHED, DEADLINE, STOPPED = 1, 2, 3  #: ``Status``; 0 is a CTA that did not finish


def mark(agent: int, wait: int) -> int:
    """What a kernel finds in the ``marks`` of its report: that this agent has to mark this wait (from 0 on)."""
    return agent << 32 | wait + 1
