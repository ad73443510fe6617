"""A kernel of the CuTe DSL that hangs, on purpose: ``CUTE_DSL_ARCH=sm_90a python cute_hangs.py FOLDER`` compiles it.

That takes no GPU. ``make_dumps.py --cubins FOLDER`` has it run by ``run_cubin.cpp``, on a machine without the DSL.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

os.environ |= {"CUTE_DSL_KEEP": "ptx,cubin", "CUTE_DSL_DUMP_DIR": sys.argv[1], "CUTE_DSL_LINEINFO": "1"}

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64
from cutlass.cute.runtime import make_fake_compact_tensor

STAGES, ROWS = 3, 128


@cute.kernel
def cute_missing_arrive(x: cute.Tensor, y: cute.Tensor, tiles: Int32):
    """Tile 4 has 96 rows: warp 3 does not give its stage back, and the producer, warp 4, waits for empty[1]."""
    thread, _, _ = cute.arch.thread_idx()
    lane = thread % 32
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    memory = cutlass.memory.SmemAllocator()
    full = memory.allocate_array(Int64, STAGES)
    empty = memory.allocate_array(Int64, STAGES)
    buffer = memory.allocate_tensor(Float32, cute.make_layout((ROWS, STAGES)), 128)
    if thread == 0:
        for each in cutlass.range_constexpr(STAGES):
            cute.arch.mbarrier_init(full + each, 32)
            cute.arch.mbarrier_init(empty + each, 4)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    if warp == 4:
        for tile in cutlass.range(tiles, unroll=1):
            stage, lap = tile % STAGES, tile // STAGES
            cute.arch.mbarrier_wait(empty + stage, (lap & 1) ^ 1)
            for part in cutlass.range_constexpr(ROWS // 32):
                buffer[lane + 32 * part, stage] = x[tile * ROWS + lane + 32 * part]
            cute.arch.mbarrier_arrive(full + stage)
    else:
        total = Float32(0)
        for tile in cutlass.range(tiles, unroll=1):
            stage, lap = tile % STAGES, tile // STAGES
            cute.arch.mbarrier_wait(full + stage, lap & 1)
            total += buffer[thread, stage]
            cute.arch.sync_warp()
            rows = 96 if tile % 6 == 4 else ROWS
            if lane == 0 and warp * 32 < rows:
                cute.arch.mbarrier_arrive(empty + stage)
        y[thread] = total


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, tiles: Int32):
    """One CTA, as ``run_cubin.cpp`` launches it."""
    cute_missing_arrive(x, y, tiles).launch(grid=(1, 1, 1), block=(160, 1, 1))


def main(folder: Path) -> None:
    """Write the cubin and its PTX."""
    tensors = [make_fake_compact_tensor(Float32, (1 << 14,), stride_order=(0,)) for _ in range(2)]
    cute.compile(launch, *tensors, Int32(64))
    for kind in ("cubin", "ptx"):
        (made,) = folder.glob(f"cutlass_launch*.{kind}")
        shutil.move(made, folder / f"cute_missing_arrive.{kind}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
