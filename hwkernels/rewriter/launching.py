"""A kernel known by its PTX and launch file alone, launched on a GPU: as it is, and with the recorder in it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from hwkernels.device.compile import Compiled
from hwkernels.device.launch import Gpu, Shape
from hwkernels.rewriter.arguments import Memory, arguments_of
from hwkernels.rewriter.assemble import Assembled
from hwkernels.rewriter.instrument import Instrumented
from pipesim.ptx.launch.values import Launch

_LIMIT_S = 10.0


@dataclass
class Subject:
    """A kernel with the memory of its launch."""

    gpu: Gpu
    launch: Launch
    memory: Memory
    arguments: list[Any]

    @classmethod
    def of(cls, gpu: Gpu, launch: Launch) -> Subject:
        """Memory and arguments for a launch."""
        memory = Memory(gpu)
        return cls(gpu, launch, memory, arguments_of(launch, memory))

    def load(self, assembled: Assembled) -> Any:
        """The kernel of a cubin."""
        compiled = Compiled(assembled.cubin, "", "", (), "", self.launch.entry)
        return self.gpu.load(compiled, self.launch.dynamic_shared)

    def run(self, kernel: Any, *, times: int = 1, limit_s: float = _LIMIT_S) -> int:
        """One launch with all memory as before the first, or several one after the other; their nanoseconds."""
        if times == 1:
            self.memory.reset()
        x, y, z = self.launch.cluster
        shape = Shape(self.launch.grid, self.launch.block, self.launch.dynamic_shared, x * y * z)
        return self.gpu.launch_within(kernel, shape, self.arguments, limit_s, times=times)

    def digest(self) -> str:
        """What stands for everything in memory."""
        found = sha256()
        for data in self.memory.contents():
            found.update(data.tobytes())
        return found.hexdigest()


@dataclass
class RecordedKernel:
    """An instrumented kernel that is loaded, and its buffer on the device. ``stop``: the host's view of the flag."""

    subject: Subject
    kernel: Instrumented
    loaded: Any
    buffer: int
    view: Any = None

    @classmethod
    def of(cls, subject: Subject, kernel: Instrumented, assembled: Assembled, *, host: bool = False) -> RecordedKernel:
        """Load it, and give it its buffer: on the device, or in the host's memory where a hang leaves it readable."""
        loaded = subject.load(assembled)
        symbol, _ = subject.gpu.variable(kernel.symbol)
        address, view = subject.gpu.host_mapped(kernel.nbytes) if host else (subject.gpu.allocate(kernel.nbytes), None)
        subject.gpu.upload(symbol, np.array([address], dtype=np.uint64))
        return cls(subject, kernel, loaded, address, view)

    def prepare(self) -> None:
        """The buffer as it must be before a launch."""
        data = np.frombuffer(self.kernel.initial(), dtype=np.uint8)
        if self.view is not None:
            self.view[:] = data
        else:
            self.subject.gpu.upload(self.buffer, data)

    def records(self) -> bytes:
        """The buffer after a launch."""
        if self.view is not None:
            return bytes(self.view)
        found = np.empty(self.kernel.nbytes, dtype=np.uint8)
        self.subject.gpu.download(self.buffer, found)
        return found.tobytes()
