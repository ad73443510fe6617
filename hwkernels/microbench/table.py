"""What the tables of micro-kernels have in common: the GPU of this machine, lines, and an error in place of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from hwkernels.device.launch import DeviceInfo, require_gpu
from pipesim.errors import PipesimError


def print_table(lines: Callable[[DeviceInfo], Iterable[str]]) -> int:
    """Print the lines that are measured on this machine's GPU; the exit code is that of the error, if any."""
    try:
        for line in lines(require_gpu()):
            sys.stdout.write(f"{line}\n")
    except PipesimError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0
