"""A capture in a process of its own: whatever a kernel does to the CUDA context, this process goes on.

``python -m hwkernels.capture.subprocess_capture FOLDER`` runs the request in that folder and writes its trace there;
:func:`capture_apart` and ``foreign_capture`` call it. A kernel that still runs when its process ends is ended by the
driver.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from hwkernels.capture.faults import KernelFault
from hwkernels.capture.request import CaptureRequest
from pipesim.errors import (
    CompileError,
    ConfigurationError,
    HardwareError,
    KernelHangError,
    KernelTrapError,
    ParameterError,
    PipesimError,
    UsageError,
)
from pipesim.trace.schema import Trace

_START_S = 60  #: what importing, compiling and starting CUDA may take
_REQUEST, _TRACE, _ERROR = "request.json", "trace.parquet", "error.json"
#: Errors that are raised here as they were raised there: they say all by themselves.
_PLAIN: dict[str, type[PipesimError]] = {
    kind.__name__: kind
    for kind in (CompileError, ConfigurationError, KernelHangError, KernelTrapError, ParameterError, UsageError)
}


def capture_apart(request: CaptureRequest) -> Trace:
    """Run the request in a new process. HardwareError if that process leaves no trace."""
    return run_apart(
        "hwkernels.capture.subprocess_capture", dump_request(request), str(request.fault), request.deadline_ms / 1000
    )


def run_apart(module: str, document: str, what: str, limit_s: float) -> Trace:
    """Run ``python -m module FOLDER`` on a request, which calls :func:`answer`; the trace that it writes.

    ``what`` names it in errors; ``limit_s``: what its launches may take. Raises HardwareError if there is no trace, and
    what was wrong with the request, a hang or a trap as that process raised it.
    """
    from pipesim.trace.files import read_trace

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / _REQUEST).write_text(document, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p or "." for p in sys.path)}
        limit = _START_S + limit_s
        try:
            done = subprocess.run(  # noqa: S603  # our own interpreter and module
                [sys.executable, "-m", module, folder],
                env=environment, capture_output=True, text=True, errors="replace", timeout=limit, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise HardwareError(
                f"the process of {what} did not end within {limit:.0f} s and was killed",
                cause="the launch exceeded its own time limit",
            ) from error
        path = Path(folder) / _TRACE
        if (Path(folder) / _ERROR).exists():
            said = json.loads((Path(folder) / _ERROR).read_text(encoding="utf-8"))
            raise _PLAIN[said.pop("kind")](**said)
        if done.returncode or not path.exists():
            lines = done.stderr.strip().splitlines()
            raise HardwareError(
                f"the process of {what} left no trace (exit code {done.returncode})",
                cause=lines[-1] if lines else "it printed nothing",
            )
        return read_trace(path)


def answer(folder: str, carry_out: Callable[[str], Trace]) -> int:
    """In the new process: carry out the request of a folder and write its trace, or what went wrong."""
    from pipesim.trace.files import write_trace

    try:
        trace = carry_out((Path(folder) / _REQUEST).read_text(encoding="utf-8"))
        write_trace(trace, Path(folder) / _TRACE)
    except PipesimError as error:
        print(str(error).replace("\n", ";"), file=sys.stderr)
        if type(error).__name__ in _PLAIN:
            parts = {name: getattr(error, name) for name in ("fact", "place", "cause", "correction")}
            document = json.dumps({"kind": type(error).__name__, **parts})
            (Path(folder) / _ERROR).write_text(document, encoding="utf-8")
        return 1
    return 0


def dump_request(request: CaptureRequest) -> str:
    """A request as JSON."""
    return json.dumps(asdict(request), sort_keys=True)


def load_request(text: str) -> CaptureRequest:
    """The request of :func:`dump_request`."""
    fields = json.loads(text)
    fault = fields.pop("fault")
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    return CaptureRequest(**fields, fault=None if fault is None else KernelFault(**fault))


def main(folder: str) -> int:
    """Capture and write."""
    from hwkernels.capture.trace import capture_here
    from hwkernels.device.launch import require_gpu

    return answer(folder, lambda text: capture_here(load_request(text), require_gpu()))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
