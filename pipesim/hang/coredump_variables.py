"""The environment with which NVIDIA's driver writes a core dump on request, and where it then expects what.

A process with these variables makes a pipe for each CUDA context; one byte into it, and the driver stops the GPU,
writes the file, and aborts the process (CUDA-GDB, "GPU core dump support"; seen with driver 580). Nothing is
recompiled, and a launch costs no more.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile

from pipesim.errors import UsageError

ENABLE, PIPE, FILE = "CUDA_ENABLE_USER_TRIGGERED_COREDUMP", "CUDA_COREDUMP_PIPE", "CUDA_COREDUMP_FILE"
FLAGS = "CUDA_COREDUMP_GENERATION_FLAGS"
WATCHER = "PIPESIM_HANG"  #: the process that watches
#: Left out of a dump: copies of the machine code, what can be as large as the GPU's memory, and the constant banks. If
#: only the banks are kept of these, driver 580 fails on some kernels: the file ends after the banks, always.
LEFT_OUT = "skip_nonrelocated_elf_images,skip_global_memory,skip_local_memory,skip_constbank_memory"
LEAST_BYTES = 1 << 30  #: that a disk must have free: with the machine code of NCCL a dump has 120 MB


def dump_environment(
    folder: Path, pipes: Path, *, memory: bool, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The environment of a program whose processes can be dumped to ``folder``, each as ``core.HOST.PID``.

    ``pipes``: another folder, for the pipes, which the driver leaves there. ``memory``: with global and local memory.
    """
    mine = {ENABLE: "1", PIPE: f"{pipes}/%h.%p", FILE: f"{folder.resolve()}/core.%h.%p", WATCHER: str(os.getpid())}
    return {**environment, **({} if memory else {FLAGS: LEFT_OUT}), **mine}


def place_of(value: str, process: int) -> Path:
    """The path that the driver makes of a variable: ``%h`` is the host, ``%p`` the process. ``%t``, a time, stays."""
    return Path(value.replace("%h", os.uname().nodename).replace("%p", str(process)))


def require_dump_folder(folder: Path) -> None:
    """Make the folder, and be sure that a dump can be written there; UsageError with what is missing.

    A driver that cannot write the file ends the program without a word: so this is asked before it starts.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise UsageError(
            "no core dump can be written here",
            place=str(folder),
            cause=error.strerror or str(error),
            correction="name a folder on another disk with --keep DIR",
        ) from error
    if free < LEAST_BYTES:
        raise UsageError(
            f"the disk has {free >> 20:,} MB free, too few for a core dump",
            place=str(folder),
            correction=f"free {LEAST_BYTES >> 20:,} MB, or name a folder on another disk with --keep DIR",
        )
