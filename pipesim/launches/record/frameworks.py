"""Where the frameworks of a Python process launch a kernel, the launch may take place with another one.

Triton and Gluon: what ``CompiledKernel.run`` returns. ``cuda.core``: ``launch``. ``cuda.bindings``: ``cuLaunchKernel``
and ``cuLaunchKernelEx``. A framework is changed once it is imported, and has its own functions again where the
recording ends. A name that a program has imported before, as with ``from cuda.core import launch``, is not changed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipesim.launches.observe.imports import watch_imports
from pipesim.launches.record.launches import RecordedLaunches
from pipesim.launches.record.preparation import Assembler

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
                stream = config.hStream
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
