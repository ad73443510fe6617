"""The lives of an mbarrier: from an init to the inval that ends it, and perhaps to another init of the same word.

A life is closed if its inval occurs after every other operation of that life and after the completion of each of its
phases, and if the open phase is untouched. Then, in every schedule, nothing of one life can meet the next, and phases
may be numbered through all lives of a word: whoever knows of the next init knows that the phases before it are over.
"""

from __future__ import annotations

from pipesim.model.ops import Op
from pipesim.model.positions import BARRIER
from pipesim.model.program import Program
from pipesim.prove.happens_before.clock import Clock
from pipesim.prove.happens_before.snapshot import Marks

Place = tuple[int, int]  #: an operation: agent and pc


class Lives:
    """Which init of each mbarrier is in force, and who has used the barrier since."""

    def __init__(self, program: Program) -> None:
        self._ended = {op[BARRIER] for code in program.code for op in code if op[0] == Op.INVAL}
        self._inits: dict[int, Place] = {}
        self._invals: dict[int, Place] = {}  # of words that are in no life now
        self._uses: dict[int, dict[int, int]] = {bar: {} for bar in self._ended}  # by agent the last operation
        self._landings: dict[int, tuple[Place, int]] = {}  # the last that was no operation's own, and its phase
        self._begun: dict[int, int] = {}  # lives that were begun, of the words that have several

    def fork(self) -> Lives:
        """The same, to continue by itself."""
        twin = object.__new__(Lives)
        twin._ended = self._ended
        twin._inits, twin._invals = self._inits.copy(), self._invals.copy()
        twin._uses = {bar: uses.copy() for bar, uses in self._uses.items()}
        twin._landings, twin._begun = self._landings.copy(), self._begun.copy()
        return twin

    def begin(self, bar: int, place: Place, clock: Clock) -> bool:
        """An init. True if it occurs after the inval of the life before, if there was one."""
        inval = self._invals.pop(bar, None)
        follows = bar not in self._inits and (inval is None or inval[0] == place[0] or clock.covers(*inval))
        self._inits[bar] = place
        if bar in self._ended:
            self._begun[bar] = self._begun.get(bar, 0) + 1
        return follows

    def use(self, bar: int, place: Place, clock: Clock) -> bool:
        """An operation on the barrier. True if it occurs after the init."""
        if bar in self._ended:
            self._uses[bar][place[0]] = place[1]
        init = self._inits.get(bar)
        return init is not None and (init[0] == place[0] or clock.covers(*init))

    def land(self, bar: int, place: Place, phase: int) -> None:
        """An arrival or bytes of an operation that was carried out before come in this phase."""
        if bar in self._ended:
            self._landings[bar] = place, phase

    def end(self, bar: int, place: Place, clock: Clock, phases: int) -> tuple[Place, ...]:
        """An inval, after this many phases of the channel: the operations that it may come before in some schedule."""
        early = [use for use in self._uses[bar].items() if use[0] != place[0] and not clock.covers(*use)]
        issued, phase = self._landings.pop(bar, ((-1, -1), -1))
        if phase == phases - 1 and clock.known[bar] < phases:  # the last phase occurs after those before it
            early.append(issued)
        self._inits.pop(bar, None)
        self._invals[bar] = place
        self._uses[bar] = {}
        return tuple(early)

    def mark(self, marks: Marks) -> None:
        """Enter all that may yet be compared."""
        marks.operations += sorted(self._inits.values())
        marks.operations += sorted(self._invals.values())
        marks.shape += (tuple(sorted(self._begun.items())), len(self._inits), len(self._invals))
        for bar in sorted(self._ended):
            marks.shape += (bar, len(self._uses[bar]), bar in self._landings)
            marks.operations += sorted(self._uses[bar].items())
            if bar in self._landings:
                issued, phase = self._landings[bar]
                marks.operations.append(issued)
                marks.phases.append((bar, phase))
