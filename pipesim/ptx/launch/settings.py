"""Words of a launch given on the command line: ``--set 384=64``, ``--set tiles=64``, ``--set 8:16=5``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pipesim.bounds import MAX_POINTED_BYTES
from pipesim.errors import ParameterError
from pipesim.ptx.launch.image import checked_number, require_parameters
from pipesim.ptx.launch.values import TYPES, Array, Content, Field, Launch, Number, Parameter, Pointer, Struct, size_of
from pipesim.ptx.text.module import Function

_SPELLING = "OFFSET=VALUE, NAME=VALUE or OFFSET:OFFSET=VALUE, with TYPE:VALUE for another type, as 384=u64:5"


def with_settings(launch: Launch, function: Function, settings: Iterable[str]) -> Launch:
    """The launch with some words changed. ParameterError for a setting that is none or fits no parameter.
    LaunchFileError if the launch does not have the function's parameters.

    A place is a byte offset in the kernel's parameters or the name of a parameter; further offsets follow pointers:
    ``8:16`` is byte 16 of the memory at the pointer at offset 8. A word that the launch file names keeps its type,
    a scalar parameter's word has the parameter's, any other is 4 bytes.
    """
    require_parameters(launch, function)
    for setting in settings:
        launch = _with_setting(launch, function, setting)
    return launch


def _with_setting(launch: Launch, function: Function, setting: str) -> Launch:
    place, equals, text = setting.partition("=")
    first, *rest = place.split(":")
    numbers = [_whole(each) for each in rest]
    if not equals or not first or not text or any(number is None for number in numbers):
        raise ParameterError(f"--set {setting[:60]}: expected a place and a value", correction=f"write {_SPELLING}")
    kind, value = _value(setting, text)
    path = [number for number in numbers if number is not None]
    index, offset = _parameter(launch, function, first, setting)
    given, formal = launch.parameters[index], function.params[index]
    try:
        content = _with_word(given.content, (offset, *path), kind, value)
    except ValueError as error:
        raise ParameterError(
            f"--set {setting[:60]}: {error}", place=f"parameter {index}, {formal.name}", correction=f"write {_SPELLING}"
        ) from None
    parameters = list(launch.parameters)
    parameters[index] = Parameter(given.name, content)
    return replace(launch, parameters=tuple(parameters))


def _value(setting: str, text: str) -> tuple[str, int | float]:
    """The type ("" where none is given) and the value of what is after the equals sign."""
    kind, colon, digits = text.rpartition(":")
    if colon and kind not in TYPES:
        raise ParameterError(f"--set {setting[:60]}: {kind[:20]} is not a type", correction=f"use {', '.join(TYPES)}")
    number = _whole(digits)
    if number is not None:
        return kind, number
    try:
        return kind, float(digits)
    except ValueError:
        raise ParameterError(
            f"--set {setting[:60]}: {digits[:20]!r} is not a number", correction=f"write {_SPELLING}"
        ) from None


def _whole(text: str) -> int | None:
    try:
        return int(text, 0) if len(text) < 40 else None
    except ValueError:
        return None


def _parameter(launch: Launch, function: Function, text: str, setting: str) -> tuple[int, int]:
    """The number of the parameter that a place means, and the byte in it."""
    offset = _whole(text)
    for number, (formal, given) in enumerate(zip(function.params, launch.parameters, strict=True)):
        if offset is None and text and text in {given.name, formal.name}:
            return number, 0
        if offset is not None and formal.offset <= offset < formal.offset + formal.size:
            return number, offset - formal.offset
    end = max((each.offset + each.size for each in function.params), default=0)
    names = ", ".join(dict.fromkeys(each.name for each in launch.parameters if each.name))
    raise ParameterError(
        f"--set {setting[:60]}: the kernel has no parameter {text[:40]}",
        cause=f"its parameters have {end:,} bytes" + (f", and the names {names}" if names else ""),
        correction=f"write {_SPELLING}",
    )


def _with_word(content: Content, path: tuple[int, ...], kind: str, value: int | float) -> Content:
    """A content with the word at a place changed. Raises ValueError where there can be no word."""
    offset, *rest = path
    match content:
        case Number(type=was) if not rest:
            if offset:
                raise ValueError(f"byte {offset} is inside of a value")
            return _number(kind or was, value, TYPES[was])
        case Pointer(align=align, contents=contents) if rest and not offset:
            return Pointer(align, _in_fields(contents, (rest[0], *rest[1:]), kind, value, MAX_POINTED_BYTES))
        case Pointer() if not rest and not offset:
            return _number(kind or "u64", value, 8)
        case Struct(size=size, fields=fields):
            return Struct(size, _in_fields(fields, path, kind, value, size))
        case Number() if not offset:
            raise ValueError("the launch file has a value at this place, not a pointer to further words")
        case Array(type=was, values=values) if not rest and offset % TYPES[was] == 0:
            at = offset // TYPES[was]
            return Array(was, (*values[:at], int(_number(was, value, TYPES[was]).value or 0), *values[at + 1 :]))
        case _:
            raise ValueError("there is no word at this place")


def _in_fields(
    fields: tuple[Field, ...], path: tuple[int, ...], kind: str, value: int | float, size: int
) -> tuple[Field, ...]:
    """Fields with the word at a place changed, or a new field for it."""
    offset = path[0]
    found: list[Field] = []
    for field in fields:
        if field.offset <= offset < field.offset + size_of(field.content):
            inner = _with_word(field.content, (offset - field.offset, *path[1:]), kind, value)
            return (*found, Field(field.offset, inner), *fields[len(found) + 1 :])
        found.append(field)
    if len(path) > 1:
        raise ValueError(f"no pointer is known at byte {offset}")
    word = _number(kind or _usual(value), value, 8)
    if offset + TYPES[word.type] > size:
        raise ValueError(f"byte {offset} is after its end")
    return tuple(sorted([*found, Field(offset, word)], key=lambda each: each.offset))


def _usual(value: int | float) -> str:
    """The type of a word that the launch file does not have."""
    if isinstance(value, float):
        return "f32"
    return "u32" if -(1 << 31) <= value < 1 << 32 else "u64"


def _number(kind: str, value: int | float, most: int) -> Number:
    if TYPES[kind] > most:
        raise ValueError(f"{kind} has more than {most} bytes")
    return checked_number(kind, value)
