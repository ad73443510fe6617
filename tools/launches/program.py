"""A program as users have them: torch, Triton, Gluon, ``cuda.core``, the CuTe DSL, and a CUDA graph.

``pipesim launches --check -- python tools/launches/program.py`` catches it. It prints a hash of each result, so that
two runs can be compared. It needs a Hopper GPU, torch, Triton and cuda.core; a part that cannot run is named.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("mixed.cu")


def digest(tensor: Any) -> str:
    """A hash of a tensor's bytes."""
    import torch

    return hashlib.sha256(tensor.contiguous().view(torch.uint8).cpu().numpy().tobytes()).hexdigest()[:16]


def with_torch() -> str:
    """A matrix product of cuBLAS and a prebuilt kernel: neither has PTX to be had."""
    import torch

    torch.manual_seed(1)
    a = torch.randn(512, 512, device="cuda", dtype=torch.float16)
    return digest(torch.relu(a @ a))


def with_triton() -> str:
    """A GEMM with tensor maps, of two shapes."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    from tools.launches.on_triton import gemm_tma

    torch.manual_seed(2)
    found = []
    for k in (256, 512):
        a, b = (torch.randn(256, k, device="cuda", dtype=torch.float16) for _ in range(2))
        c = torch.empty(256, 256, device="cuda", dtype=torch.float16)
        maps = [TensorDescriptor.from_tensor(each, [128, box]) for each, box in ((a, 64), (b, 64), (c, 128))]
        for _ in range(3):
            gemm_tma[(4,)](*maps, 256, k, 128, 128, 64)
        found.append(digest(c))
    return " ".join(found)


def with_gluon() -> str:
    """A ring of tiles with mbarriers that the author wrote."""
    import torch

    from tools.launches.on_triton import gluon_scale, scale_maps

    x = torch.arange(256 * 512, device="cuda", dtype=torch.float32).reshape(256, 512)
    y = torch.empty_like(x)
    gluon_scale[(8,)](*scale_maps(x, y), 512, 2.0, 32, 64, 3)
    return digest(y)


def with_core() -> str:
    """A kernel of ours, compiled by NVRTC through ``cuda.core``, with parameters of every kind."""
    from tools.launches.mixed import Mixed

    mixed = Mixed()
    return f"{hashlib.sha256(mixed.run()).hexdigest()[:16]}"


def with_graph() -> str:
    """The Triton kernel once more, in a CUDA graph that is run twice."""
    import torch

    from tools.launches.on_triton import ring_sum

    x = torch.arange(4096, device="cuda", dtype=torch.float32)
    y = torch.zeros(4, device="cuda", dtype=torch.float32)
    ring_sum[(4,)](x, y, 1024, 256)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ring_sum[(4,)](x, y, 1024, 128)
    graph.replay()
    graph.replay()
    return digest(y)


def with_cute() -> str:
    """A kernel in the CuTe DSL, where it is installed."""
    import torch

    try:
        from tools.launches import on_cute
    except ImportError as error:
        return f"not run: {error}"
    x = torch.arange(128, device="cuda", dtype=torch.float32).reshape(4, 32)
    y = torch.zeros_like(x)
    on_cute.run(x, y)
    torch.cuda.synchronize()
    return digest(y)


PARTS: dict[str, Callable[[], str]] = {
    "torch": with_torch,
    "triton": with_triton,
    "gluon": with_gluon,
    "cuda.core": with_core,
    "graph": with_graph,
    "CuTe DSL": with_cute,
}


def main(names: list[str]) -> int:
    """Run the parts that are named, all of them without a name."""
    status = 0
    for name in names or PARTS:
        try:
            print(f"{name}: {PARTS[name]()}", flush=True)
        except Exception as error:  # noqa: BLE001  # a framework may be missing or of another version
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            status = 1
    return status


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    raise SystemExit(main(sys.argv[1:]))
