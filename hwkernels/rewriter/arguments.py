"""A launch file's parameters as the bytes that a launch takes, with memory of our own behind every pointer.

Pointers of which nothing is known point to zeros; what a launch file says of memory stands there. The tensors of tensor
maps hold small numbers, so that products are neither zero nor infinite. So a kernel can be launched, and launched
again, without the program that it belongs to: it does what its synchronisation does, on data without a meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hwkernels.device.launch import Gpu
from hwkernels.device.tensor_maps import encode_any
from pipesim.errors import LaunchFileError
from pipesim.ptx.launch.values import (
    ELEMENTS,
    TYPES,
    Array,
    Content,
    Field,
    Launch,
    Number,
    Pointer,
    Struct,
    TensorMap,
)

POINTER_BYTES = 32 << 20  #: behind a pointer
_SMALL = 0x2C  #: of each byte of a tensor: a number between 0 and 1 in f8, f16, bf16 and f32


@dataclass
class Memory:
    """The memory of a launch: what each area holds before it. ``areas``: address and initial bytes."""

    gpu: Gpu
    areas: list[tuple[int, npt.NDArray[np.uint8]]] = field(default_factory=list)

    def area(self, nbytes: int, byte: int) -> tuple[int, npt.NDArray[np.uint8]]:
        """A new area filled with a byte; its contents may be changed before :meth:`reset`."""
        data = np.full(nbytes, byte, dtype=np.uint8)
        address = self.gpu.allocate(nbytes)
        self.areas.append((address, data))
        return address, data

    def reset(self) -> None:
        """Everything as it must be before a launch."""
        for address, data in self.areas:
            self.gpu.upload(address, data)

    def contents(self) -> list[npt.NDArray[np.uint8]]:
        """What is there now."""
        found = [np.empty(len(data), dtype=np.uint8) for _, data in self.areas]
        for (address, _), data in zip(self.areas, found, strict=True):
            self.gpu.download(address, data)
        return found


def arguments_of(launch: Launch, memory: Memory) -> list[npt.NDArray[np.uint8]]:
    """The bytes of each parameter. LaunchFileError for one whose value the file leaves open."""
    return [_bytes(parameter.content, parameter.name, memory) for parameter in launch.parameters]


def _bytes(content: Content, name: str, memory: Memory) -> npt.NDArray[np.uint8]:
    match content:
        case Number(kind, value):
            if value is None:
                raise LaunchFileError(
                    f"the value of parameter {name or '(without a name)'} is open", correction="give it"
                )
            return _number(kind, value)
        case Array(kind, values):
            return np.concatenate([_number(kind, value) for value in values])
        case TensorMap():
            return _map(content, name, memory)
        case Pointer(_, contents):
            address, data = memory.area(POINTER_BYTES, 0)
            _put(data, contents, name, memory)
            return _number("u64", address)
        case Struct(size, fields):
            data = np.zeros(size, dtype=np.uint8)
            _put(data, fields, name, memory)
            return data


def _put(data: npt.NDArray[np.uint8], fields: tuple[Field, ...], name: str, memory: Memory) -> None:
    for offset, content in fields:
        part = _bytes(content, name, memory)
        data[offset : offset + len(part)] = part


_FLOATS: dict[str, Callable[[float], np.generic]] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def _number(kind: str, value: float) -> npt.NDArray[np.uint8]:
    size = TYPES[kind]
    if kind in _FLOATS and isinstance(value, float):
        return np.frombuffer(_FLOATS[kind](value).tobytes(), dtype=np.uint8)
    if kind == "bf16" and isinstance(value, float):
        return np.frombuffer(np.float32(value).tobytes()[2:], dtype=np.uint8)
    return np.frombuffer((int(value) & (1 << 8 * size) - 1).to_bytes(size, "little"), dtype=np.uint8)


def _map(wanted: TensorMap, name: str, memory: Memory) -> npt.NDArray[np.uint8]:
    """A tensor in memory, and the map of it."""
    if not wanted.element or not wanted.box or not wanted.dims:
        raise LaunchFileError(
            f"the tensor map {name or 'of a parameter'} has no element, box or dims",
            correction="give them, or record the launch with `pipesim launches`",
        )
    last = (wanted.dims[-1] - 1) * wanted.strides[-1] if wanted.strides else 0
    rows = sum((size - 1) * stride for size, stride in zip(wanted.dims[1:], wanted.strides, strict=True))
    nbytes = max(rows, last) + wanted.dims[0] * ELEMENTS[wanted.element] // 8
    address, _ = memory.area(-(-nbytes // 256) * 256, _SMALL)
    return encode_any(wanted, address)
