"""What makes a finding the same one in another version of the file: a waiver, a baseline and SARIF rely on it."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from pipesim.model.finding import BlockedAgent, Deadlock, Finding

DEADLOCK = "deadlock"
_PLACE = re.compile(r"(\.\w+):\d+(?::\d+)?")  #: ``kernel.cu:38:5``, the name of a barrier that has no other
_REGISTER = re.compile(r"%([a-z]+)\d+")  #: of PTX, which another compilation numbers otherwise
_NUMBERED = re.compile(r"(/\d+)?(@\d+)?$")  #: ``mma/1@0`` is of the role mma
_DIGITS = 16  #: of a fingerprint


@dataclass(frozen=True, order=True)
class Identity:
    """Kind, function, role, names of barriers and tiles, the text of the line; no line number.

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
    named = tuple(sorted({_PLACE.sub(r"\1", name) for name in names}))
    return Identity(kind_name(finding), function, role_of(finding), named, plain)
