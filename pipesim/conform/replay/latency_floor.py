"""The least latency of each path from an operation to the return of the wait it releases, as measured on a device.

One JSON document a device in the folder ``floors``, and one in ``floors/ptx`` for kernels that were recorded by their
PTX, with less between a timestamp and its instruction. They were made in November 2026 from the stored experiments,
lowered by the largest share by which any of half of the stored recordings was below them. The numbers are lower bounds:
a device was never seen to be faster, so a wait that returned sooner did not return because of that operation. No
document, no bounds.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from pipesim.bounds import MAX_SMALL_BYTES
from pipesim.errors import ProfileError
from pipesim.inputs import InputKind

FORMAT, VERSION = "pipesim-latency-floors", 1
FOLDER = Path(__file__).parent / "floors"
PTX_FOLDER = FOLDER / "ptx"
FLOORS = InputKind(
    "document of latency bounds", MAX_SMALL_BYTES, ProfileError, "install pipesim again, of which it is a part"
)


class ReleasePath(StrEnum):
    """From the issue of what to the return of a wait."""

    ARRIVE = "arrive"  #: an arrive on an mbarrier of the own CTA
    REMOTE_ARRIVE = "remote arrive"  #: one on an mbarrier of another CTA of the cluster
    CP_ASYNC_ARRIVE = "cp.async arrive"  #: cp.async.mbarrier.arrive
    COPY = "copy"  #: a bulk or tensor copy into the issuer's own CTA
    COPIES = "copies"  #: all copies of a phase that its CTA issues to itself, from the issue of the first of them
    MULTICAST = "multicast"  #: a multicast, as it reaches the issuer's own CTA
    MULTICAST_AWAY = "multicast to another CTA"


@dataclass(frozen=True, order=True)
class Least:
    """The least cycles ever measured from ``nbytes`` on, and how many measurements that is the least of."""

    nbytes: int
    cycles: int
    samples: int


@dataclass(frozen=True)
class LatencyFloors:
    """One device's bounds: of each path a table by bytes, in ascending order. ``source``: from what, in words."""

    device: str
    sm_khz: int
    source: str
    paths: Mapping[ReleasePath, tuple[Least, ...]]

    def least(self, path: ReleasePath, nbytes: int, sm_khz: int) -> Least | None:
        """The bound for this many bytes at this SM clock; None if the path was not measured.

        It is that of the next smaller size in the table. The way to the L2 cache and back has a clock of its own, so
        that it takes fewer cycles of an SM that runs slower: the bound shrinks with the clock, and never grows.
        """
        table = self.paths.get(path, ())
        at = bisect_right(table, nbytes, key=lambda entry: entry.nbytes)
        if not at:
            return None
        found = table[at - 1]
        return Least(found.nbytes, found.cycles * min(sm_khz, self.sm_khz) // self.sm_khz, found.samples)


@cache
def floors_for(device: str, *, by_ptx: bool = False) -> LatencyFloors | None:
    """The bounds of the device of this exact name, None if none were measured.

    ``by_ptx``: for kernels that were recorded by their PTX.
    """
    for path in sorted((PTX_FOLDER if by_ptx else FOLDER).glob("*.json")):
        floors = parse_floors(FLOORS.read_text(path), str(path))
        if floors.device == device:
            return floors
    return None


def parse_floors(text: str, place: str = "") -> LatencyFloors:
    """The bounds in a document of this package. ProfileError if it is none."""
    try:
        data: Any = FLOORS.parse_json(text, place)
        if (data["format"], data["version"]) != (FORMAT, VERSION):
            raise ValueError(f"it is {brief(data['format'])} {brief(data['version'])}")
        paths = {ReleasePath(name): tuple(Least(*row) for row in rows) for name, rows in data["paths"].items()}
        return LatencyFloors(data["device"], data["sm_khz"], data["source"], paths)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ProfileError(
            "this is not a document of latency bounds", place=place, cause=str(error), correction=FLOORS.correction
        ) from None
