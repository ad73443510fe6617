"""The spool folder of a recording, made into traces, each with its PTX and its launch file, and a report of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from pipesim.answers.views.recording import KernelRecording, LaunchRecording, RecordReport
from pipesim.errors import LaunchFileError, PipesimError, internal_error
from pipesim.launches.files.found_ptx import Codes
from pipesim.launches.files.launch_file import described, kernel_text
from pipesim.launches.files.names import FileNames, launch_file_name
from pipesim.launches.record.prepared import NO_BARRIER, with_cta
from pipesim.launches.record.record_file import RecordedBuffer, read_record_file
from pipesim.launches.record.traces import compared, trace_of
from pipesim.launches.records.read import read_spool
from pipesim.launches.records.record import InstrumentedRecord, LaunchRecord, RecordedRecord, SpoolRecords
from pipesim.model.ending import Ending
from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import Launch
from pipesim.trace.files import write_trace
from pipesim.trace.schema import Trace
from pipesim.trace.whole import require_free, write_whole

_NOT_SEEN = "no launch of it was seen where its framework makes it (docs/recording.md), or fewer than are skipped"


@dataclass
class RecordedFiles:
    """What is written at the end: traces, and the other files as bytes, by their names."""

    traces: dict[str, Trace] = field(default_factory=dict)
    others: dict[str, bytes] = field(default_factory=dict)

    def write(self, folder: Path, *, force: bool = False) -> None:
        """Write all of it; the folder is made. OutputExistsError unless ``force``, before any is written."""
        for name in (*self.traces, *self.others):
            require_free(folder / name, force=force)
        for name, data in self.others.items():
            write_whole(folder / name, data, force=force)
        for name, trace in self.traces.items():
            write_trace(trace, folder / name, force=force)


@dataclass(frozen=True)
class _Gathering:
    """What one gathering is about."""

    spool: Path
    compare: bool


@dataclass
class _KernelRow:
    """A kernel with one PTX, or without."""

    name: str
    origin: str
    text: str
    reason: str
    launches: list[LaunchRecord] = field(default_factory=list)
    recorded: list[RecordedRecord] = field(default_factory=list)
    instrumented: InstrumentedRecord | None = None


def gather_recording(
    spool: Path,
    *,
    folder: str = "",
    command: Sequence[str] = (),
    status: int | None = None,
    patterns: Sequence[str] = (),
    compare: bool = False,
) -> tuple[RecordReport, RecordedFiles]:
    """The report on a recording, and its files, none of which is written yet.

    ``compare``: every trace is compared with the program of its PTX; one of a
    launch that did not end always is. UsageError if the spool folder cannot be read.
    """
    records = read_spool(spool)
    asked, names, files = _Gathering(spool, compare), FileNames(), RecordedFiles()
    rows = [row for row in _rows(records, Codes(spool)) if not patterns or _matches(row.name, patterns)]
    kernels = tuple(_kernel(row, records, asked, names, files) for row in rows)
    devices = tuple(dict.fromkeys(each.device for each in records.processes if each.device))
    report = RecordReport(folder, tuple(command), status, devices, kernels, records.notes, compared=compare)
    return report, files


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, one) for one in patterns)


def _rows(records: SpoolRecords, codes: Codes) -> list[_KernelRow]:
    """The kernels in the order of their first launches."""
    rows: dict[tuple[str, str], _KernelRow] = {}
    for record in records.launches:
        found = codes.of(record)
        row = rows.setdefault(
            (record.kernel, found.text), _KernelRow(record.kernel, found.origin, found.text, found.reason)
        )
        row.launches.append(record)
    for each in records.recorded:
        found = codes.of(each.launch)
        row = rows.setdefault(
            (each.launch.kernel, found.text), _KernelRow(each.launch.kernel, found.origin, found.text, found.reason)
        )
        row.recorded.append(each)
    for row in rows.values():
        mine = {each.code for each in row.launches} | {each.launch.code for each in row.recorded}
        row.instrumented = _of_row(row.name, mine, records.instrumented)
    return list(rows.values())


def _of_row(name: str, codes: set[str], every: Sequence[InstrumentedRecord]) -> InstrumentedRecord | None:
    """What was said of a kernel when it was instrumented."""
    return next((each for each in every if each.kernel == name and each.code in codes), None)


def _kernel(
    row: _KernelRow, records: SpoolRecords, asked: _Gathering, names: FileNames, files: RecordedFiles
) -> KernelRecording:
    made = row.instrumented
    name = names.of(row.name, row.text) if any(each.file for each in row.recorded) else ""
    recorded = tuple(_launch(each, number, row, name, asked, files) for number, each in enumerate(row.recorded))
    images = {(each.process, each.image) for each in row.launches}
    counts = [each for each in records.counts if each.kernel == row.name and (each.process, each.image) in images]
    ptx = ""
    if name:
        ptx = f"{name}.ptx"
        files.others[ptx] = row.text.encode()
    numbers = (made.registers, made.spills, made.stack) if made is not None else ((0, 0), (0, 0), (0, 0))
    return KernelRecording(
        row.name,
        row.origin,
        ptx,
        sum(each.launches for each in counts) if counts else None,
        *numbers,
        recorded=recorded,
        warnings=made.warnings if made is not None else (),
        reason="" if recorded else _why_not(row),
    )


def _why_not(row: _KernelRow) -> str:
    if not row.text:
        return row.reason
    try:
        if not kernel_text(row.text, "its PTX", row.name).has_barriers:
            return NO_BARRIER
    except PipesimError as error:
        return f"its PTX cannot be read: {error.fact}"
    return _NOT_SEEN


def _launch(
    each: RecordedRecord, number: int, row: _KernelRow, name: str, asked: _Gathering, files: RecordedFiles
) -> LaunchRecording:
    """One launch: its trace and launch file are added to ``files``."""
    shape = each.launch.grid, each.launch.block, each.launch.cluster
    if not each.file:
        return LaunchRecording("", "", "", *shape, 0, None, 0, each.reason)
    stem = launch_file_name(name, number).removesuffix(".json")
    buffer: RecordedBuffer | None = None
    try:
        buffer = read_record_file(asked.spool / each.file)
        launch = with_cta(_described(each, row), buffer.cta)
        files.others[f"{stem}.json"] = launch_json(launch).encode()
        trace = trace_of(row.text, launch, buffer)
    except Exception as error:  # noqa: BLE001  # a mistake of ours in one launch must not lose the others
        fact = (error if isinstance(error, PipesimError) else internal_error(error)).fact
        kept = ""
        if buffer is not None:
            kept = f"{stem}.records"
            files.others[kept] = buffer.encoded()
        return LaunchRecording("", "", kept, *shape, 0, None, 0, f"no trace could be made: {fact}")
    files.traces[f"{stem}.parquet"] = trace
    ending = trace.meta.status
    found = LaunchRecording(f"{stem}.parquet", f"{stem}.json", "", *shape, len(trace.events), ending, buffer.took_ns)
    if not asked.compare and ending is Ending.FINISHED:
        return found
    stands = compared(row.text, launch, trace, f"{stem}.parquet")
    shown = ending is not Ending.FINISHED or not stands.agreement.agrees
    return replace(found, agreement=stands.agreement, page=stands.page if shown else ())


def _described(each: RecordedRecord, row: _KernelRow) -> Launch:
    """The launch as a launch file has it. PtxError if its parameters are not those of the PTX."""
    made = described(each.launch, kernel_text(row.text, "its PTX", row.name))
    if made.compiled is None:
        raise LaunchFileError(made.reason)
    return made.compiled.launch
