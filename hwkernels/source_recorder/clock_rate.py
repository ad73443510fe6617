"""The rate of the SM clock, measured by a kernel that does nothing else: a kernel that hangs cannot tell it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.device.compile import compile_cubin
from hwkernels.device.launch import Gpu, warm_up
from hwkernels.device.sources import RECORDER
from hwkernels.source_recorder.layout import HEADER, LAUNCH

_RATE_NS = 200_000  # between the two anchors that tell the clock's rate


def clock_rate(gpu: Gpu) -> npt.NDArray[Any]:
    """Run a kernel that only reads both clocks twice, until they have risen; its last header."""
    kernel = gpu.load(compile_cubin(RECORDER / "clock_rate.cu", {"PIPESIM_TRACE": 1}), 0)
    headers = np.zeros(1, dtype=HEADER)
    launch_at, header_at = gpu.allocate(LAUNCH.itemsize), gpu.allocate(headers.nbytes)
    gpu.upload(header_at, headers)
    launch = np.zeros(1, dtype=LAUNCH)
    launch["ctas"] = header_at
    gpu.upload(launch_at, launch)
    warm_up(lambda: gpu.launch(kernel, (1, 1, 0), [np.uint32(_RATE_NS), launch_at]))
    gpu.download(header_at, headers)
    return headers
