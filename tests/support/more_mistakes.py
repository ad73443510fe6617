"""Mistakes that were written after the list of corrections: a first look at kernels that it had not seen.

Each kernel is right without a slip; the value of a slip says what was meant. Of these 18, 13 got that at first, 3
another one and 2 none; what was wrong in general was then corrected (docs/check.md), so that they are blind no more.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TypeVar

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence, Order, Scope

_Slip = TypeVar("_Slip", bound=Enum)

TILE, STAGES, TILES = 64, 2, 5


class Accumulator(Enum):
    """An accumulator in tensor memory between an MMA warp and four epilogue warps."""

    NONE = ""
    ARRIVE_FOR_COMMIT = "mma commits to acc_full instead of the arrive: when its MMAs have ended"
    EVERY_THREAD_RELEASES = "epilogue: put the arrive on acc_empty inside elect_one(): all 32 lanes execute it"
    RELEASED_BEFORE_LOAD = "epilogue arrives on acc_empty only after its reads and writes of the stage"
    CONSTANT_PARITY = "epilogue waits for acc_full with parity 0 in the first lap, alternating in each later lap"
    ONE_WARP_RELEASES = "every warp of epilogue executes the arrive on acc_empty, not only some of them"


def accumulator(slip: Accumulator = Accumulator.NONE) -> Protocol:
    """Two accumulators, used in turn."""
    s = Accumulator
    p = Protocol("accumulator")
    acc = p.tmem("acc", 2, TILE)
    full, empty = p.mbarriers("acc_full", 2, 1), p.mbarriers("acc_empty", 2, 4)

    @p.role("mma")
    def mma(w: Warp) -> None:
        with w.elect_one():
            for i in range(TILES):
                empty[i % 2].wait(i // 2 & 1 ^ 1)
                w.mma(Engine.TCGEN05, writes=[(acc[i % 2], i)])
                if slip is s.ARRIVE_FOR_COMMIT:
                    full[i % 2].arrive()
                else:
                    w.commit(Engine.TCGEN05, full[i % 2])

    @p.role("epilogue", warps=4)
    def epilogue(w: Warp) -> None:
        for i in range(TILES):
            full[i % 2].wait(0 if slip is s.CONSTANT_PARITY else i // 2 & 1)
            if slip is not s.RELEASED_BEFORE_LOAD:
                w.read(acc[i % 2], i)
            if slip is s.EVERY_THREAD_RELEASES:
                empty[i % 2].arrive()
            elif slip is not s.ONE_WARP_RELEASES or w.index == 0:
                with w.elect_one():
                    empty[i % 2].arrive()
            if slip is s.RELEASED_BEFORE_LOAD:
                w.read(acc[i % 2], i)

    return p


class Residual(Enum):
    """A residual tile that is loaded, changed in place and stored."""

    NONE = ""
    RELEASED_BEFORE_STORED = "epilogue waits for its bulk stores before the arrive on empty"
    NO_FENCE = "epilogue executes fence.proxy.async after its writes, before it signals any other agent"
    HALF_EXPECTED = "load expects 64 bytes on full instead of 32: as many as are copied"
    NO_SYNC = "epilogue executes bar_sync at named barrier 1 (64 threads) after the fence"
    TOO_DEEP = "epilogue leaves none of its groups pending when it waits for them, instead of 1"


def residual(slip: Residual = Residual.NONE) -> Protocol:
    """A load warp, two epilogue warps that each change a half; one thread stores the whole."""
    s = Residual
    p = Protocol("residual")
    tile = p.smem("c", STAGES, TILE)
    full, empty = p.mbarriers("full", STAGES, 1), p.mbarriers("empty", STAGES, 1)
    half = TILE // 2

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in range(TILES):
                empty[i % STAGES].wait(i // STAGES & 1 ^ 1)
                full[i % STAGES].expect_bytes(half if slip is s.HALF_EXPECTED else TILE)
                w.tma_load(tile[i % STAGES], full[i % STAGES], i)

    @p.role("epilogue", warps=2)
    def epilogue(w: Warp) -> None:
        for i in range(TILES):
            stage = i % STAGES
            full[stage].wait(i // STAGES & 1)
            mine = tile[stage].part(w.index * half, half)
            w.read(mine, i)
            w.write(mine, 100 + i)
            if slip is not s.NO_FENCE:
                w.fence(Fence.PROXY_ASYNC)
            if slip is not s.NO_SYNC:
                w.bar_sync(2, 64)
            if w.index == 0:
                with w.elect_one():
                    w.async_read(Engine.BULK, tile[stage], 100 + i)
                    w.commit(Engine.BULK)
                    if slip is not s.RELEASED_BEFORE_STORED:
                        w.wait_group(Engine.BULK, 1 if slip is s.TOO_DEEP else 0)
                    empty[stage].arrive()

    return p


class PingPong(Enum):
    """Two groups that compute in turn, in an order that named barriers keep."""

    NONE = ""
    NOT_PRIMED = "group1 arrives at named barrier 4 (64 threads) once before it begins"
    THREADS_OF_ONE = "64 threads at named barriers 4 and 5 instead of 32"
    ARRIVES_BEFORE_WORK = "every role arrives at named barriers 4 and 5 only after its reads and writes"
    ARRIVES_FOR_ITSELF = "group0 uses named barrier 5 instead of 4 at the bar_arrive"


def ping_pong(slip: PingPong = PingPong.NONE) -> Protocol:
    """One shared tile that the groups write in turn."""
    s = PingPong
    p = Protocol("ping_pong")
    tile = p.smem("tile", 1, TILE)
    threads = 32 if slip is s.THREADS_OF_ONE else 64

    def group(w: Warp, me: int) -> None:
        if me == 1 and slip is not s.NOT_PRIMED:
            w.bar_arrive(4, threads)
        for i in range(TILES):
            other = me if slip is s.ARRIVES_FOR_ITSELF and me == 0 else 1 - me
            w.bar_sync(4 + me, threads)
            if slip is s.ARRIVES_BEFORE_WORK and (me == 0 or i + 1 < TILES):
                w.bar_arrive(4 + other, threads)
            w.write(tile[0], 2 * i + me)
            if slip is not s.ARRIVES_BEFORE_WORK and (me == 0 or i + 1 < TILES):
                w.bar_arrive(4 + other, threads)

    @p.role("group0")
    def group0(w: Warp) -> None:
        group(w, 0)

    @p.role("group1")
    def group1(w: Warp) -> None:
        group(w, 1)

    return p


class Push(Enum):
    """Tiles written into the memory of the other CTA."""

    NONE = ""
    RELAXED = "writer: let the arrive release at cluster scope instead of .relaxed"
    NARROW = "writer: let the arrive release at cluster scope instead of .cta"
    COUNT_OF_TWO = "initialise near with a count of 1 instead of 2"
    TWO_BARRIERS = "reader waits for far, with parity 0 in the first lap, before the read of tile"


def push(slip: Push = Push.NONE) -> Protocol:
    """CTA 0 reads what warps of both CTAs have written into its memory, once."""
    s = Push
    p = Protocol("push", cluster=2)
    tile = p.smem("tile", 2, TILE)
    near = p.mbarriers("near", 1, 2 if slip is s.COUNT_OF_TWO else 1)
    far = p.mbarriers("far", 1, 1)

    @p.role("writer")
    def writer(w: Warp) -> None:
        w.write(tile[w.cta].mapa(0), 7 + w.cta)
        with w.elect_one():
            order = Order.RELAXED if slip is s.RELAXED else Order.RELEASE
            scope = Scope.CTA if slip is s.NARROW else Scope.CLUSTER
            (near if w.cta == 0 else far)[0].arrive_cluster(0, order=order, scope=scope)
        w.cluster_sync()

    @p.role("reader")
    def reader(w: Warp) -> None:
        if w.cta == 0:
            near[0].wait_acquire(0, Scope.CLUSTER)
            w.read(tile[0], 7)
            if slip is not s.TWO_BARRIERS:
                far[0].wait_acquire(0, Scope.CLUSTER)
            w.read(tile[1], 8)
        w.cluster_sync()

    return p


def _of(kernel: Callable[[_Slip], Protocol], slips: type[_Slip]) -> dict[str, tuple[Callable[[], Protocol], str]]:
    wrong = [slip for slip in slips if slip.value]
    return {f"{slips.__name__.lower()}.{slip.name.lower()}": (partial(kernel, slip), slip.value) for slip in wrong}


#: The wrong kernels, by kernel and slip, each with what was meant.
MORE = {
    **_of(accumulator, Accumulator),
    **_of(residual, Residual),
    **_of(ping_pong, PingPong),
    **_of(push, Push),
}
RIGHT: tuple[Callable[[], Protocol], ...] = (accumulator, residual, ping_pong, push)
