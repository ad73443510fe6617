"""How much each step of an answer may do: asked between units of work, so that what is known by then is kept.

Work is counted in operations of the programs that a step makes or tries, so that the same question has the same answer
under any load. Seconds only end a step early where a person sets a limit, and the answer says so.
"""

from collections.abc import Callable
from time import monotonic

from pipesim.answers.views.check import CutBy
from pipesim.model.program import Program

WORK_LIMIT = 4_000_000  #: operations of a step: about a minute of one core
WHOLE_TIME = 1_200.0  #: seconds of all steps of a protocol, unless a person sets the time of a step
_STEPS = 20  #: all of a protocol may take as long as this many steps
_LEAST_WHOLE = 10.0  #: seconds that it may take at least

_LEAST_OF_A_UNIT = 500  #: operations that the smallest unit counts as: what a short program costs beside its own


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


USUAL_STATES = 200_000
#: Of a program read from PTX: seconds. One that is not decided by then has too many agents to be decided so.
LEAST_OF_A_KERNEL, MOST_OF_A_KERNEL = 5_000, 50_000
_MOST_PARTS = 30_000_000  #: of all states together: 8 bytes for each agent, barrier and cell of memory in each


def states_of(given: int | None, program: Program) -> int:
    """The number that a person gave, else the usual one: fewer where a state is wide, or a kernel long."""
    if given is not None:
        return given
    most = _MOST_PARTS // (1 + len(program.agents) + len(program.barriers) + len(program.cell_ctas))
    if not program.coverage.extracted:
        return min(USUAL_STATES, most)
    by_length = 10_000_000 // max(1, sum(map(len, program.code)))
    return min(MOST_OF_A_KERNEL, max(LEAST_OF_A_KERNEL, by_length), most)
