"""The micro-kernels on a GPU: what they measure is for the values of a latency profile."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.device.compile import CompiledKernel
from hwkernels.device.launch import DeviceInfo, Gpu
from hwkernels.microbench import rates, units, words
from pipesim.errors import HardwareError


class MicroBench:
    """A GPU with the kernels that it has launched. To be closed."""

    def __init__(self, info: DeviceInfo) -> None:
        self._gpu, self._sms = Gpu(info), info.sms
        self._arch = f"sm_{info.capability.replace('.', '')}a"
        self._kernels: dict[str, Any] = {}
        links = rates.chain()
        self._chain, self._words = self._gpu.allocate(links.nbytes), self._gpu.allocate(words.NBYTES)
        self._gpu.upload(self._chain, links)
        self._out = self._gpu.allocate(4 * words.ROUNDS)

    def cycles(self, kind: rates.InstructionKind, warps: int, rounds: int) -> npt.NDArray[np.uint32]:
        """The cycles of each warp of one CTA that executes this many rounds of a kind."""
        kernel = rates.compile_kernel(kind, self._arch)
        return self._launched(kernel, (1, 32 * warps, 0), (np.uint32(rounds), self._chain), warps)

    def products(self, batch: int, rounds: int) -> int:
        """The cycles of this many rounds of this many products."""
        shape = (1, units.THREADS, units.SMEM_BYTES)
        return int(self._launched(units.compile_products(batch), shape, (np.uint32(rounds),), 1)[0])

    def tries(self) -> npt.NDArray[np.uint32]:
        """What ``tries.cu`` writes: cycles of the first try, and of four more."""
        return self._launched(units.compile_tries(), (1, 32, 0), (np.uint32(0),), 5)

    def rounds(self, kind: words.WordKind, count: int) -> npt.NDArray[np.uint32]:
        """What a launch writes in which ``count`` CTAs take part, each on an SM of its own."""
        self._gpu.fill(self._words, 0, words.NBYTES)
        arguments = (np.uint32(words.ROUNDS), np.uint32(count), self._words)
        shape = (self._sms, words.THREADS, 0)
        found = self._launched(words.compile_kernel(kind), shape, arguments, words.ROUNDS)
        if words.NONE in found:
            raise HardwareError(f"a wait of {kind.name} with {count} CTAs gave up", place=str(words.SOURCE))
        return found[words.COLD :]

    def _launched(
        self, compiled: CompiledKernel, shape: tuple[int, int, int], arguments: Sequence[Any], count: int
    ) -> npt.NDArray[np.uint32]:
        """The first numbers that a launch writes."""
        if compiled.kernel_hash not in self._kernels:
            self._kernels[compiled.kernel_hash] = self._gpu.load(compiled, shape[2])
        self._gpu.launch(self._kernels[compiled.kernel_hash], shape, (*arguments, self._out))
        found = np.zeros(count, dtype=np.uint32)
        self._gpu.download(self._out, found)
        return found

    def close(self) -> None:
        """Give the GPU back."""
        self._gpu.close()


def measure_device(info: DeviceInfo) -> dict[str, int]:
    """All values that micro-kernels measure, on this GPU. Raises HardwareError if a launch fails."""
    bench = MicroBench(info)
    try:
        found = rates.measure(bench.cycles, frozenset(rate.value for rate in rates.RATES))
        if info.capability.startswith("9."):  # the products are Hopper's
            found |= units.measure(bench.products, bench.tries()) | words.measure(bench.rounds)
    finally:
        bench.close()
    return found
