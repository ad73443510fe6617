"""Warp-specialised kernels of Triton and Gluon, right ones and ones that hang: ``python ws_kernels.py NAME``."""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def tws_gemm(a, b, c, n, k, height: tl.constexpr, width: tl.constexpr, depth: tl.constexpr, stages: tl.constexpr):
    acc = tl.zeros((height, width), dtype=tl.float32)
    for step in tl.range(0, tl.cdiv(k, depth), warp_specialize=True, num_stages=stages):
        left = a.load([tl.program_id(0) * height, step * depth])
        right = b.load([tl.program_id(1) * width, step * depth])
        acc = tl.dot(left, right.T, acc)
    rows = tl.program_id(0) * height + tl.arange(0, height)
    columns = tl.program_id(1) * width + tl.arange(0, width)
    tl.store(c + rows[:, None] * n + columns[None, :], acc.to(tl.float16))


@triton.jit
def tws_gemm_desc(a, b, c, n, k, height: tl.constexpr, width: tl.constexpr, depth: tl.constexpr, stages: tl.constexpr):
    acc = tl.zeros((height, width), dtype=tl.float32)
    for step in tl.range(0, tl.cdiv(k, depth), warp_specialize=True, num_stages=stages):
        left = a.load([tl.program_id(0) * height, step * depth])
        right = b.load([tl.program_id(1) * width, step * depth])
        acc = tl.dot(left, right.T, acc)
    c.store([tl.program_id(0) * height, tl.program_id(1) * width], acc.to(tl.float16))


@triton.jit
def tws_persistent(
    a, b, c, m, n, k, height: tl.constexpr, width: tl.constexpr, depth: tl.constexpr, flat: tl.constexpr
):
    tiles_n = tl.cdiv(n, width)
    tiles = tl.cdiv(m, height) * tiles_n
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=flat, warp_specialize=True):
        row, column = tile // tiles_n * height, tile % tiles_n * width
        acc = tl.zeros((height, width), dtype=tl.float32)
        for step in range(tl.cdiv(k, depth)):
            acc = tl.dot(a.load([row, step * depth]), b.load([column, step * depth]).T, acc)
        c.store([row, column], acc.to(tl.float16))


@triton.jit
def tws_attention(q, k, v, o, count, rows: tl.constexpr, width: tl.constexpr, columns: tl.constexpr):
    first = tl.program_id(0) * rows
    query = q.load([first, 0])
    most = tl.full((rows,), -1e30, dtype=tl.float32)
    total = tl.zeros((rows,), dtype=tl.float32)
    acc = tl.zeros((rows, width), dtype=tl.float32)
    for step in tl.range(0, count, columns, warp_specialize=True, num_stages=2):
        score = tl.dot(query, k.load([step, 0]).T)
        now = tl.maximum(most, tl.max(score, 1))
        weight = tl.exp2(score - now[:, None])
        scale = tl.exp2(most - now)
        total = total * scale + tl.sum(weight, 1)
        acc = tl.dot(weight.to(tl.float16), v.load([step, 0]), acc * scale[:, None])
        most = now
    lines = first + tl.arange(0, rows)
    tl.store(o + lines[:, None] * width + tl.arange(0, width)[None, :], (acc / total[:, None]).to(tl.float16))


@gluon.jit
def ring(STAGES: gl.constexpr, COUNT: gl.constexpr):
    bars = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(bars.index(i), count=COUNT)
    return bars


@gluon.jit
def _scale_load(x, y, bars, tiles, out, row, count, BLOCK_Y: gl.constexpr, WRONG: gl.constexpr):
    full, empty, ready, free = bars
    stages: gl.constexpr = tiles.shape[0]
    nbytes: gl.constexpr = x.block_type.nbytes + (16 if WRONG == 2 else 0)
    for i in range(count + 1 if WRONG == 7 else count):
        at = i % stages
        if WRONG == 4:
            mbarrier.wait(empty.index(at), i // stages & 1)
        else:
            mbarrier.wait(empty.index(at), i // stages & 1 ^ 1)
        mbarrier.expect(full.index(at), nbytes)
        tma.async_copy_global_to_shared(x, [row, i * BLOCK_Y], full.index(at), tiles.index(at))


@gluon.jit
def _scale_store(x, y, bars, tiles, out, row, count, BLOCK_Y: gl.constexpr, WRONG: gl.constexpr):
    full, empty, ready, free = bars
    stages: gl.constexpr = out.shape[0]
    for i in range(count + 1 if WRONG == 3 else count):
        mbarrier.wait(ready.index(i % stages), i // stages & 1)
        tma.async_copy_shared_to_global(y, [row, i * BLOCK_Y], out.index(i % stages))
        tma.store_wait(0)
        if WRONG == 5:
            mbarrier.arrive(free.index(i % stages), count=1, pred=i != 4)
        else:
            mbarrier.arrive(free.index(i % stages), count=1)


@gluon.jit
def _scale_compute(bars, tiles, out, count, factor, layout: gl.constexpr, WRONG: gl.constexpr):
    full, empty, ready, free = bars
    stages: gl.constexpr = tiles.shape[0]
    outs: gl.constexpr = out.shape[0]
    for i in range(count):
        mbarrier.wait(full.index(i % stages), i // stages & 1)
        value = tiles.index(i % stages).load(layout)
        fence_async_shared()
        if WRONG == 1:
            mbarrier.arrive(empty.index(i % stages), count=1, pred=i != 5)
        else:
            mbarrier.arrive(empty.index(i % stages), count=1)
        mbarrier.wait(free.index(i % outs), i // outs & 1 ^ 1)
        out.index(i % outs).store(value * factor)
        fence_async_shared()
        mbarrier.arrive(ready.index(i % outs), count=1)


@gluon.jit
def gws_scale(
    x, y, columns, factor, BLOCK_X: gl.constexpr, BLOCK_Y: gl.constexpr, STAGES: gl.constexpr, WRONG: gl.constexpr
):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])
    count_of_empty: gl.constexpr = 2 if WRONG == 6 else 1
    bars = (ring(STAGES, 1), ring(STAGES, count_of_empty), ring(2, 1), ring(2, 1))
    tiles = gl.allocate_shared_memory(x.dtype, [STAGES, BLOCK_X, BLOCK_Y], x.layout)
    out = gl.allocate_shared_memory(y.dtype, [2, BLOCK_X, BLOCK_Y], y.layout)
    row, count = gl.program_id(0) * BLOCK_X, gl.cdiv(columns, BLOCK_Y)
    gl.warp_specialize(
        [
            (_scale_compute, (bars, tiles, out, count, factor, layout, WRONG)),
            (_scale_load, (x, y, bars, tiles, out, row, count, BLOCK_Y, WRONG)),
            (_scale_store, (x, y, bars, tiles, out, row, count, BLOCK_Y, WRONG)),
        ],
        [1, 1],
        [24, 24],
    )


@gluon.jit
def _gemm_load(a, b, bars, a_tiles, b_tiles, row, column, k, WRONG: gl.constexpr):
    full, empty = bars
    stages: gl.constexpr = a_tiles.shape[0]
    depth: gl.constexpr = a.block_shape[1]
    nbytes: gl.constexpr = a.block_type.nbytes + b.block_type.nbytes
    for i in range(gl.cdiv(k, depth)):
        at = i % stages
        mbarrier.wait(empty.index(at), i // stages & 1 ^ 1)
        mbarrier.expect(full.index(at), nbytes)
        tma.async_copy_global_to_shared(a, [row, i * depth], full.index(at), a_tiles.index(at))
        if WRONG == 8:
            tma.async_copy_global_to_shared(b, [column, i * depth], full.index(at), b_tiles.index(at), pred=i != 6)
        else:
            tma.async_copy_global_to_shared(b, [column, i * depth], full.index(at), b_tiles.index(at))


@gluon.jit
def _gemm_wgmma(c, bars, a_tiles, b_tiles, row, column, count, layout: gl.constexpr, WRONG: gl.constexpr):
    full, empty = bars
    stages: gl.constexpr = a_tiles.shape[0]
    height: gl.constexpr = a_tiles.shape[1]
    width: gl.constexpr = b_tiles.shape[1]
    sums = gl.zeros([height, width], gl.float32, layout)
    for i in range(count):
        at = i % stages
        mbarrier.wait(full.index(at), i // stages & 1)
        sums = warpgroup_mma(a_tiles.index(at), b_tiles.index(at).permute((1, 0)), sums, is_async=True)
        sums = warpgroup_mma_wait(num_outstanding=1, deps=(sums,))
        if WRONG == 9:
            mbarrier.arrive(empty.index((i - 1) % stages), count=1, pred=i > 1)
        else:
            mbarrier.arrive(empty.index((i - 1) % stages), count=1, pred=i > 0)
    sums = warpgroup_mma_wait(num_outstanding=0, deps=(sums,))
    out = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    out.store(sums.to(c.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(c, [row, column], out)
    tma.store_wait(0)


@gluon.jit
def gws_gemm(a, b, c, n, k, STAGES: gl.constexpr, WRONG: gl.constexpr):
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
            (_gemm_wgmma, (c, bars, a_tiles, b_tiles, row, column, count, layout, WRONG)),
            (_gemm_load, (a, b, bars, a_tiles, b_tiles, row, column, k, WRONG)),
        ],
        [1],
        [40],
    )


def _triton_map(tensor, block):
    return TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), block)


def _gluon_map(tensor, block):
    kind = {torch.float16: gl.float16, torch.float32: gl.float32}[tensor.dtype]
    layout = gl.NVMMASharedLayout.get_default_for(block, kind)
    return GluonDescriptor(tensor, list(tensor.shape), list(tensor.stride()), block, layout)


def _gemm(kernel, rows, stages, desc=False, warps=4, extra=(), wide=128):
    def make(new):
        a, b, c = (new((size, width), torch.float16, 1) for size, width in ((256, 512), (256, 512), (256, 256)))
        more = tuple(new((8,), torch.int32, 0) if each is None else each for each in extra)
        maps = _triton_map(a, [rows, 64]), _triton_map(b, [wide, 64])
        to = _triton_map(c, [rows, wide]) if desc else c
        args = (*maps, to, *more, 256, 512, rows, wide, 64, stages)
        return kernel, args, (256 // rows, 256 // wide), {"num_warps": warps, "num_stages": 3}, (c, 512.0)

    return make


def _persistent(rows, flat, warps=4):
    def make(new):
        a, b, c = (new((size, width), torch.float16, 1) for size, width in ((512, 256), (256, 256), (512, 256)))
        args = (_triton_map(a, [rows, 64]), _triton_map(b, [128, 64]), _triton_map(c, [rows, 128]))
        return tws_persistent, (*args, 512, 256, 256, rows, 128, 64, flat), (3,), {"num_warps": warps}, (c, 256.0)

    return make


def _attention(rows, warps=4):
    def make(new):
        q, k, v, o = (new((512, 64), torch.float16, 1) for _ in range(4))
        maps = _triton_map(q, [rows, 64]), _triton_map(k, [64, 64]), _triton_map(v, [64, 64]), o
        return tws_attention, (*maps, 512, rows, 64, 64), (512 // rows,), {"num_warps": warps}, (o, 1.0)

    return make


def _scale(wrong):
    def make(new):
        x, y = new((64, 1024), torch.float32, 1), new((64, 1024), torch.float32, 1)
        args = (_gluon_map(x, [32, 64]), _gluon_map(y, [32, 64]), 1024, 2.0, 32, 64, 3, WRONG[wrong])
        return gws_scale, args, (2,), {"num_warps": 4, "maxnreg": 128}, (y, 2.0)

    return make


def _gluon_gemm(wrong):
    def make(new):
        a, b, c = (new((size, width), torch.float16, 1) for size, width in ((128, 1024), (256, 1024), (128, 256)))
        args = (_gluon_map(a, [64, 64]), _gluon_map(b, [128, 64]), _gluon_map(c, [64, 128]), 256, 1024, 4, WRONG[wrong])
        return gws_gemm, args, (4,), {"num_warps": 4, "maxnreg": 168}, (c, 1024.0)

    return make


WRONG = {
    name: number
    for number, name in enumerate(
        ("right", "arrive", "bytes", "wait", "parity", "store", "count", "load", "copy", "release")
    )
}

CASES = {
    "tws_gemm64": _gemm(tws_gemm, 64, 3),
    "tws_gemm128": _gemm(tws_gemm, 128, 3),
    "tws_gemm64_s2": _gemm(tws_gemm, 64, 2),
    "tws_gemm64_n64": _gemm(tws_gemm, 64, 4, wide=64),
    "tws_gemm128_w8": _gemm(tws_gemm, 128, 3, warps=8),
    "tws_desc64": _gemm(tws_gemm_desc, 64, 3, desc=True),
    "tws_persistent": _persistent(64, False),
    "tws_attention64": _attention(64),
    "tws_attention128": _attention(128),
    **{
        f"gws_scale_{wrong}": _scale(wrong)
        for wrong in ("right", "arrive", "bytes", "wait", "parity", "store", "count", "load")
    },
    **{f"gws_gemm_{wrong}": _gluon_gemm(wrong) for wrong in ("right", "copy", "release")},
}


def main(name: str) -> None:
    def new(shape, kind, value):
        return torch.full(shape, value, dtype=kind, device="cuda")

    def allocate(size, alignment, stream):
        return torch.empty(size, dtype=torch.int8, device="cuda")

    triton.set_allocator(allocate)
    kernel, args, grid, options, (out, expected) = CASES[name](new)
    torch.cuda.synchronize()
    kernel[grid](*args, **options)
    torch.cuda.synchronize()
    print(name, "right" if bool((out == expected).all()) else "wrong", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

# ruff: noqa: N803, RUF059  (constants of Gluon have such names)
