"""Barriers that the compiler made, as Triton's: by the value of the source that they guard, ``a.full[i]``.

A barrier on which copies complete is the *full* one of what they load; the *empty* one of a value is that of which its
producer waits for the phase before the first, which is complete at the start. Where one barrier guards the values of
several copies, its name has all: ``a+b.full[i]``. Where two lines make values of one name, it also has the line:
``a:12.full[i]``; a barrier of which another one would then have the same name has no such name.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from pipesim.model.groups import ASKS, BY_PARITY, COMMITS, LIFE, ON_BARRIER, PARITY, TOUCHES_MEMORY
from pipesim.model.ops import Op, Space, operand
from pipesim.model.tables import Access
from pipesim.ptx.emit.record import BARRIER_BYTES, StreamRecorder
from pipesim.ptx.names.resolve import Resolver
from pipesim.ptx.text.instruction import Frame, Instruction

_Key = TypeVar("_Key", bound=Hashable)
Place: TypeAlias = tuple[Frame, ...]  #: in the source, from the outermost function in
_DONE = ON_BARRIER - LIFE
#: What tells two values of one name apart: their lines, those of the calls into which they were inlined, their columns.
_MARKS: tuple[Callable[[Place], object], ...] = (
    lambda frames: frames[-1].line,
    lambda frames: frames[0].line,
    lambda frames: f"{frames[-1].line}:{frames[-1].column}",
)


def values_copied(groups: Sequence[Iterable[int]], body: Sequence[Instruction], resolver: Resolver) -> dict[int, str]:
    """What the source calls that which each copy loads, by the copies' positions.

    ``groups``: the copies that complete on one barrier, or write one range: what these load at several places under one
    name is one value. A copy whose call has a barrier is the author's: it says what it writes
    (:mod:`pipesim.ptx.names.tiles`).
    """
    made = {at for group in groups for at in group if body[at].source is not None and not resolver.paths(body[at])}
    said = {at: (value, _place(body[at])) for at in made if (value := resolver.value(body[at]))}
    alike: dict[tuple[str, Place], set[Place]] = {each: {each[1]} for each in said.values()}
    for group in groups:
        for value in {said[at][0] for at in group if at in said}:
            joined = set().union(*(alike[said[at]] for at in group if at in said and said[at][0] == value))
            alike |= dict.fromkeys(((value, each) for each in joined), joined)
    firsts = {each: (each[0], min(places)) for each, places in alike.items()}
    apart = _told_apart({first: first for first in firsts.values()})
    return {at: apart[firsts[each]] for at, each in said.items() if firsts[each] in apart}


def _place(each: Instruction) -> Place:
    return each.source.frames if each.source is not None else ()


def _told_apart(named: Mapping[_Key, tuple[str, Place]]) -> dict[_Key, str]:
    """Each name, with a mark where several are alike; none of those that no mark tells apart."""
    found: dict[_Key, str] = {}
    for name in dict.fromkeys(name for name, _ in named.values()):
        alike = {key: frames for key, (each, frames) in named.items() if each == name}
        marked = [{key: f"{name}:{mark(frames)}" for key, frames in alike.items()} for mark in _MARKS]
        ways = [dict.fromkeys(alike, name), *marked]
        found |= next((way for way in ways if len(set(way.values())) == len(alike)), {})
    return found


def barriers_of_values(
    recorder: StreamRecorder, body: Sequence[Instruction], resolver: Resolver, inits: Mapping[int, int]
) -> dict[int, str]:
    """The path of those of these barriers, by offset in shared memory, of which the source says what they guard.

    ``inits``: the positions of their inits, by offset. One that lies between elements of an array, or that no warp
    uses in this launch, is taken for an element of the array before it, if one place inits both.
    """
    guarded = _Guarded(recorder, body, resolver, inits)
    found: dict[int, str] = {}
    for full in (True, False):
        arrays: dict[int, list[int]] = {}
        values = {at: value for at in sorted(inits) if guarded.is_full(at) == full and (value := guarded.value(at))}
        for offset, value in values.items():
            alike = [at for at in arrays if values[at] == value and guarded.one_array(offset, arrays[at])]
            arrays.setdefault(alike[0] if alike else offset, []).append(offset)
        apart = _told_apart({at: (values[at], guarded.frames(at)) for at in arrays})
        for at, name in apart.items():
            found |= dict.fromkeys(arrays[at], f"{name}.{'full' if full else 'empty'}")
    for offset in sorted(inits.keys() - found.keys()):
        before, after = (found.get(offset + step, "") for step in (-BARRIER_BYTES, BARRIER_BYTES))
        if before and guarded.beside(offset) and (before == after or not guarded.is_used(offset)):
            found[offset] = before
    return found


@dataclass
class _Uses:
    """The positions of what is done on a barrier."""

    copies: dict[int, None] = field(default_factory=dict)
    waits: dict[int, None] = field(default_factory=dict)
    commits: dict[int, None] = field(default_factory=dict)
    arrives: dict[int, None] = field(default_factory=dict)
    first: dict[int, int] = field(default_factory=dict)  #: the parity that each agent waits for first
    before: set[int] = field(default_factory=set)  #: the barriers of the copies that follow a wait for this one
    read: set[Access] = field(default_factory=set)  #: in tensor memory, between an agent's last wait and its arrive
    written: set[Access] = field(default_factory=set)  #: between these, there or in shared memory

    def positions(self) -> set[int]:
        """Of every kind."""
        return {*self.copies, *self.waits, *self.commits, *self.arrives}


class _Guarded:
    """What barriers guard, by their offsets in shared memory."""

    def __init__(
        self, recorder: StreamRecorder, body: Sequence[Instruction], resolver: Resolver, inits: Mapping[int, int]
    ) -> None:
        self._body, self._resolver, self._inits = body, resolver, inits
        self._offsets = [offset for _, offset in recorder.barriers]
        self._uses = {offset: _Uses() for offset in self._offsets}
        self._results: dict[Place, set[Access]] = defaultdict(set)  #: what products write, by their places
        self._issuers, self._loaders = set[int](), set[int]()  #: the agents of products and of copies
        for agent in range(len(recorder.streams)):
            self._read(recorder, agent)
        self._values = values_copied([each.copies for each in self._uses.values()], body, resolver)
        copies = [each for each in body if each.opcode == "cp" and each.has("bulk", "mbarrier::complete_tx::bytes")]
        self._loads = set(map(_place, copies))
        self._loaded = set(map(resolver.value, copies))
        self._products = {_place(each) for each in body if each.opcode == "tcgen05" and each.has("mma")}

    def _read(self, recorder: StreamRecorder, agent: int) -> None:
        """Enter what an agent does."""
        stream, accesses = recorder.streams[agent], list(recorder.accesses)
        waited, read, written = _Uses(), set[Access](), set[Access]()
        for op, at in zip(stream.code, stream.positions, strict=True):
            if op[0] in TOUCHES_MEMORY:
                access = accesses[operand(op, "access")]
                if op[0] == Op.WRITE:
                    written.add(access)
                elif op[0] == Op.READ and access.space is Space.TENSOR:
                    read.add(access)
                elif op[0] == Op.TRANSFER_WRITE and self._body[at].has("mma"):
                    self._results[_place(self._body[at])].add(access)
                    self._issuers.add(agent)
            if op[0] not in _DONE or (number := operand(op, "barrier")) < 0:
                continue
            each = self._uses[self._offsets[number]]
            if op[0] == Op.TMA_LOAD:
                each.copies[at] = None
                self._loaders.add(agent)
                waited.before.add(self._offsets[number])
            elif op[0] in ASKS:
                waited, read, written = each, set(), set()
                each.waits[at] = None
                if op[0] in BY_PARITY:
                    each.first.setdefault(agent, op[PARITY])
            elif op[0] in COMMITS:
                each.commits[at] = None
            else:
                each.arrives[at] = None
                each.read |= read
                each.written |= written

    def _places(self, positions: Iterable[int]) -> set[Place]:
        return {_place(self._body[at]) for at in positions}

    def is_full(self, offset: int) -> bool:
        """Whether its phases say that a value is there, not that there is room for one.

        A wait at the place of a copy is for room, and one at that of a product for what its result is added to. Of
        agents that begin with different parities one holds the room.
        """
        each = self._uses[offset]
        waits, first = self._places(each.waits), set(each.first.values())
        if each.copies or (waits and waits <= self._loads and each.first.keys() <= self._loaders):
            return bool(each.copies)
        if each.commits and waits <= self._products:
            return first != {1} or not self._operands(each)
        if not each.commits and self._has_read_result(each):
            return False
        return first == {0} if len(first) == 1 else bool(each.commits)

    def value(self, offset: int) -> str:
        """The value that a barrier guards; "" where it is not certain."""
        each = self._uses[offset]
        if each.copies:
            mine = self._places(each.copies)
            ring = [other.copies for other in self._uses.values() if not mine.isdisjoint(self._places(other.copies))]
            copied = {_place(self._body[at]): self._values.get(at, "") for copies in ring for at in copies}
            return "+".join(dict.fromkeys(copied[at] for at in sorted(copied))) if all(copied.values()) else ""
        full, waits = self.is_full(offset), self._places(each.waits)
        after = {self.value(other) for other in each.before if self._uses[other].copies}
        if not full and len(after) == 1:
            return after.pop()
        if waits <= self._products:
            issuing = not self._issuers.isdisjoint(each.first)
            handed = each.written and waits <= self._results.keys() if full else each.commits
            if handed and full != bool(each.commits) and (operands := self._operands(each)):
                return operands.pop() if len(operands) == 1 else ""
            seen = each.commits or self._has_read_result(each)
            if not waits or not (seen or set(each.first.values()) == {int(issuing)}):
                return ""  # too little is seen of it
        named = [self._named(kind) for kind in (each.waits, each.commits, each.arrives)]
        found = next((names for names in (set().union(*named), *named) if len(names) == 1), set())
        return next(iter(found or self._named([self._inits[offset]])), "")

    def _has_read_result(self, each: _Uses) -> bool:
        """Whether who arrives has read the result of the product at whose place agents wait for a barrier."""
        results = [result for place in self._places(each.waits) for result in self._results.get(place, ())]
        return any(
            read.cta == to.cta and read.offset < to.offset + to.nbytes and to.offset < read.offset + read.nbytes
            for read in each.read
            for to in results
        )

    def _operands(self, each: _Uses) -> set[str]:
        """The operands of the product at whose place agents wait for a barrier that no copy loads."""
        return {name for at in each.waits for name in self._resolver.operands(self._body[at])} - self._loaded - {""}

    def _named(self, positions: Iterable[int]) -> set[str]:
        return {value for at in positions if (value := self._resolver.value(self._body[at]))}

    def one_array(self, offset: int, others: Sequence[int]) -> bool:
        """Whether a barrier is of the array of others, which guard a value of the same name.

        It is if a copy of each has the same place, if one instruction is about both, or if it lies after one that the
        same place inits.
        """
        each = self._uses[offset]
        if offset - BARRIER_BYTES in others and self.beside(offset):
            return True
        return any(
            not each.positions().isdisjoint(other.positions())
            or not self._places(each.copies).isdisjoint(self._places(other.copies))
            for other in map(self._uses.__getitem__, others)
        )

    def beside(self, offset: int) -> bool:
        """Whether one place inits a barrier and the one before it."""
        before = self._inits.get(offset - BARRIER_BYTES)
        return before is not None and _place(self._body[before]) == _place(self._body[self._inits[offset]])

    def is_used(self, offset: int) -> bool:
        """Whether any warp waits for it or signals on it."""
        return bool(self._uses[offset].positions())

    def frames(self, offset: int) -> Place:
        """The first place that says the value, else that of its init."""
        said = [at for at in self._uses[offset].positions() if self._named([at])]
        return min(self._places(said or [self._inits[offset]]))
