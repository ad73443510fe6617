"""The schemas of what commands print with ``--json``: a table of their members, by name."""

from __future__ import annotations

from collections.abc import Mapping

from pipesim.answers.views.autopsy import AutopsyReport
from pipesim.answers.views.calibrate import CalibrationReport
from pipesim.answers.views.check import AgainstReport, Brief, CheckReport, WalkReport
from pipesim.answers.views.doctor import DoctorReport
from pipesim.answers.views.kinds import AssumptionReport, KindLine, KindReport
from pipesim.answers.views.launches import HangReport, LaunchesReport, RecordReport
from pipesim.answers.views.redundant import RedundantReport
from pipesim.answers.views.run import RunReport
from pipesim.answers.views.sequence import SequenceReport
from pipesim.answers.views.summary import ProtocolReport, ProtocolRow
from pipesim.answers.views.sweep import AdviseReport, SweepReport
from pipesim.answers.views.trace import CompareReport, PairReport, VerifyReport
from pipesim.errors import PipesimError
from pipesim.explain.anatomy.parts import Anatomy
from pipesim.formats.documents import ANSWERS
from pipesim.formats.schemas.shapes import TEXT, Schema, TypeSchemas, record, schema_document, table
from pipesim.model.finding import Finding

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
    "check-brief": ("pipesim check NAME --format brief", {"protocols": Brief}),
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
    "autopsy": ("pipesim autopsy CORE", {"findings": _FINDINGS, "report": AutopsyReport}),
    "doctor": ("pipesim doctor", {"report": DoctorReport}),
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
