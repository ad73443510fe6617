"""The trace of one recorded launch: its buffer decoded by the instrumented kernel, and compared with its program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pipesim.answers.compare import compare_kernel
from pipesim.conform.agreement import Agreement
from pipesim.errors import EvidenceError, PipesimError, internal_error
from pipesim.launches.record.prepared import rewrite_options
from pipesim.launches.record.record_file import LaunchEnd, RecordedBuffer
from pipesim.model.ending import Ending
from pipesim.process.limits import LimitReachedError, limit_error
from pipesim.process.watch import current
from pipesim.ptx.emulation import entry_of
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.read import read_module
from pipesim.report.pages.verify import compare_lines
from pipesim.trace.schema import Device, Trace

WIDTH = 100  #: cells of a comparison

_ENDINGS = {
    LaunchEnd.FINISHED: Ending.FINISHED,
    LaunchEnd.STOPPED: Ending.DEADLINE,
    LaunchEnd.RUNNING: Ending.DEADLINE,
    LaunchEnd.FAILED: Ending.TRAP,
}


@dataclass(frozen=True)
class Compared:
    """How a trace stands to the program of its PTX. ``page``: the comparison in lines."""

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


def compared(ptx: str, launch: Launch, trace: Trace, source: str, width: int = WIDTH) -> Compared:
    """The trace beside the program that is read from the PTX with this launch; unknown if that cannot be done."""
    try:
        module = read_module(ptx, "its PTX", launch.entry)
        entry_of(module, launch)
        report = compare_kernel(extract(module, launch), trace, source)
    except PipesimError as error:
        return Compared(Agreement.UNKNOWN, (f"the trace cannot be compared: {error.fact}",))
    except Exception as error:  # noqa: BLE001  # a mistake of ours in one launch must not lose the others
        return Compared(Agreement.UNKNOWN, (f"the trace cannot be compared: {internal_error(error).fact}",))
    except LimitReachedError as reached:
        current().resume()
        return Compared(Agreement.UNKNOWN, (limit_error(reached).fact,))
    return Compared(report.comparison.agreement, tuple(compare_lines(report, width)))
