"""The spool folder of a recording, made into traces, each with its PTX and its launch file, and a report of them.

A launch left a buffer, which is decoded by the instrumented kernel; its trace is compared with the program of its PTX.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pipesim.answers.compare import compare_kernel
from pipesim.answers.views.launches import KernelRecording, LaunchRecording, RecordReport
from pipesim.bounds import MAX_PTX_BYTES, MAX_SOURCE_BYTES
from pipesim.conform.agreement import Agreement
from pipesim.errors import EvidenceError, LaunchFileError, PipesimError, PtxError, UsageError, internal_error
from pipesim.inputs import InputKind
from pipesim.launches.files.found_ptx import Codes
from pipesim.launches.files.gather import FileNames, launch_file_name
from pipesim.launches.files.launch_file import describe_launch, kernel_text
from pipesim.launches.observe.limits import Limits
from pipesim.launches.record.buffer_file import LaunchEnd, RecordedBuffer, read_record_file
from pipesim.launches.record.options import NO_BARRIER
from pipesim.launches.record.preparation import (
    Usage,
    require_no_variables,
    rewrite_options,
    usage_change,
    with_cta,
)
from pipesim.launches.records.read import read_spool
from pipesim.launches.records.record import InstrumentedRecord, LaunchRecord, RecordedRecord, SpoolRecords
from pipesim.model.ending import Ending
from pipesim.process.files import require_free, write_whole
from pipesim.process.limits import LimitReachedError, limit_error
from pipesim.process.program import without_secrets
from pipesim.process.watch import current
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.file import launch_json, read_launch
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.prepare import entry_of
from pipesim.ptx.text.read import read_module
from pipesim.report.pages.protocols.verify import compare_lines
from pipesim.trace.files import write_trace
from pipesim.trace.schema import Device, Trace

WIDTH = 100  #: cells of a comparison

_ENDINGS = {
    LaunchEnd.FINISHED: Ending.FINISHED,
    LaunchEnd.STOPPED: Ending.DEADLINE,
    LaunchEnd.RUNNING: Ending.DEADLINE,
    LaunchEnd.FAILED: Ending.TRAP,
}


@dataclass(frozen=True)
class PtxComparison:
    """How a trace compares with the program of its PTX. ``page``: the comparison in lines."""

    agreement: Agreement
    page: tuple[str, ...]


def trace_of(ptx: str, launch: Launch, buffer: RecordedBuffer) -> Trace:
    """The trace of a launch, with which its buffer is decoded.

    Raises EvidenceError if the buffer is not one of this launch, and
    what the decoder raises for damaged records.
    """
    from hwkernels.rewriter import decode_records, instrument

    options = rewrite_options(stop_flag=buffer.stop_flag, waits_only=buffer.waits_only)
    made = instrument(ptx, "its PTX", launch, options)
    if made.nbytes != len(buffer.data):
        raise EvidenceError(
            f"the buffer has {len(buffer.data):,} bytes, and this launch one of {made.nbytes:,}",
            cause="it was recorded of another launch, or by another pipesim",
            correction="decode it with the PTX and the launch file of its recording",
        )
    major, minor = buffer.capability
    version = f"{buffer.driver // 1000}.{buffer.driver % 1000 // 10}" if buffer.driver else ""
    device = Device(buffer.device, buffer.sms, f"{major}.{minor}", version)
    trace = decode_records(made, buffer.data, device)
    ending = _ENDINGS[buffer.end]
    status = trace.meta.status if ending is Ending.FINISHED else ending
    extra = trace.meta.extra | {"launch_ns": {"untraced": [], "traced": [buffer.took_ns]}}
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return Trace(replace(trace.meta, status=status, recorded_at=when, extra=extra), trace.events)


def compare_with_program(ptx: str, launch: Launch, trace: Trace, source: str) -> PtxComparison:
    """The trace beside the program that is read from the PTX with this launch; unknown if that cannot be done."""
    try:
        module = read_module(ptx, "its PTX", launch.entry)
        entry_of(module, launch)
        report = compare_kernel(extract(module, launch), trace, source)
    except PipesimError as error:
        return PtxComparison(Agreement.UNKNOWN, (f"the trace cannot be compared: {error.fact}",))
    except Exception as error:  # noqa: BLE001  # a mistake of ours in one launch must not lose the others
        return PtxComparison(Agreement.UNKNOWN, (f"the trace cannot be compared: {internal_error(error).fact}",))
    except LimitReachedError as reached:
        current().resume()
        return PtxComparison(Agreement.UNKNOWN, (limit_error(reached).fact,))
    return PtxComparison(report.comparison.agreement, tuple(compare_lines(report, WIDTH)))


_NOT_SEEN = "no launch of it was seen, by a stream or in a CUDA graph that was followed, or fewer than are skipped"


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
            write_whole(folder / name, data, force=force, private=True)
        for name, trace in self.traces.items():
            write_trace(trace, folder / name, force=force, private=True)


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
    dump: Mapping[str, tuple[tuple[str, str], ...]] | None = None,
) -> tuple[RecordReport, RecordedFiles]:
    """The report on a recording, and its files, none of which is written yet.

    ``compare``: every trace is compared with the program of its PTX; one of a
    launch that did not end always is. ``dump``: a compiler's PTX by kernel. UsageError if the spool folder cannot be
    read.
    """
    records = read_spool(spool)
    names, files = FileNames(), RecordedFiles()
    wanted = Limits(tuple(patterns))
    rows = [row for row in _rows(records, Codes(spool, dump or {})) if wanted.wants(row.name)]
    kernels = tuple(_kernel(row, records, spool, names, files, compare=compare) for row in rows)
    devices = tuple(dict.fromkeys(each.device for each in records.processes if each.device))
    report = RecordReport(
        folder, without_secrets(command), status, devices, kernels, tuple(records.notes), compared=compare
    )
    return report, files


def _rows(records: SpoolRecords, codes: Codes) -> list[_KernelRow]:
    """The kernels in the order of their first launches."""
    rows: dict[tuple[str, str], _KernelRow] = {}

    def row_of(launch: LaunchRecord) -> _KernelRow:
        found = codes.code_of(launch)
        row = _KernelRow(launch.kernel, found.origin, found.text, found.reason)
        return rows.setdefault((launch.kernel, found.text), row)

    for record in records.launches:
        row_of(record).launches.append(record)
    for each in records.recorded:
        row_of(each.launch).recorded.append(each)
    for row in rows.values():
        mine = {each.code for each in row.launches} | {each.launch.code for each in row.recorded}
        said = (each for each in records.instrumented if each.kernel == row.name and each.code in mine)
        row.instrumented = next(said, None)
    return list(rows.values())


def _kernel(
    row: _KernelRow, records: SpoolRecords, spool: Path, names: FileNames, files: RecordedFiles, *, compare: bool
) -> KernelRecording:
    made = row.instrumented
    name = names.name_of(row.name, row.text) if any(each.file for each in row.recorded) else ""
    recorded = tuple(
        _launch(each, launch_file_name(name, number).removesuffix(".json"), row, spool, files, compare=compare)
        for number, each in enumerate(row.recorded)
    )
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
    each: RecordedRecord, stem: str, row: _KernelRow, spool: Path, files: RecordedFiles, *, compare: bool
) -> LaunchRecording:
    """One launch: its trace and launch file, named ``stem``, are added to ``files``."""
    shape, in_graph = (each.launch.grid, each.launch.block, each.launch.cluster), each.launch.in_graph
    if not each.file:
        return LaunchRecording("", "", "", *shape, 0, None, 0, each.reason, in_graph=in_graph)
    buffer: RecordedBuffer | None = None
    try:
        buffer = read_record_file(spool / each.file)
        launch = with_cta(_describe_launch(each, row), buffer.cta)
        files.others[f"{stem}.json"] = launch_json(launch).encode()
        trace = trace_of(row.text, launch, buffer)
    except Exception as error:  # noqa: BLE001  # a mistake of ours in one launch must not lose the others
        fact = (error if isinstance(error, PipesimError) else internal_error(error)).fact
        undecoded = ""
        if buffer is not None:
            undecoded = f"{stem}.records"
            fact += "; pipesim hang says more of it" if buffer.end is LaunchEnd.RUNNING else ""
            files.others[undecoded] = buffer.encode()
        said = f"no trace could be made: {fact}"
        return LaunchRecording("", "", undecoded, *shape, 0, None, 0, said, in_graph=in_graph)
    files.traces[f"{stem}.parquet"] = trace
    ending = trace.meta.status
    found = LaunchRecording(
        f"{stem}.parquet", f"{stem}.json", "", *shape, len(trace.events), ending, buffer.took_ns, in_graph=in_graph
    )
    if not compare and ending is Ending.FINISHED:
        return found
    comparison = compare_with_program(row.text, launch, trace, f"{stem}.parquet")
    shown = ending is not Ending.FINISHED or not comparison.agreement.agrees
    return replace(found, agreement=comparison.agreement, page=comparison.page if shown else ())


def _describe_launch(each: RecordedRecord, row: _KernelRow) -> Launch:
    """The launch as a launch file has it. PtxError if its parameters are not those of the PTX."""
    made = describe_launch(each.launch, kernel_text(row.text, "its PTX", row.name))
    if made.compiled is None:
        raise LaunchFileError(made.reason)
    return made.compiled.launch


HEADER = Path(__file__).with_name("pipesim_record.h")
_PTX = InputKind("PTX file", MAX_PTX_BYTES, PtxError, "give the PTX of one module, as its compiler wrote it")
_TEXT = InputKind("file", MAX_SOURCE_BYTES, UsageError, "name another one")


def kernel_of(ptx: Path, launch: Path | None = None) -> tuple[str, Launch]:
    """The PTX and the launch: of the file beside it that ends with ``.json``, if none is named."""
    path = ptx.with_suffix(".json") if launch is None else launch
    return _PTX.read_text(ptx), read_launch(_TEXT.read_text(path), str(path))


def write_instrumented(
    text: str, launch: Launch, name: str, folder: Path, *, waits_only: bool = False, force: bool = False
) -> tuple[Usage, Usage, tuple[str, ...], tuple[str, ...]]:
    """Write ``NAME.cubin``, ``NAME.buffer``, ``NAME.ptx``, ``NAME.json`` and the header into a folder.

    What ptxas says about the kernel before and after, its new warnings, and the names of the files. Raises PtxError or
    LaunchFileError where the kernel cannot be instrumented, HardwareError without ptxas, OutputExistsError unless
    ``force``.
    """
    from hwkernels.rewriter import assemble, instrument

    require_no_variables(text)
    made = instrument(text, name, launch, rewrite_options(stop_flag=True, waits_only=waits_only))
    before, after = (assemble(each, launch.entry) for each in (text, made.ptx))
    initial = RecordedBuffer(LaunchEnd.FINISHED, "", 0, (0, 0), 0, 0, made.initial(), True, waits_only, launch.cta or 0)
    files = {
        f"{name}.cubin": after.cubin,
        f"{name}.buffer": initial.encode(),
        f"{name}.ptx": text.encode(),
        f"{name}.json": launch_json(launch).encode(),
        HEADER.name: _TEXT.read_text(HEADER).encode(),
    }
    for file in files:
        require_free(folder / file, force=force)
    for file, data in files.items():
        write_whole(folder / file, data, force=force, private=True)
    return *usage_change(before, after), tuple(files)


def decoded_trace(records: Path, text: str, launch: Launch) -> Trace:
    """The trace of a file of records. LaunchFileError, EvidenceError or TraceFormatError if they do not fit."""
    return trace_of(text, launch, read_record_file(records))
