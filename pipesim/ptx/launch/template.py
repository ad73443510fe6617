"""A launch file to fill in: what the PTX says is filled in, what the slice needs is named and left open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pipesim.model.dependent_launch import EarlierUse
from pipesim.ptx.flow.opcodes import may_touch_global
from pipesim.ptx.flow.slice import LaunchNeed, Need, ParameterPlaces, Slice
from pipesim.ptx.flow.uses import uses_of
from pipesim.ptx.launch.values import (
    NO_SHAPE,
    TYPES,
    Content,
    Field,
    Launch,
    Number,
    Parameter,
    Pointer,
    Struct,
    TensorMap,
    shape_of,
)
from pipesim.ptx.text.declarations import Function, Param

_MAP_BYTES = 128
_UNKNOWN = TensorMap()
_UNSIGNED = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


def template(function: Function, needed: Slice) -> Launch:
    """A launch of the kernel in which a word that the slice needs has no value, and every other one is 0.

    The CTA and the cluster are those of the directives where there are some, else :data:`NO_SHAPE` and one CTA. A
    tensor map has no box: PTX does not say one. Of a kernel that waits for earlier ones what these do is left open.
    """
    threads = function.directives.get("reqntid") or function.directives.get("maxntid")
    block = shape_of(threads) if threads else NO_SHAPE
    cluster = shape_of(function.directives.get("reqnctapercluster") or (1,))
    registers = (function.directives.get("maxnreg") or (0,))[0]
    contents = [_content(each, needed.wanted) for each in function.params]
    if any(each.opcode == "griddepcontrol" and each.has("wait") for each in function.body):
        places = ParameterPlaces(function, uses_of(function))
        leads = {
            places.pointer(operand) for each in function.body if may_touch_global(each) for operand in each.operands
        }
        contents = [
            Pointer(earlier=EarlierUse.UNKNOWN) if formal.size == 8 and formal.offset in leads else _with_earlier(each)
            for formal, each in zip(function.params, contents, strict=True)
        ]
    parameters = tuple(Parameter("", each) for each in contents)
    return Launch(function.name, cluster, block, cluster, 0, registers, parameters)


def _with_earlier(content: Content) -> Content:
    """The content, with what earlier kernels do with its buffers to be filled in."""
    match content:
        case Pointer() | TensorMap():
            return replace(content, earlier=EarlierUse.UNKNOWN)
        case Struct(fields=fields):
            inner = (each._replace(content=_with_earlier(each.content)) for each in fields)
            return replace(content, fields=tuple(inner))
        case _:
            return content


def open_words(launch: Launch, function: Function) -> tuple[int, ...]:
    """The offsets, in the parameters, of words that still have no value."""
    found: list[int] = []
    for given, formal in zip(launch.parameters, function.params, strict=True):
        found += [formal.offset + offset for offset in _open(given.content)]
    return tuple(found)


def has_tensor_maps(contents: Iterable[Content]) -> bool:
    """Whether a tensor map is among them."""
    return any(
        isinstance(each, TensorMap)
        or (isinstance(each, Struct) and has_tensor_maps(field.content for field in each.fields))
        for each in contents
    )


def _open(content: Content) -> list[int]:
    match content:
        case Number(value=None):
            return [0]
        case Struct(fields=fields):
            return [each.offset + offset for each in fields for offset in _open(each.content)]
        case _:
            return []


def _content(formal: Param, wanted: Sequence[LaunchNeed]) -> Content:
    """What a parameter looks like, with what is required of it."""
    inside = [each for each in wanted if formal.offset <= each.offset < formal.offset + formal.size]
    maps = [each for each in inside if each.need is Need.TENSOR_MAP]
    words = [each for each in inside if each.need is Need.PARAMETER]
    leads = any(each.need in {Need.MEMORY, Need.ATOMIC} for each in inside)
    if formal.size == _MAP_BYTES and (maps or (formal.align >= 64 and not words)):
        return _UNKNOWN
    if formal.pointer or (formal.size == 8 and leads):
        return Pointer()
    if formal.size in _UNSIGNED and formal.type != "b8":
        kind = formal.type if formal.type in TYPES else _UNSIGNED[formal.size]
        return Number(kind, None if words else 0)
    fields = [Field(each.offset - formal.offset, _UNKNOWN) for each in maps]
    covered = {each.offset + n for each in maps for n in range(_MAP_BYTES)}
    for each in words:
        if each.offset in covered:
            continue
        covered |= {each.offset + n for n in range(each.nbytes)}
        pointer = each.nbytes == 8 and any(
            other.offset == each.offset and other.need in {Need.MEMORY, Need.ATOMIC} for other in inside
        )
        kind = each.type if each.type in TYPES else _UNSIGNED[each.nbytes]
        fields.append(Field(each.offset - formal.offset, Pointer() if pointer else Number(kind, None)))
    return Struct(formal.size, tuple(sorted(fields, key=lambda field: field.offset)))
