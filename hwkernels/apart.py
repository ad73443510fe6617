"""A capture in a process of its own: whatever a fault does to the CUDA context, this process goes on.

``python -m hwkernels.apart REQUEST FILE`` runs the request (JSON) and writes its trace; :func:`capture_apart` calls it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from hwkernels.faults import KernelFault
from hwkernels.request import CaptureRequest
from pipesim.errors import HardwareError, PipesimError
from pipesim.trace.schema import Trace

_START_S = 60  #: what importing, compiling and starting CUDA may take


def capture_apart(request: CaptureRequest) -> Trace:
    """Run the request in a new process. HardwareError if that process leaves no trace."""
    from pipesim.trace.files import read_trace

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.parquet"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p or "." for p in sys.path)}
        command = [sys.executable, "-m", "hwkernels.apart", dump_request(request), str(path)]
        limit = _START_S + request.deadline_ms / 1000
        try:
            done = subprocess.run(  # noqa: S603  # our own interpreter and module
                command, env=environment, capture_output=True, text=True, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise HardwareError(
                f"the process of {request.fault} did not end within {limit:.0f} s and was killed",
                cause="the launch outlived its own deadline",
            ) from error
        if done.returncode or not path.exists():
            lines = done.stderr.strip().splitlines()
            raise HardwareError(
                f"the process of {request.fault} left no trace (exit code {done.returncode})",
                cause=lines[-1] if lines else "it said nothing",
            )
        return read_trace(path)


def dump_request(request: CaptureRequest) -> str:
    """A request as JSON."""
    return json.dumps(asdict(request), sort_keys=True)


def load_request(text: str) -> CaptureRequest:
    """The request of :func:`dump_request`."""
    fields = json.loads(text)
    fault = fields.pop("fault")
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    return CaptureRequest(**fields, fault=None if fault is None else KernelFault(**fault))


def main(request: str, path: str) -> int:
    """Capture and write; errors of ours in one line."""
    from hwkernels.capture import capture_here
    from hwkernels.launch import require_gpu
    from pipesim.trace.files import write_trace

    try:
        write_trace(capture_here(load_request(request), require_gpu()), path)
    except PipesimError as error:
        print(str(error).replace("\n", ";"), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
