"""The JSON document of a trace file: every field of :class:`TraceMeta`, the digest of the columns, and a seal.

The document is one flat JSON object: the fields of ``TraceMeta`` under their own names, ``columns`` with the number of
rows and the SHA-256 of their contents, and ``sha256``, the digest of all the rest. It is canonical (sorted keys, no
spaces, ASCII), so that the same trace always gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from reprlib import repr as brief  # of a value that may be as long as its file
from typing import Any, NoReturn, TypeVar, cast, get_args, get_origin, get_type_hints

from pipesim.bounds import MAX_JSON_BYTES
from pipesim.errors import TraceFormatError
from pipesim.inputs import BoundError, json_value, readable
from pipesim.model.ending import Ending
from pipesim.model.waits import WaitPurpose
from pipesim.trace.schema import OLDEST_VERSION, SCHEMA_VERSION, EventKind, TraceMeta

DAMAGED = "the file changed after it was written (an interrupted copy, an edit), or another program wrote it"
RECOPY = "copy the file again from where it was recorded, or record it again with `pipesim capture`"


def refuse(fact: str, place: str | Path, *, cause: str = DAMAGED) -> NoReturn:
    """Raise TraceFormatError: the file ``place`` is not as it was written."""
    raise TraceFormatError(fact, place=str(place), cause=cause, correction=RECOPY)


_JSON_NAMES = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "an integer",
               float: "a fraction", type(None): "null"}  # fmt: skip


#: Texts of a document that represent members of an enum, by the type of their field.
_WORDS: dict[Any, dict[str, Any]] = {
    Ending: {each.value: each for each in Ending},
    EventKind: dict(EventKind.__members__),
    WaitPurpose | None: {"": None, **{each.value: each for each in WaitPurpose}},
}
_Part = TypeVar("_Part")


@dataclass(frozen=True)
class StoredMeta:
    """What a file says beside its columns: the trace's description, and how many rows of which digest belong to it."""

    meta: TraceMeta
    rows: int
    columns_sha256: str


def metadata_text(stored: StoredMeta, place: str) -> str:
    """The canonical document of a trace, sealed.

    Raises TraceFormatError, naming the field, if the description would not read back equal (a list where a tuple
    belongs, a value that JSON cannot hold).
    """
    document = asdict(stored.meta)
    for site, entry in zip(stored.meta.sites, document["sites"], strict=True):
        entry["kind"] = EventKind(site.kind).name
        entry["awaited"] = site.awaited.value if site.awaited is not None else ""
    document["columns"] = {"rows": stored.rows, "sha256": stored.columns_sha256}
    try:
        document["sha256"] = _seal(document)
        text = _canonical(document)
    except (TypeError, ValueError) as error:
        raise TraceFormatError(
            "the trace's description holds a value that a file cannot hold",
            place=place,
            cause=str(error),
            correction="use plain integers, strings, lists and objects, in `extra` too",
        ) from error
    _check_survives(stored.meta, parse_metadata(text, place).meta, place)
    return text


def parse_metadata(text: str | bytes, place: str) -> StoredMeta:
    """Read a document back; every missing, unknown or wrong-typed field is a TraceFormatError naming field and file."""
    try:
        document = json_value(text if isinstance(text, str) else text.decode("utf-8"), MAX_JSON_BYTES)
    except BoundError as error:
        refuse(f"the trace's metadata is larger than pipesim reads: {error}", place)
    except ValueError as error:
        refuse(f"the trace's metadata is not valid JSON: {error}", place)
    if not isinstance(document, dict):
        refuse("the trace's metadata is not a JSON object", place)
    top = _Fields(document, "", place)
    _check_version(top.integer("schema"), place)
    if top.text("sha256") != _seal(document):
        refuse("the trace's metadata does not match its own checksum", place)
    if document["schema"] < SCHEMA_VERSION:
        top = _Fields(_upgrade(document), "", place)
    columns = top.record("columns", ("rows", "sha256"))
    top.refuse_others((*hints(TraceMeta), "columns", "sha256"))
    return StoredMeta(_read(TraceMeta, top), columns.integer("rows"), columns.text("sha256"))


def _upgrade(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document of an earlier version as one of this version: what it could not say yet has its default."""
    found, sites = {**document, "schema": SCHEMA_VERSION}, document.get("sites")
    if document["schema"] < 3 and isinstance(sites, list):
        found["sites"] = [{**each, "awaited": ""} if isinstance(each, dict) else each for each in sites]
    return found


def _canonical(document: Mapping[str, Any]) -> str:
    # NumPy's integers are let in by their index; everything else must be plain.
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False, default=operator.index)


def _seal(document: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in document.items() if key != "sha256"}
    return hashlib.sha256(_canonical(rest).encode()).hexdigest()


def _check_version(version: int, place: str) -> None:
    if version > SCHEMA_VERSION:
        raise TraceFormatError(
            f"the trace has schema version {version}; this pipesim reads up to version {SCHEMA_VERSION}",
            place=place,
            cause="a newer pipesim recorded it",
            correction="pip install --upgrade pipesim",
        )
    if version < OLDEST_VERSION:
        raise TraceFormatError(
            f"the trace has schema version {version}; this pipesim reads versions {OLDEST_VERSION} to {SCHEMA_VERSION}",
            place=place,
            cause="a development version of pipesim recorded it, before the first release",
            correction="record it again with `pipesim capture`",
        )


def _check_survives(given: TraceMeta, back: TraceMeta, place: str) -> None:
    for field in fields(TraceMeta):
        before, after = getattr(given, field.name), getattr(back, field.name)
        if before != after:
            raise TraceFormatError(
                f"field {field.name} of the trace would not read back unchanged: {before!r} becomes {after!r}",
                place=place,
                cause="a list where a tuple belongs, a fraction where an integer does, or a key that is not a string",
                correction=f"build {field.name} from the types that pipesim.trace.schema names",
            )


def _read(kind: type[_Part], entry: _Fields) -> _Part:
    """A dataclass of the schema from the object that has its fields, each of the type that the class gives it."""
    return kind(**{name: _reader(hint)(entry, name) for name, hint in hints(cast("Any", kind)).items()})


@cache
def hints(kind: type) -> dict[str, Any]:
    """The fields of a class with their types."""
    return get_type_hints(kind)


@cache
def _reader(hint: Any) -> Callable[[_Fields, str], Any]:
    """What reads the value of a field of this type."""
    if hint in (int, str, bool):
        return lambda entry, name: entry.value(name, hint)
    if hint in _WORDS:
        return lambda entry, name: entry.among(name, _WORDS[hint])
    if hint == dict[str, int]:
        return _Fields.counts
    if hint == dict[str, Any]:
        return lambda entry, name: entry.value(name, dict)
    if get_origin(hint) is not tuple:
        return lambda entry, name: _read(hint, entry.record(name, list(hints(hint))))
    member = get_args(hint)[0]
    if member in (int, str):
        return lambda entry, name: tuple(entry.list_of(name, member))
    return lambda entry, name: tuple(_read(member, each) for each in entry.records(name, list(hints(member))))


@dataclass(frozen=True)
class _Fields:
    """One JSON object with its path in the document (``ctas[2].``), read field by field with the type expected."""

    entries: Mapping[str, Any]
    path: str
    place: str

    def fail(self, name: str, problem: str) -> NoReturn:
        refuse(f"field {self.path}{readable(name)} of the trace's metadata {problem}", self.place)

    def refuse_others(self, names: Sequence[str]) -> None:
        for name in sorted(set(self.entries) - set(names)):
            self.fail(name, "is not part of this schema version")

    def value(self, name: str, kind: type) -> object:
        if name not in self.entries:
            self.fail(name, "is missing")
        self._expect(name, self.entries[name], kind)
        return cast("object", self.entries[name])

    def integer(self, name: str) -> int:
        return cast("int", self.value(name, int))

    def text(self, name: str) -> str:
        return cast("str", self.value(name, str))

    def among(self, name: str, words: Mapping[str, Any]) -> Any:
        """What one of these words represents."""
        word = self.text(name)
        if word not in words:
            self.fail(name, f"is {brief(word)}, which is none of {', '.join(filter(None, words))}")
        return words[word]

    def counts(self, name: str) -> dict[str, int]:
        entry = _Fields(cast("dict[str, Any]", self.value(name, dict)), f"{self.path}{name}.", self.place)
        return {key: entry.integer(key) for key in entry.entries}

    def record(self, name: str, known: Sequence[str]) -> _Fields:
        entry = _Fields(cast("dict[str, Any]", self.value(name, dict)), f"{self.path}{name}.", self.place)
        entry.refuse_others(known)
        return entry

    def records(self, name: str, known: Sequence[str]) -> list[_Fields]:
        entries = cast("list[dict[str, Any]]", self.list_of(name, dict))
        found = [_Fields(entry, f"{self.path}{name}[{i}].", self.place) for i, entry in enumerate(entries)]
        for entry in found:
            entry.refuse_others(known)
        return found

    def list_of(self, name: str, kind: type) -> list[Any]:
        values = cast("list[Any]", self.value(name, list))
        for i, value in enumerate(values):
            if type(value) is not kind:
                self._expect(f"{name}[{i}]", value, kind)
        return values

    def _expect(self, name: str, value: object, kind: type) -> None:
        if type(value) is not kind:  # exact, because a JSON boolean is not an integer
            self.fail(name, f"is {_JSON_NAMES[type(value)]} where {_JSON_NAMES[kind]} is expected")
