"""Source lines: ``.file``, ``.loc`` and the names of inlined functions (PTX ISA, "Debugging Directives")."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pipesim.ptx.text.instruction import Frame, SourceLine

LOC = re.compile(r"\.loc\s+(\d{1,9})\s+(\d{1,9})(?:\s+(\d{1,9}))?([^\n;{}]*)")
_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d{1,9})[ \t]+"([^"\n]*)"(?:[ \t]+"([^"\n]*)")?', re.MULTILINE)
_INLINED = re.compile(r"inlined_at\s+(\d{1,9})\s+(\d{1,9})(?:\s+(\d{1,9}))?")
_NAME = re.compile(r"function_name\s+([\w$]+)(?:\s*\+\s*(\d{1,9}))?")
_STRINGS = re.compile(r"^[ \t]*\.section[ \t]+\.debug_str\s*\{([^}]*)\}", re.MULTILINE)
_LABEL = re.compile(r"([\w$]+):")
_BYTE = re.compile(r"(?<![\w.$])(?:0[xX][0-9a-fA-F]{1,4}|[1-9][0-9]{0,5}|0)\b")
_DEEPEST = 64  #: functions inlined into each other


def source_files(text: str) -> dict[int, str]:
    """The name of each ``.file``, by its number; two strings are a folder and a name."""
    found = {}
    for number, first, second in _FILE.findall(text):
        found[int(number)] = (
            f"{first.rstrip('/')}/{second}" if second and not second.startswith("/") else second or first
        )
    return found


class DebugStrings:
    """The texts of the section ``.debug_str``, by their labels; each is read where it is first asked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places: dict[str, tuple[int, int]] = {}
        self._found: dict[str, str] = {}
        for section in _STRINGS.finditer(text):
            labels = list(_LABEL.finditer(text, section.start(1), section.end(1)))
            ends = [each.start() for each in labels[1:]] + [section.end(1)]
            self._places |= {each[1]: (each.end(), end) for each, end in zip(labels, ends, strict=True)}

    def get(self, name: str) -> str:
        """The text at a label, up to its first zero; "" if there is no such label."""
        if name not in self._found:
            start, end = self._places.get(name, (0, 0))
            rows = (int(each, 0) & 255 for each in _BYTE.findall(self._text, start, end))
            self._found[name] = bytes(rows).partition(b"\0")[0].decode(errors="replace")
        return self._found[name]


@dataclass
class Locations:
    """The places of one function's instructions, in the order of its ``.loc`` directives.

    An inlined place refers to the place of the call by file, line and column; that is the latest ``.loc`` with these
    numbers, which may itself be inlined.
    """

    files: dict[int, str]
    strings: DebugStrings
    function: str
    _frames: dict[tuple[str, ...], tuple[Frame, ...]] = field(default_factory=dict)
    _made: dict[tuple[Frame, ...], SourceLine] = field(default_factory=dict)

    def at(self, directive: re.Match[str]) -> SourceLine | None:
        """The place that a ``.loc`` gives to the instructions after it; None for line 0, which means none."""
        file, line, column, rest = directive[1], directive[2], directive[3] or "0", directive[4]
        outer: tuple[Frame, ...] = ()
        name = self.function
        if rest and (inlined := _INLINED.search(rest)) is not None:
            key = (inlined[1], inlined[2], inlined[3] or "0")
            outer = self._frames.get(key) or (self._frame(key[0], key[1], self.function),)
            named = _NAME.search(rest)
            name = self.strings.get(named[1])[int(named[2] or 0) :] if named is not None else ""
        frames = (*outer, self._frame(file, line, name))[-_DEEPEST:]
        self._frames[file, line, column] = frames
        if not frames[0].line:
            return None
        if frames not in self._made:
            self._made[frames] = SourceLine(*frames[0], frames)
        return self._made[frames]

    def _frame(self, file: str, line: str, name: str) -> Frame:
        return Frame(self.files.get(int(file), f"file {file}"), int(line), name)
