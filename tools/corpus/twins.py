"""PTX and launch files of pipesim's own kernels: the twins of both architectures, at a few sizes each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hwkernels.device.compile import compile_ptx
from hwkernels.device.sources import source_file
from hwkernels.twins import registered
from hwkernels.twins.launch_file import cleared_reports, launch_of, ptx_of
from pipesim.ptx.launch.values import Launch, Number, Parameter, Pointer, TensorMap
from pipesim.targets import find
from tools.corpus.built import Built

MAXIMUM_SHARED = 232_448  #: bytes that a CTA may have on sm_90 and sm_100

#: Twins of Hopper: the parameters that differ from the defaults.
HOPPER: Sequence[tuple[str, str, Mapping[str, int]]] = (
    ("producer_consumer", "producer_consumer", {}),
    ("producer_consumer_32_lanes", "producer_consumer", {"arrive_lanes": 32}),
    ("attention_sm90", "attention_sm90", {}),
    ("attention_sm90_fused", "attention_sm90_fused", {}),
    ("cluster_multicast", "cluster_multicast", {}),
    ("cluster_multicast_4", "cluster_multicast", {"cluster": 4}),
    ("epilogue_residual", "epilogue_residual", {}),
    ("gemm_sm90", "gemm_sm90", {}),
    ("gemm_sm90_lookahead", "gemm_sm90", {"lookahead": 1, "drain": 1}),
    ("persistent_scheduler", "persistent_scheduler", {}),
)


def twins(folder: Path) -> Iterator[str]:
    """All of them."""
    for each in (*hopper(), *blackwell()):
        each.save(folder)
        yield each.stem


def hopper() -> Iterator[Built]:
    """The twins that only need Hopper."""
    for name, kernel, changes in HOPPER:
        twin, params = registered(kernel), {**find(kernel).defaults, **changes}
        yield Built("sm_90a", name, ptx_of(twin, params), launch_of(twin, params))


def blackwell() -> Iterator[Built]:
    """The kernels that only Blackwell can run."""
    shared = {"ACCUMULATORS": 2, "CLC_STAGES": 2, "BLOCK_N": 64}
    gemm = (_map((300, 300), (64, 128), 2), _map((300, 104), (64, 64), 2), _map((104, 300), (32, 128), 2, "64B"))
    sizes = (_number(2), _number(5))
    yield _one("gemm_sm100", shared | {"RING_STAGES": 2, "K_GROUP": 2}, 224, (*gemm, _number(2), _number(3)), 6)
    yield _one("cutlass_sm100", shared | {"RING_STAGES": 3}, 256, (*gemm, *sizes), 6)
    blockwise = (_map((350, 200), (128, 128), 1), _map((350, 136), (128, 64), 1))
    scales = TensorMap("f32", (200, 3), (128, 1), (800,))
    tail = (scales, _map((136, 200), (32, 128), 2, "64B"), Pointer(), _number(3), _number(3))
    yield _one("gemm_sm100_blockwise", shared | {"RING_STAGES": 3}, 224, (*blockwise, *tail), 6)
    image = TensorMap("bf16", (72, 11, 13, 2), (64,), (144, 1584, 20592), (), "128B", pixels=128)
    weights = TensorMap("bf16", (72, 9, 96), (64, 1, 64), (144, 1296), (), "128B")
    outputs = (_map((96, 286), (32, 128), 2, "64B"),) * 2
    filters = tuple(_number(each) for each in (2, 18, 13, 11, 3, 2, 1, 1, 1))
    defines = shared | {"RING_STAGES": 3, "EPI_STAGES": 1, "RESIDUAL": 1, "FIRST_TILE_ONLY": 1}
    yield _one("conv_epilogue", defines, 256, (image, weights, *outputs, *filters, Number("f32", 3.0)), 6)
    fused = {"DEPTH": 128, "BLOCK_N": 128, "KV_STAGES": 3, "FUSED": 1, "QK_STAGES": 1, "PV_STAGES": 2}
    yield _attention("attention_sm100", fused)
    yield _attention("attention_sm100_split", fused | {"FUSED": 0, "QK_STAGES": 2, "KV_STAGES": 2})


def _attention(name: str, defines: Mapping[str, int]) -> Built:
    depth, rows, keys = defines["DEPTH"], 512, 8 * defines["BLOCK_N"]
    panels = depth // 64
    of_slice = panels // defines["QK_STAGES"]

    def of(length: int, box_rows: int, box_panels: int) -> TensorMap:
        return TensorMap("bf16", (64, length, panels), (64, box_rows, box_panels), (2 * depth, 128), (), "128B")

    block = defines["BLOCK_N"]
    maps = (of(rows, 128, of_slice), of(keys, block, of_slice), of(keys, block, panels), of(rows, 128, panels))
    arguments = (*maps, _number(8), _number(2), Number("f32", 0.125))
    return _one("attention_sm100", defines, 512, arguments, 2, as_name=name)


def _one(
    kernel: str,
    defines: Mapping[str, int],
    threads: int,
    arguments: Sequence[TensorMap | Number | Pointer],
    grid: int,
    as_name: str = "",
) -> Built:
    """A kernel of Blackwell with the parameters that end each list: deadline, reports, stop."""
    ptx = compile_ptx(source_file(f"{kernel}.cu"), {**defines, "PIPESIM_TRACE": 0}, "sm_100a")
    every = (*arguments, Number("u32", 2_000_000_000), cleared_reports(grid), Pointer())
    parameters = tuple(Parameter("", each) for each in every)
    launch = Launch(kernel, (grid, 1, 1), (threads, 1, 1), dynamic_shared=MAXIMUM_SHARED, parameters=parameters)
    return Built("sm_100a", as_name or kernel, ptx, launch)


def _map(dims: tuple[int, int], box: tuple[int, int], nbytes: int, swizzle: str = "128B") -> TensorMap:
    row = -(-dims[0] * nbytes // 16) * 16
    return TensorMap("bf16" if nbytes == 2 else "u8", dims, box, (row,), (), swizzle)


def _number(value: int) -> Number:
    return Number("u32", value)
