"""Which uses of shared memory may meet: those of two warps between the same barriers of their CTA, and of engines.

A barrier that all threads of a CTA reach orders what they access before it and after it (PTX ISA, bar and barrier:
all memory accesses requested by a thread prior to the barrier are performed relative to all threads that take part).
So accesses are apart, whatever their addresses are, if one of these barriers, at which no warp only arrives, was passed
more often before one of them than before the other. What copies and products access ends later than their instruction,
and is apart from nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from pipesim.model.groups import ACCESSES, BRANCHES, TOUCHES_MEMORY, WRITES_MEMORY
from pipesim.model.ops import AT, Engine, Op, Space, operand
from pipesim.ptx.emit.record import Stream, StreamRecorder
from pipesim.ptx.emulate.stop import SharedOrder, TouchedBytes, UnreadAccess
from pipesim.ptx.emulate.values import WARP


class _Use(NamedTuple):
    """Use of bytes by ``agent`` of ``cta``; -1: by an engine or an mbarrier, which belong to none.

    ``part``: between which barriers of its CTA it is, None where it may be any. ``position``: where that is asked for.
    """

    agent: int
    cta: int
    part: int | None
    writes: bool
    reach: TouchedBytes
    position: int = -1
    order: SharedOrder = SharedOrder.NEEDED

    def may_meet(self, other: "_Use") -> bool:
        """Whether they are of two agents, have bytes in common of which one changes some, and need to be in order."""
        return (self.order is not other.order or self.order is SharedOrder.NEEDED) and self.may_be_at_once(other)

    def may_be_at_once(self, other: "_Use") -> bool:
        """The same where nothing orders them."""
        apart = self.part is not None and other.part is not None and self.cta == other.cta and self.part != other.part
        changed = self.writes or other.writes
        of_two = self.agent != other.agent or self.agent < 0
        return changed and of_two and not apart and self.reach.shares_bytes(other.reach)


class _SharedParts:
    """The parts that barriers of the whole CTA divide what each agent does into, by how many barriers came before."""

    def __init__(self, recorder: StreamRecorder) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}
        warps = {(each.cta, each.warp) for each in recorder.streams}
        threads = Counter(cta for cta, _ in warps)
        # who only arrives continues before the others have arrived: such a barrier puts nothing between the two
        self._arrived = {
            (each.cta, operand(op, "named_barrier")) for each in recorder.streams for op in each.code
            if op[0] == Op.BAR_ARRIVE
        }  # fmt: skip
        self._of = [list(self._each(stream, WARP * threads[stream.cta])) for stream in recorder.streams]
        self._laps = [[(part.moments[0][a].at, part.moments[-1][a].at) for part in recorder.repeated]
                      for a in range(len(recorder.streams))]  # fmt: skip
        self._skips = [any(op[0] in BRANCHES for op in stream.code) for stream in recorder.streams]

    def _each(self, stream: Stream, threads: int) -> Iterator[tuple[int, int]]:
        """Before which operation each part ends, and its number."""
        passed = Counter[int]()
        for at, op in enumerate(stream.code):
            if op[0] == Op.BAR_SYNC:
                yield at, self._number(stream.cta, passed)
                number = operand(op, "named_barrier")
                passed[number] += operand(op, "threads") == threads and (stream.cta, number) not in self._arrived
        yield len(stream.code) + 1, self._number(stream.cta, passed)

    def _number(self, cta: int, passed: Counter[int]) -> int:
        return self._numbers.setdefault((cta, *sorted((+passed).items())), len(self._numbers))

    def of(self, agent: int, barriers: int) -> int | None:
        """The part after this number of barriers, whatever they are; None where laps that are left out may be in it."""
        begin = self._of[agent][barriers - 1][0] if barriers else 0
        end, part = self._of[agent][barriers]
        in_laps = any(first < end and begin < last for first, last in self._laps[agent])
        return None if in_laps or self._skips[agent] else part

    def of_each(self, agent: int, stream: Stream) -> Iterator[tuple[int, int | None]]:
        """For each operation the part that it is in."""
        laps, begin = self._laps[agent], 0
        for end, part in self._of[agent]:
            for at in range(begin, min(end, len(stream.code))):
                unknown = self._skips[agent] or any(first <= at < last for first, last in laps)
                yield at, None if unknown else part
            begin = end


def _uses(recorder: StreamRecorder, parts: _SharedParts, named: Collection[int] = ()) -> Iterator[_Use]:
    """Those that were carried out; with the position of those at ``named`` ones."""
    ranges = list(recorder.accesses)
    for agent, stream in enumerate(recorder.streams):
        for at, part in parts.of_each(agent, stream):
            op = stream.code[at]
            if op[0] in TOUCHES_MEMORY and (access := ranges[op[AT["access"][op[0]]]]).space is Space.SHARED:
                # what tcgen05 writes to shared memory is the address of an allocation, done when the instruction is
                own = op[0] in ACCESSES or (op[0] == Op.TRANSFER_WRITE and operand(op, "engine") == Engine.TCGEN05)
                who = (
                    (agent, stream.cta, part) if own and access.cta == stream.cta else (agent if own else -1, -1, None)
                )
                position = stream.positions[at] if stream.positions[at] in named else -1
                cta = access.cta if own else -1  # a copy may go to several
                reach = TouchedBytes(access.offset, access.offset + access.nbytes, cta)
                atomic = stream.positions[at] in recorder.atomics
                order = SharedOrder.ATOMICS if atomic else SharedOrder.NEEDED
                yield _Use(*who, op[0] in WRITES_MEMORY, reach, position, order)
    for _, offset in recorder.barriers:
        yield _Use(-1, -1, None, False, TouchedBytes(offset, offset + 8))


def _unread(accesses: Sequence[UnreadAccess], recorder: StreamRecorder, parts: _SharedParts) -> Iterator[_Use]:
    for each in accesses:
        part = parts.of(each.agent, each.barriers) if each.barriers is not None else None
        cta = recorder.streams[each.agent].cta
        yield _Use(each.agent, cta, part, each.writes, each.reach, each.position, each.order)


class _Index:
    """Uses by their part, so that only those are compared that are not apart."""

    def __init__(self, uses: Collection[_Use]) -> None:
        self._uses = uses
        self._parts, self._loose = defaultdict[int | None, list[_Use]](list), defaultdict[int, list[_Use]](list)
        for each in uses:
            self._parts[each.part].append(each)
            self._loose[each.cta].append(each)

    def meets(self, one: _Use) -> bool:
        """Whether one of them may meet it."""
        if one.part is None:
            return any(map(one.may_meet, self._uses))
        elsewhere = (uses for cta, uses in self._loose.items() if cta not in (one.cta, -1))
        return any(map(one.may_meet, chain(self._parts[one.part], self._parts[None], *elsewhere)))


def touching_others(accesses: Sequence[UnreadAccess], recorder: StreamRecorder) -> frozenset[int]:
    """The positions of those that may touch what other warps, copies or mbarriers use; reads do not disturb reads."""
    parts = _SharedParts(recorder)
    unread = {*_unread(accesses, recorder, parts)}
    others = _Index({*_uses(recorder, parts), *(each._replace(position=-1) for each in unread)})
    return frozenset(one.position for one in unread if others.meets(one))


def storing_at_once(accesses: Sequence[UnreadAccess], recorder: StreamRecorder) -> frozenset[int]:
    """The positions of stores that several agents execute, perhaps to the same bytes, with nothing in between."""
    stores = [each for each in accesses if each.order is SharedOrder.STORES]
    if not stores:
        return frozenset()
    found = {*_unread(stores, recorder, _SharedParts(recorder))}
    others = _Index({each._replace(position=-1, order=SharedOrder.NEEDED) for each in found})
    return frozenset(one.position for one in found if others.meets(one))


def touching_engines(accesses: Sequence[UnreadAccess], recorder: StreamRecorder) -> frozenset[int]:
    """The positions of those that may touch what copies or mbarriers use."""
    parts = _SharedParts(recorder)
    engines = _Index({use for use in _uses(recorder, parts) if use.agent < 0})
    return frozenset(one.position for one in _unread(accesses, recorder, parts) if engines.meets(one))


def settled_reads(
    strong: Collection[int], accesses: Sequence[UnreadAccess], recorder: StreamRecorder
) -> frozenset[int]:
    """The positions of strong loads of shared memory that see the same in every schedule.

    A ``.volatile``, ``.relaxed`` or ``.acquire`` load may see what another warp stores meanwhile, and that may order
    more than the program has. Nothing is learned where all that is stored there is apart from it, such as the address
    that ``tcgen05.alloc`` leaves.
    """
    parts = _SharedParts(recorder)
    reads, writes = list[_Use](), {*_unread(accesses, recorder, parts)}
    for each in _uses(recorder, parts, strong):
        if each.position in strong:
            reads.append(each)
        elif each.writes:
            writes.add(each)
    stored = _Index(writes)
    return frozenset({each.position for each in reads} - {each.position for each in reads if stored.meets(each)})
