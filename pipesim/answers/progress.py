"""The progress of a computation, as data. The command line shows it; other callers may ignore it.

It imports nothing that takes long: what prints the help has it.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from pathlib import Path

from pipesim.errors import EvidenceError


class Stage(Enum):
    """One of the things that are done for an answer: what is shown meanwhile, and what was done, or tried."""

    FLATTEN = "flattening {}", "flattening"
    CHECK = "proving {}", "the proof"
    SIMULATE = "simulating {} on {}", "the simulation"  #: a protocol, on a profile
    CAPTURE = "capturing {}", "the capture"
    READ = "reading recorded traces", "reading recorded traces"
    COMPARE = "comparing with {}", "the comparison with {}"  #: a trace


Unit = Callable[[int, int], None]  #: called before a unit of work: units done, and how many there are (0: not known)
Step = Callable[[int, str, Stage, str], None]  #: protocols that are done; protocol, stage and name of the last step


class Progress:
    """Receives what is being done, and ignores it; the command line overrides what it shows."""

    def stage(self, stage: Stage, *names: str) -> AbstractContextManager[None]:  # noqa: ARG002  # for overrides
        """Around the work of one stage."""
        return nullcontext()

    def steps(self, protocols: int, steps: int) -> AbstractContextManager[Step]:  # noqa: ARG002  # for overrides
        """Around the work on several protocols; the block calls what it is given after each step."""
        return nullcontext(_ignore_step)

    def check_step(self, protocol: str, step: Enum) -> AbstractContextManager[Unit]:  # noqa: ARG002  # for overrides
        """Around one step of the check of a protocol, or of the search for what it does not need; the block calls what
        it is given before each unit of work.
        """
        return nullcontext(_ignore_unit)

    def configurations(self, protocol: str, number: int) -> AbstractContextManager[Unit]:  # noqa: ARG002  # for overrides
        """Around the work on this many configurations; the block calls what it is given after each."""
        return nullcontext(_ignore_unit)

    def report_missing(self, error: EvidenceError) -> None:
        """Evidence is missing; the answer follows nevertheless."""

    def left_out(self, files: tuple[Path, ...]) -> None:
        """Parquet files of a user's folder are left out because they are no traces."""


def _ignore_step(ended: int, protocol: str, stage: Stage, name: str) -> None:
    """A step of work whose progress is not shown."""


def _ignore_unit(done: int, of: int) -> None:
    """A unit of work whose progress is not shown."""


SILENT = Progress()
