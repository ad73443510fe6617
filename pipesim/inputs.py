"""How every file from outside is opened, and every JSON document read: within :mod:`pipesim.bounds`, before the work.

An input is an ordinary file: a FIFO would be waited for without end, and a device such as /dev/zero has no end.

Which source files a report may quote: a PTX file, a flat program and a core dump are data, and may name any file of
the machine; a report of them may be printed where others read it. Their sources are read below their own folder, the
working folder and the folders that a person names with ``--source-root``, after links are resolved. All else is named,
not quoted.

And what a name may be, wherever it comes from: a protocol's author, a flat program, a trace, a kernel's table. Names
reach terminals, workflow logs, CUDA headers and Promela models. So they are short and printable, and names that are
used unquoted in another language are identifiers. How a text is quoted in another language is its exporter's.
"""

import json
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as brief
from typing import Any, BinaryIO, NoReturn

from pipesim.bounds import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_JSON_LISTS,
    MAX_JSON_STRINGS,
    MAX_JSON_VALUES,
    MAX_NAME,
    MAX_SOURCE_BYTES,
    MAX_TEXT,
)
from pipesim.errors import PipesimError

_NO_TEXT = "it is not text"
_CUT = 40  #: characters of a wrong name that an error shows
_CONTROL = frozenset({"Cc", "Cs", "Zl", "Zp"})  #: control characters, halves of characters, separators of lines


def wrong_name(text: object) -> str:
    """What is wrong with a name, "" if nothing is: it is not empty, not long, and its characters are printable."""
    if not isinstance(text, str):
        return _NO_TEXT
    if not text:
        return "it is empty"
    if len(text) > MAX_NAME:
        return f"it has {len(text):,} characters; at most {MAX_NAME} are possible"
    return "" if text.isprintable() else _wrong_character([c for c in text if not c.isprintable()])


def wrong_identifier(text: object) -> str:
    """The same of a parameter's name: Python, C and Promela must be able to spell it."""
    wrong = wrong_name(text)
    return wrong or ("" if str(text).isidentifier() else "a letter or _ comes first, then letters, digits and _")


def wrong_text(text: object) -> str:
    """The same of a text in one line, such as a source line: it may be empty, and have any character of a path."""
    if not isinstance(text, str):
        return _NO_TEXT
    if len(text) > MAX_TEXT:
        return f"it has {len(text):,} characters; at most {MAX_TEXT:,} are possible"
    return "" if text.isprintable() else _wrong_character([c for c in text if unicodedata.category(c) in _CONTROL])


def quoted_name(text: object) -> str:
    """A wrong name as an error shows it: in quotes, its unprintable characters escaped, cut."""
    if not isinstance(text, str):
        return brief(text)
    return repr(text) if len(text) <= _CUT else f"{text[:_CUT]!r}..."


def readable(text: str) -> str:
    """A text that should be a name, as an error shows it: as it is if it can be one, else :func:`quoted_name`."""
    return quoted_name(text) if wrong_name(text) else text


def _wrong_character(wrong: list[str]) -> str:
    return f"it has the character U+{ord(wrong[0]):04X}" if wrong else ""


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
#: A string, to the end of the text if it has none: possessive, so that no text takes long or much memory.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_LONG_NUMBER = re.compile(rb"\d{%d,}" % (MAX_DIGITS + 1))
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class InputKind:
    """A kind of input: what errors call it, its largest size in bytes, the error's class and how to get a right one."""

    name: str
    most_bytes: int
    error: type[PipesimError]
    correction: str

    def open(self, path: Path) -> BinaryIO:
        """The file, open for reading, if it is an ordinary one of at most ``most_bytes``; else ``error``."""
        try:
            _require_ordinary(path.stat())  # before it is opened, which a device might notice
            file = _open(path)
        except (OSError, ValueError) as error:  # no such file; no permission; a name with a zero in it
            self._unreadable(path, getattr(error, "strerror", None) or str(error), "check the path")
        try:
            size = _require_ordinary(os.fstat(file.fileno()))  # it may have become another one
        except OSError as error:
            file.close()
            self._unreadable(path, error.strerror or str(error), "check the path")
        if size > self.most_bytes:
            file.close()
            self._unreadable(path, f"it has {size:,} bytes; at most {self.most_bytes:,} are read", self.correction)
        return file

    def read_bytes(self, path: Path) -> bytes:
        """What is in the file. ``error`` if it cannot be read or is too large."""
        with self.open(path) as file:
            try:
                data = file.read(self.most_bytes + 1)  # it may have grown, or, as files of /proc, say that it is empty
            except OSError as error:
                self._unreadable(path, error.strerror or str(error), "check the path")
        if len(data) > self.most_bytes:
            self._unreadable(path, f"it has more than {self.most_bytes:,} bytes", self.correction)
        return data

    def read_text(self, path: Path) -> str:
        """What is in the file, which is UTF-8. ``error`` if it cannot be read, is too large, or is not text."""
        data = self.read_bytes(path)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            self._unreadable(path, f"it is not text in UTF-8: {error.reason} at byte {error.start:,}", self.correction)

    def parse_json(self, text: str, place: str = "") -> Any:
        """The value of :func:`json_value`; ``error`` with ``place`` where there is none."""
        try:
            return json_value(text, self.most_bytes)
        except BoundError as error:
            fact = f"this {self.name} is larger than pipesim reads"
            raise self.error(fact, place=place, cause=str(error), correction=self.correction) from None
        except ValueError as error:
            fact = f"this is not a {self.name}: it is not JSON"
            raise self.error(fact, place=place, cause=str(error), correction=self.correction) from None

    def _unreadable(self, path: Path, cause: str, correction: str) -> NoReturn:
        raise self.error(f"the {self.name} {path} cannot be read", cause=cause, correction=correction)


_SOURCE_SUFFIXES = frozenset({".py", ".ptx", ".cu", ".cuh", ".h", ".hpp", ".cpp", ".cc", ".mojo"})


def is_source(path: Path) -> bool:
    """True for a file of code of an ordinary size. A program is data: it must not name a line of any file for a report
    to show, which may be printed where others read it.
    """
    if path.suffix not in _SOURCE_SUFFIXES:
        return False
    try:
        found = path.stat()
    except (OSError, ValueError):  # no name that a file can have
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= MAX_SOURCE_BYTES


_roots: ContextVar[tuple[Path, ...] | None] = ContextVar("source roots", default=())
_protocols: set[Path] = set()  #: folders of Python files that were run
confined: list[bool] = []  #: not empty in a process that reads files of strangers (:mod:`pipesim.process.sandbox`)


@contextmanager
def source_roots(folders: Iterable[Path] | None) -> Iterator[None]:
    """Inside, sources are also read below these folders; None: nothing is quoted, wherever it lies."""
    before = _roots.set(None if folders is None else tuple(folders))
    try:
        yield
    finally:
        _roots.reset(before)


def quote_protocols_of(file: Path) -> None:
    """A Python file is run, which is code that a person named: lines of its folder may be quoted."""
    _protocols.add(file.resolve().parent)


def python_folders() -> tuple[Path, ...]:
    """The folders of what Python runs here: of protocols' files, and where modules are imported from."""
    return (*_protocols, *map(Path, filter(None, sys.path)))


def is_quoting() -> bool:
    """Whether source lines may be shown at all."""
    return _roots.get() is not None


def is_quotable(path: Path, *folders: Path) -> bool:
    """True for a file of code below the working folder, a source root, or one of ``folders``, links resolved."""
    roots = _roots.get()
    if roots is None or not is_source(path):
        return False
    real = path.resolve()
    places = (Path.cwd(), *roots, *folders)
    return is_source(real) and any(real.is_relative_to(place.resolve()) for place in places)


class BoundError(ValueError):
    """An input is beyond one of the bounds, which the message names."""


def json_value(text: str, most_bytes: int) -> Any:
    """The value of a JSON document without duplicate keys, NaN, infinities or halves of characters.

    BoundError if it has more than ``most_bytes`` bytes or is beyond another bound: size, depth, values and digits are
    known before a value is made. ValueError if it is not such a document.
    """
    try:
        over = _out_of_bounds(text.encode("utf-8"), most_bytes)
        if over:
            raise BoundError(over)
        value = json.loads(
            text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant, parse_float=_finite
        )
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a text in it holds half of a UTF-16 pair, which is not a character") from None
    return value


def _require_ordinary(found: os.stat_result) -> int:
    """The size of a file. OSError if it is not an ordinary one."""
    if not stat.S_ISREG(found.st_mode):
        kind = next((words for is_kind, words in _KINDS if is_kind(found.st_mode)), "not an ordinary file")
        raise OSError(f"it is {kind}")
    return found.st_size


def _open(path: Path) -> BinaryIO:
    """A file for reading. What became a FIFO meanwhile is not waited for."""
    flags = [getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY")]  # not of each system
    return os.fdopen(os.open(path, os.O_RDONLY | sum(flags)), "rb")


def _out_of_bounds(data: bytes, most_bytes: int) -> str:
    """Which bound a JSON text is beyond, "" if none: read off its characters, whether or not they are JSON."""
    if len(data) > most_bytes:
        return f"it has {len(data):,} bytes; at most {most_bytes:,} are read"
    strings = data.count(b'"') // 2
    if strings > MAX_JSON_STRINGS:
        return f"it has {strings:,} strings; at most {MAX_JSON_STRINGS:,} are read"
    bare = _STRING.sub(b"", data)
    lists = bare.count(b"[") + bare.count(b"{")
    if lists > MAX_JSON_LISTS:
        return f"it has {lists:,} lists and objects; at most {MAX_JSON_LISTS:,} are read"
    values = bare.count(b",") + lists
    if values > MAX_JSON_VALUES:
        return f"it has {values:,} values; at most {MAX_JSON_VALUES:,} are read"
    number = _LONG_NUMBER.search(bare)
    if number:
        return f"it has a number of {len(number.group()):,} digits; at most {MAX_DIGITS} are read"
    return f"it nests deeper than {MAX_DEPTH} brackets" if _nests_deeper(bare, MAX_DEPTH) else ""


def _nests_deeper(bare: bytes, most: int) -> bool:
    """Whether brackets are inside each other more than ``most`` deep: each pass takes the innermost away."""
    brackets = bare.translate(_BRACKETS, _NO_BRACKETS)
    for _ in range(most):
        brackets = brackets.replace(b"[]", b"")
    return b"[]" in brackets or brackets.count(b"[") > most


def _without_duplicates(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a JSON document. ValueError if it has a key twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is there twice in one object")
        found[key] = value
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is larger than any number")
    return value
