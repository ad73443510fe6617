"""Tensor maps on the host: what the copy engine must know about a tensor, encoded by the driver for ``tensor_map.cuh``.

:func:`check` refuses what the engine cannot do (the rules are those of cuTensorMapEncodeTiled); :func:`encode` asks the
driver, which needs no GPU of its own but a driver.
"""

import numpy as np
import numpy.typing as npt

from hwkernels.device.launch import driver_values
from pipesim.errors import ParameterError
from pipesim.ptx.launch.values import ELEMENTS, TensorMap

_MAX_RANK = 5
_MAX_BOX = 256
_MAX_STRIDE = 1 << 40
#: The driver's names of element types.
_NAMES = {
    "u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "s32": "INT32", "u64": "UINT64", "s64": "INT64", "f16": "FLOAT16",
    "bf16": "BFLOAT16", "f32": "FLOAT32", "f64": "FLOAT64", "f32_ftz": "FLOAT32_FTZ", "tf32": "TFLOAT32",
    "tf32_ftz": "TFLOAT32_FTZ", "u4_align8": "16U4_ALIGN8B", "u4_align16": "16U4_ALIGN16B",
    "u6_align16": "16U6_ALIGN16B",
}  # fmt: skip


def encode(tensor: TensorMap, address: int) -> npt.NDArray[np.uint8]:
    """The 128 bytes that the copy engine reads, of a tensor at this address. HardwareError if the driver refuses."""
    from cuda.bindings import driver

    result = driver.cuTensorMapEncodeTiled(
        getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_NAMES[tensor.element]}"),
        len(tensor.dims),
        address,
        *([driver.cuuint64_t(size) for size in sizes] for sizes in (tensor.dims, tensor.strides)),
        [driver.cuuint32_t(size) for size in tensor.box],
        [driver.cuuint32_t(step) for step in tensor.element_strides or (1,) * len(tensor.dims)],
        getattr(driver.CUtensorMapInterleave, f"CU_TENSOR_MAP_INTERLEAVE_{tensor.interleave.upper()}"),
        getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{tensor.swizzle.upper()}"),
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    (encoded,) = driver_values(result, f"cuTensorMapEncodeTiled({tensor})")
    return np.array([int(word) for word in encoded.opaque], dtype=np.uint64).view(np.uint8)


def check(tensor: TensorMap) -> None:
    """Raise ParameterError unless the copy engine can do it."""
    rank, row_bytes = len(tensor.dims), tensor.box[0] * ELEMENTS[tensor.element] // 8
    if not 1 <= rank <= _MAX_RANK or len(tensor.strides) != rank - 1 or len(tensor.box) != rank:
        raise ParameterError(
            f"a tensor of {rank} dimensions with {len(tensor.strides)} strides and a box of {len(tensor.box)}",
            cause="the innermost dimension has no stride; every dimension has a box",
            correction=f"use 1 to {_MAX_RANK} dimensions",
        )
    for dimension, (size, box) in enumerate(zip(tensor.dims, tensor.box, strict=True)):
        if not 1 <= size <= 1 << 32:
            raise ParameterError(f"dimension {dimension} has {size} elements", correction="use 1 to 2^32")
        if not 1 <= box <= _MAX_BOX:
            raise ParameterError(f"the box has {box} elements in dimension {dimension}", correction="use 1 to 256")
    for dimension, stride in enumerate(tensor.strides, start=1):
        if stride % 16 or not 0 < stride < _MAX_STRIDE:
            raise ParameterError(
                f"dimension {dimension} has a stride of {stride} bytes",
                cause="the copy engine moves pieces of 16 bytes",
                correction="pad the rows to a multiple of 16 bytes",
            )
    if row_bytes % 16:
        raise ParameterError(f"the box's rows have {row_bytes} bytes, which is not a multiple of 16")
    if tensor.swizzle != "none" and row_bytes > int(tensor.swizzle.removesuffix("B")):
        raise ParameterError(
            f"the box's rows have {row_bytes} bytes, more than the {tensor.swizzle.removesuffix('B')} of the swizzle",
            correction="copy several boxes, side by side",
        )
