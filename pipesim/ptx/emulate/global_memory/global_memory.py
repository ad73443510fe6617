"""Global memory as one cluster sees it: what the launch gives, what a warp has stored, and atomics by policy.

Which tiles this cluster is handed out, by cluster launch control or by a counter: any increasing choice of them.

Where a launch does not fix them, each is a free input: an element of an array that rises.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass

from pipesim.bounds import MAX_STORED_BYTES
from pipesim.ptx.emulate.stop import EmulationStop
from pipesim.ptx.emulate.values import Leaf, Unknown, Value, same
from pipesim.ptx.free.arrays import FreeArray
from pipesim.ptx.free.forms import Form, Terms, constant
from pipesim.ptx.free.varying import FreeInputs, Varying, form_of
from pipesim.ptx.launch.image import PARAMETERS, Image
from pipesim.ptx.launch.values import HANDED_OUT, LAUNCH_CONTROL, TILE_COUNTER, Launch, Policies
from pipesim.ptx.text.instruction import Instruction

ANY_TILE = "any "  #: what the names of free inputs begin with that are any tile


class HandedOut:
    """The tiles of one cluster, in their order. ``clusters``: of the grid.

    Where each lap of a loop takes one these are any: a free input each, on which nothing may depend.
    """

    def __init__(self, launch: Launch, image: Image, inputs: FreeInputs) -> None:
        self._inputs, self._given, self._left = inputs, launch.policies.handed_out, launch.left
        self._free, self._in_laps = image.free_tiles, image.laps_of_tiles
        self.taken: dict[str, int] = {LAUNCH_CONTROL: 0, TILE_COUNTER: 0}  #: how often one was asked for
        self.step = self._any_tiles = 0  #: of the counter
        self._numbered = 0  # answers that their number decides
        self.answers: list[int] = []  #: where those of the counter were asked for
        self._chosen = {index: value for name, index, value in launch.contents if name == HANDED_OUT}
        x, y, z = (g // c for g, c in zip(launch.grid, launch.cluster, strict=True))
        self.clusters = x * y * z

    def by_launch_control(self, count: int) -> int | None:
        """The number of the cluster whose work is handed out next, of ``count``, x counted first; None after all."""
        number, more = self._is_left(LAUNCH_CONTROL, count)
        if not more:
            return None
        if self.is_free(LAUNCH_CONTROL) and self._in_laps:
            return self._any("tile", 0, self.clusters - 2) + 1
        array = FreeArray(HANDED_OUT, 1, 1, self.clusters - 2, count, tuple(range(count)))
        after = self._given[-1] - len(self._given) if self._given else 0
        return self._tile(number, after + number + 1, array)

    def by_counter(self, number: int, usual: int, step: int) -> int:
        """The ``number``-th answer of a counter to which each tile adds ``step``; without others ``usual``."""
        array, self.step = None, self.step or step
        if self._left is not None and step == self.step:
            count, first, end = self._left
            low = (end - first) // step  # of the answers that other CTAs have when nothing is left
            most, last = low + self.clusters - 1, tuple(range(low - count, low + 1))
            if self.is_free(TILE_COUNTER):
                _, more = self._is_left(TILE_COUNTER, count)
                if self._in_laps:
                    return (self._any("tile", 0, low - 1) if more else self._any("end", low, most)) * step + first
            array = FreeArray(HANDED_OUT, first, step, most, count + 1, last, late=(count, low))
            usual = first + step * last[number] if number <= count else usual
        return self._tile(number, usual, array)

    def is_free(self, policy: str) -> bool:
        """Whether any number of tiles is handed out by this policy."""
        return self._free is not None and self._free.free.name == policy

    @property
    def stands(self) -> object:
        """What decides which tiles are handed out next, beside values."""
        return None if self.is_free(LAUNCH_CONTROL) else self.taken[LAUNCH_CONTROL], self._numbered

    def _is_left(self, policy: str, count: int) -> tuple[int, bool]:
        """How many tiles were asked for before, and whether there is one left."""
        number, free = self.taken[policy], self._free
        self.taken[policy] = number + 1
        given = free.value(policy, self._inputs) if free is not None and self.is_free(policy) else count
        return int.__int__(number), bool(number < given)

    def _any(self, what: str, low: int, high: int) -> int:
        self._any_tiles += 1
        return self._inputs.free(f"{ANY_TILE}{what} {self._any_tiles}", low, low, max(low, high))

    def _tile(self, number: int, usual: int, array: FreeArray | None) -> int:
        self._numbered += array is not None or bool(self._given or self._chosen)
        if number < len(self._given):
            return self._given[number]
        now = self._chosen.get(number, usual)
        if array is None or self._given or number >= array.count:
            return now
        made = array.rising(self._chosen)
        return now if made is None else self._inputs.element(made, number, int.__int__(now))


_WORDS = {"32": 4, "64": 8}
MOST_BYTES = 16  #: of one access
_STORED = Unknown(Leaf("a stored value", 0))


@dataclass
class _Placed:
    """Accesses at addresses that vary by the same terms: the lowest and the highest constant, and one of them."""

    low: int
    high: int
    one: Varying


class GlobalMemory:
    """Global memory as one cluster sees it: what the launch gives, what a warp has stored, and atomics by policy.

    A word that another warp of the cluster stores is not known: nothing says in which order they reach it. The same
    holds for a counter on which several warps have an atomic. ``policies``: what other CTAs do to words with atomics.
    """

    def __init__(self, image: Image, policies: Policies, inputs: FreeInputs, tiles: HandedOut) -> None:
        self._image, self._inputs, self._tiles = image, inputs, tiles
        self._first = policies.tile_counter
        self.length_of_grid: int | None = None  #: along x, where it is any number
        self._failures = policies.lock_failures
        self._placed: dict[Terms, _Placed] = {}  #: what was stored or counted at addresses that vary with free inputs
        self._range = (1 << 64, 0)  #: of the addresses at which something was stored or counted
        self._failed: dict[int, int] = {}  #: word: compare-and-swaps that have found it taken
        self._changed = 0  #: how often a stored byte was not there before, or was another one
        self._stored: dict[int, tuple[int, Value]] = {}  #: byte: agent that stored it, and its value
        self._owners: dict[int, int] = {}  #: word: agent that has an atomic on it
        self.counted: dict[int, Value] = {}  #: word: its value, after atomics
        self._answers: dict[int, list[int]] = {}  #: word: what atomics on it returned, of which the launch says nothing
        self._seen: dict[int, int] = {}  #: byte: an agent that was given its value
        self.contested: dict[str, None] = {}  #: words that one agent was given before another changes them
        self.policies: dict[int, str] = {}  #: by position: what was assumed of a counter

    def load(self, agent: int, address: int, size: int, each: Instruction) -> Value:
        """A word, as this agent sees it."""
        address = self._inputs.held(address)
        if address.__class__ is Varying or self._placed:
            met = self._meets(address, size)
            if address.__class__ is Varying and not met:
                known = None if self._image.is_unknown(address, size) else self._varying(address, size)
                return self._open_word(int.__int__(address), each) if known is None else known
            apart = address.__class__ is Varying and self._image.is_unknown(address, size)
            address = int.__int__(address) if apart else int(address)
        if address in self._owners:
            return Unknown(Leaf("a word of global memory with atomics", each.line, orders=True))
        for i in range(size):
            self._seen[address + i] = agent if self._seen.get(address + i, agent) == agent else -1
        if not self._stored or not any(address + i in self._stored for i in range(size)):
            known = self._given(address, size)
            return known if known is not None else self._open_word(address, each)
        value = 0
        for i in range(size):
            owner, byte = self._stored.get(address + i, (agent, self._given(address + i, 1)))
            if owner != agent:
                return Unknown(Leaf("a word of global memory that another warp stores", each.line))
            if not isinstance(byte, int):
                return self._open_word(address, each)
            value |= byte << 8 * i
        return value

    def _given(self, address: int, size: int) -> int | None:
        """A word as the launch gives it, which varies with the elements of free arrays that it consists of."""
        found = self._image.load(address, size)
        length = self.length_of_grid
        for at, nbytes in self._image.of_grid.items():
            if length is not None and at < address + size and address < at + nbytes:
                if (at, nbytes) == (address, size):
                    return length
                int(length)  # a part of it, or more than it
        if found is not None and (self._image.free_words or address >= PARAMETERS):
            found = self._image.with_free_words(found, address, size, self._inputs)
        if found is None or not self._image.free:
            return found
        array, end = self._image.free_array(address), self._image.free_array(address + size - 1)
        if array is None and end is None:
            return found
        if array is not None and array is end:
            index, byte = divmod(address - array.address, array.size)
            if byte + size <= array.size:
                element = self._element(array, index)
                return element if size == array.size else element >> 8 * byte & (1 << 8 * size) - 1
        return sum((self._given(address + i, 1) or 0) << 8 * i for i in range(size))

    def _element(self, array: FreeArray, index: int) -> int:
        """An element of a free array, without a sign."""
        bits, at = 8 * array.size, array.address + int.__int__(index) * array.size
        now = self._image.load(at, array.size)
        assert now is not None, "a free array is known"
        signed = now - (1 << bits) if array.low < 0 and now >> bits - 1 else now
        return self._inputs.element(array, index, signed) & (1 << bits) - 1

    def _varying(self, address: Varying, size: int) -> int | None:
        """A word at an address that varies with free inputs."""
        array = self._image.free_array(int.__int__(address))
        if array is None:
            return self._image.varying(address, size)
        at = address.form.plus(constant(array.address), -1)
        if at.in_memory or size != array.size or at.divisor % size:
            return self._given(int(address), size)
        self._inputs.require_range(at, 0, (array.count - 1) * size)
        return self._element(array, (address - array.address) // size)

    def _meets(self, address: int, size: int) -> bool:
        """Whether something may have been stored there, or counted.

        What varies by other terms than the address and may meet it is then where it is in this run, as the address is.
        """
        form, met, others = form_of(address), False, False
        for terms, each in self._placed.items():
            if form.terms == terms:  # where it is in this run, others are as well
                met = met or each.low - size < form.constant < each.high + MOST_BYTES
            elif form.low < Form(each.high, terms).high + MOST_BYTES and Form(each.low, terms).low < form.high + size:
                int(each.one)
                others = True
        low, high = self._range
        if others or (form.low < high and low < form.high + size):
            int(address)
            return True
        return met

    def _place(self, address: int) -> int:
        """Something is at this address: the plain one, where it varies with free inputs."""
        if address.__class__ is not Varying:
            self._range = min(self._range[0], address), max(self._range[1], address + MOST_BYTES)
            return address
        form, plain = address.form, int.__int__(address)
        held = self._placed.get(form.terms)
        if held is None:
            self._placed[form.terms] = _Placed(form.constant, form.constant, address)
        else:
            held.low, held.high = min(held.low, form.constant), max(held.high, form.constant)
        return plain

    def store(self, agent: int, address: int, size: int, value: Value) -> None:
        """A word that this agent stores. EmulationStop where that are more than are followed."""
        if address.__class__ is Varying and not isinstance(value, int) and self._image.is_unknown(address, size):
            self._place(self._inputs.held(address))
            return
        address = self._place(self._inputs.held(address))
        if len(self._stored) > MAX_STORED_BYTES:
            raise EmulationStop(f"more than {MAX_STORED_BYTES:,} bytes of global memory are stored")
        self._contest(agent, address, size)
        for i in range(size):
            byte: Value = value >> 8 * i & 255 if isinstance(value, int) else _STORED
            was = self._stored.get(address + i)
            owner = agent if was is None or was[0] == agent else -1
            self._stored[address + i] = (owner, byte)
            self._changed += was is None or was[0] != owner or not same(was[1], byte)

    def atomic(self, agent: int, address: int, each: Instruction, operands: list[Value], lanes: int) -> Value:
        """What an atomic returns; by the launch's policy where nothing has been there."""
        leaf = Leaf(f"the result of an atomic ({each.mnemonic})", each.line, orders=True)
        address, *operands = map(self._inputs.held, (address, *operands))
        if address.__class__ is Varying and not self._image.is_unknown(address, MOST_BYTES):
            address = int(address)
        if address.__class__ is Varying or self._placed:
            self._meets(address, MOST_BYTES)
        address = self._place(address)
        kind = each.modifiers[-1]
        size = _WORDS.get(kind[1:], 0)
        known = self._given(address, size) if size else None
        owner = self._owners.get(address, agent)
        value = self.counted.get(address, self._first if known is None else known)
        if not isinstance(value, int):
            return Unknown(leaf)
        answers = self._answers.get(address, [])
        step = operands[0] if operands and each.has("add") else 1 if each.has("inc") else 0
        if known is None and step.__class__ is int and step and address == next(iter(self._answers), address):
            value = self._tiles.by_counter(len(answers), value, step)
            self._tiles.answers.append(each.position)
        after = changed_by_atomic(each, value, operands, size)
        if after != value:
            self._contest(agent, address, size)
        if owner != agent or lanes != 1 or after is None or any(address + i in self._stored for i in range(size)):
            if owner not in (agent, -1):
                self.contested[self._image.describe(address) or "a counter"] = None
            self._owners[address], self.counted[address] = -1, 0
            return Unknown(leaf)
        where = self._image.describe(address) or "a counter"
        if each.has("cas") and after != value and (failed := self._failed.get(address, 0)) < self._failures:
            self._failed[address] = failed + 1
            self._owners[address], self.counted[address] = agent, value  # another CTA has taken it, and gives it back
            return after
        self._owners[address], self.counted[address] = agent, after
        if known is None and not each.has("cas"):
            self._answers.setdefault(address, []).append(value)
        said = f"the first atomic on {where} returns {self._first if known is None else known}"
        if self._tiles.is_free(TILE_COUNTER) and address in self._answers:
            said = f"{where} hands out any number of its tiles"
        if each.has("cas") and address in self._failed:
            said = f"{where} is taken by another CTA at the first {self._failed[address]} compare-and-swaps"
        self.policies[each.position] = said
        return value

    def last_answers(self, most: int) -> list[list[int]]:
        """The last answers of each counter that gave several: what it gives first where others take more."""
        return [list(map(int.__int__, answers[-most:])) for answers in self._answers.values() if answers[1:]]

    def changes(self) -> object:
        """What the warps have changed that they may be given again."""
        return tuple(self._owners.items()), self._changed, tuple(self._failed.items())

    def _contest(self, agent: int, address: int, size: int) -> None:
        """An agent changes a word: what another one was given of it depends on who came first."""
        if any(self._seen.get(at, agent) != agent for at in range(address, address + size)):
            self.contested[self._image.describe(address) or "a word of global memory"] = None

    def describe(self, address: int, each: Instruction) -> str:
        """A word of global memory that is not known, in words."""
        if table := self._image.table_at(address)[1]:
            return f"a load from {table.name} in constant memory, of which the PTX has no initial values"
        return self._image.describe_unknown(address) or f"a load from global memory ({each.mnemonic})"

    def _open_word(self, address: int, each: Instruction) -> Unknown:
        return Unknown(Leaf(self.describe(address, each), each.line, self._image.option(address, each.modifiers[-1])))


def changed_by_atomic(each: Instruction, value: int, operands: list[Value], size: int) -> int | None:
    """What an atomic leaves; None if that is not known."""
    if not size or not all(isinstance(v, int) for v in operands):
        return None
    full = (1 << 8 * size) - 1
    first = operands[0]
    if each.has("cas"):
        return operands[1] & full if value == first & full else value
    known = _ATOMICS if each.modifiers[-1].startswith("u") else _ATOMICS.keys() - {"min", "max"}
    found = next((_ATOMICS[m](value, first) for m in each.modifiers if m in known), None)
    return None if found is None else found & full


#: What atomics leave of a word and their operand. Only the one that is carried out may ask for a value.
_ATOMICS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "exch": lambda _, given: given,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "inc": lambda value, most: 0 if value >= most else value + 1,
    "dec": lambda value, most: most if not value or value > most else value - 1,
    "min": min,
    "max": max,
}
