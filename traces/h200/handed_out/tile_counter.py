"""On a GPU with Triton and PyTorch: a persistent GEMM that takes tiles from an atomic counter.

    pip install 'pipesim[gpu]' triton torch
    pipesim record --launches 5 --diff --out tiles -- python tile_counter.py

Each trace has `handed_out` in its metadata (tiles that rise, not all of them), and conforms; the error of the results
that is printed is below 1. `gemm_dynamic-8` is of `tile_counter.py 8`: a grid of 8 CTAs, each with more tiles.

"""

import sys

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def gemm_dynamic(a, b, c, counter, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    tile = tl.atomic_add(counter, 1)
    while tile < tiles_m * tiles_n:
        row, column = tile // tiles_n * BM, tile % tiles_n * BN
        sums = tl.zeros((BM, BN), dtype=tl.float32)
        for i in range(tl.cdiv(k, BK)):
            sums = tl.dot(a.load([row, i * BK]), b.load([column, i * BK]).T, sums)
        c.store([row, column], sums.to(tl.float16))
        tile = tl.atomic_add(counter, 1)


ctas = int(sys.argv[1]) if sys.argv[1:] else 20
m = n = 1024
k = 512
a = torch.randn(m, k, device="cuda", dtype=torch.float16)
b = torch.randn(n, k, device="cuda", dtype=torch.float16)
for launch in range(6):
    c = torch.zeros(m, n, device="cuda", dtype=torch.float16)
    counter = torch.zeros(1, device="cuda", dtype=torch.int32)
    boxes = (a, [128, 64]), (b, [128, 64]), (c, [128, 128])
    maps = (TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), box) for tensor, box in boxes)
    gemm_dynamic[(ctas,)](*maps, counter, m, n, k, 128, 128, 64, num_warps=8)
    torch.cuda.synchronize()
    print(launch, (c.float() - a.float() @ b.float().T).abs().max().item(), counter.item())
