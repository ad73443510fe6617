"""Words and boxes of a launch, of the command line: ``--set 384=64``, ``--set 8:16=5``, ``--box a=bf16:64,128``."""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from math import prod

from pipesim.bounds import MAX_POINTED_BYTES
from pipesim.errors import ParameterError
from pipesim.model.dependent_launch import EarlierUse
from pipesim.model.words import SEES, STRONG_DATA, TURNS
from pipesim.ptx.flow.addresses import ParameterPlaces
from pipesim.ptx.flow.slice import LaunchNeed, Need, Slice
from pipesim.ptx.flow.uses import uses_of
from pipesim.ptx.launch.image import checked_number, greatest, require_parameters
from pipesim.ptx.launch.values import (
    ALL,
    ELEMENTS,
    HANDED_OUT,
    LAUNCH_CONTROL,
    NO_SHAPE,
    SHAPES,
    TILE_COUNTER,
    TYPES,
    Array,
    Content,
    Field,
    FreeRange,
    Launch,
    Number,
    Parameter,
    Pointer,
    Struct,
    TensorMap,
    shape_of,
    size_of,
)
from pipesim.ptx.text.declarations import Function, Param

_MAP_BYTES = 128
_UNKNOWN = TensorMap()
_UNSIGNED = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


def template(function: Function, needed: Slice) -> Launch:
    """A launch of the kernel in which an integer that it reads has no value, and every other number is 0.

    What leads to global memory is a pointer. The CTA and the cluster are those of the directives where there are some,
    else :data:`NO_SHAPE` and one CTA. A tensor map has no box: PTX does not say one. Of a kernel that waits for earlier
    ones what these do is left open.
    """
    threads = function.directives.get("reqntid") or function.directives.get("maxntid")
    block = shape_of(threads) if threads else NO_SHAPE
    cluster = shape_of(function.directives.get("reqnctapercluster") or (1,))
    registers = (function.directives.get("maxnreg") or (0,))[0]
    places = ParameterPlaces(function, uses_of(function))
    leads = places.pointers(function.body)
    read = {places.parameter(each.operands[1]) for each in function.body if each.opcode == "ld"} - {None}
    contents = [_content(each, needed.wanted, leads, read) for each in function.params]
    if any(each.opcode == "griddepcontrol" and each.has("wait") for each in function.body):
        contents = list(map(_with_earlier, contents))
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


def _content(formal: Param, wanted: Sequence[LaunchNeed], leads: Set[int], read: Set[int | None]) -> Content:
    """What a parameter looks like, with what is required of it. ``leads``: the offsets of pointers to global memory,
    ``read``: of what is read.
    """
    inside = [each for each in wanted if formal.offset <= each.offset < formal.offset + formal.size]
    maps = [each for each in inside if each.need is Need.TENSOR_MAP]
    words = [each for each in inside if each.need is Need.PARAMETER]
    if formal.size == _MAP_BYTES and (maps or (formal.align >= 64 and not words)):
        return _UNKNOWN
    if formal.pointer or (formal.size == 8 and formal.offset in leads):
        return Pointer()
    if formal.size in _UNSIGNED and formal.type != "b8":
        kind = formal.type if formal.type in TYPES else _UNSIGNED[formal.size]
        return Number(kind, None if words or (formal.offset in read and kind[0] != "f") else 0)
    fields = [Field(each.offset - formal.offset, _UNKNOWN) for each in maps]
    covered = {each.offset + n for each in maps for n in range(_MAP_BYTES)}
    for each in words:
        if each.offset in covered:
            continue
        covered |= {each.offset + n for n in range(each.nbytes)}
        kind = each.type if each.type in TYPES else _UNSIGNED[each.nbytes]
        pointer = each.nbytes == 8 and each.offset in leads
        fields.append(Field(each.offset - formal.offset, Pointer() if pointer else Number(kind, None)))
    rest = range(formal.offset, formal.offset + formal.size - 7)
    fields += [
        Field(at - formal.offset, Pointer()) for at in leads if at in rest and covered.isdisjoint(range(at, at + 8))
    ]
    return Struct(formal.size, tuple(sorted(fields, key=lambda field: field.offset)))


BOX = "--box "  #: what a setting begins with that gives a box
_WORD = "NAME=VALUE, OFFSET=VALUE, or NAME:BYTE=VALUE,VALUE of an array, with TYPE:VALUE for another type, as 384=u64:5"
_BOX = "OFFSET=TYPE:SIZES or NAME=TYPE:SIZES, the innermost size first, as 128=bf16:64,128"
_MOST_NAMED = 20
_OF_WORDS = ("together", "resident", "inside", TURNS, STRONG_DATA, SEES)
_POLICIES = ("launch_control", "tile_counter", "cta", "shared", *_OF_WORDS, *SHAPES)
_MOST_SIZES, _MOST_SIZE = 5, 1 << 16

Put = Callable[[Content | None], Content]  #: what belongs at a place, from what is known there; ValueError says why not


def setting_words(setting: str) -> tuple[str, str]:
    """A setting as a command line has it: its option and its text."""
    return (BOX.strip(), setting.removeprefix(BOX)) if setting.startswith(BOX) else ("--set", setting)


def with_settings(launch: Launch, function: Function, settings: Iterable[str]) -> Launch:
    """The launch with some words and boxes changed. ParameterError for a setting that is none or fits no parameter.
    LaunchFileError if the launch does not have the function's parameters.

    A place is a byte offset in the kernel's parameters or the name of a parameter; further offsets follow pointers:
    ``8:16`` is byte 16 of the memory at the pointer at offset 8, and values with commas are those from there on. A word
    that the launch file names keeps its type, a scalar parameter's word has the parameter's, any other is 4 bytes. With
    :data:`BOX` at its beginning a setting gives the box of the tensor map at the place; an element's type may be left
    out where the launch file has it. The policies
    ``launch_control`` and ``tile_counter`` are also words, as ``cta`` is, each tile that is ``handed_out``, and the
    sizes of the launch: ``grid``, ``grid.y`` and ``cluster`` in CTAs, ``block`` in threads, ``shared`` in bytes; with
    commas those of several dimensions, ``grid=8,4``.
    """
    require_parameters(launch, function)
    for setting in settings:
        launch = _with_setting(launch, function, *setting_words(setting))
    return launch


def is_open_word(launch: Launch, function: Function, name: str) -> bool:
    """Whether the launch has no value for a word that may have any, named as ``--set`` does it.

    ParameterError if there is no such word; False for a number of tiles.
    """
    if name in (LAUNCH_CONTROL, TILE_COUNTER) and name not in {each.name for each in launch.parameters}:
        return False
    found: list[bool] = []

    def put(was: Content | None) -> Content:
        found.append(was is None or (isinstance(was, Number) and was.value is None))
        return Number("u32", None) if was is None else was

    _put(launch, function, "--any", name, name, put)
    return found[0]


def with_free_range(launch: Launch, function: Function, name: str, free: FreeRange) -> Launch:
    """The launch in which a word that may have other values may have these, and now has ``free.seen``.

    ParameterError if its type does not hold a lap more than that.
    """
    if launch.free_tiles is not None:
        return replace(launch.with_setting(name, free.seen), free_tiles=free)

    def put(was: Content | None) -> Content:
        assert isinstance(was, Number), "the word has values already"
        checked_number(was.type, free.seen + free.lap)
        return Number(was.type, free.seen, free)

    return _put(launch, function, "--any", name, name, put)


def with_free_word(
    launch: Launch, function: Function, name: str, low: int, high: int | None, step: int,
    *, left: tuple[int, int, int] | None = None,
) -> tuple[Launch, FreeRange]:  # fmt: skip
    """The launch in which a word, named as ``--set`` does it, may have other values, and which they are.

    ``high``: None for the greatest one of its type. The word's value becomes the nearest of these. ParameterError if
    there is no such word. ``launch_control`` is the number of tiles that it hands out, ``tile_counter`` that of a
    counter of which all tiles are ``left``.
    """
    found: list[FreeRange] = []
    if left is not None or (name == LAUNCH_CONTROL and name not in {each.name for each in launch.parameters}):
        most = prod(launch.grid) // prod(launch.cluster) - 1 if left is None else left[0]
        tiles = FreeRange(low if low > 1 else 0, most if high is None else min(high, most), step, name)
        return replace(launch, free_tiles=tiles, left=left).with_setting(name, tiles.low), tiles

    def put(was: Content | None) -> Content:
        word = Number("u32", None) if was is None else was
        if not isinstance(word, Number) or word.type.startswith(("f", "bf")):
            raise ValueError("there is no integer at this place")
        most = greatest(word.type)
        free = FreeRange(low, most if high is None else high, step, name)
        if not 0 <= low <= free.high <= most:
            raise ValueError(f"a word of type {word.type} has no values from {low:,} to {free.high:,}")
        found.append(free)
        now = min(max(int(word.value or 0), low), free.high)
        return Number(word.type, now - (now - low) % step, free)

    return _put(launch, function, "--any", name, name, put), found[0]


def _with_setting(launch: Launch, function: Function, option: str, text: str) -> Launch:
    name, _, number = text.partition("=")
    policy, colon, at = name.partition(":")
    known = policy in _POLICIES if not colon else policy == HANDED_OUT and _whole(at) is not None
    if known and policy not in {each.name for each in launch.parameters}:
        if policy in SHAPES and 0 < number.count(",") < 3 and "." not in policy:  # sizes of several dimensions
            for axis, size in zip(("", ".y", ".z"), number.split(","), strict=False):
                launch = _with_setting(launch, function, option, f"{policy}{axis}={size}")
            return launch
        if _whole(number) not in (range(1, 1 << 31) if policy in SHAPES else range(1 << 63)):
            raise ParameterError(f"{option} {text[:60]}: expected a count or a value from 0 on")
        return launch.with_setting(name, int(number, 0))
    is_box = option == BOX.strip()
    place, equals, value = text.partition("=")
    if not equals or not value:
        raise ParameterError(f"{option} {text[:60]}: {_expected(option)}", correction=_spelling(option))
    pointer, _, first = place.rpartition(":")
    kind, colon, values = value.rpartition(":")
    start = _whole(first) if pointer and "," in values and not is_box else None
    if start is not None:  # elements, one after the other
        for n, each in enumerate(values.split(",")):
            byte = start + n * TYPES.get(kind, 4)
            launch = _with_setting(launch, function, option, f"{pointer}:{byte}={kind}{colon}{each}")
        return launch
    try:
        put = _put_box(value) if is_box else _put_word(*_value(value))
    except ValueError as error:
        raise ParameterError(f"{option} {text[:60]}: {error}", correction=_spelling(option)) from None
    return _put(launch, function, option, text, place, put)


def _spelling(option: str) -> str:
    return f"write {_BOX if option == BOX.strip() else _WORD}"


def _expected(option: str) -> str:
    return f"expected a place and {'sizes' if option == BOX.strip() else 'a value'}"


def _put(launch: Launch, function: Function, option: str, text: str, place: str, put: Put) -> Launch:
    """The launch with what is at a place changed; ``text`` is what the option was given."""
    spelling, said = _spelling(option), f"{option} {text[:60]}"
    first, *rest = place.split(":")
    numbers = [_whole(each) for each in rest]
    if not first or None in numbers:
        raise ParameterError(f"{said}: {_expected(option)}", correction=spelling)
    path = [number for number in numbers if number is not None]
    try:
        index, offset = parameter_at(launch, function, first)
    except ValueError as error:
        raise ParameterError(f"{said}: {error}", correction=spelling) from None
    given, formal = launch.parameters[index], function.params[index]
    try:
        content = _changed(given.content, (offset, *path), put)
    except ValueError as error:
        raise ParameterError(
            f"{said}: {error}", place=f"parameter {index}, {formal.name}", correction=spelling
        ) from None
    parameters = list(launch.parameters)
    parameters[index] = Parameter(given.name, content)
    return replace(launch, parameters=tuple(parameters))


def _value(text: str) -> tuple[str, int | float]:
    """The type ("" where none is given) and the value of what is after the equals sign."""
    kind, colon, digits = text.rpartition(":")
    if colon and kind not in TYPES:
        raise ValueError(f"{kind[:20]} is not a type: use {', '.join(TYPES)}")
    number = _whole(digits)
    if number is not None:
        return kind, number
    try:
        return kind, float(digits)
    except ValueError:
        raise ValueError(f"{digits[:20]!r} is not a number") from None


def _whole(text: str) -> int | None:
    try:
        return int(text, 0) if len(text) < 40 else None
    except ValueError:
        return None


def parameter_at(launch: Launch, function: Function, text: str) -> tuple[int, int]:
    """The number of the parameter that a place means, and the byte in it. ValueError if there is none.

    A place is a byte of all parameters, ``24`` or ``params+24``, a parameter, or a byte of it: ``problem+8``.
    """
    formals = list(zip(function.params, launch.parameters, strict=True))
    name, _, inside = text.partition("+")
    byte, end = _whole(inside), max((each.offset + each.size for each in function.params), default=0)
    named = [(0, end)] if name == ALL else [(f.offset, f.size) for f, given in formals if name in {given.name, f.name}]
    offset = named[0][0] + byte if byte is not None and named and byte < named[0][1] else _whole(text)
    for number, (formal, given) in enumerate(formals):
        if offset is None and text and text in {given.name, formal.name}:
            return number, 0
        if offset is not None and formal.offset <= offset < formal.offset + formal.size:
            return number, offset - formal.offset
    at = ", ".join(f"{each.name or formal.name} at {formal.offset}" for formal, each in formals[:_MOST_NAMED])
    if offset is None:
        raise ValueError(f"the launch file names no parameter {text[:40]}; in order they are {at or 'none'}")
    raise ValueError(f"the kernel has no parameter {text[:40]}: its parameters have {end:,} bytes")


def _put_word(kind: str, value: int | float) -> Put:
    def put(was: Content | None) -> Content:
        match was:
            case None:
                return _number(kind or _usual(value), value, 8)
            case Number(type=held, free=free):
                return replace(_number(kind or held, value, TYPES[held]), free=free)
            case Pointer():
                return _number(kind or "u64", value, 8)
            case _:
                raise ValueError("there is no word at this place")

    return put


def _put_box(text: str) -> Put:
    element, colon, given = text.rpartition(":")
    sizes = [_whole(each) for each in given.split(",")]
    box = tuple(size for size in sizes if size is not None and 1 <= size <= _MOST_SIZE)
    if colon and element not in ELEMENTS:
        raise ValueError(f"{element[:20]} is not the type of an element: use {', '.join(ELEMENTS)}")
    if len(box) != len(sizes) or len(box) > _MOST_SIZES:
        raise ValueError(f"expected 1 to {_MOST_SIZES} sizes from 1 to {_MOST_SIZE:,}, with commas between them")

    def put(was: Content | None) -> Content:
        held = was if isinstance(was, TensorMap) else TensorMap()
        if was is not None and held is not was:
            raise ValueError("there is no tensor map at this place")
        if not (element or held.element):
            raise ValueError("the launch file does not say the type of this map's elements")
        pixels = held.pixels if len(box) == 1 else 0
        return replace(held, element=element or held.element, box=box, pixels=pixels)

    return put


def _changed(content: Content, path: tuple[int, ...], put: Put) -> Content:
    """A content with what is at a place changed. Raises ValueError where that cannot be."""
    offset, *rest = path
    match content:
        case Struct(size=size, fields=fields):
            return Struct(size, _in_fields(fields, path, put, size))
        case Pointer(contents=contents) if rest and not offset:
            inner = _in_fields(contents, (rest[0], *rest[1:]), put, MAX_POINTED_BYTES)
            return replace(content, contents=inner)
        case Number() if rest and not offset:
            raise ValueError("the launch file has a value at this place, not a pointer to further words")
        case Number() if offset:
            raise ValueError(f"byte {offset} is inside of a value")
        case Array(type=was, values=values) if not rest and offset % TYPES[was] == 0:
            at = offset // TYPES[was]
            word = put(Number(was, values[at]))
            assert isinstance(word, Number), "a word replaces a word"
            if word.free is None:
                return Array(was, (*values[:at], int(word.value or 0), *values[at + 1 :]))
            before, after = replace(content, values=values[:at]), replace(content, values=values[at + 1 :])
            parts = Field(0, before), Field(offset, word), Field(offset + TYPES[was], after)
            return Struct(size_of(content), tuple(part for part in parts if size_of(part.content)))
        case Number() | Pointer() | TensorMap() if not rest and not offset:
            return put(content)
        case _:
            raise ValueError("there is nothing that can be given at this place")


def _in_fields(fields: tuple[Field, ...], path: tuple[int, ...], put: Put, size: int) -> tuple[Field, ...]:
    """Fields with what is at a place changed, or a new field for it."""
    offset = path[0]
    found: list[Field] = []
    for field in fields:
        if field.offset <= offset < field.offset + size_of(field.content):
            inner = _changed(field.content, (offset - field.offset, *path[1:]), put)
            return (*found, Field(field.offset, inner), *fields[len(found) + 1 :])
        found.append(field)
    if len(path) > 1:
        raise ValueError(f"no pointer is known at byte {offset}")
    new = put(None)
    if offset + size_of(new) > size:
        raise ValueError(f"byte {offset} is after its end")
    return tuple(sorted([*found, Field(offset, new)], key=lambda each: each.offset))


def _usual(value: int | float) -> str:
    """The type of a word that the launch file does not have."""
    if isinstance(value, float):
        return "f32"
    return "u32" if -(1 << 31) <= value < 1 << 32 else "u64"


def _number(kind: str, value: int | float, most: int) -> Number:
    if TYPES[kind] > most:
        raise ValueError(f"{kind} has more than {most} bytes")
    return checked_number(kind, value)
