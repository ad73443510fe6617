"""What CTAs do to words of global memory, as operations on mbarriers: the words become barriers.

A wait for a word is one for the writes that had made its value; these arrive at a barrier that has only this phase.
Atomics whose answer is used come in the order of the run: each waits for those before it. Whether every schedule of
that program is one of the kernel, and it has all of them, is checked with what occurs before what in it
(:mod:`pipesim.prove.word_order`); of atomics in another order there is another program.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from pipesim.model.ops import (
    OPERANDS,
    Op,
    Operation,
    Order,
    Scope,
    operand,
    order_of,
    scope_of,
    semantics,
    with_operand,
)
from pipesim.model.tables import Access
from pipesim.model.words import GlobalWord, Passes, WordAct, WordEvent, WordWait, WordWrite

#: What continues the release pattern that has made the value before (PTX ISA, "Release and Acquire Patterns").
ATOMIC = (WordAct.ADD, WordAct.CHANGE)
MOST_WRITES = 1 << 10  #: of one word
_MOST_MISSING = 4_096  #: writes more with which a wait might end
Stuck = tuple[int, int, Passes, int]  #: agent, position, what it waits for, and order and scope


class WordBarriers:
    """The barriers of one run. ``new_barrier``: enters one for a word of this name, which these agents alone use, or
    any if there are none; it is in no CTA's shared memory.

    ``counts``: of each barrier; ``instead``: the operations of events, by number; ``at_end``: for each agent that waits
    in the end its operations, and where; ``missing``: of each such wait how many writes more would end it, 0 if that is
    not known.
    """

    def __init__(self, new_barrier: Callable[[str, Collection[int]], int]) -> None:
        self._enter = new_barrier
        self.counts: dict[int, int] = {}
        self.instead: dict[int, list[Operation]] = {}
        self.at_end: dict[int, tuple[list[Operation], int]] = {}
        self.missing: list[int] = []
        self._entries: list[tuple[GlobalWord, WordEvent, int]] = []
        self._rooms: dict[int, int] = {}

    def add(self, name: str, size: int, first: int, events: Sequence[WordEvent], stuck: Iterable[Stuck]) -> GlobalWord:
        """A word of this size, with its first value and all that is done to it."""
        writes = [e for e in events if e.act.writes]
        values = [first, *(e.after for e in writes)]
        word = GlobalWord(name, first, size, any(e.observed for e in writes))
        for e in writes:
            word.writes.append(WordWrite(e.agent, -1, -1, e.act, e.after - e.before, e.after, e.observed))
        self._by_segments(word, events, values, stuck)
        return word

    def _by_segments(
        self, word: GlobalWord, events: Sequence[WordEvent], values: list[int], stuck: Iterable[Stuck]
    ) -> None:
        """A barrier for the writes between each two that some wait tells apart, all of one phase."""
        needed = needed_writes(events, values)
        waits = {needed[e.number] for e in events if e.act is WordAct.WAIT}
        stuck, seen = tuple(stuck), dict[int, int]()  # by agent
        agents = {e.agent for e in events} | {agent for agent, *_ in stuck}
        segments = _Segments(word, waits, _continued(events), self, agents)
        for e in events:
            if e.act is WordAct.WAIT or (e.act.writes and word.chained):
                reads = e.act is WordAct.WAIT or e.observed
                written = e.written if reads else semantics(Order.RELAXED, Scope.CTA)  # which orders no data
                self.instead[e.number] = segments.waits_for(needed[e.number], written)
            elif e.act.writes:
                self.instead[e.number] = []
            elif e.agent in seen and order_of(e.written) is Order.ACQUIRE:  # what its wait has observed
                self.instead[e.number] = segments.waits_for(seen[e.agent], e.written)
            else:
                self.instead[e.number] = []  # a place of its own
            if e.act is WordAct.WAIT:
                seen[e.agent] = needed[e.number]
        for agent, position, passes, written in stuck:
            missing = _missing(word, passes)
            self.at_end[agent] = segments.waits_for_more(max(missing, 1), written), position
            self.missing.append(missing)
        count = 0
        for e in events:
            if e.act.writes:
                at = segments.barrier_of(count)
                does = (int(Op.WORK), 0) if at < 0 else arrival(at, e.written)
                self.instead[e.number].append(does)
            self._entries.append((word, e, count if e.act.writes else needed.get(e.number, count)))
            count += e.act.writes

    def new_barrier(self, name: str, count: int, agents: Collection[int] = ()) -> int:
        """A new barrier, which is in no CTA's shared memory."""
        number = self._enter(name, agents)
        self.counts[number] = count
        return number

    def count_more(self, barrier: int, more: int) -> None:
        """It completes with this number of arrivals more."""
        self.counts[barrier] += more

    def make_room(self, ctas: Sequence[int], resident: int) -> None:
        """Only ``resident`` CTAs are on the device at a time: each other one begins when those before have ended.

        ``ctas``: of each agent.
        """
        for cta in range(resident, max(ctas) + 1) if resident else ():
            self._rooms[cta] = self.new_barrier("room on the device", sum(each <= cta - resident for each in ctas))

    def start(self, agent: int, cta: int, first: Sequence[Operation]) -> list[Operation]:
        """What an agent does before its own operations: the first one initialises, and the launch has written."""
        found: list[Operation] = []
        if self.counts or first:
            found = [(int(Op.INIT), bar, count) for bar, count in self.counts.items()] if not agent else []
            found += first if not agent else ()
            found += [(int(Op.CLUSTER_ARRIVE), 0), (int(Op.CLUSTER_WAIT), 0)]
        return found + [(int(Op.WAIT), barrier, 0, 0) for each, barrier in self._rooms.items() if each == cta]

    def end(self, agent: int, cta: int, *, ended: bool) -> tuple[list[Operation], int]:
        """What an agent does in the end, and where: it waits, or there is room for another CTA."""
        if ended:
            return [(int(Op.ARRIVE), barrier, 1, 0, -1, 0) for each, barrier in self._rooms.items() if each > cta], 0
        return self.at_end.get(agent, ([], 0))

    def place(self, places: Mapping[int, tuple[int, int]]) -> None:
        """Tell the words where the operations of their events are: the first and the last of each, by number."""
        writes: dict[int, int] = {}
        for word, e, count in self._entries:
            pc, last = places[e.number]
            if e.act.writes:
                n = writes.setdefault(id(word), 0)
                word.writes[n] = WordWrite(e.agent, pc, last, e.act, e.after - e.before, e.after, e.observed)
                writes[id(word)] += 1
            elif not (e.unread and all(later.act in ATOMIC for later in word.writes[count:])):  # else it sees any
                passes = e.passes if e.act is WordAct.WAIT else None
                word.waits.append(WordWait(e.agent, pc, last, count, e.position, passes, e.version >= 0))


def needed_writes(events: Sequence[WordEvent], values: list[int]) -> dict[int, int]:
    """For each wait how many writes it is for: the first number with which it would end, of those that its agent had
    not seen. For each write how many came before it.
    """
    needed: dict[int, int] = {}
    known: dict[int, int] = {}  # by agent
    count = 0
    for e in events:
        if e.act is WordAct.WAIT and e.version >= 0:
            known[e.agent] = needed[e.number] = e.version
        elif e.act is WordAct.WAIT and e.passes is not None:
            first = count
            while first > known.get(e.agent, 0) and e.passes(values[first - 1]):
                first -= 1
            known[e.agent] = needed[e.number] = first
        elif e.act.writes:
            needed[e.number] = count
            count += 1
            known[e.agent] = count
    return needed


def _continued(events: Sequence[WordEvent]) -> dict[int, int]:
    """Of each write that releases nothing the last one before it of its agent that does: both are a release pattern.

    PTX ISA, "Release and Acquire Patterns": a release operation on M followed by a strong write on M.
    """
    found, released = dict[int, int](), dict[int, int]()
    for k, e in enumerate(each for each in events if each.act.writes):
        if order_of(e.written) in (Order.RELEASE, Order.ACQ_REL):
            released[e.agent] = k
        elif e.agent in released:
            found[k] = released[e.agent]
    return found


class _Segments:
    """The writes of a word between those that waits distinguish: a barrier for each such segment that is waited for."""

    def __init__(
        self, word: GlobalWord, waits: set[int], continued: dict[int, int], maker: WordBarriers, agents: set[int]
    ) -> None:  # fmt: skip
        self._word, self._waits, self._continued, self._maker, self._agents = word, waits, continued, maker, agents
        count = len(word.writes)
        stores = {n for n, each in enumerate(word.writes) if each.act is WordAct.STORE}
        alone = {end for k in continued.values() for end in (k, k + 1)}
        self._cuts = sorted({0, count, *waits, *stores, *alone} | (set(range(count)) if word.chained else set()))
        self._barriers: dict[tuple[int, int], int] = {}
        self._raised: set[int] = set()

    def waits_for(self, writes: int, written: int) -> list[Operation]:
        """Waits for the first ``writes`` writes, as far as the last of them is read through them."""
        first = self._word.since(writes)
        released = {self._continued.get(k, writes) for k in range(first, writes)}
        wanted = [(a, b) for a, b in pairwise(self._cuts) if b <= writes and (first <= a or a in released)]
        return [(int(Op.WAIT), self._barrier(each), 0, acquired(written)) for each in wanted]

    def waits_for_more(self, missing: int, written: int) -> list[Operation]:
        """Waits for all writes and ``missing`` ones, which never come: of the last segment, if no wait ends with it."""
        count = len(self._word.writes)
        last = (count, count)
        if count and count not in self._waits:
            last = self._cuts[-2], count
        before, barrier = self.waits_for(count, written), self._barrier(last)
        if barrier not in self._raised:
            self._raised.add(barrier)
            self._maker.count_more(barrier, missing)
        extra: list[Operation] = [(int(Op.WAIT), barrier, 0, acquired(written))] if last == (count, count) else []
        return before + extra

    def barrier_of(self, write: int) -> int:
        """The barrier at which a write arrives, -1 if nothing waits for it."""
        return next((barrier for (a, b), barrier in self._barriers.items() if a <= write < b), -1)

    def _barrier(self, segment: tuple[int, int]) -> int:
        if segment not in self._barriers:
            self._barriers[segment] = self._maker.new_barrier(self._word.name, segment[1] - segment[0], self._agents)
        return self._barriers[segment]


def _missing(word: GlobalWord, passes: Passes) -> int:
    """How many writes more, each as the last one, would end a wait; 1 for a store, 0 if no number is found."""
    if not word.writes or word.writes[-1].act is not WordAct.ADD:
        return 1
    last, full = word.writes[-1], (1 << 8 * word.size) - 1
    return next((n for n in range(1, _MOST_MISSING) if passes(last.after + n * last.added & full)), 0)


def acquired(written: int) -> int:
    """Order and scope of a wait for a word."""
    acquires = order_of(written) in (Order.ACQUIRE, Order.ACQ_REL)
    return semantics(Order.ACQUIRE if acquires else Order.RELAXED, scope_of(written))


def arrival(barrier: int, written: int) -> Operation:
    """What a write to a word is, at the barrier that replaces it."""
    releases = order_of(written) in (Order.RELEASE, Order.ACQ_REL)
    return int(Op.ARRIVE), barrier, 1, 0, -1, semantics(Order.RELEASE if releases else Order.RELAXED, scope_of(written))


def of_several_clusters(op: Operation) -> Operation:
    """A fence with the scope of the cluster reaches no other one."""
    if op[0] == Op.FENCE and scope_of(operand(op, "semantics")) is Scope.CLUSTER:
        return with_operand(op, "semantics", semantics(order_of(operand(op, "semantics")), Scope.CTA))
    return op


def in_its_cta(
    op: Operation,
    accesses: Sequence[Access],
    barriers: Sequence[tuple[int, int]],
    named: Sequence[tuple[int, int]],
    *,
    with_items: bool = False,
) -> tuple[object, ...]:
    """An operation as any CTA may have it: without its CTA, and the numbers of registers, and those of items if not
    asked for.
    """
    found: list[object] = [op[0]]
    for name, value in zip(OPERANDS[Op(op[0])], op[1:], strict=True):
        match name:
            case "access":
                a = accesses[value]
                found.append((a.space, a.offset, a.nbytes))
            case "barrier" if value >= 0:
                found.append(barriers[value][1])
            case "named_barrier":
                found.append(named[value][1])
            case "register" | "state_register":
                pass
            case "item" if not with_items:
                pass
            case _:
                found.append(value)
    return tuple(found)


def too_narrow(words: Iterable[Sequence[WordEvent]], ctas: Sequence[int]) -> WordEvent | None:
    """An access of CTA scope to a word that several CTAs access, which is not a strong one for the others.

    ``words``: what is done to each; ``ctas``: of each agent.
    """
    shared = (events for events in words if len({ctas[e.agent] for e in events}) > 1)
    return next((e for events in shared for e in events if scope_of(e.written) is Scope.CTA), None)
