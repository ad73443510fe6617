"""Triton kernels of the corpus, written for it, and their launches. Runs in an environment that has Triton.

``python on_triton.py FOLDER`` compiles all of them with ``pipesim.launches.triton``; the tensors have no memory.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from pipesim import launches


@triton.jit
def gemm_tma(a, b, c, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr):
    """C = A * B^T, a tile a program; operands by tensor maps."""
    tiles_n = tl.cdiv(n, BN)
    row, column = tl.program_id(0) // tiles_n * BM, tl.program_id(0) % tiles_n * BN
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for i in tl.range(0, tl.cdiv(k, BK), warp_specialize=WS):
        sums = tl.dot(a.load([row, i * BK]), b.load([column, i * BK]).T, sums)
    c.store([row, column], sums.to(c.dtype))


@triton.jit
def gemm_persistent(
    a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FLATTEN: tl.constexpr, WS: tl.constexpr
):
    """As many programs as SMs; each takes the tiles that many apart."""
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=FLATTEN, warp_specialize=WS):
        row, column = tile // tiles_n * BM, tile % tiles_n * BN
        sums = tl.zeros((BM, BN), dtype=tl.float32)
        for i in range(tl.cdiv(k, BK)):
            sums = tl.dot(a.load([row, i * BK]), b.load([column, i * BK]).T, sums)
        c.store([row, column], sums.to(c.dtype))


@triton.jit
def gemm_device_maps(a_at, b_at, c_at, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The kernel makes its tensor maps itself."""
    a = tl.make_tensor_descriptor(a_at, [m, k], [k, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_at, [n, k], [k, 1], [BN, BK])
    c = tl.make_tensor_descriptor(c_at, [m, n], [n, 1], [BM, BN])
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        row, column = tile // tiles_n * BM, tile % tiles_n * BN
        sums = tl.zeros((BM, BN), dtype=tl.float32)
        for i in range(tl.cdiv(k, BK)):
            sums = tl.dot(a.load([row, i * BK]), b.load([column, i * BK]).T, sums)
        c.store([row, column], sums.to(tl.float16))


@triton.jit
def gemm_pointers(a_at, b_at, c_at, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Operands by cp.async."""
    tiles_n = tl.cdiv(n, BN)
    rows = tl.program_id(0) // tiles_n * BM + tl.arange(0, BM)
    columns = tl.program_id(0) % tiles_n * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a, b = a_at + rows[:, None] * k + depth[None, :], b_at + columns[None, :] * k + depth[:, None]
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(tl.cdiv(k, BK)):
        left = depth < k - i * BK
        sums = tl.dot(tl.load(a, mask=left[None, :], other=0.0), tl.load(b, mask=left[:, None], other=0.0), sums)
        a += BK
        b += BK
    c = c_at + rows[:, None] * n + columns[None, :]
    tl.store(c, sums.to(tl.float16), mask=(rows < m)[:, None] & (columns < n)[None, :])


@triton.jit
def grouped_gemm(a, b, c_at, sizes_at, groups, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Groups of rows of different length, which the kernel reads: its control flow is in memory."""
    tile = tl.program_id(0)
    first_tile, first_row = 0, 0
    tiles_n = tl.cdiv(n, BN)
    for group in range(groups):
        rows = tl.load(sizes_at + group)
        tiles = tl.cdiv(rows, BM) * tiles_n
        while tile >= first_tile and tile < first_tile + tiles:
            here = tile - first_tile
            row, column = first_row + here // tiles_n * BM, here % tiles_n * BN
            sums = tl.zeros((BM, BN), dtype=tl.float32)
            for i in range(tl.cdiv(k, BK)):
                sums = tl.dot(a.load([row, i * BK]), b.load([group * n + column, i * BK]).T, sums)
            at, columns = row + tl.arange(0, BM), column + tl.arange(0, BN)
            inside = (at < first_row + rows)[:, None] & (columns < n)[None, :]
            tl.store(c_at + at[:, None] * n + columns[None, :], sums.to(tl.float16), mask=inside)
            tile += tl.num_programs(0)
        first_tile += tiles
        first_row += rows


@triton.jit
def attention(
    q, k, v, out, length, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr,
    WS: tl.constexpr,
):  # fmt: skip
    """The forward pass with an online softmax; a block of queries a program."""
    first = tl.program_id(1) * length
    row = tl.program_id(0) * BM
    queries = q.load([first + row, 0])
    most = tl.full([BM], -1.0e30, dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    sums = tl.zeros([BM, D], dtype=tl.float32)
    end = row + BM if CAUSAL else length
    for at in tl.range(0, end, BN, warp_specialize=WS):
        scores = tl.dot(queries, k.load([first + at, 0]).T)
        if CAUSAL:
            seen = (row + tl.arange(0, BM))[:, None] >= (at + tl.arange(0, BN))[None, :]
            scores = tl.where(seen, scores, -1.0e30)
        newest = tl.maximum(most, tl.max(scores, 1) * scale)
        weights = tl.math.exp2(scores * scale - newest[:, None])
        correction = tl.math.exp2(most - newest)
        total = total * correction + tl.sum(weights, 1)
        sums = tl.dot(weights.to(tl.float16), v.load([first + at, 0]), sums * correction[:, None])
        most = newest
    out.store([first + row, 0], (sums / total[:, None]).to(out.dtype))


@triton.jit
def softmax(out_at, in_at, columns, BLOCK: tl.constexpr):
    """A row a program: reductions through shared memory and CTA barriers only."""
    at = tl.arange(0, BLOCK)
    row = tl.load(in_at + tl.program_id(0) * columns + at, mask=at < columns, other=-float("inf"))
    weights = tl.exp(row - tl.max(row, 0))
    tl.store(out_at + tl.program_id(0) * columns + at, weights / tl.sum(weights, 0), mask=at < columns)


@triton.jit
def split_k(a, b, c_at, locks_at, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    """Parts of K in different programs, added under a lock in global memory."""
    tiles_n = tl.cdiv(n, BN)
    row, column = tl.program_id(0) // tiles_n * BM, tl.program_id(0) % tiles_n * BN
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(tl.program_id(1), tl.cdiv(k, BK), SPLIT):
        sums = tl.dot(a.load([row, i * BK]), b.load([column, i * BK]).T, sums)
    c = c_at + (row + tl.arange(0, BM))[:, None] * n + (column + tl.arange(0, BN))[None, :]
    lock = locks_at + tl.program_id(0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(c, tl.load(c) + sums)
    tl.atomic_xchg(lock, 0)


def tensor(*shape: int, dtype: Any = torch.float16) -> Any:
    """A tensor without memory."""
    return torch.empty(*shape, dtype=dtype, device="meta")


def maps(m: int, n: int, k: int, bm: int, bn: int, bk: int, dtype: Any = torch.float16) -> list[Any]:
    """Descriptors of A (m, k), B (n, k) and C (m, n)."""
    sizes = (((m, k), (bm, bk), dtype), ((n, k), (bn, bk), dtype), ((m, n), (bm, bn), torch.float16))
    return [TensorDescriptor.from_tensor(tensor(*shape, dtype=kind), list(box)) for shape, box, kind in sizes]


def compiled(arch: str) -> Iterator[tuple[str, Any]]:
    """Each kernel at a few configurations, compiled where its turn comes, for an architecture."""
    blackwell = arch == "sm_100a"
    m = n = k = 1024

    def run(kernel: Any, *args: Any, grid: tuple[int, ...], **options: Any) -> Any:
        return lambda: launches.triton(kernel, *args, grid=grid, arch=arch, **options)

    tile = (128, 128, 64)
    for warps, stages in ((4, 3), (8, 4)):
        name = f"gemm_tma_w{warps}_s{stages}"
        operands = (*maps(m, n, k, *tile), n, k, *tile)
        yield name, run(gemm_tma, *operands, False, grid=(64,), num_warps=warps, num_stages=stages)
    if blackwell:
        operands = (*maps(m, n, k, *tile), n, k, *tile)
        yield "gemm_tma_ws", run(gemm_tma, *operands, True, grid=(64,), num_warps=4, num_stages=3)
    fp8 = (*maps(m, n, k, 128, 128, 128, torch.float8_e4m3fn), n, k, 128, 128, 128, False)
    yield "gemm_tma_fp8", run(gemm_tma, *fp8, grid=(64,), num_warps=4, num_stages=3)
    two = (*maps(m, n, k, 256, 128, 64), n, k, 256, 128, 64, False)
    yield "gemm_tma_2ctas", run(gemm_tma, *two, grid=(32,), num_warps=4, num_stages=3, num_ctas=2)
    for flatten, ws in ((False, False), (True, False), (True, True)):
        if ws and not blackwell:
            continue
        name = "gemm_persistent" + ("_flat" if flatten else "") + ("_ws" if ws else "")
        operands = (*maps(m, n, k, *tile), m, n, k, *tile)
        yield name, run(gemm_persistent, *operands, flatten, ws, grid=(20,), num_warps=4 if ws else 8, num_stages=3)
    memory = (tensor(m, k), tensor(n, k), tensor(m, n))
    yield "gemm_device_maps", run(gemm_device_maps, *memory, m, n, k, *tile, grid=(20,), num_warps=8, num_stages=3)
    yield "gemm_pointers", run(gemm_pointers, *memory, m, n, k, 128, 128, 32, grid=(64,), num_warps=4, num_stages=4)
    sizes = torch.tensor([100, 300, 0, 128], dtype=torch.int32)
    grouped = (*maps(528, 4 * n, k, *tile)[:2], tensor(528, n), sizes, 4, n, k, *tile)
    yield "grouped_gemm", run(grouped_gemm, *grouped, grid=(16,), num_warps=8, num_stages=3)
    split = (*maps(m, n, k, *tile)[:2], tensor(m, n, dtype=torch.float32), tensor(64, dtype=torch.int32), n, k, *tile)
    yield "split_k", run(split_k, *split, 4, grid=(64, 4), num_warps=8, num_stages=3)
    yield "softmax", run(softmax, tensor(64, 1000), tensor(64, 1000), 1000, 1024, grid=(64,), num_warps=8)
    for depth, causal, ws in ((64, False, False), (128, True, False), (128, False, True), (64, True, True)):
        if ws and not blackwell:
            continue
        length, block = 1024, 128 if depth == 64 or not blackwell else 64
        boxes = ((128, depth), (block, depth), (block, depth), (128, depth))
        tensors = [TensorDescriptor.from_tensor(tensor(8 * length, depth), list(box)) for box in boxes]
        name = f"attention_d{depth}" + ("_causal" if causal else "") + ("_ws" if ws else "")
        options = {"num_warps": 4 if ws else 8, "num_stages": 2 if depth == 128 else 3}
        yield name, run(attention, *tensors, length, 0.1, depth, 128, block, causal, ws, grid=(8, 8), **options)


def main(folder: Path) -> None:
    """Compile everything; a kernel that this Triton cannot compile is named, and the next one follows."""
    warnings.simplefilter("ignore")
    for arch in ("sm_90a", "sm_100a"):
        for name, make in compiled(arch):
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
    main(Path(sys.argv[1]))
