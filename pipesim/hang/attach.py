"""The core dump of a program that was started without the variables: cuda-gdb attaches to it, and it runs on after."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from pipesim.errors import UsageError
from pipesim.hang.coredump_variables import LEFT_OUT
from pipesim.hang.dumps import is_complete
from pipesim.hang.processes import is_alive

_PLACES = (Path("/usr/local/cuda/bin/cuda-gdb"), Path("/opt/cuda/bin/cuda-gdb"))
_PATIENCE_S = 120.0
_MOST_SHOWN = 3  #: lines of what the debugger said


def dump_by_debugger(process: int, file: Path) -> None:
    """Have cuda-gdb write the dump of a process's GPUs. UsageError if it is not installed, or does not."""
    if not is_alive(process):
        raise UsageError(f"there is no process {process}", correction="give the number of the program that hangs")
    found = shutil.which("cuda-gdb") or next((str(each) for each in _PLACES if os.access(each, os.X_OK)), None)
    if found is None:
        raise UsageError(
            "cuda-gdb is not installed",
            cause="it is neither in PATH nor in /usr/local/cuda/bin",
            correction="install it with the CUDA toolkit; a program that was started by `pipesim hang` needs no "
            f"debugger: pipesim hang --now {process}",
        )
    write = f"generate-core-file --no-cpu --cuda-flags {LEFT_OUT} --cuda-core-file {file}"
    words = [found, "-nx", "--pid", str(process), "-batch", "-ex", "set confirm off", "-ex", write, "-ex", "detach"]
    try:
        ran = subprocess.run(  # noqa: S603  # a debugger by its path, without a shell
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE_S,
            check=False,
        )
        said = ran.stdout
    except subprocess.TimeoutExpired as error:
        said = error.stdout or b""
    if not is_complete(file):
        lines = [each for each in said.decode("utf-8", "replace").splitlines() if each.strip()]
        raise UsageError(
            "cuda-gdb wrote no core dump",
            place=f"process {process}",
            cause="; ".join(lines[-_MOST_SHOWN:]) or "it said nothing",
            correction="run as the program's user, or as root; in a container with --cap-add SYS_PTRACE; elsewhere "
            "kernel.yama.ptrace_scope may forbid it. No other debugger may be attached, and cuda-gdb has to know "
            "generate-core-file --no-cpu (CUDA 13 does)",
        )
