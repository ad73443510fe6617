"""Findings as SARIF 2.1.0 (OASIS), which GitHub code scanning, GitLab and editors read.

A result for each counterexample, at the author's line; its other lines, the correction's among them, are related
locations, and the schedule is a code flow with one thread for each agent.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pipesim.answers.views.check import CheckReport, Counterexample, Level
from pipesim.answers.views.conclusion import Conclusion
from pipesim.errors import PipesimError
from pipesim.findings.catalog import BY_NAME
from pipesim.findings.waivers import DEADLOCK, kind_name
from pipesim.model.finding import Deadlock, Verdict
from pipesim.prove.counterexample.words import Line, Part
from pipesim.ptx.source_files import SourceFiles, lines_read_from, path_of
from pipesim.report.findings.brief import in_short
from pipesim.report.pages.checks.check import check_lines, mark_of, shown_lines
from pipesim.report.sentences.check import assumptions_counted, check_sentence, not_judged_words, scope_parts
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
    yield inert(f"{mark_of(report)} {name}: {check_sentence(report)}")


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


MOST_STEPS = 1_000  #: of a code flow: the last ones, which hold the failure; GitHub shows no more
MOST_RELATED = 50  #: locations of a finding: a large kernel has hundreds of warps that wait
SCHEMA = "https://json.schemastore.org/sarif-2.1.0-rtm.5.json"

_UNKNOWN, _NOT_BUILT = "unknown", "not-built"
_SAID = {
    DEADLOCK: "a schedule in which agents wait indefinitely",
    _UNKNOWN: "neither proved nor refuted",
    _NOT_BUILT: "the protocol or kernel could not be read",
}
Node = dict[str, Any]


def sarif_text(
    reports: Mapping[str, CheckReport],
    failed: Mapping[str, PipesimError],
    version: str,
    sources: Sources = NO_SOURCES,
) -> str:
    """The document, in ASCII. ``failed``: protocols that could not be built, each an error; ``version``: pipesim's.

    ``sources``: as of :func:`pipesim.report.pages.checks.sarif.github_lines`.
    """
    results: list[Node] = []
    for name, report in reports.items():
        with lines_read_from(sources.get(name)):
            results += _of_report(name, report)
    results += [
        _result(_NOT_BUILT, "error", error.fact, str(error), _location(error.place) or _of_target(name))
        for name, error in failed.items()
    ]
    rules = sorted({each["ruleId"] for each in results})
    for each in results:
        each["ruleIndex"] = rules.index(each["ruleId"])
    driver = {"name": "pipesim", "version": version, "rules": [_rule(name) for name in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": not failed}],
        "results": results,
        "properties": {"verdicts": {inert(name): _verdict_of(report) for name, report in reports.items()}},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _verdict_of(report: CheckReport) -> Node:
    """The verdict with its three parts: for what, assuming what, and what is not judged."""
    scope = report.scope
    return {
        "verdict": report.verdict.value,
        "sentence": inert_text(check_sentence(report)),
        "ctas": list(scope.ctas),
        "grid": scope.grid,
        "assuming": [asdict(each) for each in assumptions_counted(scope)],
        "notJudged": [not_judged_words(each) for each in scope.not_judged],
    }


def _of_report(name: str, report: CheckReport) -> Iterator[Node]:
    for shown in report.refutations:
        rule = kind_name(shown.finding)
        text = "\n".join(shown_lines(shown, WIDTH)).strip("\n")
        made = _result(
            rule,
            report.level(shown).value,
            f"{name}: {in_short(shown.finding)}",
            text,
            _location(shown.place) or _of_target(name),
        )
        related = [_located_message(line, said) for said, line in dict.fromkeys(_others(shown))]
        flow = _flow(shown.schedule)
        yield (
            made
            | {"relatedLocations": [each for each in related if each][:MOST_RELATED]}
            | ({"codeFlows": [flow]} if flow else {})
            | _standing(shown)
        )
    if report.verdict is Verdict.UNKNOWN:
        at = next((doubt.line for doubt in report.doubts if doubt.line), "")
        said = check_sentence(report)
        yield _result(_UNKNOWN, "warning", f"{name}: unknown", said, _location(at) or _of_target(name))


def _standing(shown: Counterexample) -> Node:
    """How sure it is, whose, what makes it the same in another version, and the waiver that it is set aside by."""
    made: Node = {"properties": {"basis": shown.basis.value, "owner": shown.origin.owner.value}}
    if shown.identity is not None:
        made["partialFingerprints"] = {"pipesim/v1": shown.identity.fingerprint}
    if (waiver := shown.waived) is not None:
        kind = "inSource" if waiver.line else "external"
        made["suppressions"] = [{"kind": kind, "justification": inert(waiver.reason or waiver.said)}]
    return made


def _others(shown: Counterexample) -> Iterator[tuple[str, str]]:
    """What else a finding points at: what is said about a line, and the line. The corrections come first."""
    if (change := shown.after) is not None:
        yield f"shows with this change: {change.said}", change.line
    for correction in shown.corrections:
        yield f"likely correction: {correction.said}; {shown.proved_with}", correction.line
    if not isinstance(shown.finding, Deadlock):
        yield "the other access", shown.finding.other_line
        return
    for blocked in shown.finding.blocked:
        yield f"{blocked.agent} waits for {blocked.barrier}", blocked.line
        for supplier in blocked.suppliers:
            if supplier.next_line:
                yield f"{supplier.agent} would send the {supplier.supplies} next", supplier.next_line
            else:
                yield f"{supplier.agent} sent its last {supplier.supplies}", supplier.last_line


def _flow(schedule: tuple[Line, ...]) -> Node:
    """A thread for each agent that takes part, its steps with their order among all of them."""
    threads: dict[str, list[Node]] = {}
    steps = [step for step in schedule if step.line and step.part is not Part.PRIVATE]
    for step in steps[-MOST_STEPS:]:
        said = f"{step.agent}: {step.short or step.what}{f' · {step.note}' if step.note else ''}"
        where = {"location": _located_message(step.line, said), "executionOrder": step.number}
        if where["location"]:
            threads.setdefault(step.agent, []).append(where)
    flows = [{"id": inert(agent), "locations": locations} for agent, locations in threads.items()]
    return {"threadFlows": flows} if flows else {}


def _rule(name: str) -> Node:
    text = _SAID.get(name) or BY_NAME[name.replace("-", "_")].title
    return {"id": name, "shortDescription": {"text": text}}


def _result(rule: str, level: str, headline: str, text: str, location: Node) -> Node:
    message = {"text": inert_text(f"{headline}\n\n{text}")}
    return {"ruleId": rule, "level": level, "message": message, "locations": [location] if location else []}


def _located_message(line: str, said: str) -> Node:
    found = _location(line)
    return found | {"message": {"text": inert(said)}} if found else {}


def _location(line: str) -> Node:
    """The place of ``file:number``; nothing where it is not one."""
    path, _, number = line.rpartition(":")
    if not path or not number.isdecimal() or not int(number):
        return {}
    return {"physicalLocation": {"artifactLocation": _artifact(path), "region": {"startLine": int(number)}}}


def _of_target(name: str) -> Node:
    """The first line of the file that a target names, where a finding has no line of its own."""
    name = name.partition(" --launch ")[0]
    path = name if name.endswith((".py", ".json", ".ptx")) else name.rpartition(":")[0]
    return _location(f"{path}:1") if path else {}


def _artifact(path: str) -> Node:
    """As the repository has it: relative to the folder that the command runs in, if it lies below it."""
    path = path_of(path)
    absolute = Path(path)
    if absolute.is_absolute() and not absolute.is_relative_to(Path.cwd()):
        return {"uri": f"file://{_quote_path(absolute)}"}
    below = absolute.relative_to(Path.cwd()) if absolute.is_absolute() else absolute
    return {"uri": _quote_path(below), "uriBaseId": "%SRCROOT%"}


def _quote_path(path: Path) -> str:
    return quote(path.as_posix(), errors="replace")
