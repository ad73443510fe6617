"""What ``check --redundant`` answers: the synchronisation of a proved program that it does not need."""

from dataclasses import dataclass
from enum import Enum

from pipesim.answers.views.check import CutBy
from pipesim.answers.views.conclusion import Conclusion, Heading, of_verdict
from pipesim.model.finding import Verdict
from pipesim.prove.redundant.kept_proof import Withheld
from pipesim.prove.redundant.removal import Removal


class RedundantStep(Enum):
    """What is done, each in its own time. The value is a phrase for a report."""

    PROOF = "the proof of the whole"
    SIZES = "the sizes that it holds for"
    ALONE = "each operation alone"
    TOGETHER = "a maximal set"


@dataclass(frozen=True)
class CutStep:
    """A step that did not finish, after ``done`` of ``of`` units (0: it is not known how many there are)."""

    step: RedundantStep
    why: CutBy
    done: int = 0
    of: int = 0


@dataclass(frozen=True)
class Sizes:
    """The values of a trip count for which the program with some removals is proved, the other parameters as given.

    ``least`` to ``checked`` are proved in the whole program one by one, and with the removals those of ``values``.
    ``every``: the whole program is proved for any value.
    ``shown``: so is the program with the removals, by the same argument; if False, at ``values`` only.
    """

    parameter: str
    values: tuple[int, ...]
    every: bool
    shown: bool


@dataclass(frozen=True)
class Removable:
    """Something that may go, every other operation staying: ``said``, ``lines`` of the author, and the edit itself."""

    removal: Removal
    said: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class RedundantReport:
    """The removals with which a program is still proved: ``alone`` each by itself, ``together`` as one edit.

    ``rules``: the optional rules, as switches, that program and removals satisfy; ``assumed``: those that the program
    breaks itself, where a removal adds no line that breaks them. ``tried``: edits; ``unfit``: those that hold at these
    parameters and not at other sizes; ``guarding``: those that may guard the allocation of tensor memory, which a
    program does not describe. ``together``: positions in ``alone``, or more than one where each was proved with those
    before it. ``withheld``: why nothing is offered.
    """

    heading: Heading
    verdict: Verdict
    operations: int
    rules: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    tried: int = 0
    alone: tuple[Removable, ...] = ()
    together: tuple[int, ...] = ()
    sizes: tuple[Sizes, ...] = ()
    unfit: int = 0
    guarding: int = 0
    withheld: Withheld | None = None
    left_out: tuple[CutStep, ...] = ()

    @property
    def conclusion(self) -> Conclusion:
        """As the verdict is; unknown where nothing could be offered, or a step did not finish."""
        if self.verdict is Verdict.REFUTED:
            return of_verdict(self.verdict)
        incomplete = self.withheld is not None or bool(self.left_out)
        return Conclusion.UNKNOWN if incomplete else of_verdict(self.verdict)
