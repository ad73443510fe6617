"""bf16 in numpy, which has no such type: an array of uint16 holds the upper halves of float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def to_bf16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Rounded to nearest, ties to even, as the chip does; no NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)


def from_bf16(bits: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """The values, exactly."""
    return (np.asarray(bits, dtype=np.uint32) << 16).view(np.float32)
