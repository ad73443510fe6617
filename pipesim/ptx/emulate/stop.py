"""How the emulation of a warp can end, and what it assumes or leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from pipesim.errors import PtxError
from pipesim.model.ops import Space
from pipesim.model.tables import Access
from pipesim.ptx.emulate.values import Leaf
from pipesim.ptx.text.declarations import Variable
from pipesim.ptx.text.instruction import Instruction


class TouchedBytes(NamedTuple):
    """Bytes of the shared memory of a CTA that may be touched; of any one if that is -1.

    ``lows``: what the first bytes may be modulo ``modulus``, where that is known. They are multiples of ``size``, of
    which as many bytes are touched; both are powers of two.
    """

    first: int
    end: int
    cta: int = -1
    size: int = 1
    modulus: int = 1
    lows: frozenset[int] = frozenset()

    def shares_bytes(self, other: TouchedBytes) -> bool:
        """Whether both may have a byte of one CTA."""
        same = self.cta == other.cta or -1 in (self.cta, other.cta)
        if not same or self.first >= other.end or other.first >= self.end:
            return False
        known = [each.modulus for each in (self, other) if each.lows]
        size, modulus = max(self.size, other.size), min(known, default=1)
        return not self._blocks(size, modulus).isdisjoint(other._blocks(size, modulus))

    def _blocks(self, size: int, modulus: int) -> frozenset[int]:
        """The blocks of ``size`` bytes, modulo ``modulus``."""
        lows = self.lows or range(self.first, min(self.end, self.first + modulus))
        return frozenset(low % modulus // size for low in lows)

    def has_bytes_of(self, access: Access) -> bool:
        """Whether an access has some of them."""
        there = access.space is Space.SHARED and self.cta in (access.cta, -1)
        return there and access.offset < self.end and self.first < access.offset + access.nbytes


EVERYWHERE = TouchedBytes(0, 1 << 24)  #: all of the shared memory that a CTA can have


class SharedOrder(Enum):
    """Which accesses of several threads to the same bytes need no order: atomics, and stores if they store the same."""

    NEEDED = 0
    ATOMICS = 1
    STORES = 2


class UnreadAccess(NamedTuple):
    """The instruction's position, the agent, and what it may touch.

    ``barriers``: how many named barriers its agent has waited at before, None if it may end after others.
    """

    position: int
    agent: int
    writes: bool
    reach: TouchedBytes
    barriers: int | None = None
    order: SharedOrder = SharedOrder.NEEDED


def around(variables: Sequence[Variable], offset: int) -> TouchedBytes:
    """The bytes of the variable of a known size that an offset is in; everywhere if it is in none."""
    for each in variables:
        if not each.external and each.offset <= offset < each.offset + each.size:
            return TouchedBytes(each.offset, each.offset + each.size)
    return EVERYWHERE


class Status(Enum):
    """Whether a warp can continue."""

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


class EmulationStop(Exception):  # noqa: N818  # ends the emulation of one warp, which is a result
    """An instruction whose effect is not known, and that others may notice."""

    def __init__(self, what: str, leaf: Leaf | None = None) -> None:
        super().__init__(what)
        self.what, self.leaf = what, leaf


class IllegalOperand(EmulationStop):
    """An operand that PTX does not allow there, and what corrects it: a finding where it is sure that it runs."""

    def __init__(self, what: str, correction: str) -> None:
        super().__init__(what)
        self.correction = correction


#: How a missing operand, or one of another kind, is noticed.
MALFORMED = (IndexError, TypeError, ValueError, StopIteration, AssertionError)


def malformed_operands(instruction: Instruction) -> PtxError:
    """The error of an instruction whose operands are not those that PTX gives it.

    What follows an instruction takes its operands by place and kind and does not check them one by one: an assembler
    has done that for every file that a compiler wrote.
    """
    return PtxError(
        f"{instruction.mnemonic} cannot be followed with these operands",
        place=f"line {instruction.line} of the PTX",
        cause="it takes others, or pipesim does not know this form of it",
        correction="assemble the file with ptxas, which names what is wrong; if it accepts it, report this line",
    )


@dataclass
class Notes:
    """Positions, with words where there is more than one thing to say.

    ``time_outs``: waits whose time-out is not followed; ``traps``: branches to a trap that are not; ``left_out``:
    accesses; ``passed_over``: branches on values that are not known; ``apart``: where lanes are
    taken to be together that PTX does not have meet; ``ahead``: where lanes signal that do not wait for others on
    another way of a branch; ``exchanged``: where
    lanes access what others of their warp have accessed, in order only as they run in step;
    ``fences_of_some``: bytes that lanes have written before others alone execute a proxy fence, with its position;
    ``alike``: whether loads of memory are taken to give the same, as nothing is stored there by its pointer;
    ``unread``: instructions that are not known; ``policies``: what other CTAs would decide; ``inferred``: sizes;
    ``equal_stores``: stores by several warps to the same bytes; ``generic``: accesses to ``.shared`` that give a
    generic address; ``own_lanes``: those of tensor memory by a warp at the lanes of the first; ``fences``: those of
    which it is not known whether they run, which therefore order nothing; ``fences_passed_by``: those after which lanes
    signal that did not execute them, with the words; ``fences_apart``: those that count for nothing for that reason;
    ``illegal``: operands that PTX does not allow, each with the agent, what is wrong and what corrects it;
    ``undefined``: what PTX leaves undefined; ``partial``: what
    all lanes of a warp have to execute and some do, with the warp's number; ``accesses``: what ``left_out`` and
    ``unread`` may touch; ``perhaps``: branches and accesses by a value that is not known, with what it is;
    ``reductions``: those of bytes that another one changes, in whatever order; ``unknown_meetings``: instructions
    in which lanes wait for others of their warp, where it is not known which lanes come there; ``asked_together``:
    branches on the answers of several tries.
    """

    time_outs: set[int] = field(default_factory=set)
    traps: set[int] = field(default_factory=set)
    left_out: dict[int, str] = field(default_factory=dict)
    passed_over: set[int] = field(default_factory=set)
    apart: set[int] = field(default_factory=set)
    ahead: set[int] = field(default_factory=set)
    alike: bool = False
    unread: dict[int, str] = field(default_factory=dict)
    policies: dict[int, str] = field(default_factory=dict)
    inferred: dict[int, str] = field(default_factory=dict)
    equal_stores: set[int] = field(default_factory=set)
    generic: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    polls: set[int] = field(default_factory=set)
    asked_together: set[int] = field(default_factory=set)
    own_lanes: dict[int, tuple[int, str, str]] = field(default_factory=dict)
    fences: set[int] = field(default_factory=set)
    fences_passed_by: dict[int, set[int]] = field(default_factory=dict)
    fences_apart: set[int] = field(default_factory=set)
    undefined: dict[int, str] = field(default_factory=dict)
    illegal: dict[int, tuple[int, str, str]] = field(default_factory=dict)
    perhaps: dict[int, str] = field(default_factory=dict)
    reductions: set[int] = field(default_factory=set)
    partial: dict[int, int] = field(default_factory=dict)
    accesses: dict[UnreadAccess, None] = field(default_factory=dict)
    exchanged: set[int] = field(default_factory=set)
    fences_of_some: dict[UnreadAccess, None] = field(default_factory=dict)
    unknown_meetings: set[int] = field(default_factory=set)
