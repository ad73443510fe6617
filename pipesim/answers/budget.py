"""How much each step of an answer may do: asked between units of work, so that what is known by then is kept.

Work is counted in operations of the programs that a step makes or tries, so that the same question has the same answer
under any load. Seconds only end a step early where a person sets a limit, and the answer says so.

The progress of a computation, as data. The command line shows it; other callers may ignore it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from pipesim.answers.views.check import CutBy
from pipesim.errors import EvidenceError
from pipesim.model.program import Program
from pipesim.targets import Target

if TYPE_CHECKING:
    from pipesim.answers.views.check import CheckStep
    from pipesim.answers.views.redundant import RedundantStep


WORK_LIMIT = 4_000_000  #: operations of a step: about a minute of one core
WHOLE_TIME = 1_200.0  #: seconds of all steps of a protocol, unless a person sets the time of a step
_STEPS = 20  #: all of a protocol may take as long as this many steps
_LEAST_WHOLE = 10.0  #: seconds that it may take at least

_LEAST_OF_A_UNIT = 500  #: operations that the smallest unit counts as: what a short program costs beside its own

Unit = Callable[[int, int], None]  #: called before a unit of work: units done, and how many there are (0: not known)


class BudgetSpentError(Exception):
    """A step has done its work or taken its time: it ends, and the answer has what is known. Never leaves ``answers``.

    ``by``: which of the two.
    """

    def __init__(self, by: CutBy) -> None:
        super().__init__(by.value)
        self.by = by


class Budget:
    """The ``work`` of each step in operations, and a person's limit of ``seconds``, by any increasing ``clock``."""

    def __init__(
        self, seconds: float | None = None, clock: Callable[[], float] = monotonic, *, work: int = WORK_LIMIT
    ) -> None:
        self.seconds = seconds
        self._clock = clock
        self._most = work
        self.start()

    def start(self) -> None:
        """A step begins."""
        self._began = self._clock()
        self._done = 0

    def ask(self, operations: int) -> None:
        """Before a unit of work, with the operations of its program. BudgetSpentError if the step ends here."""
        if self._done >= self._most:
            raise BudgetSpentError(CutBy.WORK)
        if self.seconds is not None and self._clock() - self._began >= self.seconds:
            raise BudgetSpentError(CutBy.TIME)
        self._done += max(operations, _LEAST_OF_A_UNIT)


def protocol_seconds(time_limit: float | None) -> float:
    """How long all of one protocol may take where each step may take ``time_limit`` seconds (None: no limit)."""
    return WHOLE_TIME if time_limit is None else max(_LEAST_WHOLE, _STEPS * time_limit)


@dataclass(frozen=True)
class WatchedTarget(Target):
    """A target that calls ``made`` with each program's operations: where many sizes are tried, one is a unit."""

    made: Callable[[int], None] = lambda _: None

    def build(
        self,
        params: Mapping[str, int] | None = None,
        *,
        grid: int | None = None,
        twice: bool = True,
        most: int | None = None,
    ) -> Program:
        """As the target's."""
        program = super().build(params, grid=grid, twice=twice, most=most)
        self.made(sum(map(len, program.code)))
        return program


def watch_builds(target: Target, made: Callable[[int], None]) -> Target:
    """The same target, which calls ``made`` with the operations of each program that it makes."""
    return WatchedTarget(**{field.name: getattr(target, field.name) for field in fields(Target)}, made=made)


USUAL_STATES = 200_000
#: Of a program read from PTX: seconds. One that is not decided by then has too many agents to be decided so.
LEAST_OF_A_KERNEL, MOST_OF_A_KERNEL = 5_000, 50_000


def states_of(given: int | None, program: Program) -> int:
    """The number that a person gave, else the usual one; of a kernel's program fewer, the longer it is."""
    if given is not None:
        return given
    if not program.coverage.extracted:
        return USUAL_STATES
    by_length = 10_000_000 // max(1, sum(map(len, program.code)))
    return min(MOST_OF_A_KERNEL, max(LEAST_OF_A_KERNEL, by_length))


class Stage(Enum):
    """One of the things that are done for an answer. Of which protocol or file it is done is said beside it."""

    FLATTEN = "flatten"
    CHECK = "check"
    SIMULATE = "simulate"  #: a protocol, on a profile
    CAPTURE = "capture"
    READ = "read"  #: the recorded traces
    COMPARE = "compare"  #: with a trace


Step = Callable[[int, str, Stage, str], None]  #: protocols that are done; protocol, stage and name of the last step


class Progress:
    """Receives what is being done, and ignores it; the command line overrides what it shows."""

    def stage(self, stage: Stage, *names: str) -> AbstractContextManager[None]:  # noqa: ARG002  # for overrides
        """Around the work of one stage."""
        return nullcontext()

    def steps(self, protocols: int, steps: int) -> AbstractContextManager[Step]:  # noqa: ARG002  # for overrides
        """Around the work on several protocols; the block calls what it is given after each step."""
        return nullcontext(_ignore_step)

    def check_step(self, protocol: str, step: CheckStep) -> AbstractContextManager[Unit]:  # noqa: ARG002  # for overrides
        """Around one step of the check of a protocol; the block calls what it is given before each unit of work."""
        return nullcontext(_ignore_unit)

    def redundant_step(self, protocol: str, step: RedundantStep) -> AbstractContextManager[Unit]:  # noqa: ARG002  # for overrides
        """As :meth:`check_step`, around one step of the search for what a protocol does not need."""
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
