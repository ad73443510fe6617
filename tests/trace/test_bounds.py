"""A trace says how large it is before it is unpacked, and everything in its description is in range."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipesim import bounds
from pipesim.errors import TraceFormatError
from pipesim.trace import files
from pipesim.trace.files import _encode, read_trace, write_trace
from pipesim.trace.schema import AgentInfo, BarrierGroup, Trace
from tests.trace.conftest import refused

# rows


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The columns that are unpacked: of a file that is refused before, none."""
    seen: list[str] = []
    monkeypatch.setattr(files, "_column", lambda _table, name, _path: seen.append(name))
    return seen


@pytest.mark.slow
def test_more_rows_than_are_sealed_are_not_unpacked(rewritten: Callable[..., Path], unpacked: list[str]) -> None:
    error = refused(rewritten(lambda table: pa.concat_tables([table] * 1000)))
    assert error.fact == "the trace says that it has 96 records, the file holds 96000"
    assert unpacked == []


def test_more_rows_than_any_trace_has_are_not_unpacked(
    ring: Trace, tmp_path: Path, unpacked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sealed as they should be: a small file of rows that compress well."""
    path = tmp_path / "long.parquet"
    path.write_bytes(_encode(ring, "x"))
    monkeypatch.setattr(bounds, "MAX_ROWS", 95)
    error = refused(path)
    assert error.fact == "the trace has 96 records; at most 95 are read"
    assert unpacked == []


def test_a_column_of_more_bytes_than_its_rows_need(
    rewritten: Callable[..., Path], unpacked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "SPARE_COLUMN_BYTES", 0)
    monkeypatch.setattr(bounds, "MAX_VALUE_BYTES", 1)
    error = refused(rewritten(lambda table: table))
    assert re.fullmatch(r"column site of the trace has 1\d\d bytes for 96 rows", error.fact)
    assert unpacked == []


def test_more_rows_than_can_be_read_are_not_written(
    ring: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_ROWS", 95)
    with pytest.raises(TraceFormatError) as caught:
        write_trace(ring, tmp_path / "long.parquet")
    assert caught.value.fact == "the trace has 96 records; a file holds at most 95"
    assert caught.value.correction == "record fewer CTAs (--record-ctas) or fewer iterations (--window)"
    assert list(tmp_path.iterdir()) == []


# the description


def field(trace: Trace, path: str, value: Any) -> Trace:
    """The trace with one field of its description changed; a number in the path is an index."""
    return Trace(_changed(trace.meta, path.split("."), value), trace.events)


def _changed(part: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    name, *rest = path
    if isinstance(part, tuple):
        return tuple(_changed(each, rest, value) if n == int(name) else each for n, each in enumerate(part))
    if isinstance(part, dict):
        return {**part, name: _changed(part.get(name), rest, value)}
    return replace(part, **{name: _changed(getattr(part, name), rest, value)})


TEXTS = [
    ("protocol", "", "it is empty"),
    ("protocol", "ring\n::error::", "it has the character U+000A"),
    ("agents.0.role", "\x1b[31m", "it has the character U+001B"),
    ("barriers.0.name", "a" * 201, "it has 201 characters; at most 200 are possible"),
    ("sites.0.name", "a\rb", "it has the character U+000D"),
    ("device.name", "a\tb", "it has the character U+0009"),
    ("options", ("a\0",), "it has the character U+0000"),
    ("params", {"*/ c_code": 1}, "a letter or _ comes first, then letters, digits and _"),
    ("extra", {"outputs": {"": ["ab"]}}, "it is empty"),
]


@pytest.mark.parametrize(("path", "value", "why"), TEXTS)
def test_a_name_that_none_can_be(path: str, value: Any, why: str, ring: Trace, store: Callable[[Trace], Path]) -> None:
    error = refused(store(field(ring, path, value)))
    assert error.fact.startswith("field ")
    assert error.fact.endswith(f": {why}")
    assert error.fact.isprintable()


EXTRA = [
    ("order_error_cycles", "20"), ("order_error_cycles", -1), ("order_error_cycles", 1 << 62), ("recording", 1),
    ("launch_ns", []), ("launch_ns", {"traced": 5}), ("launch_ns", {"traced": [None]}), ("outputs", []),
    ("outputs", {"out0": []}), ("outputs", {"out0": [5]}), ("wrong_outputs", {"out0": "many"}), ("wrong_outputs", 5),
    ("cost_millicycles_per_record", {"low": "x"}), ("cost_millicycles_per_record", {"low": 1e300}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), EXTRA)
def test_what_is_read_from_extra_has_its_type(
    name: str, value: Any, ring: Trace, store: Callable[[Trace], Path]
) -> None:
    error = refused(store(field(ring, "extra", {name: value})))
    assert error.fact.startswith(f"field extra.{name} of the trace's metadata is ")


def test_tables_that_are_larger_than_any(ring: Trace, store: Callable[[Trace], Path]) -> None:
    many = tuple(AgentInfo("load", n, 0) for n in range(1025))
    error = refused(store(field(field(ring, "agents", many), "ctas", ())))
    assert error.fact == "the trace has 1,025 agents; at most 1,024 are possible"
    groups = tuple(BarrierGroup(f"b{n}", 1 << 15, 1) for n in range(2))
    assert refused(store(field(ring, "barriers", groups))).fact == (
        "the trace has 65,536 barriers; at most 32,768 are possible"
    )
    twice = (AgentInfo("load", 0, 0), AgentInfo("mma", 0, 1), AgentInfo("mma", 0, 2))
    assert refused(store(field(ring, "agents", twice))).fact == "two agents of the trace are number 0 of role mma"


def test_the_counts_of_a_launch_of_very_many_ctas_are_compared(ring: Trace, store: Callable[[Trace], Path]) -> None:
    """There is one count for each header, not for each CTA of the launch."""
    large = field(ring, "grid", (1 << 31) - 1)
    assert read_trace(store(large)).meta.grid == (1 << 31) - 1
    headers = (replace(ring.meta.ctas[0], written=(1, 2, 3)), *ring.meta.ctas[1:])
    error = refused(store(field(large, "ctas", headers)))
    assert error.fact == "there are 42 records more than were written (CTA 1, agent load: 1 written, 12 in the file)"
