"""Every schedule of a small random kernel, one step of one warp after the other: which faults can happen.

The semantics are those of the PTX ISA's mbarrier chapter, written down once more and as simply as possible. A copy
lands at any time after it was started. Two accesses of which one writes race if they can come next in one state.
"""

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from tests.support.random_kernels import (
    LANES,
    TILE,
    Arrive,
    Copy,
    Done,
    Fetch,
    Flag,
    Group,
    Last,
    Named,
    RandomKernel,
    Signal,
    State,
    Touch,
    Wait,
    executed,
)


class Fault(Enum):
    """What can go wrong."""

    DEADLOCK = "deadlock"
    TOO_MANY = "more arrivals than are pending"
    RACE = "race"
    BARRIER = "a named barrier with two numbers of threads"
    STALE = "a wait for a state of a phase before the last one"
    UNWRITTEN = "a tile is read that nothing has written"


class _State(NamedTuple):
    """``at``: the next step of each warp. ``barriers``: (phase, pending, bytes). ``named``: (threads wanted, warps).

    ``flying``: (tile, barrier) of copies under way. ``written``: tiles. ``inside``: warps that wait at a named barrier.
    ``fetched``: (warp, group, tile) of each cp.async under way. ``groups``: how many each warp has made. ``told``: the
    phase of the state that each warp has. ``signals``: (warp, barrier, fetches that come first, arrivals) under way.
    """

    at: tuple[int, ...]
    barriers: tuple[tuple[int, int, int], ...]
    named: tuple[tuple[int, int, int], ...]
    flying: tuple[tuple[int, int], ...]
    written: frozenset[int]
    counted: int = 0
    fetched: tuple[tuple[int, int, int], ...] = ()
    groups: tuple[int, ...] = ()
    told: tuple[int, ...] = ()
    signals: tuple[tuple[int, int, tuple[tuple[int, int, int], ...], int], ...] = ()
    flag: int = 0


class _Faulty(Exception):  # noqa: N818  # it ends a step
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


def faults_of(kernel: RandomKernel, most_states: int = 60_000) -> set[Fault] | None:
    """The faults that some schedule has; None if there are too many states."""
    code = [executed(kernel, warp) for warp in range(len(kernel.warps))]
    barriers = tuple((0, count, 0) for count in kernel.counts for _ in range(kernel.stages))
    first = _State((0,) * len(code), barriers, (), (), frozenset(), groups=(0,) * len(code), told=(0,) * len(code))
    found: set[Fault] = set()
    seen, waiting = {first}, [first]
    while waiting:
        state = waiting.pop()
        if _races(state, code):
            found.add(Fault.RACE)
        moved = False
        for warp, steps in enumerate(code):
            if state.at[warp] < len(steps):
                try:
                    after = _step(kernel, state, warp, steps[state.at[warp]])
                except _Faulty as error:
                    found.add(error.fault)
                    moved = True
                    continue
                if after is not None:
                    moved = True
                    if after not in seen:
                        seen.add(after)
                        waiting.append(after)
        for landed in (*_landings(kernel, state), *_fetches(state), *_signals(kernel, state)):
            moved = True
            if isinstance(landed, Fault):
                found.add(landed)
            elif landed not in seen:
                seen.add(landed)
                waiting.append(landed)
        if not moved and any(at < len(steps) for at, steps in zip(state.at, code, strict=True)):
            found.add(Fault.DEADLOCK)
        if len(seen) > most_states:
            return None
    return found


def _step(kernel: RandomKernel, state: _State, warp: int, done: Done) -> _State | None:
    """The state after a warp's next step; None if it has to wait."""
    at = (*state.at[:warp], state.at[warp] + 1, *state.at[warp + 1 :])
    match done.step:
        case Wait() | State():
            return state._replace(at=at) if _passes(state, warp, done) else None
        case Arrive(lanes=lanes, count=count, nbytes=nbytes):
            phase, pending, expected = state.barriers[done.index]
            if lanes * count > pending:
                raise _Faulty(Fault.TOO_MANY)
            after = _completed(kernel, done.index, (phase, pending - lanes * count, expected + nbytes))
            told = (*state.told[:warp], phase, *state.told[warp + 1 :]) if done.step.told else state.told
            return state._replace(at=at, barriers=_put(state.barriers, done.index, after), told=told)
        case Copy():
            flying = tuple(sorted((*state.flying, (done.index, done.signals))))
            return state._replace(at=at, flying=flying)
        case Fetch() | Group() | Signal():
            return _fetch(state._replace(at=at), warp, done.step, done.index)
        case Flag(value=value, waits=True, equal=equal):
            return state._replace(at=at) if state.flag == value or (state.flag > value and not equal) else None
        case Flag(value=value):
            return state._replace(at=at, flag=value)
        case Touch(write=True):
            return state._replace(at=at, written=state.written | {done.index})
        case Touch():
            if done.index not in state.written:
                raise _Faulty(Fault.UNWRITTEN)
            return state._replace(at=at)
        case Last(others=others):
            skips = state.counted != others
            at = (*at[:warp], at[warp] + skips, *at[warp + 1 :])
            return state._replace(at=at, counted=state.counted + 1)
        case Named():
            return _meet(state, warp, done, at)


def _fetch(state: _State, warp: int, step: Fetch | Group | Signal, index: int) -> _State | None:
    match step:
        case Fetch():
            return state._replace(fetched=tuple(sorted((*state.fetched, (warp, state.groups[warp], index)))))
        case Signal():
            first = tuple(each for each in state.fetched if each[0] == warp)
            return state._replace(signals=tuple(sorted((*state.signals, (warp, index, first, LANES)))))
        case Group(left=-1):
            return state._replace(groups=tuple(made + (n == warp) for n, made in enumerate(state.groups)))
        case Group(left=left):
            waits = any(by == warp and group < state.groups[warp] - left for by, group, _ in state.fetched)
            return None if waits else state


def _passes(state: _State, warp: int, done: Done) -> bool:
    """Whether a wait is over, by the parity or by the phase of a state."""
    phase = state.barriers[done.index][0]
    if isinstance(done.step, Wait):
        return phase & 1 != done.parity
    if phase > state.told[warp] + 1:
        raise _Faulty(Fault.STALE)
    return phase > state.told[warp]


def _meet(state: _State, warp: int, done: Done, at: tuple[int, ...]) -> _State | None:
    """At a named barrier: a warp arrives first, and passes once enough threads have arrived."""
    step = done.step
    assert isinstance(step, Named)
    held = next((each for each in state.named if each[0] == done.index and each[1] >= 0), None)
    marker = (~warp, done.index, state.at[warp])  # this warp has arrived and waits
    if marker in state.named:
        return None
    if held is not None and held[2] != step.threads:
        raise _Faulty(Fault.BARRIER)
    others = tuple(each for each in state.named if each != held)
    arrived = LANES + (held[1] if held is not None else 0)
    if arrived > step.threads:
        raise _Faulty(Fault.BARRIER)
    if arrived < step.threads:
        kept = tuple(sorted((*others, (done.index, arrived, step.threads), *([marker] if step.waits else []))))
        return state._replace(at=state.at if step.waits else at, named=kept)
    released = [~each[0] for each in others if each[0] < 0 and each[1] == done.index]
    rest = tuple(each for each in others if not (each[0] < 0 and each[1] == done.index))
    moved = list(at)
    for each in released:
        moved[each] += 1
    return state._replace(at=tuple(moved), named=rest)


def _landings(kernel: RandomKernel, state: _State) -> Iterator[_State]:
    for each in sorted(set(state.flying)):
        tile, barrier = each
        flying = list(state.flying)
        flying.remove(each)
        phase, pending, expected = state.barriers[barrier]
        after = _completed(kernel, barrier, (phase, pending, expected - TILE))
        barriers = _put(state.barriers, barrier, after)
        yield state._replace(barriers=barriers, flying=tuple(flying), written=state.written | {tile})


def _fetches(state: _State) -> Iterator[_State]:
    for each in sorted(set(state.fetched)):
        fetched = list(state.fetched)
        fetched.remove(each)
        yield state._replace(fetched=tuple(fetched), written=state.written | {each[2]})


def _signals(kernel: RandomKernel, state: _State) -> Iterator[_State | Fault]:
    """The first lane's arrival, or those of all that are left: others cannot tell more lanes from one."""
    for each in sorted(set(state.signals)):
        warp, index, first, left = each
        if any(fetch in state.fetched for fetch in first):
            continue
        phase, pending, expected = state.barriers[index]
        if not pending:
            yield Fault.TOO_MANY
            continue
        signals = list(state.signals)
        signals.remove(each)
        for some in {min(left, pending), 1} if left == LANES else {min(left, pending)}:
            rest = signals + [(warp, index, first, left - some)] * (left > some)
            barriers = _put(state.barriers, index, _completed(kernel, index, (phase, pending - some, expected)))
            yield state._replace(barriers=barriers, signals=tuple(sorted(rest)))


def _completed(kernel: RandomKernel, index: int, barrier: tuple[int, int, int]) -> tuple[int, int, int]:
    phase, pending, expected = barrier
    return (phase + 1, kernel.counts[index // kernel.stages], 0) if pending == 0 and expected == 0 else barrier


def _put(
    barriers: tuple[tuple[int, int, int], ...], index: int, barrier: tuple[int, int, int]
) -> tuple[tuple[int, int, int], ...]:
    return (*barriers[:index], barrier, *barriers[index + 1 :])


def _races(state: _State, code: list[tuple[Done, ...]]) -> bool:
    """Whether two accesses of one tile, of which one writes, can come next."""
    waiting = {~each[0] for each in state.named if each[0] < 0}
    accesses = [
        (done.index, done.step.write)
        for warp, steps in enumerate(code)
        if warp not in waiting and state.at[warp] < len(steps)
        for done in [steps[state.at[warp]]]
        if isinstance(done.step, Touch)
    ]
    accesses += [(tile, True) for tile, _ in state.flying] + [(tile, True) for _, _, tile in state.fetched]
    return any(a[0] == b[0] and (a[1] or b[1]) for n, a in enumerate(accesses) for b in accesses[n + 1 :])
