"""Proxy fences: what the threads write or read, and an engine accesses without ``fence.proxy.async`` between the two.

PTX ISA, async proxy. Every twin has a right one in :data:`RIGHT`; :mod:`pipesim.protocols.broken.memory` has them among
the other twins of memory order.
"""

from __future__ import annotations

from collections.abc import Callable

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence
from pipesim.model.strictness import Strictness
from pipesim.protocols.broken.ring import TILE, ring
from pipesim.protocols.limits import require

_WRITTEN, _STORED = 1, 2  #: named barriers


def _store(name: str, tiles: int, *, early: bool = False, late: bool = False, reader: bool = False) -> Protocol:
    """One warp writes each result, another stores it with a bulk copy.

    The writer fences ``early``, before the barrier between them, or ``late``, behind it; or the ``reader`` does.
    """
    require("tiles", tiles, 0, 1 << 16)
    p = Protocol(name)
    out = p.smem("out", slots=1, nbytes=TILE)

    @p.role("writer")
    def writer(w: Warp) -> None:
        for i in range(tiles):
            w.write(out[0], i)
            if early:
                w.fence(Fence.PROXY_ASYNC)
            w.bar_sync(_WRITTEN, 64)
            if late:
                w.fence(Fence.PROXY_ASYNC)
            w.bar_sync(_STORED, 64)

    @p.role("storer")
    def storer(w: Warp) -> None:
        for i in range(tiles):
            w.bar_sync(_WRITTEN, 64)
            if reader:
                w.fence(Fence.PROXY_ASYNC)
            with w.elect_one():
                w.async_read(Engine.BULK, out[0], i)
                w.commit(Engine.BULK)
                w.wait_group(Engine.BULK)
            w.bar_sync(_STORED, 64)

    return p


def store_not_fenced(tiles: int = 2) -> Protocol:
    """A result is written and stored by a bulk copy, without ``fence.proxy.async``: the copy may read what was before.

    tiles > 0: MISSING_PROXY_FENCE
    else: proved
    """
    return _store("store_not_fenced", tiles)


def fence_too_late(tiles: int = 2) -> Protocol:
    """The writer fences after the barrier that lets the other warp store.

    tiles > 0: MISSING_PROXY_FENCE
    else: proved
    """
    return _store("fence_too_late", tiles, late=True)


def _consumed(name: str, stages: int, tiles: int, *, in_place: bool = False, fenced: bool = False) -> Protocol:
    """The consumer reads a tile, perhaps writes over it ``in_place``, perhaps fences, and gives the slot back."""
    r = ring(name, stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.read(w, i)
            if in_place:
                w.write(r.tile[r.slot(i)], i)
            if fenced:
                w.fence(Fence.PROXY_ASYNC)
            r.release(i)

    return r.p


def copy_over_a_written_tile(stages: int = 2, tiles: int = 3) -> Protocol:
    """The consumer works on its tile in place; the copy into the same slot is not fenced from its writes.

    tiles > stages: MISSING_PROXY_FENCE
    else: proved
    """
    return _consumed("copy_over_a_written_tile", stages, tiles, in_place=True)


def read_not_fenced(stages: int = 2, tiles: int = 3) -> Protocol:
    """Between the consumer's reads of a slot and the next copy into it there is no proxy fence (--strict-proxies).

    tiles > stages: READ_NOT_FENCED
    else: proved
    """
    return _consumed("read_not_fenced", stages, tiles)


def _multiplied_and_filled(name: str, tiles: int, *, reader: bool = False, writer: bool = False) -> Protocol:
    """A warp group multiplies from a slot that another warp fills; one of them fences before it is filled again."""
    require("tiles", tiles, 0, 1 << 16)
    p = Protocol(name)
    tile = p.smem("tile", slots=1, nbytes=TILE)
    full, empty = p.mbarriers("full", 1)[0], p.mbarriers("empty", 1)[0]

    @p.init
    def init() -> None:
        full.init(32)
        empty.init(32)

    @p.role("writer")
    def fill(w: Warp) -> None:
        for i in range(tiles):
            empty.wait((i & 1) ^ 1)
            if writer:
                w.fence(Fence.PROXY_ASYNC)
            w.write(tile[0], i)
            w.fence(Fence.PROXY_ASYNC)
            full.arrive()

    @p.role("mma")
    def mma(w: Warp) -> None:
        for i in range(tiles):
            full.wait(i & 1)
            w.mma(Engine.WGMMA, reads=[(tile[0], i)])
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA)
            if reader:
                w.fence(Fence.PROXY_ASYNC)
            empty.arrive()

    return p


def product_not_fenced(tiles: int = 3) -> Protocol:
    """Between what wgmma reads and the next ordinary write there is no proxy fence (--strict-proxies).

    tiles > 1: READ_NOT_FENCED
    else: proved
    """
    return _multiplied_and_filled("product_not_fenced", tiles)


def _multiplied(name: str, stages: int, tiles: int, *, fenced: bool) -> Protocol:
    """The producer copies with ``cp.async``, the consumer multiplies with wgmma."""
    r = ring(name, stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            w.async_write(Engine.CP_ASYNC, r.tile[r.slot(i)], i)
            r.of_full(i).cp_async_arrive(noinc=True)

    @r.p.role("mma")
    def mma(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(r.phase(i))
            if fenced:
                w.fence(Fence.PROXY_ASYNC)
            w.mma(Engine.WGMMA, reads=[(r.tile[r.slot(i)], i)])
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA)
            with w.elect_one():
                r.release(i)

    return r.p


def cp_async_not_fenced(stages: int = 2, tiles: int = 2) -> Protocol:
    """``cp.async`` writes as a thread does: without a fence wgmma may read what was there before.

    tiles > 0: MISSING_PROXY_FENCE
    else: proved
    """
    return _multiplied("cp_async_not_fenced", stages, tiles, fenced=False)


PROXIES: dict[str, Callable[..., Protocol]] = {
    "store_not_fenced": store_not_fenced,
    "fence_too_late": fence_too_late,
    "copy_over_a_written_tile": copy_over_a_written_tile,
    "read_not_fenced": read_not_fenced,
    "product_not_fenced": product_not_fenced,
    "cp_async_not_fenced": cp_async_not_fenced,
}  #: every wrong twin by its name
#: The rules that a twin needs to be wrong; the others are wrong without.
STRICT: dict[str, Strictness] = {
    "read_not_fenced": Strictness(proxies=True),
    "product_not_fenced": Strictness(proxies=True),
}
RIGHT: dict[str, tuple[Callable[..., Protocol], ...]] = {
    "store_not_fenced": (lambda tiles: _store("right", tiles, early=True),),
    "fence_too_late": (
        lambda tiles: _store("right", tiles, early=True, late=True),
        lambda tiles: _store("right", tiles, reader=True),
    ),
    "copy_over_a_written_tile": (lambda stages, tiles: _consumed("right", stages, tiles, in_place=True, fenced=True),),
    "read_not_fenced": (lambda stages, tiles: _consumed("right", stages, tiles, fenced=True),),
    "product_not_fenced": (
        lambda tiles: _multiplied_and_filled("right", tiles, reader=True),
        lambda tiles: _multiplied_and_filled("right", tiles, writer=True),
    ),
    "cp_async_not_fenced": (lambda stages, tiles: _multiplied("right", stages, tiles, fenced=True),),
}  #: for each twin what puts it right, of the same sizes
