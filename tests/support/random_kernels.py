"""Small random kernels as data: what each warp does with mbarriers, named barriers, tiles and copies.

``ptx_of`` (:mod:`tests.support.kernel_ptx`) writes one as PTX in the many ways in which compilers and authors do;
``faults_of`` (:mod:`tests.support.kernel_schedules`) runs every schedule of it. Neither knows of the reader or the
engines, which are held against them.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

LANES = 32
TILE = 128  #: bytes of a tile: a word for each lane


@dataclass(frozen=True)
class Wait:
    """Wait for the phase with the ring's parity (xor ``flip``) of a barrier of the stage."""

    ring: int
    flip: int


@dataclass(frozen=True)
class Arrive:
    """Arrive with ``count`` from each of ``lanes`` (1, 16 or 32); with ``nbytes`` one lane expects bytes as well.

    ``told``: the warp may wait for the state that it returns.
    """

    ring: int
    lanes: int
    count: int
    nbytes: int = 0
    told: bool = False


@dataclass(frozen=True)
class State:
    """Wait for the state that the last such arrive of the warp on a barrier of the stage has returned."""

    ring: int


@dataclass(frozen=True)
class Copy:
    """One lane starts a bulk copy into the tile of the stage, which signals a barrier of the stage."""

    tile: int
    ring: int


@dataclass(frozen=True)
class Touch:
    """All lanes read or write the tile of the stage."""

    tile: int
    write: bool


@dataclass(frozen=True)
class Fetch:
    """Each lane copies its word of the tile of the stage by ``cp.async``."""

    tile: int


@dataclass(frozen=True)
class Group:
    """What the lanes have fetched is a group; or, with ``left``, they wait for all groups but this many."""

    left: int = -1


@dataclass(frozen=True)
class Signal:
    """Each lane arrives on a barrier of the stage once what it has fetched is there (``.noinc``)."""

    ring: int


@dataclass(frozen=True)
class Flag:
    """One lane stores a value to a word; or, if it ``waits``, the warp spins until the word is that, or at least."""

    value: int
    waits: bool = False
    equal: bool = False


@dataclass(frozen=True)
class Named:
    """``bar.sync`` or ``bar.arrive`` of a named barrier with a number of threads."""

    barrier: int
    threads: int
    waits: bool


@dataclass(frozen=True)
class Last:
    """One lane adds 1 to a word; if ``others`` had been added, the warp comes last, and takes the step after this."""

    others: int


@dataclass(frozen=True)
class Loop:
    """A body, ``trips`` times; the stage and the parity move on with each iteration. Loops are not nested."""

    trips: int
    body: "tuple[Step, ...]"


@dataclass(frozen=True)
class Only:
    """A body in one iteration of the loop only, or in all but this one."""

    iteration: int
    inside: bool
    body: "tuple[Step, ...]"


Step: TypeAlias = "Wait | Arrive | State | Copy | Touch | Fetch | Group | Signal | Flag | Named | Last | Loop | Only"


@dataclass(frozen=True)
class RandomKernel:
    """``counts``: arrivals of each ring's barriers, of which each has ``stages``. ``warps``: the steps of each warp.

    ``shared_tiles`` lie one after the other, ``stages`` of each.
    """

    stages: int
    counts: tuple[int, ...]
    tiles: int
    warps: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True)
class Done:
    """A step of one warp as it is executed: ``index`` of the barrier or tile, and the parity of a wait."""

    step: Wait | Arrive | State | Copy | Touch | Fetch | Group | Signal | Flag | Named | Last
    index: int
    parity: int = 0
    signals: int = -1


def executed(kernel: RandomKernel, warp: int) -> tuple[Done, ...]:
    """What a warp executes, in order."""
    return tuple(_executed(kernel, kernel.warps[warp], 0))


def _executed(kernel: RandomKernel, steps: tuple[Step, ...], iteration: int) -> Iterator[Done]:
    stages = kernel.stages
    stage, parity = iteration % stages, iteration // stages & 1
    for step in steps:
        match step:
            case Loop(trips=trips, body=body):
                for n in range(trips):
                    yield from _executed(kernel, body, n)
            case Only(iteration=which, inside=inside, body=body):
                if (iteration == which) == inside:
                    yield from _executed(kernel, body, iteration)
            case Wait(ring=ring, flip=flip):
                yield Done(step, ring * stages + stage, parity ^ flip)
            case Arrive(ring=ring) | State(ring=ring) | Signal(ring=ring):
                yield Done(step, ring * stages + stage)
            case Copy(tile=tile, ring=ring):
                yield Done(step, tile * stages + stage, signals=ring * stages + stage)
            case Touch(tile=tile) | Fetch(tile=tile):
                yield Done(step, tile * stages + stage)
            case Named(barrier=barrier):
                yield Done(step, barrier)
            case Last() | Group() | Flag():
                yield Done(step, 0)


def random_kernel(rng: random.Random) -> RandomKernel:
    """A ring of tiles between two or three warps, right at first, and then most often changed in one or two places."""
    stages, trips = rng.choice((1, 1, 2, 2, 3)), rng.randint(1, 4)
    consumers, copies = rng.choice((1, 1, 2)), rng.random() < 0.5
    lanes, count = rng.choice((1, 1, 16, 32)), rng.choice((1, 1, 2))
    load: tuple[Step, ...] = (
        (Arrive(0, 1, 1, TILE), Copy(0, 0)) if copies else (Touch(0, write=True), Arrive(0, lanes, count))
    )
    full = 1 if copies else lanes * count
    freed = rng.choice((1, 16, 32))
    body: tuple[Step, ...] = (Wait(0, 0), Touch(0, write=False), Arrive(1, freed, 1))
    producer: tuple[Step, ...] = (Loop(trips, (Wait(1, 1), *load)),)
    consumer: tuple[Step, ...] = (Loop(trips, body),)
    warps = [producer, *[consumer] * consumers]
    counts = [full, freed * consumers]
    if rng.random() < 0.4:  # a named barrier after or before the loops, of all warps or of two
        some = rng.sample(range(len(warps)), rng.choice((2, len(warps))))
        for n in some:
            meet = Named(1, LANES * len(some), waits=n == some[0] or rng.random() < 0.6)
            warps[n] = (meet, *warps[n]) if rng.random() < 0.5 else (*warps[n], meet)
    kernel = RandomKernel(stages, tuple(counts), 1, tuple(warps))
    for _ in range(rng.choice((0, 0, 1, 1, 1, 2))):
        kernel = _changed(kernel, rng)
    return kernel


def with_last(kernel: RandomKernel, rng: random.Random) -> RandomKernel:
    """The kernel whose warps count themselves at their ends: the last one reads a tile, or another one does."""
    others = len(kernel.warps) - rng.choice((1, 1, 1, 2))
    ending = (Last(others), Touch(0, write=rng.random() < 0.2))
    counted = rng.sample(range(len(kernel.warps)), len(kernel.warps) - (rng.random() < 0.1))
    warps = [(*steps, *(ending if n in counted else ())) for n, steps in enumerate(kernel.warps)]
    return RandomKernel(kernel.stages, kernel.counts, kernel.tiles, tuple(warps))


def with_states(kernel: RandomKernel, rng: random.Random) -> RandomKernel:
    """The kernel whose warps arrive on one more barrier and wait for the state, once or twice: most often all of them.

    Where one more arrives than is expected, who comes first decides which phase the state of another one is of.
    """
    ring, times, warps = len(kernel.counts), rng.choice((1, 1, 2)), []
    for steps in kernel.warps:
        waits: tuple[Step, ...] = (State(ring),) if rng.random() < 0.7 else ()
        meets: tuple[Step, ...] = (Arrive(ring, LANES, 1, told=True), *waits) * times
        warps.append((*meets, *steps) if rng.random() < 0.5 else (*steps, *meets))
    expected = LANES * (len(warps) - (rng.random() < 0.4))
    return RandomKernel(kernel.stages, (*kernel.counts, expected), kernel.tiles, tuple(warps))


def with_flags(kernel: RandomKernel, rng: random.Random) -> RandomKernel:
    """The kernel in which one warp hands another a tile, or several, by a word; most often the word is waited for."""
    giver, taker = rng.sample(range(len(kernel.warps)), 2)
    gives: list[Step] = []
    takes: list[Step] = []
    for value in range(1, rng.choice((2, 2, 3))):
        gives += [Touch(kernel.tiles, write=True), Flag(value + (rng.random() < 0.15))]
        takes += [Flag(value, waits=True, equal=rng.random() < 0.3), Touch(kernel.tiles, write=False)]
    changed = [_steps_changed(tuple(each), rng) if rng.random() < 0.2 else tuple(each) for each in (gives, takes)]
    warps = list(kernel.warps)
    for n, steps in zip((giver, taker), changed, strict=True):
        warps[n] = (*steps, *warps[n]) if rng.random() < 0.5 else (*warps[n], *steps)
    return RandomKernel(kernel.stages, kernel.counts, kernel.tiles + 1, tuple(warps))


def with_signals(kernel: RandomKernel, rng: random.Random) -> RandomKernel:
    """The kernel whose first warp fetches, and has each lane's fetches arrive, instead of what it did."""
    warps = [_fetched(kernel.warps[0], rng, signals=True), *kernel.warps[1:]]
    n = rng.randrange(len(warps))
    warps[n] = _steps_changed(warps[n], rng) if rng.random() < 0.4 else warps[n]
    counts = rng.choice((*[LANES] * 6, 1, 33)), *kernel.counts[1:]
    return RandomKernel(kernel.stages, counts, kernel.tiles, tuple(warps))


def with_fetches(kernel: RandomKernel, rng: random.Random) -> RandomKernel:
    """The kernel with ``cp.async`` in place of stores, which its warps wait for, most often, before they arrive."""
    warps = [_fetched(steps, rng) for steps in kernel.warps]
    for _ in range(rng.choice((0, 0, 1, 2))):
        n = rng.randrange(len(warps))
        warps[n] = _steps_changed(warps[n], rng)
    return RandomKernel(kernel.stages, kernel.counts, kernel.tiles, tuple(warps))


def _fetched(steps: tuple[Step, ...], rng: random.Random, *, signals: bool = False) -> tuple[Step, ...]:
    found: list[Step] = []
    for step in steps:
        match step:
            case Loop(trips=trips, body=body):
                found.append(Loop(trips, _fetched(body, rng, signals=signals)))
            case Only(iteration=iteration, inside=inside, body=body):
                found.append(Only(iteration, inside, _fetched(body, rng, signals=signals)))
            case Arrive(ring=0, nbytes=nbytes) if signals:
                found += [Fetch(0)] * (nbytes > 0) + [Signal(0)]
            case Copy() if signals:
                pass
            case Touch(tile=tile, write=True) if signals:
                found.append(Fetch(tile))
            case Touch(tile=tile, write=True):
                found += [Fetch(tile)] * rng.choice((1, 1, 1, 2)) + [Group(), Group(rng.choice((0, 0, 0, 1)))]
            case _:
                found.append(step)
    return tuple(found)


def _changed(kernel: RandomKernel, rng: random.Random) -> RandomKernel:
    """The kernel with one change: a count, or a step of one warp that is dropped, doubled, moved, or another one."""
    counts, warps = list(kernel.counts), list(kernel.warps)
    if rng.random() < 0.15:
        n = rng.randrange(len(counts))
        counts[n] = max(1, counts[n] + rng.choice((-1, 1, 16, -16, LANES)))
    else:
        n = rng.randrange(len(warps))
        warps[n] = _steps_changed(warps[n], rng)
    return RandomKernel(kernel.stages, tuple(counts), kernel.tiles, tuple(warps))


def _steps_changed(steps: tuple[Step, ...], rng: random.Random) -> tuple[Step, ...]:
    if not steps:
        return steps
    at = rng.randrange(len(steps))
    step = steps[at]
    if isinstance(step, Loop) and rng.random() < 0.9:
        changed = Loop(step.trips + rng.choice((-1, 1)), step.body)
        if changed.trips < 1 or rng.random() < 0.85:
            changed = Loop(step.trips, _steps_changed(step.body, rng))
        return (*steps[:at], changed, *steps[at + 1 :])
    kind = rng.randrange(5)
    if kind == 0:
        return (*steps[:at], *steps[at + 1 :])
    if kind == 1:
        return (*steps[:at], step, step, *steps[at + 1 :])
    if kind == 2 and len(steps) > 1:
        other = rng.randrange(len(steps))
        moved = [*steps[:at], *steps[at + 1 :]]
        moved.insert(other, step)
        return tuple(moved)
    if kind == 3 and not isinstance(step, Loop | Only):
        return (*steps[:at], Only(rng.randrange(3), rng.random() < 0.5, (step,)), *steps[at + 1 :])
    return (*steps[:at], _another(step, rng), *steps[at + 1 :])


def _another(step: Step, rng: random.Random) -> Step:
    match step:
        case Wait(ring=ring, flip=flip):
            return Wait(ring, flip ^ 1) if rng.random() < 0.6 else Wait(ring ^ 1, flip)
        case Arrive(ring=ring, lanes=lanes, count=count, nbytes=0):
            return Arrive(ring, rng.choice((1, 16, 32)), rng.choice((1, 2, count)))
        case Arrive(ring=ring, lanes=lanes, count=count):
            return Arrive(ring, lanes, count, rng.choice((TILE // 2, 2 * TILE)))
        case Touch(tile=tile, write=write):
            return Touch(tile, not write)
        case Group(left=left) if left >= 0:
            return Group(1 - left)
        case Flag(value=value, waits=waits, equal=equal):
            return Flag(value + rng.choice((-1, 1)), waits, equal) if rng.random() < 0.7 else Flag(value, not waits)
        case Named(barrier=barrier, threads=threads, waits=waits):
            return Named(barrier, threads + rng.choice((-LANES, LANES)) or LANES, waits)
        case _:
            return step
