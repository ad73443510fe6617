"""What a case is, what a command answered, and what may come back: a clear error, or a result that is confirmed."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

from jsonschema import Draft202012Validator

from pipesim.formats.schemas import NAMES, schema

#: The exit codes of an answer; 70 is a mistake in pipesim, and anything else is none of its codes.
ANSWERS = frozenset({0, 1, 2, 3, 4})
_PARTS = ("pipesim: ", "  at: ", "  probable cause: ", "  try: ", "    ")
_CI_COMMAND = re.compile(r"^\s*::|##\w*\[", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """What a command ended with, printed, and left on the disk."""

    code: int
    out: str
    err: str
    seconds: float
    left: tuple[str, ...] = ()  #: files that the case did not bring and may not leave

    @property
    def document(self) -> Any:
        """Its JSON, None if it printed none."""
        try:
            return json.loads(self.out)
        except ValueError:
            return None


#: What is wrong with an answer, "" if it is confirmed, None if nothing here can confirm it, as an error or what is too
#: large for the naive engine; asked in the folder of the case's files.
Confirm = Callable[[Answer], str | None]


@dataclass(frozen=True)
class Case:
    """One command on some files.

    ``what``: the mutations, in words. ``outputs``: names of files that it may leave. ``call``: is called instead of the
    command, where a function is what reads the input; what it returns is printed. ``speaks``: code of an author runs,
    which may print. ``alone``: it may also change or end its process, so it needs one of its own.
    """

    what: str
    files: Mapping[str, bytes]
    words: tuple[str, ...] = ()
    confirm: Confirm = field(default=lambda _: None)
    outputs: tuple[str, ...] = ()
    call: Callable[[], object] | None = None
    speaks: bool = False
    alone: bool = False


Make = Callable[[Random], Case]  #: a kind of input: a case of the next random choices


def judged(case: Case, answer: Answer) -> tuple[list[str], bool]:
    """What is wrong with an answer, and whether a naive engine confirms it."""
    found = complaints(case, answer)
    said = None if found else case.confirm(answer)
    return found + [said for said in [said] if said], said == ""


def complaints(case: Case, answer: Answer) -> list[str]:
    """What is wrong with any answer: it is neither a clear error nor a document, or it left a file."""
    if answer.code not in ANSWERS:
        return [_internal(answer) if answer.code == 70 else f"exit code {answer.code}"]
    found = []
    if "Traceback (most recent call last)" in answer.err:
        found.append("a traceback")
    lines = answer.err.split("\n")
    if not case.speaks and not all(line.startswith(_PARTS) for line in lines if line):
        found.append("standard error has lines that are no part of an error")
    if answer.code and not (answer.out + answer.err).strip():
        found.append(f"exit code {answer.code} without a word")
    for name, text in (("standard output", answer.out), ("standard error", answer.err)):
        if not case.speaks and not text.replace("\n", "").isprintable():
            found.append(f"{name} has control characters")
        if not case.speaks and "github" not in case.words and _CI_COMMAND.search(text):
            found.append(f"{name} has a command of a CI system")
    found += _document(case, answer)
    return found + [f"left files: {name}" for name in answer.left]


def _internal(answer: Answer) -> str:
    """``internal error: KeyError at schema.py:12``: what cases of one cause have in common."""
    fact, place = ([*re.findall(r"an internal error of pipesim: (\w+)|  at: (\S+)", answer.err), ("", "")])[:2]
    file, _, line = (place[1] or "?").rpartition(":")
    return f"internal error: {fact[0] or '?'} at {file.rpartition('/')[2]}:{line}"


def _document(case: Case, answer: Answer) -> list[str]:
    """What is wrong with the JSON of a command that was asked for it."""
    if "--json" not in case.words:
        return []
    if answer.document is None:
        return ["no JSON document"]
    if answer.document.get("exit_code") != answer.code:
        return [f"exit_code {answer.document.get('exit_code')} in the document, {answer.code} of the command"]
    name = str(answer.document.get("schema"))
    if name.partition(".v")[0] not in NAMES:
        return ["the document names no schema"]
    wrong = next(_validator(name).iter_errors(answer.document), None)
    return [] if wrong is None else [f"the document is not valid by {name}: {list(wrong.path)}"]


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema(name))
