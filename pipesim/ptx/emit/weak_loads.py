"""Weak accesses to words by which CTAs talk, as accesses of a flat program: each is ordered with all writes of others,
and a store with all loads of others.

A weak access and another thread's write that no causality order orders are a race (PTX ISA, "Data-Races"). Each write
of a word has a byte of its own, which is in no memory: the write writes it, a weak access reads those of all writes.
What its agent has observed by a strong access before comes before it without an acquire, and without what comes before
(PTX ISA, "Observation Order", "Causality Order"): such writes are left out. An atomic has observed the write before it,
but no access observes a weak store, which is morally strong with nothing.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipesim.model.ops import Op, operand
from pipesim.model.word_barriers import ATOMIC, needed_writes
from pipesim.model.words import WordAct, WordEvent
from pipesim.ptx.emit.record import Range
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.global_memory.global_accesses import AccessKind, GlobalAccess
from pipesim.ptx.emulate.global_memory.word_memory import STRONG
from pipesim.ptx.text.instruction import Instruction


class WeakAccess(NamedTuple):
    """A weak access before the operation ``pc`` of its agent, and the writes that have to be ordered with it, by
    number. ``unclear``: those that an agent may have observed before, so that they come before it, or are a race.
    """

    agent: int
    pc: int
    position: int
    ordered: list[int]
    unclear: tuple[int, ...]


def is_weak_load(one: GlobalAccess, each: Instruction) -> bool:
    """Whether an access is a load of its thread that is not strong; one that may not happen is left open."""
    known = one.sure and not one.terms
    return known and one.kind is AccessKind.LOAD and not each.has_any(*STRONG, "nc")


def is_strong(each: Instruction) -> bool:
    """Whether an access to a word is."""
    return each.opcode in ("atom", "red") or each.has_any(*STRONG)


def weak_accesses(cluster: Cluster, word: Range, events: Sequence[WordEvent], first: int) -> Iterator[WeakAccess]:
    """Those of a word whose first value this is, with all that is done to it as one."""
    body = cluster.code.body
    weak = [
        (one.agent, one.index, one.position)
        for one in cluster.global_accesses or ()
        if is_weak_load(one, body[one.position]) and any(a < word[1] and word[0] < b for a, b in one.ranges)
    ]
    stores = [e for e in events if e.act is WordAct.STORE and not is_strong(body[e.position])]
    if not (weak or stores):
        return
    writes, places = [e for e in events if e.act.writes], _places(cluster, events)
    weak += [(e.agent, places[e.number], e.position) for e in stores]
    observed = _Observed(events, [first, *(e.after for e in writes)], {e.number for e in stores})
    every = observed.by_agent(lambda _: True)
    before: dict[frozenset[int], dict[int, bool]] = {}
    for me, index, position in weak:
        others = [k for k, write in enumerate(writes) if write.agent != me]
        mine = frozenset(e.number for e in events if e.agent == me and places[e.number] < index)
        if mine not in before:
            before[mine] = observed.by_agent(lambda e, mine=mine: e.number in mine).get(me, {})  # type: ignore[misc]
        seen = before[mine]
        told = {k for agent, ks in every.items() if agent != me for k in ks if writes[k].agent != agent}
        clear = {k for k in others if seen.get(k)}
        unclear = tuple(k for k in others if k not in clear and (k in seen or k in told))
        ordered = [k for k in others if k not in {*clear, *unclear}]
        if ordered or unclear:
            yield WeakAccess(me, index, position, ordered, unclear)


def _places(cluster: Cluster, events: Sequence[WordEvent]) -> dict[int, int]:
    """The operation of each event in the stream of its agent."""
    found = dict[int, int]()
    for agent in {e.agent for e in events}:
        code = cluster.recorder.streams[agent].code
        found |= {
            number - 1: at for at, op in enumerate(code) if op[0] == Op.WORK and (number := operand(op, "cycles"))
        }
    return found


@dataclass
class _Observed:
    """What strong accesses observe. ``values``: of the word, after each number of writes; ``weak``: stores that are."""

    events: Sequence[WordEvent]
    values: list[int]
    weak: Collection[int]

    def by_agent(self, counts: Callable[[WordEvent], bool]) -> dict[int, dict[int, bool]]:
        """The writes that agents observe by the events that count, each with whether it is so in every schedule."""
        found: dict[int, dict[int, bool]] = {}
        needed, writes = needed_writes(self.events, self.values), [e for e in self.events if e.act.writes]
        count = 0
        for e in self.events:
            if e.act is not WordAct.STORE and counts(e):  # a store observes nothing of what was there
                mine = found.setdefault(e.agent, {})
                sure = self._is_sure(e, needed.get(e.number, count), writes[count:])
                mine |= {k: mine.get(k, False) or sure for k in self._chain(writes, needed.get(e.number, count))}
            count += e.act.writes
        return found

    def _is_sure(self, e: WordEvent, version: int, later: Sequence[WordEvent]) -> bool:
        """Whether it sees this value in every schedule."""
        if e.act is not WordAct.WAIT:
            return e.observed or e.act not in ATOMIC
        own = next((n for n, write in enumerate(later) if write.agent == e.agent), len(later))
        most = len(self.values) - len(later) + own
        passes = e.passes
        return e.version >= 0 or all(
            u == version or (passes is not None and passes(value) is False)
            for u, value in enumerate(self.values[:most])
        )

    def _chain(self, writes: Sequence[WordEvent], version: int) -> Iterator[int]:
        """The writes that an access observes which sees the value after as many, and those before an atomic."""
        for k in range(version - 1, -1, -1):
            if writes[k].number not in self.weak:
                yield k
            if writes[k].act not in ATOMIC:
                return
