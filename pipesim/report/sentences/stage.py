"""The stages of the work in words: what is being done, and what failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from pipesim.answers.progress import Stage

if TYPE_CHECKING:
    from pipesim.answers.views.summary import Failure  # brings in all that compares traces; progress is shown first


def doing_words(stage: Stage, *names: str) -> str:
    """``simulating ring on h100``: what is being done, of what."""
    match stage:
        case Stage.FLATTEN:
            return f"flattening {names[0]}"
        case Stage.CHECK:
            return f"proving {names[0]}"
        case Stage.SIMULATE:
            return f"simulating {names[0]} on {names[1]}"
        case Stage.CAPTURE:
            return f"capturing {names[0]}"
        case Stage.READ:
            return "reading recorded traces"
        case Stage.COMPARE:
            return f"comparing with {names[0] or 'the fresh trace'}"
        case _:
            assert_never(stage)


def done_words(stage: Stage, name: str) -> str:
    """``the comparison with a.parquet``: what was done, or tried."""
    match stage:
        case Stage.FLATTEN:
            return "flattening"
        case Stage.CHECK:
            return "the proof"
        case Stage.SIMULATE:
            return "the simulation"
        case Stage.CAPTURE:
            return "the capture"
        case Stage.READ:
            return "reading recorded traces"
        case Stage.COMPARE:
            return f"the comparison with {name}"
        case _:
            assert_never(stage)


def failure_words(failed: Failure) -> str:
    """What was tried."""
    return done_words(failed.stage, failed.name)
