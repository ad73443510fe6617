"""One product of a warp group on the GPU, with descriptors of choice: what ``wgmma.cuh`` rests on.

:func:`expected_shared` says how a swizzled tile must lie in shared memory; :func:`run_product` loads random operands by
tensor maps, multiplies, and gives back all that the GPU saw.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hwkernels.device.bf16 import Bits, Floats, from_bf16, to_bf16
from hwkernels.device.compile import compile_cubin
from hwkernels.device.launch import Gpu, Shape
from hwkernels.device.sources import EXPERIMENTS
from hwkernels.device.tensor_maps import Swizzle, encode_all, matrix, swizzled

SOURCE = EXPERIMENTS / "products.cu"
_DEADLINE_NS = 100_000_000
_LIMIT_S = 5.0


@dataclass(frozen=True)
class Descriptor:
    """What a descriptor says besides its address, in bytes, and the bytes from one 16 of K to the next."""

    leading: int
    stride: int
    step: int


K_MAJOR = Descriptor(leading=16, stride=1024, step=32)
MN_MAJOR = Descriptor(leading=8192, stride=1024, step=2048)


@dataclass(frozen=True)
class Product:
    """What a run left: A and B as floats, D, and the shared memory of A and B against what it must be."""

    transpose: bool
    landed: bool
    a: Floats
    b: Floats  #: [N][64], or [64][N] if transposed
    d: Floats
    shared: npt.NDArray[np.uint8]
    expected_shared: npt.NDArray[np.uint8]
    stored: bool  #: A came back whole by a tensor store

    @property
    def expected(self) -> Floats:
        """A times B: exact, for the operands are small integers."""
        product: Floats = self.a @ (self.b if self.transpose else self.b.T)
        return product

    @property
    def wrong(self) -> int:
        """Elements of D that are not exactly right."""
        return int(np.count_nonzero(self.d != self.expected))


def expected_shared(tile: Bits, blocks: int = 1) -> npt.NDArray[np.uint8]:
    """How a row-major (rows, 64 * blocks) tile lies after loads of 64 columns each, with 128-byte swizzle."""
    places = np.array([swizzled(offset, Swizzle.B128) for offset in range(len(tile) * 128)])
    parts = [np.ascontiguousarray(part).view(np.uint8).reshape(-1) for part in np.split(tile, blocks, axis=1)]
    laid = [np.empty(len(tile) * 128, dtype=np.uint8) for _ in parts]
    for into, part in zip(laid, parts, strict=True):
        into[places] = part
    return np.concatenate(laid)


def run_product(
    gpu: Gpu,
    n: int,
    *,
    transpose: bool,
    registers: bool,
    a: Descriptor = K_MAJOR,
    b: Descriptor | None = None,
    seed: int = 0,
) -> Product:
    """Multiply random small integers with these descriptors. Raises HardwareError if the kernel traps or hangs."""
    chosen = b or (MN_MAJOR if transpose else K_MAJOR)
    random = np.random.default_rng(seed)
    left, right = (to_bf16(random.integers(-8, 9, shape).astype(np.float32)) for shape in ((64, 64), (n, 64)))
    if transpose:
        right = np.ascontiguousarray(right.T)
    defines = {"PRODUCT_N": n, "PRODUCT_TRANSPOSE": int(transpose), "PRODUCT_REGISTERS": int(registers)}
    compiled = compile_cubin(SOURCE, defines)
    smem = 8192 + 128 * n + 16
    kernel = gpu.load(compiled, smem)
    at = [gpu.allocate(array.nbytes) for array in (left, right, left)]
    maps = encode_all(
        matrix(at[0], 64, 64, 64),
        matrix(at[1], 64, n, 64) if transpose else matrix(at[1], n, 64, n),
        matrix(at[2], 64, 64, 64),
    )
    d, shared, landed = np.zeros((64, n), np.float32), np.zeros(smem - 16, np.uint8), np.zeros(1, np.uint32)
    maps_at, d_at, shared_at, landed_at = (gpu.allocate(each.nbytes) for each in (maps, d, shared, landed))
    gpu.fill(d_at, 0xFF, d.nbytes)
    gpu.fill(at[2], 0xFF, left.nbytes)
    gpu.fill(shared_at, 0xFF, shared.nbytes)
    for address, data in ((at[0], left), (at[1], right), (maps_at, maps)):
        gpu.upload(address, data)
    numbers = (a.leading, a.stride, a.step, chosen.leading, chosen.stride, chosen.step, _DEADLINE_NS)
    arguments: list[int | np.generic] = [
        maps_at,
        at[0],
        *(np.uint32(number) for number in numbers),
        d_at,
        shared_at,
        landed_at,
    ]
    gpu.launch_within(kernel, Shape((1,), (128,), smem), arguments, _LIMIT_S)
    back = np.zeros_like(left)
    for address, into in ((d_at, d), (shared_at, shared), (landed_at, landed), (at[2], back)):
        gpu.download(address, into)
    wanted = np.concatenate([expected_shared(left), expected_shared(right, n // 64 if transpose else 1)])
    return Product(
        transpose,
        bool(landed[0] == 1),
        from_bf16(left),
        from_bf16(right),
        d,
        shared,
        wanted,
        stored=bool((back == left).all()),
    )
