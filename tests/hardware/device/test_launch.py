"""Several launches as one measurement: all are in the stream before the first begins."""

# ruff: noqa: N802 - names of the driver

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hwkernels.device.launch import Gpu, Shape
from pipesim.errors import HardwareError

SHAPE = Shape((1,), (32,), 0, 1)


class Stream:
    """A driver with one stream: what it is asked for, with the word of the gate at each moment."""

    CUresult = SimpleNamespace(CUDA_SUCCESS=0, CUDA_ERROR_NOT_READY=600)
    CUstreamWaitValue_flags = SimpleNamespace(CU_STREAM_WAIT_VALUE_EQ=1)
    CUdeviceptr = int

    def __init__(self) -> None:
        self.gate = np.array([7, 0, 0, 0], dtype=np.uint8)
        self.asked: list[tuple[str, int]] = []
        self.refuses = 0  #: the launch that fails

    def say(self, what: str) -> None:
        self.asked.append((what, int(self.gate.view("<u4")[0])))

    def cuEventCreate(self, flags: int) -> tuple[int, str]:
        return 0, "event"

    def cuEventRecord(self, event: str, stream: str) -> tuple[int]:
        self.say("record")
        return (0,)

    def cuStreamWaitValue32(self, stream: str, address: int, value: int, flags: int) -> tuple[int]:
        assert (address, value, flags) == (4096, 1, 1)
        self.say("wait for 1")
        return (0,)

    def cuStreamQuery(self, stream: str) -> tuple[int]:
        self.say("query")
        return (0,)

    def cuEventElapsedTime(self, begin: str, end: str) -> tuple[int, float]:
        return 0, 0.25

    def cuEventDestroy(self, event: str) -> None:
        pass


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    made: Any = Gpu.__new__(Gpu)
    made._driver, made._stream, made._gate = Stream(), SimpleNamespace(handle="stream"), None
    monkeypatch.setattr(made, "host_mapped", lambda nbytes: (4096, made._driver.gate[:nbytes]))

    def start(kernel: Any, shape: Shape, arguments: Any) -> None:
        made._driver.say("launch")
        if len(made._driver.asked) == made._driver.refuses:
            raise HardwareError("the launch failed")

    monkeypatch.setattr(made, "_start", start)
    return made


def test_all_launches_are_in_the_stream_before_it_goes_on(gpu: Any) -> None:
    held = [("wait for 1", 0), ("record", 0), ("launch", 0), ("launch", 0), ("launch", 0), ("record", 0), ("query", 1)]
    for _ in range(2):  # the gate of the first is used again
        gpu._driver.asked.clear()
        assert gpu.launch_within("kernel", SHAPE, [], 1.0, times=3) == 250_000
        assert gpu._driver.asked == held


def test_one_launch_is_not_held(gpu: Any) -> None:
    assert gpu.launch_within("kernel", SHAPE, [], 1.0) == 250_000
    assert gpu._driver.asked == [("record", 7), ("launch", 7), ("record", 7), ("query", 7)]


def test_a_launch_that_fails_leaves_no_stream_that_waits_for_ever(gpu: Any) -> None:
    gpu._driver.refuses = 4
    with pytest.raises(HardwareError, match="the launch failed"):
        gpu.launch_within("kernel", SHAPE, [], 1.0, times=3)
    assert gpu._driver.gate.view("<u4").tolist() == [1]
