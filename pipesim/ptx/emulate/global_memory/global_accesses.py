"""What a cluster does to global memory: each access with its bytes, and where it lies among its agent's operations.

It is recorded where :func:`pipesim.ptx.prepare.on_global_memory` has the addresses followed.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from pipesim.model.ops import Order, Scope
from pipesim.ptx.emit.record import Range, StreamRecorder
from pipesim.ptx.emulate.lanes.exchanges import ExchangeOrder, LaneExchanges, Way, lanes_at
from pipesim.ptx.emulate.memory import LOCAL_WINDOW_END, WINDOW, merge_ranges, runs
from pipesim.ptx.emulate.values import FULL, Leaf, PerLane, Ramp, Unknown, Value, integers, lanes_in
from pipesim.ptx.flow.opcodes import as_written
from pipesim.ptx.free.forms import Form, Terms
from pipesim.ptx.free.varying import form_of
from pipesim.ptx.text.instruction import Instruction

_MOST_RANGES = 1 << 20  #: that are recorded of one cluster
_MERGED = 1 << 14  #: ranges that are merged when there are as many


class AccessKind(Enum):
    """What an access does, and how."""

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"  #: also a reduction
    ASYNC_LOAD = "asynchronous load"  #: ``cp.async``, which its thread has to wait for
    BULK_LOAD = "bulk load"  #: ``cp.async.bulk`` and tensor copies, through the asynchronous proxy
    BULK_STORE = "bulk store"
    BULK_REDUCTION = "bulk reduction"

    @property
    def writes(self) -> bool:
        """Whether it changes memory."""
        return self not in _LOADS

    @property
    def is_atomic(self) -> bool:
        """Whether two of them may change the same bytes in any order."""
        return self in (AccessKind.ATOMIC, AccessKind.BULK_REDUCTION)


_LOADS = (AccessKind.LOAD, AccessKind.ASYNC_LOAD, AccessKind.BULK_LOAD)


class Strength(NamedTuple):
    """How strong an access is as written: ``order`` DEFAULT is a weak one. ``nc``: a load of constant data."""

    order: Order
    scope: Scope
    volatile: bool = False
    nc: bool = False

    @property
    def is_narrow(self) -> bool:
        """Whether its scope includes no thread of another cluster (PTX ISA, "Scope")."""
        return self.scope in (Scope.CTA, Scope.CLUSTER)


def strength_of(each: Instruction) -> Strength:
    """The strength of an access; an atomic without an order is relaxed at gpu scope (PTX ISA, "atom", "red")."""
    atomic = each.opcode in ("atom", "red")
    weak = Order.RELAXED if atomic else Order.DEFAULT
    order, scope = as_written(each.modifiers, weak, Scope.GPU if atomic else Scope.DEFAULT)
    if each.opcode in ("fence", "tensormap"):  # of a tensor map, which they access as weak ones do
        order = weak
    return Strength(order, scope, each.has("volatile"), each.has("nc"))


@lru_cache(maxsize=4096)
def kind_of(opcode: str, modifiers: tuple[str, ...]) -> AccessKind:
    """What an instruction that accesses global memory does to it."""
    if opcode == "cp":
        if "bulk" not in modifiers:
            return AccessKind.ASYNC_LOAD
        spaces = [m for m in modifiers if m == "global" or m.startswith("shared")]
        if spaces and spaces[0] != "global":
            return AccessKind.BULK_LOAD
        return AccessKind.BULK_REDUCTION if "reduce" in modifiers else AccessKind.BULK_STORE
    if opcode in ("atom", "red") or (opcode == "multimem" and "red" in modifiers):
        return AccessKind.ATOMIC
    stores = opcode in ("st", "tensormap") or {"multimem": "st", "wmma": "store"}.get(opcode) in modifiers
    return AccessKind.STORE if stores else AccessKind.LOAD


@dataclass(frozen=True, slots=True)
class GlobalAccess:
    """Accesses of an agent at one position of the code, with none of its operations in between.

    ``index``: how many operations its stream had then. ``ranges``: bytes, each to be added to the sum of ``terms``,
    which are empty where the address is the same in all CTAs. Of a copy by a tensor map (``map`` is its address)
    ``ranges`` is empty, ``corner`` are the coordinates of a box of ``box`` elements, innermost first; () where the box
    is not known. ``why``: the address is not known, by this. ``sure``: False where it may not happen.
    """

    position: int
    agent: int
    index: int
    kind: AccessKind
    terms: Terms = ()
    ranges: tuple[Range, ...] = ()
    sure: bool = True
    why: Leaf | None = None
    map: Form | None = None
    corner: tuple[Form, ...] = ()
    box: tuple[int, ...] = ()


def lanes_of_address(address: Value, mask: int) -> list[int]:
    """The addresses of the lanes of ``mask`` that are known, and in no other memory than global."""
    lanes = [address.each[lane] for lane in lanes_in(mask)] if isinstance(address, PerLane) else [address]
    return [one for one in lanes if isinstance(one, int) and not WINDOW <= int.__int__(one) < LOCAL_WINDOW_END]


_Key = tuple[int, int, int, AccessKind, bool, Terms]


class GlobalAccesses:
    """The accesses of a cluster to global memory, in the order in which they were first made.

    ``left_open``: by position, why it is not known whether, where or how often it accesses memory. ``alike``: of stores
    of several lanes to the same bytes in one instruction. ``in_step``: of accesses of lanes to what others of their
    warp have accessed before, where no barrier of both is in between. ``unsure``: by agent and position why an access
    may not happen, as in ``Program.unsure``.
    """

    def __init__(self, recorder: StreamRecorder) -> None:
        self._recorder = recorder
        self._ranges: dict[_Key, list[Range]] = {}
        self._others: dict[GlobalAccess, None] = {}
        self._count, self._merge_at = 0, _MERGED
        self.left_open: dict[int, Leaf] = {}
        self.alike: set[int] = set()
        self.in_step: set[int] = set()
        self.unsure: dict[int, dict[int, int]] = {}
        self.limited = False  #: there were more than are recorded

    def __iter__(self) -> Iterator[GlobalAccess]:
        for (agent, position, index, kind, sure, terms), ranges in self._ranges.items():
            yield GlobalAccess(position, agent, index, kind, terms, tuple(merge_ranges(ranges)), sure)
        yield from self._others

    def leave_open(self, positions: Collection[int], leaf: Leaf | None) -> None:
        """It is not known what an agent accesses at these positions."""
        for position in positions:
            self.left_open.setdefault(position, leaf or Leaf("an unknown value", 0))

    def add(self, agent: int, each: Instruction, address: Value, size: int, mask: int, *, sure: bool) -> None:
        """The lanes of ``mask`` access ``size`` bytes each; those whose address is one of another memory do not."""
        kind = kind_of(each.opcode, each.modifiers)
        lanes: Iterable[Value] = (address,)
        if isinstance(address, PerLane):
            if address.__class__ is Ramp and mask == FULL and 0 <= address.step <= size:
                form, rise = form_of(address.first), 31 * address.step
                if int.__int__(address.first) + rise < WINDOW:
                    self._note_lanes(each, kind, 31 * size - rise)
                    found_at = [(form.constant, form.constant + rise + size)]
                    self._extend(agent, each, kind, form.terms, found_at, sure=sure)
                    return
            lanes = address.each if mask == FULL else [address.each[lane] for lane in lanes_in(mask)]
            if integers(lanes) and max(lanes) < WINDOW:
                ranges = runs(tuple(lanes), size)
                self._note_lanes(each, kind, len(lanes) * size - sum(end - first for first, end in ranges))
                self._extend(agent, each, kind, (), ranges, sure=sure)
                return
        found: dict[Terms, list[int]] = {}
        for one in lanes:
            if not isinstance(one, int):
                leaf = one.leaf if isinstance(one, Unknown) else None
                self.leave_open((each.position,), leaf)
            elif not WINDOW <= int.__int__(one) < LOCAL_WINDOW_END:
                form = form_of(one)
                found.setdefault(form.terms, []).append(form.constant)
        for terms, starts in found.items():
            ranges = runs(tuple(starts), size)
            self._note_lanes(each, kind, len(starts) * size - sum(end - first for first, end in ranges))
            self._extend(agent, each, kind, terms, ranges, sure=sure)

    def follow_lanes(
        self, exchanges: LaneExchanges, way: Way, each: Instruction, address: Value, size: int, mask: int
    ) -> None:
        """The lanes of ``mask`` load or store; of addresses the lower half is compared, in one memory each."""
        run, strength = {"ld": exchanges.read, "st": exchanges.write}.get(each.opcode), strength_of(each)
        if address.__class__ is Ramp:  # no decision on the CTA
            address = Ramp(int.__int__(address.first), address.step)
        starts = [int.__int__(one) for one in lanes_of_address(address, mask)]
        if run is None or not starts or strength.volatile or strength.order is not Order.DEFAULT:
            return
        lanes = lanes_at(mask, (one & 0xFFFFFFFF for one in starts))
        if run(-1 - (min(starts) >> 32), lanes, size, way) is not ExchangeOrder.PTX:
            self.in_step.add(each.position)

    def _note_lanes(self, each: Instruction, kind: AccessKind, common: int) -> None:
        if common > 0 and kind is AccessKind.STORE:
            self.alike.add(each.position)

    def _extend(
        self, agent: int, each: Instruction, kind: AccessKind, terms: Terms, ranges: list[Range], *, sure: bool
    ) -> None:
        if self._count > _MOST_RANGES:
            self.limited = True
            return
        key = agent, each.position, len(self._recorder.streams[agent].code), kind, sure, terms
        held = self._ranges.setdefault(key, [])
        if held[-len(ranges) :] != ranges:
            held += ranges
            self._count += len(ranges)
            if self._count > self._merge_at:
                self._ranges = {each: merge_ranges(found) for each, found in self._ranges.items()}
                self._count = len(self._others) + sum(map(len, self._ranges.values()))
                self._merge_at = max(2 * self._count, _MERGED)

    def add_box(
        self,
        agent: int,
        each: Instruction,
        where: Value,
        corner: tuple[Value, ...],
        box: tuple[int, ...],
        *,
        sure: bool,
    ) -> None:
        """A copy of the box at ``corner`` by the tensor map at an address."""
        unknown = next((one for one in (where, *corner) if not isinstance(one, int)), None)
        if unknown is not None:
            self.leave_open((each.position,), unknown.leaf if isinstance(unknown, Unknown) else None)
            return
        index = len(self._recorder.streams[agent].code)
        kind, forms = kind_of(each.opcode, each.modifiers), tuple(map(form_of, corner))
        self._count += 1
        if self._count > _MOST_RANGES:
            self.limited = True
            return
        made = GlobalAccess(
            each.position, agent, index, kind, sure=sure, map=form_of(where), corner=forms, box=box
        )  # fmt: skip
        self._others[made] = None
