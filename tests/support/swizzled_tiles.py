"""How a tile of bf16 lies in shared memory after loads by tensor maps with 128-byte swizzle."""

import numpy as np
import numpy.typing as npt

from hwkernels.device.bf16 import Bits
from hwkernels.device.tensor_maps import Swizzle, swizzle_offset


def expected_shared(tile: Bits, blocks: int = 1) -> npt.NDArray[np.uint8]:
    """How a row-major (rows, 64 * blocks) tile lies after loads of 64 columns each, with 128-byte swizzle."""
    places = np.array([swizzle_offset(offset, Swizzle.B128) for offset in range(len(tile) * 128)])
    parts = [np.ascontiguousarray(part).view(np.uint8).reshape(-1) for part in np.split(tile, blocks, axis=1)]
    laid = [np.empty(len(tile) * 128, dtype=np.uint8) for _ in parts]
    for into, part in zip(laid, parts, strict=True):
        into[places] = part
    return np.concatenate(laid)
