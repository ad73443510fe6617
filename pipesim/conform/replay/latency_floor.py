"""The least latency of each path from an operation to the return of the wait it releases, as measured on a device.

One JSON document a device in the folder ``floors``, and one in ``floors/ptx`` for kernels that were recorded by their
PTX, with less between a timestamp and its instruction. They were made in November 2026 from the stored experiments,
lowered by the largest share by which any of half of the stored recordings was below them. The numbers are lower bounds:
a device was never seen to be faster, so a wait that returned sooner did not return because of that operation. No
document, no bounds.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from pipesim.bounds import MAX_ADDRESS, MAX_CYCLES, MAX_KHZ, MAX_SMALL_BYTES
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
    """The bounds in a document. ProfileError if it is none, or if a table is not in ascending order."""
    try:
        found = _floors(FLOORS.parse_json(text, place))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ProfileError(
            "this is not a document of latency bounds", place=place, cause=str(error), correction=FLOORS.correction
        ) from None
    wrong = _wrong(found)
    if wrong:
        raise ProfileError(wrong, place=place, cause="the file was edited", correction=FLOORS.correction)
    return found


def _floors(data: Any) -> LatencyFloors:
    """A document as bounds; of another form it is a KeyError, a TypeError, an AttributeError or a ValueError."""
    if (data["format"], data["version"]) != (FORMAT, VERSION):
        raise ValueError(f"it is {brief(data['format'])} {brief(data['version'])}")
    paths = {ReleasePath(name): tuple(Least(*row) for row in rows) for name, rows in data["paths"].items()}
    return LatencyFloors(data["device"], data["sm_khz"], data["source"], paths)


def _wrong(floors: LatencyFloors) -> str:
    """What makes no sense in a document of the right form, "" if nothing does."""
    numbers = [number for table in floors.paths.values() for least in table for number in astuple(least)]
    if not all(type(number) is int for number in (*numbers, floors.sm_khz)):
        return "latency bounds are whole numbers"
    if {type(floors.device), type(floors.source)} != {str}:
        return "the device and the source of latency bounds are texts"
    for name, table in floors.paths.items():
        sizes, cycles = [entry.nbytes for entry in table], [entry.cycles for entry in table]
        if not table or sizes != sorted(set(sizes)) or cycles != sorted(cycles):
            return f"the table of {name} does not rise"
        if not 0 <= sizes[0] <= sizes[-1] <= MAX_ADDRESS or not 0 <= cycles[0] <= cycles[-1] <= MAX_CYCLES:
            return f"the table of {name} has a number out of range"
    return "" if 0 < floors.sm_khz <= MAX_KHZ else "the SM clock of latency bounds is positive"


def floors_text(floors: LatencyFloors) -> str:
    """The document of these bounds, the same bytes every time; a row is bytes, cycles, samples."""
    head = {"format": FORMAT, "version": VERSION, "device": floors.device, "sm_khz": floors.sm_khz}
    lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in (head | {"source": floors.source}).items()]
    tables = []
    for name, table in sorted(floors.paths.items()):
        rows = ",\n".join(f"   [{e.nbytes}, {e.cycles}, {e.samples}]" for e in table)
        tables.append(f"  {json.dumps(name.value)}: [\n{rows}\n  ]")
    lines.append(' "paths": {\n' + ",\n".join(tables) + "\n }")
    return "{\n" + ",\n".join(lines) + "\n}\n"
