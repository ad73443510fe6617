"""Hopper's attention kernels on the CPU, instruction by instruction: softmax(Q K^T) V against float64; wrong twins are
noticed. That every warp does what its protocol says is read from the PTX (``tests/ptx/test_twins.py``).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from hwkernels.device.bf16 import from_bf16
from hwkernels.twins import registered
from hwkernels.twins.buffers import Input, Output, TensorMap
from pipesim.targets import find
from tests.support.emulator.kernel import Emulated, tensor

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator is C++")

SPLIT, FUSED = "attention_sm90", "attention_sm90_fused"
CALL = "maps[0], maps[1], maps[2], (unsigned *)device, n[0], n[1], f[0]"
SMALL = {"depth": 64, "block_n": 64, "num_consumer": 1}


class Twin(NamedTuple):
    """A mistake: text of the sources, what stands there in the twin, and how it is noticed."""

    before: str
    after: str
    noticed: str


# In the order of the sources: load, products, releases.
TWINS = (
    Twin("RingState<STAGES> ring = {0, 1};", "RingState<STAGES> ring = {0, TWIN(1u, 0u)};", "gave up"),
    Twin("ring, 2 * n + 1, v, row", "ring, 2 * n + 1, TWIN(v, k), row", "wrong values"),
    Twin("kv_row + n * BLOCK_N", "kv_row + TWIN(n, 0) * BLOCK_N", "wrong values"),
    Twin("wgmma_k_major(my.at.slot(slot))", "wgmma_k_major(my.at.slot(TWIN(slot, 0u)))", "wrong values"),
    Twin("my.ring.step();\n    return slot;", "my.ring.step();\n    return TWIN(slot, my.ring.stage);", "gave up"),
    Twin("at.slot(held));", "at.slot(TWIN(held, keys)));", "wrong values"),
    Twin("my, keys, 2 * n - 1 P", "my, TWIN(keys, held), 2 * n - 1 P", "gave up"),
    Twin("my, held, 2 * n P", "my, TWIN(held, keys), 2 * n P", "gave up"),
    Twin("    if (alive && threadIdx.x % 32 == 0) mbarrier_arrive(empty);",
         "    if (alive && threadIdx.x % 32 < TWIN(1, 2)) mbarrier_arrive(empty);", "gave up"),
    Twin("sums[i] *= factor[i / 2 % 2]", "sums[i] *= TWIN(factor[i / 2 % 2], 1.0f)", "wrong values"),
)  # fmt: skip


class Problem(NamedTuple):
    """One launch: what its maps point into, the maps, its numbers, its result, and what that must be."""

    arrays: list[npt.NDArray[Any]]
    maps: list[Any]
    n: list[int]
    scale: float
    found: npt.NDArray[np.uint16]
    output: Output


def problem(name: str, params: dict[str, int], ctas: int) -> Problem:
    """The kernel's own arguments, as the emulator takes them."""
    arguments = registered(name).arguments(params, ctas, 7)
    inputs = {a.name: a.data for a in arguments if isinstance(a, Input)}
    maps = [a for a in arguments if isinstance(a, TensorMap)]
    (output,) = (a for a in arguments if isinstance(a, Output))
    blocks, of_head, scale = (a.item() for a in arguments if isinstance(a, np.generic))
    arrays = [np.ascontiguousarray(inputs[m.of]) for m in maps]
    boxes = [
        tensor(array.reshape(len(array), -1, 64).transpose(1, 0, 2), m.box, 128)
        for array, m in zip(arrays, maps, strict=True)
    ]
    found = np.zeros(output.expected.shape, dtype=np.uint16)
    return Problem(arrays, boxes, [blocks, of_head], scale, found, output)


def noticed(name: str, params: dict[str, int], kernel: Emulated, ctas: int = 1, twin: int = 0, seed: int = 3) -> str:
    """What is wrong with a run, in a word; "" if nothing is."""
    given = problem(name, params, ctas)
    said = kernel.run(given.maps, ctas, seed, given.n, [given.scale], given.found, twin=twin)
    if said.fault:
        return said.fault
    output, out = given.output, from_bf16(given.found).astype(np.float64)
    error = np.abs(out - output.expected)
    right = (error <= output.relative * np.abs(output.expected) + output.absolute).all()
    return "" if right else "wrong values"


def sizes(name: str, **changes: int) -> dict[str, int]:
    return find(name).defaults | changes


def built(name: str, params: dict[str, int], folder: Path, twins: tuple[Twin, ...] = ()) -> Emulated:
    defines = registered(name).defines(params)
    return Emulated(name, defines, CALL, folder, [(twin.before, twin.after) for twin in twins])


@pytest.mark.slow
def test_the_fused_ring_computes_and_wrong_twins_are_noticed(tmp_path):
    params = sizes(FUSED, stages=3, **SMALL)
    kernel = built(FUSED, params, tmp_path, TWINS)
    for seed, (blocks, ctas) in enumerate(((0, 1), (1, 1), (2, 2), (7, 1), (7, 1), (7, 1))):
        assert noticed(FUSED, params | {"kv_blocks": blocks}, kernel, ctas, seed=seed) == ""
    for number, twin in enumerate(TWINS, start=1):
        found = noticed(FUSED, params | {"kv_blocks": 4}, kernel, twin=number)
        assert found.startswith(twin.noticed), (twin.after, found)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "params"), [
    (FUSED, sizes(FUSED, stages=5, kv_blocks=3, depth=64, pingpong=0, block_n=64)),
    (SPLIT, sizes(SPLIT, stages=2, kv_blocks=3, qk_stages=2, block_n=64)),
    pytest.param(FUSED, sizes(FUSED, stages=2, kv_blocks=2, num_consumer=1), marks=pytest.mark.long),
    pytest.param(SPLIT, sizes(SPLIT, stages=1, kv_blocks=4, **SMALL), marks=pytest.mark.long),
])  # fmt: skip
def test_so_do_both_kernels_in_other_sizes(name, params, tmp_path):
    assert noticed(name, params, built(name, params, tmp_path)) == ""
