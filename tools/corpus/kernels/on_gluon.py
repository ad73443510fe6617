"""Gluon kernels of the corpus, written for it, and their launches. Runs in the environment that has Triton.

``python on_gluon.py FOLDER [NAME ...]`` compiles them with ``pipesim.launches.triton``; the tensors have no memory.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    clc,
    tcgen05_commit,
    tcgen05_mma,
)
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from pipesim import launches


@gluon.jit
def ring(STAGES: gl.constexpr, COUNT: gl.constexpr):
    """Barriers of a ring, each with its count."""
    bars = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(bars.index(i), count=COUNT)
    return bars


@gluon.jit
def scale_pipelined(x, y, columns, factor, BLOCK_X: gl.constexpr, BLOCK_Y: gl.constexpr, STAGES: gl.constexpr):
    """Y = factor * X by one partition: loads run ahead in a ring, stores follow in a ring of two."""
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])
    full = ring(STAGES, 1)
    tiles = gl.allocate_shared_memory(x.dtype, [STAGES, BLOCK_X, BLOCK_Y], x.layout)
    out = gl.allocate_shared_memory(y.dtype, [2, BLOCK_X, BLOCK_Y], y.layout)
    row, count = gl.program_id(0) * BLOCK_X, gl.cdiv(columns, BLOCK_Y)
    for i in gl.static_range(STAGES - 1):
        mbarrier.expect(full.index(i), x.nbytes_per_cta)
        tma.async_load(x, [row, i * BLOCK_Y], full.index(i), tiles.index(i))
    for i in range(count):
        ahead = i + STAGES - 1
        at = ahead % STAGES
        mbarrier.expect(full.index(at), x.nbytes_per_cta, pred=ahead < count)
        tma.async_load(x, [row, ahead * BLOCK_Y], full.index(at), tiles.index(at), pred=ahead < count)
        mbarrier.wait(full.index(i % STAGES), i // STAGES & 1)
        value = tiles.index(i % STAGES).load(layout) * factor
        tma.store_wait(1)
        out.index(i % 2).store(value)
        fence_async_shared()
        tma.async_store(y, [row, i * BLOCK_Y], out.index(i % 2))
    tma.store_wait(0)
    for i in gl.static_range(STAGES):
        mbarrier.invalidate(full.index(i))


@gluon.jit
def _scale_load(x, y, bars, tiles, out, row, count, BLOCK_Y: gl.constexpr):
    full, empty, ready, free = bars
    stages: gl.constexpr = tiles.shape[0]
    for i in range(count):
        at = i % stages
        mbarrier.wait(empty.index(at), i // stages & 1 ^ 1)
        mbarrier.expect(full.index(at), x.nbytes_per_cta)
        tma.async_load(x, [row, i * BLOCK_Y], full.index(at), tiles.index(at))


@gluon.jit
def _scale_store(x, y, bars, tiles, out, row, count, BLOCK_Y: gl.constexpr):
    full, empty, ready, free = bars
    stages: gl.constexpr = out.shape[0]
    for i in range(count):
        mbarrier.wait(ready.index(i % stages), i // stages & 1)
        tma.async_store(y, [row, i * BLOCK_Y], out.index(i % stages))
        tma.store_wait(0)
        mbarrier.arrive(free.index(i % stages), count=1)


@gluon.jit
def _scale_compute(bars, tiles, out, count, factor, layout: gl.constexpr):
    full, empty, ready, free = bars
    stages: gl.constexpr = tiles.shape[0]
    outs: gl.constexpr = out.shape[0]
    for i in range(count):
        mbarrier.wait(full.index(i % stages), i // stages & 1)
        value = tiles.index(i % stages).load(layout)
        fence_async_shared()
        mbarrier.arrive(empty.index(i % stages), count=1)
        mbarrier.wait(free.index(i % outs), i // outs & 1 ^ 1)
        out.index(i % outs).store(value * factor)
        fence_async_shared()
        mbarrier.arrive(ready.index(i % outs), count=1)


@gluon.jit
def scale_ws(x, y, columns, factor, BLOCK_X: gl.constexpr, BLOCK_Y: gl.constexpr, STAGES: gl.constexpr):
    """The same with a partition for loads, one for stores, and four warps that compute."""
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])
    bars = (ring(STAGES, 1), ring(STAGES, 1), ring(2, 1), ring(2, 1))
    tiles = gl.allocate_shared_memory(x.dtype, [STAGES, BLOCK_X, BLOCK_Y], x.layout)
    out = gl.allocate_shared_memory(y.dtype, [2, BLOCK_X, BLOCK_Y], y.layout)
    row, count = gl.program_id(0) * BLOCK_X, gl.cdiv(columns, BLOCK_Y)
    rest = (x, y, bars, tiles, out, row, count, BLOCK_Y)
    gl.warp_specialize(
        [(_scale_compute, (bars, tiles, out, count, factor, layout)), (_scale_load, rest), (_scale_store, rest)],
        [1, 1],
        [24, 24],
    )


@gluon.jit
def _gemm_load(a, b, bars, a_tiles, b_tiles, row, column, k):
    full, empty = bars
    stages: gl.constexpr = a_tiles.shape[0]
    depth: gl.constexpr = a.block_shape[1]
    for i in range(gl.cdiv(k, depth)):
        at = i % stages
        mbarrier.wait(empty.index(at), i // stages & 1 ^ 1)
        mbarrier.expect(full.index(at), a.nbytes_per_cta + b.nbytes_per_cta)
        tma.async_load(a, [row, i * depth], full.index(at), a_tiles.index(at))
        tma.async_load(b, [column, i * depth], full.index(at), b_tiles.index(at))


@gluon.jit
def _gemm_wgmma(c, bars, a_tiles, b_tiles, row, column, count, layout: gl.constexpr):
    full, empty = bars
    stages: gl.constexpr = a_tiles.shape[0]
    sums = gl.zeros([a_tiles.shape[1], b_tiles.shape[1]], gl.float32, layout)
    for i in range(count):
        at = i % stages
        mbarrier.wait(full.index(at), i // stages & 1)
        sums = warpgroup_mma(a_tiles.index(at), b_tiles.index(at).permute((1, 0)), sums, is_async=True)
        sums = warpgroup_mma_wait(num_outstanding=1, deps=(sums,))
        mbarrier.arrive(empty.index((i - 1) % stages), count=1, pred=i > 0)
    sums = warpgroup_mma_wait(num_outstanding=0, deps=(sums,))
    out = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    out.store(sums.to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [row, column], out)
    tma.store_wait(0)


@gluon.jit
def gemm_wgmma_ws(a, b, c, n, k, STAGES: gl.constexpr):
    """C = A * B^T on Hopper: one warp loads, a warp group multiplies and releases a stage one step later."""
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, b.block_shape[0], 16]
    )
    a_tiles = gl.allocate_shared_memory(a.dtype, [STAGES, a.block_shape[0], a.block_shape[1]], a.layout)
    b_tiles = gl.allocate_shared_memory(b.dtype, [STAGES, b.block_shape[0], b.block_shape[1]], b.layout)
    bars = (ring(STAGES, 1), ring(STAGES, 1))
    tiles_n = gl.cdiv(n, b.block_shape[0])
    row, column = gl.program_id(0) // tiles_n * a.block_shape[0], gl.program_id(0) % tiles_n * b.block_shape[0]
    count = gl.cdiv(k, a.block_shape[1])
    gl.warp_specialize(
        [
            (_gemm_wgmma, (c, bars, a_tiles, b_tiles, row, column, count, layout)),
            (_gemm_load, (a, b, bars, a_tiles, b_tiles, row, column, k)),
        ],
        [1],
        [40],
    )


@gluon.jit
def _tiles_load(a, b, c, bars, a_tiles, b_tiles, sums, tiles, tiles_n, count):
    full, empty, done, free = bars
    stages: gl.constexpr = a_tiles.shape[0]
    depth: gl.constexpr = a.block_shape[1]
    n = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        row, column = tile // tiles_n * a.block_shape[0], tile % tiles_n * b.block_shape[0]
        for i in range(count):
            at = n % stages
            mbarrier.wait(empty.index(at), n // stages & 1 ^ 1)
            mbarrier.expect(full.index(at), a.nbytes_per_cta + b.nbytes_per_cta)
            tma.async_load(a, [row, i * depth], full.index(at), a_tiles.index(at))
            tma.async_load(b, [column, i * depth], full.index(at), b_tiles.index(at))
            n += 1


@gluon.jit
def _tiles_mma(a, b, c, bars, a_tiles, b_tiles, sums, tiles, tiles_n, count):
    full, empty, done, free = bars
    stages: gl.constexpr = a_tiles.shape[0]
    n = 0
    m = 0
    for _tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        mbarrier.wait(free.index(m % 2), m // 2 & 1 ^ 1)
        for i in range(count):
            at = n % stages
            mbarrier.wait(full.index(at), n // stages & 1)
            tcgen05_mma(a_tiles.index(at), b_tiles.index(at).permute((1, 0)), sums.index(m % 2), use_acc=i > 0)
            tcgen05_commit(empty.index(at))
            n += 1
        tcgen05_commit(done.index(m % 2))
        m += 1


@gluon.jit
def _tiles_epilogue(a, b, c, bars, sums, tiles, tiles_n):
    full, empty, done, free = bars
    out = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    m = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        mbarrier.wait(done.index(m % 2), m // 2 & 1)
        value = sums.index(m % 2).load()
        mbarrier.arrive(free.index(m % 2), count=1)
        tma.store_wait(0)
        out.store(value.to(c.dtype))
        fence_async_shared()
        tma.async_store(c, [tile // tiles_n * c.block_shape[0], tile % tiles_n * c.block_shape[1]], out)
        m += 1
    tma.store_wait(0)


@gluon.jit
def gemm_tcgen05_persistent(a, b, c, m, n, k, STAGES: gl.constexpr):
    """C = A * B^T on Blackwell, persistent: a warp loads, one issues products, four write two accumulators in turn."""
    a_tiles = gl.allocate_shared_memory(a.dtype, [STAGES, a.block_shape[0], a.block_shape[1]], a.layout)
    b_tiles = gl.allocate_shared_memory(b.dtype, [STAGES, b.block_shape[0], b.block_shape[1]], b.layout)
    layout: gl.constexpr = TensorMemoryLayout([a.block_shape[0], b.block_shape[0]], col_stride=1)
    sums = allocate_tensor_memory(gl.float32, [2, a.block_shape[0], b.block_shape[0]], layout)
    bars = (ring(STAGES, 1), ring(STAGES, 1), ring(2, 1), ring(2, 1))
    tiles_n = gl.cdiv(n, b.block_shape[0])
    tiles = gl.cdiv(m, a.block_shape[0]) * tiles_n
    rest = (a, b, c, bars, a_tiles, b_tiles, sums, tiles, tiles_n, gl.cdiv(k, a.block_shape[1]))
    gl.warp_specialize(
        [(_tiles_epilogue, (a, b, c, bars, sums, tiles, tiles_n)), (_tiles_load, rest), (_tiles_mma, rest)],
        [1, 1],
        [24, 24],
    )


@gluon.jit
def gemm_clc(a, b, c, n, k, STAGES: gl.constexpr):
    """C = A * B^T on Blackwell, one partition: cluster launch control hands out the next tile while one is computed."""
    a_tiles = gl.allocate_shared_memory(a.dtype, [STAGES, a.block_shape[0], a.block_shape[1]], a.layout)
    b_tiles = gl.allocate_shared_memory(b.dtype, [STAGES, b.block_shape[0], b.block_shape[1]], b.layout)
    out = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    answer = gl.allocate_shared_memory(gl.int64, [2], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    layout: gl.constexpr = TensorMemoryLayout([a.block_shape[0], b.block_shape[0]], col_stride=1)
    sums = allocate_tensor_memory(gl.float32, [a.block_shape[0], b.block_shape[0]], layout)
    full, done, handed = ring(STAGES, 1), ring(1, 1), ring(1, 1)
    depth: gl.constexpr = a.block_shape[1]
    tiles_n, count = gl.cdiv(n, b.block_shape[0]), gl.cdiv(k, depth)
    tile, more, phase, loaded = gl.program_id(0), True, 0, 0
    while more:
        mbarrier.expect(handed.index(0), 16)
        clc.try_cancel(answer, handed.index(0))
        row, column = tile // tiles_n * a.block_shape[0], tile % tiles_n * b.block_shape[0]
        for i in range(count):
            at = loaded % STAGES
            mbarrier.expect(full.index(at), a.nbytes_per_cta + b.nbytes_per_cta)
            tma.async_load(a, [row, i * depth], full.index(at), a_tiles.index(at))
            tma.async_load(b, [column, i * depth], full.index(at), b_tiles.index(at))
            mbarrier.wait(full.index(at), loaded // STAGES & 1)
            tcgen05_mma(a_tiles.index(at), b_tiles.index(at).permute((1, 0)), sums, use_acc=i > 0)
            tcgen05_commit(done.index(0))
            mbarrier.wait(done.index(0), loaded & 1)
            loaded += 1
        tma.store_wait(0)
        out.store(sums.load().to(c.dtype))
        fence_async_shared()
        tma.async_store(c, [row, column], out)
        mbarrier.wait(handed.index(0), phase)
        phase ^= 1
        result = clc.load_result(answer)
        more = result.is_canceled()
        tile = result.program_id(0)
    tma.store_wait(0)


@gluon.jit
def _scale_watch(full, done_at, row, count):
    """Tell how many tiles have been loaded. No warp waits for it: the ring may be two laps on when it looks."""
    stages: gl.constexpr = full.shape[0]
    for i in range(count):
        mbarrier.wait(full.index(i % stages), i // stages & 1)
        gl.store(done_at + row, i + 1)


@gluon.jit
def scale_watched(x, y, done_at, columns, factor, BLOCK_X: gl.constexpr, BLOCK_Y: gl.constexpr, STAGES: gl.constexpr):
    """The same with one more partition, which watches the loads. It can hang, in few schedules: that is its purpose."""
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])
    bars = (ring(STAGES, 1), ring(STAGES, 1), ring(2, 1), ring(2, 1))
    tiles = gl.allocate_shared_memory(x.dtype, [STAGES, BLOCK_X, BLOCK_Y], x.layout)
    out = gl.allocate_shared_memory(y.dtype, [2, BLOCK_X, BLOCK_Y], y.layout)
    row, count = gl.program_id(0) * BLOCK_X, gl.cdiv(columns, BLOCK_Y)
    rest = (x, y, bars, tiles, out, row, count, BLOCK_Y)
    watched = (bars[0], done_at, gl.program_id(0), count)
    gl.warp_specialize(
        [
            (_scale_compute, (bars, tiles, out, count, factor, layout)),
            (_scale_load, rest),
            (_scale_store, rest),
            (_scale_watch, watched),
        ],
        [1, 1, 1],
        [24, 24, 24],
    )


def described(m: int, n: int, bm: int, bn: int, kind: Any = torch.float16) -> Any:
    """A descriptor of a tensor without memory."""
    names = {torch.float16: gl.float16, torch.float32: gl.float32}
    layout = gl.NVMMASharedLayout.get_default_for([bm, bn], names[kind])
    return TensorDescriptor.from_tensor(torch.empty(m, n, dtype=kind, device="meta"), [bm, bn], layout)


def compiled(arch: str) -> Iterator[tuple[str, Any]]:
    """Each kernel, compiled where its turn comes, for an architecture."""
    blackwell = arch == "sm_100a"
    m = n = k = 1024

    def run(kernel: Any, *args: Any, grid: tuple[int, ...], **options: Any) -> Any:
        return lambda: launches.triton(kernel, *args, grid=grid, arch=arch, **options)

    for block, stages in ((64, 3), (64, 2)):
        x, y = (described(256, 2048, 32, block, torch.float32) for _ in range(2))
        yield f"scale_pipelined_s{stages}", run(scale_pipelined, x, y, 2048, 2.0, 32, block, stages, grid=(8,))
        yield f"scale_ws_s{stages}", run(scale_ws, x, y, 2048, 2.0, 32, block, stages, grid=(8,), maxnreg=128)
    done = torch.empty(8, dtype=torch.int32, device="meta")
    x, y = (described(256, 512, 32, 64, torch.float32) for _ in range(2))
    yield "scale_watched", run(scale_watched, x, y, done, 512, 2.0, 32, 64, 3, grid=(8,), maxnreg=128)
    operands = described(m, k, 128, 64), described(n, k, 128, 64), described(m, n, 128, 128)
    if not blackwell:
        small = described(m, k, 64, 64), described(n, k, 128, 64), described(m, n, 64, 128)
        yield "gemm_wgmma_ws", run(gemm_wgmma_ws, *small, n, k, 4, grid=(128,), maxnreg=168)
        return
    yield "gemm_tcgen05", run(gemm_tcgen05_persistent, *operands, m, n, k, 4, grid=(20,), maxnreg=128)
    yield "gemm_clc", run(gemm_clc, *operands, n, k, 3, grid=(64,))


def main(folder: Path, names: list[str]) -> None:
    """Compile everything, or what is named; a kernel that Triton cannot compile is named, and the next one follows."""
    warnings.simplefilter("ignore")
    for arch in ("sm_90a", "sm_100a"):
        for name, make in compiled(arch):
            if names and name not in names:
                continue
            try:
                made = make()
            except Exception as error:  # noqa: BLE001  # whatever a compiler raises
                print(f"{name}-{arch}: {type(error).__name__}: {str(error)[:600]}", flush=True)
                continue
            ptx = made.ptx  # the same wherever the repository and the environment are
            for place in (Path(__file__).parents[3], Path(torch.__file__).parents[1]):
                ptx = ptx.replace(f"{place}/", "")
            launches.CompiledLaunch(f"{name}-{arch}", arch, ptx, made.launch).save(folder, force=True)
            print(f"{name}-{arch}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
