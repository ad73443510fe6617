"""The memory of a launch: the bytes of its parameters and buffers, and where in them addresses and tensor maps are."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from pipesim.errors import LaunchFileError
from pipesim.ptx.launch.image import encode_value
from pipesim.ptx.launch.values import ELEMENTS, Array, Content, Launch, Number, Pointer, Struct, TensorMap, size_of
from pipesim.ptx.text.declarations import Function

_MOST_BYTES = 1 << 36  #: of all buffers of a launch
_ALIGNED = 256
_BOXES = (64, 64, 16, 8, 4)  #: along each dimension of a tensor whose sizes are not given, by their number


@dataclass
class LaunchBytes:
    """``nbytes``, 0 or, if ``filled``, numbers, or those of a ``file``, with what is ``known`` at offsets (in
    hexadecimal), ``pointers`` to buffers by their numbers, and ``maps`` of buffers: what the driver is asked for.
    Both lead to the buffer's beginning, or to as many bytes after it as a last number says.
    """

    nbytes: int
    filled: bool = False
    known: list[tuple[int, str]] = field(default_factory=list)
    pointers: list[tuple[int, ...]] = field(default_factory=list)
    maps: list[tuple[Any, ...]] = field(default_factory=list)
    file: str = ""


@dataclass(frozen=True)
class LaunchMemory:
    """The parameters of a launch, and the buffers that they lead to, with their names."""

    parameters: list[LaunchBytes]
    buffers: list[LaunchBytes]
    names: list[str]


def launch_memory(
    launch: Launch, entry: Function, buffer_bytes: int, with_zeros: Callable[[str], bool]
) -> tuple[LaunchMemory, tuple[str, ...]]:
    """What a launch file says, with buffers of ``buffer_bytes`` where it does not say how large they are.

    ``with_zeros``: whether what the pointer of a name leads to are zeros, not numbers; also the names of these
    buffers. Tensors are numbers. LaunchFileError for a value or a box that the file leaves open.
    """
    zeros: list[str] = []
    made = LaunchMemory([], [], [])

    def buffer(nbytes: int, name: str, *, numbers: bool) -> int:
        made.buffers.append(LaunchBytes(-(-nbytes // _ALIGNED) * _ALIGNED, numbers))
        made.names.append(name)
        return len(made.buffers) - 1

    def put(into: LaunchBytes, at: int, content: Content, name: str) -> None:
        match content:
            case Number(type=kind, value=value):
                if value is None:
                    raise LaunchFileError(f"{name} has no value", correction="give it in the launch file, or by --set")
                into.known.append((at, encode_value(kind, value).hex()))
            case Array(type=kind, values=values):
                into.known.append((at, b"".join(encode_value(kind, each) for each in values).hex()))
            case Struct(fields=fields):
                for each in fields:
                    put(into, at + each.offset, each.content, f"{name}+{each.offset}")
            case Pointer(contents=contents):
                end = max((each.offset + size_of(each.content) for each in contents), default=0)
                zeros.extend([name] * (not contents and with_zeros(name)))
                number = buffer(max(end, buffer_bytes), name, numbers=not contents and not with_zeros(name))
                into.pointers.append((at, number))
                for each in contents:
                    put(made.buffers[number], each.offset, each.content, f"{name}:{each.offset}")
            case TensorMap():
                tensor = _tensor(content, name)
                spans = ((size - 1) * step for size, step in zip(tensor.dims[1:], tensor.strides, strict=True))
                row = tensor.dims[0] * ELEMENTS[tensor.element] // 8
                asked = {n: getattr(tensor, n) for n in ("element", "dims", "strides", "box", "swizzle", "interleave")}
                asked["element_strides"] = tensor.element_strides or (1,) * len(tensor.dims)
                into.maps.append((at, asked, buffer(row + sum(spans), name, numbers=True)))

    for n, (parameter, declared) in enumerate(zip(launch.parameters, entry.params, strict=False)):
        made.parameters.append(LaunchBytes(max(declared.size, size_of(parameter.content))))
        put(made.parameters[-1], 0, parameter.content, parameter.name or declared.name or f"parameter {n}")
    if (total := sum(each.nbytes for each in made.buffers)) > _MOST_BYTES:
        raise LaunchFileError(f"the buffers of the launch have {total:,} bytes", cause=f"at most {_MOST_BYTES:,}")
    return made, tuple(zeros)


def _tensor(given: TensorMap, name: str) -> TensorMap:
    """With sizes and strides: where the file has none, of some boxes along each dimension, without gaps."""
    if not given.element or not given.box or given.pixels:
        raise LaunchFileError(
            f"the tensor map {name} {'is one of cuTensorMapEncodeIm2col' if given.pixels else 'has no box'}",
            cause="a launch needs its elements and its box",
            correction="" if given.pixels else f"give them in the launch file, or with --box {name}=TYPE:SIZES",
        )
    boxes = _BOXES[min(len(given.box), len(_BOXES)) - 1]
    dims = given.dims or tuple(boxes * size for size in given.box)
    packed = tuple(prod(dims[:n]) * ELEMENTS[given.element] // 8 for n in range(1, len(dims)))
    return replace(given, dims=dims, strides=given.strides[: len(packed)] if given.dims and given.strides else packed)
