"""Memory order: what is in its place on a machine with one memory, and not on a GPU.

A schedule cannot show these faults: each access sees what it should. Orders, scopes and fences are missing or misplaced
(PTX ISA, memory consistency model and async proxy). Here are the twins of weak orders, narrow scopes and unpublished
initialisations; those of proxy fences are in :mod:`pipesim.protocols.broken.proxies`, and :data:`MEMORY` has all. Every
twin has a right one in :data:`RIGHT`.
"""

from __future__ import annotations

from collections.abc import Callable

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Fence, Order, Scope
from pipesim.model.strictness import Strictness
from pipesim.protocols.broken import proxies
from pipesim.protocols.broken.ring import TILE, ring
from pipesim.protocols.limits import require

_PAIR = 0b11  #: mask of both CTAs


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
    **proxies.PROXIES,
    "release_relaxed": release_relaxed,
    "wait_relaxed": wait_relaxed,
    "release_of_cta_scope": release_of_cta_scope,
    "acquire_of_cta_scope": acquire_of_cta_scope,
    "init_not_fenced": init_not_fenced,
    "init_behind_a_relaxed_arrive": init_behind_a_relaxed_arrive,
}  #: every wrong twin by its name
#: The rules that a twin needs to be wrong; the others are wrong without.
STRICT: dict[str, Strictness] = {**proxies.STRICT, "init_not_fenced": Strictness(init=True)}


def _cluster_scope(stages: int = 1, tiles: int = 2) -> Protocol:
    return _multicast("right", stages, tiles, given=Scope.CLUSTER, taken=Scope.CLUSTER)


RIGHT: dict[str, tuple[Callable[..., Protocol], ...]] = {
    **proxies.RIGHT,
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
