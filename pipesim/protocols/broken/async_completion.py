"""Transfers that are over later than an agent believes: released, read or reused before their end."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence
from pipesim.protocols.broken.ring import TILE, ring
from pipesim.protocols.limits import require


def released_before_the_mma_is_done(stages: int = 2, tiles: int = 3) -> Protocol:
    """The consumer issues an MMA on the tile and arrives itself: no commit says when the operand has been read.

    tiles > stages: RACE
    else: proved
    """
    r = ring("released_before_the_mma_is_done", stages, tiles)
    r.right_producer()

    @r.role("mma")
    def mma(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(r.phase(i))
            w.mma(Engine.TCGEN05, reads=[(r.tile[r.slot(i)], i)])
            r.release(i)

    return r.p


def commit_missing(stages: int = 2, tiles: int = 5) -> Protocol:
    """The consumer issues its MMAs and no commit: nothing gives the slots back.

    tiles > stages: DEADLOCK
    else: proved
    """
    r = ring("commit_missing", stages, tiles)
    r.right_producer()

    @r.role("mma")
    def mma(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(r.phase(i))
            w.mma(Engine.TCGEN05, reads=[(r.tile[r.slot(i)], i)])

    return r.p


def commit_before_the_mma(stages: int = 2, tiles: int = 3) -> Protocol:
    """The commit is before the MMA of its tile: it says that the earlier ones are done.

    tiles > stages: RACE, WRONG_ITEM
    else: proved
    """
    r = ring("commit_before_the_mma", stages, tiles)
    r.right_producer()

    @r.role("mma")
    def mma(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(r.phase(i))
            w.commit(Engine.TCGEN05, r.of_empty(i))
            w.mma(Engine.TCGEN05, reads=[(r.tile[r.slot(i)], i)])

    return r.p


def wgmma_wait_too_deep(stages: int = 2, tiles: int = 3) -> Protocol:
    """The consumer leaves one group of wgmma unfinished and gives back the slot that this group reads.

    tiles > stages: RACE
    else: proved
    """
    r = ring("wgmma_wait_too_deep", stages, tiles)
    r.right_producer()

    @r.p.role("mma")
    def mma(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(r.phase(i))
            w.mma(Engine.WGMMA, reads=[(r.tile[r.slot(i)], i)])
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA, 1)
            with w.elect_one():
                r.release(i)

    return r.p


def wgmma_released_before_its_wait(stages: int = 2, tiles: int = 3) -> Protocol:
    """The consumer gives back the slot before it issues the wgmma that reads it, and waits for that only afterwards.

    tiles > stages: RACE, WRONG_ITEM
    else: proved
    """
    r = ring("wgmma_released_before_its_wait", stages, tiles)
    r.right_producer()

    @r.p.role("mma")
    def mma(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(r.phase(i))
            with w.elect_one():
                r.release(i)
            w.mma(Engine.WGMMA, reads=[(r.tile[r.slot(i)], i)], cycles=64)
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA, 0)

    return r.p


def accumulator_read_early(tiles: int = 2) -> Protocol:
    """The epilogue reads the accumulator on a plain arrival of the MMA warp, not on the commit of its MMAs.

    tiles > 0: RACE
    else: proved
    """
    require("tiles", tiles, 0, 1 << 16)
    p = Protocol("accumulator_read_early")
    acc = p.tmem("acc", slots=1, nbytes=TILE)
    full, empty = p.mbarriers("full", 1, 1), p.mbarriers("empty", 1, 1)

    @p.role("mma")
    def mma(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles):
                empty[0].wait(i & 1 ^ 1)
                w.mma(Engine.TCGEN05, writes=[(acc[0], i)])
                full[0].arrive()

    @p.role("epilogue")
    def epilogue(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles):
                full[0].wait(i & 1)
                w.read(acc[0], i)
                empty[0].arrive()

    return p


def _store(name: str, tiles: int, slots: int, *, commit: bool, left: int) -> Protocol:
    """One warp writes result after result into its slots, each stored by a bulk copy that leaves ``left`` unfinished.

    ``left`` of -1 is no wait at all.
    """
    require("tiles", tiles, 0, 1 << 16)
    p = Protocol(name)
    out = p.smem("out", slots=slots, nbytes=TILE)

    @p.role("epilogue")
    def epilogue(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles):
                w.write(out[i % slots], i)
                w.fence(Fence.PROXY_ASYNC)
                w.async_read(Engine.BULK, out[i % slots], i)
                if commit:
                    w.commit(Engine.BULK)
                if left >= 0:
                    w.wait_group(Engine.BULK, left)
            w.commit(Engine.BULK)
            w.wait_group(Engine.BULK)

    return p


def store_not_waited_for(slots: int = 1, tiles: int = 2) -> Protocol:
    """The epilogue writes its next result into a slot whose store no agent has waited for.

    tiles > slots: RACE
    else: proved
    """
    return _store("store_not_waited_for", tiles, slots, commit=True, left=-1)


def store_wait_too_deep(slots: int = 1, tiles: int = 2) -> Protocol:
    """The epilogue leaves as many stores unfinished as it has slots: one too many.

    tiles > slots: RACE
    else: proved
    """
    return _store("store_wait_too_deep", tiles, slots, commit=True, left=slots)


def store_not_committed(slots: int = 1, tiles: int = 2) -> Protocol:
    """No commit closes the group of a store: the wait waits for nothing.

    tiles > slots: RACE
    else: proved
    """
    return _store("store_not_committed", tiles, slots, commit=False, left=0)


def cp_async_not_waited_for(stages: int = 2, tiles: int = 2) -> Protocol:
    """The producer copies with ``cp.async`` and arrives with an ordinary arrive: the bytes may come later.

    tiles > 0: RACE
    else: proved
    """
    r = ring("cp_async_not_waited_for", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            w.async_write(Engine.CP_ASYNC, r.tile[r.slot(i)], i)
            r.of_full(i).arrive()

    r.right_consumer()
    return r.p


def cp_async_arrive_counts_itself(stages: int = 2, tiles: int = 2) -> Protocol:
    """``full`` counts the arrivals of ``cp.async``, which without ``.noinc`` take back what they add.

    tiles > 0: DEADLOCK
    else: proved
    """
    r = ring("cp_async_arrive_counts_itself", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            w.async_write(Engine.CP_ASYNC, r.tile[r.slot(i)], i)
            r.of_full(i).cp_async_arrive()

    r.right_consumer()
    return r.p
