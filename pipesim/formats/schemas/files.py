"""The schemas of the files that pipesim writes and reads; those of ``WRITTEN_BY_HAND`` are also in docs/schemas."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields

from pipesim.answers.views.launches import INDEX_FORMAT, INDEX_VERSION, NOT_LISTED, CaughtKernel
from pipesim.bounds import MAX_KHZ
from pipesim.formats.schemas.shapes import (
    INTEGER,
    NATURAL,
    POSITIVE,
    TEXT,
    Schema,
    TypeSchemas,
    record,
    row,
    rows,
    schema_document,
    table,
)
from pipesim.model.coverage import FORBIDDEN, Assumption, Coverage, NotJudgedKind
from pipesim.model.dependent_launch import EarlierUse, LaunchAct
from pipesim.model.ops import OPERANDS, Space
from pipesim.model.tables import PROGRAM_VERSION, WORK_CLASSES
from pipesim.ptx.launch import file as launch_file
from pipesim.ptx.launch.values import ELEMENTS, INTERLEAVES, LAUNCH_VERSION, SWIZZLES, TYPES
from pipesim.ptx.launch.values import FORMAT as LAUNCH_FORMAT
from pipesim.timed.profile import (
    AT_MOST,
    FIELDS,
    MAX_VALUE,
    MOST_PERMILLE,
    OF_WORDS,
    PERIOD,
    PROFILE_VERSION,
    WAYS,
    WHOLE_RUN,
    WORK_CONSTANT,
)
from pipesim.trace.schema import SCHEMA_VERSION, EventKind, TraceMeta


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def program() -> Schema:
    """``program.json`` (docs/flat-program.md): an operation is its line, its name, and the operands of that name."""
    by_operands: dict[int, list[str]] = {}
    for op, names in OPERANDS.items():
        by_operands.setdefault(len(names), []).append(op.name)
    operations = [row(INTEGER, {"enum": names}, *[INTEGER] * count) for count, names in sorted(by_operands.items())]
    members: dict[str, Schema] = {
        "format": {"const": "pipesim-program"},
        "version": {"const": PROGRAM_VERSION},
        "name": TEXT,
        "params": table(INTEGER),
        **dict.fromkeys(("ctas", "grid", "smem_bytes", "registers"), INTEGER),
        "agents": rows(row(INTEGER, INTEGER, INTEGER, TEXT, INTEGER)),
        "barriers": rows(row(INTEGER, TEXT, INTEGER)),
        "named_barriers": rows(row(INTEGER, INTEGER)),
        "accesses": rows(row(_ref("space"), INTEGER, INTEGER, INTEGER)),
        "tiles": rows(row(TEXT, _ref("space"), INTEGER, INTEGER, INTEGER, INTEGER)),
        **dict.fromkeys(("loops", "sources", "notes", "pipelines"), rows(TEXT)),
        **dict.fromkeys(("launch_registers", "architecture"), INTEGER),
        "coverage": _coverage(),
        **dict.fromkeys(("cut", "silent", "stored", "filled"), rows(INTEGER)),
        "unsure": rows(row(INTEGER, INTEGER, INTEGER)),
        "work": rows(row(INTEGER, TEXT, table(NATURAL) | {"propertyNames": {"enum": list(WORK_CLASSES)}})),
        "code": rows(rows({"anyOf": operations})),
    }
    # files of earlier versions, and of programs without them, leave these out
    optional = (
        *("pipelines", "launch_registers", "architecture", "coverage"),
        *("cut", "silent", "stored", "filled", "unsure", "work"),
    )
    form, title = record(members, optional=optional), "a flat program (docs/flat-program.md)"
    return schema_document("program", PROGRAM_VERSION, title, form, {"space": {"enum": [each.name for each in Space]}})


def _coverage() -> Schema:
    members: dict[str, Schema] = {each.name: rows(TEXT) for each in fields(Coverage)}
    members["assumed"] = rows(row({"enum": [each.value for each in Assumption]}, TEXT, rows(TEXT)))
    members["forbidden"] = rows(row({"enum": list(FORBIDDEN)}, TEXT, TEXT, TEXT, TEXT, INTEGER, TEXT))
    members["not_judged"] = rows(row({"enum": [each.name for each in NotJudgedKind]}, NATURAL, rows(TEXT)))
    members["ctas"] = rows(NATURAL)
    uses: Schema = {"enum": [each.value for each in EarlierUse]}
    kinds: Schema = {"enum": [each.value for each in LaunchAct]}
    yes: Schema = {"type": "boolean"}
    members["dependent"] = rows(row(kinds, NATURAL, NATURAL, TEXT, TEXT, TEXT, uses, yes, yes, INTEGER, INTEGER))
    return record(members, optional=tuple(members))


def launch() -> Schema:
    """A launch file (docs/launch-file.md): what a parameter and a field of a struct hold is defined once."""
    policies = dict.fromkeys(("tile_counter", "launch_control", "lock_failures"), NATURAL)
    policies["handed_out"] = rows(NATURAL)
    place: dict[str, Schema] = {"name": TEXT, "offset": NATURAL}
    names = {
        "barriers": rows(record(place | {"stages": POSITIVE, "step": POSITIVE}, optional=("stages", "step"))),
        "tiles": rows(record(place | {"bytes": POSITIVE, "slots": POSITIVE}, optional=("slots",))),
        "roles": rows(record({"name": TEXT, "warps": rows(NATURAL)})),
    }
    members: dict[str, Schema] = {
        "format": {"const": LAUNCH_FORMAT},
        "version": {"const": LAUNCH_VERSION},
        "entry": TEXT,
        "grid": _ref("shape"),
        "block": _ref("shape"),
        "cluster": _ref("shape"),
        "dynamic_shared_bytes": NATURAL,
        "registers_per_thread": NATURAL,
        "cta": NATURAL,
        "parameters": rows(_content_with("name", TEXT)),
        "policies": record(policies, optional=tuple(policies)),
        "names": record(names, optional=tuple(names)),
    }
    optional = tuple(members.keys() - {"format", "version", "grid", "block"})
    defs: dict[str, Schema] = {
        "content": {"anyOf": list(_contents())},
        "fields": rows(_content_with("offset", NATURAL) | {"required": ["offset"]}),
        "type": {"enum": list(TYPES)},
        "earlier": {"enum": [each.value for each in EarlierUse]},
        "shape": {"type": "array", "items": POSITIVE, "minItems": 1, "maxItems": 3},
        "sizes": {"type": "array", "items": NATURAL, "maxItems": 5},
    }
    title = "a launch of a kernel (docs/launch-file.md)"
    return schema_document("launch", LAUNCH_VERSION, title, record(members, optional=optional), defs)


def _contents() -> Iterator[Schema]:
    """What a parameter or a field of each kind has."""
    types, earlier = _ref("type"), {"earlier": _ref("earlier")}
    words = {"element": {"enum": list(ELEMENTS)}, "swizzle": {"enum": list(SWIZZLES)}}
    tensor_map = words | {"interleave": {"enum": list(INTERLEAVES)}, "pixels": NATURAL}
    tensor_map |= dict.fromkeys(("dims", "box", "strides", "element_strides"), _ref("sizes")) | earlier
    pair: Schema = {"type": "array", "items": NATURAL, "minItems": 2, "maxItems": 2}
    bounds = {"low": INTEGER, "high": INTEGER, "step": POSITIVE, "rises_by": pair}
    free = record(bounds, optional=("step", "rises_by"))
    kinds: dict[str, tuple[dict[str, Schema], tuple[str, ...]]] = {  # of each kind: its members, those it needs
        "value": ({"type": types, "value": {"type": ["number", "null"]}}, ("type", "value")),
        "array": ({"type": types, "values": rows(INTEGER), "count": POSITIVE, "free": free}, ("type",)),
        "pointer": ({"align": POSITIVE, "contents": _ref("fields"), **earlier}, ()),
        "struct": ({"size": POSITIVE, "fields": _ref("fields")}, ("size",)),
        "tensor_map": (tensor_map, ()),
    }
    equals: dict[str, Schema] = {"equals": {"const": "gridDim.x"}}  # of a parameter, not of a field
    for kind, (known, needed) in kinds.items():
        assert {"kind", *known} == set(launch_file.KINDS[kind])
        of_kind = known | (equals if kind == "value" else {})
        yield {"properties": {"kind": {"const": kind}, **of_kind}, "required": ["kind", *needed]}


def _content_with(name: str, value: Schema) -> Schema:
    return {**_ref("content"), "type": "object", "properties": {name: value}, "unevaluatedProperties": False}


def launch_index() -> Schema:
    """``launches.json`` in a folder of launches that were caught (docs/launches.md)."""
    types = TypeSchemas()
    kernel = types.schema(CaughtKernel)
    for each in types.defs.values():
        for name in NOT_LISTED:
            each["properties"].pop(name, None)
        each["required"] = list(each["properties"])
    members: dict[str, Schema] = {
        "format": {"const": INDEX_FORMAT},
        "version": {"const": INDEX_VERSION},
        "pipesim": TEXT,
        "command": rows(TEXT),
        "status": {"type": ["integer", "null"]},
        "devices": rows(TEXT),
        "kernels": rows(kernel),
        "notes": rows(TEXT),
    }
    title = "the launches of a program (docs/launches.md)"
    return schema_document("launch-index", INDEX_VERSION, title, record(members), types.defs)


def profile() -> Schema:
    """A latency profile (docs/latency-profile.md)."""
    values = {
        "type": "object",
        "properties": {name: {**NATURAL, "maximum": most} for name, most in AT_MOST.items()},
        "required": [name for name in FIELDS if name not in OF_WORDS],
        "additionalProperties": {**NATURAL, "maximum": MAX_VALUE},
        "propertyNames": {"anyOf": [{"enum": list(FIELDS)}, {"pattern": f"^{WORK_CONSTANT.pattern}$"}]},
    }
    size = {"type": "integer", "minimum": 1, "maximum": MAX_KHZ}
    thousandths: Schema = {"type": "integer", "minimum": 0, "maximum": MOST_PERMILLE}
    error_numbers = {"configurations": POSITIVE, "median_permille": thousandths, "worst_permille": thousandths}
    launches: dict[str, Schema] = {
        "kernel": TEXT,
        "figure": {"enum": [PERIOD, WHOLE_RUN]},
        "ctas": row(POSITIVE, POSITIVE),
        "params": table(row(INTEGER, INTEGER)),
    }
    members: dict[str, Schema] = {
        "format": {"const": "pipesim-profile"},
        "version": {"const": PROFILE_VERSION},
        "name": TEXT,
        "device": TEXT,
        "sms": size,
        "sm_khz": size,
        "units": {"const": "SM cycles, bytes"},
        "fitted": TEXT,
        "errors": rows(record(launches | error_numbers)),
        "how": record({way: rows(TEXT) for way in WAYS}, optional=WAYS),
        "values": values,
    }
    form = record(members)
    # Where a calibration wrote it: its pipesim, and the recordings that were fitted.
    form["properties"] |= {"pipesim": TEXT, "inputs": rows(TEXT)}
    return schema_document("profile", PROFILE_VERSION, "a latency profile (docs/latency-profile.md)", form, {})


def trace_metadata() -> Schema:
    """The JSON under the key ``pipesim`` of a trace's Parquet file (docs/trace-format.md)."""
    types = TypeSchemas(lambda kind: [each.name if kind is EventKind else each.value for each in kind], {"const": ""})
    types.schema(TraceMeta)
    form = types.defs.pop("TraceMeta")
    digest = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    form["properties"] |= {"columns": record({"rows": INTEGER, "sha256": digest}), "sha256": digest}
    form["properties"]["schema"] = {"const": SCHEMA_VERSION}
    form["required"] += ["columns", "sha256"]
    assert types.defs["Site"]["properties"]["kind"] == {"enum": [kind.name for kind in EventKind]}
    return schema_document(
        "trace-metadata", SCHEMA_VERSION, "the metadata of a trace (docs/trace-format.md)", form, types.defs
    )


FILES: Mapping[str, Callable[[], Schema]] = {
    "program": program,
    "launch": launch,
    "launch-index": launch_index,
    "profile": profile,
    "trace-metadata": trace_metadata,
}
WRITTEN_BY_HAND = ("launch", "profile", "program", "trace-metadata")  #: people or their programs write these
