"""The launches that are recorded: each has an instrumented kernel and a buffer, is waited for, and leaves a file.

CUPTI reports what the driver is asked for, and the driver launches the function that it finds in those arguments when
the report returns. A launch that is recorded is waited for by the thread that made it. A kernel that waits for
something that the host does later (a flag in host memory, a kernel that is launched afterwards) can therefore not
continue; a deadline ends it.
"""

import _thread
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pipesim.bounds import MAX_RECORD_BYTES
from pipesim.inputs import json_value
from pipesim.launches.observe.driver import NOT_READY
from pipesim.launches.observe.loaded_images import KernelCode
from pipesim.launches.observe.observer import DescribedCall
from pipesim.launches.observe.spool import Spool
from pipesim.launches.record.buffer_file import LaunchEnd, RecordedBuffer
from pipesim.launches.record.memory import Buffer, CudaMemory, DeviceFacts
from pipesim.launches.record.options import NoBarrierError, NotRecordableError, RecordOptions
from pipesim.launches.record.requests import Prepare, ReadyKernel

SUFFIX = ".records"
GRACE_S = 2.0  #: that a kernel has to end after its stop word was set
_LOOK_S = 0.0002  #: between two looks at a stream
_ADDRESS_BYTES, _MAP_BYTES = 8, 128


@dataclass(frozen=True)
class _InstrumentedKernel:
    """An instrumented kernel that the driver has loaded."""

    made: ReadyKernel
    kernel: str
    function: int
    symbol: int


@dataclass(frozen=True)
class _LiveLaunch:
    """A launch that is recorded, from before its call on."""

    loaded: _InstrumentedKernel
    record: dict[str, Any]
    stream: int
    buffer: Buffer
    device: DeviceFacts
    began: float


class _RefusedError(Exception):
    """A launch is not recorded, for a reason."""


class RecordedLaunches:
    """Decides about each launch of this process: the :class:`Exchange` of its observer.

    ``prepare`` makes the instrumented kernel for a launch. No error here reaches the program: its own kernel is
    launched then, and the reason is in the records.
    """

    def __init__(self, driver: CudaMemory, spool: Spool, options: RecordOptions, prepare: Prepare) -> None:
        self._driver, self._spool, self._options, self._prepare = driver, spool, options, prepare
        self._launches: Counter[int] = Counter()
        self._loaded: dict[tuple[int, int, str], list[_InstrumentedKernel | str]] = {}  #: or the reason why not
        self._unwanted: set[int] = set()
        self._lock = threading.RLock()  #: held once for each launch that is running
        self._written_reasons: set[tuple[str, str]] = set()
        self._kept: list[_InstrumentedKernel] = []  #: which may run again
        self._thread = threading.local()  #: ``running``: what this thread launches, several kernels of a graph
        self.active = True
        self.follows_graphs = False  #: it is asked about each kernel of a graph that is launched

    def begin(
        self, function: int, stream: int, describe: Callable[[], DescribedCall], *, in_graph: bool = False
    ) -> int:
        """The instrumented kernel's function if the launch is to be recorded, else 0. With it, the lock is held."""
        if not self.active or function in self._unwanted:
            return 0
        capturing = self._driver.is_capturing(stream) if self.follows_graphs and not in_graph else False
        if capturing is not False:  # its launch comes with that of the graph
            if capturing is None:
                self._write_reason(describe().record, "the driver does not say whether its stream is being captured")
            return 0
        self._launches[function] += 1
        number = self._launches[function] - self._options.skip
        if not 1 <= number <= self._options.launches:
            return 0
        self._lock.acquire()
        running = None
        try:
            running = self._ready(function, stream, describe())
        except Exception as error:  # noqa: BLE001  # of ours
            self._note_failure(error)
        finally:
            if running is None:
                self._lock.release()
        if running is not None:  # those of one graph begin together
            self._thread.running = [*(replace(each, began=running.began) for each in self._running), running]
        return running.loaded.function if running is not None else 0

    @property
    def _running(self) -> list[_LiveLaunch]:
        return getattr(self._thread, "running", [])

    def is_done(self, function: int) -> bool:
        """Whether no more launch of a function will be recorded."""
        last = self._options.skip + self._options.launches
        return not self.active or function in self._unwanted or self._launches[function] >= last

    def end(self, *, launched: bool, keeps_buffers: bool = False) -> None:
        """After a launch: one that is recorded is waited for, and what is in its buffer is kept.

        ``keeps_buffers``: the instrumented kernels may run again.
        """
        ends, self._thread.stopped = set[LaunchEnd](), list[Buffer]()
        for running in self._running:
            try:
                ends.add(self._end(running, launched=launched, keeps_buffer=keeps_buffers))
            except Exception as error:  # noqa: BLE001  # of ours: the launch itself was made
                self._note_failure(error)
            finally:
                self._lock.release()
        self._kept += [each.loaded for each in self._running if keeps_buffers]
        self._thread.running = []
        if LaunchEnd.RUNNING in ends and self._options.ends_process:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)  # nothing else ends a process whose kernel does not

    def _ready(self, function: int, stream: int, described: DescribedCall) -> _LiveLaunch | None:
        code = described.code
        if code is None or not (code.name or self._options.dump):  # its own launch says why not
            self._unwanted.add(function)
            return None
        record = json_value(json.dumps(described.record), MAX_RECORD_BYTES)  # as it is read from the spool
        if record["via"] == "graph" and not self.follows_graphs:
            self._write_reason(record, "it was launched in a CUDA graph, which is recorded with a C compiler alone")
            return None
        try:
            loaded = self._instrumented_kernel(function, record, code)
            buffer = self._buffer(loaded, stream)
        except _RefusedError as refused:
            self._write_reason(record, str(refused))
            return None
        return _LiveLaunch(loaded, record, stream, buffer, self._driver.facts(), time.monotonic())

    def _instrumented_kernel(self, function: int, record: dict[str, Any], code: KernelCode) -> _InstrumentedKernel:
        """The instrumented kernel for this launch, made once for launches that are alike."""
        key = self._driver.context(), function, without_addresses(record)  # each context has its own variable
        busy = [*self._kept, *(each.loaded for each in self._running)]  # and so has each kernel of one launch
        found = next((each for each in self._loaded.get(key, ()) if each not in busy), None)
        if found is None:
            try:
                made = self._prepare(record, code.assembler)
            except NoBarrierError:
                found = ""
            except NotRecordableError as error:
                found = error.fact
            else:
                handle = self._driver.load(made.cubin, record["kernel"], function)
                symbol = self._driver.symbol(handle, made.symbol) if handle else 0
                found = (
                    _InstrumentedKernel(made, record["kernel"], handle, symbol)
                    if symbol
                    else "the driver does not load the instrumented kernel"
                )
            self._loaded.setdefault(key, []).append(found)
        if isinstance(found, str):
            if not found:
                self._unwanted.add(function)
            raise _RefusedError(found)
        return found

    def _buffer(self, loaded: _InstrumentedKernel, stream: int) -> Buffer:
        initial = loaded.made.initial
        buffer = self._driver.allocate(len(initial), host=self._options.stop_flag)
        if buffer is None:
            raise _RefusedError(f"there is no memory for its buffer of {len(initial):,} bytes")
        status = self._driver.fill(buffer, initial, stream)
        status = status or self._driver.set_symbol(loaded.symbol, buffer.address, stream)
        if status:
            self._driver.free(buffer)
            raise _RefusedError(f"its buffer cannot be filled: the driver's error {status}")
        return buffer

    def _end(self, running: _LiveLaunch, *, launched: bool, keeps_buffer: bool) -> LaunchEnd:
        """How it ended; its buffer is kept."""
        if not launched:
            self._driver.free(running.buffer)
            return LaunchEnd.FINISHED
        end, status = self._wait(running)
        took = time.monotonic() - running.began
        data = self._driver.contents(running.buffer)
        if end in (LaunchEnd.FINISHED, LaunchEnd.STOPPED) and not keeps_buffer:
            self._driver.free(running.buffer)
        if data is None:
            self._write_reason(running.record, f"its records were lost: the driver's error {status}; give a deadline")
            return end
        if end is LaunchEnd.FINISHED and data == running.loaded.made.initial:
            self._write_reason(running.record, "the driver launched the program's own kernel: it left no record")
            return end
        facts = running.device
        device, nanoseconds = (facts.name, facts.sms, facts.capability, facts.driver), round(took * 1e9)
        made = self._options.stop_flag, self._options.waits_only, self._options.cta
        recorded = RecordedBuffer(end, *device, nanoseconds, data, *made)
        file = self._spool.code(recorded.encode(), SUFFIX)
        if file:
            self._spool.write({"kind": "recorded", "launch": running.record, "file": file, "reason": ""})
        else:
            self._write_reason(running.record, "the limit on bytes was reached")
        if end is LaunchEnd.RUNNING:
            then = "this process is ended" if self._options.ends_process else "it is still running"
            _print_line(f"{running.loaded.kernel} does not end: its records so far are kept, and {then}")
        return end

    def _wait(self, running: _LiveLaunch) -> tuple[LaunchEnd, int]:
        """How the launch ended, and the driver's status; it is stopped at its deadline."""
        deadline, stopped = self._options.deadline_s, bool(self._thread.stopped)
        try:
            while (status := self._driver.status(running.stream)) == NOT_READY:
                took = time.monotonic() - running.began
                if deadline is not None and not stopped and took >= deadline:
                    stopped = True
                    self._stop_what_has_begun()
                elif deadline is not None and stopped and took >= deadline + GRACE_S:
                    return LaunchEnd.RUNNING, status
                time.sleep(_LOOK_S)
        except KeyboardInterrupt:
            _thread.interrupt_main()  # the program gets it when its launch returns
            return LaunchEnd.RUNNING, NOT_READY
        if status:
            return LaunchEnd.FAILED, status
        return LaunchEnd.STOPPED if running.buffer in self._thread.stopped else LaunchEnd.FINISHED, status

    def _stop_what_has_begun(self) -> None:
        """Of a graph the kernels that left a record: those after one that hangs then run as they are."""
        begun = [each for each in self._running if self._driver.contents(each.buffer) != each.loaded.made.initial]
        for each in begun or self._running:
            self._thread.stopped.append(each.buffer)
            self._driver.stop(each.buffer)

    def _write_reason(self, record: dict[str, Any], reason: str) -> None:
        key = record["kernel"], reason
        if reason and key not in self._written_reasons:
            self._written_reasons.add(key)
            self._spool.write({"kind": "recorded", "launch": record, "file": "", "reason": reason})

    def _note_failure(self, error: Exception) -> None:
        self._spool.note(f"a launch was not recorded: {type(error).__name__}: {error}")


def without_addresses(record: dict[str, Any]) -> str:
    """What the kernel for a launch depends on: of an address its alignment, of a tensor map what it was made with."""
    plain: list[Any] = []
    for each in record.get("parameters", ()):
        data = bytearray.fromhex(each["bytes"])
        for nbytes, places in ((_ADDRESS_BYTES, each["pointers"]), (_MAP_BYTES, each["maps"])):
            for place in places:
                data[place["at"] : place["at"] + nbytes] = bytes(nbytes)
        plain.append([data.hex(), each["pointers"], each["maps"]])
    return json.dumps(record | {"parameters": plain, "in_graph": ""}, sort_keys=True)


def _print_line(text: str) -> None:
    with suppress(OSError, ValueError):
        print(f"pipesim: {text}", file=sys.stderr, flush=True)
