"""Traces and rows as tables for others: Arrow, which Polars, DuckDB and pandas read, and pandas itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipesim.errors import UsageError

if TYPE_CHECKING:
    from pipesim.trace.schema import Trace

#: Columns with their types (str, int, or list of texts), and rows that have them.
Rows = tuple[Mapping[str, type], Sequence[Mapping[str, object]]]
#: Columns of a trace's table that are as in :class:`pipesim.trace.schema.Events`.
_AS_THEY_ARE = ("stage", "parity", "iteration", "value", "cycle", "time_ps", "error_ps", "globaltimer_ns")


def trace_table(trace: Trace) -> Any:
    """The events as a ``pyarrow.Table``, a row each: agent, role, kind, barrier and site by name, the rest in numbers.

    The names of the sites and agents are stored once (dictionary columns).
    """
    import pyarrow as pa

    meta, events = trace.meta, trace.events
    agents = [meta.agent_name(n) for n in range(len(meta.agents))]
    columns = {
        "cta": pa.array(events.cta),
        "agent": _dictionary_column(events.agent, agents),
        "role": _dictionary_column(events.agent, [agent.role for agent in meta.agents]),
        "warp": pa.array([agent.warp for agent in meta.agents]).take(pa.array(events.agent)),
        "kind": _dictionary_column(events.site, [site.kind.name.lower() for site in meta.sites]),
        "barrier": _dictionary_column(events.site, [site.barrier for site in meta.sites]),
        "site": _dictionary_column(events.site, [site.name for site in meta.sites]),
    }
    columns |= {name: pa.array(getattr(events, name)) for name in _AS_THEY_ARE}
    return pa.table(columns)


def rows_table(columns: Mapping[str, type], rows: Sequence[Mapping[str, object]]) -> Any:
    """Rows as a ``pyarrow.Table`` with these columns, which are there even without rows."""
    import pyarrow as pa

    types = {str: pa.string(), int: pa.int64(), list: pa.list_(pa.string())}
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def as_pandas(table: Any) -> Any:
    """A ``pyarrow.Table`` as a ``pandas.DataFrame``; UsageError where pandas is not installed."""
    try:
        import pandas as pd  # noqa: F401  # pyarrow's own error does not say how to install it
    except ImportError as error:
        raise UsageError(
            "pandas is not installed",
            correction="pip install pandas, or use .to_arrow(), which Polars and DuckDB read, too",
        ) from error
    return table.to_pandas()


def _dictionary_column(numbers: Any, names: Sequence[str]) -> Any:
    """A dictionary column: the names by these numbers. Names that are alike are one entry."""
    import pyarrow as pa

    known = list(dict.fromkeys(names))
    place = {name: n for n, name in enumerate(known)}
    of = pa.array([place[name] for name in names], type=pa.int32())
    return pa.DictionaryArray.from_arrays(of.take(pa.array(numbers)), pa.array(known, type=pa.string()))
