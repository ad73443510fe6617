"""What records a launch, without a driver: a driver of the test, and a kernel that is made ready."""

from dataclasses import dataclass, field
from typing import Any

from pipesim.launches.observe.driver import NOT_READY
from pipesim.launches.observe.loaded_images import KernelCode
from pipesim.launches.record.memory import Buffer, CudaMemory, DeviceFacts
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
