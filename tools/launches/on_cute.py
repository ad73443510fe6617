"""A kernel in the CuTe DSL: one warp hands tiles to another one, through two mbarriers."""

from typing import Any

import cutlass
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

STEPS = 4


@cute.kernel
def handoff(x: cute.Tensor, y: cute.Tensor):
    """y = 2 x, of STEPS rows of 32."""
    storage = cutlass.utils.SmemAllocator()
    bars = storage.allocate_array(cutlass.Int64, 2)
    tile = storage.allocate_tensor(cutlass.Float32, cute.make_layout(32), 16)
    thread, _, _ = cute.arch.thread_idx()
    lane = thread % 32
    if thread == 0:
        cute.arch.mbarrier_init(bars, 32)
        cute.arch.mbarrier_init(bars + 1, 32)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    if thread < 32:
        for i in range(STEPS):
            cute.arch.mbarrier_wait(bars + 1, (i & 1) ^ 1)
            tile[lane] = x[i, lane]
            cute.arch.mbarrier_arrive(bars)
    else:
        for i in range(STEPS):
            cute.arch.mbarrier_wait(bars, i & 1)
            y[i, lane] = tile[lane] * 2.0
            cute.arch.mbarrier_arrive(bars + 1)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor):
    """Launch it with its two warps."""
    handoff(x, y).launch(grid=[1, 1, 1], block=[64, 1, 1])


def run(x: Any, y: Any) -> None:
    """Compile and launch it for two tensors of torch."""
    launch(from_dlpack(x), from_dlpack(y))
