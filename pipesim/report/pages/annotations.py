"""Findings where a machine shows them: annotations of GitHub's workflow log, and JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pipesim.answers.views.check import CheckReport, Level
from pipesim.answers.views.conclusion import Conclusion
from pipesim.errors import PipesimError
from pipesim.model.finding import Verdict
from pipesim.ptx.source_files import SourceFiles, lines_read_from, path_of
from pipesim.report.findings.brief import in_short
from pipesim.report.pages.check import check_lines, shown_lines
from pipesim.report.sentences.check import check_sentence, scope_parts
from pipesim.report.sentences.sureness import spared_words, unused_words
from pipesim.report.text.console import mark
from pipesim.report.text.words import inert, inert_text

WIDTH = 100  #: cells of a message
_PLACE = re.compile(r":\d+$")
_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}  #: GitHub's names


Sources = Mapping[str, SourceFiles | None]  #: of those reports that are of kernels, where their lines are read
NO_SOURCES: Sources = {}


def github_lines(
    reports: Mapping[str, CheckReport], failed: Mapping[str, PipesimError], sources: Sources = NO_SOURCES
) -> list[str]:
    """Workflow commands, one a finding, at the author's line, and one at the line of each likely correction.

    What is unknown is a warning. The verdicts follow.

    ``failed``: protocols that could not be built, each an error.

    Escaped as GitHub asks (docs.github.com, "Workflow commands for GitHub Actions").
    """
    lines: list[str] = []
    for name, report in reports.items():
        with lines_read_from(sources.get(name)):
            lines += _annotations(name, report)
    for name, error in failed.items():
        place = error.place if _PLACE.search(error.place) else ""
        lines.append(_command("error", place, f"{name} could not be built", str(error)))
        lines.append(inert(f"{mark(None)} {name} could not be built"))
    return lines


def _annotations(name: str, report: CheckReport) -> Iterator[str]:
    for shown in report.refutations:
        if shown.waived is not None:
            continue
        text = "\n".join(shown_lines(shown, WIDTH)).strip("\n")
        yield _command(_COMMANDS[report.level(shown)], shown.place, f"{name}: {in_short(shown.finding)}", text)
        for correction in shown.corrections:
            if correction.line:
                said = f"{correction.said}; {shown.proved_with}"
                yield _command("notice", correction.line, f"{name}: likely correction", said)
    for waiver in report.unused:
        yield _command("warning", waiver.said if waiver.line else "", f"{name}: unused waiver", unused_words(waiver))
    if report.verdict is Verdict.UNKNOWN:
        at = next((doubt.line for doubt in report.doubts if doubt.line), "")
        yield _command("warning", at, f"{name}: unknown", check_sentence(report))
    yield inert(f"{mark(report.conclusion.ok)} {name}: {check_sentence(report)}")


def junit_text(
    reports: Mapping[str, CheckReport], failed: Mapping[str, PipesimError], sources: Sources = NO_SOURCES
) -> str:
    """A test case for each protocol: a refuted one has failed with its findings, an unknown one is an error.

    So is each of ``failed``, which could not be built.

    In ASCII: the same bytes whatever the stream can print.
    """
    count = {end: sum(r.conclusion is end for r in reports.values()) for end in Conclusion}
    totals = {
        "tests": str(len(reports) + len(failed)),
        "failures": str(count[Conclusion.WRONG]),
        "errors": str(count[Conclusion.UNKNOWN] + len(failed)),
    }
    root = Element("testsuites", totals)
    suite = SubElement(root, "testsuite", {"name": "pipesim check", **totals})
    for name, report in reports.items():
        case = SubElement(suite, "testcase", {"classname": "pipesim.check", "name": _clean(name)})
        properties = SubElement(case, "properties")
        for label, said in scope_parts(report).items():
            SubElement(properties, "property", {"name": label, "value": _clean(said)})
        if report.verdict is Verdict.REFUTED and (spared := spared_words(report)):
            SubElement(properties, "property", {"name": "does not fail", "value": _clean(spared)})
        if report.conclusion is Conclusion.AGREES:
            continue
        kind = "failure" if report.verdict is Verdict.REFUTED else "error"
        said = "; ".join(in_short(shown.finding) for shown in report.failing) or check_sentence(report)
        found = SubElement(case, kind, {"type": report.verdict.value, "message": _clean(said)})
        with lines_read_from(sources.get(name)):
            found.text = "\n" + "\n".join(map(_clean, check_lines(report, WIDTH))) + "\n"
    for name, error in failed.items():
        case = SubElement(suite, "testcase", {"classname": "pipesim.check", "name": _clean(name)})
        told = SubElement(case, "error", {"type": type(error).__name__, "message": _clean(error.fact)})
        told.text = f"\n{inert_text(str(error))}\n"
    indent(root)
    written: bytes = tostring(root, encoding="us-ascii", xml_declaration=True)
    return written.decode("ascii")


def _command(level: str, line: str, title: str, message: str) -> str:
    """``::error file=ring.py,line=41,title=...::...``; without a place where none is known."""
    path, colon, number = line.rpartition(":")
    parts = {"file": _relative(path), "line": number} if colon else {}
    said = ",".join(f"{name}={_escape(value, ',:')}" for name, value in (parts | {"title": title}).items())
    return f"::{level} {said}::{_escape(message, '')}"


def _escape(text: str, more: Sequence[str]) -> str:
    for character in ("%", "\r", "\n", *more):  # the percent sign first: it begins what replaces the others
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _relative(path: str) -> str:
    """As the repository has it: relative to the folder that the command runs in, if it lies below it."""
    path = path_of(path)
    try:
        return Path(path).relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path


def _clean(text: str) -> str:
    """One line of text, without what XML cannot hold, a terminal would obey or a CI system would take for a command."""
    return inert(text)
