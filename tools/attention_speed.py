"""The speed of ``attention_sm90.cu`` beside PyTorch's attention: one run, one GPU, the same inputs, in turn.

``PYTHONPATH=. python3 tools/attention_speed.py --out FILE`` on a machine with a Hopper GPU, the CUDA packages and
PyTorch. Every number is the median of ``--repetitions`` launches, each between two CUDA events; results are compared
with float64.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import quantiles
from typing import Any

import numpy as np

from hwkernels.capture import CaptureRequest, TwinSubject
from hwkernels.capture.request import check_request
from hwkernels.device.launch import Gpu, require_gpu
from hwkernels.device.tensor_maps import encode
from hwkernels.recorder.layout import REPORT
from hwkernels.twins import registered
from hwkernels.twins.hopper.attention_sm90 import GROUP_ROWS, scale_of, shape_of, tensor_maps
from pipesim.targets import find

VARIANTS: dict[int, list[dict[str, int]]] = {
    128: [
        {"stages": 2, "block_n": 128},
        {"stages": 2, "block_n": 128, "qk_stages": 2},
        {"stages": 2, "block_n": 128, "pingpong": 0},
        {"stages": 4, "block_n": 64},
    ],
    64: [{"stages": 4, "block_n": 128}, {"stages": 4, "block_n": 128, "pingpong": 0}],
}
BACKENDS = ("FLASH_ATTENTION", "CUDNN_ATTENTION")
CHECKED_ROWS = 128
LIMIT_S = 5.0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--length", type=int, default=8192, help="queries, and keys, of a head")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    import torch
    import torch.nn.attention

    info = require_gpu()
    gpu = Gpu(info)
    said: dict[str, Any] = {"gpu": info.name, "driver": info.driver, "torch": str(torch.__version__),
                            "heads": options.heads, "length": options.length, "runs": []}  # fmt: skip
    for depth, variants in VARIANTS.items():
        torch.manual_seed(depth)
        shape = (1, options.heads, options.length, depth)
        q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        rows, expected = reference(torch, q, k, v)
        flop = 4 * options.heads * options.length**2 * depth
        timed: dict[str, Callable[[], int]] = {}
        found: dict[str, Any] = {}
        for name in BACKENDS:
            timed[f"torch {name}"], found[f"torch {name}"] = library(torch, name, q, k, v)
        for variant in variants:
            name = "attention_sm90 " + " ".join(f"{n}={x}" for n, x in variant.items())
            timed[name], found[name] = ours(torch, gpu, q, k, v, {"depth": depth, **variant})
        for name, took in measure(timed, options.repetitions).items():
            low, middle, high = quantiles(took, n=4) if took else (0, 0, 0)
            error = distance(torch, found[name], rows, expected) if took else float("nan")
            said["runs"].append({"name": name, "depth": depth, "median_ns": round(middle), "quartiles_ns": [low, high],
                                 "tflops": round(flop / middle / 1000, 1) if took else 0, "error": error})  # fmt: skip
            print(f"depth {depth:3}  {name:55} {middle / 1e6:8.3f} ms  {said['runs'][-1]['tflops']:6.1f} TFLOP/s  "
                  f"error {error:.2e}", flush=True)  # fmt: skip
    if options.out:
        options.out.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    return 0


def measure(timed: Mapping[str, Callable[[], int]], repetitions: int) -> dict[str, list[int]]:
    """Nanoseconds of every launch, all of them in turn, after three to warm up. One that fails is said and left out."""
    took: dict[str, list[int]] = {name: [] for name in timed}
    for repetition in range(repetitions + 3):
        for name, launch in timed.items():
            if repetition and not took[name]:
                continue
            try:
                took[name].append(launch())
            except Exception as error:  # noqa: BLE001  # a library that cannot do it is no reason to measure nothing
                print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    return {name: times[3:] for name, times in took.items()}


def library(torch: Any, backend: str, q: Any, k: Any, v: Any) -> tuple[Callable[[], int], list[Any]]:
    """A launch of PyTorch's attention, and where its result will be."""
    result: list[Any] = []

    def launch() -> int:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.nn.attention.sdpa_kernel(getattr(torch.nn.attention.SDPBackend, backend)):
            begin.record()
            found = torch.nn.functional.scaled_dot_product_attention(q, k, v)
            end.record()
        torch.cuda.synchronize()
        result[:] = [found]
        return round(float(begin.elapsed_time(end)) * 1e6)

    return launch, result


def ours(torch: Any, gpu: Gpu, q: Any, k: Any, v: Any, variant: dict[str, int]) -> tuple[Callable[[], int], list[Any]]:
    """The same of this kernel, without its recorder."""
    _, heads, length, depth = q.shape
    kernel = registered("attention_sm90")
    block_n = variant["block_n"]
    params = find(kernel.name).defaults | {"fused": 0, "kv_blocks": length // block_n} | variant
    tile = GROUP_ROWS * params["num_consumer"]
    subject = TwinSubject(kernel.name, heads * length // tile)
    request = CaptureRequest(subject, params)
    check_request(request)
    shape = shape_of(params, subject.grid)
    loaded = gpu.load(subject.build(request), shape.smem_bytes)
    result = torch.full_like(q, float("nan"))
    reports, stop = gpu.allocate(subject.grid * REPORT.itemsize), gpu.allocate(4)
    tensors = {"queries": q, "keys": k, "values": v}
    maps = [encode(m.at(tensors[m.of].data_ptr())) for m in tensor_maps(params, heads * length, heads * length)]
    arguments = [*maps, result.data_ptr(), np.uint32(params["kv_blocks"]), np.uint32(length // tile), scale_of(depth),
                 np.uint32(1_000_000_000), reports, stop]  # fmt: skip
    torch.cuda.synchronize()

    def launch() -> int:
        gpu.fill(reports, 0, subject.grid * REPORT.itemsize)
        gpu.fill(stop, 0, 4)
        gpu.synchronize()
        return gpu.launch_within(loaded, shape, arguments, LIMIT_S)

    return launch, [result]


def reference(torch: Any, q: Any, k: Any, v: Any) -> tuple[Any, Any]:
    """Some rows of every head, and what float64 says of them."""
    rows = torch.randperm(q.shape[2], device="cuda")[:CHECKED_ROWS]
    wide = q[0][:, rows].double()
    weights = torch.softmax(wide @ k[0].double().transpose(1, 2) / q.shape[3] ** 0.5, dim=2)
    return rows, weights @ v[0].double()


def distance(torch: Any, found: list[Any], rows: Any, expected: Any) -> float:
    """|found - expected| / |expected|."""
    return float(torch.linalg.norm(found[0][0][:, rows].double() - expected) / torch.linalg.norm(expected))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
