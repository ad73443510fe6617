"""Hopper's attention kernels without a GPU: reference, how tight its check is, and what the machine code must be."""

from math import sqrt

import numpy as np
import pytest

from hwkernels.capture import CaptureRequest, TwinSubject
from hwkernels.capture.request import check_request
from hwkernels.device.bf16 import from_bf16, to_bf16
from hwkernels.device.compile import compile_cubin
from hwkernels.twins import find_twin
from hwkernels.twins.buffers import Input, Output, compare
from hwkernels.twins.hopper.attention_sm90 import TILES_OF_HEAD, queries_of
from pipesim.errors import CompileError, ConfigurationError, ParameterError
from pipesim.targets import find

SPLIT, FUSED = "attention_sm90", "attention_sm90_fused"


def params_of(name: str, **params: int) -> dict[str, int]:
    return find(name).defaults | params


def test_bf16_rounds_to_the_nearest_and_ties_to_even():
    values = np.array([0.0, -1.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-20, 3.0e38], dtype=np.float32)
    assert to_bf16(values).tolist() == [0x0000, 0xBF80, 0x3F80, 0x3F82, 0x3F81, 0x7F62]
    exact = np.arange(0x3F00, 0x4100, dtype=np.uint16)
    assert (to_bf16(from_bf16(exact)) == exact).all()


def on_line(q, k, v, block_n: int) -> np.ndarray:
    """What the kernel computes, in its order and its types: blocks of keys, fp32 sums, weights rounded to bf16."""
    largest, total = np.full((len(q), 1), -np.inf, np.float32), np.zeros((len(q), 1), np.float32)
    sums = np.zeros_like(q)
    for n in range(0, len(k), block_n):
        scores = q @ k[n : n + block_n].T / np.float32(sqrt(q.shape[1]))
        top = np.maximum(largest, scores.max(axis=1, keepdims=True))
        weights, factor = np.exp(scores - top), np.exp(largest - top)
        sums = sums * factor + from_bf16(to_bf16(weights)) @ v[n : n + block_n]
        total, largest = total * factor + weights.sum(axis=1, keepdims=True), top
    return to_bf16(sums / total) if len(k) else np.zeros_like(q, dtype=np.uint16)


@pytest.mark.parametrize("grid", [1, 5])
@pytest.mark.parametrize("change", [{}, {"depth": 64, "kv_blocks": 1, "num_consumer": 1}, {"kv_blocks": 0}])
@pytest.mark.parametrize("name", [SPLIT, FUSED])
def test_the_check_lets_rounding_pass_and_nothing_else(name, change, grid):
    params = params_of(name, **{"kv_blocks": 4, **change})
    block_n, rows, keys = params["block_n"], TILES_OF_HEAD * queries_of(params), params["kv_blocks"] * params["block_n"]
    arguments = find_twin(name).arguments(params, grid, 0)
    q, k, v = (from_bf16(a.data) for a in arguments if isinstance(a, Input))
    (output,) = (a for a in arguments if isinstance(a, Output))

    def found(k, v) -> np.ndarray:
        heads = [
            on_line(q[h * rows : (h + 1) * rows], k[h * keys : (h + 1) * keys], v[h * keys : (h + 1) * keys], block_n)
            for h in range(-(-grid // TILES_OF_HEAD))
        ]
        return np.concatenate(heads).reshape(output.expected.shape)

    right = compare(output, found(k, v))
    assert (right.wrong, right.elements) == (0, output.expected.size)
    if not keys:
        return
    pieces = v.copy()
    pieces[:, :16] = v[:, [*range(8, 16), *range(8)]]  # two 16-byte pieces have changed places
    late = v.copy()
    late[:8], late[8:16] = v[8:16], v[:8]  # as if rows of an atom were read in another's place
    scaled = to_bf16(from_bf16(found(k, v)) * np.float32(1.05))
    for wrong in (found(k, pieces), found(k, late), found(np.roll(k, 1, axis=0), v), scaled):
        assert compare(output, wrong).wrong > 16


@pytest.mark.parametrize(("name", "change", "error", "fact"), [
    (SPLIT, {"fused": 1}, ParameterError, "has no fused = 1"),
    (SPLIT, {"depth": 64, "qk_stages": 2}, ParameterError, "2 slices of a head of 64"),
    (SPLIT, {"stages": 4}, ConfigurationError, "kernel of attention_sm90 needs .* bytes of shared memory"),
    (SPLIT, {"depth": 96}, ParameterError, "has no depth = 96"),
    (FUSED, {"stages": 1}, ParameterError, "has no stages = 1"),
    (FUSED, {"stages": 7}, ConfigurationError, "kernel of attention_sm90_fused needs .* bytes of shared memory"),
    (FUSED, {"depth": 256}, ParameterError, "has no depth = 256"),
])  # fmt: skip
def test_what_the_kernel_cannot_do(name, change, error, fact):
    with pytest.raises(error, match=fact):
        check_request(CaptureRequest(TwinSubject(name), params_of(name, **change)))


def test_a_ring_of_one_slot_does_not_compile():
    """A V is held while the next K is waited for."""
    defines = dict(find_twin(FUSED).defines(params_of(FUSED)))
    with pytest.raises(CompileError, match="a V is held while the next K is waited for"):
        compile_cubin(find_twin(FUSED).source, defines | {"STAGES": 1})
