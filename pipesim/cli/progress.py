"""The progress of an answer on the terminal: a line while it is computed, and what must be known before it is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.answers.budget import Progress, Stage, Step
from pipesim.cli.output import complain, counted_units, progress, remark, step_counter
from pipesim.errors import EvidenceError

if TYPE_CHECKING:
    from pipesim.answers.budget import Unit
    from pipesim.answers.views.check import CheckStep
    from pipesim.answers.views.redundant import RedundantStep
from pipesim.report.sentences.stage import doing_words, done_words

_NAMED = 3  #: Parquet files of other programs that a note names


class TerminalProgress(Progress):
    """Shows what is being done on standard error."""

    def stage(self, stage: Stage, *names: str) -> AbstractContextManager[None]:
        """A line with the stage, while the block runs."""
        return progress(doing_words(stage, *names))

    @contextmanager
    def steps(self, protocols: int, steps: int) -> Iterator[Step]:
        """A line that counts the steps."""
        with step_counter(f"verifying {protocols} protocols", steps) as tell:

            def step(ended: int, protocol: str, stage: Stage, name: str) -> None:
                tell(f"{ended} of {protocols} done; last {protocol}, {done_words(stage, name)}")

            yield step

    def check_step(self, protocol: str, step: CheckStep) -> AbstractContextManager[Unit]:
        """A line with the step of a check, how far it is, and for how long it has run."""
        return counted_units(f"checking {protocol}: {step.value}")

    def redundant_step(self, protocol: str, step: RedundantStep) -> AbstractContextManager[Unit]:
        """The same of the search for what a protocol does not need."""
        return counted_units(f"checking {protocol}: {step.value}")

    def configurations(self, protocol: str, number: int) -> AbstractContextManager[Unit]:
        """A line that counts the configurations that have an answer."""
        return counted_units(f"sweeping {protocol}, {number:,} configurations")

    def report_missing(self, error: EvidenceError) -> None:
        """The error, before the answer."""
        complain(error)

    def left_out(self, files: tuple[Path, ...]) -> None:
        """A note that names the first of them."""
        more = f" and {len(files) - _NAMED:,} more" if len(files) > _NAMED else ""
        what = "a Parquet file that is not a trace" if len(files) == 1 else "Parquet files that are not traces"
        remark(f"note: left out, {what}: {', '.join(map(str, files[:_NAMED]))}{more}")
