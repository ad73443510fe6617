"""What CTAs say to each other by words of global memory, as operations on mbarriers: the words become barriers.

A wait for a word is one for the writes that had made its value; these arrive at a barrier that has only this phase.
Atomics whose answer is used come in the order of this run: each waits for those before it.

Whether every schedule of the program is one of the kernel, and the program has all of them, is checked with what occurs
before what in it (:mod:`pipesim.answers.every_cta.word_order`); of atomics in another order there is another program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from pipesim.bounds import MAX_POINTED_BYTES
from pipesim.model.groups import CLUSTER
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
from pipesim.model.tables import Tile
from pipesim.ptx.emit.global_data import GlobalData, data_between_ctas, in_both
from pipesim.ptx.emit.record import Place, Range, Stream, StreamRecorder
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.global_words import STRONG, GlobalWords, WordAct, WordEvent
from pipesim.ptx.emulate.stop import Status

_WRITES = (WordAct.STORE, WordAct.ADD, WordAct.CHANGE)
_MOST_WRITES = 256  #: of one word
_MOST_MISSING = 4_096  #: writes more with which a wait might end
Passes = Callable[[int], "bool | None"]
_Stuck = tuple[int, int, int, Passes, int]  #: agent, position, word, what it waits for, and order and scope


@dataclass(frozen=True)
class WordWrite:
    """A write: its first operation in the program and its last, what is added, and the value after it."""

    agent: int
    pc: int
    last: int
    act: WordAct
    added: int
    after: int


@dataclass(frozen=True)
class WordWait:
    """A wait for a word, or a read that waits for nothing: its first operation and its last, the next one without any.

    ``writes``: how many of the writes have made the value; ``position``: of the instruction.
    """

    agent: int
    pc: int
    last: int
    writes: int
    position: int
    passes: Passes | None


@dataclass
class GlobalWord:
    """A word by which CTAs talk. ``writes``: in the order of the run; ``first``: its value before them.

    ``chained``: the program has them in this order.
    """

    name: str
    first: int
    size: int
    chained: bool
    writes: list[WordWrite] = field(default_factory=list)
    waits: list[WordWait] = field(default_factory=list)

    @property
    def acts(self) -> list[WordWrite | WordWait]:
        """All that is done to it."""
        return [*self.writes, *self.waits]

    def since(self, writes: int) -> int:
        """Of the first ``writes`` writes the last store, after which only atomics came; 0 without one."""
        return next((k for k in range(writes - 1, -1, -1) if self.writes[k].act is WordAct.STORE), 0)


@dataclass(frozen=True)
class WordsOfRun:
    """The words of one run. ``why_not``: why they are not judged, "" if they are; ``stuck_at``: words for which agents
    wait in the end, for this many writes more (``missing``; 0 where that is not known). ``set_within``: for each of
    these the memory of which the grid has to write something if nothing else than the grid is to end the wait: the word
    where it is read at system scope, by which a host or a peer may set it, else all memory of its pointer.
    ``open_data``: a position at which it is not known what of the data that CTAs share is accessed, -1 if all is
    known; ``tiles``: names of the data.

    ``sequence``: CTA and word of each write, in order; ``observed``: words with atomics whose answer is used, of which
    the order of the writes is that of the program; ``zeros``: names of words taken to
    be 0 at first; ``loops``: positions of the loops that are waits now; ``off_turn``: the order was not possible;
    ``alike``: all CTAs do the same, to the same words and data, and each comes once to such an atomic: one order is as
    good as another.
    """

    words: tuple[GlobalWord, ...] = ()
    why_not: str = ""
    stuck_at: tuple[Range, ...] = ()
    missing: int = 0
    open_data: int = -1
    tiles: tuple[Tile, ...] = ()
    sequence: tuple[tuple[int, int], ...] = ()
    observed: frozenset[int] = frozenset()
    zeros: tuple[str, ...] = ()
    loops: tuple[int, ...] = ()
    off_turn: bool = False
    alike: bool = False
    set_within: tuple[Range, ...] = ()

    @property
    def stuck(self) -> bool:
        """Whether an agent waits in the end."""
        return bool(self.stuck_at)


def word_name(cluster: Cluster, address: int, size: int) -> str:
    """``flags[2]``: the pointer's name and the number of the word at it.

    What no pointer of the launch leads to is the workspace of cooperative groups, or a variable of the module.
    """
    pointer, offset = cluster.image.pointer_to(address)
    return f"{pointer or 'workspace'}[{offset // size}]"


def with_word_barriers(cluster: Cluster, names: dict[Place, tuple[str, int]]) -> WordsOfRun:
    """Put operations on barriers for what is done to words into the streams. ``names``: gets those of the barriers."""
    words = cluster.words
    assert words is not None
    made = _WordBarriers(cluster, words, names)
    why_not = made.why_not()
    found = () if why_not else tuple(made.words())
    data = data_between_ctas(cluster, words, made.talked) if not why_not else GlobalData()
    observed = [(cluster.recorder.streams[e.agent].cta, e.address) for e in words.events if e.observed]
    once = len({cta for cta, _ in observed}) == len(observed) == len(cluster.together)
    alike = once and _alike(cluster, words, data)
    made.finish(data)
    zeros = tuple(word_name(cluster, at, words.sizes[at]) for at in words.taken_for_zero if at in made.events)
    loops = {e.position for e in words.events if e.act is WordAct.WAIT or e.observed} | {
        w[0] for w in words.waiting.values()
    }
    return WordsOfRun(
        found,
        why_not,
        tuple((at, at + words.sizes[at]) for at in sorted({wait[1] for wait in words.waiting.values()})),
        max(made.missing, default=0) * all(made.missing),
        data.open,
        data.tiles,
        tuple(words.sequence),
        frozenset(word for _, word in observed),
        zeros,
        tuple(sorted(loops)),
        words.off_turn,
        alike,
        tuple(sorted({_set_within(cluster, position, at) for position, at, *_ in words.waiting.values()})),
    )


def _set_within(cluster: Cluster, position: int, address: int) -> Range:
    if cluster.code.body[position].has_any("sys", "volatile", "mmio"):
        return address, address + 1
    start = address - cluster.image.pointer_to(address)[1]
    return start, start + MAX_POINTED_BYTES


def _alike(cluster: Cluster, words: GlobalWords, data: GlobalData) -> bool:
    """Whether the CTAs differ in nothing but whose shared memory it is that they use."""
    recorder, accesses = cluster.recorder, list(cluster.recorder.accesses)
    barriers, named = list(recorder.barriers), list(recorder.named)

    def said(op: Operation) -> tuple[object, ...]:
        if op[0] == Op.WORK and operand(op, "cycles"):
            e = words.events[operand(op, "cycles") - 1]
            return e.act, e.address, e.after - e.before if e.act is WordAct.ADD else e.after, e.written, e.observed
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
                case "item" | "register" | "state_register":
                    pass
                case _:
                    found.append(value)
        return tuple(found)

    kinds: dict[int, list[object]] = {}
    for agent, stream in enumerate(recorder.streams):
        shared = [(at, said(op), where) for at, ops in data.before.get(agent, {}).items() for op, where in ops]
        kinds.setdefault(stream.cta, []).append((tuple(map(said, stream.code)), tuple(stream.positions), shared))
    first, *others = kinds.values()
    return all(each == first for each in others)


class _WordBarriers:
    def __init__(self, cluster: Cluster, words: GlobalWords, names: dict[Place, tuple[str, int]]) -> None:
        self._cluster, self._words, self._names = cluster, words, names
        self._streams = cluster.recorder.streams
        self._counts: dict[int, int] = {}  #: of each barrier
        self._instead: dict[int, list[Operation]] = {}  #: by the number of an event
        self._at_end: dict[int, tuple[list[Operation], int]] = {}  #: by agent: of those that wait in the end, and where
        self.missing: list[int] = []
        self._entries: list[tuple[GlobalWord, WordEvent, int]] = []
        asked = {event.address for event in words.events if event.act is WordAct.WAIT or event.observed}
        asked |= {wait[1] for wait in words.waiting.values()}
        self.events: dict[int, list[WordEvent]] = {address: [] for address in sorted(asked)}
        for event in words.events:
            if event.address in self.events:
                self.events[event.address].append(event)

    @property
    def talked(self) -> list[Range]:
        """The bytes of the words."""
        return [(at, at + self._words.sizes[at]) for at in self.events]

    def why_not(self) -> str:
        """Why nothing of it is understood, "" if it is."""
        if self._words.doubts:
            position, why = min(self._words.doubts.items())
            return f"{self._cluster.code.body[position].mnemonic}: {why}"
        talked = self.talked
        followed = {e.position for e in self._words.events} | {wait[0] for wait in self._words.waiting.values()}
        for one in self._cluster.global_accesses or ():
            if one.kind.writes and one.position not in followed and any(in_both(sorted(one.ranges), talked)):
                return "what is stored to a word is not known"
        weak = (e for events in self.events.values() for e in events if e.act is WordAct.STORE)
        if any(not self._cluster.code.body[e.position].has_any(*STRONG) for e in weak):
            return "a store to such a word without .relaxed, .release or .volatile"
        if any(op[0] in CLUSTER for stream in self._streams for op in stream.code):
            return "a barrier of the cluster"
        if any(stream.held for stream in self._streams):
            return "what follows depends on the result of a try_wait"
        for warp in self._cluster.warps:
            apart = any(pc not in frame.joins for frame in warp.frames for pc, _ in frame.pending)
            if warp.agent in self._words.waiting and apart:
                return "some lanes of a warp wait before others run"
        if any(sum(e.act in _WRITES for e in events) > _MOST_WRITES for events in self.events.values()):
            return "a word is written too often"
        return ""

    def words(self) -> Iterator[GlobalWord]:
        """The words, with what is done to each."""
        for address, events in self.events.items():
            yield self._word(address, events)

    def _word(self, address: int, events: list[WordEvent]) -> GlobalWord:
        writes = [e for e in events if e.act in _WRITES]
        values = [events[0].before if events else self._words.values[address], *(e.after for e in writes)]
        size = self._words.sizes[address]
        stuck = [(agent, *wait) for agent, wait in self._words.waiting.items() if wait[1] == address]
        chained = any(e.observed for e in writes)
        name = word_name(self._cluster, address, size)
        word = GlobalWord(name, values[0], size, chained)
        for e in writes:
            word.writes.append(WordWrite(e.agent, -1, -1, e.act, e.after - e.before, e.after))
        self._by_segments(word, events, values, stuck)
        return word

    def _by_segments(self, word: GlobalWord, events: list[WordEvent], values: list[int], stuck: list[_Stuck]) -> None:
        """A barrier for the writes between each two that some wait tells apart, all of one phase."""
        needed = _needed(events, values)
        waits = {needed[e.number] for e in events if e.act is WordAct.WAIT}
        segments = _Segments(word, waits, self)
        for e in events:
            if e.act is WordAct.WAIT or (e.act in _WRITES and word.chained):
                reads = e.act is WordAct.WAIT or e.observed
                written = e.written if reads else semantics(Order.RELAXED, Scope.CTA)  # which orders no data
                self._instead[e.number] = segments.waits_for(needed[e.number], written)
            elif e.act in _WRITES:
                self._instead[e.number] = []
        for agent, position, _, passes, written in stuck:
            missing = _missing(word, passes)
            self._at_end[agent] = segments.waits_for_more(max(missing, 1), written), position
            self.missing.append(missing)
        count = 0
        for e in events:
            if e.act in _WRITES:
                at = segments.barrier_of(count)
                does = (int(Op.WORK), 0) if at < 0 else _arrival(at, e.written)
                self._instead[e.number].append(does)
            self._entries.append((word, e, count if e.act in _WRITES else needed.get(e.number, count)))
            count += e.act in _WRITES

    def new_barrier(self, name: str, count: int) -> int:
        """A new barrier, which is in no CTA's shared memory."""
        recorder = self._cluster.recorder
        place = self._cluster.ctas, len(self._counts)
        self._names[place] = name, sum(each == name for each, _ in self._names.values())
        number = recorder.barriers.setdefault(place, len(recorder.barriers))
        self._counts[number] = count
        return number

    def count_more(self, barrier: int, more: int) -> None:
        """It completes with this number of arrivals more."""
        self._counts[barrier] += more

    def _rooms(self) -> dict[int, int]:
        """For each CTA that begins when others have ended the barrier at which these arrive."""
        first, ctas = self._cluster.launch.resident, [stream.cta for stream in self._streams]
        return {
            cta: self.new_barrier("room on the device", sum(each <= cta - first for each in ctas))
            for cta in (range(first, self._cluster.ctas) if first else ())
        }

    def finish(self, data: GlobalData) -> None:
        """Put the operations where the events were, the accesses to data, and first of all the start of the launch."""
        writes: dict[int, int] = {}
        places: dict[int, tuple[int, int]] = {}
        rooms, recorder = self._rooms(), self._cluster.recorder
        for agent, stream in enumerate(self._streams):
            start: list[Operation] = []
            if self._counts or data.first:
                inits = [(int(Op.INIT), bar, count) for bar, count in self._counts.items()]
                start = [*inits, *data.first] if not agent else []
                start += [(int(Op.CLUSTER_ARRIVE), 0), (int(Op.CLUSTER_WAIT), 0)]
            start += [(int(Op.WAIT), barrier, 0, 0) for cta, barrier in rooms.items() if cta == stream.cta]
            end = self._at_end.get(agent, ([], 0))
            if self._cluster.warps[agent].status is Status.ENDED:
                end = [(int(Op.ARRIVE), barrier, 1, 0, -1, 0) for cta, barrier in rooms.items() if cta > stream.cta], 0
            _rebuild(recorder, stream, start, self._instead, end, places, data.before.get(agent, {}))
        for word, e, count in self._entries:
            pc, last = places[e.number]
            if e.act in _WRITES:
                n = writes.setdefault(id(word), 0)
                word.writes[n] = WordWrite(e.agent, pc, last, e.act, e.after - e.before, e.after)
                writes[id(word)] += 1
            if e.act not in _WRITES:
                passes = e.passes if e.act is WordAct.WAIT else None
                word.waits.append(WordWait(e.agent, pc, last, count, e.position, passes))


def _needed(events: list[WordEvent], values: list[int]) -> dict[int, int]:
    """For each wait how many writes it is for: the first number with which it would end, of those that its agent had
    not seen. For each write how many came before it.
    """
    needed: dict[int, int] = {}
    known: dict[int, int] = {}  # by agent
    count = 0
    for e in events:
        if e.act is WordAct.WAIT and e.passes is not None:
            first = count
            while first > known.get(e.agent, 0) and e.passes(values[first - 1]):
                first -= 1
            known[e.agent] = needed[e.number] = first
        elif e.act in _WRITES:
            needed[e.number] = count
            count += 1
            known[e.agent] = count
    return needed


class _Segments:
    """The writes of a word between those that waits distinguish: a barrier for each such segment that is waited for."""

    def __init__(self, word: GlobalWord, waits: set[int], maker: _WordBarriers) -> None:
        self._word, self._waits, self._maker = word, waits, maker
        count = len(word.writes)
        stores = {n for n, each in enumerate(word.writes) if each.act is WordAct.STORE}
        self._cuts = sorted({0, count, *waits, *stores} | (set(range(count)) if word.chained else set()))
        self._barriers: dict[tuple[int, int], int] = {}
        self._raised: set[int] = set()

    def waits_for(self, writes: int, written: int) -> list[Operation]:
        """Waits for the first ``writes`` writes, as far as the last of them is read through them."""
        first = self._word.since(writes)
        wanted = [(a, b) for a, b in pairwise(self._cuts) if first <= a and b <= writes]
        return [(int(Op.WAIT), self._barrier(each), 0, _acquired(written)) for each in wanted]

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
        extra: list[Operation] = [(int(Op.WAIT), barrier, 0, _acquired(written))] if last == (count, count) else []
        return before + extra

    def barrier_of(self, write: int) -> int:
        """The barrier at which a write arrives, -1 if nothing waits for it."""
        return next((barrier for (a, b), barrier in self._barriers.items() if a <= write < b), -1)

    def _barrier(self, segment: tuple[int, int]) -> int:
        if segment not in self._barriers:
            self._barriers[segment] = self._maker.new_barrier(self._word.name, segment[1] - segment[0])
        return self._barriers[segment]


def _missing(word: GlobalWord, passes: Passes) -> int:
    """How many writes more, each as the last one, would end a wait; 1 for a store, 0 if no number is found."""
    if not word.writes or word.writes[-1].act is not WordAct.ADD:
        return 1
    last, full = word.writes[-1], (1 << 8 * word.size) - 1
    return next((n for n in range(1, _MOST_MISSING) if passes(last.after + n * last.added & full)), 0)


def _rebuild(
    recorder: StreamRecorder,
    stream: Stream,
    start: list[Operation],
    instead: dict[int, list[Operation]],
    end: tuple[list[Operation], int],
    places: dict[int, tuple[int, int]],
    before: dict[int, list[tuple[Operation, int]]],
) -> None:
    """The stream with a start, other operations for those that hold the place of an event, and an end."""
    code, positions, steps = list(start), [0] * len(start), [(-1, -1)] * len(start)
    runs: list[tuple[int, ...]] = [()] * len(start)
    unsure: dict[int, int] = {}

    def put(made: list[tuple[Operation, int]]) -> None:
        code.extend(op for op, _ in made)
        positions.extend(position for _, position in made)
        steps.extend([(-1, -1)] * len(made))
        runs.extend([()] * len(made))

    for at, op in enumerate(stream.code):
        put(before.get(at, []))
        here = [_of_several_clusters(op)]
        if op[0] == Op.WORK and operand(op, "cycles"):
            number = operand(op, "cycles") - 1
            here = instead.get(number, [])
            if number in instead:
                here = here or [(int(Op.WORK), 0)]
            places[number] = len(code), len(code) + max(len(here) - 1, 0)
        if at in stream.unsure:
            unsure[len(code)] = stream.unsure[at]
        here = (recorder.separated(op, stream.parts[at]) if at in stream.parts else []) or here
        code += here
        positions += [stream.positions[at]] * len(here)
        steps += [stream.steps[at]] * len(here)
        runs += [stream.runs[at] if not n else () for n in range(len(here))]
    put(before.get(len(stream.code), []))
    put([(op, end[1]) for op in end[0]])
    stream.code, stream.positions, stream.steps, stream.runs = code, positions, steps, runs
    stream.unsure, stream.parts = unsure, {}


def _of_several_clusters(op: Operation) -> Operation:
    """A fence with the scope of the cluster reaches no other one."""
    if op[0] == Op.FENCE and scope_of(operand(op, "semantics")) is Scope.CLUSTER:
        return with_operand(op, "semantics", semantics(order_of(operand(op, "semantics")), Scope.CTA))
    return op


def _acquired(written: int) -> int:
    acquires = order_of(written) in (Order.ACQUIRE, Order.ACQ_REL)
    return semantics(Order.ACQUIRE if acquires else Order.RELAXED, scope_of(written))


def _arrival(barrier: int, written: int) -> Operation:
    releases = order_of(written) in (Order.RELEASE, Order.ACQ_REL)
    return int(Op.ARRIVE), barrier, 1, 0, -1, semantics(Order.RELEASE if releases else Order.RELAXED, scope_of(written))
