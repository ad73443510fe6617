"""What the process that launches a kernel asks of the command that records it: an instrumented kernel for a launch.

A request and its answer are files of the spool folder, each whole under its name: ``NAME.request`` has the launch as a
record, ``NAME.answer`` says in its first line whether the kernel was made, and in its second one the name of its
variable, or why not; ``NAME.cubin`` and ``NAME.initial`` are the machine code and what its buffer must hold.
"""

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from pipesim.bounds import MAX_CUBIN_BYTES, MAX_RECORD_BYTES, MAX_TEXT
from pipesim.errors import UsageError
from pipesim.inputs import InputKind
from pipesim.launches.observe.compilers import Assembler
from pipesim.launches.record.options import NO_BARRIER, NoBarrierError, NotRecordableError

REQUEST, ANSWER, CUBIN, INITIAL = ".request", ".answer", ".cubin", ".initial"
#: The first line of an answer. ALIKE: made, also for launches that differ from this one in addresses and memory alone.
MADE, ALIKE, PLAIN, REFUSED = "made", "alike", "plain", "refused"
PATIENCE_S = 300.0  #: that a launch is held up for its kernel
_LOOK_S = 0.005
_TEXT = InputKind("answer", MAX_TEXT, UsageError, "record the program again")
_CODE = InputKind("instrumented kernel", max(MAX_CUBIN_BYTES, MAX_RECORD_BYTES), UsageError, "record fewer kernels")
_numbers = count()


@dataclass(frozen=True)
class ReadyKernel:
    """An instrumented kernel: its machine code, the variable for its buffer, and what the buffer must hold before.

    ``by_memory``: words in memory decide where its records are.
    """

    cubin: bytes
    symbol: str
    initial: bytes
    by_memory: bool = False


#: The kernel for a launch, which is given as a record. Raises NoBarrierError or NotRecordableError.
Prepare = Callable[[dict[str, Any], Assembler], ReadyKernel]


def put_whole(path: Path, data: bytes) -> None:
    """Write a file that nothing sees before it is whole."""
    hidden = path.with_suffix(f"{path.suffix}.part")
    hidden.write_bytes(data)
    hidden.rename(path)


def asked_in(folder: Path) -> Prepare:
    """What asks the command that observes this process, by files of its folder."""

    def ask(record: dict[str, Any], assembler: Assembler) -> ReadyKernel:
        stem = f"{os.getpid()}-{threading.get_ident():x}-{next(_numbers)}"
        request, answer = (folder / f"{stem}{suffix}" for suffix in (REQUEST, ANSWER))
        put_whole(request, json.dumps({"launch": record, "assembler": asdict(assembler)}).encode())
        end = time.monotonic() + PATIENCE_S
        while not answer.exists():
            if time.monotonic() > end:
                raise NotRecordableError(f"its records were not put in within {PATIENCE_S:g} s")
            time.sleep(_LOOK_S)
        kind, _, said = _TEXT.read_bytes(answer).decode().partition("\n")
        answer.unlink()
        if kind in (MADE, ALIKE):
            cubin, initial = (folder / f"{stem}{suffix}" for suffix in (CUBIN, INITIAL))
            made = ReadyKernel(_CODE.read_bytes(cubin), said, _CODE.read_bytes(initial))
            cubin.unlink()
            initial.unlink()
            return made
        raise NoBarrierError(NO_BARRIER) if kind == PLAIN else NotRecordableError(said)

    return ask
