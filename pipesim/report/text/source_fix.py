"""A correction as an edit of one line of the author's source, where it maps to one: as a diff, and in the file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pipesim.bounds import MAX_PTX_BYTES
from pipesim.errors import UsageError
from pipesim.inputs import InputKind, is_source
from pipesim.prove.repair.correction import Correction
from pipesim.prove.repair.kinds import RepairKind
from pipesim.ptx.source_files import path_of
from pipesim.report.text.words import place

_SOURCE = InputKind("source file", MAX_PTX_BYTES, UsageError, "correct it by hand")
#: One number of the line is another one.
_NUMBERS = frozenset({RepairKind.COUNT, RepairKind.EXPECT, RepairKind.THREADS, RepairKind.DEPTH})
_WAY_PAST = re.compile(r"\s*if\s*\(.*\)\s*(continue|break|return)\s*;\s*(//.*)?")  # a statement that is nothing else


@dataclass(frozen=True)
class SourceFix:
    """The line ``number`` of a file, from 1 on, and what it is afterwards; None: it is deleted."""

    path: Path
    number: int
    after: str | None

    @property
    def texts(self) -> tuple[str, str]:
        """The whole text before and after."""
        before = _SOURCE.read_text(self.path)
        lines = before.splitlines(keepends=True)
        end = lines[self.number - 1][len(lines[self.number - 1].rstrip("\r\n")) :]
        lines[self.number - 1 : self.number] = [] if self.after is None else [self.after + end]
        return before, "".join(lines)

    def diff(self) -> list[str]:
        """The change in the unified format, paths relative to the current folder."""
        name = place(f"{self.path}:{self.number}").rpartition(":")[0]
        before, after = (text.splitlines() for text in self.texts)
        return list(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", n=2, lineterm=""))


def source_fix(correction: Correction) -> SourceFix | None:
    """The edit of one line, None where it is not one: a number that is not written in it, or several times."""
    name, _, number = correction.source.rpartition(":")
    path = Path(path_of(name)) if name else None
    if path is None or not is_source(path) or path.suffix == ".ptx" or not number.isdecimal():
        return None
    lines = _SOURCE.read_text(path).splitlines()
    if not 0 < int(number) <= len(lines):
        return None
    text, repair = lines[int(number) - 1], correction.repair
    if repair.kind in _NUMBERS:
        was = re.compile(rf"(?<![\w.]){repair.was}(?![\w.])")
        code = re.split(r"//|#", text, maxsplit=1)[0]
        if len(was.findall(code)) != 1:
            return None
        return SourceFix(path, int(number), was.sub(str(repair.value), code) + text[len(code) :])
    if repair.kind is RepairKind.NOT_PAST and _WAY_PAST.fullmatch(text):
        return SourceFix(path, int(number), None)
    return None


def writable(fixes: Iterable[SourceFix]) -> list[SourceFix]:
    """Those of files below the current folder, each line once. UsageError for a file elsewhere, such as a library's."""
    found = list(dict.fromkeys(fixes))
    for fix in found:
        inside = fix.path.resolve().is_relative_to(Path.cwd().resolve())
        if not inside or "site-packages" in fix.path.parts:
            raise UsageError(
                f"{fix.path} is not written",
                cause="it is not below the current folder, or is a library's",
                correction="apply the diff by hand",
            )
    return found
