"""Numbers of bf16, which NumPy does not have: their bits in arrays of ``uint16``."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Bits = npt.NDArray[np.uint16]


def to_bf16(values: npt.NDArray[Any]) -> Bits:
    """The bits of the nearest bf16, ties to even. No NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: npt.NDArray[Any]) -> Floats:
    """The values of these bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def random_bf16(random: np.random.Generator, shape: tuple[int, ...]) -> Bits:
    """Normally distributed numbers."""
    return to_bf16(random.standard_normal(shape, dtype=np.float32))
