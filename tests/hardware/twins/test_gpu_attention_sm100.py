"""On a Hopper GPU: Blackwell's attention with each tcgen05 instruction replaced by what the PTX ISA says of it.

The kernel is the real file; ``without_tcgen05/tcgen05.cuh`` stands for the instructions of the real header, and waits
have more time (``mbarrier.cuh`` there). So the barriers of the kernel, its tensor maps, addresses, descriptors and
arithmetic run, against the protocol and against float64; the instructions themselves do not, nor is anything in flight.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from hwkernels.capture import CaptureRequest, TwinSubject
from hwkernels.capture.pipeline import capture_here
from hwkernels.device.bf16 import from_bf16, random_bf16, to_bf16
from hwkernels.device.launch import Shape, require_gpu
from hwkernels.device.sources import headers, source_file
from hwkernels.twins import REGISTRY
from hwkernels.twins.buffers import Input, Output, TensorMap
from hwkernels.twins.hopper.attention_sm90 import attention, scale_of
from hwkernels.twins.twin import Range, Twin
from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import TraceVerdict
from pipesim.errors import HardwareError, MissingExtraError
from pipesim.targets import find
from pipesim.trace.consistency import check_trace

NAME, ROWS, BF16, PANEL, TILES_OF_HEAD = "attention_sm100", 128, 2, 64, 2
EMULATED = Path(__file__).parent / "without_tcgen05"  #: headers, each of which includes the one that it replaces
SPLIT = {"fused": 0, "qk_stages": 2, "kv_stages": 2}
SMALL = {"fused": 0, "kv_stages": 3, "depth": 64, "block_n": 64, "pv_stages": 1, "kv_blocks": 8}


@dataclass(frozen=True)
class Emulated(Twin):
    """The kernel in a folder of its own, beside the header that stands for the real one."""

    folder: Path = Path()

    @property
    def source(self) -> Path:
        return self.folder / f"{NAME}.cu"

    @property
    def table_file(self) -> Path:
        return self.folder / f"{NAME}.table.h"


def arguments(params, grid, seed):
    """As for attention_sm90. With an odd seed the first block has the largest scores, so that O is never rescaled."""
    random, depth, panels = np.random.default_rng(seed), params["depth"], params["depth"] // PANEL
    rows, heads, keys = grid * 2 * ROWS, -(-grid // TILES_OF_HEAD), params["kv_blocks"] * params["block_n"]
    held = max(heads * keys, params["block_n"])
    q, k, v = (random_bf16(random, (n, depth)) for n in (rows, held, held))
    if seed % 2:
        k[: params["block_n"]] = to_bf16(8 * from_bf16(k[: params["block_n"]]))
    wide = [from_bf16(x).astype(np.float64) for x in (q, k, v)]
    of_head = TILES_OF_HEAD * 2 * ROWS
    expected = np.concatenate([
        attention(wide[0][h * of_head : (h + 1) * of_head], *(x[h * keys : (h + 1) * keys] for x in wide[1:]))
        for h in range(heads)
    ])  # fmt: skip

    def of(name, length, box_rows, box_panels):
        dims, strides = (PANEL, length, panels), (depth * BF16, PANEL * BF16)
        return TensorMap(name, "BFLOAT16", dims, strides, (PANEL, box_rows, box_panels), "128B")

    of_slice = panels // params["qk_stages"]
    usual = float(np.sqrt(np.mean(expected**2)))
    return (
        of("queries", rows, ROWS, of_slice), of("keys", held, params["block_n"], of_slice),
        of("values", held, params["block_n"], panels), of("result", rows, ROWS, panels),
        np.uint32(params["kv_blocks"]), np.uint32(TILES_OF_HEAD), scale_of(depth),
        Input("queries", q, given=False), Input("keys", k, given=False), Input("values", v, given=False),
        Output("result", expected.reshape(2 * grid, ROWS, depth), "uint16", relative=2.0**-7, absolute=2.0**-6 * usual,
               unpack=from_bf16, given=False),
    )  # fmt: skip


def shape(params, grid):
    tile, rings = params["block_n"] * params["depth"] * BF16, 1 if params["fused"] else 2
    tiles = 2 * ROWS * params["depth"] * BF16 + rings * params["kv_stages"] * tile
    return Shape((grid,), (512,), tiles + 2 * ROWS * 4 + 16 + 8 * 64 + 1024)


def defines(params):
    return {n.upper(): params[n] for n in ("depth", "block_n", "kv_stages", "fused", "qk_stages", "pv_stages")}


def nbytes(params):
    of_row = params["depth"] * BF16
    q, k = ROWS * of_row // params["qk_stages"], params["block_n"] * of_row // params["qk_stages"]
    return q, k, params["block_n"] * of_row, q + k


def emulated(folder, params, *, wrong=("", "")):
    """The kernel with one text replaced by another, ready to be run as one of the registry."""
    for path in (*headers(), source_file(f"{NAME}.cu")):
        (folder / path.name).write_bytes(path.read_bytes())
    for path in EMULATED.glob("*.cuh"):
        (folder / f"real_{path.name}").write_bytes(source_file(path.name).read_bytes())
        (folder / path.name).write_bytes(path.read_bytes())
    if not params["fused"]:
        (folder / f"{NAME}.table.h").write_bytes((source_file(f"{NAME}_split.table.h")).read_bytes())
    source = folder / f"{NAME}.cu"
    text = source.read_text()
    assert text.count(wrong[0]) == 1 or not wrong[0]
    source.write_text(text.replace(*wrong) if wrong[0] else text)
    ranges = {name: Range(0, 1 << 24) for name in params}
    return Emulated(NAME, ranges, defines, shape, arguments, nbytes, folder=folder)


@pytest.fixture
def info():
    try:
        return require_gpu()
    except (HardwareError, MissingExtraError) as error:
        pytest.skip(str(error).replace("\n", "; "))


def request(changes, grid=1, **more):
    params = find(NAME).defaults | {"kv_blocks": 4} | changes
    return CaptureRequest(TwinSubject(NAME, grid), params, repetitions=1, deadline_ms=2000, **more)


def launched(wanted, info, folder, monkeypatch, **wrong):
    monkeypatch.setitem(REGISTRY, NAME, emulated(folder, wanted.params, **wrong))
    monkeypatch.setattr("hwkernels.device.launch._WARM_UP_S", 0)
    monkeypatch.setattr("hwkernels.capture.twin_subject._OVERTIME_S", 60)  # the host waits longer than all deadlines
    trace = capture_here(wanted, info)
    check_trace(trace, "here")
    return trace


def captured(wanted, info, folder, monkeypatch, **wrong):
    trace = launched(wanted, info, folder, monkeypatch, **wrong)
    assert trace.meta.status == "finished"
    return find(NAME).build(dict(wanted.params), grid=wanted.ctas), trace


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("changes", "grid", "seed"),
    [
        ({}, 1, 0),
        ({}, 1, 1),
        ({"kv_blocks": 1}, 2, 0),
        ({"kv_stages": 2, "pv_stages": 4, "kv_blocks": 5}, 1, 0),
        ({"depth": 64, "kv_stages": 8, "kv_blocks": 7}, 1, 0),
        (SPLIT, 1, 0),
        (SMALL, 3, 0),
        (SMALL, 1, 1),
    ],
)
def test_its_result_is_right_and_its_recording_conforms(info, tmp_path, monkeypatch, changes, grid, seed):
    program, trace = captured(request(changes, grid=grid, seed=seed), info, tmp_path, monkeypatch)
    assert trace.meta.wrong_tiles == 0, trace.meta.extra
    assert conform(program, trace).verdict is TraceVerdict.AGREES


@pytest.mark.gpu
def test_without_keys_nothing_is_stored(info, tmp_path, monkeypatch):
    program, trace = captured(request({"kv_blocks": 0}), info, tmp_path, monkeypatch)
    assert trace.meta.extra["checked"]["result"]["wrong"] == 2 * ROWS * 128
    assert conform(program, trace).verdict is TraceVerdict.UNKNOWN  # there is no event


@pytest.mark.gpu
@pytest.mark.parametrize("changes", [{}, SPLIT])
def test_a_deadline_that_passes_ends_as_a_report(info, tmp_path, monkeypatch, changes):
    """A product takes milliseconds here, so waits for it give up; the next launch finds the context whole."""
    wanted = request(changes)
    trace = launched(replace(wanted, deadline_ms=0), info, tmp_path, monkeypatch)
    assert trace.meta.status == "deadline"
    assert trace.meta.extra["gave_up"]["traced"]
    assert "_wait_" in trace.meta.extra["gave_up"]["site"]
    _, whole = captured(wanted, info, tmp_path, monkeypatch)
    assert whole.meta.wrong_tiles == 0


WRONG = {
    "panels of V": ("keys_16(i), KV_PANEL)", "keys_16(i), 1024)"),
    "place of P": ("scores(WG) + weights_16(i)", "scores(WG) + weights_16(i) / 2"),
    "K of another slice": (
        "stage * K_SLICE + columns_16(i, KV_PANEL)",
        "stage * K_SLICE + columns_16(i ^ 1, KV_PANEL)",
    ),
    "O not rescaled": (
        "__uint_as_float(v[i]) * factor);\n            tcgen05",
        "__uint_as_float(v[i]));\n            tcgen05",
    ),
    "O of the last block alone": ("ROWS, DEPTH, 1), block | i)", "ROWS, DEPTH, 1), i)"),
    "rows exchanged": ("columns_8(r,", "columns_8(r ^ 1,"),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_twin_is_seen(info, tmp_path, monkeypatch, name):
    _, trace = captured(request({"kv_blocks": 2}), info, tmp_path, monkeypatch, wrong=WRONG[name])
    assert trace.meta.wrong_tiles > 0


def test_the_wrong_twins_are_made(tmp_path):
    for wrong in WRONG.values():
        emulated(tmp_path, request({}).params, wrong=wrong)
