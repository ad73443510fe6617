"""What CTAs of a kernel say to each other by words of global memory, as operations on mbarriers in its streams.

Which operations these are is said in :mod:`pipesim.model.word_barriers`.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from pipesim.bounds import MAX_POINTED_BYTES
from pipesim.model.groups import CLUSTER, TOUCHES_MEMORY, WRITES_MEMORY
from pipesim.model.ops import AT, Op, Operation, Space, operand
from pipesim.model.tables import Tile
from pipesim.model.word_barriers import MOST_WRITES, WordBarriers, in_its_cta, of_several_clusters, too_narrow
from pipesim.model.words import MANY_WARPS, GlobalWord, Look, Range, Swaps, WeakLoad, WordAct, WordEvent, WordsOfRun
from pipesim.ptx.emit.global_data import GlobalData, data_between_ctas, in_both
from pipesim.ptx.emit.record import Place, Stream
from pipesim.ptx.emit.weak_loads import WeakAccess, is_strong, weak_accesses
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.global_memory.word_memory import WordMemory
from pipesim.ptx.emulate.memory import WINDOW, in_shared, place_of
from pipesim.ptx.emulate.stop import Status
from pipesim.ptx.text.instruction import Special, parts_of

_NO_SHARED_MEMORY = 1 << 24  #: a CTA has less
MOST_TAKING = 9  #: CTAs and warps: a digit of a setting
_NO_DATA = MAX_POINTED_BYTES  #: accesses to data in global memory are below
_STATIC = re.compile(r"E(\d+)([A-Za-z_]\w*)$")  #: how the name of a function's own variable ends


def word_name(cluster: Cluster, address: int, size: int) -> str:
    """``flags[2]``: the pointer's name and the number of the word at it.

    What no pointer of the launch leads to is the workspace of cooperative groups, or a variable of the module.
    """
    if in_shared(address):
        offset = place_of(address - WINDOW)[1]
        for each in cluster.code.function.shared:
            if each.offset <= offset < each.offset + each.size:
                number = f"[{(offset - each.offset) // size}]" if each.size > size else ""
                mangled = _STATIC.search(each.name)
                return f"{mangled[2][: int(mangled[1])] if mangled else each.name}{number}"
        return f"shared byte {offset:,}"
    pointer, offset = cluster.image.pointer_to(address)
    return f"{pointer or 'workspace'}[{offset // size}]"


def with_word_barriers(cluster: Cluster, names: dict[Place, tuple[str, int]]) -> WordsOfRun:
    """Put operations on barriers for what is done to words into the streams. ``names``: gets those of the barriers."""
    words = cluster.words
    assert words is not None
    made = _WordBarriers(cluster, words, names)
    why_not = made.why_not()
    found = () if why_not else tuple(made.words())
    data = GlobalData()
    if not why_not and cluster.together:  # data of one cluster is looked at with its own accesses as operations
        data = data_between_ctas(cluster, made.talked)
    made.look_at_weak(data, found)
    turns, observed = made.turns, frozenset(e.address for e in words.events if e.observed)
    swaps, does = _swaps(cluster, words, data, made) if cluster.together and observed else (Swaps.NONE, None)
    looks = made.finish(data)
    zeros = tuple(word_name(cluster, at, words.sizes[at]) for at in words.taken_for_zero if at in made.events)
    waits = (e.position for e in words.events if e.act is WordAct.WAIT or e.observed)
    loops = {*waits, *(wait[0] for wait in words.waiting.values())}
    followed = frozenset(e.position for e in words.events if is_strong(cluster.code.body[e.position]))
    return WordsOfRun(
        found,
        why_not,
        tuple((at, at + words.sizes[at]) for at in sorted({wait[1] for wait in words.waiting.values()})),
        max(made.barriers.missing, default=0) * all(made.barriers.missing),
        data.open,
        data.strong,
        data.tiles,
        turns,
        observed,
        zeros,
        tuple(sorted(loops)),
        words.off_turn,
        swaps,
        tuple(sorted({_set_within(cluster, p, at) for p, at, *_ in words.waiting.values() if not in_shared(at)})),
        made.narrow(),
        tuple((at, at + words.sizes[at]) for at in made.events),
        followed - words.at_data,
        len(words.places) + len(words.decided_by_loads),
        looks,
        does,
    )


def _set_within(cluster: Cluster, position: int, address: int) -> Range:
    if cluster.code.body[position].has_any("sys", "volatile", "mmio"):
        return address, address + 1
    start = address - cluster.image.pointer_to(address)[1]
    return start, start + MAX_POINTED_BYTES


def _swaps(cluster: Cluster, words: WordMemory, data: GlobalData, made: "_WordBarriers") -> tuple[Swaps, object]:
    """Which CTAs or warps may change places, so that of orders that differ in this one is as good as another, and what
    each of them does in its turn.

    CTAs that never ask which they are differ in nothing. Else they may not differ in what they do but in whose shared
    memory it is that they use, and in values of no word; and each, or each of their warps, comes once to an atomic.
    """
    streams, body = cluster.recorder.streams, cluster.code.body
    parts = (part for each in body for operand in each.operands for part in (operand, *parts_of(operand)))
    asks = any(isinstance(part, Special) and part.name.startswith(_WHICH_CTA) for part in parts)
    by_warp = any(who >= cluster.ctas for who, _ in made.turns)
    if not asks and not by_warp:
        return Swaps.CTAS, None
    acting = [e.agent for e in words.events if e.observed]
    if len({*acting}) < len(acting):
        return Swaps.NONE, None
    said = _said(cluster, words, data, made.events)
    if by_warp:
        return (Swaps.WARPS if all(each == said[0] for each in said) else Swaps.NONE), [said[each] for each in acting]
    order = [streams[each].cta for each in acting]
    of_ctas = [[each for n, each in enumerate(said) if streams[n].cta == cta] for cta in range(cluster.ctas)]
    every = sorted(order) == [*range(cluster.ctas)] and all(each == of_ctas[0] for each in of_ctas)
    return (Swaps.ALL if every else Swaps.NONE), [of_ctas[each] for each in order]


_WHICH_CTA = ("%ctaid", "%cluster", "%smid", "%gridid", "%envreg")


def _said(
    cluster: Cluster, words: WordMemory, data: GlobalData, asked: Collection[int]
) -> list[tuple[object, ...]]:  # fmt: skip
    """What each agent does, as any other one may do it."""
    recorder, accesses = cluster.recorder, list(cluster.recorder.accesses)
    barriers, named = list(recorder.barriers), list(recorder.named)

    def said(op: Operation) -> tuple[object, ...]:
        if op[0] == Op.WORK and operand(op, "cycles"):
            e = words.events[operand(op, "cycles") - 1]
            leaves = (e.after - e.before if e.act is WordAct.ADD else e.after) if e.address in asked else 0
            return e.act, e.address, leaves, e.written, e.observed
        return in_its_cta(op, accesses, barriers, named)

    found: list[tuple[object, ...]] = []
    for agent, stream in enumerate(recorder.streams):
        shared = [(at, said(op), where) for at, ops in data.before.get(agent, {}).items() for op, where in ops]
        stands = words.waiting.get(agent, ())[:2]
        found.append((tuple(map(said, stream.code)), tuple(stream.positions), shared, stands))
    return found


class _WordBarriers:
    def __init__(self, cluster: Cluster, words: WordMemory, names: dict[Place, tuple[str, int]]) -> None:
        self._cluster, self._words, self._names = cluster, words, names
        self._streams = cluster.recorder.streams
        self.turns = words.turns([stream.cta for stream in self._streams])
        self.barriers = WordBarriers(self._enter_barrier)
        self.events: dict[int, list[WordEvent]] = {address: [] for address in sorted(words.asked)}
        self.looks = words.looks
        self._weak: list[tuple[GlobalWord, WeakAccess]] = []
        asking = {look.event for look in self.looks if look.others}
        for event in words.events:
            if event.address in self.events:
                alone = event if event.number in asking else replace(event, version=-1)
                self.events[event.address].append(alone)

    @property
    def talked(self) -> list[Range]:
        """The bytes of the words."""
        return [(at, at + self._words.sizes[at]) for at in self.events]

    def why_not(self) -> str:
        """Why nothing of it is understood, "" if it is."""
        torn = [why for at, why in self._words.why_torn.items() if at in self.events]
        if torn:
            return torn[0]
        if self._words.doubts:
            position, why = min(self._words.doubts.items())
            return f"{self._cluster.code.body[position].mnemonic}: {why}"
        talked = self.talked
        followed = {e.position for e in self._words.events} | {wait[0] for wait in self._words.waiting.values()}
        for one in self._cluster.global_accesses or ():
            if one.kind.writes and one.position not in followed and any(in_both(sorted(one.ranges), talked)):
                return "what is stored to a word is not known"
        if self._is_written_otherwise():
            return "a copy may write it, or what is stored to it is not known"
        if self._cluster.together and any(op[0] in CLUSTER for stream in self._streams for op in stream.code):
            return "a barrier of the cluster"
        if any(warp.has_two_ways for warp in self._cluster.warps):
            return "what follows depends on the result of a try_wait"
        many = self._cluster.ctas + len(self._streams) > MOST_TAKING
        if self._cluster.together and many and max((who for who, _ in self.turns), default=0) >= self._cluster.ctas:
            return MANY_WARPS
        for warp in self._cluster.warps:
            apart = any(pc not in frame.joins for frame in warp.frames for pc, _ in frame.pending)
            if warp.agent in self._words.waiting and apart:
                return "some lanes of a warp wait before others run"
        if any(sum(e.act.writes for e in events) > MOST_WRITES for events in self.events.values()):
            return "a word is written too often"
        return ""

    def _is_written_otherwise(self) -> bool:
        """Whether something other than what is followed writes a word of shared memory."""
        followed = {e.position for e in self._words.events} | {wait[0] for wait in self._words.waiting.values()}
        accesses = list(self._cluster.recorder.accesses)
        places = [(*place_of(at - WINDOW), self._words.sizes[at]) for at in self.events if in_shared(at)]
        for stream in self._streams if places else ():
            for op, position in zip(stream.code, stream.positions, strict=True):
                a = accesses[op[AT["access"][op[0]]]] if op[0] in WRITES_MEMORY and position not in followed else None
                if a is not None and a.space is Space.SHARED:
                    ends = ((at, at + size) for cta, at, size in places if cta == a.cta)
                    if any(a.offset < end and at < a.offset + a.nbytes for at, end in ends):
                        return True
        return False

    def look_at_weak(self, data: GlobalData, words: Sequence[GlobalWord]) -> None:
        """Weak loads of these words, and weak stores to words of shared memory and strong loads of these, as accesses
        to data: the operations on the same bytes of shared memory are weak accesses and strong stores.
        """
        body, recorder = self._cluster.code.body, self._cluster.recorder
        free = max((each.offset + each.nbytes for each in data.tiles), default=_NO_DATA)
        for word, (at, events) in zip(words, self.events.items(), strict=False):
            free = free if in_shared(at) else self._order_weak(word, (at, at + word.size), events, data, free)
        for at, events in self.events.items():
            weak = {e.number for e in events if not is_strong(body[e.position])}
            if not in_shared(at) or not any(e.number in weak and e.act.writes for e in events):
                continue
            size, name = self._words.sizes[at], word_name(self._cluster, at, self._words.sizes[at])
            access = recorder.access(Space.GLOBAL, 0, free, size)
            data.tiles, free = (*data.tiles, Tile(name, Space.GLOBAL, 0, free, size, 1)), free + size
            data.first.append((int(Op.WRITE), access, self._cluster.item()))
            for e in events:
                op = (int(Op.WRITE), access, self._cluster.item()) if e.act.writes else (int(Op.READ), access, -1)
                if (e.number in weak) is e.act.writes and body[e.position].opcode != "atom":
                    self.barriers.instead.setdefault(e.number, []).insert(0, op)

    def _order_weak(self, word: GlobalWord, at: Range, events: list[WordEvent], data: GlobalData, free: int) -> int:
        """Weak accesses to a word of global memory (:mod:`.weak_loads`), by bytes that are free from here on."""
        recorder, writes, body = self._cluster.recorder, [e for e in events if e.act.writes], self._cluster.code.body
        found = list(weak_accesses(self._cluster, at, events, word.first))
        polls = self._cluster.code.regions.loops.polls  # an atomic in a loop may fail at first
        loads = [e for e in events if is_strong(body[e.position]) and (not e.act.writes or polls(e.position))]
        weak = {k: e.agent for k, e in enumerate(writes) if not is_strong(body[e.position])}
        stores = {k: agent for k, agent in weak.items() if any(agent != e.agent for e in loads)}
        wanted = sorted({*stores, *(k for one in found for k in one.ordered)})
        bytes_of = {k: recorder.access(Space.GLOBAL, 0, free + n, 1) for n, k in enumerate(wanted)}
        if wanted:
            data.tiles = (*data.tiles, Tile(word.name, Space.GLOBAL, 0, free, len(wanted), 1))
        for k, access in bytes_of.items():
            data.first.append((int(Op.WRITE), access, self._cluster.item()))
            does = self.barriers.instead[writes[k].number]
            does.insert(len(does) - 1, (int(Op.WRITE), access, self._cluster.item()))
        for e in loads:
            reads = [(int(Op.READ), bytes_of[k], -1) for k, agent in stores.items() if agent != e.agent]
            self.barriers.instead[e.number][:0] = reads
        for one in found:
            before = data.before.setdefault(one.agent, {}).setdefault(one.pc, [])
            before += [((int(Op.READ), bytes_of[k], -1), one.position) for k in one.ordered]
            if one.unclear:
                self._weak.append((word, one))
                before.append(((int(Op.WORK), -len(self._weak)), one.position))
        return free + len(wanted)

    def narrow(self) -> str:
        """What has too narrow a scope, "" if nothing has."""
        found = too_narrow(self.events.values(), [stream.cta for stream in self._streams])
        return f"{self._cluster.code.body[found.position].mnemonic}: its scope is one CTA" if found else ""

    def words(self) -> Iterator[GlobalWord]:
        """The words, with what is done to each."""
        for address, events in self.events.items():
            size, first = self._words.sizes[address], events[0].before if events else self._words.values[address]
            waiting = self._words.waiting.items()
            stuck = ((agent, where, ends, how) for agent, (where, at, ends, how) in waiting if at == address)
            word = self.barriers.add(word_name(self._cluster, address, size), size, first, events, stuck)
            word.unset = in_shared(address)
            yield word

    def _enter_barrier(self, name: str, agents: Collection[int]) -> int:
        """In a CTA if its agents alone use it, so that operations of CTA scope order what it does."""
        recorder, ctas = self._cluster.recorder, {self._streams[agent].cta for agent in agents}
        place = ctas.pop() if len(ctas) == 1 else self._cluster.ctas, _NO_SHARED_MEMORY + len(self.barriers.counts)
        self._names[place] = name, sum(each == name for each, _ in self._names.values())
        return recorder.barriers.setdefault(place, len(recorder.barriers))

    def finish(self, data: GlobalData) -> tuple[Look, ...]:
        """Put the operations where the events were, the accesses to data, and first of all the start of the launch;
        what was seen, with its places.
        """
        places: dict[int, tuple[int, int]] = {}
        made = self.barriers
        made.make_room([stream.cta for stream in self._streams], self._cluster.launch.resident)
        for agent, stream in enumerate(self._streams):
            start = made.start(agent, stream.cta, data.first)
            end = made.end(agent, stream.cta, ended=self._cluster.warps[agent].status is Status.ENDED)
            before, why = data.before.get(agent, {}), data.unsure.get(agent, {})
            _rebuild(self._cluster, stream, start, made.instead, end, places, before, why)
        made.place(places)
        for n, (of, one) in enumerate(self._weak, 1):
            of.weak.append(WeakLoad(one.agent, places[-n][0], one.unclear))
        word = {e.number: n for n, events in enumerate(self.events.values()) for e in events}
        return tuple(
            each._replace(word=word.get(each.event, -1), pc=places.get(each.event, (-1, -1))[0]) for each in self.looks
        )


def _rebuild(
    cluster: Cluster,
    stream: Stream,
    start: list[Operation],
    instead: dict[int, list[Operation]],
    end: tuple[list[Operation], int],
    places: dict[int, tuple[int, int]],
    before: dict[int, list[tuple[Operation, int]]],
    why: dict[int, int],
) -> None:
    """The stream with a start, other operations for those that hold the place of an event, and an end.

    ``why``: what comes ``before`` them may not happen, by position.
    """
    code, positions, steps = list(start), [0] * len(start), [(-1, -1)] * len(start)
    runs: list[tuple[int, ...]] = [()] * len(start)
    unsure: dict[int, int] = {}

    def put(made: list[tuple[Operation, int]]) -> None:
        for op, position in made:
            if position in why and op[0] in TOUCHES_MEMORY:
                unsure[len(code)] = why[position]
            marks = op[0] == Op.WORK and operand(op, "cycles") < 0
            if marks:
                places[operand(op, "cycles")] = len(code), len(code)
            code.append((int(Op.WORK), 0) if marks else op)
        positions.extend(position for _, position in made)
        steps.extend([(-1, -1)] * len(made))
        runs.extend([()] * len(made))

    for at, op in enumerate(stream.code):
        put(before.get(at, []))
        here = [of_several_clusters(op) if cluster.together else op]
        if op[0] == Op.WORK and operand(op, "cycles"):
            number = operand(op, "cycles") - 1
            here = instead.get(number, [])
            if number in instead:
                here = here or [(int(Op.WORK), 0)]
            places[number] = len(code), len(code) + max(len(here) - 1, 0)
        if at in stream.unsure:
            unsure[len(code)] = stream.unsure[at]
        here = (cluster.recorder.separated(op, stream.parts[at]) if at in stream.parts else []) or here
        code += here
        positions += [stream.positions[at]] * len(here)
        steps += [stream.steps[at]] * len(here)
        runs += [stream.runs[at] if not n else () for n in range(len(here))]
    put(before.get(len(stream.code), []))
    put([(op, end[1]) for op in end[0]])
    if end[0]:
        steps[-1] = (len(stream.path) - 1,) * 2  # where it waits in the end
    stream.code, stream.positions, stream.steps, stream.runs = code, positions, steps, runs
    stream.unsure, stream.parts = unsure, {}
