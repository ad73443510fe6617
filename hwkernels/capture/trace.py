"""From the launches of a request to its trace."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.capture.plan import Plan
from hwkernels.capture.request import CaptureRequest, Outcome
from hwkernels.device.compile import CompiledKernel
from hwkernels.device.launch import DeviceInfo
from hwkernels.records.clocks import CLOCK_SKEW_CYCLES
from hwkernels.records.encodings import UNWRITTEN
from hwkernels.source_recorder.decode import TIMER_STEPS, decode, sm_khz, timer_step_ns
from hwkernels.source_recorder.layout import MAX_BARRIERS
from hwkernels.source_recorder.measure import LaunchResult, run_of
from hwkernels.source_recorder.record_format import record_words
from pipesim.errors import HardwareError
from pipesim.model.ending import Ending
from pipesim.trace.schema import CtaInfo, Device, Run, Trace, TraceMeta

_UNWRITTEN = int.from_bytes(bytes([UNWRITTEN]) * 8)


def make_trace(
    request: CaptureRequest,
    plan: Plan,
    compiled: CompiledKernel,
    info: DeviceInfo,
    launched: list[LaunchResult],
    rate: npt.NDArray[Any] | None,
) -> Trace:
    """The trace of the first traced launch that gave up, or of the first; ``compiled`` is its build.

    ``rate``: headers that tell the SM clock where those of the launch do not. Raises HardwareError if a CTA that ended
    did not read the clocks.
    """
    traced = [run for run in launched if run.traced]
    recorded = next((run for run in traced if run.gave_up), traced[0])
    if recorded.status == Ending.FINISHED:
        _require_anchors(recorded)
    meta = _describe(request, plan, compiled, info, recorded.headers, rate)
    count = _count_begun(recorded, plan.record_ctas)
    coding = request.subject.decode_context(request, meta.device.sm_khz)
    decoded = decode(recorded.headers[:count], recorded.records[:count], plan.table, coding)
    runs = _runs(request, launched)
    outcome = Outcome(plan.table, compiled.entry, plan.shape.smem_bytes, launched, recorded, runs, decoded.events)
    return Trace(
        replace(
            meta,
            ctas=tuple(_with_report(cta, recorded, plan) for cta in decoded.ctas),
            runs=runs,
            status=recorded.outcome,
            wrong_tiles=sum(run.wrong_tiles for run in launched),
            window=request.window,
            fault="" if request.fault is None else str(request.fault),
            memory=plan.memory,
            extra=meta.extra | _times(launched, recorded) | request.subject.metadata(request, outcome),
        ),
        decoded.events,
    )


def _describe(
    request: CaptureRequest,
    plan: Plan,
    compiled: CompiledKernel,
    info: DeviceInfo,
    headers: npt.NDArray[Any],
    rate: npt.NDArray[Any] | None,
) -> TraceMeta:
    """The description of a launch with these headers, before its records are decoded."""
    khz = sm_khz(headers) or (0 if rate is None else sm_khz(rate))
    step_ns = timer_step_ns(headers)
    return TraceMeta(
        source="hardware",
        protocol=request.subject.protocol,
        params=dict(request.params),
        grid=request.ctas,
        device=Device(info.name, info.sms, info.capability, info.driver, compiled.nvrtc, khz, step_ns),
        agents=plan.table.agents,
        barriers=plan.table.barriers,
        sites=plan.table.sites,
        clock=request.clock,
        kernel_hash=compiled.kernel_hash,
        options=compiled.options,
        record_bytes=4 * record_words(plan.needs.encoding, request.clock),
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        extra={
            "order_error_cycles": order_error_cycles(request.clock, khz, step_ns),
            "capacity": plan.capacity,
            "encoding": plan.needs.encoding.name.lower(),
            "seed": request.seed,
        },
    )


def order_error_cycles(clock: str, khz: int, step_ns: int) -> int:
    """Cycles by which two timestamps of one SM may be in the wrong order.

    Two readings of ``%clock`` on one SM were at most 15 cycles apart when taken right after a CTA barrier (2,000
    times, 8 warps, H100 and H200); a reading of ``%globaltimer`` is up to two of its usual steps old.
    """
    return CLOCK_SKEW_CYCLES + (-(-TIMER_STEPS * step_ns * khz // 1_000_000) if clock == "globaltimer" else 0)


def _runs(request: CaptureRequest, launched: list[LaunchResult]) -> tuple[Run, ...]:
    """Every launch that tells how long its CTAs took; none if a wait gave up in one, or the launch was ended."""
    if request.fault is not None or any(run.gave_up for run in launched):
        return ()
    marks = request.subject.marks(request.params)
    return tuple(run_of(run, marks) for run in launched if run.traced or len(run.reports) or len(run.marks))


def _times(launched: list[LaunchResult], recorded: LaunchResult) -> dict[str, Any]:
    """How long the launches took."""
    return {
        "launch_ns": {
            name: [run.took_ns for run in launched if run.traced is traced and run.took_ns]
            for name, traced in (("untraced", False), ("traced", True))
        },
        "took_ms": recorded.took_ms,
    }


def _require_anchors(recorded: LaunchResult) -> None:
    """HardwareError if a CTA ended without having read both clocks at both its ends."""
    for which, when in ((0, "before its first record"), (1, "after its last")):
        missing = recorded.headers["anchors"][:, which]["globaltimer"] == 0
        if missing.any():
            raise HardwareError(
                f"CTA {int(np.argmax(missing))} did not read the clocks {when}",
                cause="without it its records cannot be placed in time",
                correction=f"let one thread of each CTA execute PIPESIM_ANCHOR(cta, {which}) there",
            )


def _count_begun(recorded: LaunchResult, most: int) -> int:
    """How many of the first CTAs reached their first anchor: the others have no place in time."""
    missing = np.flatnonzero(recorded.headers[:most]["anchors"][:, 0]["globaltimer"] == 0)
    return int(missing[0]) if len(missing) else most


def _with_report(cta: CtaInfo, recorded: LaunchResult, plan: Plan) -> CtaInfo:
    """The header with what the CTA reported at its end, if it reached one."""
    if recorded.status != Ending.FINISHED:
        return cta
    if not len(recorded.reports):
        return replace(cta, barrier_words=_final_barrier_words(cta.cta, recorded, plan))
    report = recorded.reports[cta.cta]
    barriers = sum(group.stages for group in plan.table.barriers)
    words = tuple(report["barrier_words"][:barriers].tolist())
    passes = tuple(report["iterations"][: len(plan.table.agents)].tolist()) if plan.needs.passes else ()
    return replace(cta, passes=passes, barrier_words=words)


def _final_barrier_words(cta: int, recorded: LaunchResult, plan: Plan) -> tuple[int, ...]:
    """The words of its barriers that a CTA of a kernel without reports left, () unless it left them all."""
    barriers = sum(group.stages for group in plan.table.barriers)
    if not len(recorded.words) or barriers > MAX_BARRIERS:
        return ()
    words = tuple(int(word) for word in recorded.words[cta, :barriers])
    return () if _UNWRITTEN in words else words
