"""Kernels of Triton and Gluon that hang, on purpose: ``python triton_hangs.py NAME ...``, a name for each rank.

Their waits have no deadline, because a core dump of the hang is wanted: only ``make_dumps.py`` should run it.
"""

from __future__ import annotations

import os
import sys

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier


@triton.jit
def triton_lock_kept(y, lock, most):
    """The program that is the third to take the lock leaves with it; five others try to take it forever."""
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    taken = tl.atomic_add(lock + 1, 1)
    tl.store(y + tl.program_id(0), taken)
    if taken != most:
        tl.atomic_xchg(lock, 0)


@gluon.jit
def gluon_second_phase(y, steps):
    """All warps arrive once a step, in the first two of three steps: the third wait is for a phase without arrivals."""
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    for step in range(steps):
        mbarrier.arrive(bar, count=1, pred=step < 2)
        mbarrier.wait(bar, step & 1)
    mbarrier.invalidate(bar)
    gl.store(y, steps)


@gluon.jit
def _consume(y, tiles, buffer, full, empty):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    total = gl.zeros([128], gl.float32, layout)
    for tile in range(tiles):
        mbarrier.wait(full.index(tile % 2), (tile // 2) & 1)
        total += buffer.index(tile % 2).load(layout)
        mbarrier.arrive(empty.index(tile % 2), count=1, pred=tile != 5)
    gl.store(y + gl.arange(0, 128, layout=layout), total)


@gluon.jit
def _produce(x, tiles, buffer, full, empty):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [1], [0])
    for tile in range(tiles):
        mbarrier.wait(empty.index(tile % 2), ((tile // 2) & 1) ^ 1)
        buffer.index(tile % 2).store(gl.load(x + tile * 128 + gl.arange(0, 128, layout=layout)))
        mbarrier.arrive(full.index(tile % 2), count=1)


@gluon.jit
def gluon_missing_arrive(x, y, tiles):
    """Warp-specialised: the consumers do not give the stage of tile 5 back, so the producer waits for empty[1]."""
    buffer = gl.allocate_shared_memory(gl.float32, [2, 128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(2):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=1)
    gl.warp_specialize(
        [(_consume, (y, tiles, buffer, full, empty)), (_produce, (x, tiles, buffer, full, empty))], [1], [24]
    )


@gluon.jit
def _await_turn(turn, full):
    while gl.atomic_add(turn, 0) != gl.program_id(0):
        pass
    mbarrier.arrive(full, count=1)


@gluon.jit
def _take_turn(y, turn, full):
    mbarrier.wait(full, 0)
    gl.store(y + gl.program_id(0), 1)
    if gl.program_id(0) != 1:
        gl.atomic_xchg(turn, gl.program_id(0) + 1)


@gluon.jit
def gluon_turn(y, turn):
    """Warp-specialised: a warp waits for the turn of its CTA, others give it on, but those of CTA 1 do not."""
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    gl.warp_specialize([(_take_turn, (y, turn, full)), (_await_turn, (turn, full))], [1], [24])


def main(name: str) -> None:
    """Launch one of them, and wait for it."""
    x, y = torch.zeros(1 << 16, device="cuda"), torch.zeros(1 << 16, device="cuda")
    words = torch.zeros(64, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    match name:
        case "triton_lock_kept":
            triton_lock_kept[(8,)](words[8:], words, 2, num_warps=1)
        case "gluon_second_phase":
            gluon_second_phase[(1,)](words, 3, num_warps=4)
        case "gluon_missing_arrive":
            gluon_missing_arrive[(1,)](x, y, 12, num_warps=4)
        case "gluon_turn":
            gluon_turn[(4,)](words[8:], words, num_warps=4)
    print("launched", flush=True)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main(sys.argv[1 + int(os.environ.get("RANK", "0"))])
