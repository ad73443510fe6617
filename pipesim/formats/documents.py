"""The JSON document of an answer: its schema, pipesim's version, its exit code, its findings and the answer."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from pipesim.answers.views.conclusion import Answer, Conclusion, worst
from pipesim.errors import InternalError
from pipesim.version import version

if TYPE_CHECKING:  # a command has the reports that it makes, and imports no other
    from pipesim.answers.views.launches import HangReport, LaunchesReport, RecordReport
    from pipesim.explain.anatomy.parts import Anatomy

ANSWERS = 1  #: the version of these documents
DUMPED = 5  #: the exit code of a program that hung and was dumped
#: The schema of each report, by the name of its class.
_SCHEMAS = {
    "CheckReport": "check",
    "AgainstReport": "check-against",
    "RunReport": "run",
    "WalkReport": "run-schedule",
    "VerifyReport": "verify",
    "CompareReport": "compare",
    "PairReport": "compare-pair",
    "SweepReport": "sweep",
    "AdviseReport": "advise",
    "AutopsyReport": "autopsy",
}
_WITHOUT_FINDINGS = ("sweep", "advise")


def document(schema: str, code: int = 0, **members: object) -> dict[str, object]:
    """A document: the name of its schema (``pipesim schema NAME``), pipesim's version, the exit code, the members."""
    return {"schema": f"{schema}.v{ANSWERS}", "pipesim": version(), "exit_code": code} | members


def document_of(report: Answer) -> dict[str, object]:
    """A document with ``report``, ``findings`` where there can be any, and ``error`` where evidence is missing."""
    schema = _SCHEMAS[type(report).__name__]
    made = document(schema, exit_code(report))
    if schema not in _WITHOUT_FINDINGS:
        made["findings"] = getattr(report, "findings", ())
    made["report"] = report
    missing = getattr(report, "missing", None)
    return made if missing is None else made | {"error": missing}


def anatomy_document(found: Anatomy) -> dict[str, object]:
    """The document of a diagram: the parts of the CTA."""
    return document("show", **{field.name: getattr(found, field.name) for field in fields(found)})


# exit codes: the one place where they are decided (those of errors are in pipesim.errors)

_CODES = {
    Conclusion.AGREES: 0,
    Conclusion.WRONG: 1,
    Conclusion.UNKNOWN: 3,
    Conclusion.OUTSIDE_TOLERANCE: 4,
    Conclusion.INTERNAL_ERROR: InternalError.exit_code,
}


def exit_code(*answers: Answer) -> int:
    """The code of the worst of these answers; 0 of none."""
    return _CODES[worst(answer.conclusion for answer in answers)]


def launches_exit_code(report: LaunchesReport) -> int:
    """The code of a command that ran a program, whose own failure is not lost.

    Without verdicts it is the program's status, or, where that is 0, 3 if nothing was caught. With verdicts 1 is a
    refuted launch, so a program that failed is 3 where nothing is refuted: not everything that it does was seen.
    """
    code = exit_code(report)
    if not report.checked:
        return report.status or code
    return code or (_CODES[Conclusion.UNKNOWN] if report.status else 0)


def hang_exit_code(report: HangReport) -> int:
    """The code of a command that ran a program: 5 where it was dumped; else the program's status.

    3: it was ended, but not every dump is there and complete.
    """
    if report.cause is None:
        return report.status or 0
    return DUMPED if report.dumps and report.complete == report.dumps else _CODES[Conclusion.UNKNOWN]


def record_exit_code(report: RecordReport) -> int:
    """The code of a command that recorded a program: the program's own status, else that of the traces.

    1: a launch did not end by itself, or a trace differs from its PTX; 3: no trace, or one that could not be compared.
    """
    return report.status or exit_code(report)
