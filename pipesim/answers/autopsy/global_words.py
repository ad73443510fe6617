"""The words of global memory that warps of a dump spin on: who could store what they wait for, and why it does not.

The warps of all kernels in the dump are followed, also those of CTAs that are not in it any more: a store is known by
its address. Where memory, or an early end, leads a CTA past its store, it is followed a second time as if no memory
were known, and no end with a condition were sure.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from pipesim.answers.autopsy.spins import EXCHANGE, Spin
from pipesim.answers.autopsy.suppliers import WalkedWarp
from pipesim.answers.autopsy.unit import Unit
from pipesim.answers.views.autopsy import AwaitedWord, WordWaiter, WordWriter, WriterState
from pipesim.coredump.sass.sync import SassSync
from pipesim.coredump.sass.walk import SyncEvent
from pipesim.explain.blocked_agents import cycle_of

STORES = frozenset({SassSync.STORE, SassSync.ATOMIC, SassSync.SWAP})
_MOST_STEPS = 200_000  #: instructions of all paths: a second or two
_ADD, _NEGATIVE = 0, 1 << 31
Cta = tuple[int, int]  #: the number of its launch in the dump, and its own in the grid; of a cluster the first


@dataclass(frozen=True)
class WaitingCta:
    """Lanes of a CTA that spin on a word, with its name: their warp, where they ask, and how; ``unit``: its cluster."""

    cta: Cta
    unit: Cta
    word: str
    warp: str
    line: str
    spin: Spin


@dataclass(frozen=True)
class _Access:
    """What a warp does with a word: ``done`` before the dump, or later, after its wait for ``blocked``."""

    event: SyncEvent
    warp: WalkedWarp
    done: bool
    launch: int

    @property
    def adds(self) -> bool:
        return self.event.sync.kind is SassSync.ATOMIC and self.event.sync.number == _ADD

    @property
    def stored(self) -> int | None:
        """The value that it stores; None if that is not known."""
        known = self.event.sync.kind is not SassSync.ATOMIC or self.event.sync.number == EXCHANGE
        return self.event.value if known else None

    @property
    def takes(self) -> bool:
        """Whether it is a compare-and-swap or an exchange, as takes a lock."""
        sync = self.event.sync
        return sync.kind is SassSync.SWAP or (sync.kind is SassSync.ATOMIC and sync.number == EXCHANGE)

    def supplies(self, spins: Sequence[Spin]) -> bool:
        """Whether it may end one of these waits."""
        if self.adds:
            return self.event.value is None or 0 < self.event.value < _NEGATIVE
        return self.stored is None or any(spin.ends(self.stored) is not False for spin in spins)


class WordSearch:
    """Who supplies words, among ``units``; ``noticed``: by launch, the instructions that store, or ask for a word."""

    def __init__(self, units: Mapping[Cta, Unit], noticed: Mapping[int, frozenset[int]]) -> None:
        self.units, self._noticed = units, noticed
        self._made: dict[tuple[Cta, bool], Sequence[WalkedWarp]] = {}
        self._steps = 0

    def words(self, waiting: Sequence[WaitingCta]) -> Iterator[AwaitedWord]:
        """Each word that is waited for."""
        by_word: defaultdict[int, list[WaitingCta]] = defaultdict(list)
        for each in waiting:
            by_word[each.spin.address].append(each)
        found = [self._word(some) for some in by_word.values()]
        edges = [edge for _, some in found for edge in some]
        names = list(dict.fromkeys(cta for edge in edges for cta in edge))
        ring = cycle_of({n: [names.index(b) for a, b in edges if a == name] for n, name in enumerate(names)})
        for word, _ in found:
            mine = {(wait.launch, cta) for wait in word.waits for cta in wait.ctas}
            cycle = tuple(names[n] for n in ring)
            yield replace(word, cycle=cycle if mine & set(cycle) else ())

    def _word(self, some: Sequence[WaitingCta]) -> tuple[AwaitedWord, list[tuple[Cta, Cta]]]:
        """One word, and which CTA waits for which because of it."""
        followed = [_Candidate(self, unit, some) for unit in self.units if self._is_followed(unit)]
        everybody = [each for each in followed if each.is_live]
        stores = [a for each in everybody for a in each.gives]
        common = (a for a in stores if all(each.reaches(a.event.index) for each in everybody))
        others = _OfOthers(
            model=next(common, None),
            grows=not any(each.undoes for each in followed),
            coded=len({each.took.stored for each in followed if each.took is not None}) > 1,
            added=_sum_of([a for each in followed for a in each.gives if a.done]),
        )
        found = [each for candidate in followed for each in candidate.writer(others)]
        held = [
            (store, (writer.launch, store.warp.cta))
            for writer, store in found
            if writer.waits_for and writer.state is not WriterState.SKIPPED
        ]
        edges = [(w.cta, cta) for store, cta in held for w in some if store.supplies([w.spin]) and w.cta != cta]
        known = all(_is_known(warp) for each in followed for warp in self.warps(each.unit))
        tallies: defaultdict[tuple[int, str, str, str], list[int]] = defaultdict(list)
        for w in some:
            tallies[w.cta[0], w.warp, w.line, w.spin.wanted].append(w.cta[1])
        seen = next((w.spin.seen for w in some if w.spin.seen is not None), None)
        return AwaitedWord(
            name=some[0].word,
            value="" if seen is None else f"{seen:,}",
            lock=any(w.spin.takes for w in some),
            waits=tuple(WordWaiter(key[0], tuple(sorted(ctas)), *key[1:]) for key, ctas in tallies.items()),
            writers=tuple(_joined([writer for writer, _ in found])),
            whole=len(followed) == len(self.units) and known,
        ), edges

    def _is_followed(self, unit: Cta) -> bool:
        return self._steps <= _MOST_STEPS and bool(self.warps(unit))

    def warps(self, unit: Cta, *, blind: bool = False) -> Sequence[WalkedWarp]:
        """The ways of the warps of a CTA or cluster."""
        if (unit, blind) not in self._made:
            self._made[unit, blind] = made = self.units[unit].walked_past(self._noticed[unit[0]], blind=blind)
            self._steps += sum(each.walk.steps for each in made)
        return self._made[unit, blind]


def _is_known(warp: WalkedWarp) -> bool:
    """Whether all stores of a warp are known, with their addresses."""
    stores = (each for each in (*warp.walk.behind, *warp.walk.ahead) if each.sync.kind in STORES)
    return not warp.walk.lost and all(None not in (each.addresses or (each.address,)) for each in stores)


def _sum_of(stores: Sequence[_Access]) -> int | None:
    """What stores add all together; None if they do something else, or it is not known what."""
    added = [a.event.value if a.adds and a.event.sure and a.event.lanes.bit_count() == 1 else None for a in stores]
    return None if None in added else sum(each or 0 for each in added)


@dataclass(frozen=True)
class _OfOthers:
    """What all CTAs say together: ``model``: a store that all in the dump reach; ``grows``: no store undoes it;
    ``coded``: not all store the same where they take the lock. ``added``: by those in the dump and all that are not.
    """

    model: _Access | None
    grows: bool
    coded: bool
    added: int | None


class _Candidate:
    """A CTA or a cluster that may be the one that a word is waited for."""

    def __init__(self, search: WordSearch, unit: Cta, waiting: Sequence[WaitingCta]) -> None:
        self._search, self.unit = search, unit
        self._spins = list({each.spin.wanted or each.cta: each.spin for each in waiting}.values())
        self._seen = next((spin.seen for spin in self._spins if spin.seen is not None), None)
        self._asks = {(each.cta[0], each.spin.at) for each in waiting}
        self._waits = any(each.unit == unit for each in waiting)
        self.is_live = any(cta.warps for cta in search.units[unit].ctas)
        self._found = list(self._accesses(search.warps(unit)))
        self.gives = [each for each in self._found if self._gives(each)]
        self._does = [a for a in self._found if a.done and (a in self.gives or a.takes)]
        self.took = next((each for each in self._does if each not in self.gives), None)
        self.undoes = any(
            a.event.sync.kind in STORES and not self._asked(a) and a not in self.gives for a in self._found
        )

    def reaches(self, index: int) -> bool:
        """Whether it does something with the word at an instruction, or does so later."""
        return any(each.event.index == index for each in self._found)

    def writer(self, others: _OfOthers) -> Iterator[tuple[WordWriter, _Access]]:
        """What it has to do with the word, if anything, and its store."""
        gives, ahead = self.gives, next((each for each in self.gives if not each.done), None)
        if any(spin.takes for spin in self._spins):
            yield from self._holds(ahead, coded=others.coded)
        elif self.is_live:
            past = next(iter(gives), None) if others.grows else None
            if ahead is not None and not (self._waits and len(self._spins) == 1):  # it comes after its own wait
                yield self._made(WriterState.WOULD, ahead)
            elif past is not None and not any(a.event.sure or a.adds or a.warp.walk.lost for a in gives):
                led = max((n for n in past.warp.walk.forked if n < past.event.index), default=-1)
                yield self._made(WriterState.SKIPPED, past, branch=past.warp.place(led) if led >= 0 else "")
        elif gives and others.grows and others.added is not None and others.added == self._seen:
            yield self._made(WriterState.DONE, gives[-1])
        elif gives:
            asked = any(self._asked(each) and each.event.sure for each in self._found)
            passed = asked and len(gives) == 1 and gives[0].adds  # a count that only grows has not let it pass
            ends = any(spin.ends(a.stored) for a in gives if a.stored is not None for spin in self._spins)
            is_known = others.grows and (passed or (gives[-1].warp.walk.whole and (ends or gives[-1].adds)))
            yield self._made(WriterState.NOT_BEGUN if is_known else WriterState.MAY, gives[-1])
        else:
            yield from self._skipped(others.model)

    def _holds(self, ahead: _Access | None, *, coded: bool) -> Iterator[tuple[WordWriter, _Access]]:
        """It took the lock, and the value that the word has may be the one that it stored."""
        took = self.took
        if took is None or self._waits or took.stored not in (None, self._seen):
            return
        if self._does[-1] in self.gives and (self.is_live or self._does[-1].event.sure):
            return  # given back
        sure = took.event.sure if self.is_live else coded and took.stored is not None
        store = ahead or next(iter(self.gives[-1:]), None)
        led = -1
        if not self.is_live and store is not None:
            gives = frozenset(each.event.index for each in self.gives)
            led = self._search.units[self.unit].leads_past(took.event.index, gives)
        branch = took.warp.place(led) if led >= 0 else ""
        yield self._made(WriterState.HOLDS if sure else WriterState.MAY_HOLD, store or took, took=took, branch=branch)

    def _skipped(self, model: _Access | None) -> Iterator[tuple[WordWriter, _Access]]:
        """Its way to the end is without a store, by what memory held, or where all others go another way."""
        mine = {warp.name: warp for warp in self._search.warps(self.unit)}
        blind = self._accesses(self._search.warps(self.unit, blind=True))
        missed, led = next((a for a in blind if self._gives(a) and self._is_missed(a, mine[a.warp.name])), None), -1
        if missed is not None:
            turned, forked = mine[missed.warp.name].walk.turned, missed.warp.walk.forked
            led = next((n for n in reversed(turned) if n in forked), -1)
        elif model is not None and self._never_reaches(model, mine):
            value = model.event.value if model.adds else None
            warp = replace(model.warp, cta=mine[model.warp.name].cta)
            missed = replace(model, event=replace(model.event, value=value), warp=warp)
            both = zip(mine[missed.warp.name].walk.turned, missed.warp.walk.turned, strict=False)
            led = next(iter([a for a, b in takewhile(lambda pair: pair[0] == pair[1], both)][-1:]), -1)
        if missed is not None:
            yield self._made(WriterState.SKIPPED, missed, branch=missed.warp.place(led) if led >= 0 else "")

    def _is_missed(self, store: _Access, mine: WalkedWarp) -> bool:
        """Whether no way that it may have gone has the store, which the same warp of another CTA makes."""
        same = [unit for unit in self._search.units if unit[0] == self.unit[0] and unit != self.unit]
        known = mine.walk.whole or (
            not mine.walk.lost and not any(e.index == store.event.index for e in mine.walk.behind)
        )
        return known and any(
            (e.index, e.lanes) == (store.event.index, store.event.lanes)
            for unit in same
            for warp in self._search.warps(unit)
            if warp.name == store.warp.name
            for e in (*warp.walk.behind, *warp.walk.ahead)
        )

    def _never_reaches(self, model: _Access, mine: Mapping[str, WalkedWarp]) -> bool:
        """Whether this CTA is of the same launch, and no way of the warp there leads to that store."""
        same, name = model.launch == self.unit[0], model.warp.name
        return same and name in mine and mine[name].walk.whole and not self.reaches(model.event.index)

    def _accesses(self, warps: Sequence[WalkedWarp]) -> Iterator[_Access]:
        """What these warps do with the word."""
        address = self._spins[0].address
        for warp in warps:
            for events, done in ((warp.walk.behind, True), (warp.walk.ahead, False)):
                for event in events:
                    if address in (event.addresses or (event.address,)):
                        yield _Access(event, warp, done, self.unit[0])

    def _asked(self, access: _Access) -> bool:
        return (self.unit[0], access.event.index) in self._asks

    def _gives(self, access: _Access) -> bool:
        return access.event.sync.kind in STORES and not self._asked(access) and access.supplies(self._spins)

    def _made(
        self, state: WriterState, store: _Access, *, took: _Access | None = None, branch: str = ""
    ) -> tuple[WordWriter, _Access]:
        value, is_store = store.event.value, store is not took
        return WordWriter(
            launch=self.unit[0],
            ctas=(store.warp.cta,),
            state=state,
            warp=store.warp.name,
            value=f"{'+' if store.adds else ''}{value:,}" if value is not None and is_store else "",
            line=store.warp.place(store.event.index) if is_store else "",
            taken=took.warp.place(took.event.index) if took is not None else "",
            waits_for=store.warp.blocked if self.is_live else "",
            branch=branch,
            sure=store.event.sure,
        ), store


def _joined(writers: Sequence[WordWriter]) -> list[WordWriter]:
    """Those that say the same of several CTAs as one, the most certain cause first: one of them has a lock."""
    by_rest: dict[WordWriter, list[WordWriter]] = {}
    for each in writers:
        value = "" if each.value.isdecimal() else each.value
        by_rest.setdefault(replace(each, ctas=(), value=value), []).append(each)
    holders = [each for each in writers if each.state is WriterState.HOLDS]
    made = []
    for rest, some in by_rest.items():
        state = WriterState.MAY_HOLD if rest.state is WriterState.HOLDS and len(holders) > 1 else rest.state
        if state is rest.state is WriterState.MAY_HOLD and len(holders) == 1:
            continue
        ctas = tuple(cta for each in some for cta in each.ctas)
        made.append(replace(rest, ctas=ctas, value=some[0].value if len(some) == 1 else rest.value, state=state))
    return sorted(made, key=lambda each: list(WriterState).index(each.state))
