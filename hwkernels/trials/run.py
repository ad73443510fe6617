"""``python -m hwkernels.trials.run [--seconds S] [--json FILE]``: every rule on trial on the GPU of this machine.

Each has a kernel that relies on it (``trials.cu``), launched for ``S`` seconds, and a control that breaks it and
must be seen. The file is what an owner of another GPU sends: :func:`pipesim.findings.trials` has what was measured.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from hwkernels.device.compile import CompiledKernel, compile_cubin
from hwkernels.device.launch import Gpu, require_gpu
from pipesim.bounds import MAX_TEXT
from pipesim.errors import HardwareError, PipesimError
from pipesim.inputs import json_value
from pipesim.process.files import write_whole

SOURCE = Path(__file__).parent / "trials.cu"
BLACKWELL = "10"
_ROUNDS, _CTAS_A_SM, _EXIT_CTAS, _EXIT_BYTES = 20_000, 8, 1 << 17, 2048
_ITEMS, _ITEM_WORDS = 64, 384  #: of PROXIES
_MOST_S = 60  #: besides its seconds, that a process may take


class Trial(IntEnum):
    """``Trial`` of ``trials.cu``."""

    NO_COMPLETE = 0
    PROXIES = 1
    INIT = 2
    EXIT = 3
    EXIT_CHECK = 4
    LANES = 5
    EXITED_THREADS = 6
    GENERIC = 7
    WGMMA_FENCE = 8
    TENSOR_FENCES = 9
    TENSOR_LOADS = 10
    TX_EDGE = 11
    COPY_COMMITS = 12
    COMMITS = 13
    TENSOR_LANES = 14


_NOT_ALONE, _HOPPER = {Trial.EXIT_CHECK}, {Trial.WGMMA_FENCE}
_TENSOR = {Trial.TENSOR_FENCES, Trial.TENSOR_LOADS, Trial.COMMITS, Trial.TENSOR_LANES}
_TWO_GROUPS = {Trial.TENSOR_FENCES, Trial.TENSOR_LANES}  #: of warps, the second of which loads


@dataclass(frozen=True)
class Tried:
    """How often a rule was tried, and how often it was seen broken."""

    tries: int
    seen: int


def trials_of(capability: str) -> list[Trial]:
    """Those that a GPU has."""
    left_out = _NOT_ALONE | (_HOPPER if capability.startswith(BLACKWELL) else _TENSOR)
    return [each for each in Trial if each not in left_out]


def compile_trial(trial: Trial, *, control: bool, arch: str) -> CompiledKernel:
    """The kernel of one trial."""
    return compile_cubin(SOURCE, {"TRIAL": int(trial), "CONTROL": int(control)}, arch)


def tried(trial: Trial, seconds: float) -> dict[str, Any]:
    """What one trial and its control show on this GPU. Raises HardwareError if a launch fails."""
    info = require_gpu(others=(BLACKWELL,))
    gpu, arch = Gpu(info), f"sm_{info.capability.replace('.', '')}a"
    try:
        out, data = gpu.allocate(16), gpu.allocate(_EXIT_CTAS * _EXIT_BYTES)
        items = np.repeat(np.arange(_ITEMS, dtype=np.uint32), _ITEM_WORDS)
        gpu.upload(data, items)
        kept = [_launches(gpu, trial, arch, out, data, seconds, control=control) for control in (False, True)]
    finally:
        gpu.close()
    said = {"device": info.name, "driver": info.driver, "capability": info.capability}
    return said | {"trial": trial.name.lower(), "rule": vars(kept[0]), "control": vars(kept[1])}


def _launches(gpu: Gpu, trial: Trial, arch: str, out: int, data: int, seconds: float, *, control: bool) -> Tried:
    kernels = [gpu.load(compile_trial(trial, control=control, arch=arch), 0)]
    if trial is Trial.EXIT:
        kernels.append(gpu.load(compile_trial(Trial.EXIT_CHECK, control=control, arch=arch), 0))
    ctas = _EXIT_CTAS if trial is Trial.EXIT else _CTAS_A_SM * gpu.info.sms
    threads = 256 if trial in _TWO_GROUPS else 128
    gpu.fill(out, 0, 16)
    until, found = time.monotonic() + (0 if control else seconds), np.zeros(2, dtype=np.uint64)
    rounds = _ROUNDS // 100 if control else _ROUNDS
    while not found[0] or time.monotonic() < until:
        for kernel in kernels:
            gpu.launch(kernel, (ctas, threads, 0), (np.uint32(rounds), out, data))
        rounds += trial is Trial.EXIT
        gpu.download(out, found)
    return Tried(int(found[0]), int(found[1]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was tried as JSON; the exit code is that of the error, if any, and 1 where a rule was broken."""
    parser = argparse.ArgumentParser(prog="python -m hwkernels.trials.run", description="rules on trial on a GPU")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each trial (default 2)")
    parser.add_argument("--json", type=Path, default=None, help="write them to this file as well")
    parser.add_argument("--only", default="", help="one trial, in this process")
    options = parser.parse_args(arguments)
    try:
        if options.only:
            sys.stdout.write(json.dumps(tried(Trial[options.only.upper()], options.seconds)) + "\n")
            return 0
        found = [_apart(each, options.seconds) for each in trials_of(require_gpu(others=(BLACKWELL,)).capability)]
    except PipesimError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    text = json.dumps({"format": "pipesim-trials", "version": 1, "trials": found}, indent=1) + "\n"
    sys.stdout.write(text)
    if options.json is not None:
        write_whole(options.json, text.encode(), force=True)
    return int(any(each.get("rule", {}).get("seen") for each in found))


def _apart(trial: Trial, seconds: float) -> dict[str, Any]:
    """One trial in a process of its own, which a trap takes away, and a limit ends."""
    line = [sys.executable, "-m", "hwkernels.trials.run", "--only", trial.name, "--seconds", str(seconds)]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=seconds + _MOST_S, check=False)  # noqa: S603
        if done.returncode:
            raise HardwareError((done.stderr.strip().splitlines() or ["it printed nothing"])[0])
        return dict(json_value(done.stdout, MAX_TEXT))
    except (HardwareError, subprocess.TimeoutExpired, ValueError) as error:
        return {"trial": trial.name.lower(), "error": str(error)}


if __name__ == "__main__":
    sys.exit(main())
