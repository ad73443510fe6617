"""JSON Schemas of every document that the tool writes or reads: ``python tools/schemas.py`` writes ``docs/schemas``.

Those of answers (``--json``) and of a trace's metadata are made from the dataclasses that the documents are made from,
so that they cannot fall behind; those of the other files are written out here. ``--check`` exits with 1 if one is
stale.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from pipesim.answers.views.advise import Advice, AdviseReport
from pipesim.answers.views.calibrate import CalibrationReport
from pipesim.answers.views.check import CheckReport, ProvedRange, WalkReport
from pipesim.answers.views.doctor import DoctorReport
from pipesim.answers.views.kinds import KindLine, KindReport
from pipesim.answers.views.launches import CaughtKernel, LaunchesReport
from pipesim.answers.views.recording import RecordReport
from pipesim.answers.views.redundant import RedundantReport
from pipesim.answers.views.rows import ProtocolRow
from pipesim.answers.views.run import RunReport
from pipesim.answers.views.summary import Failure, ProtocolReport, SummaryReport, TraceLine
from pipesim.answers.views.sweep import Configuration, SweepReport
from pipesim.answers.views.trace import CompareReport, PairReport, PairTime, TraceComparison
from pipesim.answers.views.verify import VerifyReport
from pipesim.bounds import MAX_KHZ
from pipesim.conform.replay.latency_floor import FORMAT, ReleasePath
from pipesim.conform.replay.latency_floor import VERSION as FLOORS_VERSION
from pipesim.conform.result import TraceVerdict
from pipesim.conform.times import TimeComparison
from pipesim.errors import PipesimError
from pipesim.explain.anatomy.parts import Anatomy
from pipesim.launches.files.folder import INDEX_FORMAT, INDEX_VERSION, NOT_LISTED
from pipesim.model.coverage import Coverage
from pipesim.model.finding import Deadlock, Finding
from pipesim.model.ops import OPERANDS, Space
from pipesim.model.program import PROGRAM_VERSION
from pipesim.model.work import WORK_CLASSES
from pipesim.ptx.launch import file as launch_file
from pipesim.ptx.launch.values import ELEMENTS, INTERLEAVES, LAUNCH_VERSION, SWIZZLES, TYPES
from pipesim.ptx.launch.values import FORMAT as LAUNCH_FORMAT
from pipesim.timed.profile import AT_MOST, FIELDS, MAX_VALUE, PROFILE_VERSION, WORK_CONSTANT
from pipesim.timed.stated_error import MOST_PERMILLE, WAYS
from pipesim.trace.schema import SCHEMA_VERSION, EventKind, Trace, TraceMeta

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "schemas"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
ANSWERS = 1  #: the version of the documents of ``--json``
EXPERIMENTS = 1

Schema = dict[str, Any]
TEXT, WHOLE, YES_NO, NOTHING = ({"type": kind} for kind in ("string", "integer", "boolean", "null"))
VERDICT_OK: Schema = {"enum": [True, False, None]}
BEHAVIOUR: Schema = {"enum": [each.name.lower() for each in TraceVerdict]}
PAIR_TIME: Schema = {"enum": [each.name.lower() for each in PairTime]}
EXIT_CODE: Schema = {"enum": [0, 1, 2, 3, 4, 70]}
STATUS: Schema = {"type": "integer", "minimum": 0, "maximum": 255}  #: of any program

#: The sentences that a document has beside a dataclass's fields, or in their place (``report/sentences/document.py``).
SENTENCES: Mapping[type, Schema] = {
    CheckReport: {"how": TEXT, "said": TEXT, "also": {"type": "array", "items": TEXT}},
    ProvedRange: {"why": TEXT},
    RedundantReport: {"said": TEXT, "withheld": TEXT},
    SweepReport: {"said": TEXT, "ok": VERDICT_OK},
    Configuration: {"limit": TEXT},
    AdviseReport: {"said": TEXT, "ok": VERDICT_OK},
    Advice: {"limit": TEXT},
    WalkReport: {"said": TEXT},
    TraceComparison: {"source": TEXT, "device": TEXT, "behaviour": BEHAVIOUR},
    TimeComparison: {"said": TEXT},
    VerifyReport: {"verdict": TEXT, "ok": VERDICT_OK},
    CompareReport: {"verdict": TEXT, "ok": VERDICT_OK},
    PairReport: {"verdict": TEXT, "ok": VERDICT_OK, "behaviour": BEHAVIOUR, "time": PAIR_TIME},
    ProtocolReport: {"ok": VERDICT_OK},
    SummaryReport: {"ok": VERDICT_OK},
    TraceLine: {"why": TEXT, "behaviour": BEHAVIOUR},
    Failure: {"what": TEXT},
}


def record(members: Mapping[str, Schema], *, optional: Sequence[str] = ()) -> Schema:
    """An object with just these members."""
    required = [name for name in members if name not in optional]
    return {"type": "object", "properties": dict(members), "required": required, "additionalProperties": False}


def row(*items: Schema) -> Schema:
    """A list with just these items."""
    return {"type": "array", "prefixItems": list(items), "minItems": len(items), "maxItems": len(items)}


def rows(item: Schema) -> Schema:
    """A list of these."""
    return {"type": "array", "items": item}


class Types:
    """Python types as schemas, as ``export/as_json.py`` writes their values; ``defs`` collects the dataclasses.

    ``enum``: how the members of an enum are written; ``nothing``: how None is.
    """

    def __init__(self, enum: Callable[[type[Enum]], list[str]], nothing: Schema = NOTHING) -> None:
        self.defs: dict[str, Schema] = {}
        self._nothing = nothing
        self._names: dict[type, str] = {}
        self._enum = enum

    def of(self, kind: Any) -> Schema:
        """The schema of a type."""
        origin, args = get_origin(kind), get_args(kind)
        if kind in (Any, object):
            return {}
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.of(arg) for arg in args]}
        if origin is tuple:
            return rows(self.of(args[0])) if args[1:] == (...,) else row(*map(self.of, args))
        if origin is not None and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(args[1])}
        if origin is not None and issubclass(origin, Sequence):
            return rows(self.of(args[0]))
        return self._of_class(kind)

    def _of_class(self, kind: type) -> Schema:
        plain = {str: TEXT, int: WHOLE, bool: YES_NO, float: {"type": "number"}, Path: TEXT}
        if kind in plain:
            return plain[kind]
        if kind is types.NoneType:
            return self._nothing
        if issubclass(kind, Enum):
            return {"enum": self._enum(kind)}
        if issubclass(kind, PipesimError):
            return error()
        if issubclass(kind, Trace):
            return record({"protocol": TEXT, "source": TEXT, "events": WHOLE})
        if issubclass(kind, tuple):
            return row(*(self.of(part) for part in get_type_hints(kind).values()))
        if not is_dataclass(kind):
            raise TypeError(f"{kind} has no place in a document")
        return self._reference(kind)

    def _reference(self, kind: type) -> Schema:
        if kind not in self._names:
            name = kind.__name__ if kind.__name__ not in self.defs else f"{kind.__module__}.{kind.__name__}"
            self._names[kind] = name
            self.defs[name] = {}  # it may hold itself
            hints = get_type_hints(kind)
            head: Schema = {"kind": {"const": "deadlock"}} if kind is Deadlock else {}
            members = head | {field.name: self.of(hints[field.name]) for field in fields(kind)}
            self.defs[name] = record(members | SENTENCES.get(kind, {}))
        return {"$ref": f"#/$defs/{self._names[kind]}"}


def error() -> Schema:
    """An error of pipesim."""
    return record({"kind": TEXT, "fact": TEXT, "place": TEXT, "cause": TEXT, "correction": TEXT})


def document(name: str, version: int, title: str, body: Schema, defs: Mapping[str, Schema] | None = None) -> Schema:
    """A whole schema; its ``$id`` has its version."""
    head = {"$schema": DRAFT, "$id": f"urn:pipesim:schema:{name}:{version}", "title": title}
    return head | body | ({"$defs": dict(sorted(defs.items()))} if defs else {})


def lower_names(kind: type[Enum]) -> list[str]:
    """The members of an enum as answers name them."""
    return [member.name.lower() for member in kind]


def answer(name: str, title: str, report: type, *, more: dict[str, Schema] | None = None) -> Schema:
    """``{"exit_code", "findings", "report"}`` of one command, or what it says where it cannot be carried out."""
    found = Types(lower_names)
    members = {"exit_code": EXIT_CODE, "findings": rows(found.of(Finding)), "report": found.of(report)} | (more or {})
    return document(name, ANSWERS, title, record(members, optional=tuple(more or {})), found.defs)


def several(name: str, title: str, report: type, head: Mapping[str, Schema], *, codes: bool) -> Schema:
    """The same of several protocols, each under its name, or its error; ``codes``: each with its own exit code."""
    found = Types(lower_names)
    code = {"exit_code": EXIT_CODE} if codes else {}
    one = {"findings": rows(found.of(Finding)), "report": found.of(report)}
    each = {"anyOf": [record({**code, **one}), record({**code, "error": error()})]}
    protocols = {"type": "object", "additionalProperties": each}
    return document(name, ANSWERS, title, record({"exit_code": EXIT_CODE, **head, "protocols": protocols}), found.defs)


def answers() -> dict[str, Schema]:
    """The documents of ``--json``."""
    shown, listed, caught, examined = (Types(lower_names) for _ in range(4))
    needless, recorded, told, named, swept, advised, fitted = (Types(lower_names) for _ in range(7))
    protocols = listed.of(ProtocolRow)
    shown.of(Anatomy)
    anatomy = record({"exit_code": EXIT_CODE, **shown.defs.pop("Anatomy")["properties"]})
    lacking = {"error": error()}
    head = {"profile": TEXT, "excepted": rows(TEXT)}
    text = {"exit_code": EXIT_CODE, "format": TEXT, "file": {"anyOf": [TEXT, NOTHING]}, "text": TEXT}
    table = {"exit_code": EXIT_CODE, "file": {"anyOf": [TEXT, NOTHING]}, "text": TEXT}
    completion = {"exit_code": EXIT_CODE, "shell": TEXT, "text": TEXT}
    made = {"exit_code": EXIT_CODE, "file": TEXT, "function": TEXT, "next": rows(TEXT)}
    sizes = {name: rows({"type": "integer"}) for name in ("registers", "spills", "stack")}
    instrumented = {"kernel": TEXT, "folder": TEXT, "files": rows(TEXT), **sizes, "warnings": rows(TEXT)}
    decoded = {"trace": TEXT, "kernel": TEXT, "events": {"type": "integer"}, "ending": TEXT}
    return {
        "check": answer("check", "pipesim check NAME --json", CheckReport),
        "check-several": several("check-several", "pipesim check A B --json", CheckReport, {}, codes=False),
        "check-redundant": document(
            "check-redundant",
            ANSWERS,
            "pipesim check NAME --redundant --json",
            record({"exit_code": EXIT_CODE, "redundant": needless.of(RedundantReport)}),
            needless.defs,
        ),
        "explain": document(
            "explain",
            ANSWERS,
            "pipesim explain KIND --json",
            record({"exit_code": EXIT_CODE, "kind": told.of(KindReport)}),
            told.defs,
        ),
        "explain-list": document(
            "explain-list",
            ANSWERS,
            "pipesim explain --json",
            record({"exit_code": EXIT_CODE, "kinds": rows(named.of(KindLine))}),
            named.defs,
        ),
        "run": answer("run", "pipesim run NAME --json", RunReport),
        "run-schedule": answer("run-schedule", "pipesim run NAME --schedule TEXT --json", WalkReport),
        "calibrate": document(
            "calibrate",
            ANSWERS,
            "pipesim calibrate TRACE --json",
            record({"exit_code": EXIT_CODE, "report": fitted.of(CalibrationReport)}),
            fitted.defs,
        ),
        "sweep": document(
            "sweep",
            ANSWERS,
            "pipesim sweep NAME --json",
            record({"exit_code": EXIT_CODE, "report": swept.of(SweepReport)}),
            swept.defs,
        ),
        "advise": document(
            "advise",
            ANSWERS,
            "pipesim advise NAME --json",
            record({"exit_code": EXIT_CODE, "report": advised.of(AdviseReport)}),
            advised.defs,
        ),
        "verify": answer("verify", "pipesim verify NAME --json", VerifyReport, more=lacking),
        "verify-several": several("verify-several", "pipesim verify A B --json", ProtocolReport, head, codes=True),
        "compare": answer("compare", "pipesim diff TRACE --json, pipesim capture NAME --json", CompareReport),
        "compare-pair": answer("compare-pair", "pipesim diff A B --json", PairReport),
        "show": document("show", ANSWERS, "pipesim show NAME --json", anatomy, shown.defs),
        "list": document("list", ANSWERS, "pipesim list --json", rows(protocols), listed.defs),
        "list-protocol": answer("list-protocol", "pipesim list NAME --json", ProtocolRow),
        "table": document("table", ANSWERS, "pipesim table NAME --json", record(table)),
        "completion": document("completion", ANSWERS, "pipesim completion SHELL --json", record(completion)),
        "export": document("export", ANSWERS, "pipesim export NAME --json", record(text)),
        "new": document("new", ANSWERS, "pipesim new FILE --json", record(made)),
        "doctor": document(
            "doctor",
            ANSWERS,
            "pipesim doctor --json",
            record({"exit_code": EXIT_CODE, "report": examined.of(DoctorReport)}),
            examined.defs,
        ),
        "launches": document(
            "launches",
            ANSWERS,
            "pipesim launches --json -- COMMAND",
            record({"exit_code": STATUS, "report": caught.of(LaunchesReport)}),
            caught.defs,
        ),
        "instrument": document("instrument", ANSWERS, "pipesim instrument KERNEL.ptx --json", record(instrumented)),
        "decode": document("decode", ANSWERS, "pipesim decode RECORDS --kernel KERNEL.ptx --json", record(decoded)),
        "record": document(
            "record",
            ANSWERS,
            "pipesim record --json -- COMMAND",
            record({"exit_code": STATUS, "report": recorded.of(RecordReport)}),
            recorded.defs,
        ),
        "error": document(
            "error",
            ANSWERS,
            "any command with --json that cannot be carried out",
            record({"exit_code": EXIT_CODE, "error": error()}),
        ),
    }


# files


def program() -> Schema:
    """``program.json`` (docs/flat-program.md)."""
    space = {"enum": [each.name for each in Space]}
    operations = [row(WHOLE, {"const": op.name}, *(WHOLE for _ in names)) for op, names in OPERANDS.items()]
    amounts = {
        kind: {"type": "integer", "minimum": 0, "description": meaning} for kind, meaning in WORK_CLASSES.items()
    }
    members: dict[str, Schema] = {
        "format": {"const": "pipesim-program"},
        "version": {"const": PROGRAM_VERSION},
        "name": TEXT,
        "params": {"type": "object", "additionalProperties": WHOLE},
        "ctas": WHOLE,
        "grid": WHOLE,
        "smem_bytes": WHOLE,
        "registers": WHOLE,
        "agents": rows(row(WHOLE, WHOLE, WHOLE, TEXT, WHOLE)),
        "barriers": rows(row(WHOLE, TEXT, WHOLE)),
        "named_barriers": rows(row(WHOLE, WHOLE)),
        "accesses": rows(row(space, WHOLE, WHOLE, WHOLE)),
        "tiles": rows(row(TEXT, space, WHOLE, WHOLE, WHOLE, WHOLE)),
        "loops": rows(TEXT),
        "sources": rows(TEXT),
        "notes": rows(TEXT),
        "pipelines": rows(TEXT),
        "launch_registers": WHOLE,
        "coverage": record({each.name: rows(TEXT) for each in fields(Coverage)}),
        "work": rows(row(WHOLE, TEXT, record(amounts, optional=tuple(amounts)))),
        "code": rows(rows({"anyOf": operations})),
    }
    optional = ("pipelines", "launch_registers", "coverage", "work")  # files of earlier versions are without them
    form = record(members, optional=optional)
    return document("program", PROGRAM_VERSION, "a flat program (docs/flat-program.md)", form)


def launch() -> Schema:
    """A launch file (docs/launch-file.md)."""
    positive: Schema = {"type": "integer", "minimum": 1}
    natural: Schema = {"type": "integer", "minimum": 0}
    shape: Schema = {"type": "array", "items": positive, "minItems": 1, "maxItems": 3}
    sizes: Schema = {"type": "array", "items": natural, "maxItems": 5}
    types: Schema = {"enum": list(TYPES)}
    fields = rows({"$ref": "#/$defs/field"})
    kinds: dict[str, tuple[dict[str, Schema], tuple[str, ...]]] = {
        "value": ({"type": types, "value": {"type": ["number", "null"]}}, ()),
        "array": ({"type": types, "values": rows(WHOLE)}, ()),
        "pointer": ({"align": positive, "contents": fields}, ("align", "contents")),
        "struct": ({"size": positive, "fields": fields}, ("fields",)),
    }
    words = {"element": {"enum": list(ELEMENTS)}, "swizzle": {"enum": list(SWIZZLES)}}
    tensor_map = words | {"interleave": {"enum": list(INTERLEAVES)}, "pixels": natural}
    tensor_map |= dict.fromkeys(("dims", "box", "strides", "element_strides"), sizes)
    kinds["tensor_map"] = (tensor_map, tuple(tensor_map))
    for name, (known, _) in kinds.items():
        assert {"kind", *known} == set(launch_file.KINDS[name])

    def contents(more: dict[str, Schema], optional: tuple[str, ...]) -> Schema:
        made = (({"kind": {"const": kind}} | own | more, spare) for kind, (own, spare) in kinds.items())
        return {"anyOf": [record(members, optional=(*spare, *optional)) for members, spare in made]}

    policies = dict.fromkeys(("tile_counter", "launch_control", "lock_failures"), natural)
    members: dict[str, Schema] = {
        "format": {"const": LAUNCH_FORMAT},
        "version": {"const": LAUNCH_VERSION},
        "entry": TEXT,
        "grid": shape,
        "block": shape,
        "cluster": shape,
        "dynamic_shared_bytes": natural,
        "registers_per_thread": natural,
        "cta": natural,
        "parameters": rows(contents({"name": TEXT}, ("name",))),
        "policies": record(policies, optional=tuple(policies)),
    }
    needed = ("format", "version", "grid", "block")
    form = record(members, optional=tuple(name for name in members if name not in needed))
    defs = {"field": contents({"offset": natural}, ())}
    return document("launch", LAUNCH_VERSION, "a launch of a kernel (docs/launch-file.md)", form, defs)


def launch_index() -> Schema:
    """``launches.json`` in a folder of launches that were caught (docs/launches.md)."""
    found = Types(lower_names)
    kernel = found.of(CaughtKernel)
    for each in found.defs.values():
        for name in NOT_LISTED:
            each["properties"].pop(name, None)
        each["required"] = list(each["properties"])
    members: dict[str, Schema] = {
        "format": {"const": INDEX_FORMAT},
        "version": {"const": INDEX_VERSION},
        "command": rows(TEXT),
        "status": {"anyOf": [STATUS, NOTHING]},
        "devices": rows(TEXT),
        "kernels": rows(kernel),
        "notes": rows(TEXT),
    }
    return document(
        "launch-index", INDEX_VERSION, "the launches of a program (docs/launches.md)", record(members), found.defs
    )


def profile() -> Schema:
    """A latency profile (docs/latency-profile.md)."""
    values = {
        name: {"type": "integer", "minimum": 0, "maximum": AT_MOST.get(name, MAX_VALUE), "description": meaning}
        for name, meaning in FIELDS.items()
    }
    size = {"type": "integer", "minimum": 1, "maximum": MAX_KHZ}
    constant: Schema = {"type": "integer", "minimum": 0, "maximum": MAX_VALUE}
    one_or_more: Schema = {"type": "integer", "minimum": 1}
    thousandths: Schema = {"type": "integer", "minimum": 0, "maximum": MOST_PERMILLE}
    error_numbers = {"configurations": one_or_more, "median_permille": thousandths, "worst_permille": thousandths}
    members: dict[str, Schema] = {
        "format": {"const": "pipesim-profile"},
        "version": {"const": PROFILE_VERSION},
        "name": TEXT,
        "device": TEXT,
        "sms": size,
        "sm_khz": size,
        "units": {"const": "SM cycles, bytes"},
        "fitted": TEXT,
        "errors": rows(record({"kernel": TEXT, "ctas": row(one_or_more, one_or_more), **error_numbers})),
        "how": record({way: rows(TEXT) for way in WAYS}, optional=WAYS),
        "values": {**record(values), "patternProperties": {f"^{WORK_CONSTANT.pattern}$": constant}},
    }
    whole = record(members)
    whole["properties"] |= {"inputs": rows(TEXT)}  # the recordings that were fitted, where a calibration wrote it
    return document("profile", PROFILE_VERSION, "a latency profile (docs/latency-profile.md)", whole)


def latency_floors() -> Schema:
    """The lower bounds of one device (docs/hopper.md)."""
    row = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 3, "maxItems": 3}
    tables = {path.value: {"type": "array", "items": row, "minItems": 1} for path in ReleasePath}
    members: dict[str, Schema] = {
        "format": {"const": FORMAT},
        "version": {"const": FLOORS_VERSION},
        "device": TEXT,
        "sm_khz": {"type": "integer", "minimum": 1},
        "source": TEXT,
        "paths": {"type": "object", "properties": tables, "additionalProperties": False},
    }
    text = "the least latencies of a device; a row is bytes, cycles, measurements (docs/hopper.md)"
    return document("latency-floors", FLOORS_VERSION, text, record(members))


def trace_metadata() -> Schema:
    """The JSON under the key ``pipesim`` of a trace's Parquet file (docs/trace-format.md)."""
    found = Types(lambda kind: [each.name if kind is EventKind else each.value for each in kind], {"const": ""})
    found.of(TraceMeta)
    body = found.defs.pop("TraceMeta")
    digest = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    body["properties"] |= {"columns": record({"rows": WHOLE, "sha256": digest}), "sha256": digest}
    body["properties"]["schema"] = {"const": SCHEMA_VERSION}
    body["required"] += ["columns", "sha256"]
    assert found.defs["Site"]["properties"]["kind"] == {"enum": [kind.name for kind in EventKind]}
    return document(
        "trace-metadata", SCHEMA_VERSION, "the metadata of a trace (docs/trace-format.md)", body, found.defs
    )


def experiments() -> Schema:
    """``experiments.json`` of a device (docs/experiments.md)."""
    counts = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}
    data = {"type": "object", "additionalProperties": {"type": "array"}}
    case = record({"outcomes": counts, "data": data})
    experiment = record({"kernel": TEXT, "cases": {"type": "object", "additionalProperties": case}})
    device = record({"name": TEXT, "sms": WHOLE, "driver": TEXT, "nvrtc": TEXT})
    members = {
        "version": {"const": EXPERIMENTS},
        "device": device,
        "experiments": {"type": "object", "additionalProperties": experiment},
    }
    return document("experiments", EXPERIMENTS, "the stored answers of one device's experiments", record(members))


def schemas() -> dict[str, Schema]:
    """Every schema, by its name."""
    files = {
        "program": program(),
        "launch": launch(),
        "launch-index": launch_index(),
        "profile": profile(),
        "trace-metadata": trace_metadata(),
        "experiments": experiments(),
        "latency-floors": latency_floors(),
    }
    return answers() | files


def name_for(command: Sequence[str], said: Any) -> str:
    """The name of the schema of what a command line with ``--json`` printed."""
    if isinstance(said, dict) and "error" in said and not {"report", "protocols"} & said.keys():
        return "error"
    several = "-several" if isinstance(said, dict) and "protocols" in said else ""
    match command[0]:
        case "check" if "--redundant" in command:
            return "check-redundant"
        case "check" | "verify":
            return command[0] + several
        case "run":
            return "run-schedule" if "--schedule" in command else "run"
        case "diff" | "capture":
            return "compare-pair" if "pair" in said["report"] else "compare"
        case "explain":
            return "explain-list" if "kinds" in said else "explain"
        case "list":
            return "list-protocol" if isinstance(said, dict) else "list"
        case name:
            return name


def file_name(schema: Schema) -> str:
    """``check.v1.json``: the name and the version of the ``$id``."""
    name, version = schema["$id"].split(":")[-2:]
    return f"{name}.v{version}.json"


def files() -> dict[str, str]:
    """The text of every file: the schemas, and the page with a link to the newest version of each."""
    made = schemas()
    link = re.compile(r"\]\(([\w-]+)\.v\d+\.json\)")
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = link.sub(lambda found: f"]({file_name(made[found[1]])})", page)
    return {file_name(schema): json.dumps(schema, indent=1) + "\n" for schema in made.values()} | {"README.md": listed}


def main(argv: list[str] | None = None) -> int:
    """Write or check the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a file is stale")
    options = parser.parse_args(argv)
    stale = 0
    for name, text in files().items():
        path = FOLDER / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        if options.check:
            print(f"stale: {path.name}; run python tools/schemas.py")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.name}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
