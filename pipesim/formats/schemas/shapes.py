"""The parts that schemas are made of, and Python types as schemas."""

import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from pipesim.answers.views.autopsy import AutopsyReport
from pipesim.answers.views.calibrate import CalibrationReport
from pipesim.answers.views.check import AgainstReport, Brief, CheckReport, WalkReport
from pipesim.answers.views.conclusion import AssumptionCount, VerdictScope
from pipesim.answers.views.doctor import DoctorReport
from pipesim.answers.views.kernels import KernelRow
from pipesim.answers.views.kinds import AssumptionReport, KindLine, KindReport
from pipesim.answers.views.launches import HangReport, LaunchesReport, RecordReport
from pipesim.answers.views.redundant import RedundantReport
from pipesim.answers.views.run import RunReport
from pipesim.answers.views.sequence import SequenceReport, SharedBytes
from pipesim.answers.views.summary import Failure, ProtocolReport, ProtocolRow, SummaryReport, TraceLine
from pipesim.answers.views.sweep import Advice, AdviseReport, Configuration, SweepReport
from pipesim.answers.views.trace import CompareReport, PairReport, PairTime, TraceComparison, VerifyReport
from pipesim.confirm.report import ConfirmProgramReport, ConfirmReport, StressReport
from pipesim.conform.result import TraceVerdict
from pipesim.conform.times import TimeComparison
from pipesim.errors import PipesimError
from pipesim.explain.anatomy.parts import Anatomy
from pipesim.explain.sync_changes import SyncChange
from pipesim.formats.documents import ANSWERS
from pipesim.model.coverage import NotJudged
from pipesim.model.finding import Deadlock, Finding
from pipesim.prove.any_size.family import ProvedRange
from pipesim.trace.schema import Trace

DRAFT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]
TEXT, INTEGER, YES_NO, NOTHING = ({"type": kind} for kind in ("string", "integer", "boolean", "null"))
NATURAL: Schema = {"type": "integer", "minimum": 0}
POSITIVE: Schema = {"type": "integer", "minimum": 1}
LISTS = {"integers": INTEGER, "texts": TEXT}
#: The sentences that a document has beside a dataclass's fields, or instead of them (``report/pages/document.py``).
SENTENCES: Mapping[type, dict[str, Any]] = {
    CheckReport: {"how": str, "said": str, "also": tuple[str, ...], "brief": Brief},
    AutopsyReport: {"brief": Brief},
    Deadlock: {"claim": str},
    SharedBytes: {"claim": str},
    AgainstReport: {"said": str, "ok": bool | None},
    SyncChange: {"said": str},
    VerdictScope: {"assumptions": tuple[AssumptionCount, ...]},
    NotJudged: {"said": str},
    ProvedRange: {"why": str},
    RedundantReport: {"said": str, "withheld": str},
    SweepReport: {"said": str, "ok": bool | None},
    Configuration: {"limit": str},
    AdviseReport: {"said": str, "ok": bool | None},
    Advice: {"limit": str},
    WalkReport: {"said": str},
    TraceComparison: {"source": str, "device": str, "behaviour": TraceVerdict},
    TimeComparison: {"said": str},
    VerifyReport: {"verdict": str, "ok": bool | None},
    CompareReport: {"verdict": str, "ok": bool | None},
    PairReport: {"verdict": str, "ok": bool | None, "behaviour": TraceVerdict, "time": PairTime},
    ProtocolReport: {"ok": bool | None},
    SummaryReport: {"ok": bool | None},
    TraceLine: {"why": str, "behaviour": TraceVerdict},
    Failure: {"what": str},
    ConfirmReport: {"said": tuple[str, ...]},
    StressReport: {"said": str},
}


def record(members: Mapping[str, Schema], *, optional: Sequence[str] = ()) -> Schema:
    """An object with these members and no others."""
    required = [name for name in members if name not in optional]
    needed = {"required": required} if required else {}
    return {"type": "object", "properties": dict(members), **needed, "additionalProperties": False}


def row(*items: Schema) -> Schema:
    """A list with exactly these items; the equal ones at its end are said once."""
    first = list(items)
    while first[-2:-1] == [items[-1]]:
        first.pop()
    prefix = {"prefixItems": first[:-1]} if first[:-1] else {}
    return {"type": "array", **prefix, "items": items[-1], "minItems": len(items), "maxItems": len(items)}


def rows(item: Schema) -> Schema:
    """A list of such items; those of texts and of integers are defined once in a document."""
    name = next((name for name, each in LISTS.items() if each == item), "")
    return {"$ref": f"#/$defs/{name}"} if name else {"type": "array", "items": item}


def table(item: Schema) -> Schema:
    """An object whose names are free, each with such a value."""
    return {"type": "object", "additionalProperties": item}


def error() -> Schema:
    """An error of pipesim."""
    return record({"kind": TEXT, "fact": TEXT, "place": TEXT, "cause": TEXT, "correction": TEXT})


def schema_document(name: str, version: int, title: str, body: Schema, defs: Mapping[str, Schema]) -> Schema:
    """A whole schema; its ``$id`` has its version."""
    head = {"$schema": DRAFT, "$id": f"urn:pipesim:schema:{name}:{version}", "title": title}
    said = json.dumps([body, defs])
    lists = {each: {"type": "array", "items": item} for each, item in LISTS.items() if f"$defs/{each}" in said}
    every = dict(sorted([*lists.items(), *defs.items()]))
    return head | body | ({"$defs": every} if every else {})


class TypeSchemas:
    """Python types as schemas, as ``export/as_json.py`` writes their values; ``defs`` collects the dataclasses.

    ``enum``: how the members of an enum are written, as answers name them if not given; ``nothing``: how None is.
    """

    def __init__(self, enum: Callable[[type[Enum]], list[str]] | None = None, nothing: Schema = NOTHING) -> None:
        self.defs: dict[str, Schema] = {}
        self._nothing = nothing
        self._names: dict[type, str] = {}
        self._enum = enum or (lambda kind: [member.name.lower() for member in kind])

    def schema(self, kind: Any) -> Schema:
        """The schema of a type; a schema given instead stays as it is."""
        origin, args = get_origin(kind), get_args(kind)
        if isinstance(kind, dict):
            return kind
        if kind in (Any, object):
            return {}
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.schema(arg) for arg in args]}
        if origin is tuple:
            return rows(self.schema(args[0])) if args[1:] == (...,) else row(*map(self.schema, args))
        if origin is not None and issubclass(origin, Mapping):
            return table(self.schema(args[1]))
        if origin is not None and issubclass(origin, Sequence):
            return rows(self.schema(args[0]))
        return self._class_schema(kind)

    def _class_schema(self, kind: type) -> Schema:
        plain = {str: TEXT, int: INTEGER, bool: YES_NO, float: {"type": "number"}, Path: TEXT}
        if kind in plain:
            return plain[kind]
        if kind is types.NoneType:
            return self._nothing
        if issubclass(kind, Enum):
            return {"enum": self._enum(kind)}
        if issubclass(kind, PipesimError):
            return error()
        if issubclass(kind, Trace):
            return record({"protocol": TEXT, "source": TEXT, "events": INTEGER})
        if issubclass(kind, tuple):
            return row(*(self.schema(part) for part in get_type_hints(kind).values()))
        if not is_dataclass(kind):
            raise TypeError(f"{kind} has no place in a document")
        return self._reference(kind)

    def _reference(self, kind: type) -> Schema:
        if kind not in self._names:
            name = kind.__name__ if kind.__name__ not in self.defs else f"{kind.__module__}.{kind.__name__}"
            self._names[kind] = name
            self.defs[name] = {}  # it may hold itself
            hints = get_type_hints(kind)
            head: Schema = {"kind": {"enum": ["deadlock", "lapped_waiter"]}} if kind is Deadlock else {}
            members = {field.name: hints[field.name] for field in fields(kind)} | SENTENCES.get(kind, {})
            self.defs[name] = record(head | {member: self.schema(part) for member, part in members.items()})
        return {"$ref": f"#/$defs/{self._names[kind]}"}


Members = Mapping[str, object]  #: of a document, each with its type, or with a schema instead

_EXIT_CODE: Schema = {"enum": [0, 1, 2, 3, 4, 70, 129, 130, 143]}  #: the last by SIGHUP, SIGINT and SIGTERM
_STATUS: Schema = {"type": "integer", "minimum": 0, "maximum": 255}  #: of any program
_FINDINGS = tuple[Finding, ...]
_NUMBERS = tuple[int, ...]
_NAMES = tuple[str, ...]

#: What prints a document, and its members after its schema, pipesim's version and the exit code.
ANSWER_MEMBERS: Mapping[str, tuple[str, Members]] = {
    "calibrate": ("pipesim calibrate TRACE", {"report": CalibrationReport}),
    "check": ("pipesim check NAME", {"findings": _FINDINGS, "report": CheckReport}),
    "check-against": ("pipesim check NEW --against OLD", {"findings": _FINDINGS, "report": AgainstReport}),
    "check-brief": ("pipesim check NAME --format brief, also with --against OLD or --redundant", {"protocols": Brief}),
    "check-kernels": ("pipesim check PATH", {"paths": _NAMES, "kernels": tuple[KernelRow, ...]}),
    "check-redundant": ("pipesim check NAME --redundant", {"redundant": RedundantReport}),
    "check-sequence": ("pipesim check --sequence FILE", {"report": SequenceReport}),
    "check-several": ("pipesim check A B, --all", {"protocols": CheckReport}),
    "explain": ("pipesim explain KIND", {"kind": KindReport}),
    "explain-assumption": ("pipesim explain ASSUMPTION", {"assumption": AssumptionReport}),
    "explain-list": ("pipesim explain", {"kinds": tuple[KindLine, ...], "assumptions": tuple[KindLine, ...]}),
    "run": ("pipesim run NAME", {"findings": _FINDINGS, "report": RunReport}),
    "run-schedule": ("pipesim run NAME --schedule TEXT", {"findings": _FINDINGS, "report": WalkReport}),
    "sweep": ("pipesim sweep NAME", {"report": SweepReport}),
    "advise": ("pipesim advise NAME", {"report": AdviseReport}),
    "verify": ("pipesim verify NAME", {"findings": _FINDINGS, "report": VerifyReport, "error": PipesimError}),
    "verify-several": (
        "pipesim verify A B, --all", {"profile": str, "excepted": _NAMES, "protocols": ProtocolReport}
    ),
    "compare": ("pipesim diff TRACE, pipesim capture", {"findings": _FINDINGS, "report": CompareReport}),
    "compare-pair": ("pipesim diff A B", {"findings": _FINDINGS, "report": PairReport}),
    "show": ("pipesim show NAME", {"": Anatomy}),
    "list": ("pipesim list", {"protocols": tuple[ProtocolRow, ...]}),
    "list-protocol": ("pipesim list NAME", {"findings": _FINDINGS, "report": ProtocolRow}),
    "table": ("pipesim table NAME", {"file": str | None, "text": str}),
    "completion": ("pipesim completion SHELL", {"shell": str, "text": str}),
    "export": ("pipesim export NAME --to FORMAT", {"format": str, "file": str | None, "text": str}),
    "new": ("pipesim new FILE", {"file": str, "function": str, "next": _NAMES}),
    "names": ("pipesim names KERNEL.ptx", {"file": str, "text": str}),
    "launches": ("pipesim launches -- COMMAND", {"exit_code": _STATUS, "report": LaunchesReport}),
    "hang": ("pipesim hang -- COMMAND", {"exit_code": _STATUS, "report": HangReport}),
    "record": ("pipesim record -- COMMAND", {"exit_code": _STATUS, "report": RecordReport}),
    "instrument": (
        "pipesim instrument KERNEL.ptx",
        {
            "kernel": str, "folder": str, "files": _NAMES, "registers": _NUMBERS, "spills": _NUMBERS,
            "stack": _NUMBERS, "warnings": _NAMES,
        },
    ),
    "decode": ("pipesim decode RECORDS", {"trace": str, "kernel": str, "events": int, "ending": str}),
    "confirm": ("pipesim confirm KERNEL.ptx", {"findings": _FINDINGS, "report": ConfirmReport}),
    "confirm-program": (
        "pipesim confirm -- COMMAND", {"exit_code": _STATUS, "findings": _FINDINGS, "report": ConfirmProgramReport}
    ),
    "stress": ("pipesim stress KERNEL.ptx", {"findings": _FINDINGS, "report": StressReport}),
    "autopsy": ("pipesim autopsy CORE", {"findings": _FINDINGS, "report": AutopsyReport}),
    "autopsy-brief": ("pipesim autopsy CORE --format brief", {"brief": Brief}),
    "doctor": ("pipesim doctor", {"report": DoctorReport}),
    "mcp-tools": ("pipesim mcp", {"tools": tuple[tuple[str, str], ...]}),
    "skill": ("pipesim skill", {"text": str}),
    "schema-list": ("pipesim schema", {"schemas": tuple[tuple[str, str], ...]}),
    "error": ("any command that cannot be carried out", {"error": PipesimError}),
}  # fmt: skip


def answer(name: str) -> Schema:
    """The schema of one of ``ANSWER_MEMBERS``."""
    title, members = ANSWER_MEMBERS[name]
    types = TypeSchemas()
    made = {member: types.schema(kind) for member, kind in members.items() if member and member != "protocols"}
    if "" in members:  # its fields are members of the document
        types.schema(members[""])
        made |= types.defs.pop(getattr(members[""], "__name__", ""))["properties"]
    if "protocols" in members:
        of_each = members["protocols"]
        made["protocols"] = _several(types, of_each) if isinstance(of_each, type) else types.schema(of_each)
    head = {"schema": {"const": f"{name}.v{ANSWERS}"}, "pipesim": TEXT, "exit_code": _EXIT_CODE}
    optional = ("error",) if name == "verify" else ()  # only where evidence is missing
    return schema_document(name, ANSWERS, title, record(head | made, optional=optional), types.defs)


def _several(types: TypeSchemas, report: type) -> Schema:
    """What each of several protocols has under its name: its findings and report, or its brief, or its error."""
    code = {"exit_code": _EXIT_CODE} if report is ProtocolReport else {}
    one = {"findings": types.schema(_FINDINGS), "report": types.schema(report)}
    one = {"brief": types.schema(report)} if report is Brief else one
    return table({"anyOf": [record({**code, **one}), record({**code, "error": types.schema(PipesimError)})]})
