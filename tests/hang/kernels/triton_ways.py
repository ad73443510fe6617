"""More kernels of Triton that hang, on purpose: ``python triton_ways.py NAME``, in a CUDA graph and warp-specialised.

As those of ``triton_hangs.py``, whose dumps know its size. Only ``make_dumps.py`` should run it.
"""

from __future__ import annotations

import os
import sys

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def triton_in_graph(y, turn, last):
    """The programs take turns, in the second launch, of a CUDA graph, up to ``last``, which does not give it on."""
    while tl.atomic_add(turn, 0) != tl.program_id(0):
        pass
    tl.store(y + tl.program_id(0), 1)
    if tl.program_id(0) != last:
        tl.atomic_xchg(turn, tl.program_id(0) + 1)


@triton.jit
def triton_warp_specialize(a, b, c, n, k, height: tl.constexpr, width: tl.constexpr, depth: tl.constexpr):
    """Warp-specialised by Triton: of 128 rows each of two groups of warps takes 64, and the producer expects the bytes
    of 64, but the tensor map that came from the host has a box of 128 (Triton 3.6, sm_90). With 64 rows it ends.
    """
    acc = tl.zeros((height, width), dtype=tl.float32)
    for step in tl.range(0, tl.cdiv(k, depth), warp_specialize=True, num_stages=3):
        left = a.load([tl.program_id(0) * height, step * depth])
        right = b.load([tl.program_id(1) * width, step * depth])
        acc = tl.dot(left, right.T, acc)
    rows = tl.program_id(0) * height + tl.arange(0, height)
    columns = tl.program_id(1) * width + tl.arange(0, width)
    tl.store(c + rows[:, None] * n + columns[None, :], acc.to(tl.float16))


def _launch_in_graph(y: torch.Tensor, turn: torch.Tensor) -> None:
    triton_in_graph[(8,)](y, turn, 99, num_warps=1)
    turn.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y.zero_()
        triton_in_graph[(8,)](y, turn, 2, num_warps=1)
    graph.replay()


def _multiply(rows: int) -> torch.Tensor:
    a, b, c = (torch.ones(n, k, dtype=torch.float16, device="cuda") for n, k in ((256, 512), (256, 512), (256, 256)))
    maps = TensorDescriptor.from_tensor(a, [rows, 64]), TensorDescriptor.from_tensor(b, [128, 64])
    triton_warp_specialize[(256 // rows, 2)](*maps, c, 256, 512, rows, 128, 64, num_warps=4, num_stages=3)
    return c


def main(name: str) -> None:
    """Launch one of them, and wait for it."""
    words = torch.zeros(64, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    match name:
        case "triton_in_graph":
            _launch_in_graph(words[8:], words)
            print("launched", flush=True)
            torch.cuda.synchronize()
        case "triton_warp_specialize":
            c = _multiply(int(os.environ.get("ROWS", "128")))
            print("right" if bool((c == 512).all()) else "wrong", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
