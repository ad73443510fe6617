"""Tensor maps on the host: what the copy engine must know about a tensor, encoded by the driver for ``tensor_map.cuh``.

:class:`TensorMap` says it and refuses what the engine cannot do (the rules are those of cuTensorMapEncodeTiled);
:func:`encode` asks the driver, which needs no GPU of its own but a driver. :func:`swizzle_offset` says where a byte of
a box lies in shared memory, for tests and for kernels that write such tiles themselves.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from hwkernels.device.launch import driver_values
from pipesim.errors import ParameterError

_MAX_RANK = 5
_MAX_BOX = 256
_MAX_STRIDE = 1 << 40
#: of the elements, by a name of ``CUtensorMapDataType``
ELEMENT_BYTES = {"BFLOAT16": 2, "FLOAT16": 2, "FLOAT32": 4, "UINT8": 1, "UINT32": 4}


class Swizzle(Enum):
    """How 16-byte pieces change places in shared memory: the bytes after which the pattern of a row begins again."""

    NONE = 0
    B32 = 32
    B64 = 64
    B128 = 128


@dataclass(frozen=True)
class TensorMap:
    """A tensor in device memory and the box that one copy moves. Dimensions go from the innermost to the outermost.

    ``strides``: bytes from one index to the next, of all dimensions but the first, whose elements lie side by side.
    ``box``: elements. ``element``: a name of ``CUtensorMapDataType``. Raises ParameterError for what the copy engine
    cannot do.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element: str = "BFLOAT16"
    swizzle: Swizzle = Swizzle.B128

    def __post_init__(self) -> None:
        _check(self)

    @property
    def row_bytes(self) -> int:
        """Bytes of a box's innermost dimension."""
        return self.box[0] * ELEMENT_BYTES[self.element]

    @property
    def box_bytes(self) -> int:
        """What one load brings, also where part of the box lies outside of the tensor."""
        return int(np.prod(self.box, dtype=np.int64)) * ELEMENT_BYTES[self.element]


def matrix(
    address: int,
    rows: int,
    columns: int,
    box_rows: int,
    box_columns: int = 64,
    *,
    pitch: int = 0,
    element: str = "BFLOAT16",
) -> TensorMap:
    """The map of a row-major matrix with 128-byte swizzle; ``pitch``: elements from row to row (0: columns)."""
    size = ELEMENT_BYTES.get(element, 1)
    return TensorMap(address, (columns, rows), ((pitch or columns) * size,), (box_columns, box_rows), element)


def swizzle_offset(offset: int, swizzle: Swizzle) -> int:
    """Where byte ``offset`` of a box lies, counted from the box's shared address (a multiple of 8 rows' bytes).

    The 16-byte piece's number, as far as the pattern goes, is combined by exclusive or with the number of the 128 bytes
    that it lies in: address bits 4 to 6 with bits 7 to 9 for 128 bytes, 4 to 5 with 7 to 8 for 64, 4 with 7 for 32.
    """
    pieces = max(swizzle.value // 16, 1)
    return offset ^ ((offset >> 7 & (pieces - 1)) << 4)


def encode(tensor: TensorMap) -> npt.NDArray[np.uint8]:
    """The 128 bytes that the copy engine reads. Raises HardwareError if the driver refuses."""
    from cuda.bindings import driver

    kinds, patterns = driver.CUtensorMapDataType, driver.CUtensorMapSwizzle
    pattern = "NONE" if tensor.swizzle is Swizzle.NONE else f"{tensor.swizzle.value}B"
    result = driver.cuTensorMapEncodeTiled(
        getattr(kinds, f"CU_TENSOR_MAP_DATA_TYPE_{tensor.element}"),
        len(tensor.shape),
        tensor.address,
        [driver.cuuint64_t(size) for size in tensor.shape],
        [driver.cuuint64_t(stride) for stride in tensor.strides],
        [driver.cuuint32_t(size) for size in tensor.box],
        [driver.cuuint32_t(1) for _ in tensor.box],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(patterns, f"CU_TENSOR_MAP_SWIZZLE_{pattern}"),
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    (encoded,) = driver_values(result, f"cuTensorMapEncodeTiled({tensor})")
    words = np.array([int(word) for word in encoded.opaque], dtype=np.uint64)
    return words.view(np.uint8)


def _check(tensor: TensorMap) -> None:
    """Raise ParameterError unless the copy engine can do it."""
    rank = len(tensor.shape)
    if tensor.element not in ELEMENT_BYTES:
        raise ParameterError(
            f"a tensor map of {tensor.element}", correction=f"use one of {', '.join(sorted(ELEMENT_BYTES))}"
        )
    if not 1 <= rank <= _MAX_RANK or len(tensor.strides) != rank - 1 or len(tensor.box) != rank:
        raise ParameterError(
            f"a tensor of {rank} dimensions with {len(tensor.strides)} strides and a box of {len(tensor.box)}",
            cause="the innermost dimension has no stride; every dimension has a box",
            correction=f"use 1 to {_MAX_RANK} dimensions",
        )
    if tensor.address % 16 or tensor.address <= 0:
        raise ParameterError(f"the tensor's address {tensor.address:#x} is not a positive multiple of 16")
    for dimension, (size, box) in enumerate(zip(tensor.shape, tensor.box, strict=True)):
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
    if tensor.row_bytes % 16:
        raise ParameterError(f"the box's rows have {tensor.row_bytes} bytes, which is not a multiple of 16")
    if tensor.swizzle is not Swizzle.NONE and tensor.row_bytes > tensor.swizzle.value:
        raise ParameterError(
            f"the box's rows have {tensor.row_bytes} bytes, more than the {tensor.swizzle.value} of the swizzle",
            correction="copy several boxes, side by side",
        )
