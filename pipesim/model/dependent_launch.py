"""What a kernel does that its order with other kernels of a stream depends on (PTX ISA, "griddepcontrol")."""

from enum import Enum
from typing import NamedTuple


class LaunchAct(Enum):
    """What happens. The value is its name in JSON."""

    WAIT = "wait"  #: griddepcontrol.wait: what earlier kernels do is complete and visible
    TRIGGER = "trigger"  #: griddepcontrol.launch_dependents: dependent kernels may begin
    LOAD = "load"  #: of global memory
    STORE = "store"  #: to global memory; atomics and reductions as well


class EarlierUse(Enum):
    """What earlier kernels may do with a buffer, as a launch file says it; UNKNOWN: it does not."""

    UNKNOWN = "unknown"
    NONE = "none"
    READS = "reads"
    WRITES = "writes"


class LaunchEvent(NamedTuple):
    """An event of an agent: an access after ``at`` of its operations, or its operation number ``at``. They are in the
    order of one run.

    Of loads and stores, the first and the last at each ``place`` (``kernel.cu:12 (kernel.ptx:345)``). ``buffer``: the
    parameter that leads to the memory, "" if not known; ``earlier``: what earlier kernels do with it. ``waited``: the
    lanes have executed a wait, or met one that has. ``sure``: False where it may not happen.
    ``first``, ``end``: between which bytes of the buffer all CTAs access it at this place; end -1 if that is not known.
    """

    kind: LaunchAct
    agent: int
    at: int
    place: str
    instruction: str
    buffer: str = ""
    earlier: EarlierUse = EarlierUse.UNKNOWN
    waited: bool = False
    sure: bool = True
    first: int = 0
    end: int = -1

    @property
    def line(self) -> str:
        """The author's line, as operations of the program have it."""
        return self.place.partition(" (")[0]

    def row(self) -> list[object]:
        """Its JSON form."""
        return [each.value if isinstance(each, Enum) else each for each in self]
