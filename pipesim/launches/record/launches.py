"""The launches that are recorded: each has an instrumented kernel and a buffer, is waited for, and leaves a file.

What a launch's parameters are is learned from a dry run: the framework launches in a stream whose work becomes a graph,
which is never run, and CUPTI reports what the driver was asked for. A launch that is recorded is waited for by the
thread that made it. A kernel that waits for something that the host does later (a flag in host memory, a kernel that
is launched afterwards) can therefore not continue; a deadline ends it.
"""

from __future__ import annotations

import _thread
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pipesim.bounds import MAX_RECORD_BYTES
from pipesim.errors import PipesimError
from pipesim.inputs import json_value
from pipesim.launches.observe.compilers import CompiledPtx
from pipesim.launches.observe.driver import NOT_READY
from pipesim.launches.observe.loaded_images import KernelCode
from pipesim.launches.observe.observer import DryLaunch, LaunchObserver
from pipesim.launches.observe.spool import Spool
from pipesim.launches.record.gather import LaunchEnd, RecordedBuffer
from pipesim.launches.record.memory import Buffer, CudaMemory
from pipesim.launches.record.preparation import Assembler, NoBarrierError, PreparedKernel, RecordOptions, prepare_kernel

SUFFIX = ".records"
GRACE_S = 2.0  #: that a kernel has to end after its stop word was set
_LOOK_S = 0.0002  #: between two looks at a stream

Prepare = Callable[[dict[str, Any], str, RecordOptions, Assembler], PreparedKernel]


@dataclass(frozen=True)
class _InstrumentedKernel:
    """An instrumented kernel that the driver has loaded."""

    made: PreparedKernel
    function: int
    symbol: int


@dataclass(frozen=True)
class _LiveLaunch:
    """A launch that is recorded, from before its call on."""

    loaded: _InstrumentedKernel
    record: dict[str, Any]
    stream: int
    buffer: Buffer
    began: float


class _RefusedError(Exception):
    """A launch is not recorded, for a reason."""


class RecordedLaunches:
    """Decides about each launch that a framework reports. ``prepare`` instruments a kernel for a launch.

    No error here reaches the program: its own kernel is launched then, and the reason is in the records.
    """

    def __init__(
        self,
        driver: CudaMemory,
        observer: LaunchObserver,
        spool: Spool,
        options: RecordOptions,
        compiled: CompiledPtx,
        prepare: Prepare = prepare_kernel,
    ) -> None:
        self._driver, self._observer, self._spool, self._options = driver, observer, spool, options
        self._compiled, self._prepare = compiled, prepare
        self._launches: Counter[int] = Counter()
        self._loaded: dict[tuple[int, str], _InstrumentedKernel | str] = {}  #: or the reason why not
        self._unwanted: set[int] = set()
        self._lock = threading.Lock()
        self._written_reasons: set[tuple[str, str]] = set()
        self.active = True

    @contextmanager
    def recorded_launch(
        self,
        function: int,
        stream: int,
        dry: Callable[[int], object],
        assembler: Assembler = Assembler(),  # noqa: B008
    ) -> Iterator[int]:
        """Within, the program launches the function that this yields; after it, a launch that is recorded has ended.

        ``dry`` makes the same launch of the program's own function in another stream. ``assembler``: that of the
        kernel's compiler.
        """
        running = self._begin(function, stream, dry, assembler)
        if running is None:
            yield function
            return
        launched = False
        try:
            yield running.loaded.function
            launched = True
        finally:
            try:
                self._end(running, launched=launched)
            except Exception as error:  # noqa: BLE001  # of ours: the launch itself was made
                self._note_failure(error)
            finally:
                self._lock.release()

    def _begin(
        self, function: int, stream: int, dry: Callable[[int], object], assembler: Assembler
    ) -> _LiveLaunch | None:
        """The launch with its buffer, and the lock; None if it is not to be recorded."""
        if not self.active or function in self._unwanted:
            return None
        self._launches[function] += 1
        number = self._launches[function] - self._options.skip
        if not 1 <= number <= self._options.launches:
            return None
        self._lock.acquire()
        running = None
        try:
            running = self._ready(function, stream, dry, assembler)
        except Exception as error:  # noqa: BLE001  # of ours, or of the framework in its dry run
            self._note_failure(error)
        finally:
            if running is None:
                self._lock.release()
        return running

    def _ready(
        self, function: int, stream: int, dry: Callable[[int], object], assembler: Assembler
    ) -> _LiveLaunch | None:
        described = self._dry_launch(stream, dry)
        if described is None or described.code is None or not described.code.name:  # its own launch says why not
            self._unwanted.add(function)
            return None
        record = json_value(json.dumps(described.record), MAX_RECORD_BYTES)  # as it is read from the spool
        if not described.code.text:
            self._write_reason(record, "its PTX is in a fat binary, which a framework of Python does not load")
            return None
        if self._driver.is_capturing(stream):
            self._write_reason(record, "it was launched in a CUDA graph; record it where it is launched by a stream")
            return None
        try:
            loaded = self._instrumented_kernel(function, record, described.code, assembler)
            buffer = self._buffer(loaded, stream)
        except _RefusedError as refused:
            self._write_reason(record, str(refused))
            return None
        return _LiveLaunch(loaded, record, stream, buffer, time.monotonic())

    def _dry_launch(self, stream: int, dry: Callable[[int], object]) -> DryLaunch | None:
        """What the driver is asked for by the launch; None if that is not seen."""
        beside = self._driver.begin_dry_run()
        if not beside:
            return None
        try:
            with self._observer.dry_run(stream) as found:
                dry(beside)
        finally:
            self._driver.end_dry_run(beside)
        return found[-1] if found else None

    def _instrumented_kernel(
        self, function: int, record: dict[str, Any], code: KernelCode, assembler: Assembler
    ) -> _InstrumentedKernel:
        """The instrumented kernel for this launch, made once for launches that are alike."""
        key = function, json.dumps(record, sort_keys=True)
        found = self._loaded.get(key)
        if found is None:
            text = code.text.rstrip(b"\0")
            try:
                made = self._prepare(record, text.decode("utf-8"), self._options, assembler)
            except NoBarrierError:
                found = ""
            except PipesimError as error:
                found = f"{error.fact}: {error.cause}" if error.cause else error.fact
            else:
                self._compiled.note(made.cubin, text, code.origin)  # its launches are those of the original text
                handle = self._driver.load(made.cubin, made.kernel, function)
                symbol = self._driver.symbol(handle, made.symbol) if handle else 0
                found = (
                    _InstrumentedKernel(made, handle, symbol)
                    if symbol
                    else "the driver does not load the instrumented kernel"
                )
                self._write_made(record, made)
            self._loaded[key] = found
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

    def _end(self, running: _LiveLaunch, *, launched: bool) -> None:
        if not launched:
            self._driver.free(running.buffer)
            return
        end, status = self._wait(running)
        took = time.monotonic() - running.began
        data = self._driver.contents(running.buffer)
        if end in (LaunchEnd.FINISHED, LaunchEnd.STOPPED):
            self._driver.free(running.buffer)
        if data is None:
            self._write_reason(running.record, f"its records were lost: the driver's error {status}; give a deadline")
            return
        facts = self._driver.facts()
        device, nanoseconds = (facts.name, facts.sms, facts.capability, facts.driver), round(took * 1e9)
        made = self._options.stop_flag, self._options.waits_only, self._options.cta
        recorded = RecordedBuffer(end, *device, nanoseconds, data, *made)
        file = self._spool.code(recorded.encode(), SUFFIX)
        if file:
            self._spool.write({"kind": "recorded", "launch": running.record, "file": file, "reason": ""})
        else:
            self._write_reason(running.record, "the limit on bytes was reached")
        if end is LaunchEnd.RUNNING:
            ends = self._options.ends_process
            kernel, then = running.loaded.made.kernel, "this process is ended" if ends else "it is still running"
            _print_line(f"{kernel} does not end: its records so far are kept, and {then}")
            if ends:
                with suppress(OSError, ValueError):
                    sys.stdout.flush()
                os.kill(os.getpid(), signal.SIGKILL)  # nothing else ends a process whose kernel does not

    def _wait(self, running: _LiveLaunch) -> tuple[LaunchEnd, int]:
        """How the launch ended, and the driver's status; it is stopped at its deadline."""
        deadline, stopped = self._options.deadline_s, False
        try:
            while (status := self._driver.status(running.stream)) == NOT_READY:
                took = time.monotonic() - running.began
                if deadline is not None and not stopped and took >= deadline:
                    stopped = True
                    self._driver.stop(running.buffer)
                elif deadline is not None and stopped and took >= deadline + GRACE_S:
                    return LaunchEnd.RUNNING, status
                time.sleep(_LOOK_S)
        except KeyboardInterrupt:
            _thread.interrupt_main()  # the program gets it when its launch returns
            return LaunchEnd.RUNNING, NOT_READY
        if status:
            return LaunchEnd.FAILED, status
        return LaunchEnd.STOPPED if stopped else LaunchEnd.FINISHED, status

    def _write_made(self, record: dict[str, Any], made: PreparedKernel) -> None:
        before, after = made.before, made.after
        self._spool.write(
            {
                "kind": "instrumented",
                "kernel": made.kernel,
                "code": record["code"],
                "registers": [before.registers, after.registers],
                "spills": [before.spills, after.spills],
                "stack": [before.stack, after.stack],
                "warnings": [each[:400] for each in made.warnings[:8]],
            }
        )

    def _write_reason(self, record: dict[str, Any], reason: str) -> None:
        key = record["kernel"], reason
        if reason and key not in self._written_reasons:
            self._written_reasons.add(key)
            self._spool.write({"kind": "recorded", "launch": record, "file": "", "reason": reason})

    def _note_failure(self, error: Exception) -> None:
        self._spool.note(f"a launch was not recorded: {type(error).__name__}: {error}")


def _print_line(text: str) -> None:
    with suppress(OSError, ValueError):
        print(f"pipesim: {text}", file=sys.stderr, flush=True)
