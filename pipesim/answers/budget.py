"""How long each step of an answer may take: asked between units of work, so that what is known by then is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from time import monotonic
from typing import TYPE_CHECKING

from pipesim.model.program import Program
from pipesim.targets import Target

if TYPE_CHECKING:
    from pipesim.model.program import Program

TIME_LIMIT = 60.0  #: seconds of a step, unless a person sets another limit

_STEPS = 20  #: all of a protocol may take as long as this many steps
_LEAST_WHOLE = 10.0  #: seconds that it may take at least

Unit = Callable[[int, int], None]  #: called before a unit of work: units done, and how many there are (0: not known)


class TimeUpError(Exception):
    """The time of a step is used up: the step ends, and the answer has what is known. Never leaves ``answers``."""


class Budget:
    """The ``seconds`` of each step, by a ``clock`` that may be any increasing number of seconds."""

    def __init__(self, seconds: float = TIME_LIMIT, clock: Callable[[], float] = monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._began = clock()

    def start(self) -> None:
        """A step begins."""
        self._began = self._clock()

    def ask(self) -> None:
        """Before a unit of work. TimeUpError if the step has taken its time."""
        if self._clock() - self._began >= self.seconds:
            raise TimeUpError


def protocol_seconds(time_limit: float | None) -> float:
    """How long all of one protocol may take where each step may take ``time_limit`` seconds (None: the usual ones)."""
    return max(_LEAST_WHOLE, _STEPS * (TIME_LIMIT if time_limit is None else time_limit))


def budget_of(seconds: float | None) -> Budget:
    """The budget of a person's time limit, the usual one if none was set."""
    return Budget() if seconds is None else Budget(seconds)


@dataclass(frozen=True)
class WatchedTarget(Target):
    """A target that calls ``before`` each time a program of it is made: where many sizes are tried, one is a unit."""

    before: Callable[[], None] = lambda: None

    def build(
        self,
        params: Mapping[str, int] | None = None,
        *,
        grid: int | None = None,
        twice: bool = True,
        most: int | None = None,
    ) -> Program:
        """As the target's."""
        self.before()
        return super().build(params, grid=grid, twice=twice, most=most)


def watch_builds(target: Target, before: Callable[[], None]) -> Target:
    """The same target, which calls ``before`` whenever it makes a program."""
    return WatchedTarget(**{field.name: getattr(target, field.name) for field in fields(Target)}, before=before)


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
