"""``python -m pipesim.confirm.many FOLDER``: thousands of launches of one kernel, each with a table of delays.

The buffers stay on the GPU, which compares them.
A launch begins with what the first one began with. The first has no delays, and what it leaves is what all others are
compared with. In every second batch the GPU copies large buffers meanwhile, so that other copies land later.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipesim.confirm.chip import REQUESTS, LaunchProcess, carry_out, start
from pipesim.confirm.rewrite import STOP
from pipesim.confirm.table import TABLE
from pipesim.errors import KernelTrapError
from pipesim.trace.arrays import np

MOST_BATCH = 256  #: launches of one
_FEW = 8  #: of the first two
_BUSY_BYTES = 1 << 27
LEFT_WORDS = 4  #: words of a launch: units that differ, whether a wait gave up, unused
_UNIT = 8  #: bytes that are compared at a time
_COMPARE = b"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry compare(.param .u64 a, .param .u64 b, .param .u64 units, .param .u64 left)
{
 .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %d<9>;
 ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [units]; ld.param.u64 %d3, [left];
 mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %nctaid.x;
 mad.wide.u32 %d4, %r0, %r1, 0; cvt.u64.u32 %d5, %r2; add.u64 %d4, %d4, %d5; mul.wide.u32 %d5, %r1, %r3;
next:
 setp.ge.u64 %p, %d4, %d2;
 @%p ret;
 shl.b64 %d6, %d4, 3; add.u64 %d7, %d0, %d6; add.u64 %d8, %d1, %d6; add.u64 %d4, %d4, %d5;
 ld.global.u64 %d7, [%d7]; ld.global.u64 %d8, [%d8];
 setp.eq.u64 %p, %d7, %d8;
 @%p bra next;
 red.global.add.u32 [%d3], 1;
 bra next;
}
\0"""


def launch_many(process: LaunchProcess, say: Callable[..., None]) -> None:
    """Carry out a request with ``tables``; a line for each batch: how many launches were made, which showed what."""
    many = _Many(process)
    varies = False
    while many.done < many.count:
        batch = min(_FEW if many.done < 2 * _FEW else MOST_BATCH, process.request["batch"], many.count - many.done)
        try:
            ended = many.made(batch, busy=many.batches % 2 == 1)
        except KernelTrapError as error:
            say(batch=batch, ended="trap", error=error.fact.rpartition(" ")[2])
            os._exit(1)
        if not ended:
            say(batch=batch, ended="stuck")
            os._exit(1)
        left = many.left(batch)
        varies = varies or bool((left[many.plain[many.done : many.done + batch], 0] > 0).any())
        shown = np.flatnonzero((left[:, 1] > 0) | (left[:, 0] > 0 if not varies else False))
        seen = [(int(n), int(left[n, 1] > 0)) for n in shown]
        say(batch=batch, seen=seen, varies=varies)
        many.done += batch
        many.batches += 1
        if seen:
            break


class _Many:
    """The launches. ``plain``: which have no delays. ``changes``: of each buffer whether a launch writes it."""

    def __init__(self, process: LaunchProcess) -> None:
        self._process, self.request, gpu = process, process.request, process.gpu
        self.done = self.batches = 0
        tables = np.frombuffer(REQUESTS.read_bytes(process.folder / self.request["tables"]), dtype=np.uint32)
        self._row_bytes = self.request["table_bytes"]
        self.count = tables.nbytes // self._row_bytes
        self.plain = np.logical_not(tables.reshape(self.count, -1).any(axis=1))
        self._tables, self._left = gpu.allocate(tables.nbytes), gpu.allocate(self.count * LEFT_WORDS * 4)
        gpu.upload(self._tables, tables)
        gpu.fill(self._left, 0, self.count * LEFT_WORDS * 4)
        gpu.synchronize()
        module, function = process.load("0")
        self._table, self._stop = process.variable(module, TABLE)[0], process.variable(module, STOP)[0]
        self._stream, self._other = process.call("cuStreamCreate", 1), process.call("cuStreamCreate", 1)
        self._start = start(process, function, self._stream)
        self._compare = process.call("cuModuleGetFunction", process.call("cuModuleLoadData", _COMPARE), b"compare")
        self._sizes = [each["nbytes"] for each in self.request["memory"]["buffers"]]
        self._reference = [gpu.allocate(size) for size in self._sizes]
        self._busy = [gpu.allocate(_BUSY_BYTES) for _ in range(2)]
        self._values = np.zeros(4, dtype=np.uint64)
        self._pointers = self._values.ctypes.data + 8 * np.arange(4, dtype=np.uint64)
        self._changes = [True] * len(self._sizes)

    def made(self, batch: int, *, busy: bool) -> bool:
        """Make some launches; False if they do not end."""
        call = self._process.call
        if self.batches == 0:
            self._made(0)
            for here, there, size in zip(self._process.addresses, self._reference, self._sizes, strict=True):
                call("cuMemcpyDtoDAsync", there, here, size, self._stream)
            if not self._process.ends(self._stream):
                return False
            self._changes = [self._differ(n) for n in range(len(self._sizes))]
        for _ in range(1 + batch // 8 if busy else 0):
            call("cuMemcpyDtoDAsync", *self._busy, _BUSY_BYTES, self._other)
        for n in range(self.done, self.done + batch):
            self._made(n)
            for here, there, size in zip(self._process.addresses, self._reference, self._sizes, strict=True):
                self._compared(here, there, size, self._left + n * LEFT_WORDS * 4)
            call("cuMemcpyDtoDAsync", self._left + n * LEFT_WORDS * 4 + 4, self._stop, 4, self._stream)
        return self._process.ends(self._stream) and self._process.ends(self._other)

    def left(self, batch: int) -> Any:
        """The words of the launches that were made last."""
        words = np.zeros((batch, LEFT_WORDS), dtype=np.uint32)
        self._process.gpu.download(self._left + self.done * LEFT_WORDS * 4, words)
        return words

    def _made(self, n: int) -> None:
        call, process = self._process.call, self._process
        for there, here, size, changes in zip(
            process.pristine, process.addresses, self._sizes, self._changes, strict=True
        ):
            if changes:
                call("cuMemcpyDtoDAsync", here, there, size, self._stream)
        call("cuMemcpyDtoDAsync", self._table, self._tables + n * self._row_bytes, self._row_bytes, self._stream)
        call("cuMemsetD32Async", self._stop, 0, 1, self._stream)
        self._start()

    def _compared(self, a: int, b: int, size: int, left: int) -> None:
        self._values[:] = a, b, size // _UNIT, left
        ctas = min(264, 1 + size // (_UNIT * 256))
        call = self._process.call
        call(
            "cuLaunchKernel", self._compare, ctas, 1, 1, 256, 1, 1, 0, self._stream, int(self._pointers.ctypes.data), 0
        )

    def _differ(self, n: int) -> bool:
        """Whether the first launch has changed a buffer."""
        found = np.zeros(1, dtype=np.uint32)
        self._compared(self._process.pristine[n], self._reference[n], self._sizes[n], self._left)
        self._process.ends(self._stream)
        self._process.gpu.download(self._left, found)
        self._process.gpu.fill(self._left, 0, 4)
        self._process.gpu.synchronize()
        return bool(found[0])


if __name__ == "__main__":
    sys.exit(carry_out(Path(sys.argv[1]), launch_many))
