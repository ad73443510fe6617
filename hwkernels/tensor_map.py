"""Descriptors of tensors for the copy engine, which only the driver can make (``cuTensorMapEncodeTiled``)."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.kernel import TensorMap
from hwkernels.launch import checked

TENSOR_MAP_BYTES = 128


def encode(tensor: TensorMap, address: int) -> npt.NDArray[np.uint8]:
    """The 128 bytes of the descriptor of a tensor at this device address. HardwareError if the driver refuses it."""
    from cuda.bindings import driver

    rank = len(tensor.dims)
    kinds: Any = driver.CUtensorMapDataType
    swizzles: Any = driver.CUtensorMapSwizzle
    (made,) = checked(
        driver.cuTensorMapEncodeTiled(
            getattr(kinds, f"CU_TENSOR_MAP_DATA_TYPE_{tensor.dtype}"),
            rank,
            address,
            [driver.cuuint64_t(n) for n in tensor.dims],
            [driver.cuuint64_t(n) for n in tensor.strides],
            [driver.cuuint32_t(n) for n in tensor.box],
            [driver.cuuint32_t(1)] * rank,
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(swizzles, f"CU_TENSOR_MAP_SWIZZLE_{tensor.swizzle}"),
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        ),
        "cuTensorMapEncodeTiled",
    )
    return np.frombuffer(ctypes.string_at(int(made.getPtr()), TENSOR_MAP_BYTES), dtype=np.uint8).copy()
