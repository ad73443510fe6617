"""What a trace says of itself that does not depend on whose kernel was recorded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy.typing as npt

from hwkernels.capture.request import CaptureRequest, Layout
from hwkernels.capture.source import ForeignLayout, ForeignRequest
from hwkernels.capture.twin_request import KernelLayout, KernelRequest
from hwkernels.device.compile import Compiled
from hwkernels.device.launch import DeviceInfo
from hwkernels.recorder.decode import TIMER_STEPS, sm_khz, timer_step_ns
from hwkernels.recorder.layout import RECORD_WORDS
from pipesim.trace.schema import Device, TraceMeta

CLOCK_SKEW_CYCLES = 20  #: bound on the difference of %clock between the warps of an SM


def describe(
    request: CaptureRequest | ForeignRequest | KernelRequest,
    layout: Layout | ForeignLayout | KernelLayout,
    compiled: Compiled,
    info: DeviceInfo,
    headers: npt.NDArray[Any],
    rate: npt.NDArray[Any] | None,
) -> TraceMeta:
    """The description of a launch with these headers, before its records are decoded.

    ``rate``: headers that tell the SM clock where its own do not.
    """
    khz = sm_khz(headers) or (0 if rate is None else sm_khz(rate))
    step_ns = timer_step_ns(headers)
    return TraceMeta(
        source="hardware",
        protocol=request.protocol,
        params=dict(request.params),
        grid=request.ctas,
        device=Device(info.name, info.sms, info.capability, info.driver, compiled.nvrtc, khz, step_ns),
        agents=layout.table.agents,
        barriers=layout.table.barriers,
        sites=layout.table.sites,
        clock=request.clock,
        kernel_hash=compiled.kernel_hash,
        options=compiled.options,
        record_bytes=4 * RECORD_WORDS[request.clock],
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        extra={
            "order_error_cycles": order_error_cycles(request.clock, khz, step_ns),
            "capacity": layout.capacity,
            "seed": request.seed,
        },
    )


def order_error_cycles(clock: str, khz: int, step_ns: int) -> int:
    """Cycles by which two timestamps of one SM may stand in the wrong order.

    Two readings of ``%clock`` on one SM were at most 15 cycles apart when taken directly after a CTA barrier (2,000
    times, 8 warps, H100 and H200); a reading of ``%globaltimer`` is up to two of its usual steps old.
    """
    return CLOCK_SKEW_CYCLES + (-(-TIMER_STEPS * step_ns * khz // 1_000_000) if clock == "globaltimer" else 0)
