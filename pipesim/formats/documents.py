"""The JSON document of an answer: its schema, pipesim's version, its exit code, its findings and the answer; as CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Callable, Iterable
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.answers.views.conclusion import EXIT_CODES, Answer, Conclusion, exit_code
from pipesim.errors import PipesimError
from pipesim.model.finding import Deadlock
from pipesim.version import __version__

if TYPE_CHECKING:
    from pipesim.answers.views.launches import HangReport, LaunchesReport, RecordReport
    from pipesim.answers.views.sweep import Configuration, SweepReport
    from pipesim.explain.anatomy.parts import Anatomy


COLUMNS = (
    "state", "why", "rank", "off_permille", "cycles", "period_millicycles", "iterations", "work_amount", "work_unit",
    "limited_by", "limited_role", "limited_group", "waits_permille", "smem_bytes", "registers", "threads",
)  # fmt: skip
_PREFIX = "sweep."  #: with a dot no parameter can have the name


def column_names(names: Iterable[str], parameters: Iterable[str]) -> list[str]:
    """The names of columns beside those of swept parameters; ``sweep.NAME`` where a parameter has the same name."""
    taken = set(parameters)
    return [f"{_PREFIX}{name}" if name in taken else name for name in names]


def sweep_csv(report: SweepReport) -> str:
    """All configurations in the order of the axes; what does not exist is empty."""
    ranks = {id(each.configuration): (n, each.off_permille) for n, each in enumerate(report.ranked, 1)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*report.axes, *column_names(COLUMNS, report.axes)])
    for each in report.configurations:
        writer.writerow([*each.params.values(), *_row(each, *ranks.get(id(each), ("", "")))])
    return text.getvalue()


def _row(each: Configuration, rank: int | str, off: int | str) -> list[object]:
    return [each.state.name.lower(), each.why, rank, off, *_times(each), *_resources(each)]


def _times(each: Configuration) -> tuple[object, ...]:
    times = each.times
    if times is None:
        return ("",) * 9
    limit = times.limited_by
    by = ("",) * 4 if limit is None else (limit.limit.name.lower(), limit.role, limit.group, limit.waits_permille)
    return (times.cycles, times.period_millicycles, times.iterations, times.work, times.unit.name.lower(), *by)


def _resources(each: Configuration) -> tuple[object, ...]:
    found = each.resources
    return ("",) * 3 if found is None else (found.smem_bytes, found.registers, found.threads)


Words = Callable[[object], dict[str, object]]  #: members that a dataclass gets beside its fields, or instead of them


def as_json(value: object, words: Words | None = None) -> str:
    """``value`` as indented JSON, in ASCII: the same bytes whatever the terminal can print.

    In a log of a CI system no text of it is a command: ``##[`` anywhere in a line would be one, and a line begins with
    a quote, a bracket or a digit. What is read back is the same.
    """
    return json.dumps(plain(value, words), indent=2).replace("##", "#\\u0023")


def plain(value: object, words: Words | None = None) -> object:
    """``value`` in dicts, lists, numbers and text.

    Keys of a dict that are tuples are joined by a colon and a space. Of a trace only its name and size: the events are
    in its file. A deadlock says so, as a fault does by its kind. An error has its class's name as ``kind``, and its
    parts. ``words`` makes the sentences about a dataclass.
    """
    from pipesim.trace.schema import Trace  # which most answers do without

    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, Trace):
        return {"protocol": value.meta.protocol, "source": value.meta.source, "events": len(value.events)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        head = {"kind": value.kind} if isinstance(value, Deadlock) else {}
        fields = {field.name: plain(getattr(value, field.name), words) for field in dataclasses.fields(value)}
        return head | fields | (words(value) if words is not None else {})
    if isinstance(value, PipesimError):
        parts = {"fact": value.fact, "place": value.place, "cause": value.cause, "correction": value.correction}
        return {"kind": type(value).__name__, **parts}
    if isinstance(value, dict):
        return {
            ": ".join(key) if isinstance(key, tuple) else str(key): plain(part, words) for key, part in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [plain(part, words) for part in value]
    if isinstance(value, Path):
        return str(value)
    return value


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
    "ConfirmReport": "confirm",
    "ConfirmProgramReport": "confirm-program",
    "StressReport": "stress",
}
_WITHOUT_FINDINGS = ("sweep", "advise")


def document(schema: str, code: int = 0, **members: object) -> dict[str, object]:
    """A document: the name of its schema (``pipesim schema NAME``), pipesim's version, the exit code, the members."""
    return {"schema": f"{schema}.v{ANSWERS}", "pipesim": __version__, "exit_code": code} | members


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


# exit codes of commands that ran a program


def launches_exit_code(report: LaunchesReport) -> int:
    """The code of a command that ran a program, whose own failure is not lost.

    Without verdicts it is the program's status, or, where that is 0, 3 if nothing was caught. With verdicts 1 is a
    refuted launch, so a program that failed is 3 where nothing is refuted: not everything that it does was seen.
    """
    code = exit_code(report)
    if not report.checked:
        return report.status or code
    return code or (EXIT_CODES[Conclusion.UNKNOWN] if report.status else 0)


def hang_exit_code(report: HangReport) -> int:
    """The code of a command that ran a program: 5 where it was dumped; else the program's status.

    3: it was ended, but not every dump is there and complete.
    """
    if report.cause is None:
        return report.status or 0
    return DUMPED if report.dumps and report.complete == report.dumps else EXIT_CODES[Conclusion.UNKNOWN]


def record_exit_code(report: RecordReport) -> int:
    """The code of a command that recorded a program: the program's own status, else that of the traces.

    1: a launch did not end by itself, or a trace differs from its PTX; 3: no trace, or one that could not be compared.
    """
    return report.status or exit_code(report)
