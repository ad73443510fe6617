"""What is known of what the CTAs of a launch do to global memory: races, what a schedule has to order, what is open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class GlobalRace:
    """Two clusters access the same bytes: the positions of both accesses, and the numbers of both CTAs in the grid.

    The first one writes, which this ``agent`` of its cluster does; ``what`` are the bytes, in words. ``lost``: it
    stores there what it has made of a load, by accesses that are strong, so that it is not a data race.
    """

    position: int
    other: int
    cta: int
    other_cta: int
    what: str
    both_write: bool
    agent: int
    lost: bool = False


@dataclass(frozen=True)
class MeetingInside:
    """Bytes that several warps of one cluster access, the cluster of this CTA; ``positions`` of what accesses them.

    They are in the memory of this ``name`` at address ``base``. ``everywhere``: in all clusters that do the same it is
    the same. ``told``: the warps may order them by words of global memory.
    """

    cta: int
    name: str
    base: int
    ranges: tuple[tuple[int, int], ...]
    positions: frozenset[int]
    everywhere: bool
    told: bool = False


@dataclass(frozen=True)
class GridMemory:
    """What is known of what the clusters of a launch do to global memory.

    ``left_open``: by position, why it is open. ``equal``: stores of one value by several clusters to the same
    bytes. ``apart``: whether several memories are accessed, one of them written, which are taken to be different.
    ``inside``: what a schedule of one cluster has to order. ``cut``: why nothing is known that is not in ``races``, ""
    if it is.
    """

    ctas: int
    races: tuple[GlobalRace, ...] = ()
    left_open: Mapping[int, str] = field(default_factory=dict)
    equal: frozenset[int] = frozenset()
    inside: tuple[MeetingInside, ...] = ()
    apart: bool = False
    cut: str = ""

    def with_left_open(self, positions: Iterable[int], why: str) -> GridMemory:
        """With more that is open."""
        return replace(self, left_open={**dict.fromkeys(positions, why), **self.left_open})


DATA = "data decides where"
OUTSIDE = "its addresses in all CTAs are not in one buffer of the launch"
CHANGED = "the kernel changes tensor maps"
BOX = "its box is not known"
ORDER = "other CTAs may access the same bytes, and what orders it is not followed"
LOST = f"an update that is not atomic: {ORDER}"
MAYBE = "it may not happen"
MANY = "too many places"
CONSTANT = "a load of constant data, of bytes that this launch writes"
SCOPE = "its scope is a CTA, and other CTAs of the cluster access the same bytes"
INSIDE = "other warps, or copies under way, access the same bytes, and what orders it is not followed"
