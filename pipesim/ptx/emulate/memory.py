"""Memory exact to the byte: what is known about shared memory, and which item each range of it holds; its addresses.

A shared address carries the rank of its CTA in bits 24 and up, as the hardware's do: kernels clear bit 24 to reach the
leader of a pair. Generic addresses of shared memory lie in a window of their own; those of other spaces are themselves.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from operator import sub

from pipesim.bounds import MAX_STORED_BYTES
from pipesim.ptx.emulate.values import Leaf, PerLane, Unknown, Value, integers, join_lanes, lift
from pipesim.ptx.free.forms import Form
from pipesim.ptx.free.varying import Varying

_LONGEST = 15  #: bytes before another one that what is stored as one integer may have
RANK_SHIFT = 24
#: Of a CTA's variables: the first KiB is the system's (CUDA programming guide, compute capability 9).
SHARED_BASE = 0x400
WINDOW = 0x07F0_0000_0000_0000  #: where the generic window over shared memory begins: no device has memory there
WINDOW_END = WINDOW + (1 << 32)
LOCAL_WINDOW = 0x07F8_0000_0000_0000  #: where generic addresses of local memory begin
LOCAL_WINDOW_END = LOCAL_WINDOW + (1 << 32)
MODULE_VARIABLES = 0x07D0_0000_0000_0000  #: where the module's own variables in global and constant memory begin
OFFSET = (1 << RANK_SHIFT) - 1


@dataclass
class Bytes:
    """Known bytes of one memory by address; a byte that is missing is not known.

    What was stored as one integer is also there by its address, to be looked at and changed by whoever compares laps.
    """

    known: dict[int, Value] = field(default_factory=dict)
    _stored: dict[int, tuple[Value, list[Value | None]]] = field(default_factory=dict)  #: integers, and their bytes
    _low: int = 1 << 62  #: no byte below this has been known
    _high: int = 0  #: no byte from this on has been known
    seen: dict[tuple[int, int], Value] = field(default_factory=dict)  #: what of bytes that are not known was loaded

    def store(self, address: int, size: int, value: Value) -> None:
        """Put the low ``size`` bytes of a value that is one integer, or not known."""
        self._forget_seen(address, address + size)
        if not isinstance(value, int):
            self.forget(address, address + size)
            return
        if len(self.known) > MAX_STORED_BYTES:
            self.known.clear()
        self._low, self._high = min(self._low, address), max(self._high, address + size)
        parts: list[Value | None] = [value >> 8 * i & 255 for i in range(size)]
        self.known.update(zip(range(address, address + size), parts, strict=True))
        self._note(address, value & (1 << 8 * size) - 1, parts)

    def _note(self, address: int, value: Value, parts: list[Value | None]) -> None:
        """Remember what was stored as one, and forget what has bytes of it."""
        size = len(parts)
        for at in range(address - _LONGEST, address + size):
            held = self._stored.get(at)
            if held is not None and at + len(held[1]) > address and (at, len(held[1])) != (address, size):
                del self._stored[at]
        self._stored[address] = value, parts

    def stored(self) -> dict[int, int]:
        """The addresses of integers that are there as they were stored, or were left, with their sizes."""
        return {at: len(parts) for at, (_, parts) in self._stored.items() if self._is_there(at, parts)}

    def _is_there(self, address: int, parts: list[Value | None]) -> bool:
        return all(self.known.get(address + i) is part for i, part in enumerate(parts))

    def __getitem__(self, address: int) -> Value:
        return self._stored[address][0]

    def __setitem__(self, address: int, value: Value) -> None:
        """Another value for what was stored there as one integer."""
        size = len(self._stored[address][1])
        self.store(address, size, value)
        if not isinstance(value, int):
            self._note(address, value, [None] * size)

    def load(self, address: int, size: int, leaf: Leaf) -> Value:
        """The integer in these bytes; unknown, from ``leaf``, if one of them is."""
        nothing: tuple[Value, list[Value | None]] = 0, []
        stored, parts = self._stored.get(address, nothing)
        if len(parts) == size and self._is_there(address, parts):
            return stored
        value, at = 0, 0
        while at < size:
            word, parts = self._stored.get(address + at, nothing)
            if not 0 < len(parts) <= size - at or not self._is_there(address + at, parts):
                one = self.known.get(address + at)
                if one is None:
                    return Unknown(leaf)
                word, parts = one, [one]
            value |= word << 8 * at
            at += len(parts)
        return value

    def forget_alone(self, depends: Callable[[Form], bool]) -> None:
        """The bytes in no stored integer whose expression is such a one."""
        varying = [at for at, value in self.known.items() if value.__class__ is Varying and depends(value.form)]
        inside = {at + i for at, size in (self.stored() if varying else {}).items() for i in range(size)}
        for at in varying:
            if at not in inside:
                self.forget(at, at + 1)

    def knows_any(self, first: int, end: int) -> bool:
        """Whether a byte of this range is known, or was loaded as one that is the same for all."""
        known = self.known
        if any(at < end and first < at + size for at, size in self.seen):
            return True
        if end <= self._low or first >= self._high:
            return False
        if len(known) > end - first:
            return any(address in known for address in range(first, end))
        return any(first <= address < end for address in known)

    def _forget_seen(self, first: int, end: int) -> None:
        for at, size in [(at, size) for at, size in self.seen if at < end and first < at + size]:
            del self.seen[at, size]

    def forget(self, first: int, end: int) -> None:
        """These bytes are not known any more."""
        known = self.known
        self._forget_seen(first, end)
        if not known or end <= self._low or first >= self._high:
            return
        if end - first < len(known):
            for address in range(first, end):
                known.pop(address, None)
        else:
            for address in [a for a in known if first <= a < end]:
                del known[address]


@dataclass
class LocalMemory:
    """A warp's local memory: words of four bytes, each a value of any kind, and what was stored in less or in more.

    Two words do not have all that is known of an address that is stored, as that it is one of an array.
    """

    words: dict[int, Value] = field(default_factory=dict)
    whole: dict[int, Value] = field(default_factory=dict)  #: of eight bytes, as long as none of them is stored again
    small: dict[tuple[int, int], Value] = field(default_factory=dict)

    def store(self, address: int, size: int, value: Value, mask: int) -> None:
        """Put a value in the lanes of ``mask``."""
        if len(self.words) + len(self.small) > MAX_STORED_BYTES // _WORD:
            self.forget()
        whole = self.load(address, size) if size == 2 * _WORD else None
        for at in range(address - 2 * _WORD + 1, address + size) if self.whole else ():
            self.whole.pop(at, None)
        if size == 2 * _WORD:
            self.whole[address] = join_lanes(mask, value, _NEVER if whole is None else whole)
        if size < _WORD:
            held = self.load(address, size)
            for at, less in _OVERLAPPING[size]:
                self.small.pop((address + at, less), None)
            self.small[address, size] = join_lanes(mask, lift(_low, value, size), _NEVER if held is None else held)
            self.words.pop(address & -_WORD, None)
            return
        for i in range(0, size, _WORD):
            held = self.load(address + i, _WORD)
            part = value >> 8 * i & 0xFFFFFFFF if value.__class__ is Varying else lift(_part, value, i)
            self.words[address + i] = join_lanes(mask, part, _NEVER if held is None else held)
            for at in range(_WORD):
                for less in (1, 2):
                    self.small.pop((address + i + at, less), None)

    def forget(self) -> None:
        """Nothing is known any more."""
        self.words.clear()
        self.whole.clear()
        self.small.clear()

    def load(self, address: int, size: int) -> Value | None:
        """The value there, None if it is not known."""
        if size == 2 * _WORD and address in self.whole:
            return self.whole[address]
        if size < _WORD:
            held = self.small.get((address, size))
            if held is None and address & -_WORD in self.words:
                held = lift(_low, lift(_part, self.words[address & -_WORD], address % _WORD), size)
            return held
        value: Value = 0
        for i in range(0, size, _WORD):
            word = self.words.get(address + i)
            if word is None:
                return None
            value = value + word * (1 << 8 * i)
        return value


@dataclass
class Items:
    """Which item each range of a memory holds: disjoint ranges, sorted."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    items: list[int] = field(default_factory=list)

    def store(self, first: int, end: int, item: int) -> None:
        """The range holds ``item`` now."""
        low = bisect_right(self.ends, first)
        high = bisect_left(self.starts, end)
        starts, ends, items = [first], [end], [item]
        if low < high:
            if self.starts[low] < first:
                starts.insert(0, self.starts[low])
                ends.insert(0, first)
                items.insert(0, self.items[low])
            if self.ends[high - 1] > end:
                starts.append(end)
                ends.append(self.ends[high - 1])
                items.append(self.items[high - 1])
        self.starts[low:high], self.ends[low:high], self.items[low:high] = starts, ends, items

    def inside(self, first: int, end: int) -> list[tuple[int, int, int]]:
        """The parts of this range with their items, -1 for what nothing has written; neighbours of one item as one."""
        found: list[tuple[int, int, int]] = []
        at = first
        for i in range(bisect_right(self.ends, first), bisect_left(self.starts, end)):
            if self.starts[i] > at:
                found.append((at, self.starts[i], -1))
            at = max(self.starts[i], first)
            stop = min(self.ends[i], end)
            if found and found[-1][1:] == (at, self.items[i]):
                found[-1] = (found[-1][0], stop, self.items[i])
            else:
                found.append((at, stop, self.items[i]))
            at = stop
        if at < end:
            found.append((at, end, -1))
        return found

    def around(self, address: int) -> tuple[int, int, int] | None:
        """The range that holds this address, and its item; None if nothing has written there."""
        i = bisect_right(self.starts, address) - 1
        if i < 0 or self.ends[i] <= address:
            return None
        return self.starts[i], self.ends[i], self.items[i]


_WORD = 4
_NEVER = Unknown(Leaf("a word of local memory", 0))
#: Stores of less than a word that share bytes with one of this many bytes: how far from it, and their own bytes.
_OVERLAPPING = {1: ((0, 1), (0, 2), (-1, 2)), 2: ((0, 2), (0, 1), (1, 1))}


def _part(value: int, byte: int) -> int:
    return value >> 8 * byte & 0xFFFFFFFF


def _low(value: int, size: int) -> int:
    return value & ((1 << 8 * size) - 1)


@lru_cache(maxsize=1 << 12)
def runs(starts: tuple[int, ...], size: int) -> list[tuple[int, int]]:
    """The union of ranges of ``size`` bytes that begin at these offsets, as disjoint ones, sorted."""
    ordered = sorted(set(starts))
    steps = list(map(sub, ordered[1:], ordered))
    if max(steps, default=0) <= size:
        return [(ordered[0], ordered[-1] + size)]
    breaks = [i for i, step in enumerate(steps) if step > size]
    firsts = [ordered[0], *(ordered[i + 1] for i in breaks)]
    return list(zip(firsts, [*(ordered[i] + size for i in breaks), ordered[-1] + size], strict=True))


def merge_ranges(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The union of ranges as disjoint ones, sorted."""
    found: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if found and first <= found[-1][1]:
            if end > found[-1][1]:
                found[-1] = found[-1][0], end
        else:
            found.append((first, end))
    return found


# addresses


def to_generic(address: Value) -> Value:
    """The generic address of a shared one."""
    return address + WINDOW


def from_generic(address: Value) -> Value:
    """The shared address of a generic one."""
    return address - WINDOW


def _at_rank(address: int, rank: int) -> int:
    return (address & OFFSET) | rank << RANK_SHIFT


def at_rank(address: Value, rank: Value) -> Value:
    """``mapa``: the same place in the CTA of this rank."""
    if isinstance(address, Unknown):
        return (address & OFFSET) + (rank << RANK_SHIFT)
    return lift(_at_rank, address, rank)


def rank_of(address: Value) -> Value:
    """The rank of the CTA in whose memory a shared address is."""
    return address >> RANK_SHIFT


def _out_of_window(address: int) -> int:
    return address - WINDOW if in_shared(address) else address


def of_shared(address: Value) -> Value:
    """The address that an instruction on ``.shared`` means; a generic one as well, of which the hardware uses the
    low bits.

    PTX does not define that (PTX ISA, "Addresses as Operands"), but public kernels do it in inline assembly.
    """
    if isinstance(address, int):
        return _out_of_window(address)
    if isinstance(address, Unknown):
        bounds = address.interval
        return address - WINDOW if bounds and in_shared(bounds[0]) and in_shared(bounds[1]) else address
    if isinstance(address, PerLane) and not _some_generic(address.each):
        return address
    return lift(_out_of_window, address)


def _some_generic(each: list[Value]) -> bool:
    if integers(each) and max(each) < WINDOW:
        return False
    return any(isinstance(one, int) and in_shared(one) for one in each)


def in_shared(address: int) -> bool:
    """Whether a generic address is one of shared memory."""
    return WINDOW <= address < WINDOW_END


def place_of(address: int) -> tuple[int, int]:
    """CTA and offset in its variables of a shared address."""
    return int(address >> RANK_SHIFT), int((address & OFFSET) - SHARED_BASE)
