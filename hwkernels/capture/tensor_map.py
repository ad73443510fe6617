"""Descriptors of the registry's tensors for the copy engine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hwkernels.capture.twin import TensorMap
from hwkernels.device import tensor_maps


def encode(tensor: TensorMap, address: int) -> npt.NDArray[np.uint8]:
    """The 128 bytes of the descriptor of a tensor at this device address.

    ParameterError for what the copy engine cannot do, HardwareError if the driver refuses it.
    """
    swizzle = tensor_maps.Swizzle[tensor.swizzle if tensor.swizzle == "NONE" else f"B{tensor.swizzle[:-1]}"]
    shape = (tensor.dims, tensor.strides, tensor.box)
    return tensor_maps.encode(tensor_maps.TensorMap(address, *shape, element=tensor.dtype, swizzle=swizzle))
