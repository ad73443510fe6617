"""What a kernel is given: buffers with their contents, descriptors of tensors, numbers, and what the launch adds."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.source_recorder.layout import FINISHED
from hwkernels.source_recorder.measure import OutputCheck
from pipesim.ptx.launch.values import TensorMap

BEFORE = 0xEE  #: every byte of an output before a launch


@dataclass(frozen=True)
class Input:
    """A buffer that holds ``data`` (contiguous) before each launch. ``given``: the kernel is given its address."""

    name: str
    data: npt.NDArray[Any]
    given: bool = True


@dataclass(frozen=True)
class Output:
    """A buffer of ``expected``'s shape and of ``dtype``, all bytes 0xEE before each launch, compared after it.

    ``expected``: float64 or integers, its first axis the tiles. An element is right if it differs from ``expected`` by
    ``absolute + relative * |expected|`` at most. ``unpack`` makes comparable values of what ``dtype`` holds (bf16).
    ``first_warp``: where each of several warps writes one element an iteration, the first of them: only what the
    reports say was reached is compared then, so also after a launch that gave up.
    """

    name: str
    expected: npt.NDArray[Any]
    dtype: str
    relative: float = 0.0
    absolute: float = 0.0
    unpack: Callable[[npt.NDArray[Any]], npt.NDArray[Any]] | None = None
    given: bool = True  #: as of an :class:`Input`; else only a tensor map knows it
    first_warp: int | None = None

    @property
    def initial_byte(self) -> int:
        """Every byte of the buffer before a launch."""
        return BEFORE

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer."""
        return int(self.expected.size * np.dtype(self.dtype).itemsize)

    def check(self, found: npt.NDArray[np.uint8], reports: npt.NDArray[Any]) -> OutputCheck | None:
        """What a kernel left in the buffer; None after a launch that did not finish, if then nothing can be said."""
        whole = found.view(self.dtype).reshape(self.expected.shape)
        if self.first_warp is not None:
            return compare(self, whole, self._reached_elements(self.first_warp, reports))
        return compare(self, whole) if (reports["status"] == FINISHED).all() else None

    def _reached_elements(self, first_warp: int, reports: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which elements (CTAs x iterations, warps) their warps reached."""
        tiles, warps = len(self.expected) // len(reports), self.expected.shape[1]
        counts = reports["iterations"][:, None, first_warp : first_warp + warps]
        return (np.arange(tiles)[None, :, None] < counts).reshape(self.expected.shape)


def compare(output: Output, found: npt.NDArray[Any], reached: npt.NDArray[np.bool_] | None = None) -> OutputCheck:
    """What a kernel left in an output, element by element; of those in ``reached`` alone. NaN is wrong."""
    values = (output.unpack(found) if output.unpack else found).astype(np.float64)
    expected = output.expected.astype(np.float64)
    error = np.abs(values - expected)
    wrong = ~(error <= output.absolute + output.relative * np.abs(expected))
    if reached is not None:
        wrong &= reached
        error = error[reached]
    first = ""
    if wrong.any():
        at = tuple(int(n) for n in np.argwhere(wrong)[0])
        first = f"{output.name}{list(at)} is {values[at]!r} instead of {expected[at]!r}"
    tiles = int(wrong.reshape(len(wrong), -1).any(axis=1).sum()) if wrong.size else 0
    return OutputCheck(wrong.size, int(wrong.sum()), tiles, float(error.max()) if error.size else 0.0, first)


@dataclass(frozen=True)
class Bytes:
    """A buffer of this many bytes, zero before each launch; after it, hashed and compared with ``expected``, if any."""

    name: str
    nbytes: int
    expected: npt.NDArray[Any] | None = None

    initial_byte = 0
    given = True

    def check(self, found: npt.NDArray[np.uint8], _reports: npt.NDArray[Any]) -> OutputCheck:
        """What a kernel left in it; an element of ``expected`` is right if it is so byte for byte."""
        digest = hashlib.sha256(found.tobytes()).hexdigest()[:16]
        if self.expected is None:
            return OutputCheck(self.nbytes, 0, digest=digest)
        count = self.expected.size
        expected = np.ascontiguousarray(self.expected).reshape(-1).view(np.uint8)
        wrong = (expected.reshape(count, -1) != found.reshape(count, -1)).any(axis=1)
        return OutputCheck(count, int(wrong.sum()), digest=digest)


@dataclass(frozen=True)
class MapOf:
    """A descriptor of a tensor in the buffer ``of``, given by value: ``const __grid_constant__ CUtensorMap``."""

    of: str
    tensor: TensorMap


class OfLaunch(Enum):
    """An argument that the launch gives: those of PIPESIM_RUN_PARAMS, and the iteration of a fault."""

    DEADLINE = "deadline_ns"
    REPORTS = "reports"
    STOP = "stop"
    FAULT_AT = "fault_at"


#: PIPESIM_RUN_PARAMS, which end the parameter list of a kernel that names none of them itself.
RUN_PARAMS = (OfLaunch.DEADLINE, OfLaunch.REPORTS, OfLaunch.STOP)

Argument = Input | Output | Bytes | MapOf | OfLaunch | np.generic  #: of a kernel, in the order of its parameters
