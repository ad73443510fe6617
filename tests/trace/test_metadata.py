"""The JSON document: every field is required, typed and named in the error that misses it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pipesim.errors import TraceFormatError
from pipesim.trace.metadata import StoredMeta, _seal, metadata_text, parse_metadata
from pipesim.trace.schema import AgentInfo, BarrierGroup, Trace


def stored(trace: Trace) -> StoredMeta:
    return StoredMeta(trace.meta, len(trace.events), "0" * 64)


def parsed(document: dict[str, Any]) -> StoredMeta:
    document["sha256"] = _seal(document)
    return parse_metadata(json.dumps(document), "ring.parquet")


def leaves(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every field of the document, the objects and lists on the way included; `extra` is free inside."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        if path != ("extra",):
            yield (*path, key)
            yield from leaves(inner, (*path, key))


def spelled(path: tuple[Any, ...]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


@pytest.mark.slow
def test_every_field_may_neither_be_missing_nor_of_another_type_nor_unknown(ring: Trace) -> None:
    text = metadata_text(stored(ring), "x")
    paths = list(leaves(json.loads(text)))
    assert len(paths) > 100
    for path in paths:
        if path == ("sha256",):
            continue
        document = json.loads(text)
        holder = document
        for key in path[:-1]:
            holder = holder[key]
        original = holder[path[-1]]
        holder[path[-1]] = 1.5
        with pytest.raises(TraceFormatError) as caught:
            parsed(document)
        assert caught.value.fact.startswith(f"field {spelled(path)} of the trace's metadata is a fraction where ")
        assert caught.value.place == "ring.parquet"
        if isinstance(holder, list) or (path[0] == "params" and len(path) == 2):
            continue  # one entry fewer is another document, not a broken one
        del holder[path[-1]]
        with pytest.raises(TraceFormatError) as caught:
            parsed(document)
        assert caught.value.fact == f"field {spelled(path)} of the trace's metadata is missing"
        holder[path[-1]] = original
        holder["colour"] = 1
        with pytest.raises(TraceFormatError) as caught:
            parsed(document)
        assert caught.value.fact.endswith("colour of the trace's metadata is not part of this schema version")


@pytest.mark.parametrize("version", [-3, 1])
def test_a_version_of_before_the_first_release_is_refused(version: int, ring: Trace) -> None:
    document = json.loads(metadata_text(stored(ring), "x")) | {"schema": version}
    with pytest.raises(TraceFormatError) as caught:
        parsed(document)
    assert caught.value.fact == f"the trace has schema version {version}; this pipesim reads versions 2 to 5"
    assert caught.value.place == "ring.parquet"
    assert caught.value.cause
    assert caught.value.correction == "record it again with `pipesim capture`"


@pytest.mark.parametrize(("fact", "text"), [
    *(("the trace's metadata is not valid JSON", text) for text in
      ("", "nothing", '{"a": NaN}', b"\xff\xfe", '{"a": 1, "a": 1}', '{"a": "\\udc00"}')),
    *(("the trace's metadata is not a JSON object", text) for text in ("[]", "1", "null", '"text"')),
    *(("the trace's metadata is larger than pipesim reads: it ", text) for text in
      ("[" * 100_000, '{"a":' + "1" * 5000 + "}", "[" + "[]," * (1 << 22) + "[]]")),
], ids=lambda each: str(each)[:24])  # fmt: skip
def test_what_is_no_document(fact: str, text: str | bytes) -> None:
    with pytest.raises(TraceFormatError) as caught:
        parse_metadata(text, "x")
    assert caught.value.fact.startswith(fact)


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"agents": [AgentInfo("load", 0, 0)]}, "field agents of the trace would not read back unchanged"),
        ({"extra": {1: "one"}}, "field extra of the trace would not read back unchanged"),
        ({"extra": {"pair": (1, 2)}}, "field extra of the trace would not read back unchanged"),
        ({"grid": 1.5}, "field grid of the trace's metadata is a fraction where an integer is expected"),
        ({"barriers": (BarrierGroup("full", 2, "1"),)}, "field barriers[0].count of the trace's metadata is a string"),  # type: ignore[arg-type]
        ({"extra": {"load": float("nan")}}, "the trace's description holds a value that a file cannot hold"),
        ({"extra": {"path": {1, 2}}}, "the trace's description holds a value that a file cannot hold"),
    ],
)
def test_a_description_that_would_not_survive_is_not_stored(changes: dict[str, Any], fact: str, ring: Trace) -> None:
    with pytest.raises(TraceFormatError) as caught:
        metadata_text(StoredMeta(replace(ring.meta, **changes), 0, ""), "ring.parquet")
    assert caught.value.fact.startswith(fact)
    assert caught.value.place == "ring.parquet"
