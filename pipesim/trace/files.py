"""Trace files: one Parquet file a trace, its description as one JSON document inside it.

Columns are stored in the narrowest signed integers that hold them and come back as int64. Every page carries a
checksum, the document carries those of all columns and of itself: a file reads back equal, or it says what is wrong.
The bytes depend on the trace and on the version of pyarrow, on nothing else.
"""

import hashlib
import os
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from pipesim import bounds
from pipesim.errors import ForeignFileError, TraceFormatError, UsageError
from pipesim.inputs import InputKind
from pipesim.process.files import require_free, write_whole
from pipesim.trace.arrays import np
from pipesim.trace.consistency import check_meta, check_trace
from pipesim.trace.metadata import DAMAGED, RECOPY, StoredMeta, metadata_text, parse_metadata, refuse
from pipesim.trace.schema import COLUMNS, Column, Events, PackedEvents, Trace, TraceMeta

METADATA_KEY = b"pipesim"  #: the entry of the Parquet file's metadata that makes it a trace

_OURS = "give a file that `pipesim capture` or `pipesim run` wrote"
TRACE = InputKind("trace file", bounds.MAX_TRACE_BYTES, UsageError, _OURS)

_MAGIC = b"PAR1"  # a Parquet file begins and ends with it
_TAIL = 8  # the length of the footer, and the last mark
_SMALLEST = len(_MAGIC) + _TAIL
_MOST_FOOTER = bounds.MAX_JSON_BYTES + (1 << 20)  # the document is in it
_DAMAGES = (OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError)  # of a reader of damaged bytes
_MANY = 1 << 18  #: rows: columns of more are kept as narrow as they are stored
_NARROW = ("int8", "int16", "int32", "int64")
#: Columns that climb: stored as differences, which takes a fraction of the space. The others repeat a few values.
_CLIMBING = ("iteration", "cycle", "time_ps", "globaltimer_ns")
_LAYOUT: dict[str, Any] = {
    "compression": "zstd",
    "use_dictionary": [name for name in COLUMNS if name not in _CLIMBING],
    "column_encoding": dict.fromkeys(_CLIMBING, "DELTA_BINARY_PACKED"),
    "write_statistics": False,
    "write_page_checksum": True,
    "store_schema": False,  # pyarrow would store its schema, and the document in it, a second time
}


def write_trace(trace: Trace, path: str | Path, *, force: bool = False, private: bool = False) -> None:
    """Write a trace, whole or not at all; missing folders are made. ``private``: only this user may read it.

    Raises OutputExistsError if the file is there and ``force`` is not given, TraceFormatError if the trace breaks a
    rule of the schema (nothing is written that would not read back), UsageError if the disk refuses.
    """
    path = Path(path)
    require_free(path, force=force)
    _check_length(trace, str(path), bounds.MAX_ROWS)
    _check_writable(trace, str(path))
    data = _encode(trace, str(path))
    _check_length(trace, str(path), _most_rows(len(data)))
    write_whole(path, data, force=force, private=private)


def read_trace(path: str | Path) -> Trace:
    """Read a trace and verify it: its checksums, its tables, and that no record is missing.

    Raises UsageError if there is no such file, TraceFormatError for whatever is wrong with the one there is. What the
    file says about itself is checked first, so that a small file does not make a large table.
    """
    import pyarrow as pa

    path = Path(path)
    try:
        with _open_file(path) as file:
            stored, events = _load(file.read(), path)
    except (pa.ArrowException, *_DAMAGES) as error:
        _refuse_damaged(path, error)
    trace = Trace(stored.meta, events)
    check_trace(trace, str(path))
    if len(trace.events) != stored.rows:
        refuse(f"the trace says that it has {stored.rows} records, the file holds {len(trace.events)}", path)
    if _digest(trace.events) != stored.columns_sha256:
        refuse("the trace's events do not match their checksum", path)
    return trace


def read_meta(path: str | Path) -> TraceMeta:
    """The description of a trace, without its events: only the end of the file is read. Raises as read_trace does."""
    import pyarrow as pa

    path = Path(path)
    with _open_file(path) as file:
        end = _end_of(file, path)
    try:
        with _parquet(_MAGIC + end) as parquet:
            schema = parquet.schema_arrow
    except (pa.ArrowException, *_DAMAGES) as error:
        _refuse_damaged(path, error)
    meta = _stored_meta(schema, path).meta
    check_meta(meta, str(path))
    return meta


def _most_rows(nbytes: int) -> int:
    """The records that a file of this size may have: a small one does not make a large table."""
    return min(bounds.MAX_ROWS, max(bounds.MAX_PACKED_ROWS, nbytes))


def _check_length(trace: Trace, place: str, most: int) -> None:
    if len(trace.events) > most:
        raise TraceFormatError(
            f"the trace has {len(trace.events):,} records; a file holds at most {most:,}",
            place=place,
            cause="a recording of very many iterations or CTAs; none was written",
            correction="record fewer CTAs (--record-ctas) or fewer iterations (--window)",
        )


def _check_writable(trace: Trace, place: str) -> None:
    try:
        metadata_text(StoredMeta(trace.meta, len(trace.events), ""), place)  # types first: the rules rely on them
        check_trace(trace, place)
    except TraceFormatError as error:
        if error.correction != RECOPY:
            raise
        raise TraceFormatError(
            error.fact,
            place=place,
            cause="the trace was built incorrectly; no file was damaged, and none was written",
            correction="build the trace by the rules of pipesim.trace.schema",
        ) from error


def _encode(trace: Trace, place: str) -> bytes:
    """The bytes of a trace's file; a pure function of the trace."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [_narrow(getattr(trace.events, name)) for name in COLUMNS]
    document = metadata_text(StoredMeta(trace.meta, len(trace.events), _digest(trace.events)), place)
    schema = pa.schema(
        pa.field(name, pa.from_numpy_dtype(column.dtype), nullable=False)
        for name, column in zip(COLUMNS, columns, strict=True)
    )
    arrays = [  # by their buffers: pa.array() would import pandas where it is installed, which takes half a second
        pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, pa.py_buffer(column)])
        for column in columns
    ]
    table = pa.Table.from_arrays(arrays, schema=schema)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, **_LAYOUT) as writer:
        writer.write_table(table, row_group_size=max(len(trace.events), 1))
        writer.add_key_value_metadata({METADATA_KEY.decode(): document})
    return bytes(sink.getvalue().to_pybytes())


def _load(data: bytes, path: Path) -> tuple[StoredMeta, Events]:
    """The verified document and the columns, one after the other: only one is there twice."""
    import pyarrow as pa

    with _parquet(data) as file:
        stored = _stored_meta(file.schema_arrow, path)
        _check_columns(file.schema_arrow, path)
        _check_rows(file.metadata, stored.rows, _most_rows(len(data)), path)
        columns = {name: _column(file.read([name], use_threads=False), name, path) for name in COLUMNS}
    if stored.rows > _MANY:
        events: Events = PackedEvents(**columns)
    else:
        events = Events(**{name: column.astype(np.int64) for name, column in columns.items()})
    pa.default_memory_pool().release_unused()  # it keeps ten megabytes for next time
    return stored, events


def _parquet(data: bytes) -> Any:
    """The reader of a file's bytes, or of its first mark and its end alone, which suffice for the schema.

    It allocates what the footer says before it has read that much: the limits keep that small.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        pa.BufferReader(data),
        page_checksum_verification=True,
        thrift_container_size_limit=bounds.MAX_ROW_GROUPS,
        thrift_string_size_limit=_MOST_FOOTER,
    )


def _open_file(path: Path) -> BinaryIO:
    """The file at its beginning, with the first and last bytes of a Parquet file."""
    try:
        there, folder = path.exists(), path.is_dir()
    except (OSError, ValueError):  # a name that no file can have
        there = folder = False
    if not there:
        raise UsageError("there is no such trace file", place=str(path), correction="check the path")
    if folder:
        raise UsageError("this is a folder, not a trace file", place=str(path), correction="name a file in it")
    file = TRACE.open(path)
    try:
        _check_outside(file, path)
    except OSError as error:
        file.close()
        raise UsageError("the trace file cannot be read", place=str(path), cause=str(error)) from error
    except TraceFormatError:
        file.close()
        raise
    return file


def _check_outside(file: BinaryIO, path: Path) -> None:
    """What is known from a file's size and its first and last bytes."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(len(_MAGIC))
    file.seek(max(size - len(_MAGIC), 0))
    tail = file.read(len(_MAGIC))
    file.seek(0)
    if not size:
        refuse("the trace file is empty", path, cause="the program that should have written it stopped first")
    if not _MAGIC.startswith(head):
        raise TraceFormatError(
            "this is not a trace: a trace is a Parquet file",
            place=str(path),
            cause="it is another kind of file, such as text or CSV",
            correction=_OURS,
        )
    if size < _SMALLEST or tail != _MAGIC:
        cause = "copying or writing it was interrupted"
        refuse(f"the trace file is truncated: it ends after {size} bytes", path, cause=cause)


def _end_of(file: BinaryIO, path: Path) -> bytes:
    """The footer of a Parquet file, its length and the last mark."""
    size = file.seek(-_TAIL, os.SEEK_END) + _TAIL
    length = int.from_bytes(file.read(4), "little")
    if length > min(_MOST_FOOTER, size - _SMALLEST):
        refuse("the trace file is damaged", path, cause=f"{DAMAGED}; it says that its footer has {length:,} bytes")
    file.seek(-_TAIL - length, os.SEEK_END)
    return file.read(length + _TAIL)


def _stored_meta(schema: Any, path: Path) -> StoredMeta:
    metadata = schema.metadata or {}
    if METADATA_KEY not in metadata:
        raise ForeignFileError(
            "this is a Parquet file, but not a pipesim trace: it has no metadata under the key `pipesim`",
            place=str(path),
            cause="another program wrote it, or rewrote a trace without its metadata",
            correction=_OURS,
        )
    return parse_metadata(metadata[METADATA_KEY], str(path))


def _check_columns(schema: Any, path: Path) -> None:
    import pyarrow as pa

    for name in COLUMNS:
        if name not in schema.names:
            refuse(f"the trace has no column {name}", path)
        found = schema.field(schema.names.index(name)).type
        if not pa.types.is_integer(found) or found == pa.uint64():
            refuse(f"column {name} of the trace is of type {found} where integers of at most int64 are expected", path)
    for name in schema.names:
        if name not in COLUMNS or schema.names.count(name) > 1:
            refuse(f"the trace has a column {name} that its schema version does not have, or has it twice", path)


def _check_rows(footer: Any, rows: int, allowed: int, path: Path) -> None:
    """What the file says about its size, before anything is unpacked; fewer rows than promised are counted later."""
    found = footer.num_rows
    if max(rows, found) > allowed:
        most, cause = max(rows, found), "a recording of too many iterations, or another program wrote the file"
        refuse(f"the trace has {most:,} records; at most {allowed:,} are read", path, cause=cause)
    if found > rows:
        refuse(f"the trace says that it has {rows} records, the file holds {found}", path)
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            most = bounds.MAX_VALUE_BYTES * max(group.num_rows, 0) + bounds.SPARE_COLUMN_BYTES
            if chunk.num_values != group.num_rows or not 0 <= chunk.total_uncompressed_size <= most:
                fact = f"column {chunk.path_in_schema} of the trace has {chunk.total_uncompressed_size:,} bytes"
                refuse(f"{fact} for {group.num_rows:,} rows", path)


def _column(table: Any, name: str, path: Path) -> "np.ndarray[Any, Any]":
    column = table.column(name)
    if column.null_count:
        refuse(f"column {name} of the trace has {column.null_count} rows without a value", path)
    parts = [np.from_dlpack(chunk) for chunk in column.chunks]  # pyarrow's own conversion would import pandas
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _narrow(column: Column) -> "np.ndarray[Any, Any]":
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    fitting = (kind for kind in _NARROW if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return column.astype(next(fitting))


def _digest(events: Events) -> str:
    digest = hashlib.sha256()
    for name in COLUMNS:
        digest.update(name.encode() + b"\0")
        column = events.stored(name)
        for at in range(0, len(column), _MANY):
            digest.update(column[at : at + _MANY].astype("<i8").tobytes())
    return digest.hexdigest()


def _refuse_damaged(path: Path, error: BaseException) -> NoReturn:
    reader = (str(error).splitlines() or [type(error).__name__])[0]
    refuse("the trace file is damaged", path, cause=f"{DAMAGED}; the reader says: {reader}")
