"""A wgmma ring with a store epilogue, and the slips that people make in one: each differs from the right kernel once.

One load warp copies the operands of a step into a stage; the four warps of a math warp group multiply, give the stage
of the step before back, and store the result of a tile with a bulk copy.
"""

from __future__ import annotations

from enum import Enum

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence

STAGES, TILES, STEPS = 2, 3, 3
OPERAND, RESULT = 64, 32  #: bytes of an operand of a stage, and of a warp's part of a result
MATH = 4  #: warps of a warp group
GROUP = 1  #: the named barrier of the math warps


class WgmmaSlip(Enum):
    """What is done wrong; the value says what was meant."""

    NONE = ""
    RELEASED_TOO_EARLY = "math arrives on empty only after it has waited for its wgmmas"
    NO_GROUP_WAIT = "math waits for its wgmmas, leaving no more than 1 pending, before the arrive on empty"
    GROUP_WAIT_TOO_DEEP = "math leaves no more than 1 of its groups pending when it waits for them, instead of 2"
    NO_GROUP_COMMIT = "math executes wgmma.commit_group after its wgmmas, before it waits for them"
    LAST_RELEASE_MISSING = "math arrives on empty for every stage: also after the wait for its wgmmas"
    EVERY_LANE_ARRIVES = "math: put the arrive on empty inside elect_one(): all 32 lanes execute it"
    COUNTED_IN_THREADS = "initialise empty with a count of 4 instead of 128"
    COUNTED_IN_GROUPS = "initialise empty with a count of 4 instead of 1"
    ONE_OPERAND_EXPECTED = "load expects 128 bytes on full instead of 64: as many as are copied"
    FOUR_OPERANDS_EXPECTED = "load expects 128 bytes on full instead of 256: as many as are copied"
    NO_FENCE = "math executes fence.proxy.async after its writes, before it signals any other agent"
    NO_SYNC_BEFORE_STORE = "math executes bar_sync at named barrier 1 (128 threads) after the fence"
    NO_SYNC_AFTER_STORE_WAIT = "math executes bar_sync at named barrier 1 (128 threads) before the write to out"
    NO_STORE_WAIT = "math waits for its bulk stores before the bar_sync"
    NO_STORE_COMMIT = "math executes cp.async.bulk.commit_group after its bulk stores, before it waits for them"
    SYNC_COUNTS_LOAD = "128 threads at named barrier 1 instead of 160"
    ONE_WARP_RELEASES = "every warp of math executes the arrive on empty, not only some of them"


def wgmma_ring(slip: WgmmaSlip = WgmmaSlip.NONE) -> Protocol:
    """The ring with this slip; right with :attr:`WgmmaSlip.NONE`."""
    s = WgmmaSlip
    p = Protocol("wgmma_ring")
    a, b = p.smem("a", STAGES, OPERAND), p.smem("b", STAGES, OPERAND)
    out, acc = p.smem("out", MATH, RESULT), p.registers("acc", MATH, RESULT)
    counts = {s.COUNTED_IN_THREADS: 32 * MATH, s.COUNTED_IN_GROUPS: 1}
    full, empty = p.mbarriers("full", STAGES, 1), p.mbarriers("empty", STAGES, counts.get(slip, MATH))
    expected = {s.ONE_OPERAND_EXPECTED: OPERAND, s.FOUR_OPERANDS_EXPECTED: 4 * OPERAND}

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for n in range(TILES * STEPS):
                stage, lap = n % STAGES, n // STAGES
                empty[stage].wait(lap & 1 ^ 1)
                full[stage].expect_bytes(expected.get(slip, 2 * OPERAND))
                w.tma_load(a[stage], full[stage], n)
                w.tma_load(b[stage], full[stage], n)

    @p.role("align", warps=3)  # the warp group of the load warp: its other warps have nothing to do
    def align(w: Warp) -> None:
        w.setmaxnreg(40)

    @p.role("math", warps=MATH)
    def math(w: Warp) -> None:
        for tile in range(TILES):
            before = -1  # the stage of the step before
            for k in range(STEPS):
                n = tile * STEPS + k
                stage, lap = n % STAGES, n // STAGES
                full[stage].wait(lap & 1)
                w.mma(Engine.WGMMA, reads=[(a[stage], n), (b[stage], n)], writes=[(acc[w.index], n)])
                if slip is not s.NO_GROUP_COMMIT:
                    w.commit(Engine.WGMMA)
                if slip is s.RELEASED_TOO_EARLY and before >= 0:
                    _release(w, empty[before], slip)
                if slip is not s.NO_GROUP_WAIT:
                    w.wait_group(Engine.WGMMA, 2 if slip is s.GROUP_WAIT_TOO_DEEP else 1)
                if slip is not s.RELEASED_TOO_EARLY and before >= 0:
                    _release(w, empty[before], slip)
                before = stage
            w.wait_group(Engine.WGMMA, 0)
            if slip is not s.LAST_RELEASE_MISSING:
                _release(w, empty[before], slip)
            _epilogue(w, out, acc, tile, slip)

    return p


def _release(w: Warp, empty: SharedMemBarrier, slip: WgmmaSlip) -> None:
    """One lane of each warp gives the stage back."""
    if slip is WgmmaSlip.EVERY_LANE_ARRIVES:
        empty.arrive()
    elif slip is not WgmmaSlip.ONE_WARP_RELEASES or w.index == 0:
        with w.elect_one():
            empty.arrive()


def _epilogue(w: Warp, out: TileArray, acc: TileArray, tile: int, slip: WgmmaSlip) -> None:
    """The result from registers through shared memory to global memory; one thread of the first warp stores it."""
    s = WgmmaSlip
    threads = 32 * (MATH + 1) if slip is s.SYNC_COUNTS_LOAD else 32 * MATH
    if w.index == 0 and slip is not s.NO_STORE_WAIT:
        with w.elect_one():
            w.wait_group(Engine.BULK, 0)
    if slip is not s.NO_SYNC_AFTER_STORE_WAIT:
        w.bar_sync(GROUP, threads)
    w.read(acc[w.index], (tile + 1) * STEPS - 1)
    w.write(out[w.index], tile)
    if slip is not s.NO_FENCE:
        w.fence(Fence.PROXY_ASYNC)
    if slip is not s.NO_SYNC_BEFORE_STORE:
        w.bar_sync(GROUP, threads)
    if w.index == 0:
        with w.elect_one():
            for part in range(MATH):
                w.async_read(Engine.BULK, out[part], tile)
            if slip is not s.NO_STORE_COMMIT:
                w.commit(Engine.BULK)
            if tile == TILES - 1:
                w.wait_group(Engine.BULK, 0)
