"""What ``hang`` answers: why a program was dumped, and the core dump of each of its processes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pipesim.answers.views.autopsy import AutopsyReport


class HangCause(Enum):
    """Why a program was dumped. The value is a phrase for a report."""

    ASKED = "a person asked for it"
    STOOD_STILL = "nothing was read or written by it"


class DumpEnd(Enum):
    """How a core dump ended. The value is a phrase for a report."""

    COMPLETE = "complete"
    TRUNCATED = "truncated: its process ended, or the disk was full, before it was whole"
    MISSING = "missing: the driver wrote nothing"


@dataclass(frozen=True)
class ProcessDump:
    """The core dump of a process: ``rank`` in a distributed program ("" if it has none), the file and its size."""

    process: int
    rank: str
    file: str
    nbytes: int
    end: DumpEnd


@dataclass(frozen=True)
class DumpsAlike:
    """Dumps whose kernels stand alike, and what the first says; None, for a ``problem``, if it cannot be read."""

    dumps: tuple[ProcessDump, ...]
    autopsy: AutopsyReport | None
    problem: str = ""


@dataclass(frozen=True)
class HangReport:
    """What became of a program. ``cause`` is None where it ended by itself, with ``status`` as a shell has it.

    ``seconds``: without input and output, where that was the cause. ``dumps``: one of each process with a CUDA context.
    ``alike``: those that are complete, by what they say.
    """

    command: tuple[str, ...]
    status: int | None
    cause: HangCause | None
    seconds: float | None
    dumps: tuple[ProcessDump, ...]
    alike: tuple[DumpsAlike, ...] = ()

    @property
    def complete(self) -> tuple[ProcessDump, ...]:
        """Those that can be read to their end."""
        return tuple(each for each in self.dumps if each.end is DumpEnd.COMPLETE)
