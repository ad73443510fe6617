"""Rings whose reads name no item, with waits that begin again with every tile or wait twice: some right, some not.

The same ring with reads that name their items is the yardstick: a stale wait reads a wrong one.
"""

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from enum import Enum

from pipesim import Engine, Fence, Protocol, Slot, Warp
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.model.program import Program

Use = Callable[[Warp, Slot, int], None]
Place = tuple[int, int]  #: stage and parity of a wait
#: Which stage and parity the consumer waits for: of tile t and its step k, the g-th of all, in a ring of s stages.
WAITS: dict[str, Callable[[int, int, int, int], Place]] = {
    "right": lambda t, k, g, s: (g % s, g // s & 1),
    "restart": lambda t, k, g, s: (k % s, k // s & 1),
    "phase restart": lambda t, k, g, s: (g % s, k // s & 1),
    "no flip": lambda t, k, g, s: (g % s, 0),
    "flip early": lambda t, k, g, s: (g % s, (g + 1) // s & 1),
    "flip late": lambda t, k, g, s: (g % s, max(g - 1, 0) // s & 1),
}


def places(mistake: str, stages: int, k_iters: int, tiles: int) -> list[Place]:
    """Stage and parity of every step."""
    wait = WAITS[mistake]
    return [wait(t, k, t * k_iters + k, stages) for t in range(tiles) for k in range(k_iters)]


def wgmma(w: Warp, tile: Slot, item: int) -> None:
    """Tensor cores read the tile, and have ended."""
    w.mma(Engine.WGMMA, reads=[(tile, item)])
    w.commit(Engine.WGMMA)
    w.wait_group(Engine.WGMMA, 0)


def tcgen05(w: Warp, tile: Slot, item: int) -> None:
    """The same, until a commit arrives."""
    with w.elect_one():
        w.mma(Engine.TCGEN05, reads=[(tile, item)])


class Release(Enum):
    """One lane of each reader hands a stage back, each of its lanes, or one reader for all, which have met; or the
    commit of what tensor cores read.
    """

    ELECTED = 1
    LANES = 32
    MET = 0
    COMMIT = -1


@dataclass(frozen=True)
class Ring:
    """``waits`` of the last ``wrong`` readers, of all if it is 0; each waits and reads ``passes`` times, in ``pieces``.

    ``use``: what it does with a tile. ``resident``: a tile that is loaded once, and waited for and read at every step.
    ``spare``: loads that nobody reads. ``release``: who hands a stage back. ``converted``: a warp rewrites each tile in
    place, and readers wait for it.
    """

    stages: int
    waits: Sequence[Place]
    readers: int = 1
    wrong: int = 0
    passes: int = 1
    pieces: int = 1
    resident: bool = False
    spare: int = 0
    use: Use = Warp.read
    release: Release = Release.ELECTED
    converted: bool = False


def rewrite(w: Warp, tile: Slot, item: int) -> None:
    """The tile is computed in place."""
    w.read(tile, item)
    w.write(tile, max(item, 0))
    w.fence(Fence.PROXY_ASYNC)


def update(w: Warp, tile: Slot, item: int) -> None:
    """As atomics do: a read only where it names its item."""
    if item >= 0:
        w.read(tile, item)
    w.write(tile, max(item, 0))
    w.fence(Fence.PROXY_ASYNC)


def ring(of: Ring, *, named: bool = False) -> Program:
    """Its program; ``named``: reads name the item that belongs to their step."""
    p = Protocol("ring")
    tile, q = p.smem("tile", of.stages, 64), p.smem("q", 1, 64)
    full, ready = p.mbarriers("full", of.stages, 1), p.mbarriers("ready", of.stages, 1)
    empty = p.mbarriers("empty", of.stages, max(of.readers * abs(of.release.value), 1))
    q_full = p.mbarriers("q_full", 1, 1)
    right = [(g % of.stages, g // of.stages & 1) for g in range(len(of.waits) + of.spare)]

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            if of.resident:
                q_full[0].expect_bytes(64)
                w.tma_load(q[0], q_full[0], item=0)
            for g, (stage, parity) in enumerate(right):
                empty[stage].wait(parity ^ 1)
                full[stage].expect_bytes(64)
                w.tma_load(tile[stage], full[stage], item=g)  # copy
            for stage, parity in right[len(of.waits) :]:
                full[stage].wait(parity)

    def convert(w: Warp) -> None:
        for g, (stage, parity) in enumerate(right[: len(of.waits)]):
            full[stage].wait(parity)
            rewrite(w, tile[stage], g if named else -1)
            w.sync_warp()
            with w.elect_one():
                ready[stage].arrive()

    if of.converted:
        p.role("convert")(convert)

    @p.role("math", warps=of.readers)
    def math(w: Warp) -> None:
        mine = right[: len(of.waits)] if w.index < of.readers - of.wrong and of.wrong else of.waits
        for g, (stage, parity) in enumerate(mine):
            for n in range(of.passes * of.pieces):
                (ready if of.converted else full)[stage].wait(parity)  # the wait
                part = tile[stage].part(n % of.pieces * (64 // of.pieces), 64 // of.pieces)
                of.use(w, part, g if named else -1)
                if of.resident:
                    q_full[0].wait(0)
                    w.read(q[0])
            _hand_back(w, of, empty[stage])

    return p.flatten()


def _hand_back(w: Warp, of: Ring, empty: SharedMemBarrier) -> None:
    if of.release is Release.MET:
        w.bar_sync(1, 32 * of.readers)
    lanes: AbstractContextManager[None] = nullcontext() if of.release is Release.LANES else w.elect_one()
    with lanes:
        if of.release is Release.COMMIT:
            w.commit(Engine.TCGEN05, empty)
        elif of.release is not Release.MET or w.index == 0:
            empty.arrive()


def random_stale(seed: int) -> Ring:
    """The ring of this seed."""
    rng = random.Random(seed)
    stages, k_iters, tiles = rng.randint(1, 5), rng.randint(1, 4), rng.randint(1, 3)
    mistake = rng.choice(["right", "right", "restart", "restart", *WAITS])
    readers = rng.choice([1, 1, 2])
    drawn = Ring(
        stages, places(mistake, stages, k_iters, tiles), readers, rng.randint(0, readers - 1), rng.choice([1, 1, 2]),
        rng.choice([1, 1, 2]), rng.random() < 0.3, rng.choice([0, 0, 1]),
    )  # fmt: skip
    uses: list[Use] = [Warp.read, Warp.read, rewrite, update]
    use = rng.choice(uses) if readers == 1 else Warp.read
    converted, release = rng.random() < 0.25, rng.choice([Release.ELECTED, Release.LANES, Release.MET])
    if converted or release is Release.MET:  # who is ahead of the others would read these, and no old tile
        drawn = replace(drawn, spare=0)
    cores = rng.choice([wgmma, tcgen05]) if rng.random() < 0.25 else None
    if cores is wgmma:  # by a warp group
        drawn, use, release = replace(drawn, readers=4, wrong=rng.choice([0, 4])), wgmma, Release.ELECTED
    elif cores is tcgen05:
        use, release = tcgen05, Release.COMMIT
    return replace(drawn, use=use, release=release, converted=converted)
