"""DeepGEMM's FP8 kernels as FlashInfer's package carries them, instantiated and compiled with nvcc."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pipesim.ptx.launch.values import Array, Content, Field, Launch, Number, Parameter, Pointer, Struct, TensorMap
from tools.corpus.corpus_kernel import CorpusKernel
from tools.corpus.environment import Environment, to_ptx

ENVIRONMENT = Environment("deep_gemm", ("--no-deps", "flashinfer-python"))
_SHARED = 220_000  #: bytes of dynamic shared memory: enough for each
_N, _K = 2048, 2048
_ROWS = (0, 300, 300, 900, 2048)  #: where the rows of each of four groups begin; one has none


class Instance(NamedTuple):
    """A kernel: rows of a tile, stages, CTAs that share copies, and the scheduler with its argument."""

    name: str
    rows: int
    stages: int
    multicast: int
    scheduler: str
    argument: str
    groups: int = 1


INSTANCES = (
    Instance("fp8_gemm", 128, 4, 1, "Normal", "NormalSchedulerInput"),
    Instance("fp8_gemm_multicast", 64, 5, 2, "Normal", "NormalSchedulerInput"),
    Instance("fp8_gemm_grouped", 128, 4, 1, "GroupedWithOffset", "GroupedWithOffsetSchedulerInput", 4),
)

_SOURCE = """#include <stdexcept>
#include <string>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>
#include <cute/arch/cluster_sm90.hpp>
#include <cute/arch/copy_sm90_desc.hpp>
#include <cute/arch/copy_sm90_tma.hpp>
#include "fp8_gemm_impl.cuh"
namespace deep_gemm {{
using Scheduler = SchedulerSelector<GemmType::{scheduler}, {n}, {k}, {rows}, 128, 128, {groups}, {multicast}>::type;
template __global__ void fp8_gemm_kernel<{n}, {k}, {rows}, 128, 128, {groups}, {stages}, 128, 128, {multicast},
    Scheduler, {argument}>(__nv_bfloat16*, float*, {argument}, const __grid_constant__ CUtensorMap,
    const __grid_constant__ CUtensorMap, const __grid_constant__ CUtensorMap, const __grid_constant__ CUtensorMap);
}}
"""


def deep_gemm(folder: Path) -> Iterator[str]:
    """Every instance."""
    packages = ENVIRONMENT.made()
    data = packages / "flashinfer" / "data"
    include = [data / "csrc" / "nv_internal" / "tensorrt_llm" / "deep_gemm", data / "cutlass" / "include"]
    for each in INSTANCES:
        source = ENVIRONMENT.folder / f"{each.name}.cu"
        source.write_text(_SOURCE.format(n=_N, k=_K, **each._asdict()), encoding="utf-8")
        try:
            ptx = to_ptx(source, "sm_90a", include)
        except subprocess.CalledProcessError as error:
            yield f"{each.name}: {error.stderr[:300]}"
            continue
        built = CorpusKernel("sm_90a", each.name, ptx, _launch(ptx, each))
        built.save(folder)
        yield built.stem


def _launch(ptx: str, each: Instance) -> Launch:
    entry, threads = re.search(r"\.entry (\w+)\(", ptx), re.search(r"\.maxntid (\d+)", ptx)
    assert entry is not None
    assert threads is not None
    offsets: Content = Pointer(contents=(Field(0, Array("s64", _ROWS)),) if each.groups > 1 else ())
    contents: tuple[Content, ...] = (
        Pointer(),
        Pointer(),
        Struct(16, (Field(0, Number("u32", _ROWS[-1])), Field(8, offsets))),
        TensorMap("u8", box=(128, each.rows)),
        TensorMap("u8", box=(128, 128)),
        TensorMap("f32", box=(each.rows, 1)),
        TensorMap("bf16", box=(128, each.rows)),
    )
    titles = ("d", "scales_b", "problem", "a", "b", "scales_a", "d")
    parameters = tuple(Parameter(title, content) for title, content in zip(titles, contents, strict=True))
    shape = (each.multicast, 1, 1)
    return Launch(entry[1], (132, 1, 1), (int(threads[1]), 1, 1), shape, _SHARED, 168, parameters=parameters)
