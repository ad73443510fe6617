"""A launch that was observed and the PTX of its kernel, made into a launch file that ``pipesim check`` accepts."""

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pipesim.errors import PipesimError, PtxError
from pipesim.launches.records.record import LaunchRecord, SeenMap, SeenParameter, SeenPointer
from pipesim.process.files import require_free, write_whole
from pipesim.ptx.extract import with_contents_read
from pipesim.ptx.flow.inline import inline_calls
from pipesim.ptx.flow.slice import LaunchNeed, Need, slice_of
from pipesim.ptx.launch.encoded_map import MAP_BYTES, decoded_map
from pipesim.ptx.launch.file import MOST_REGISTERS, MOST_VALUES, launch_json, read_launch
from pipesim.ptx.launch.image import encode_value, require_parameters
from pipesim.ptx.launch.values import (
    TYPES,
    Array,
    Content,
    Field,
    Launch,
    Number,
    Parameter,
    Pointer,
    Struct,
    TensorMap,
)
from pipesim.ptx.text.declarations import Function, Module, Param
from pipesim.ptx.text.instruction import Instruction
from pipesim.ptx.text.read import read_module

_MAP_ALIGN = 64  #: of a tensor map, in bytes (CUDA driver API, CUtensorMap)
_MOST_ALIGN = 1 << 12  #: of a pointer, as records give it
_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}
_WORDS = {4: "u32", 2: "u16", 1: "u8"}

WantedThings = Callable[[], Sequence[LaunchNeed]]  #: what the slice needs, found only where it makes a difference


def parameter(formal: Param, seen: SeenParameter, wanted: WantedThings) -> Parameter:
    """A parameter of a launch file, under the PTX's name. ``seen`` has as many bytes as ``formal``."""
    return Parameter(formal.name, _content(formal, seen, wanted))


def with_decoded_maps(formal: Param, seen: SeenParameter, wanted: WantedThings) -> SeenParameter:
    """The parameter, with the maps by which the kernel copies and which the process did not encode, from their bytes.

    ``seen`` itself if there are none.
    """
    known = [each.at for each in seen.maps]
    found = [
        SeenMap(at, decoded)
        for at in range(0, len(seen.data) - MAP_BYTES + 1, _MAP_ALIGN)
        if at not in known and (decoded := decoded_map(seen.data[at : at + MAP_BYTES]))
    ]
    if found:
        copied_by = {each.offset - formal.offset for each in wanted() if each.need is Need.TENSOR_MAP}
        found = [each for each in found if each.at in copied_by]
    if not found:
        return seen
    inside = [range(each.at, each.at + MAP_BYTES) for each in found]
    pointers = tuple(each for each in seen.pointers if not any(each.at in part for part in inside))
    return SeenParameter(seen.data, pointers, tuple(sorted((*seen.maps, *found), key=lambda each: each.at)))


def unseen_map(formal: Param, seen: SeenParameter) -> bool:
    """Whether a parameter has the size and alignment of a tensor map, and the process did not encode one like it."""
    return formal.size == MAP_BYTES and formal.align >= _MAP_ALIGN and not seen.maps and any(seen.data)


def _content(formal: Param, seen: SeenParameter, wanted: WantedThings) -> Content:
    if formal.size == MAP_BYTES and len(seen.maps) == 1:
        return seen.maps[0].map
    if formal.type == "b8" or formal.size != TYPES.get(formal.type, formal.size):
        return Struct(formal.size, tuple(_fields(formal, seen, wanted)))
    if formal.size == 8 and seen.pointers:
        return _pointer(formal.offset, seen.pointers[0], wanted)
    if formal.pointer and any(seen.data):  # declared as one, whether or not the driver knows its memory
        value = int.from_bytes(seen.data, "little")
        return Pointer(min(value & -value, _MOST_ALIGN))
    if formal.size in (1, 2, 4, 8):
        return number(formal.type, seen.data)
    return Struct(formal.size, tuple(_fields(formal, seen, wanted)))


def number(kind: str, data: bytes) -> Number:
    """The value of a PTX type ("b32", "s64", "f16", "f16x2") whose bytes these are.

    A launch file holds no NaN and no infinity, and not every NaN has its own spelling: such a value, and every word of
    a type that it does not know, is the unsigned integer of its size, which has the same bytes.
    """
    whole = f"u{8 * len(data)}"
    if kind in _FLOATS or kind == "bf16":
        (value,) = struct.unpack(_FLOATS.get(kind, "<f"), (b"\0\0" if kind == "bf16" else b"") + data)
        if math.isfinite(value) and encode_value(kind, value) == data:
            return Number(kind, value)
        return Number(whole, int.from_bytes(data, "little"))
    if kind == f"s{8 * len(data)}":
        return Number(kind, int.from_bytes(data, "little", signed=True))
    return Number(whole, int.from_bytes(data, "little"))


def _fields(formal: Param, seen: SeenParameter, wanted: WantedThings) -> Iterator[Field]:
    """What a structure consists of: tensor maps, pointers, and words between them, padding included."""
    known: list[tuple[int, int, Pointer | TensorMap]] = [(each.at, MAP_BYTES, each.map) for each in seen.maps]
    known += [(each.at, 8, _pointer(formal.offset + each.at, each, wanted)) for each in seen.pointers]
    at = 0
    for start, size, content in sorted(known, key=lambda each: each[0]):
        yield from _words(seen.data, at, start)
        yield Field(start, content)
        at = start + size
    yield from _words(seen.data, at, len(seen.data))


def _words(data: bytes, start: int, end: int) -> Iterator[Field]:
    """Bytes as words of 4, and smaller ones where a word of 4 does not fit; several of 4 are one array."""
    at = start
    while at < end:
        size = next(each for each in _WORDS if at % each == 0 and at + each <= end)
        if size == 4 and end - at >= 8:
            count = (end - at) // 4
            yield Field(at, _array("u32", data[at : at + 4 * count]))
            at += 4 * count
            continue
        yield Field(at, number(_WORDS[size], data[at : at + size]))
        at += size


def _pointer(offset: int, seen: SeenPointer, wanted: WantedThings) -> Pointer:
    """A pointer; what was copied from its memory is there if the synchronisation may depend on it."""
    if not seen.contents:
        return Pointer(seen.align)
    needs = [each for each in wanted() if each.need is Need.MEMORY and each.offset in (offset, -1)]
    if not needs:
        return Pointer(seen.align)
    kinds = [each.type.replace("b", "u").replace("f", "u") for each in needs]
    kind = min((each for each in kinds if each in TYPES), key=lambda each: TYPES[each], default="u32")
    return Pointer(seen.align, tuple(_memory(kind, seen.contents)))


def _memory(kind: str, data: bytes) -> Iterator[Field]:
    """Bytes of memory as words of a type; those that are left at the end are bytes."""
    size = TYPES[kind]
    whole = min(len(data) // size, MOST_VALUES) * size
    if whole:
        yield Field(0, _array(kind, data[:whole]))
    if whole < len(data) <= MOST_VALUES * size:
        yield Field(whole, _array("u8", data[whole:]))


def _array(kind: str, data: bytes) -> Array:
    size, signed = TYPES[kind], kind.startswith("s")
    words = range(0, len(data), size)
    return Array(kind, tuple(int.from_bytes(data[at : at + size], "little", signed=signed) for at in words))


@dataclass(frozen=True)
class CompiledLaunch:
    """The PTX of a kernel, ``arch`` for which it was compiled ("sm_90a"), and one launch of it."""

    name: str
    arch: str
    ptx: str
    launch: Launch

    def save(self, folder: Path | str, *, force: bool = False) -> tuple[Path, Path]:
        """Write ``NAME.ptx`` and ``NAME.json`` into a folder; their paths. OutputExistsError unless ``force``."""
        texts = {".ptx": self.ptx, ".json": launch_json(self.launch)}
        paths = {Path(folder) / f"{self.name}{suffix}": text for suffix, text in texts.items()}
        for path in paths:
            require_free(path, force=force)  # of both, before one is written
        for path, text in paths.items():
            write_whole(path, text.encode(), force=force, private=True)
        first, second = paths
        return first, second


@dataclass(frozen=True)
class KernelText:
    """A kernel in a PTX text: the function, and what is made of it when it is first asked for."""

    text: str
    module: Module
    entry: Function

    @property
    def arch(self) -> str:
        """The architecture that the text names first ("sm_90a")."""
        return self.module.target[0] if self.module.target else ""

    @cached_property
    def function(self) -> Function:
        """The kernel with the bodies of the functions that it calls. PtxError if it is too long."""
        return inline_calls(self.module, self.entry)

    @cached_property
    def has_barriers(self) -> bool:
        """Whether warps of the kernel wait for each other or for copies (:func:`barriers`)."""
        return barriers(self.function)

    @cached_property
    def needs(self) -> Sequence[LaunchNeed]:
        """What its synchronisation needs of a launch."""
        return slice_of(self.function).wanted


@dataclass(frozen=True)
class DescribedLaunch:
    """What was made of a record: a launch (None: ``reason`` says why not), and what a reader of it should know."""

    compiled: CompiledLaunch | None
    reason: str = ""
    notes: tuple[str, ...] = ()


def kernel_text(text: str, name: str, kernel: str) -> KernelText:
    """The kernel of this name in a PTX text; ``name`` is the file's, for messages. Raises PtxError."""
    module = read_module(text, name, kernel)
    entry = next((each for each in module.entries if each.name == kernel and each.body), None)
    if entry is None:
        others = ", ".join(each.name for each in module.entries[:3])
        raise PtxError(f"it has no kernel {kernel[:80]}", place=name, cause=f"its kernels are {others or 'none'}")
    return KernelText(text, module, entry)


def barriers(function: Function) -> bool:
    """Whether a kernel with its calls inlined uses mbarriers, barriers of a CTA or a cluster, asynchronous copies, or
    waits for other kernels.

    A barrier of the lanes of one warp (``bar.warp.sync``) is not among them.
    """
    return any(_synchronises(each) for each in function.body)


def _synchronises(each: Instruction) -> bool:
    match each.opcode:
        case "mbarrier" | "barrier" | "griddepcontrol":
            return True
        case "bar":
            return "warp" not in each.modifiers
        case "cp":
            return "async" in each.modifiers and "prefetch" not in each.modifiers
        case _:
            return False


def describe_launch(record: LaunchRecord, kernel: KernelText, cta: int | None = None) -> DescribedLaunch:
    """The launch of a record, or why there is none: the driver's parameters are those of the PTX, in its order.

    ``cta``: the one that is to be followed.
    """
    formals, seen = kernel.entry.params, record.parameters
    if seen is None:
        return DescribedLaunch(None, "the driver gave no parameters for it")
    if len(seen) != len(formals):
        return DescribedLaunch(None, f"the launch has {len(seen)} parameters, and its PTX {len(formals)}")
    for number, (given, formal) in enumerate(zip(seen, formals, strict=True)):
        if len(given.data) != formal.size:
            sizes = f"{len(given.data)} bytes in the launch and {formal.size} in its PTX"
            return DescribedLaunch(None, f"parameter {number} ({formal.name}) has {sizes}")
    try:
        read = tuple(with_decoded_maps(*each, lambda: kernel.needs) for each in zip(formals, seen, strict=True))
        launch = replace(_launch(record, kernel, read), cta=cta)
        require_parameters(launch, kernel.entry)
        if any(each.contents for given in seen for each in given.pointers):
            launch = with_contents_read(kernel.module, launch)
        read_launch(launch_json(launch), "launch file")  # what is written can be read
    except PipesimError as error:
        return DescribedLaunch(None, error.fact)
    decoded = [formal.name for formal, was, now in zip(formals, seen, read, strict=True) if was is not now]
    unseen = [formal.name for formal, now in zip(formals, read, strict=True) if unseen_map(formal, now)]
    return DescribedLaunch(
        CompiledLaunch(record.kernel, kernel.arch, kernel.text, launch),
        notes=(
            *(
                f"the tensor map in {name} was not seen being encoded: its box is decoded from its bytes"
                for name in decoded
            ),
            *(f"{name} may be a tensor map, and was not seen being encoded" for name in unseen),
        ),
    )


def _launch(record: LaunchRecord, kernel: KernelText, seen: Sequence[SeenParameter]) -> Launch:
    formals = kernel.entry.params
    parameters = (parameter(formal, given, lambda: kernel.needs) for formal, given in zip(formals, seen, strict=True))
    required = kernel.entry.directives.get("maxnreg", ())[:1]
    registers = required[0] if required and required[0] <= MOST_REGISTERS else record.registers
    return Launch(
        record.kernel, record.grid, record.block, record.cluster, record.dynamic_shared, registers, tuple(parameters)
    )
