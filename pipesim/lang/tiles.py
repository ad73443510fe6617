"""``TileArray`` and ``Slot``: tiles in the memory of each CTA, and the bytes of them that an operation names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import index

from pipesim.lang.author import author_error, whole
from pipesim.model.ops import Space


@dataclass(frozen=True, eq=False)
class Slot:
    """One slot of a tile array, or a range of bytes in it: ``slot.part(offset, nbytes)``.

    A slot is made once, so the same bytes asked for twice are the same object.
    """

    name: str
    space: Space
    offset: int
    nbytes: int
    rank: int = -1  #: the CTA in whose memory it is, -1 for the executing one

    @cached_property
    def _parts(self) -> dict[tuple[int, int, int], Slot]:
        """What was made of it already, by offset, bytes and rank: a loop asks for the same few again and again."""
        return {}

    def mapa(self, cta: int) -> Slot:
        """The same bytes in the CTA of this rank: for distributed shared memory, and MMAs of a pair of CTAs."""
        try:
            return self._parts[0, self.nbytes, index(cta)]
        except (KeyError, TypeError):
            made = Slot(self.name, self.space, self.offset, self.nbytes, cta)
        if type(cta) is int:
            self._parts[0, self.nbytes, cta] = made
        return made

    def part(self, offset: int, nbytes: int) -> Slot:
        """The bytes ``offset .. offset + nbytes`` of this slot."""
        try:
            return self._parts[index(offset), index(nbytes), self.rank]
        except (KeyError, TypeError):
            made = self._part(offset, nbytes)
        return self._parts.setdefault((made.offset - self.offset, made.nbytes, self.rank), made)

    def _part(self, offset: int, nbytes: int) -> Slot:
        offset, nbytes = whole(f"the offset of a part of {self.name}", offset), whole("its number of bytes", nbytes)
        if offset < 0 or nbytes <= 0 or offset + nbytes > self.nbytes:
            raise author_error(
                f"{nbytes} bytes at {offset} of {self.name}, which has {self.nbytes}",
                correction="give at least one byte, all of them inside the slot",
            )
        return Slot(self.name, self.space, self.offset + offset, nbytes, self.rank)


@dataclass(frozen=True)
class TileArray:
    """``slots`` tiles of ``nbytes`` each, from ``offset`` on, in the memory of each CTA."""

    name: str
    space: Space
    offset: int
    nbytes: int
    slots: int

    def __len__(self) -> int:
        return self.slots

    def __iter__(self) -> Iterator[Slot]:
        return (self[slot] for slot in range(self.slots))

    @cached_property
    def _slots(self) -> dict[int, Slot]:
        """The slots that were asked for already: a ring asks for the same few again and again."""
        return {}

    def __getitem__(self, slot: int) -> Slot:
        try:
            return self._slots[index(slot)]
        except (KeyError, TypeError):
            return self._slot(slot)

    def _slot(self, slot: int) -> Slot:
        slot = whole(f"the slot of {self.name}[...]", slot)
        if not 0 <= slot < self.slots:
            raise author_error(
                f"there is no {self.name}[{slot}]",
                cause=f"{self.name} has {self.slots} slots",
                correction=f"use 0 to {self.slots - 1}, for example {self.name}[stage.index()]",
            )
        made = Slot(f"{self.name}[{slot}]", self.space, self.offset + slot * self.nbytes, self.nbytes)
        return self._slots.setdefault(slot, made)
