"""The JSON document of an answer: its schema, pipesim's version, its exit code, its findings and the answer."""

from __future__ import annotations

from dataclasses import fields

from pipesim.answers.views.advise import AdviseReport
from pipesim.answers.views.check import CheckReport, WalkReport
from pipesim.answers.views.run import RunReport
from pipesim.answers.views.sweep import SweepReport
from pipesim.answers.views.trace import CompareReport, PairReport
from pipesim.answers.views.verify import VerifyReport
from pipesim.explain.anatomy.parts import Anatomy
from pipesim.export.exit_codes import exit_code
from pipesim.version import version

ANSWERS = 1  #: the version of these documents
Report = CheckReport | RunReport | WalkReport | VerifyReport | CompareReport | PairReport | SweepReport | AdviseReport
_SCHEMAS: dict[type, str] = {
    CheckReport: "check",
    RunReport: "run",
    WalkReport: "run-schedule",
    VerifyReport: "verify",
    CompareReport: "compare",
    PairReport: "compare-pair",
    SweepReport: "sweep",
    AdviseReport: "advise",
}


def document(schema: str, code: int = 0, **members: object) -> dict[str, object]:
    """A document: the name of its schema (``pipesim schema NAME``), pipesim's version, the exit code, the members."""
    return {"schema": f"{schema}.v{ANSWERS}", "pipesim": version(), "exit_code": code} | members


def document_of(report: Report) -> dict[str, object]:
    """A document with ``report``, ``findings`` where there can be any, and ``error`` where evidence is missing."""
    made = document(_SCHEMAS[type(report)], exit_code(report))
    if not isinstance(report, SweepReport | AdviseReport):
        made["findings"] = () if isinstance(report, CompareReport | PairReport) else report.findings
    made["report"] = report
    if isinstance(report, VerifyReport) and report.missing is not None:
        made["error"] = report.missing
    return made


def anatomy_document(found: Anatomy) -> dict[str, object]:
    """The document of a diagram: the parts of the CTA."""
    return document("show", **{field.name: getattr(found, field.name) for field in fields(found)})
