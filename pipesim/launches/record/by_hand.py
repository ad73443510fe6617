"""A kernel instrumented into files, and the file of its records made a trace: for programs that are not Python."""

from __future__ import annotations

from pathlib import Path

from pipesim.bounds import MAX_PTX_BYTES, MAX_SOURCE_BYTES
from pipesim.errors import PtxError, UsageError
from pipesim.inputs import InputKind
from pipesim.launches.record.gather import LaunchEnd, RecordedBuffer, read_record_file, trace_of
from pipesim.launches.record.preparation import Usage, require_no_variables, rewrite_options, usage_change
from pipesim.ptx.launch.file import launch_json, read_launch
from pipesim.ptx.launch.values import Launch
from pipesim.trace.schema import Trace
from pipesim.trace.whole import require_free, write_whole

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
        write_whole(folder / file, data, force=force)
    return *usage_change(before, after), tuple(files)


def decoded_trace(records: Path, text: str, launch: Launch) -> Trace:
    """The trace of a file of records. LaunchFileError, EvidenceError or TraceFormatError if they do not fit."""
    return trace_of(text, launch, read_record_file(records))
