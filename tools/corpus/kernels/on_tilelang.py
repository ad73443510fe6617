"""TileLang kernels of the corpus, written for it: ``python on_tilelang.py FOLDER`` writes the CUDA source of each.

Runs in the environment that has TileLang. Its compiler gives the loads to a warp group of their own on sm_90a and
sm_100a. What it makes of a launch is in the source: grid and arguments are those below.
"""

# mypy: ignore-errors
# An annotation of a kernel is a call, which its compiler reads.

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tilelang
import tilelang.language as T  # noqa: N812  # as all its users write it

ARCHITECTURES = ("sm_90a", "sm_100a")
SIZE = 512  #: rows, columns and depth of a product, and the length of a sequence
HEADS, WIDTH = 2, 64
SHAPE = (1, SIZE, HEADS, WIDTH)


def gemm(rows: int, columns: int, depth: int, stages: int, threads: int) -> Any:
    """C = A B, with a ring of ``stages`` k-steps."""

    @T.prim_func
    def kernel(
        a: T.Tensor((SIZE, SIZE), "float16"), b: T.Tensor((SIZE, SIZE), "float16"), c: T.Tensor((SIZE, SIZE), "float16")
    ):
        with T.Kernel(SIZE // columns, SIZE // rows, threads=threads) as (x, y):
            a_tile = T.alloc_shared((rows, depth), "float16")
            b_tile = T.alloc_shared((depth, columns), "float16")
            sums = T.alloc_fragment((rows, columns), "float")
            T.clear(sums)
            for k in T.Pipelined(SIZE // depth, num_stages=stages):
                T.copy(a[y * rows, k * depth], a_tile)
                T.copy(b[k * depth, x * columns], b_tile)
                T.gemm(a_tile, b_tile, sums)
            T.copy(sums, c[y * rows, x * columns])

    return kernel


def attention(rows: int, block: int, stages: int, threads: int) -> Any:
    """Attention without the scaling of its exponents."""

    @T.prim_func
    def kernel(
        q: T.Tensor(SHAPE, "float16"),
        k: T.Tensor(SHAPE, "float16"),
        v: T.Tensor(SHAPE, "float16"),
        o: T.Tensor(SHAPE, "float16"),
    ):
        with T.Kernel(SIZE // rows, HEADS, threads=threads) as (x, head):
            q_tile = T.alloc_shared([rows, WIDTH], "float16")
            k_tile, v_tile = T.alloc_shared([block, WIDTH], "float16"), T.alloc_shared([block, WIDTH], "float16")
            scores = T.alloc_fragment([rows, block], "float")
            weights = T.alloc_fragment([rows, block], "float16")
            sums = T.alloc_fragment([rows, WIDTH], "float")
            total, part = T.alloc_fragment([rows], "float"), T.alloc_fragment([rows], "float")
            T.copy(q[0, x * rows : (x + 1) * rows, head, :], q_tile)
            T.fill(sums, 0)
            T.fill(total, 0)
            for i in T.Pipelined(SIZE // block, num_stages=stages):
                T.copy(k[0, i * block : (i + 1) * block, head, :], k_tile)
                T.clear(scores)
                T.gemm(q_tile, k_tile, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(v[0, i * block : (i + 1) * block, head, :], v_tile)
                for r, s in T.Parallel(rows, block):
                    scores[r, s] = T.exp2(scores[r, s])
                T.reduce_sum(scores, part, dim=1)
                for r in T.Parallel(rows):
                    total[r] = total[r] + part[r]
                T.copy(scores, weights)
                T.gemm(weights, v_tile, sums, policy=T.GemmWarpPolicy.FullRow)
            for r, s in T.Parallel(rows, WIDTH):
                sums[r, s] /= total[r]
            T.copy(sums, o[0, x * rows : (x + 1) * rows, head, :])

    return kernel


KERNELS: Mapping[str, Callable[[], Any]] = {
    "gemm_s3": lambda: gemm(128, 128, 64, 3, 128),
    "gemm_s2_wide": lambda: gemm(128, 256, 64, 2, 256),
    "attention_s2": lambda: attention(64, 64, 2, 128),
    "attention_s1": lambda: attention(128, 128, 1, 256),
}


def main(folder: Path) -> None:
    """Write NAME-ARCH.cu for each."""
    folder.mkdir(parents=True, exist_ok=True)
    for arch in ARCHITECTURES:
        target = tilelang.tvm.target.Target({"kind": "cuda", "arch": arch})
        for name, make in KERNELS.items():
            with target:
                made = tilelang.lower(make(), target=target)
            (folder / f"{name}-{arch}.cu").write_text(made.kernel_source, encoding="utf-8")
            print(f"{name}-{arch}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
