"""What a kernel's body is made into: straight runs of computations, and steps that do more than compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pipesim.ptx.emulate.values import Value
from pipesim.ptx.text.instruction import Instruction

Run = Callable[[list[Value], list[Value], Any], None]  #: registers, constants, warp
Getter = Callable[[list[Value], list[Value], Any], Value]


class After(Enum):
    """What ends a straight run."""

    NEXT = 0  #: nothing: another run begins
    BRANCH = 1
    EXIT = 2
    EFFECT = 3


@dataclass
class StraightRun:
    """A straight run of computations, and what ends it.

    ``guard``: the register of the predicate, -1 for none; ``target``: of a branch; ``next``: the position after it.
    """

    run: Run | None
    count: int
    after: After
    position: int
    next: int
    guard: int = -1
    negated: bool = False
    target: int = -1
    step: DecodedStep | None = None


@dataclass
class DecodedStep:
    """An instruction that does more than compute: its operands as functions of the warp."""

    instruction: Instruction
    guard: int
    negated: bool
    getters: tuple[Getter | None, ...]
    results: tuple[int, ...]
    needed: bool  #: others may notice whether it runs
    valued: bool  #: its result matters
    converges: bool  #: all lanes of a warp execute it together
    by_threads: bool  #: a barrier, which counts threads
    together: bool  #: PTX wants all lanes of a warp to execute it
    logged: bool  #: it is a step on the path of its warp
    effect: Callable[..., Any] = field(default=lambda *_: None)

    def get(self, index: int, warp: Any) -> Value:
        """The value of an operand."""
        getter = self.getters[index]
        assert getter is not None
        return getter(warp.R, warp.K, warp)

    def tensor(self, index: int, warp: Any) -> tuple[Value, list[Value]]:
        """The address of a tensor map and the coordinates of a box."""
        map_, coordinates = self.get(index, warp)
        return map_, coordinates
