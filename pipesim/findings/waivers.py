"""Findings that a user has decided to accept: what a waiver says, where it is written, which findings it matches.

``# pipesim: ignore[stale-wait] reason`` (or ``//``) waives the findings of these kinds at its line, or at the line
below where it is on a line of its own.

A baseline: the findings that a project had on a day, so that a check fails on new ones only. JSON, one list.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from pipesim.bounds import MAX_JSON_BYTES
from pipesim.errors import UsageError
from pipesim.inputs import InputKind
from pipesim.model.finding import BlockedAgent, Deadlock, Finding

DEADLOCK = "deadlock"
_AT_PLACE = re.compile(r"(\.\w+):\d+(?::\d+)?")  #: ``kernel.cu:38:5``, the name of a barrier that has no other
_REGISTER = re.compile(r"%([a-z]+)\d+")  #: of PTX, which another compilation numbers otherwise
_NUMBERED = re.compile(r"(/\d+)?(@\d+)?$")  #: ``mma/1@0`` is of the role mma
_DIGITS = 16  #: of a fingerprint


@dataclass(frozen=True, order=True)
class Identity:
    """Kind, function, role, names of barriers and tiles, the text of the line, or of both accesses; no line number.

    ``nth``: among findings that are equal in all of this, in the order of the report.
    """

    kind: str
    function: str
    role: str
    names: tuple[str, ...]
    text: str
    nth: int = 0

    @property
    def fingerprint(self) -> str:
        """A number for it, in hexadecimal: of SARIF's ``partialFingerprints``."""
        parts = [self.kind, self.function, self.role, self.names, self.text, self.nth]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]


def kind_name(finding: Finding) -> str:
    """``stale-wait``, ``deadlock``: as a waiver and SARIF name it."""
    kind = finding.kind if isinstance(finding, Deadlock) else finding.kind.name.lower()
    return kind.replace("_", "-")


def main_wait(deadlock: Deadlock) -> BlockedAgent | None:
    """The wait that a deadlock is reported at: for a phase that is past, else one that no agent can end."""
    waits = sorted(
        deadlock.blocked, key=lambda b: (b.missed < 0 and not b.lapped_by, any(s.next_line for s in b.suppliers))
    )
    return next((blocked for blocked in waits if blocked.line), None)


def place_of(finding: Finding) -> str:
    """The author's line of a finding: of its fault, or of the wait that no agent can end."""
    if not isinstance(finding, Deadlock):
        return finding.line
    wait = main_wait(finding)
    return wait.line if wait is not None else ""


def role_of(finding: Finding) -> str:
    """The role whose line it is reported at."""
    if isinstance(finding, Deadlock):
        wait = main_wait(finding)
        return _NUMBERED.sub("", wait.agent) if wait is not None else ""
    return _NUMBERED.sub("", finding.agent)


def identity_of(finding: Finding, function: str, names: tuple[str, ...], text: str) -> Identity:
    """Of a finding about these barriers and tiles, at a line with this text ("" where it cannot be read)."""
    plain = _REGISTER.sub(r"%\1", " ".join(text.split()))
    named = tuple(sorted({_AT_PLACE.sub(r"\1", name) for name in names}))
    return Identity(kind_name(finding), function, role_of(finding), named, plain)


_COMMENT = re.compile(r"(?P<before>.*?)(?:#|//)\s*pipesim:\s*ignore\[(?P<kinds>[^\]]*)\]\s*(?P<reason>.*)")
_PLACE = re.compile(r"(?P<file>.*):(?P<number>\d{1,9})")
_STAGE = re.compile(r"\[\d+\]$")


@dataclass(frozen=True)
class Waiver:
    """Findings of a kind ("" for any) are waived: at a ``line``, if it names one, and where ``pattern`` matches.

    ``pattern``, of the kind of shells, is compared with the names of barriers and tiles, the role, the function and the
    file. ``identity``: of a baseline, the one finding that it is about. ``said``: where it is written.
    """

    kind: str
    said: str
    reason: str = ""
    pattern: str = ""
    line: str = ""
    identity: Identity | None = None

    def matches(self, found: Identity, lines: Iterable[str]) -> bool:
        """Whether it is about a finding that is reported at these lines."""
        if self.identity is not None:
            return self.identity == found
        if self.kind not in ("", found.kind):
            return False
        if self.line and self.line not in lines:
            return False
        files = {part for line in lines for part in _files(line)}
        named = {*found.names, *(_STAGE.sub("", name) for name in found.names), found.role, found.function, *files}
        return not self.pattern or any(fnmatchcase(name, self.pattern) for name in named)


def _files(line: str) -> tuple[str, ...]:
    """The file of a line as it is, and without its folders."""
    found = _PLACE.fullmatch(line)
    return (found["file"], re.split(r"[\\/]", found["file"])[-1]) if found is not None else ()


def kind_of(text: str, said: str) -> str:
    """The name of a kind of findings as reports have it. UsageError if there is none."""
    from pipesim.findings.catalog import BY_NAME

    kind = _plain(text)
    known = sorted({DEADLOCK, *(name.replace("_", "-") for name, each in BY_NAME.items() if not each.warns)})
    if kind in known:
        return kind
    near = get_close_matches(kind, known, n=3, cutoff=0.4)
    raise UsageError(
        f"there is no finding {kind!r}",
        place=said,
        correction=f"did you mean {' or '.join(near)}?" if near else "`pipesim explain` lists them",
    )


def _plain(kind: str) -> str:
    return kind.strip().lower().replace("_", "-")


def ignored(text: str) -> Waiver:
    """The waiver of ``--ignore KIND[:PATTERN]``. UsageError for a kind that there is not."""
    kind, _, pattern = text.partition(":")
    return Waiver(kind_of(kind, said := f"--ignore {text}"), said, pattern=pattern)


def comments_at(lines: Iterable[str], text_of: Callable[[str], str]) -> tuple[Waiver, ...]:
    """The waivers that are written at these lines, each ``file:number``, or alone on the line above one.

    ``text_of`` gives the text of a line with its comment, "" of one that cannot be read. A kind that there is not
    matches nothing, and so is reported.
    """
    found: dict[Waiver, None] = {}
    for line in dict.fromkeys(lines):
        if (at := _PLACE.fullmatch(line)) is None:
            continue
        above = f"{at['file']}:{int(at['number']) - 1}"
        for place in (line, above):
            comment = _COMMENT.match(text_of(place))
            if comment is not None and (place == line or not comment["before"].strip()):
                for kind in comment["kinds"].split(","):
                    found[Waiver(_plain(kind) or "nothing", place, comment["reason"].strip(), line=line)] = None
    return tuple(found)


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
