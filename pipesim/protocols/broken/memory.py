"""Memory order: what is in its place on a machine with one memory, and not on a GPU.

A schedule cannot show these faults: each access sees what it should. Fences, orders and scopes are missing or misplaced
(PTX ISA, memory consistency model and async proxy). Every twin has a right one in :data:`RIGHT`.
"""

from __future__ import annotations

from collections.abc import Callable

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence, Order, Scope
from pipesim.model.strictness import Strictness
from pipesim.protocols.broken.ring import TILE, ring
from pipesim.protocols.limits import require

_WRITTEN, _STORED = 1, 2  #: named barriers
_PAIR = 0b11  #: mask of both CTAs


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


def _in_place(name: str, stages: int, tiles: int, *, fenced: bool) -> Protocol:
    """The consumer writes over the tile that it has read before it gives the slot back."""
    r = ring(name, stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.read(w, i)
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
    return _in_place("copy_over_a_written_tile", stages, tiles, fenced=False)


def _read(name: str, stages: int, tiles: int, *, fenced: bool) -> Protocol:
    """The consumer reads the tile before it gives the slot back."""
    r = ring(name, stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.read(w, i)
            if fenced:
                w.fence(Fence.PROXY_ASYNC)
            r.release(i)

    return r.p


def read_not_fenced(stages: int = 2, tiles: int = 3) -> Protocol:
    """Between the consumer's reads of a slot and the next copy into it there is no proxy fence (--strict-proxies).

    tiles > stages: READ_NOT_FENCED
    else: proved
    """
    return _read("read_not_fenced", stages, tiles, fenced=False)


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


def _released(name: str, stages: int, tiles: int, order: Order, *, fenced: bool = False) -> Protocol:
    """The consumer gives the slot back by an arrive of this order, perhaps behind a fence."""
    r = ring(name, stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.read(w, i)
            if fenced:
                w.fence(Fence.ACQ_REL, Scope.CTA)
            r.of_empty(i).arrive(order=order)

    return r.p


def release_relaxed(stages: int = 2, tiles: int = 3) -> Protocol:
    """The consumer gives the slot back with ``.relaxed``: its reads may come after the next copy has begun.

    tiles > stages: WEAK_ORDER
    else: proved
    """
    return _released("release_relaxed", stages, tiles, Order.RELAXED)


def _awaited(name: str, stages: int, tiles: int, *, relaxed: bool, fenced: bool = False) -> Protocol:
    """The consumer waits for its tile, perhaps relaxed, perhaps with a fence behind that."""
    r = ring(name, stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            if relaxed:
                r.of_full(i).wait_relaxed(r.phase(i))
            else:
                r.of_full(i).wait_acquire(r.phase(i))
            if fenced:
                w.fence(Fence.ACQ_REL, Scope.CTA)
            w.read(r.tile[r.slot(i)], i)
            r.release(i)

    return r.p


def wait_relaxed(stages: int = 2, tiles: int = 1) -> Protocol:
    """The consumer waits with ``.relaxed`` and reads: the wait orders nothing.

    tiles > 0: WEAK_ORDER
    else: proved
    """
    return _awaited("wait_relaxed", stages, tiles, relaxed=True)


def _multicast(name: str, stages: int, tiles: int, *, given: Scope, taken: Scope) -> Protocol:
    """CTA 0 loads each tile for both; the consumers give back with one scope, the loader waits with the other."""
    r = ring(name, stages, tiles, empty=2, cluster=2)

    @r.role("loader")
    def loader(w: Warp) -> None:
        if w.cta:
            return
        for i in range(tiles + stages):  # the last lap drains the ring
            r.of_empty(i).wait_acquire(r.phase(i) ^ 1, taken)
            if i < tiles:
                r.of_full(i).expect_bytes(TILE)
                w.tma_load(r.tile[r.slot(i)], r.of_full(i), i, cta_mask=_PAIR)

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            if w.cta == 1:
                r.of_full(i).expect_bytes(TILE)
            r.read(w, i)
            r.of_empty(i).arrive_cluster(0, scope=given)

    return r.p


def release_of_cta_scope(stages: int = 1, tiles: int = 2) -> Protocol:
    """The consumer of CTA 1 gives its slot back to CTA 0 by an arrive of CTA scope.

    tiles > stages: NARROW_SCOPE
    else: proved
    """
    return _multicast("release_of_cta_scope", stages, tiles, given=Scope.CTA, taken=Scope.CLUSTER)


def acquire_of_cta_scope(stages: int = 1, tiles: int = 2) -> Protocol:
    """The loader of CTA 0 waits with CTA scope for a slot that the consumer of CTA 1 gives back, too.

    tiles > stages: NARROW_SCOPE
    else: proved
    """
    return _multicast("acquire_of_cta_scope", stages, tiles, given=Scope.CLUSTER, taken=Scope.CTA)


def _initialised_by_a_role(name: str, stages: int, tiles: int, *, fenced: bool) -> Protocol:
    """The producer initialises the barriers, perhaps with a fence, then both roles meet."""
    r = ring(name, stages, tiles)

    @r.p.init
    def init() -> None:
        """Nothing: the producer does it."""

    @r.p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            for barrier in (*r.full, *r.empty):
                barrier.init(1)
            if fenced:
                w.fence(Fence.MBARRIER_INIT)
        w.sync_threads()
        with w.elect_one():
            for i in range(tiles):
                r.acquire(i)
                r.load(w, i)

    @r.p.role("consumer")
    def consumer(w: Warp) -> None:
        w.sync_threads()
        with w.elect_one():
            for i in range(tiles):
                r.read(w, i)
                r.release(i)

    return r.p


def init_not_fenced(stages: int = 2, tiles: int = 3) -> Protocol:
    """The barriers are initialised before the CTA barrier, but no fence publishes that to the copies counted on them
    (--strict-init; without it a note).

    tiles > 0: UNPUBLISHED_INIT
    else: proved
    """
    return _initialised_by_a_role("init_not_fenced", stages, tiles, fenced=False)


def _relaxed_cluster_barrier(name: str, tiles: int, *, fenced: bool) -> Protocol:
    """Each CTA initialises its barriers, all meet by a relaxed arrive, and each arrives at the other's barriers."""
    require("tiles", tiles, 0, 1 << 16)
    p = Protocol(name, cluster=2)
    ready = p.mbarriers("ready", max(tiles, 1))

    @p.init
    def init() -> None:
        """Nothing: the role does it."""

    @p.role("peer")
    def peer(w: Warp) -> None:
        with w.elect_one():
            for barrier in ready:
                barrier.init(1)
            if fenced:
                w.fence(Fence.MBARRIER_INIT)
        w.cluster_arrive(Order.RELAXED)
        w.cluster_wait()
        with w.elect_one():
            for i in range(tiles):
                ready[i].arrive_cluster(w.cta ^ 1)
                ready[i].wait(0)

    return p


def init_behind_a_relaxed_arrive(tiles: int = 2) -> Protocol:
    """The cluster barrier between init and use has a relaxed arrive, and the fence that goes with that is missing.

    tiles > 0: UNPUBLISHED_INIT
    else: proved
    """
    return _relaxed_cluster_barrier("init_behind_a_relaxed_arrive", tiles, fenced=False)


MEMORY: dict[str, Callable[..., Protocol]] = {
    "store_not_fenced": store_not_fenced,
    "fence_too_late": fence_too_late,
    "copy_over_a_written_tile": copy_over_a_written_tile,
    "read_not_fenced": read_not_fenced,
    "product_not_fenced": product_not_fenced,
    "cp_async_not_fenced": cp_async_not_fenced,
    "release_relaxed": release_relaxed,
    "wait_relaxed": wait_relaxed,
    "release_of_cta_scope": release_of_cta_scope,
    "acquire_of_cta_scope": acquire_of_cta_scope,
    "init_not_fenced": init_not_fenced,
    "init_behind_a_relaxed_arrive": init_behind_a_relaxed_arrive,
}  #: every wrong twin by its name
#: The rules that a twin needs to be wrong; the others are wrong without.
STRICT: dict[str, Strictness] = {
    "read_not_fenced": Strictness(proxies=True),
    "product_not_fenced": Strictness(proxies=True),
    "init_not_fenced": Strictness(init=True),
}


def _cluster_scope(stages: int = 1, tiles: int = 2) -> Protocol:
    return _multicast("right", stages, tiles, given=Scope.CLUSTER, taken=Scope.CLUSTER)


RIGHT: dict[str, tuple[Callable[..., Protocol], ...]] = {
    "store_not_fenced": (lambda tiles: _store("right", tiles, early=True),),
    "fence_too_late": (
        lambda tiles: _store("right", tiles, early=True, late=True),
        lambda tiles: _store("right", tiles, reader=True),
    ),
    "copy_over_a_written_tile": (lambda stages, tiles: _in_place("right", stages, tiles, fenced=True),),
    "read_not_fenced": (lambda stages, tiles: _read("right", stages, tiles, fenced=True),),
    "product_not_fenced": (
        lambda tiles: _multiplied_and_filled("right", tiles, reader=True),
        lambda tiles: _multiplied_and_filled("right", tiles, writer=True),
    ),
    "cp_async_not_fenced": (lambda stages, tiles: _multiplied("right", stages, tiles, fenced=True),),
    "release_relaxed": (
        lambda stages, tiles: _released("right", stages, tiles, Order.RELEASE),
        lambda stages, tiles: _released("right", stages, tiles, Order.RELAXED, fenced=True),
    ),
    "wait_relaxed": (
        lambda stages, tiles: _awaited("right", stages, tiles, relaxed=False),
        lambda stages, tiles: _awaited("right", stages, tiles, relaxed=True, fenced=True),
    ),
    "release_of_cta_scope": (_cluster_scope,),
    "acquire_of_cta_scope": (_cluster_scope,),
    "init_not_fenced": (lambda stages, tiles: _initialised_by_a_role("right", stages, tiles, fenced=True),),
    "init_behind_a_relaxed_arrive": (lambda tiles: _relaxed_cluster_barrier("right", tiles, fenced=True),),
}  #: for each twin what puts it right, of the same sizes
