"""What is recorded of a process, as it travels in an environment variable; and why a kernel is not recorded."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pipesim.bounds import MAX_TEXT
from pipesim.errors import ParameterError, PipesimError
from pipesim.inputs import json_value

OPTIONS = "PIPESIM_RECORD"  #: the environment variable that says the same to a child process, as JSON
MOST_LAUNCHES = 1024
_MOST_DEADLINE_S = 24 * 3600.0


@dataclass(frozen=True)
class RecordOptions:
    """``launches`` of each kernel are recorded, after the first ``skip`` of them.

    ``deadline_s``: seconds after which a launch is stopped, None: it is waited for. ``waits_only``: records at waits
    alone, where registers are short. ``cta``: the CTA that leaves records, with the others of its cluster.
    ``ends_process``: where a launch does not end although it is stopped. ``dump``: a folder of a compiler's PTX, for
    kernels whose PTX is not found; it is read when one is launched. Raises ParameterError for a value out of its range.
    """

    launches: int = 1
    skip: int = 0
    deadline_s: float | None = None
    waits_only: bool = False
    cta: int = 0
    ends_process: bool = False
    dump: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.launches <= MOST_LAUNCHES:
            raise ParameterError(
                f"{self.launches:,} launches to record", correction=f"use 1 to {MOST_LAUNCHES:,} of each kernel"
            )
        if self.skip < 0:
            raise ParameterError(f"{self.skip:,} launches to skip", correction="use 0 or more")
        if not 0 <= self.cta < 1 << 31:
            raise ParameterError(f"CTA {self.cta:,} to record", correction="use a CTA's number in the grid, from 0")
        if self.deadline_s is not None and not (
            math.isfinite(self.deadline_s) and 0 < self.deadline_s <= _MOST_DEADLINE_S
        ):
            raise ParameterError(f"a deadline of {self.deadline_s} s", correction="use more than 0 s, at most a day")

    @property
    def stop_flag(self) -> bool:
        """Whether a kernel can be stopped; it costs a look at memory at each wait that spins."""
        return self.deadline_s is not None

    def to_environment(self) -> dict[str, str]:
        """The variable for a child process."""
        return {OPTIONS: json.dumps(asdict(self))}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "RecordOptions":
        """What the variable says; the defaults where it is missing."""
        given = environment.get(OPTIONS, "")
        return cls(**json_value(given, MAX_TEXT)) if given else cls()


NO_BARRIER = "no barrier"


class NotRecordableError(PipesimError):
    """A kernel that is left as it is, for a reason that is not a mistake."""


class NoBarrierError(NotRecordableError):
    """A kernel in which no warp waits for another one."""
