"""The stages of the work in words: what is being done, and what failed."""

from typing import TYPE_CHECKING

from pipesim.answers.progress import Stage

if TYPE_CHECKING:
    from pipesim.answers.views.summary import Failure  # brings in all that compares traces; progress is shown first


def doing_words(stage: Stage, *names: str) -> str:
    """``simulating ring on h100``: what is being done, of what."""
    return stage.value[0].format(*(name or "the fresh trace" for name in names))


def done_words(stage: Stage, name: str) -> str:
    """``the comparison with a.parquet``: what was done, or tried."""
    return str(stage.value[1]).format(name)


def failure_words(failed: "Failure") -> str:
    """What was tried."""
    return done_words(failed.stage, failed.name)
