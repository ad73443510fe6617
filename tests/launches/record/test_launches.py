"""Launches that are recorded: which they are, what takes the kernel's place, how long they are waited for."""

import _thread
import json
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pipesim.launches.observe.driver import NOT_READY
from pipesim.launches.observe.loaded_images import KernelCode
from pipesim.launches.observe.observer import DescribedCall
from pipesim.launches.observe.spool import Spool
from pipesim.launches.record import launches as module
from pipesim.launches.record.buffer_file import LaunchEnd, decode_buffer
from pipesim.launches.record.launches import RecordedLaunches
from pipesim.launches.record.memory import Buffer, CudaMemory, DeviceFacts
from pipesim.launches.record.options import NotRecordableError, RecordOptions
from pipesim.launches.record.requests import ReadyKernel

SYMBOL = "pipesim_buffer"
FACTS = DeviceFacts("NVIDIA H200", 132, (9, 0), 13000)
PTX = "// the text\n"
RECORD: dict[str, Any] = {"kernel": "gemm", "code": "gemm.ptx", "grid": [4, 1, 1], "via": "launch"}
CODE = KernelCode("gemm.ptx", "Triton", "", PTX.encode())
#: Handles: the program's function, the instrumented one; addresses: its variable, a buffer.
OWN, INSTRUMENTED, VARIABLE, BUFFER = 1, 2, 0x1000, 0x9000


READY = ReadyKernel(b"\x7fELF" + PTX.encode(), SYMBOL, bytes(16))


@dataclass
class FakeRecordingDriver(CudaMemory):
    """Does what it is asked, and notes it. ``busy``: looks at the stream until it has done its work.

    -1: until it is stopped; -2: for ever. ``error``: the status of the stream at its end. ``writes``: what the kernel
    leaves in its buffer, None if that cannot be read. ``memory``: bytes that there are.
    """

    busy: int = 0
    error: int = 0
    writes: bytes | None = b"records."
    variable: int = VARIABLE
    memory: int = 1 << 20
    capturing: bool = False
    now: int = 1
    log: list[tuple[Any, ...]] = field(default_factory=list)
    stopped: bool = False

    def is_capturing(self, stream: int) -> bool:
        """As the test says."""
        return self.capturing

    def context(self) -> int:
        """What the test says."""
        return self.now

    def load(self, cubin: bytes, kernel: str, like: int) -> int:
        """Noted."""
        self.log.append(("load", kernel, like))
        return INSTRUMENTED

    def symbol(self, function: int, name: str) -> int:
        """The address of the one variable."""
        assert (function, name) == (INSTRUMENTED, SYMBOL)
        return self.variable

    def allocate(self, nbytes: int, *, host: bool) -> Buffer | None:
        """A buffer, always at one place."""
        self.log.append(("allocate", nbytes, "host" if host else "device"))
        return Buffer(BUFFER, BUFFER if host else 0, nbytes) if nbytes <= self.memory else None

    def free(self, buffer: Buffer) -> None:
        """Noted."""
        self.log.append(("free", buffer.address))

    def fill(self, buffer: Buffer, data: bytes, stream: int) -> int:
        """Noted."""
        self.log.append(("fill", len(data), stream))
        return 0

    def set_symbol(self, symbol: int, address: int, stream: int) -> int:
        """Noted."""
        self.log.append(("symbol", symbol, address, stream))
        return 0

    def status(self, stream: int) -> int:
        """NOT_READY as long as the test says."""
        if self.busy == -2 or (self.busy == -1 and not self.stopped):
            return NOT_READY
        if self.busy > 0:
            self.busy -= 1
            return NOT_READY
        return self.error

    def stop(self, buffer: Buffer) -> None:
        """Noted; a kernel that looks at the word ends."""
        self.log.append(("stop", buffer.address))
        self.stopped = True

    def contents(self, buffer: Buffer) -> bytes | None:
        """What the kernel has written."""
        return None if self.writes is None else self.writes.ljust(buffer.nbytes, b"\0")

    def facts(self) -> DeviceFacts:
        """One device."""
        return FACTS


LOADED = [("load", "gemm", OWN)]
FILLED = [("allocate", 16, "device"), ("fill", 16, 7), ("symbol", VARIABLE, BUFFER, 7)]
FREED = [("free", BUFFER)]


class World:
    """A process that launches one kernel in stream 7."""

    def __init__(
        self, folder: Path, options: RecordOptions | None = None, code: KernelCode | None = CODE, **driver: Any
    ) -> None:
        self.folder, self.driver, self.code = folder, FakeRecordingDriver(**driver), code
        self.asked, self.launched = list[dict[str, Any]](), list[int]()
        self.launches = RecordedLaunches(self.driver, Spool(folder, 1 << 20), options or RecordOptions(), self.prepare)

    def prepare(self, record: dict[str, Any], *_: Any) -> Any:
        self.asked.append(record)
        return READY

    def launch(self, *, taken: bool = True) -> None:
        chosen = self.launches.begin(OWN, 7, lambda: DescribedCall(dict(RECORD), self.code))
        self.launched.append(chosen or OWN)
        self.launches.end(launched=taken)

    def lines(self, kind: str = "recorded") -> list[dict[str, Any]]:
        (file,) = self.folder.glob("*.jsonl")
        return [each for each in map(json.loads, file.read_text().splitlines()) if each["kind"] == kind]

    def end(self) -> LaunchEnd:
        (line,) = self.lines()
        return decode_buffer((self.folder / line["file"]).read_bytes(), "x").end


def test_one_launch_takes_place_with_the_instrumented_kernel(tmp_path: Path) -> None:
    world = World(tmp_path, busy=3)
    world.launch()
    assert world.launched == [INSTRUMENTED]
    assert world.driver.log == [*LOADED, *FILLED, *FREED]
    assert world.asked == [RECORD]
    (line,) = world.lines()
    assert (line["reason"], line["launch"]) == ("", RECORD)
    kept = decode_buffer((tmp_path / line["file"]).read_bytes(), "x")
    assert (kept.end, kept.device, kept.sms, kept.capability, kept.driver, kept.stop_flag) == (
        LaunchEnd.FINISHED, "NVIDIA H200", 132, (9, 0), 13000, False,
    )  # fmt: skip
    assert kept.data == b"records.".ljust(16, b"\0")


def test_the_launches_that_are_asked_for(tmp_path: Path) -> None:
    world = World(tmp_path, RecordOptions(launches=2, skip=1))
    for _ in range(5):
        world.launch()
    assert world.launched == [OWN, INSTRUMENTED, INSTRUMENTED, OWN, OWN]
    assert world.driver.log == [*LOADED, *FILLED, *FREED, *FILLED, *FREED]  # alike: made once
    assert (len(world.lines()), len(world.asked)) == (2, 1)


def test_a_kernel_that_two_contexts_launch_has_a_variable_in_each(tmp_path: Path) -> None:
    world = World(tmp_path, RecordOptions(launches=2))
    world.launch()
    world.driver.now = 2
    world.launch()
    assert world.driver.log == [*LOADED, *FILLED, *FREED, *LOADED, *FILLED, *FREED]


@pytest.mark.parametrize("code", [None, KernelCode("", why_not="machine code only")])
def test_kernels_that_are_not_wanted_or_have_no_ptx_are_left_alone(tmp_path: Path, code: Any) -> None:
    world = World(tmp_path, RecordOptions(launches=9), code)
    world.launch()
    world.launch()
    assert (world.launched, world.driver.log, world.lines()) == ([OWN, OWN], [], [])


@pytest.mark.parametrize(
    ("given", "launched", "reason"),
    [
        ({"variable": 0}, OWN, "the driver does not load the instrumented kernel"),
        ({"memory": 8}, OWN, "there is no memory for its buffer of 16 bytes"),
        ({"writes": bytes(16)}, INSTRUMENTED, "the driver launched the program's own kernel: it left no record"),
        (
            {"error": 719, "writes": None},
            INSTRUMENTED,
            "its records were lost: the driver's error 719; give a deadline",
        ),
    ],
)
def test_what_cannot_be_recorded_is_launched_and_said_once(
    tmp_path: Path, given: Any, launched: int, reason: str
) -> None:
    world = World(tmp_path, RecordOptions(launches=2), **given)
    world.launch()
    world.launch()
    assert world.launched == [launched] * 2
    assert [(line["file"], line["reason"]) for line in world.lines()] == [("", reason)]


def test_a_kernel_that_cannot_be_instrumented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, RecordOptions(launches=2))

    def refuse(*_: Any) -> Any:
        raise NotRecordableError("it cannot be followed: a warp stops")

    monkeypatch.setattr(world.launches, "_prepare", refuse)
    world.launch()
    world.launch()
    assert [line["reason"] for line in world.lines()] == ["it cannot be followed: a warp stops"]


def test_a_mistake_of_ours_does_not_reach_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, RecordOptions(launches=2))

    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("a mistake")

    with monkeypatch.context() as patch:
        patch.setattr(world.launches, "_prepare", fail)
        world.launch()
    assert world.launched == [OWN]
    assert [note["text"] for note in world.lines("note")] == ["a launch was not recorded: ZeroDivisionError: a mistake"]
    world.launch()  # and the thread that failed holds no lock
    assert world.launched[-1] == INSTRUMENTED


def test_a_launch_that_the_driver_refuses(tmp_path: Path) -> None:
    world = World(tmp_path, RecordOptions(launches=2))
    world.launch(taken=False)
    assert world.driver.log == [*LOADED, *FILLED, *FREED]
    assert world.lines() == []
    world.launch()
    assert world.launched[-1] == INSTRUMENTED


def test_a_launch_beyond_its_deadline_is_stopped(tmp_path: Path) -> None:
    world = World(tmp_path, RecordOptions(deadline_s=0.001), busy=-1)
    world.launch()
    assert ("allocate", 16, "host") in world.driver.log  # a trap would take the device's memory with it
    assert world.driver.log[-2:] == [("stop", BUFFER), ("free", BUFFER)]
    assert world.end() is LaunchEnd.STOPPED


def test_a_program_of_the_command_is_ended_where_its_kernel_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(module, "GRACE_S", 0.001)
    monkeypatch.setattr(os, "kill", lambda _process, number: sent.append(number))
    world = World(tmp_path, RecordOptions(deadline_s=0.001, ends_process=True), busy=-2)
    world.launch()
    assert (world.end(), sent) == (LaunchEnd.RUNNING, [signal.SIGKILL])
    assert ("free", BUFFER) not in world.driver.log  # the kernel may still write there
    assert "its records so far are kept, and this process is ended" in capsys.readouterr().err


def test_ctrl_c_keeps_the_records_and_goes_on_to_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, interrupted = World(tmp_path, busy=-2), list[bool]()

    def sleep(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(_thread, "interrupt_main", lambda: interrupted.append(True))
    world.launch()
    assert interrupted == [True]
    assert world.end() is LaunchEnd.RUNNING
