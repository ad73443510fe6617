"""What the memory model of PTX allows, from its axioms: every execution of a litmus test is tried.

PTX ISA, "Memory Consistency Model"; the numbers of sections stand where they are used. Nothing of pipesim's rules is in
here. Bytes are looked at in units of four. A bulk copy is an access through the async proxy; what a fence of the proxy
orders is taken from the description of ``fence.proxy.async``, as the chapter does not say it.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations, product

from tests.litmus.table import WORDS, Litmus, LitmusStep

Cell = tuple[str, int]
Pairs = set[tuple[int, int]]
Sources = Mapping[tuple[int, Cell], int]  #: by read and cell the write, -1 for the first value
Values = dict[tuple[int, Cell], int]
_SCOPES = {"cta": 0, "cluster": 1, "gpu": 2, "gl": 2, "sys": 3, "volatile": 3, "mmio": 3}
_STRONG = {"relaxed", "acquire", "release", "acq_rel", "volatile", "mmio"}


class Event:
    """One operation (8.4). ``awaited``: later instructions of its thread come after it; ``proxy``: 8.6."""

    def __init__(self, thread: int, step: LitmusStep, cells: tuple[Cell, ...]) -> None:
        self.thread, self.step, self.cells, self.kind = thread, step, cells, step.parts[0]
        parts, kind = {*step.parts}, self.kind
        self.atomic = kind in ("atom", "red")
        self.reads = kind == "ld" or self.atomic or step.opcode == "bulk.ld"
        self.writes = kind == "st" or self.atomic or step.opcode.startswith("bulk.st")
        self.fence = kind in ("fence", "membar") and "proxy" not in parts
        self.strong = self.fence or self.atomic or not _STRONG.isdisjoint(parts)
        self.scope = next((_SCOPES[each] for each in step.parts if each in _SCOPES), _SCOPES["gpu"])
        self.sc = self.fence and (kind == "membar" or "sc" in parts)
        self.releases = self.sc or not parts.isdisjoint({"release", "acq_rel"})
        self.acquires = self.sc or not parts.isdisjoint({"acquire", "acq_rel"})
        self.proxy = "async" if kind == "bulk" else "texture" if "nc" in parts else "generic"
        self.awaited = step.parts[-1] not in ("read", "none")

    def overlaps(self, other: "Event") -> bool:
        """8.2.1."""
        return not {*self.cells}.isdisjoint(other.cells)


class Outcome:
    """What the axioms say of a test: whether its outcome is ``allowed``, and whether it can have a race (8.7.1).

    ``ends``: whether all waits can end.
    """

    def __init__(self, test: Litmus) -> None:
        self.allowed = self.races = self.ends = False
        self._test, self._events = test, list(_events(test))
        events = self._events
        fences = [n for n, each in enumerate(events) if each.sc]
        reads = [(n, cell) for n, each in enumerate(events) if each.reads for cell in each.cells]
        writers = [[-1, *(n for n, e in enumerate(events) if e.writes and cell in e.cells)] for _, cell in reads]
        for chosen in product(*writers):
            sources = dict(zip(reads, chosen, strict=True))
            values = _values(events, sources)
            if values is None or (returned := _returned(events, values[0])) is None:
                continue
            for order in permutations(fences):
                self._look(sources, values[1], order, returned=returned)

    def _look(self, sources: Sources, wrote: Values, fences: Sequence[int], *, returned: bool) -> None:
        events = self._events
        written = [n for n, each in enumerate(events) if each.writes and (n, each.cells[0]) in wrote]
        observation = self._observation(sources)
        base = self._base(observation, fences)
        if any((g, f) in base and self._moral(f, g) for f, g in combinations(fences, 2)):
            return  # Fence-SC, 8.10.2
        preserved = {pair for pair in base if self._is_preserved(base, *pair)}
        causes = preserved | {(w, y) for w, z in observation for v, y in preserved if z == v}  # 8.9.5
        accesses = [n for n, each in enumerate(events) if each.cells and (n in written or each.reads)]
        met = [pair for pair in combinations(accesses, 2) if events[pair[0]].overlaps(events[pair[1]])]
        raced = [
            (a, b)
            for a, b in met
            if (a in written or b in written) and not {(a, b), (b, a)} & causes and not self._moral(a, b)
        ]
        related = [(a, b) for a, b in met if a in written and b in written and (a, b) not in raced]
        for orders in product(*(permutations([n for n in written if _word(events[n]) == w]) for w in WORDS)):
            place = {n: at for order in orders for at, n in enumerate(order)}
            coherence = _closed({(a, b) if place[a] < place[b] else (b, a) for a, b in related})  # 8.9.6
            if any((b, a) in causes for a, b in coherence) or not self._holds(sources, causes, coherence):
                continue  # the first is Coherence, 8.10.1
            self.races, self.ends = self.races or bool(raced), True
            torn = any(events[a].cells != events[b].cells for a, b in raced)  # 8.7.2: the axioms do not apply
            last = {n for n in written if not any(n == a for a, _ in coherence)}
            ends = all(
                any(_word(events[n]) == word and wrote[n, (word, 0)] == value for n in last)
                for word, value in self._test.final
            )
            self.allowed |= torn or (returned and ends)

    def _moral(self, a: int, b: int) -> bool:
        """Whether two operations are morally strong (8.7)."""
        one, other = self._events[a], self._events[b]
        if one.cells and other.cells and (one.cells != other.cells or one.proxy != other.proxy):
            return False
        same = self._test.ctas[one.thread] == self._test.ctas[other.thread]
        needed = _SCOPES["cta"] if same else _SCOPES["cluster"] if self._test.cluster else _SCOPES["gpu"]
        return one.thread == other.thread or (one.strong and other.strong and min(one.scope, other.scope) >= needed)

    def _in_order(self, a: int, b: int) -> bool:
        """Program order (8.9.1)."""
        return a < b and self._events[a].thread == self._events[b].thread and self._events[a].awaited

    def _observation(self, sources: Sources) -> Pairs:
        """8.9.2."""
        found = {(w, n) for (n, _), w in sources.items() if w >= 0 and self._moral(w, n)}
        while more := {(w, r) for w, z in found for y, r in found if z == y and self._events[z].atomic} - found:
            found |= more
        return found

    def _patterns(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Release patterns as first operation and write, acquire patterns as read and last operation (8.8)."""
        events, count = self._events, range(len(self._events))
        released = [
            (a, b)
            for a, b in product(count, count)
            if events[a].releases and events[b].strong and events[b].writes and (self._in_order(a, b) or a == b)
            and (events[a].fence or (events[a].writes and events[a].cells == events[b].cells))
        ]  # fmt: skip
        acquired = [
            (a, b)
            for a, b in product(count, count)
            if events[b].acquires and events[a].strong and events[a].reads and events[a].kind != "red"  # 8.11.1
            and (self._in_order(a, b) or a == b) and (events[b].fence or events[a].cells == events[b].cells)
        ]  # fmt: skip
        return released, acquired

    def _base(self, observation: Pairs, fences: Sequence[int]) -> Pairs:
        """Base causality order (8.9.5): of program order and what synchronizes (8.9.4), mbarriers too."""
        events, count = self._events, range(len(self._events))
        found = {pair for pair in product(count, count) if self._in_order(*pair)}
        found |= {(f, g) for f, g in combinations(fences, 2) if self._moral(f, g)}
        for (first, write), (read, last) in product(*self._patterns()):
            other = events[first].thread != events[last].thread
            if other and (write, read) in observation and self._moral(first, last):
                found.add((first, last))
        for a, b in product(count, count):
            apart = events[a].kind == "bar" and self._test.ctas[events[a].thread] != self._test.ctas[events[b].thread]
            met = events[a].thread != events[b].thread and (events[a].kind, events[b].kind) in _MEETINGS
            if met and not apart:
                found |= set(product(self._ordering(a, before=True), self._ordering(b, before=False)))
        return _closed(found)

    def _ordering(self, n: int, *, before: bool) -> list[int]:
        """What orders at a barrier: its operation, or of a relaxed one the fences before it, or after it."""
        acquires = self._events[n].kind == "cbar" and not before  # its barrier.cluster.wait is not relaxed
        if acquires or "relaxed" not in self._events[n].step.parts:
            return [n]
        needed = _SCOPES["cluster" if self._events[n].kind == "cbar" else "cta"]
        fences = [f for f, each in enumerate(self._events) if each.fence and each.scope >= needed]
        return [f for f in fences if (self._in_order(f, n) if before else self._in_order(n, f))]

    def _is_preserved(self, base: Pairs, a: int, b: int) -> bool:
        """Proxy-preserved base causality order (8.9.5)."""
        one, other = self._events[a].proxy, self._events[b].proxy
        if one == other == "generic" or "texture" in (one, other):  # 8.1: of ld.global.nc nothing is said
            return one == other
        if one == "async" and other == "generic" and self._events[a].awaited:
            return True  # "wait_group": its writes are visible to the thread that waits
        fences = (n for n, each in enumerate(self._events) if "proxy" in each.step.parts)
        return any((a, f) in base and (f, b) in base for f in fences)

    def _holds(self, sources: Sources, causes: Pairs, coherence: Pairs) -> bool:
        events, count = self._events, range(len(self._events))
        written = {(w, n) for (n, _), w in sources.items() if w >= 0}
        before = {  # communication order of reads before writes (8.9.7)
            (n, w)
            for (n, cell), source in sources.items()
            for w in count
            if w != n and events[w].writes and cell in events[w].cells and (source < 0 or (source, w) in coherence)
        }
        if any((b, a) in causes for a, b in written | before):
            return False  # Causality, 8.10.6
        strong = {pair for pair in written | before | coherence if self._moral(*pair)}
        own = {(a, b) for a, b in product(count, count) if self._in_order(a, b) and events[a].overlaps(events[b])}
        if any(a == b for a, b in _closed(strong | own)):
            return False  # Sequential Consistency Per Location, 8.10.5
        atomic = any(events[n].atomic and (w, n) in coherence and (n, w) in strong for n, w in before)
        return not atomic and not any((n, w) in before & strong for w, n in written)  # Atomicity, 8.10.3


_MEETINGS = (("bar", "bar"), ("cbar", "cbar"), ("arrive", "mwait"))


def _events(test: Litmus) -> Iterator[Event]:
    for thread, steps in enumerate(test.threads):
        for step in steps:
            word, offset = step.place
            cells = tuple((word, offset + at) for at in range(0, step.size, 4)) if word else ()
            for each in [(cell,) for cell in cells] if "v2" in step.parts else [cells]:  # 8.2.4
                yield Event(thread, step, each)


def _word(event: Event) -> str:
    return event.cells[0][0]


def _closed(pairs: Pairs) -> Pairs:
    found = set(pairs)
    while more := {(a, d) for a, b in found for c, d in found if b == c} - found:
        found |= more
    return found


def _values(events: Sequence[Event], sources: Sources) -> tuple[Values, Values] | None:
    """What events read and what they write, None if a value comes out of thin air (8.10.4)."""
    read: Values = {}
    wrote: Values = {(-1, (word, at)): 0 for word in WORDS for at in (0, 4)}
    for _ in events:
        read |= {(n, cell): wrote[w, cell] for (n, cell), w in sources.items() if (w, cell) in wrote}
        for n, each in enumerate(events):
            for cell in each.cells if each.writes else ():
                value = _written(n, cell, events, read)
                if value is not None:
                    wrote[n, cell] = value
    return (read, wrote) if read.keys() == sources.keys() else None


def _written(n: int, cell: Cell, events: Sequence[Event], read: Values) -> int | None:
    each, given = events[n], events[n].step.given
    if given[0] == "r":  # what its thread has read last
        last = max(m for m in range(n) if events[m].reads and events[m].thread == each.thread)
        return read.get((last, events[last].cells[0]))
    number, before = int(given[0], 0), read.get((n, cell))
    if not each.atomic:
        return number if "v2" in each.step.parts or each.step.size == 4 else number >> 8 * (cell[1] & 4) & 1
    if before is None:
        return None
    swapped = int(given[-1]) if before == number else None
    return {"add": before + number, "or": before | number, "cas": swapped, "exch": number}[each.step.parts[-1]]


def _returned(events: Sequence[Event], read: Values) -> bool | None:
    """Whether all loads return what the table says; None if a wait has not ended so."""
    alike = True
    for n, each in enumerate(events):
        wanted, wide = each.step.found, each.step.size == 8
        if wanted is not None:
            right = all(read[n, cell] == (wanted >> cell[1] // 4 & 1 if wide else wanted) for cell in each.cells)
            if each.step.waits and not right:
                return None
            alike = alike and right
    return alike
