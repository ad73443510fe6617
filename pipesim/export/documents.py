"""The JSON document of an answer: its exit code, its findings, the answer, and the evidence that is missing."""

from __future__ import annotations

from dataclasses import fields

from pipesim.answers.views.advise import AdviseReport
from pipesim.answers.views.check import CheckReport, WalkReport
from pipesim.answers.views.run import RunReport
from pipesim.answers.views.sweep import SweepReport
from pipesim.answers.views.trace import CompareReport
from pipesim.answers.views.verify import VerifyReport
from pipesim.explain.anatomy.parts import Anatomy
from pipesim.export.exit_codes import exit_code

Report = CheckReport | RunReport | WalkReport | VerifyReport | CompareReport


def document_of(report: Report) -> dict[str, object]:
    """``{"exit_code", "findings", "report"}``, and ``error`` where evidence is missing."""
    findings = () if isinstance(report, CompareReport) else report.findings
    document: dict[str, object] = {"exit_code": exit_code(report), "findings": findings, "report": report}
    if isinstance(report, VerifyReport) and report.missing is not None:
        document["error"] = report.missing
    return document


def sweep_document(report: SweepReport) -> dict[str, object]:
    """``{"exit_code", "report"}`` of a sweep."""
    return {"exit_code": exit_code(report), "report": report}


def advise_document(report: AdviseReport) -> dict[str, object]:
    """``{"exit_code", "report"}`` of advice."""
    return {"exit_code": exit_code(report), "report": report}


def anatomy_document(found: Anatomy) -> dict[str, object]:
    """The document of a diagram: its exit code, and the parts of the CTA."""
    return {"exit_code": 0} | {field.name: getattr(found, field.name) for field in fields(found)}
