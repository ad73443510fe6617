"""How the emulation of a warp can end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pipesim.ptx.emulate.values import (
    Leaf,
    PerLane,
    Value,
    leaf_of,
    same,
)


class Status(Enum):
    """Whether a warp can go on."""

    READY = 0
    BLOCKED = 1
    STOPPED = 2
    ENDED = 3


@dataclass(frozen=True)
class WarpStop:
    """Why a warp was not followed further: the instruction's position, a sentence, and the unknown value, if any."""

    position: int
    line: int
    what: str
    leaf: Leaf | None = None


class Stopped(Exception):  # noqa: N818  # ends the emulation of one warp, which is a result
    """An instruction whose effect is not known, and that others may notice."""

    def __init__(self, what: str, leaf: Leaf | None = None) -> None:
        super().__init__(what)
        self.what, self.leaf = what, leaf


def known(value: Value, what: str) -> int:
    """An integer that all lanes agree on. Stopped if it is not known, or differs."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, PerLane):
        first = value.each[0]
        if isinstance(first, int) and all(same(first, v) for v in value.each):
            return int(first)
    raise Stopped(f"{what} is not known", leaf_of(value) or Leaf(f"{what} differs between lanes", 0))
