"""Kernels in Triton and Gluon that run on a Hopper GPU with Triton 3.6 and later."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
_store = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global


@triton.jit
def gemm_tma(a, b, c, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A B' with tensor maps; the compiler makes the ring."""
    row = tl.program_id(0) // (n // BN) * BM
    column = tl.program_id(0) % (n // BN) * BN
    sums = tl.zeros((BM, BN), tl.float32)
    for i in range(0, k, BK):
        sums = tl.dot(a.load([row, i]), b.load([column, i]).T, sums)
    c.store([row, column], sums.to(tl.float16))


@triton.jit
def ring_sum(x_at, y_at, count, BLOCK: tl.constexpr):
    """The sum of a row, with a reduction over shared memory."""
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, count, BLOCK):
        total += tl.load(x_at + row * count + i + tl.arange(0, BLOCK))
    tl.store(y_at + row, tl.sum(total, 0))


@gluon.jit
def gluon_scale(x, y, columns, factor, BLOCK_X: gl.constexpr, BLOCK_Y: gl.constexpr, STAGES: gl.constexpr):
    """Y = factor x, with a ring of tiles that loads ahead."""
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
    tiles = gl.allocate_shared_memory(x.dtype, [STAGES, BLOCK_X, BLOCK_Y], x.layout)
    out = gl.allocate_shared_memory(y.dtype, [BLOCK_X, BLOCK_Y], y.layout)
    row, count = gl.program_id(0) * BLOCK_X, gl.cdiv(columns, BLOCK_Y)
    for i in gl.static_range(STAGES - 1):
        mbarrier.expect(full.index(i), x.block_type.nbytes, pred=i < count)
        _load(x, [row, i * BLOCK_Y], full.index(i), tiles.index(i), pred=i < count)
    for i in range(count):
        ahead = i + STAGES - 1
        at = ahead % STAGES
        mbarrier.expect(full.index(at), x.block_type.nbytes, pred=ahead < count)
        _load(x, [row, ahead * BLOCK_Y], full.index(at), tiles.index(at), pred=ahead < count)
        mbarrier.wait(full.index(i % STAGES), i // STAGES & 1)
        value = tiles.index(i % STAGES).load(layout) * factor
        tma.store_wait(0)
        out.store(value)
        fence_async_shared()
        _store(y, [row, i * BLOCK_Y], out)
    tma.store_wait(0)
    for i in gl.static_range(STAGES):
        mbarrier.invalidate(full.index(i))


def scale_maps(x: Any, y: Any) -> tuple[Any, Any]:
    """The tensor descriptors of ``gluon_scale``."""
    layout = gl.NVMMASharedLayout.get_default_for([32, 64], gl.float32)
    first, second = (TensorDescriptor.from_tensor(each, [32, 64], layout) for each in (x, y))
    return first, second
