"""The results file of a sweep: a line of JSON for each configuration that has an answer, written as soon as it has.

The first line says what was asked. A sweep that asks the same continues where the last one ended; a file of another
question is refused. Each further line is the answer of one configuration and has a hash of its program: an answer of
another program is not used, and of two lines of one configuration the last one counts. Each line has a checksum: the
last one may be cut off, by a signal or a full disk, and is then dropped; any other damage is an error.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from io import FileIO
from operator import attrgetter
from pathlib import Path
from typing import Any, get_args, get_type_hints

from pipesim.answers.sweep.configuration import Params, SweepAnswer
from pipesim.answers.views.sweep import Configuration, Outcome, Resources, Times
from pipesim.bounds import MAX_PARAMETER, MAX_SWEEP_BYTES
from pipesim.errors import ResultsFileError
from pipesim.inputs import InputKind
from pipesim.process.system import lock_file

FORMAT = "pipesim-sweep"
VERSION = 2
_START_ANEW = "name another file, or remove this one"
RESULTS = InputKind("line of a results file", MAX_SWEEP_BYTES, ResultsFileError, _START_ANEW)
#: States that another run would only repeat; what failed or was not reached is tried again.
KEPT = frozenset(Outcome) - {Outcome.FAILED, Outcome.NOT_REACHED}
#: Members of the question whose names are not what a person would call them.
_IN_WORDS = {
    "pipesim": "the version of pipesim",
    "protocol": "the protocol",
    "profile": "the latency profile",
    "swept": "the swept parameters",
    "fixed": "the parameters with one value",
    "ctas": "the CTAs of the launch (--ctas)",
    "proved": "whether each is proved (--no-proof)",
    "max_states": "the limit --max-states",
    "max_steps": "the limit --max-steps",
    "strict": "the optional rules",
}


class ResultsFile:
    """An open results file, a context manager; ``known`` is what it had when it was opened."""

    def __init__(self, path: Path, question: Mapping[str, object]) -> None:
        self._path = path
        self._question = {"format": FORMAT, "version": VERSION, **question}
        self.known: dict[Params, SweepAnswer] = {}

    def __enter__(self) -> "ResultsFile":
        """Read what is there. ResultsFileError for a file that is damaged, of another question, or in use."""
        whole = b""
        if self._path.exists():
            data = RESULTS.read_bytes(self._path)
            if data:
                whole = self._read(data)
        self._file = self._open()
        self._file.truncate(len(whole))
        self._file.seek(len(whole))
        if not whole:
            self._write(self._question)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def keep(self, answer: SweepAnswer) -> None:
        """Write an answer, unless another run may have another one. ResultsFileError if the disk refuses."""
        if answer.configuration.state in KEPT:
            row = asdict(answer.configuration) | {"params": list(answer.configuration.params.items())}
            self._write(row | {"program": answer.program})

    def _open(self) -> FileIO:
        try:
            file = self._path.open("r+b" if self._path.exists() else "w+b", buffering=0)  # written immediately
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            lock_file(file)
        except OSError:
            file.close()
            raise ResultsFileError(
                f"the results file {self._path} is in use",
                cause="another sweep is writing it",
                correction="name another",
            ) from None
        return file

    def _write(self, row: Mapping[str, object]) -> None:
        text = json.dumps(row, separators=(",", ":"), sort_keys=True, default=attrgetter("name"))  # of an enum
        line = f"{zlib.crc32(text.encode()):08x} {text}\n".encode()
        try:
            self._file.write(line)
        except OSError as error:
            raise self._unwritable(error) from error

    def _read(self, data: bytes) -> bytes:
        """The lines that are whole; what they say goes to ``known``."""
        end = data.rfind(b"\n") + 1
        lines = data[:end].splitlines()
        if not lines:
            raise self._error("it has no whole line")
        rows = [self._row(line, number) for number, line in enumerate(lines, 1)]
        self._require_question(rows[0])
        for number, row in enumerate(rows[1:], 2):
            try:
                found = SweepAnswer(_from_row(row), _read(str, row["program"]))
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise self._error(f"line {number} does not hold a configuration: {error}") from None
            self.known[tuple(found.configuration.params.items())] = found
        return data[:end]

    def _row(self, line: bytes, number: int) -> Any:
        checksum, space, text = line.partition(b" ")
        if not space or checksum != b"%08x" % zlib.crc32(text):
            raise self._error(f"line {number} is damaged: its checksum does not match")
        return RESULTS.parse_json(text.decode("utf-8", "replace"), str(self._path))

    def _require_question(self, row: object) -> None:
        if not isinstance(row, dict) or row.get("format") != FORMAT:
            raise self._error(f'its first line has no "format": "{FORMAT}"')
        if row.get("version") != VERSION:
            raise self._error(f"it is of version {row.get('version')!r}; this pipesim continues version {VERSION}")
        for name, asked in self._question.items():
            if row.get(name) != asked:
                raise self._error(_difference(name, row.get(name), asked))

    def _unwritable(self, error: OSError) -> ResultsFileError:
        return ResultsFileError(f"the results file {self._path} cannot be written", cause=error.strerror or str(error))

    def _error(self, cause: str) -> ResultsFileError:
        return ResultsFileError(
            f"the results file {self._path} cannot be continued", cause=cause, correction=_START_ANEW
        )


def _difference(name: str, there: object, here: object) -> str:
    """What differs in a file of another question: ``the swept parameters: stages work in the file, stages here``."""
    if name == "profile_values":
        return "its latency profile had other values"
    words = _IN_WORDS.get(name, name.replace("_", " "))
    return f"{words}: {_format_value(there)} in the file, {_format_value(here)} here"


def _format_value(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return " ".join(map(str, value)) or "none"
        case _:
            return str(value)


def _from_row(row: Any) -> Configuration:
    """Raises AttributeError, KeyError, TypeError or ValueError for what :meth:`ResultsFile.keep` does not write."""
    return Configuration(
        {str(name): _whole(value, least=-MAX_PARAMETER) for name, value in row["params"]},
        Outcome[row["state"]],
        str(row["why"]),
        _read(Resources | None, row["resources"]),
        _read(Times | None, row["times"]),
    )


def _read(kind: Any, value: Any) -> Any:
    """A value of this type, which may be a dataclass or None as well, from what JSON has of it."""
    kind, *none = get_args(kind) or (kind,)
    if none and value is None:
        return None
    hints = get_type_hints(kind) if is_dataclass(kind) else {}
    if hints:
        return kind(**{name: _read(hints[name], each) for name, each in value.items()})
    if issubclass(kind, Enum):
        return kind[value]
    if type(value) is not kind:
        raise TypeError(f"a value of type {kind.__name__} is needed")
    return _whole(value) if kind is int else value


def _whole(value: object, least: int = 0) -> int:
    if type(value) is not int or not least <= value <= MAX_PARAMETER:
        raise TypeError("a whole number is needed")
    return value
