"""Memory that a kernel writes and the host reads: on the device, or on the host where it survives the context."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.device.launch import Gpu


@dataclass(frozen=True)
class Area:
    """A number of bytes at an address of the device; ``view`` is the same memory as the host sees it, if it does."""

    gpu: Gpu
    address: int
    nbytes: int
    view: npt.NDArray[np.uint8] | None

    def fill(self, byte: int) -> None:
        """Set every byte."""
        if self.view is None:
            self.gpu.fill(self.address, byte, self.nbytes)
        else:
            self.view[:] = byte

    def write(self, array: npt.NDArray[Any]) -> None:
        """Write a contiguous array to the beginning."""
        if self.view is None:
            self.gpu.upload(self.address, array)
        else:
            self.view[: array.nbytes] = array.reshape(-1).view(np.uint8)

    def fetch(self, array: npt.NDArray[Any]) -> None:
        """Fill a contiguous array with as many bytes from the beginning."""
        if self.view is None:
            self.gpu.download(self.address, array)
        elif array.nbytes:
            array.reshape(-1).view(np.uint8)[:] = self.view[: array.nbytes]


def allocate(gpu: Gpu, nbytes: int, *, host: bool) -> Area:
    """An area that lives as long as ``gpu``."""
    if host:
        address, view = gpu.host_mapped(nbytes)
        return Area(gpu, address, nbytes, view)
    return Area(gpu, gpu.allocate(nbytes), nbytes, None)
