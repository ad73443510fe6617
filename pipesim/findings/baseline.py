"""A baseline: the findings that a project had on a day, so that a check fails on new ones only. JSON, one list."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pipesim.bounds import MAX_JSON_BYTES
from pipesim.errors import UsageError
from pipesim.findings.identity import Identity
from pipesim.findings.waivers import Waiver
from pipesim.inputs import InputKind

SCHEMA, VERSION = "pipesim-baseline", 1
_WRITE = "delete it, and write it again with --update-baseline"
BASELINE = InputKind("baseline", MAX_JSON_BYTES, UsageError, _WRITE)
_MEMBERS = {"kind": str, "function": str, "role": str, "names": list, "text": str, "nth": int}


def baseline_text(found: Iterable[Identity]) -> str:
    """The file of these findings: the same for the same findings, in whatever order they come."""
    findings = [
        {"fingerprint": each.fingerprint} | {name: getattr(each, name) for name in _MEMBERS}
        for each in sorted(set(found))
    ]
    return json.dumps({"schema": SCHEMA, "version": VERSION, "findings": findings}, indent=1) + "\n"


def read_baseline(text: str, name: str) -> tuple[Waiver, ...]:
    """A waiver for each finding of a baseline; ``name``: the file's. UsageError for what is none."""
    document = BASELINE.parse_json(text, name)
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UsageError(f"{name} is not a baseline", cause=f"it has no schema {SCHEMA!r}", correction=_WRITE)
    if document.get("version") != VERSION:
        raise UsageError(
            f"{name} is a baseline of version {document.get('version')!r}",
            cause=f"this pipesim reads version {VERSION}",
            correction=_WRITE,
        )
    findings = document.get("findings")
    if not isinstance(findings, list):
        raise UsageError(f"{name} has no list of findings", correction=_WRITE)
    return tuple(_waiver(each, name) for each in findings)


def _waiver(given: object, name: str) -> Waiver:
    values = given if isinstance(given, dict) else {}
    wrong = next((key for key, kind in _MEMBERS.items() if type(values.get(key)) is not kind), "")
    if wrong or not all(isinstance(each, str) for each in values["names"]):
        raise UsageError(f"{name}: a finding has no {wrong or 'names'}", correction=_WRITE)
    found = Identity(**{key: values[key] for key in _MEMBERS} | {"names": tuple(values["names"])})
    return Waiver(found.kind, f"baseline {name}", identity=found)
