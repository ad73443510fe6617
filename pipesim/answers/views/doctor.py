"""What ``doctor`` answers: what this machine has of what pipesim uses, and so what can be done on it."""

from dataclasses import dataclass
from enum import Enum

from pipesim.answers.views.conclusion import Conclusion


class Purpose(Enum):
    """What a person may want to do. The value is a phrase for a report."""

    CHECK = "check, run, diff and verify: protocols, kernels' PTX, recorded traces"
    COMPILE = "compile CUDA kernels, as capture does (NVRTC)"
    CAPTURE = "capture and verify with fresh traces of this GPU"
    LAUNCHES = "launches: catch the kernels that a program launches"
    HANG = "hang: core dumps of a program whose kernels hang"
    TRITON = "launches.triton: launch files of Triton and Gluon kernels, without a GPU"
    TESTS = "pipesim's own tests"


@dataclass(frozen=True)
class MachinePart:
    """One thing that is there or not: ``found`` says which version and where, "" if it is missing or cannot be used.

    ``problem``: why not; ``correction``: the command, or the step, that corrects it, "" where there is none.
    ``needed``: what cannot be done without it.
    """

    name: str
    found: str
    problem: str = ""
    correction: str = ""
    needed: tuple[Purpose, ...] = ()

    @property
    def is_there(self) -> bool:
        """True if it can be used."""
        return not self.problem


@dataclass(frozen=True)
class Possible:
    """A use, and the names of the parts that it lacks."""

    use: Purpose
    lacks: tuple[str, ...]


@dataclass(frozen=True)
class DoctorReport:
    """The parts in the order in which they build on each other, what is possible, and what was asked for."""

    version: str
    place: str
    parts: tuple[MachinePart, ...]
    uses: tuple[Possible, ...]
    asked: tuple[Purpose, ...]

    @property
    def conclusion(self) -> Conclusion:
        """Agrees if all that was asked for is possible."""
        lacking = any(each.lacks for each in self.uses if each.use in self.asked)
        return Conclusion.WRONG if lacking else Conclusion.AGREES
