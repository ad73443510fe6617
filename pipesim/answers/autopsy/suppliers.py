"""Who could supply what a barrier lacks, what each warp gave it before, and why that was not enough.

All of it is read off the paths of the warps: a warp whose way is not known supplies nothing that is named here.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pipesim.answers.autopsy.standing import Standing, WaitsFor
from pipesim.answers.autopsy.walks import Barrier, WarpWalk, barriers_of
from pipesim.coredump.sass.sync import SassSync
from pipesim.coredump.sass.walk import SyncEvent
from pipesim.model.barrier import BarrierWord
from pipesim.model.finding import BlockedAgent, OneSided, Supplier

Wanted = Callable[[SyncEvent, int], bool]  #: of an event, and the rank of the warp's CTA
_ARRIVE = frozenset({SassSync.ARRIVE, SassSync.CP_ASYNC_ARRIVE, SassSync.TENSOR_COMMIT})
_COPY = frozenset({SassSync.COPY, SassSync.TENSOR_COPY, SassSync.STORE_ASYNC, SassSync.COMPLETE})
SHARED_STORES = frozenset({SassSync.SHARED_STORE, SassSync.SHARED_ATOMIC})
_NAMED = frozenset({SassSync.BAR_SYNC, SassSync.BAR_ARRIVE})
_BY_REGISTER = 5  #: the way of an arrive whose count is in a register
_WARP = 32


@dataclass(frozen=True)
class WalkedWarp:
    """A warp with its ways. ``blocked``: what it waits for, "" if nothing that others supply; ``place``: the line of an
    instruction; ``cta``: the number of its CTA.
    """

    name: str
    rank: int
    walk: WarpWalk
    blocked: str
    place: Callable[[int], str]
    cta: int = 0


def arrivals_of(event: SyncEvent, barrier: Barrier, rank: int) -> int:
    """The arrivals that an event of a barrier counts there; 0 if they are not known."""
    if event.sync.kind is SassSync.TENSOR_COMMIT:
        return 1
    lanes = barriers_of(event, rank).count(barrier) if event.addresses else event.lanes.bit_count()
    if event.sync.number == _BY_REGISTER and event.sync.kind is SassSync.ARRIVE:
        return lanes * event.value if event.value is not None else 0
    return lanes


def named_number(event: SyncEvent) -> int:
    """The number of a named barrier, -1 if it is not known."""
    if event.sync.register < 0:
        return event.sync.number
    return event.value & 0xF if event.value is not None else -1


def _to(barrier: Barrier, kinds: frozenset[SassSync], *, expects: bool = False) -> Wanted:
    def wanted(event: SyncEvent, rank: int) -> bool:
        if event.sync.kind not in kinds and not (expects and event.sync.expects):
            return False
        if event.sync.kind is SassSync.CP_ASYNC_ARRIVE and not event.sync.arrives:
            return False
        found = barriers_of(event, rank)
        if event.sync.multicast:
            return any(at == barrier[1] for _, at in found)
        return barrier in found

    return wanted


def needs_of(
    standing: Standing, barrier: Barrier, word: BarrierWord | None
) -> dict[str, Wanted]:  # fmt: skip
    """A test for what supplies each thing that lanes wait for; ``barrier``: or the place of a word of shared memory."""
    match standing.waits:
        case WaitsFor.MBARRIER if word is not None:
            needs: dict[str, Wanted] = {}
            if word.pending > 0:
                needs["arrival"] = _to(barrier, _ARRIVE)
            if word.tx > 0:
                needs["bytes"] = _to(barrier, _COPY)
            if word.tx < 0:
                needs["expectation"] = _to(barrier, frozenset({SassSync.EXPECT}), expects=True)
            return needs
        case WaitsFor.NAMED:
            return {"arrival": lambda event, _: event.sync.kind in _NAMED and named_number(event) == standing.number}
        case WaitsFor.SHARED:
            return {"store": _to(barrier, SHARED_STORES)}
        case WaitsFor.CLUSTER:
            return {"arrival": lambda event, _: event.sync.kind is SassSync.CLUSTER_ARRIVE}
        case WaitsFor.REGISTERS:
            return {"registers": lambda event, _: event.sync.kind is SassSync.GIVE_REGISTERS}
        case _:
            return {}


def suppliers_of(
    waiting: str, barrier: str, needs: Mapping[str, Wanted], warps: Sequence[WalkedWarp]
) -> tuple[Supplier, ...]:  # fmt: skip
    """The warps whose way has an event that supplies what is missing; those that gave least come first, and last those
    that wait for the same.
    """
    found: list[tuple[tuple[bool, int], Supplier]] = []
    for warp in warps:
        if warp.name == waiting and not barrier.startswith("mbarrier"):
            continue
        if warp.blocked == barrier and warp.name != waiting and not barrier.startswith("mbarrier"):
            continue  # it has come, and comes again only when this is over
        ahead = next((e for e in warp.walk.ahead if _any(needs, e, warp.rank)), None)
        behind = [e for e in warp.walk.behind if _any(needs, e, warp.rank)]
        if ahead is None and not behind:
            continue
        supplies = " and ".join(
            what for what, wanted in needs.items()
            if any(wanted(e, warp.rank) for e in (*warp.walk.ahead, *warp.walk.behind))
        )  # fmt: skip
        found.append(((warp.blocked == barrier, len(behind)), Supplier(
            agent=warp.name,
            supplies="arrival" if supplies == "registers" else supplies,
            next_line=warp.place(ahead.index) if ahead is not None else "",
            last_line=warp.place(behind[-1].index) if behind else "",
            last_iteration=len(behind) - 1 if warp.walk.whole else -1,
            last_barrier=barrier if behind else "",
            waits_for=warp.blocked,
            sure=ahead is None or ahead.sure,
        )))  # fmt: skip
    return tuple(supplier for _, supplier in sorted(found, key=lambda each: each[0]))


def _any(needs: Mapping[str, Wanted], event: SyncEvent, rank: int) -> bool:
    return any(wanted(event, rank) for wanted in needs.values())


def _is_known(wanted: Wanted, warps: Sequence[WalkedWarp]) -> bool:
    """Whether it is known of all warps how often they did this."""
    return all(w.walk.whole or not (w.walk.lost or any(wanted(e, w.rank) for e in w.walk.behind)) for w in warps)


def phases_done(barrier: Barrier, word: BarrierWord, warps: Sequence[WalkedWarp]) -> int:
    """How many phases a barrier has completed by the arrivals of all warps, -1 if that is not known."""
    wanted = _to(barrier, _ARRIVE)
    if not _is_known(wanted, warps) or not word.expected:
        return -1
    made = sum(arrivals_of(e, barrier, w.rank) for w in warps for e in w.walk.behind if wanted(e, w.rank))
    done, rest = divmod(made - (word.expected - word.pending), word.expected)
    return done if not rest and done >= 0 and done & 1 == word.parity else -1


def with_cause(
    found: BlockedAgent, me: WalkedWarp, barrier: Barrier, word: BarrierWord, warps: Sequence[WalkedWarp]
) -> BlockedAgent:  # fmt: skip
    """A wait for an mbarrier with its phases, and why one does not end: it was missed, or its count is too large."""
    done = phases_done(barrier, word, warps)
    if done < 0:
        return found
    waits = sum(e.sync.kind is SassSync.WAIT and barrier in barriers_of(e, me.rank) for e in me.walk.behind) - 1
    wanted = _to(barrier, _ARRIVE)
    by = tuple(w.name for w in warps if w is not me and any(wanted(e, w.rank) for e in w.walk.behind))
    found = replace(found, phase_now=done, phase_wanted=done)
    if 0 <= waits < done and waits & 1 == found.parity and me.walk.whole:
        return replace(found, missed=waits, lapped_by=by, counted=_is_counted(me))
    per_warp = [[arrivals_of(e, barrier, w.rank) for e in w.walk.behind if wanted(e, w.rank)] for w in warps]
    rounds = {len(each) for each in per_warp if each}
    given = sum(each[-1] for each in per_warp if each)
    late = any(not n and any(wanted(e, w.rank) for e in w.walk.ahead) for n, w in zip(per_warp, warps, strict=True))
    if len(rounds) == 1 and found.arrivals_missing and 0 < given < word.expected and not late:
        return replace(found, given=given)
    return found


def _is_counted(warp: WalkedWarp) -> bool:
    """Whether another warp can wait for anything that this one does."""
    kinds = _ARRIVE | _COPY | _NAMED
    return any(e.sync.kind in kinds for e in (*warp.walk.behind[1:], *warp.walk.ahead))


def one_sided(
    barriers: Iterable[tuple[str, Mapping[str, Wanted]]], warps: Sequence[WalkedWarp]
) -> tuple[OneSided, ...]:  # fmt: skip
    """Of each mbarrier that lacks arrivals: warps that arrive at the same places and now wait for the same, and arrived
    unequally often.
    """
    told: dict[OneSided, None] = {}
    for name, needs in barriers:
        if "arrival" not in needs or not name.startswith("mbarrier") or not _is_known(needs["arrival"], warps):
            continue
        roles: defaultdict[tuple[str, frozenset[int]], list[WalkedWarp]] = defaultdict(list)
        for warp in warps:
            events = (*warp.walk.behind, *warp.walk.ahead)
            at = frozenset(e.index for e in events if needs["arrival"](e, warp.rank))
            if at:
                roles[warp.blocked, at].append(warp)
        for (_, at), members in roles.items():
            tallies: defaultdict[int, list[str]] = defaultdict(list)
            for warp in members:
                tallies[sum(needs["arrival"](e, warp.rank) for e in warp.walk.behind)].append(warp.name)
            if len(tallies) > 1:
                ordered = sorted(tallies.items(), reverse=True)
                rows = tuple((times, tuple(names)) for times, names in ordered)
                told[OneSided(name, rows, members[0].place(min(at)))] = None
    return tuple(told)[:2]


def threads_that_come(standing: Standing, warps: Sequence[WalkedWarp], rank: int) -> int:
    """The threads that ever reach a named barrier, -1 if the way of some warp is not known."""
    needs = needs_of(standing, (0, 0), None)
    if not _is_known(needs["arrival"], warps):
        return -1
    here = [w for w in warps if w.rank == rank]
    return _WARP * sum(any(_any(needs, e, w.rank) for e in (*w.walk.behind, *w.walk.ahead)) for w in here)
