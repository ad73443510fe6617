"""What a loop that asks for a word of global memory has seen, and for which values it is left.

The machine code of the loop is executed with the registers of the dump and a value in place of the word: of some values
that its comparisons name it is known whether the loop ends, and what agrees with all of them is what it waits for.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import eq, ge, le, ne
from typing import NamedTuple

from pipesim.answers.autopsy.standing import HARMLESS
from pipesim.coredump.sass.integer import compared
from pipesim.coredump.sass.lanes import WORD, LaneState, of_lane
from pipesim.coredump.sass.steps import writes
from pipesim.coredump.sass.sync import GLOBAL_MEMORY, SassSync
from pipesim.coredump.sass.walk import WarpCode, address_of, goes_on
from pipesim.coredump.sass.word import Word

_MOST_STEPS = 1024  #: instructions of a loop, executed once
EXCHANGE = 8  #: the number of that atomic operation

_ELSEWHERE = frozenset({SassSync.ATOMIC, SassSync.SWAP})  #: another one than the loop's
_TELLS = frozenset({SassSync.SHARED_STORE, SassSync.BAR_SYNC})


class _Loop(NamedTuple):
    """What a loop that asks may do beside it, and the registers that it writes."""

    does: frozenset[SassSync]
    writes: frozenset[int]


Test = Callable[[int], bool | None]


@dataclass(frozen=True)
class Spin:
    """A loop that asks for a word: its address and bytes, the value that it has seen (None: not known).

    ``at``: the instruction that asks. ``ends``: whether the loop ends with a value; ``values`` may make a difference.
    ``takes``: it stores a value where it asks, as for a lock.
    """

    address: int
    size: int
    at: int
    seen: int | None
    ends: Test
    values: Callable[[], Sequence[int]]
    takes: bool

    @cached_property
    def wanted(self) -> str:
        """With which value it ends: ``3``, ``at least 8``, ``not 0``; "" if that is not known.

        It is what agrees with all values of which it is known.
        """
        known = {value: end for value in self.values() if (end := self.ends(value)) is not None}
        if len(known) < len(self.values()) or len(set(known.values())) < 2:
            return ""
        rules = _rules(list(known), self.size * 8)
        return next((said for said, holds in rules if all(holds(v) == end for v, end in known.items())), "")


def width_of(word: Word, kind: SassSync) -> int:
    """The bytes of an access: bits 73 to 75 say 8, 16 and 32 bits, or 64 for 5; of an atomic operation 64 for 2."""
    size = word.high >> 9 & 7
    if kind in (SassSync.ATOMIC, SassSync.SWAP):
        return 8 if size in (2, 5, 6) else 4
    return (1, 1, 2, 2, 4, 8, 16, 4)[size]


def spin_of(
    code: WarpCode, at: int, lanes: LaneState, way: Sequence[int], memory: Callable[[int, int], int | None]
) -> Spin | None:
    """The loop that lanes of a dump are in, which asks at instruction ``at``; None if its address is not known.

    ``way``: from where they are through the loop and back.
    """
    word, sync, here = code.words[at], code.at(at).sync, lanes.with_lanes(lanes.mask, at)
    if sync is None or at not in way:
        return None
    for n in way[: way.index(at)]:
        found = code.at(n)
        if found.step is not None:
            found.step(here, True if found.guard is None else found.guard(here))
    address = of_lane(address_of(here, sync.address, wide=sync.kind in GLOBAL_MEMORY), here.first())
    size = width_of(word, sync.kind)
    if address is None or size > 8:
        return None
    seen = memory(address, size)
    if seen is None and not any(writes(code.words[n], word.rd) for n in way[way.index(at) + 1 :]):
        parts = [of_lane(lanes.registers[word.rd + n], lanes.first()) for n in range(1 + size // 8)]
        seen = None if None in parts else sum(part << 32 * n for n, part in enumerate(parts))

    others = HARMLESS - _ELSEWHERE
    if not any((other := code.at(n).sync) is not None and other.kind in _TELLS for n in way):
        others -= _TELLS
    loop = _Loop(others, frozenset(code.words[n].rd + k for n in way for k in (0, 1)))

    def ends(value: int) -> bool | None:
        return _is_left(code, at, here, (value, size), [], loop)

    takes = sync.kind is SassSync.SWAP or (sync.kind is SassSync.ATOMIC and sync.number == EXCHANGE)
    return Spin(address, size, at, seen, ends, lambda: _candidates(code, at, here, seen, size, loop), takes)


def _is_left(
    code: WarpCode, at: int, start: LaneState, given: tuple[int, int], asked: list[int], loop: _Loop
) -> bool | None:  # fmt: skip
    """Whether the loop ends if its load gives a value of this size; ``asked`` gets what it is compared with.

    That is not known where it comes back after it changed what the loop does not: an outer loop may have gone around.
    """
    lanes, (value, size) = start.with_lanes(start.mask, at + 1), given
    for n in range(1 + size // 8):
        lanes.registers[code.words[at].rd + n] = value >> 32 * n & WORD
    told: dict[int | None, object] = {}  # what the lane that asks stores for the others of its CTA
    for _ in range(_MOST_STEPS):
        if lanes.pc == at:
            both = enumerate(zip(start.registers, lanes.registers, strict=True))
            return False if all(a == b or n in loop.writes for n, (a, b) in both) else None
        found = code.at(lanes.pc) if 0 <= lanes.pc < len(code.words) else None
        if found is None:
            return None
        here, sync = code.words[lanes.pc], found.sync
        condition = True if found.guard is None else found.guard(lanes)
        if sync is not None and sync.kind not in loop.does and condition is not False:
            return True  # the loop does nothing but ask, and this is something else
        operands = [of_lane(get(lanes), lanes.first()) for get in compared(here, code.around)]
        asked += [each for each in operands if type(each) is int]
        place = of_lane(address_of(lanes, sync.address), lanes.first()) if sync is not None else None
        if not goes_on(code, lanes):
            return None
        if sync is not None and condition is True and sync.kind is SassSync.SHARED_STORE:
            told[place] = lanes.registers[here.rb]
        elif sync is not None and condition is True and sync.kind is SassSync.SHARED_LOAD:
            lanes.registers[here.rd] = told.get(place)
    return None


def _candidates(
    code: WarpCode, at: int, start: LaneState, seen: int | None, size: int, loop: _Loop
) -> Sequence[int]:  # fmt: skip
    """Values that may make a difference: those that the loop compares with, and their neighbours."""
    mask = (1 << size * 8) - 1
    asked: list[int] = [0, 1, mask, mask >> 1, *([] if seen is None else [seen])]
    for value in (seen or 0, ~(seen or 0) & mask):
        _is_left(code, at, start, (value, size), asked, loop)
    if size == 8:  # two words, compared one after the other
        asked += [high << 32 | low for high in asked[:24] for low in asked[:24]]
    near = dict.fromkeys(value + d & mask for value in asked[:200] for d in (0, 1, -1))
    return (*near, *(1 << n for n in range(size * 8) if 1 << n not in near))


def _rules(values: Sequence[int], bits: int) -> Iterator[tuple[str, Callable[[int], bool]]]:
    sign = 1 << bits - 1
    for c in sorted(values):
        yield f"{c:,}", partial(eq, c)
        yield ("not 0" if not c else f"another value than {c:,}"), partial(ne, c)
    for c in sorted(values):
        yield f"at least {c:,}", partial(le, c)
        yield f"at most {c:,}", partial(ge, c)
        yield f"at least {c:,}", partial(lambda c, v: c <= v < sign, c)  # of signed numbers
        yield f"at most {c:,}", partial(lambda c, v: v <= c < sign or v >= sign, c)
    for n in range(bits):
        yield f"bit {n} set", partial(lambda n, v: bool(v >> n & 1), n)
        yield f"bit {n} clear", partial(lambda n, v: not v >> n & 1, n)
