"""Memory exact to the byte: what is known about shared memory, and which item each range of it holds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import sub

from pipesim.bounds import MAX_STORED_BYTES
from pipesim.ptx.emulate.stop import EmulationStop
from pipesim.ptx.emulate.values import Leaf, Unknown, Value, join_lanes, lift
from pipesim.ptx.launch.image import Image
from pipesim.ptx.launch.values import Policies
from pipesim.ptx.text.instruction import Instruction


@dataclass
class Bytes:
    """Known bytes of one memory by address; a byte that is missing is not known."""

    known: dict[int, Value] = field(default_factory=dict)
    _low: int = 1 << 62  #: no byte below this has been known
    _high: int = 0  #: no byte from this on has been known

    def store(self, address: int, size: int, value: Value) -> None:
        """Put the low ``size`` bytes of a value that is one integer, or not known."""
        if not isinstance(value, int):
            self.forget(address, address + size)
            return
        if len(self.known) > MAX_STORED_BYTES:
            self.known.clear()
        self._low, self._high = min(self._low, address), max(self._high, address + size)
        for i in range(size):
            self.known[address + i] = value >> 8 * i & 255

    def load(self, address: int, size: int, leaf: Leaf) -> Value:
        """The integer in these bytes; unknown, from ``leaf``, if one of them is."""
        known = self.known
        value = 0
        for i in range(size):
            byte = known.get(address + i)
            if byte is None:
                return Unknown(leaf)
            value |= byte << 8 * i
        return value

    def knows_any(self, first: int, end: int) -> bool:
        """Whether a byte of this range is known."""
        known = self.known
        if end <= self._low or first >= self._high:
            return False
        if len(known) > end - first:
            return any(address in known for address in range(first, end))
        return any(first <= address < end for address in known)

    def forget(self, first: int, end: int) -> None:
        """These bytes are not known any more."""
        known = self.known
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
    """A warp's local memory: words of four bytes, each a value of any kind, and what was stored in less."""

    words: dict[int, Value] = field(default_factory=dict)
    small: dict[tuple[int, int], Value] = field(default_factory=dict)

    def store(self, address: int, size: int, value: Value, mask: int) -> None:
        """Put a value in the lanes of ``mask``."""
        if len(self.words) + len(self.small) > MAX_STORED_BYTES // _WORD:
            self.forget()
        if size < _WORD:
            held = self.load(address, size)
            for at, less in _OVERLAPPING[size]:
                self.small.pop((address + at, less), None)
            self.small[address, size] = join_lanes(mask, lift(_low, value, size), _NEVER if held is None else held)
            self.words.pop(address & -_WORD, None)
            return
        for i in range(0, size, _WORD):
            held = self.load(address + i, _WORD)
            part = lift(_part, value, i)
            self.words[address + i] = join_lanes(mask, part, _NEVER if held is None else held)
            for at in range(_WORD):
                for less in (1, 2):
                    self.small.pop((address + i + at, less), None)

    def forget(self) -> None:
        """Nothing is known any more."""
        self.words.clear()
        self.small.clear()

    def load(self, address: int, size: int) -> Value | None:
        """The value there, None if it is not known."""
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


def runs(starts: Iterable[int], size: int) -> list[tuple[int, int]]:
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


_WORDS = {"32": 4, "64": 8}


class GlobalMemory:
    """Global memory as one cluster sees it: what the launch gives, what a warp has stored, and atomics by policy.

    A word that another warp of the cluster stores is not known: nothing says in which order they reach it. The same
    holds for a counter on which several warps have an atomic. ``policies``: what other CTAs do to words with atomics.
    """

    def __init__(self, image: Image, policies: Policies) -> None:
        self._image = image
        self._first = policies.tile_counter
        self._failures = policies.lock_failures
        self._failed: dict[int, int] = {}  #: word: compare-and-swaps that have found it taken
        self._stored: dict[int, tuple[int, Value]] = {}  #: byte: agent that stored it, and its value
        self._counters: dict[int, tuple[int, int]] = {}  #: word: agent that has an atomic on it, and its value
        self._answers: dict[int, list[int]] = {}  #: word: what atomics on it returned, of which the launch says nothing
        self._seen: dict[int, int] = {}  #: byte: an agent that was given its value
        self.contested: dict[str, None] = {}  #: words that one agent was given before another changes them
        self.policies: dict[int, str] = {}  #: by position: what was assumed of a counter

    def load(self, agent: int, address: int, size: int, each: Instruction) -> Value:
        """A word, as this agent sees it."""
        if address in self._counters:
            return Unknown(Leaf("a word of global memory with atomics", each.line))
        for i in range(size):
            self._seen[address + i] = agent if self._seen.get(address + i, agent) == agent else -1
        if not self._stored or not any(address + i in self._stored for i in range(size)):
            known = self._image.load(address, size)
            return known if known is not None else self._open_word(address, each)
        value = 0
        for i in range(size):
            owner, byte = self._stored.get(address + i, (agent, self._image.load(address + i, 1)))
            if owner != agent:
                return Unknown(Leaf("a word of global memory that another warp stores", each.line))
            if not isinstance(byte, int):
                return self._open_word(address, each)
            value |= byte << 8 * i
        return value

    def store(self, agent: int, address: int, size: int, value: Value) -> None:
        """A word that this agent stores. EmulationStop where that are more than are followed."""
        if len(self._stored) > MAX_STORED_BYTES:
            raise EmulationStop(f"more than {MAX_STORED_BYTES:,} bytes of global memory are stored")
        self._contest(agent, address, size)
        for i in range(size):
            owner, _ = self._stored.get(address + i, (agent, 0))
            byte: Value = value >> 8 * i & 255 if isinstance(value, int) else Unknown(Leaf("a stored value", 0))
            self._stored[address + i] = (owner if owner == agent else -1, byte)

    def atomic(self, agent: int, address: int, each: Instruction, operands: list[Value], lanes: int) -> Value:
        """What an atomic returns; by the launch's policy where nothing has been there."""
        leaf = Leaf(f"the result of an atomic ({each.mnemonic})", each.line)
        kind = each.modifiers[-1]
        size = _WORDS.get(kind[1:], 0)
        known = self._image.load(address, size) if size else None
        owner, value = self._counters.get(address, (agent, self._first if known is None else known))
        after = _atomic_result(each, value, operands, size)
        if after != value:
            self._contest(agent, address, size)
        if owner != agent or lanes != 1 or after is None or any(address + i in self._stored for i in range(size)):
            if owner not in (agent, -1):
                self.contested[self._image.describe(address) or "a counter"] = None
            self._counters[address] = (-1, 0)
            return Unknown(leaf)
        where = self._image.describe(address) or "a counter"
        if each.has("cas") and after != value and (failed := self._failed.get(address, 0)) < self._failures:
            self._failed[address] = failed + 1
            self._counters[address] = (agent, value)  # another CTA has taken it, and gives it back
            return after
        self._counters[address] = (agent, after)
        if known is None and not each.has("cas"):
            self._answers.setdefault(address, []).append(value)
        said = f"the first atomic on {where} returns {self._first if known is None else known}"
        if each.has("cas") and address in self._failed:
            said = f"{where} is taken by another CTA at the first {self._failed[address]} compare-and-swaps"
        self.policies[each.position] = said
        return value

    def last_answers(self) -> set[int]:
        """The last two that each counter gave, if others came before: what it gives first where others take more."""
        return {value for answers in self._answers.values() for value in answers[1:][-2:]} - {self._first}

    def _contest(self, agent: int, address: int, size: int) -> None:
        """An agent changes a word: what another one was given of it depends on who came first."""
        if any(self._seen.get(at, agent) != agent for at in range(address, address + size)):
            self.contested[self._image.describe(address) or "a word of global memory"] = None

    def describe(self, address: int, each: Instruction) -> str:
        """A word of global memory that is not known, in words."""
        return self._image.describe_unknown(address) or f"a load from global memory ({each.mnemonic})"

    def _open_word(self, address: int, each: Instruction) -> Unknown:
        return Unknown(Leaf(self.describe(address, each), each.line, bool(self._image.describe_unknown(address))))


def _atomic_result(each: Instruction, value: int, operands: list[Value], size: int) -> int | None:
    """What an atomic leaves; None if that is not known."""
    if not size or not all(isinstance(v, int) for v in operands):
        return None
    full = (1 << 8 * size) - 1
    first = operands[0]
    if each.has("cas"):
        return operands[1] & full if value == first & full else value
    simple = {"add": value + first, "exch": first, "and": value & first, "or": value | first, "xor": value ^ first}
    simple |= {"inc": 0 if value >= first else value + 1, "dec": first if not value or value > first else value - 1}
    if each.modifiers[-1].startswith("u"):
        simple |= {"min": min(value, first), "max": max(value, first)}
    found = next((simple[m] for m in each.modifiers if m in simple), None)
    return None if found is None else found & full
