"""``pipesim.record``: the kernels of a part of this process, as traces with their PTX and launch files.

Where the frameworks of a Python process launch a kernel, the launch may take place with another one.

Triton and Gluon: what ``CompiledKernel.run`` returns. ``cuda.core``: ``launch``. ``cuda.bindings``: ``cuLaunchKernel``
and ``cuLaunchKernelEx``. A framework is changed once it is imported, and has its own functions again where the
recording ends. A name that a program has imported before, as with ``from cuda.core import launch``, is not changed.
"""

from __future__ import annotations

import atexit
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipesim.answers.views.launches import RecordReport
from pipesim.bounds import MAX_SPOOL_BYTES
from pipesim.conform.agreement import Agreement
from pipesim.errors import ParameterError
from pipesim.formats.documents import as_json, document, record_exit_code
from pipesim.launches import observe
from pipesim.launches.checks import BlockReport
from pipesim.launches.files.gather import require_folder
from pipesim.launches.inject import limits_of, spool_folder
from pipesim.launches.observe.compilers import watch_imports
from pipesim.launches.observe.limits import Limits
from pipesim.launches.observe.session import LaunchObservation
from pipesim.launches.record.gather import gather_recording
from pipesim.launches.record.launches import RecordedLaunches
from pipesim.launches.record.memory import CudaMemory
from pipesim.launches.record.preparation import Assembler, RecordOptions
from pipesim.model.ending import Ending
from pipesim.report.pages.document import in_words
from pipesim.report.pages.launches import recording_lines
from pipesim.report.text.console import text_of

_MODULES = ("cuda.core", "cuda.core.experimental")  #: that have ``launch``


class Frameworks:
    """The changes of one recording; ``restore`` takes them back."""

    def __init__(self, launches: RecordedLaunches) -> None:
        self.launches = launches
        self._undo: list[Callable[[], None]] = []

    def change(self) -> None:
        """Change the frameworks that are imported, and each of the others when it is."""
        changes = {name: functools.partial(change, self) for name, change in _CHANGES.items()}
        self._undo.append(watch_imports(changes))

    def restore(self) -> None:
        """Give the frameworks their own functions again."""
        while self._undo:
            self._undo.pop()()

    def replace(self, owner: Any, name: str, replacement: Callable[[Any], Any]) -> None:
        """Replace an attribute by what ``replacement`` makes of it; nothing where there is none."""
        before = vars(owner).get(name)
        if before is None or hasattr(before, "is_recorded"):  # a module may have taken it from another one
            return
        after = replacement(before)
        if not isinstance(after, property):
            after.is_recorded = True
        setattr(owner, name, after)

        def undo() -> None:
            if vars(owner).get(name) is after:
                setattr(owner, name, before)

        self._undo.append(undo)


def _change_triton(changes: Frameworks, module: Any) -> None:
    """``triton.compiler.compiler``: the property ``run`` is a function of grid, stream, function, and more."""

    def replacement(run: Any) -> Any:
        def recorded_run(self: Any) -> Any:
            return functools.partial(_triton_launch, changes.launches, self, run.fget(self))

        return property(recorded_run)

    kind = getattr(module, "CompiledKernel", None)
    if kind is not None and isinstance(vars(kind).get("run"), property):
        changes.replace(kind, "run", replacement)


def _triton_launch(
    launches: RecordedLaunches, kernel: Any, launch: Any, x: Any, y: Any, z: Any, stream: Any, function: Any, *rest: Any
) -> Any:
    """A launch; its hooks, the third and fourth of ``rest``, are not called in a dry run."""

    def dry(beside: int) -> None:
        launch(x, y, z, beside, function, *rest[:2], None, None, *rest[4:])

    with launches.recorded_launch(int(function), int(stream), dry, _triton_assembler(kernel)) as chosen:
        return launch(x, y, z, stream, chosen, *rest)


def _triton_assembler(kernel: Any) -> Assembler:
    """Triton's own ptxas, with the options that it is given for this kernel."""
    file = getattr(sys.modules.get("triton"), "__file__", None)
    path = Path(file or "").parent / "backends" / "nvidia" / "bin" / "ptxas"
    metadata = getattr(kernel, "metadata", None)
    more = getattr(metadata, "ptx_options", None)
    options = () if getattr(metadata, "enable_fp_fusion", True) else ("--fmad=false",)
    return Assembler(path if file and path.is_file() else None, (*options, *(more.split() if more else ())))


def _change_core(changes: Frameworks, module: Any) -> None:
    """``cuda.core``: ``launch(stream, config, kernel, *values)``."""
    kernel_kind: Any = getattr(module, "Kernel", None)
    stream_kind: Any = getattr(module, "Stream", None)
    if not hasattr(kernel_kind, "from_handle") or not hasattr(stream_kind, "from_handle"):
        return

    def replacement(launch: Any) -> Any:
        @functools.wraps(launch)
        def recorded_launch(stream: Any, config: Any, kernel: Any, *values: Any) -> Any:
            handle = _core_stream(stream)
            if handle is None:
                return launch(stream, config, kernel, *values)

            def dry(beside: int) -> None:
                launch(stream_kind.from_handle(beside), config, kernel, *values)

            own = int(kernel.handle)
            with changes.launches.recorded_launch(own, handle, dry) as chosen:
                taken = kernel if chosen == own else kernel_kind.from_handle(chosen)
                return launch(stream, config, taken, *values)

        return recorded_launch

    changes.replace(module, "launch", replacement)


def _core_stream(stream: Any) -> int | None:
    """The handle of a stream; None of a builder of graphs."""
    try:
        if hasattr(stream, "__cuda_stream__"):
            given = stream.__cuda_stream__
            return int((given() if callable(given) else given)[1])
        return int(stream.handle) if type(stream).__name__ == "Stream" else None
    except (AttributeError, TypeError, ValueError, IndexError):
        return None


def _change_driver(changes: Frameworks, module: Any) -> None:
    """``cuda.bindings.driver``: the launch functions of the driver itself."""

    def plain_launch(launch: Any) -> Any:
        @functools.wraps(launch)
        def recorded_launch(function: Any, *rest: Any) -> Any:
            def dry(beside: int) -> None:
                launch(function, *rest[:7], module.CUstream(beside), *rest[8:])

            own = _handle(function)
            with changes.launches.recorded_launch(own, _handle(rest[7]), dry) as chosen:
                return launch(function if chosen == own else module.CUfunction(chosen), *rest)

        return recorded_launch

    def extended_launch(launch: Any) -> Any:
        @functools.wraps(launch)
        def recorded_launch(config: Any, function: Any, *rest: Any) -> Any:
            def dry(beside: int) -> None:
                stream = module.CUstream(_handle(config.hStream))  # a copy: what is read is the field itself
                config.hStream = module.CUstream(beside)
                try:
                    launch(config, function, *rest)
                finally:
                    config.hStream = stream

            own = _handle(function)
            with changes.launches.recorded_launch(own, _handle(config.hStream), dry) as chosen:
                return launch(config, function if chosen == own else module.CUfunction(chosen), *rest)

        return recorded_launch

    changes.replace(module, "cuLaunchKernel", plain_launch)
    changes.replace(module, "cuLaunchKernelEx", extended_launch)


def _handle(given: Any) -> int:
    """A handle as a number; None is the stream 0."""
    return int(given) if given is not None else 0


_CHANGES: dict[str, Callable[[Frameworks, Any], None]] = {
    "triton.compiler.compiler": _change_triton,
    **dict.fromkeys(_MODULES, _change_core),
    "cuda.bindings.driver": _change_driver,
}


__all__ = ["ProcessRecording", "RecordOptions", "start_recording"]


class ProcessRecording:
    """One recording of this process; it ends with ``stop``, which may be called twice."""

    def __init__(self, observation: LaunchObservation, launches: RecordedLaunches, frameworks: Frameworks) -> None:
        self._observation, self._launches, self._frameworks = observation, launches, frameworks

    def stop(self) -> None:
        """Give the frameworks their functions back, and close the records."""
        atexit.unregister(self.stop)
        self._launches.active = False
        self._frameworks.restore()
        self._observation.stop()


def start_recording(spool: Path, limits: Limits, options: RecordOptions) -> ProcessRecording:
    """Record this process from now on; its records go to a new file in ``spool``. Raises as ``observe.start``."""
    observation = observe.start(spool, limits)
    launches = RecordedLaunches(CudaMemory(), observation.observer, observation.spool, options, observation.compiled)
    frameworks = Frameworks(launches)
    frameworks.change()
    made = ProcessRecording(observation, launches, frameworks)
    atexit.register(made.stop)  # it is called before the observation's own end, which closes the records
    return made


WIDTH = 100  #: cells of a report as text
MOST_DISTINCT = 4096  #: distinct launches of a process that are known by their parameters


@dataclass(frozen=True)
class RecordedTrace:
    """A launch that was recorded; or a launch or a kernel that was not, for a ``reason``.

    ``trace``, ``ptx`` and ``launch`` are the files that ``pipesim diff TRACE --protocol PTX --launch LAUNCH`` takes,
    None if there are none. ``agreement`` is None if the trace was not compared.
    """

    kernel: str
    trace: Path | None
    ptx: Path | None
    launch: Path | None
    events: int
    ending: Ending | None
    agreement: Agreement | None
    reason: str


class Recording(BlockReport[RecordReport]):
    """What :func:`record` yields. To ask for anything of it ends the recording, if it has not ended."""

    @property
    def traces(self) -> tuple[RecordedTrace, ...]:
        """Each launch that was to be recorded, and each kernel of which none was; in the order of first launches."""
        found: list[RecordedTrace] = []
        for kernel in self.report.kernels:
            for each in kernel.recorded:
                files = (self._path_of(each.trace), self._path_of(kernel.ptx), self._path_of(each.launch))
                found.append(RecordedTrace(kernel.name, *files, each.events, each.ending, each.agreement, each.reason))
            if not kernel.recorded:
                found.append(RecordedTrace(kernel.name, None, None, None, 0, None, None, kernel.reason))
        return tuple(found)

    def to_json(self) -> str:
        """The document that ``pipesim record --json`` prints."""
        return as_json(document("record", record_exit_code(self.report), report=self.report), in_words)

    def _path_of(self, name: str) -> Path | None:
        return self._folder / name if name else None

    def __repr__(self) -> str:
        state = "recording" if self._report is None else f"{len(self._report.traces):,} traces"
        return f"<Recording {self._folder}: {state}>"

    def __str__(self) -> str:
        return text_of(recording_lines(self.report, WIDTH))


@contextmanager
def record(
    folder: Path | str = "recording",
    *,
    kernels: Sequence[str] | str = (),
    launches: int = 1,
    skip: int = 0,
    deadline_s: float | None = None,
    waits_only: bool = False,
    cta: int = 0,
    compare: bool = False,
    max_bytes: int = MAX_SPOOL_BYTES,
    force: bool = False,
) -> Iterator[Recording]:
    """Record the kernels that this process loads and launches within the block, as traces of their PTX.

    ``kernels``: shell patterns ("gemm*"), of which a kernel's name must match one. ``launches`` of each kernel are
    recorded, after its first ``skip``. ``deadline_s``: a launch is stopped after this time in seconds. ``waits_only``:
    fewer records. ``cta``: the CTA that leaves records, with the others of its cluster. ``compare``: each trace is
    compared with the program of its PTX; one of a launch that did not end always is. ``max_bytes`` of records at most.
    The files are written where the block ends. Raises OutputExistsError if the folder has something in it, unless
    ``force``; MissingExtraError without CUPTI or a driver; CuptiError where another profiler observes the process;
    ParameterError for options out of their range.
    """
    patterns = (kernels,) if isinstance(kernels, str) else tuple(kernels)
    if not all(patterns):
        raise ParameterError("a pattern of kernels is empty", correction='give one as "gemm*", or none')
    limits = limits_of(patterns, MOST_DISTINCT, max_bytes, once=False)
    options = RecordOptions(launches, skip, deadline_s, waits_only, cta)
    into = Path(folder)
    require_folder(into, force=force)
    with spool_folder() as spool:
        process = start_recording(spool, limits, options)

        def finish() -> RecordReport:
            process.stop()
            report, files = gather_recording(spool, folder=str(into), patterns=limits.patterns, compare=compare)
            files.write(into, force=force)
            return report

        recording = Recording(into, finish)
        try:
            yield recording
        finally:
            recording.stop()
