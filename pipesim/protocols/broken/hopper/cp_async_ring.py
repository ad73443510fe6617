"""Rings that ``cp.async`` fills: with mbarriers between producer and consumer warps, and with one barrier for all."""

from __future__ import annotations

from enum import Enum

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence

STAGES, TILES = 3, 7
TILE = 64
PRODUCERS, CONSUMERS = 2, 2  #: warps


class CpAsyncSlip(Enum):
    """What is done wrong in :func:`cp_async_ring`; the value says what was meant."""

    NONE = ""
    PLAIN_ARRIVE = "producer arrives on full by cp.async.mbarrier.arrive.noinc: when its copies have ended"
    INC = "producer arrives on full by cp.async with .noinc, so that its arrivals are counted"
    COUNTED_IN_WARPS = "initialise full with a count of 64 instead of 2"
    RELEASED_BEFORE_READ = "consumer arrives on empty only after its reads and writes of the stage"
    NO_ACQUIRE = "producer waits for empty, with parity 1 in the first lap, before it uses a stage"
    NEVER_TOGGLES = "consumer waits for full with parity 0 in the first lap, alternating in each later lap"
    STARTS_AT_ZERO = "producer waits for empty with parity 1 in the first lap, alternating in each later lap"


def cp_async_ring(slip: CpAsyncSlip = CpAsyncSlip.NONE) -> Protocol:
    """Two warps copy a half of each tile, two warps read all of it; full counts the lanes that copy."""
    s = CpAsyncSlip
    p = Protocol("cp_async_ring")
    tile = p.smem("tile", STAGES, TILE)
    full = p.mbarriers("full", STAGES, PRODUCERS if slip is s.COUNTED_IN_WARPS else 32 * PRODUCERS)
    empty = p.mbarriers("empty", STAGES, CONSUMERS)
    half = TILE // PRODUCERS

    @p.role("producer", warps=PRODUCERS)
    def producer(w: Warp) -> None:
        for i in range(TILES):
            stage, lap = i % STAGES, i // STAGES
            if slip is not s.NO_ACQUIRE:
                empty[stage].wait(lap & 1 ^ (slip is not s.STARTS_AT_ZERO))
            w.async_write(Engine.CP_ASYNC, tile[stage].part(w.index * half, half), i)
            if slip is s.PLAIN_ARRIVE:
                full[stage].arrive()
            else:
                full[stage].cp_async_arrive(noinc=slip is not s.INC)

    @p.role("consumer", warps=CONSUMERS)
    def consumer(w: Warp) -> None:
        for i in range(TILES):
            stage, lap = i % STAGES, i // STAGES
            full[stage].wait(0 if slip is s.NEVER_TOGGLES else lap & 1)
            if slip is not s.RELEASED_BEFORE_READ:
                w.read(tile[stage], i)
            with w.elect_one():
                empty[stage].arrive()
            if slip is s.RELEASED_BEFORE_READ:
                w.read(tile[stage], i)

    return p


class GroupedSlip(Enum):
    """What is done wrong in :func:`grouped_ring`; the value says what was meant."""

    NONE = ""
    NO_WAIT = "producer waits for its cp.asyncs, leaving no more than 1 pending, before the fence"
    WAIT_TOO_DEEP = "producer leaves no more than 1 of its groups pending when it waits for them, instead of 2"
    NO_COMMIT = "producer executes cp.async.commit_group after its cp.asyncs, before it waits for them"
    LAST_ARRIVE_MISSING = "producer arrives on full for its last stages as well, when their transfers have ended"
    NO_FENCE = "producer executes fence.proxy.async after its writes, before it signals any other agent"
    ONE_LANE_ARRIVES = "producer: put the arrive on full outside elect_one(): each of the 32 lanes is counted"


def grouped_ring(slip: GroupedSlip = GroupedSlip.NONE) -> Protocol:
    """The producer signals a tile when the copies of the next are under way; wgmmas read the tiles."""
    s = GroupedSlip
    p = Protocol("grouped_ring")
    tile = p.smem("tile", STAGES, TILE)
    full, empty = p.mbarriers("full", STAGES, 32), p.mbarriers("empty", STAGES, 4)

    @p.role("producer")
    def producer(w: Warp) -> None:
        def signal(i: int, left: int) -> None:
            if slip is not s.NO_WAIT or left == 0:
                w.wait_group(Engine.CP_ASYNC, left + 1 if slip is s.WAIT_TOO_DEEP and left else left)
            if slip is not s.NO_FENCE:
                w.fence(Fence.PROXY_ASYNC)
            if slip is s.ONE_LANE_ARRIVES:
                with w.elect_one():
                    full[i % STAGES].arrive()
            else:
                full[i % STAGES].arrive()

        for i in range(TILES):
            empty[i % STAGES].wait(i // STAGES & 1 ^ 1)
            w.async_write(Engine.CP_ASYNC, tile[i % STAGES], i)
            if slip is not s.NO_COMMIT:
                w.commit(Engine.CP_ASYNC)
            if i:
                signal(i - 1, 1)
        if slip is not s.LAST_ARRIVE_MISSING:
            signal(TILES - 1, 0)

    @p.role("idle", warps=3)
    def idle(w: Warp) -> None:
        w.work(1)

    @p.role("math", warps=4)
    def math(w: Warp) -> None:
        for i in range(TILES):
            full[i % STAGES].wait(i // STAGES & 1)
            w.mma(Engine.WGMMA, reads=[(tile[i % STAGES], i)])
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA, 0)
            with w.elect_one():
                empty[i % STAGES].arrive()

    return p


class MultistageSlip(Enum):
    """What is done wrong in :func:`multistage`; the value says what was meant."""

    NONE = ""
    NO_SYNC = "warp executes __syncthreads() before the read of tile"
    WAIT_TOO_DEEP = "warp leaves no more than 1 of its groups pending when it waits for them, instead of 2"
    NO_COMMIT_IN_TAIL = "warp executes cp.async.commit_group in every iteration, also where it has nothing to copy"
    NO_WAIT = "warp waits for its cp.asyncs, leaving no more than 1 pending, before the bar_sync"


def multistage(slip: MultistageSlip = MultistageSlip.NONE) -> Protocol:
    """The loop of Ampere kernels: every warp copies a part two tiles ahead, and reads all of the tile that has come."""
    s = MultistageSlip
    p = Protocol("multistage")
    tile = p.smem("tile", STAGES, TILE)
    part = TILE // 4

    @p.role("warp", warps=4)
    def warp(w: Warp) -> None:
        def copy(i: int) -> None:
            if i < TILES:
                w.async_write(Engine.CP_ASYNC, tile[i % STAGES].part(w.index * part, part), i)
            if i < TILES or slip is not s.NO_COMMIT_IN_TAIL:
                w.commit(Engine.CP_ASYNC)

        for i in range(STAGES - 1):
            copy(i)
        for i in range(TILES):
            if slip is not s.NO_WAIT:
                w.wait_group(Engine.CP_ASYNC, STAGES - 1 if slip is s.WAIT_TOO_DEEP else STAGES - 2)
            if slip is not s.NO_SYNC:
                w.sync_threads()
            w.read(tile[i % STAGES], i)
            copy(i + STAGES - 1)

    return p
