"""The JSON form of a launch: ``read_launch`` and ``launch_json`` are inverse (docs/launch-file.md)."""

import json
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

from pipesim.bounds import MAX_LAUNCH_BYTES, MAX_LOCK_FAILURES, MAX_POINTED_BYTES
from pipesim.errors import LaunchFileError
from pipesim.inputs import InputKind
from pipesim.model.dependent_launch import EarlierUse
from pipesim.ptx.launch.image import checked_number
from pipesim.ptx.launch.members import PAGE, Members
from pipesim.ptx.launch.values import (
    ELEMENTS,
    FORMAT,
    INTERLEAVES,
    LAUNCH_VERSION,
    NO_SHAPE,
    SWIZZLES,
    TYPES,
    Array,
    Content,
    Field,
    Free,
    GivenNames,
    Launch,
    NamedBarriers,
    NamedRole,
    NamedTile,
    Number,
    Parameter,
    Pointer,
    Policies,
    Shape,
    Struct,
    TensorMap,
    shape_of,
    size_of,
)
from pipesim.ptx.text.declarations import Function

LAUNCH_FILE = InputKind("launch file", MAX_LAUNCH_BYTES, LaunchFileError, PAGE)
MOST_NAME = 80  #: characters
MOST_VALUES = 1 << 20  #: of an array, and of all that have a count
MOST_SPACE = 1 << 15  #: bytes of all parameters (PTX ISA, "Kernel Function Parameters": 32,764)
MOST_GRID, MOST_THREADS, MOST_CLUSTER, MOST_SHARED, MOST_REGISTERS = (1 << 31) - 1, 1024, 16, 1 << 20, 256
_MEMBERS = ("format", "version", "entry", "grid", "block", "cluster", "dynamic_shared_bytes", "registers_per_thread")
_POLICIES = ("tile_counter", "launch_control", "lock_failures", "handed_out")
_MAP = ("kind", "element", "dims", "box", "strides", "element_strides", "swizzle", "interleave", "pixels", "earlier")
KINDS = {
    "value": ("kind", "type", "value"),
    "array": ("kind", "type", "values", "count", "free"),
    "pointer": ("kind", "align", "contents", "earlier"),
    "tensor_map": _MAP,
    "struct": ("kind", "size", "fields"),
}
_NAMES = {"nbytes": "bytes"}  #: of members
_DEEPEST = 8  #: structures and pointers inside each other


def read_launch(text: str, name: str, *, open_block: bool = False) -> Launch:
    """The launch that a file's text describes; ``name`` is the file's, for messages. Raises LaunchFileError.

    ``open_block``: its threads may be null, and are :data:`NO_SHAPE`.
    """
    data = LAUNCH_FILE.parse_json(text, name)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise LaunchFileError(f'this is not a launch file: it has no "format": "{FORMAT}"', place=name, correction=PAGE)
    if data.get("version") != LAUNCH_VERSION:
        raise LaunchFileError(
            f"a launch file of version {str(data.get('version'))[:20]} cannot be read",
            place=name,
            cause=f"this pipesim reads version {LAUNCH_VERSION}",
            correction="update pipesim",
        )
    is_open = open_block and data.get("block", 0) is None
    data = data | {"block": [1]} if is_open else data
    made = _launch(Members(data, name, (*_MEMBERS, "cta", "parameters", "policies", "names")))
    return replace(made, block=NO_SHAPE) if is_open else made


def _promised(data: Any) -> int:
    """The values that the ``count`` of arrays in a file asks for, of each as many as it may have."""
    if isinstance(data, list):
        return sum(map(_promised, data))
    if not isinstance(data, dict):
        return 0
    count = data.get("count")
    here = min(count, MOST_VALUES) if type(count) is int and count > 0 else 0
    return here + sum(map(_promised, data.values()))


def _launch(given: Members) -> Launch:
    if (promised := _promised(given.data)) > MOST_VALUES:
        fact = f"the counts of its arrays are {promised:,} together; at most {MOST_VALUES:,} values are possible"
        raise given.error("parameters", fact, correction="give only the arrays that the kernel reads")
    policies = Members(given.data.get("policies", {}), given.place_of("policies"), _POLICIES)
    parameters = []
    for number, each in enumerate(given.items("parameters", [])):
        place = given.place_of(f"parameters[{number}]")
        name = Members(each, place, tuple(each)).text("name", "") if isinstance(each, dict) else ""
        plain = {key: value for key, value in each.items() if key != "name"} if isinstance(each, dict) else each
        parameters.append(Parameter(name, content := _content(plain, place, 0)))
        if isinstance(content, Number) and content.of_grid and content.value != read_shape(given, "grid", MOST_GRID)[0]:
            raise LaunchFileError("the value is not that of gridDim.x", place=place, correction="leave out equals")
    return Launch(
        given.text("entry", ""),
        read_shape(given, "grid", MOST_GRID),
        read_shape(given, "block", MOST_THREADS),
        read_shape(given, "cluster", MOST_CLUSTER, default=(1, 1, 1)),
        given.whole("dynamic_shared_bytes", 0, high=MOST_SHARED),
        given.whole("registers_per_thread", 0, high=MOST_REGISTERS),
        tuple(parameters),
        Policies(
            policies.whole("tile_counter", 0),
            policies.whole("launch_control", high=MOST_VALUES) if "launch_control" in policies.data else None,
            policies.whole("lock_failures", 0, high=MAX_LOCK_FAILURES),
            policies.wholes("handed_out", [], most=MOST_VALUES),
        ),
        cta=given.whole("cta", high=MOST_GRID) if "cta" in given.data else None,
        names=_names(Members(given.data.get("names", {}), given.place_of("names"), GivenNames._fields)),
    )


def _names(given: Members) -> GivenNames:
    def each(name: str, *known: str) -> Iterator[Members]:
        for number, one in enumerate(given.items(name, [])):
            yield Members(one, given.place_of(f"{name}[{number}]"), ("name", *known))

    barriers = [
        NamedBarriers(
            _name(one),
            one.whole("offset", high=MOST_SHARED),
            one.whole("stages", 1, low=1, high=MOST_SHARED // 8),
            one.whole("step", 8, low=8, high=MOST_SHARED),
        )
        for one in each("barriers", "offset", "stages", "step")
    ]
    tiles = [
        NamedTile(
            _name(one),
            one.whole("offset", high=MOST_SHARED),
            one.whole("bytes", low=1, high=MOST_SHARED),
            one.whole("slots", 1, low=1, high=MOST_SHARED),
        )
        for one in each("tiles", "offset", "bytes", "slots")
    ]
    roles = [
        NamedRole(_name(one), one.wholes("warps", high=MOST_THREADS // 32 - 1, most=MOST_THREADS // 32))
        for one in each("roles", "warps")
    ]
    ends = [each.offset + each.stages * each.step for each in barriers]
    if max(ends + [each.offset + each.nbytes * each.slots for each in tiles], default=0) > MOST_SHARED:
        raise given.error("offset", f"a range ends after {MOST_SHARED:,} bytes of shared memory")
    for kind, found in (("barriers", barriers), ("tiles", tiles), ("roles", roles)):
        if len({one.name for one in found}) < len(found):
            raise given.error(kind, "two of them have the same name")
    return GivenNames(tuple(barriers), tuple(tiles), tuple(roles))


def _name(given: Members) -> str:
    name = given.text("name")
    if not name or len(name) > MOST_NAME or not name.isprintable():
        raise given.error("name", f"expected 1 to {MOST_NAME} printable characters")
    return name


def not_given(place: str) -> LaunchFileError:
    """Of a size that is null."""
    name = place.rpartition(".")[2]
    return LaunchFileError(
        f"{name} is not given",
        place=place,
        cause="PTX does not say it, and the file was made with null there",
        correction=f'write what the kernel is launched with, such as "{name}": [384, 1, 1], or give --set {name}=384',
    )


def read_shape(given: Members, name: str, high: int, default: Shape | None = None) -> Shape:
    """A member of one to three sizes from 1 to ``high``, x first. Raises LaunchFileError."""
    if name in given.data and given.data[name] is None:
        raise not_given(given.place_of(name))
    found = given.wholes(name, default, low=1, high=high, most=3)
    if not found:
        raise given.error(name, "expected one to three numbers")
    return shape_of(found)


def _content(data: Any, place: str, depth: int) -> Content:
    kind = Members(data, place, tuple(data) if isinstance(data, dict) else ()).text("kind", among=tuple(KINDS))
    given = Members(data, place, KINDS[kind] + (("equals",) if kind == "value" and not depth else ()))
    if depth > _DEEPEST:
        raise LaunchFileError("structures and pointers are nested too deeply", place=place, correction=PAGE)
    match kind:
        case "value":
            return _number(given)
        case "array":
            return _array(given)
        case "pointer":
            align = given.whole("align", 256, low=1, high=1 << 30)
            if align & (align - 1):
                raise given.error("align", f"{align} is not a power of two")
            return Pointer(align, _fields(given, "contents", MAX_POINTED_BYTES, depth), _earlier(given))
        case "tensor_map":
            return read_tensor_map(given)
        case _:
            size = given.whole("size", low=1, high=MOST_SPACE)
            return Struct(size, _fields(given, "fields", size, depth))


def _earlier(given: Members) -> EarlierUse | None:
    known = tuple(each.value for each in EarlierUse)
    return EarlierUse(given.text("earlier", among=known)) if "earlier" in given.data else None


def _array(given: Members) -> Array:
    name = given.text("type", among=tuple(TYPES))
    bits = 8 * TYPES[name]
    low, high = -(1 << bits - 1), (1 << bits) - 1
    free = None if "free" not in given.data else _free(given, name)
    if free is None or "values" in given.data:
        values = given.wholes("values", low=low, high=high, most=MOST_VALUES)
    else:
        step = free.rises_by[0] if free.rises_by is not None else 0
        values = tuple(free.low + n * step for n in range(given.whole("count", low=1, high=MOST_VALUES)))
    if free is not None and (wrong := free.why_not(values)):
        raise given.error("values", wrong, correction="give wider bounds, or other values for the first run")
    return Array(name, values, free)


_FREE = 'write the least and the greatest value, as "free": {"low": 0, "high": 512, "step": 64}'


def _free(given: Members, kind: str) -> Free:
    """The values that the elements of an array of a type may have. LaunchFileError without bounds, and if none fits."""
    each = Members(given.data["free"], given.place_of("free"), ("low", "high", "step", "rises_by"))
    if missing := [name for name in ("low", "high") if name not in each.data]:
        raise LaunchFileError(
            f"a free array has no bounds: {' and '.join(missing)} of its elements are missing",
            place=each.place,
            cause="whatever the elements hold would have to be looked at",
            correction=_FREE,
        )
    if kind[0] not in "usb" or kind == "bf16":
        raise each.error("low", f"elements of type {kind} are no whole numbers", correction="use a type such as u32")
    half = 1 << 8 * TYPES[kind] - (kind[0] == "s")
    low, high = (each.whole(name, low=-half if kind[0] == "s" else 0, high=half - 1) for name in ("low", "high"))
    step = each.whole("step", 1, low=1)
    if low > high or (high - low) % step:
        fact = f"{low} to {high} in steps of {step}" if low <= high else f"from {low} to {high}"
        raise each.error("high", f"no range of values goes {fact}", correction=_FREE)
    rises = each.wholes("rises_by", high=half - 1, most=2) if "rises_by" in each.data else ()
    if "rises_by" in each.data and (len(rises) != 2 or rises[0] > rises[1] or any(by % step for by in rises)):
        fact = f"expected the least and the greatest of the differences, multiples of {step}"
        raise each.error("rises_by", fact, correction='write for instance "rises_by": [0, 512]')
    return Free(low, high, step, (rises[0], rises[1]) if rises else None)


def _number(given: Members) -> Number:
    name, value = given.text("type", among=tuple(TYPES)), given.number("value")
    try:
        return replace(checked_number(name, value), of_grid=bool(given.text("equals", "", among=("", "gridDim.x"))))
    except ValueError as error:
        raise given.error("value", str(error)) from None


def _fields(given: Members, name: str, size: int, depth: int) -> tuple[Field, ...]:
    found = []
    for number, each in enumerate(given.items(name, [])):
        place = given.place_of(f"{name}[{number}]")
        offset = Members(each, place, tuple(each) if isinstance(each, dict) else ()).whole("offset", high=size)
        content = _content({key: value for key, value in each.items() if key != "offset"}, place, depth + 1)
        if offset + size_of(content) > size:
            raise LaunchFileError(f"the field ends after the {size:,} bytes of its structure", place=place)
        found.append(Field(offset, content))
    return tuple(sorted(found, key=lambda each: each.offset))


def read_tensor_map(given: Members) -> TensorMap:
    """The tensor map that members of KINDS["tensor_map"] describe. Raises LaunchFileError."""
    pixels = given.whole("pixels", 0, high=1024)
    found = TensorMap(
        given.text("element", "", ("", *ELEMENTS)),
        given.wholes("dims", [], low=1, high=1 << 40),
        given.wholes("box", [], low=1, high=1 << 16),
        given.wholes("strides", [], low=0),
        given.wholes("element_strides", [], low=1, high=8),
        given.text("swizzle", "none", SWIZZLES),
        given.text("interleave", "none", INTERLEAVES),
        pixels,
        _earlier(given),
    )
    if pixels and len(found.box) != 1:
        raise given.error("box", "expected the channels alone, because pixels is given")
    if bool(found.element) != bool(found.box):
        raise given.error("box", "box and element are given together, or neither of them")
    return found


def launch_json(launch: Launch) -> str:
    """The launch as JSON text; members that have their default value are left out."""
    data: dict[str, Any] = {"format": FORMAT, "version": launch.version, "entry": launch.entry}
    block = None if launch.block == NO_SHAPE else list(launch.block)
    data |= {"grid": list(launch.grid), "block": block, "cluster": list(launch.cluster)}
    data |= {"dynamic_shared_bytes": launch.dynamic_shared, "registers_per_thread": launch.registers}
    data |= {} if launch.cta is None else {"cta": launch.cta}
    named = [{"name": each.name} if each.name else {} for each in launch.parameters]
    data["parameters"] = [name | _document(each.content) for name, each in zip(named, launch.parameters, strict=True)]
    data["policies"] = {"tile_counter": launch.policies.tile_counter} | _written(launch.policies)
    if launch.names != GivenNames():
        data["names"] = names_json(launch.names)
    rows = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in data.items() if key != "parameters"]
    listed = ",\n".join(f"    {json.dumps(each)}" for each in data["parameters"])
    rows.insert(list(data).index("parameters"), f'  "parameters": [\n{listed}\n  ]' if listed else '  "parameters": []')
    return "{\n" + ",\n".join(rows) + "\n}\n"


def names_json(names: GivenNames) -> dict[str, Any]:
    """The member ``names``; what has its default value is left out."""
    return {kind: [_written(each) for each in found] for kind, found in names._asdict().items() if found}


def _written(one: Policies | Free | NamedBarriers | NamedTile | NamedRole) -> dict[str, Any]:
    """The members of an object, without those that have their default value."""
    values, defaults = (one._asdict(), one._field_defaults) if isinstance(one, tuple) else (vars(one), vars(type(one)))
    left = {name: value for name, value in values.items() if name not in defaults or value != defaults[name]}
    return {_NAMES.get(name, name): list(value) if isinstance(value, tuple) else value for name, value in left.items()}


def _document(content: Content) -> dict[str, Any]:
    match content:
        case Number(type=kind, value=value):
            number = {"kind": "value", "type": kind, "value": value}
            return number | ({"equals": "gridDim.x"} if content.of_grid else {})
        case Array(type=kind, values=values, free=free):
            array = {"kind": "array", "type": kind, "values": list(values)}
            return array | ({} if free is None else {"free": _written(free)})
        case Pointer(align=align, contents=contents):
            found: dict[str, Any] = {"kind": "pointer"} | ({"align": align} if align != 256 else {})
            found |= {"earlier": content.earlier.value} if content.earlier else {}
            return found | ({"contents": [_field(each) for each in contents]} if contents else {})
        case Struct(size=size, fields=fields):
            return {"kind": "struct", "size": size, "fields": [_field(each) for each in fields]}
        case TensorMap():
            sizes = {"dims": content.dims, "box": content.box, "strides": content.strides}
            sizes["element_strides"] = content.element_strides
            found = {"kind": "tensor_map"}
            found |= {"earlier": content.earlier.value} if content.earlier else {}
            found |= {"element": content.element} if content.element else {}
            found |= {name: list(size) for name, size in sizes.items() if size}
            found |= {"swizzle": content.swizzle} | ({"pixels": content.pixels} if content.pixels else {})
            return found | ({"interleave": content.interleave} if content.interleave != "none" else {})


def _field(each: Field) -> dict[str, Any]:
    return {"offset": each.offset} | _document(each.content)


def fit_cluster(launch: Launch, entry: Function) -> Launch:
    """The launch with the cluster that the kernel requires (``.reqnctapercluster``). LaunchFileError if it cannot be
    launched so.
    """
    _require_threads(launch, entry)
    required = _required_shape(entry, "reqnctapercluster")
    if required is not None and required != launch.cluster:
        if launch.cluster != (1, 1, 1):
            raise LaunchFileError(
                f"the launch file has clusters of {launch.cluster}, and {entry.name} requires {required}",
                place="cluster",
                correction=f"write {list(required)}",
            )
        launch = replace(launch, cluster=required)
    if any(g % c for g, c in zip(launch.grid, launch.cluster, strict=True)):
        raise LaunchFileError(
            f"a grid of {launch.grid} does not consist of whole clusters of {launch.cluster}",
            place="grid",
            cause="" if required is None else f"{entry.name} requires them",
            correction="use multiples",
        )
    if launch.cta is not None and not 0 <= launch.cta < prod(launch.grid):
        raise LaunchFileError(
            f"there is no CTA {launch.cta:,} in a grid of {prod(launch.grid):,}",
            place="cta",
            correction=f"use 0 to {prod(launch.grid) - 1:,}",
        )
    return launch


def _require_threads(launch: Launch, entry: Function) -> None:
    """LaunchFileError if a CTA has not the threads that the kernel was compiled for."""
    required = _required_shape(entry, "reqntid")
    if required is not None and launch.block != required:
        raise LaunchFileError(
            f"the launch file has blocks of {launch.block}, and {entry.name} requires {required} (.reqntid)",
            place="block",
            correction=f"write {list(required)}",
        )
    most = prod(entry.directives.get("maxntid", ()))
    threads = prod(launch.block)
    if "maxntid" in entry.directives and threads > most:
        raise LaunchFileError(
            f"the launch file has {threads:,} threads a block, and {entry.name} has at most {most:,} (.maxntid)",
            place="block",
            cause="a launch with more of them fails",
            correction=f"use {most:,} or fewer",
        )


def _required_shape(entry: Function, directive: str) -> Shape | None:
    """The sizes that a directive requires, x first; None without it."""
    return shape_of(entry.directives[directive] or (1,)) if directive in entry.directives else None
