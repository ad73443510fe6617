"""Traces (docs/trace-format.md): simulated ones with mutated rows, columns or metadata, sealed again so that every
checksum fits, and damaged bytes.

A trace that agrees must have the order that the protocol has: what each agent recorded, apart from times, is what it
recorded before the mutation.
"""

import hashlib
import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipesim.errors import PipesimError
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.files import METADATA_KEY, read_trace, write_trace
from pipesim.trace.schema import COLUMNS, Trace
from tools.fuzz import naive
from tools.fuzz.cases import Answer, Case, Confirm
from tools.fuzz.mutate import INTEGERS, damaged, mutated, near

_BASES: tuple[tuple[str, dict[str, int]], ...] = (
    ("producer_consumer", {"stages": 2, "tiles": 5, "tile_bytes": 1024}),
    ("producer_consumer", {"stages": 1, "tiles": 3, "tile_bytes": 64, "consumer_warps": 1}),
    ("producer_consumer", {"stages": 4, "tiles": 16, "tile_bytes": 1024}),
    ("cluster_multicast", {"tiles": 2}),
    ("persistent_scheduler", {"tiles": 2}),
)
INTEGER = pa.int64()
_MEANING = ("cta", "agent", "site", "stage", "parity", "iteration", "value")
_TIMES = ("cycle", "time_ps", "error_ps", "globaltimer_ns")

Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class Base:
    """A right trace: its file, its document, its columns, and what its agents recorded."""

    data: bytes
    document: dict[str, Any]
    columns: Columns
    order: dict[str, list[tuple[object, ...]]]


@cache
def base(number: int) -> Base:
    """One of the right traces."""
    name, params = _BASES[number]
    trace = simulate(find(name).build(params), load_profile("h100")).trace
    data = _written(trace)
    document = json.loads(pq.read_schema(io.BytesIO(data)).metadata[METADATA_KEY])
    columns = {column: getattr(trace.events, column).tolist() for column in COLUMNS}
    return Base(data, document, columns, naive.recorded_order(trace))


def _written(trace: Trace) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        write_trace(trace, path)
        return path.read_bytes()


def make(rng: Random) -> Case:
    """A trace with mutations, compared with its protocol, with the right one, or looked for in a folder."""
    right = base(rng.choice((0, 0, 1, 1, 2, 3, 4)))
    data, said = _mutated(right, rng)
    name, params = right.document["protocol"], right.document["params"]
    given = " ".join(f"-p {param}={number}" for param, number in params.items())
    line = rng.choice(
        ("diff t.parquet --json",) * 8
        + ("diff t.parquet right.parquet --json", "diff right.parquet t.parquet --json", "diff t.parquet t.parquet",
           f"diff t.parquet --protocol {name}", "diff t.parquet --tolerance 5 --profile h200 --json",
           f"verify {name} {given} --traces . --recorded --json --time-limit 0.05")
    )  # fmt: skip
    files = {"t.parquet": data, **({"right.parquet": right.data} if "right" in line else {})}
    return Case(said, files, tuple(line.split()), confirm(right, line))


def _mutated(right: Base, rng: Random) -> tuple[bytes, str]:
    chance = rng.random()
    if chance < 0.1:
        return damaged(right.data, rng)
    document: Any = json.loads(json.dumps(right.document))
    columns = {name: list(values) for name, values in right.columns.items()}
    said = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        if chance < 0.6:
            said.append(_mutate_rows(columns, document, rng))
        elif chance < 0.9:
            document.pop("sha256", None)
            document, words = mutated(document, rng)
            said.append(words)
            if not isinstance(document, dict):
                break
    types = dict.fromkeys(columns, INTEGER)
    if chance >= 0.9:
        said.append(_mutate_types(columns, types, rng))
    return sealed(document, columns, types, fix=rng.random() < 0.9), ", ".join(said)


def _mutate_rows(columns: Columns, document: Any, rng: Random) -> str:
    """Change rows in place, and the headers' counts with them where rows come or go."""
    rows = len(columns["cta"])
    if not rows:
        return "no rows"
    at, other = rng.randrange(rows), rng.randrange(rows)
    end = min(rows, at + rng.choice((1, 2, 8, rows)))
    how = rng.choice(
        ("value", "value", "near", "swap", "delete", "twice", "reverse", "column", "order", "empty", "agent")
    )
    name = rng.choice(rng.choice((_MEANING, _TIMES)))
    match how:
        case "value":
            columns[name][at] = rng.choice([n for n in INTEGERS if -(2**63) <= n < 2**63])
        case "near":
            columns[name][at] = max(-(2**63), min(2**63 - 1, near(columns[name][at], rng)))
        case "swap":
            for values in columns.values():
                values[at], values[other] = values[other], values[at]
        case "delete":
            _each(columns, lambda values: values[:at] + values[end:])
        case "twice":
            _each(columns, lambda values: values[:at] + values[at:end] * 2 + values[end:])
        case "reverse":
            _each(columns, lambda values: values[::-1])
        case "column":
            columns[name] = columns[rng.choice(list(columns))]
        case "order":
            columns[name] = sorted(columns[name], reverse=rng.random() < 0.5)
        case "agent":
            columns["agent"][at:end] = [rng.randrange(3)] * (end - at)
        case _:
            _each(columns, lambda _: [])
    if how in ("delete", "twice", "empty", "agent") and rng.random() < 0.8:
        _count(columns, document)
    return f"{how} {name}"


def _each(columns: Columns, change: Callable[[list[Any]], list[Any]]) -> None:
    for name in columns:
        columns[name] = change(columns[name])


def _count(columns: Columns, document: Any) -> None:
    """Let the headers say what the rows are."""
    pairs = list(zip(columns["cta"], columns["agent"], strict=True))
    for header in document["ctas"]:
        if header["written"]:
            header["written"] = [pairs.count((header["cta"], a)) for a in range(len(document["agents"]))]


def _mutate_types(columns: Columns, types: dict[str, Any], rng: Random) -> str:
    """Columns of another type, with nulls, one more or one less."""
    name = rng.choice(list(columns))
    how = rng.choice(("null", "float", "text", "uint64", "bool", "list", "drop", "more", "case", "dictionary"))
    values = columns[name]
    match how:
        case "null":
            values[-1:] = [None]
        case "float":
            columns[name], types[name] = [float(v) for v in values], pa.float64()
        case "text":
            columns[name], types[name] = [str(v) for v in values], pa.string()
        case "uint64":
            columns[name], types[name] = [v % 2**64 for v in values], pa.uint64()
        case "bool":
            columns[name], types[name] = [bool(v) for v in values], pa.bool_()
        case "list":
            columns[name], types[name] = [[v] for v in values], pa.list_(INTEGER)
        case "dictionary":
            types[name] = pa.dictionary(pa.int32(), INTEGER)
        case "drop":
            del columns[name], types[name]
        case "more":
            columns["\x1b[31mmore"], types["\x1b[31mmore"] = list(values), INTEGER
        case _:
            columns[name.upper()], types[name.upper()] = columns.pop(name), types.pop(name)
    return f"{how} {name}"


def sealed(document: Any, columns: Columns, types: dict[str, Any], *, fix: bool) -> bytes:
    """The file of these columns and this document; ``fix``: with the number of rows and the checksums that fit."""
    if fix and isinstance(document, dict):
        digest = hashlib.sha256()
        for name in COLUMNS:
            values = [v for v in columns.get(name, []) if type(v) is int and -(2**63) <= v < 2**63]
            digest.update(name.encode() + b"\0" + np.array(values, dtype=np.int64).astype("<i8").tobytes())
        rows = len(next(iter(columns.values()), []))
        if isinstance(document.get("columns"), dict):
            document["columns"] = {**document["columns"], "rows": rows, "sha256": digest.hexdigest()}
        document.pop("sha256", None)
        document["sha256"] = hashlib.sha256(_canonical(document).encode()).hexdigest()
    arrays = [pa.array(values, types[name]) for name, values in columns.items()]
    schema = pa.schema([pa.field(name, types[name]) for name in columns])
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, store_schema=False) as writer:
        writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
        writer.add_key_value_metadata({METADATA_KEY.decode(): _canonical(document)})
    return sink.getvalue()


def _canonical(document: Any) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def confirm(right: Base, line: str) -> Confirm:
    """What confirms that a trace agrees."""

    def confirmed(answer: Answer) -> str | None:
        if answer.code not in (0, 4) or "verify" in line or "t.parquet t.parquet" in line:
            return None
        try:
            trace = read_trace("t.parquet")
        except PipesimError as error:
            return f"an answer on a trace that is refused: {error.fact}"
        if trace.meta.window or trace.meta.params != right.document["params"]:
            return None
        order = naive.recorded_order(trace)
        wrong = sorted(who for who in order.keys() | right.order.keys() if order.get(who) != right.order.get(who))
        return f"it agrees, and {', '.join(wrong)} recorded something else" if wrong else ""

    return confirmed
