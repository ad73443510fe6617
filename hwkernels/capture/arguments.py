"""The arguments of a user's kernel, as a command line spells them: numbers, buffers, files. Needs no GPU."""

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from hwkernels.capture.map_argument import MAP_BYTES, parse_map
from hwkernels.capture.map_argument import SPELLING as MAP_SPELLING
from hwkernels.device.compile import CompiledKernel
from pipesim.bounds import MAX_BUFFER_BYTES
from pipesim.coredump.cubin import Cubin
from pipesim.errors import CoreDumpError, ParameterError
from pipesim.inputs import InputKind

NUMBERS: dict[str, Any] = {
    "u8": np.uint8,
    "i8": np.int8,
    "u16": np.uint16,
    "i16": np.int16,
    "u32": np.uint32,
    "i32": np.int32,
    "u64": np.uint64,
    "i64": np.int64,
    "f32": np.float32,
    "f64": np.float64,
}
BUFFERS = ("buf", "zero", "npy", "out")
MAP = "map"
SPELLINGS = (
    "u32:64 (or u8, u16, u64, i8 .. i64, f32, f64), buf:BYTES (random), zero:BYTES, npy:FILE, out:BYTES[:NAME] "
    "(zeroed, and read back), "
    f"or {MAP_SPELLING}"
)
POINTER_BYTES = 8
_ZIP_MARK = b"PK\x03\x04"
_ZIP_MARK_BYTES = len(_ZIP_MARK)
#: What NumPy raises for a header that is none, or that no array can have.
_NOT_NPY = (
    ValueError, TypeError, KeyError, SyntaxError, TokenError, EOFError, OverflowError, MemoryError, RecursionError,
)  # fmt: skip
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_NPY = InputKind(".npy file", MAX_BUFFER_BYTES, ParameterError, "write it with numpy.save")


@dataclass(frozen=True)
class Argument:
    """One argument. ``kind``: a key of NUMBERS, one of BUFFERS, or MAP; ``text``: the rest as it was given.

    ``name`` is that of an ``out``, "" of all others.
    """

    kind: str
    text: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.text}" + (f":{self.name}" if self.name else "")

    @property
    def nbytes(self) -> int:
        """What the kernel's parameter takes: the size of the number, of a pointer, or of a tensor map."""
        if self.kind == MAP:
            return MAP_BYTES
        return int(np.dtype(NUMBERS[self.kind]).itemsize) if self.kind in NUMBERS else POINTER_BYTES


def parse_argument(text: str, position: int) -> Argument:
    """The argument that ``text`` spells, checked as far as is possible without reading a file's contents.

    ``position`` numbers it, and names an ``out`` that has no name: ``out0``. Raises ParameterError.
    """
    kind, colon, rest = text.partition(":")
    if not colon or kind not in {*NUMBERS, *BUFFERS, MAP}:
        raise ParameterError(
            f"--arg {text} has an unknown type" if colon else f"--arg {text} has no type",
            correction=f"write one of {SPELLINGS}",
        )
    value, _, name = rest.partition(":") if kind == "out" else (rest, "", "")
    argument = Argument(kind, value, (name or f"out{position}") if kind == "out" else "")
    if kind in NUMBERS:
        number(argument)
    elif kind == MAP:
        parse_map(value)
    elif kind == "npy":
        if not Path(value).is_file():
            raise ParameterError(f"--arg {text}: there is no file {value or 'of no name'}", correction="check its path")
    else:
        size_of(argument)
    return argument


def number(argument: Argument) -> np.generic:
    """The scalar that a number represents. ParameterError if it is none or does not fit its type."""
    kind: np.dtype[Any] = np.dtype(NUMBERS[argument.kind])
    try:
        value: int | float = float(argument.text) if kind.kind == "f" else int(argument.text, 0)
    except ValueError:
        raise ParameterError(f"--arg {argument}: {argument.text!r} is not a number of type {argument.kind}") from None
    limits = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
    low, high = type(value)(limits.min), type(value)(limits.max)
    if not low <= value <= high and (isinstance(value, int) or math.isfinite(value)):
        raise ParameterError(
            f"--arg {argument}: {argument.text} does not fit {argument.kind}",
            correction=f"use {low} to {high}, or a wider type",
        )
    scalar: np.generic = kind.type(value)
    return scalar


def contents(argument: Argument, seed: int, position: int) -> npt.NDArray[np.uint8]:
    """The bytes that a buffer holds before each launch; those of ``buf`` follow from the seed and the position."""
    match argument.kind:
        case "buf":
            return np.random.default_rng([seed, position]).integers(0, 256, size=size_of(argument), dtype=np.uint8)
        case "npy":
            return as_bytes(read_npy(argument.text))
        case _:
            return np.zeros(size_of(argument), dtype=np.uint8)


def read_npy(path: str) -> npt.NDArray[Any]:
    """The array of a ``.npy`` file. ParameterError if there is none in it, or if its header promises more bytes."""
    with _NPY.open(Path(path)) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy, about headers that it repairs
        try:
            _check_header(file)
            file.seek(0)
            loaded: npt.NDArray[Any] = np.load(file, allow_pickle=False)
        except OSError as error:
            raise ParameterError(f"{path} cannot be read", cause=error.strerror or str(error)) from error
        except _NOT_NPY as error:
            raise ParameterError(
                f"{path} is not a .npy file of numbers",
                cause=(str(error).splitlines() or [type(error).__name__])[0],
                correction=_NPY.correction,
            ) from error
    return loaded


def _check_header(file: BinaryIO) -> None:
    """ValueError unless the header of a ``.npy`` file is of as many numbers as follow it."""
    head = file.read(_ZIP_MARK_BYTES)
    if head.startswith(_ZIP_MARK):
        raise ValueError("it is an archive of several arrays (.npz)")
    file.seek(0)
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"its format has version {version[0]}.{version[1]}; 1.0 and 2.0 are read")
    shape, _, kind = _HEADERS[version](file)
    if kind.hasobject or not kind.itemsize:
        raise ValueError(f"its elements are of type {kind}, which have no fixed bytes")
    there = os.fstat(file.fileno()).st_size - file.tell()
    needed = math.prod(shape) * kind.itemsize
    if min(shape, default=1) < 0 or needed > there:
        raise ValueError(f"its header promises {needed:,} bytes, {there:,} follow it")


def as_bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The bytes of an array, in C order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def size_of(argument: Argument) -> int:
    """The bytes of a buffer that is spelled by its size. ParameterError if it is none that can be."""
    try:
        size = int(argument.text, 0)
    except ValueError:
        size = -1
    if not 1 <= size <= MAX_BUFFER_BYTES:
        raise ParameterError(
            f"--arg {argument}: {argument.text!r} is not a number of bytes",
            correction=f"for example {argument.kind}:1048576",
        )
    return size


def check_arguments(arguments: Sequence[Argument], builds: Mapping[str, CompiledKernel]) -> None:
    """ParameterError if a build says that it takes other arguments; only "plain" has no parameter for the recorder."""
    for name, compiled in builds.items():
        sizes = sizes_in_cubin(compiled)
        if sizes is not None:
            require_parameters(sizes, arguments, traced=name != "plain")


def sizes_in_cubin(compiled: CompiledKernel) -> tuple[int, ...] | None:
    """The bytes of each parameter of the kernel, as its cubin says; None where that cannot be read.

    On a GPU the driver is asked again.
    """
    try:
        found = Cubin(compiled.cubin).parameters_of(compiled.entry)
    except CoreDumpError:
        return None
    return tuple(size for _, size in found.values()) if found and list(found) == [*range(len(found))] else None


def require_parameters(sizes: Sequence[int], arguments: Sequence[Argument], *, traced: bool) -> None:
    """ParameterError unless a kernel with parameters of these sizes takes the arguments that were given."""
    if traced and sizes[-1:] == (POINTER_BYTES,) and len(sizes) == len(arguments) + 1:
        sizes = sizes[:-1]
    elif traced:
        raise ParameterError(
            "the traced kernel has no parameter for the recorder",
            cause=f"it takes {len(sizes)} parameters, the untraced one {len(arguments)}",
            correction="end the kernel's parameter list with PIPESIM_KERNEL_PARAM",
        )
    if len(sizes) != len(arguments):
        raise ParameterError(
            f"the kernel takes {len(sizes)} arguments, but {len(arguments)} were given",
            correction="give one --arg for each, in order",
        )
    for position, (size, argument) in enumerate(zip(sizes, arguments, strict=True)):
        if size != argument.nbytes:
            raise ParameterError(
                f"argument {position} of the kernel has {size} bytes, and {argument} has {argument.nbytes}",
                correction="give an argument of another type; structures other than a tensor map cannot be given",
            )
