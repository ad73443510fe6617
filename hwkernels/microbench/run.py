"""``python -m hwkernels.microbench.run [--json FILE]``: the rates of the GPU of this machine."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.device.launch import DeviceInfo, Gpu, require_gpu
from hwkernels.microbench import units, words
from hwkernels.microbench.rates import RATES, InstructionKind, chain, compile_kernel, measure
from pipesim.errors import PipesimError
from pipesim.process.files import write_whole


class GpuBench:
    """One CTA on one SM of a GPU. To be closed."""

    def __init__(self, info: DeviceInfo) -> None:
        self._gpu = Gpu(info)
        self._arch = f"sm_{info.capability.replace('.', '')}a"
        self._kernels: dict[InstructionKind, Any] = {}
        links = chain()
        self._chain = self._gpu.allocate(links.nbytes)
        self._gpu.upload(self._chain, links)
        self._out = self._gpu.allocate(4 * 32)

    def cycles(self, kind: InstructionKind, warps: int, rounds: int) -> npt.NDArray[np.uint32]:
        """As :class:`hwkernels.microbench.rates.RateBench` has it."""
        if kind not in self._kernels:
            self._kernels[kind] = self._gpu.load(compile_kernel(kind, self._arch), 0)
        self._gpu.launch(self._kernels[kind], (1, 32 * warps, 0), (np.uint32(rounds), self._chain, self._out))
        found = np.zeros(warps, dtype=np.uint32)
        self._gpu.download(self._out, found)
        return found

    def close(self) -> None:
        """Give the GPU back."""
        self._gpu.close()


def measure_device(info: DeviceInfo) -> dict[str, int]:
    """All values that micro-kernels measure, on this GPU. Raises HardwareError if a launch fails."""
    bench = GpuBench(info)
    try:
        rates = dict(measure(bench, frozenset(rate.value for rate in RATES)))
    finally:
        bench.close()
    if not info.capability.startswith("9."):  # the products are Hopper's
        return rates
    bench_of_units, bench_of_words = units.GpuUnits(info), words.GpuWords(info)
    try:
        return rates | dict(units.measure(bench_of_units)) | dict(words.measure(bench_of_words))
    finally:
        bench_of_units.close()
        bench_of_words.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the values as JSON; the exit code is that of the error, if any."""
    parser = argparse.ArgumentParser(prog="python -m hwkernels.microbench.run", description="rates of a GPU")
    parser.add_argument("--json", type=Path, default=None, help="write them to this file as well")
    options = parser.parse_args(arguments)
    try:
        info = require_gpu()
        text = json.dumps({"device": info.name, "values": measure_device(info)}, indent=1) + "\n"
    except PipesimError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(text)
    if options.json is not None:
        write_whole(options.json, text.encode(), force=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
