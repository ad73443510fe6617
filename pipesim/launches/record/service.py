"""The side of the command: it puts the records into a kernel for each launch that an observed process asks about."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pipesim.bounds import MAX_RECORD_BYTES, MAX_SPOOL_BYTES
from pipesim.errors import PipesimError, UsageError, internal_error
from pipesim.inputs import InputKind, json_value
from pipesim.launches.files.embedded_ptx import dumped_so_far
from pipesim.launches.files.found_ptx import Codes
from pipesim.launches.observe.compilers import Assembler
from pipesim.launches.observe.parameters import pointers_wanted
from pipesim.launches.observe.spool import Spool
from pipesim.launches.record.launches import without_addresses
from pipesim.launches.record.options import NoBarrierError, NotRecordableError, RecordOptions
from pipesim.launches.record.preparation import PreparedKernel, prepare_kernel
from pipesim.launches.record.requests import (
    ALIKE,
    ANSWER,
    CUBIN,
    INITIAL,
    MADE,
    PLAIN,
    REFUSED,
    REQUEST,
    ReadyKernel,
    put_whole,
)
from pipesim.launches.records.read import LAUNCH_MEMBERS, launch_record
from pipesim.ptx.launch.members import Members

_LOOK_S = 0.01
_LAST_S = 5.0  #: that a kernel may still take whose process has ended
_REQUEST = InputKind("request", MAX_RECORD_BYTES, UsageError, "record the program again")


class Preparation:
    """Makes the instrumented kernels of one recording, whose PTX is in the spool folder, and notes what became of each.

    ``ready`` is what a process asks that has all of pipesim; others ask by files, which ``answer`` reads.
    """

    def __init__(self, folder: Path, options: RecordOptions) -> None:
        self._folder, self._options = folder, options
        self._codes, self._spool = Codes(folder), Spool(folder, MAX_SPOOL_BYTES)
        self._made: dict[tuple[str, Assembler], ReadyKernel] = {}  #: kernels of one graph may be alike

    def ready(self, record: dict[str, Any], assembler: Assembler = Assembler()) -> ReadyKernel:  # noqa: B008
        """The kernel for a launch. Raises NoBarrierError or NotRecordableError."""
        key = without_addresses(record), assembler
        if key in self._made:
            return self._made[key]
        try:
            if self._options.dump and not record["code"]:
                self._codes.dump = dumped_so_far(Path(self._options.dump))
            found = self._codes.code_of(launch_record(Members(record, "launch", LAUNCH_MEMBERS)))
            if not found.text:
                raise NotRecordableError(found.reason)
            made = prepare_kernel(record, found.text, self._options, assembler)
        except NoBarrierError:
            raise
        except PipesimError as error:
            raise NotRecordableError(f"{error.fact}: {error.cause}" if error.cause else error.fact) from error
        self._note(record, made)
        by_memory = bool(pointers_wanted(found.text.encode(), record["kernel"]))
        self._made[key] = ReadyKernel(made.cubin, made.symbol, made.initial, by_memory)
        return self._made[key]

    def answer(self, request: Path) -> None:
        """Answer one request. No error of it ends the service."""
        try:
            given = json_value(_REQUEST.read_bytes(request).decode(), MAX_RECORD_BYTES)
            by = given.get("assembler", {})
            made = self.ready(given["launch"], Assembler(by.get("ptxas", ""), tuple(by.get("options", ()))))
            put_whole(request.with_suffix(CUBIN), made.cubin)
            put_whole(request.with_suffix(INITIAL), made.initial)
            said = f"{MADE if made.by_memory else ALIKE}\n{made.symbol}"
        except NoBarrierError:
            said = f"{PLAIN}\n"
        except Exception as error:  # noqa: BLE001  # a mistake of ours in one launch must not lose the others
            fact = error.fact if isinstance(error, PipesimError) else internal_error(error).fact
            said = f"{REFUSED}\n{fact}"
        with suppress(OSError):
            request.unlink()
        put_whole(request.with_suffix(ANSWER), said.encode())

    def close(self) -> None:
        """Close its records."""
        self._spool.close()

    def _note(self, record: dict[str, Any], made: PreparedKernel) -> None:
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


@contextmanager
def answering(folder: Path, options: RecordOptions) -> Iterator[None]:
    """Within, the requests of the processes that write to a spool folder are answered, by a thread of this process."""
    ended, service = threading.Event(), Preparation(folder, options)

    def serve() -> None:
        while not ended.wait(_LOOK_S):
            for request in sorted(folder.glob(f"*{REQUEST}")):
                service.answer(request)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_LAST_S)
        service.close()
