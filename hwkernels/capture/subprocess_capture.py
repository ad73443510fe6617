"""A capture in a separate process: how a request goes there, and how its trace or its error comes back."""

import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from hwkernels.capture.arguments import Argument
from hwkernels.capture.program_subject import ProgramSubject
from hwkernels.capture.request import Builds, CaptureRequest, Subject
from hwkernels.capture.source_subject import SourceSubject
from hwkernels.capture.twin_subject import TwinSubject
from hwkernels.device.compile import CompiledKernel
from hwkernels.twins.fault import KernelFault
from pipesim.bounds import MAX_CUBIN_BYTES
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
from pipesim.inputs import InputKind
from pipesim.process.parent import end_with_parent, environment
from pipesim.trace.schema import Trace

MODULE = "hwkernels.capture"  #: ``python -m MODULE FOLDER`` is the process
_START_S = 60  #: what importing, compiling and starting CUDA may take
_REQUEST, _TRACE, _ERROR = "request.json", "trace.parquet", "error.json"
_LEFT = InputKind("document of a capture", 2 * MAX_CUBIN_BYTES, HardwareError, "capture again")
#: Errors that are raised here as they were raised there: they say all by themselves.
_PLAIN: dict[str, type[PipesimError]] = {
    kind.__name__: kind
    for kind in (CompileError, ConfigurationError, KernelHangError, KernelTrapError, ParameterError, UsageError)
}


def run_in_subprocess(document: str, what: str, limit_s: float, module: str = MODULE) -> Trace:
    """Run ``python -m module FOLDER`` on a request of :func:`dump`; the trace that it writes by :func:`answer`.

    ``what`` names it in errors; ``limit_s``: what its launches may take. Raises HardwareError if there is no trace, and
    what was wrong with the request, a hang or a trap as that process raised it.
    """
    from pipesim.trace.files import read_trace

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / _REQUEST).write_text(document, encoding="utf-8")
        variables = {**os.environ, **environment(), "PYTHONPATH": os.pathsep.join(p or "." for p in sys.path)}
        limit = _START_S + limit_s
        try:
            done = subprocess.run(  # noqa: S603  # our own interpreter and module
                [sys.executable, "-P", "-m", module, folder],
                env=variables, capture_output=True, text=True, errors="replace", timeout=limit, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise HardwareError(
                f"the process of {what} did not end within {limit:.0f} s and was killed",
                cause="the launch exceeded its own time limit",
            ) from error
        path = Path(folder) / _TRACE
        if (Path(folder) / _ERROR).exists():
            raise _error_of(Path(folder) / _ERROR, what)
        if done.returncode or not path.exists():
            lines = done.stderr.strip().splitlines()
            raise HardwareError(
                f"the process of {what} left no trace (exit code {done.returncode})",
                cause=lines[-1] if lines else "it printed nothing",
            )
        return read_trace(path)


def _error_of(path: Path, what: str) -> PipesimError:
    """The error that a process left; one that says so if what it left is none."""
    try:
        said = _LEFT.parse_json(_LEFT.read_text(path))
        return _PLAIN[said.pop("kind")](**said)
    except (HardwareError, KeyError, TypeError, AttributeError):
        return HardwareError(
            f"the process of {what} left an error that cannot be read",
            place=str(path),
            cause="the folder of temporary files is full, or another program wrote there",
            correction="capture again",
        )


def answer(folder: str, carry_out: Callable[[str], Trace]) -> int:
    """In the new process: carry out the request of a folder and write its trace, or what failed.

    The process ends with the one that asked.
    """
    end_with_parent()

    from pipesim.trace.files import write_trace

    try:
        trace = carry_out(_LEFT.read_text(Path(folder) / _REQUEST))
        write_trace(trace, Path(folder) / _TRACE)
    except PipesimError as error:
        print(str(error).replace("\n", ";"), file=sys.stderr)
        if type(error).__name__ in _PLAIN:
            parts = {name: getattr(error, name) for name in ("fact", "place", "cause", "correction")}
            document = json.dumps({"kind": type(error).__name__, **parts})
            (Path(folder) / _ERROR).write_text(document, encoding="utf-8")
        return 1
    return 0


def dump(request: CaptureRequest, builds: Builds | None) -> str:
    """A request and its builds as JSON; without builds, the other process compiles them."""
    subject = {"kind": type(request.subject).__name__, **asdict(request.subject)}  # type: ignore[call-overload]
    own = {f.name: getattr(request, f.name) for f in fields(request)} | {"subject": subject}
    own["fault"] = None if request.fault is None else asdict(request.fault)
    compiled = {n: {**asdict(b), "cubin": base64.b64encode(b.cubin).decode()} for n, b in (builds or {}).items()}
    return json.dumps({"request": own, "builds": compiled}, sort_keys=True, default=dict)


def load(text: str) -> tuple[CaptureRequest, dict[str, CompiledKernel] | None]:
    """The request and the builds of :func:`dump`. HardwareError for what is not JSON, or larger than a request."""
    document = _LEFT.parse_json(text)
    own = _tuples(document["request"])
    own["subject"] = _subject(_tuples(own["subject"]))
    own["fault"] = None if own["fault"] is None else KernelFault(**own["fault"])
    builds = {
        name: CompiledKernel(**{**b, "cubin": base64.b64decode(b["cubin"]), "options": tuple(b["options"])})
        for name, b in document["builds"].items()
    }
    return CaptureRequest(**own), builds or None


def _subject(own: dict[str, Any]) -> Subject:
    kind = own.pop("kind")
    if kind in {TwinSubject.__name__, ProgramSubject.__name__}:
        return TwinSubject(**own) if kind == TwinSubject.__name__ else ProgramSubject(**own)
    return SourceSubject(**own | {"arguments": tuple(Argument(**argument) for argument in own["arguments"])})


def _tuples(entries: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in entries.items()}
