"""A launch that was observed and the PTX of its kernel, made into a launch file that ``pipesim check`` accepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pipesim.errors import PipesimError, PtxError
from pipesim.launches.files.parameters import parameter, unseen_map, with_decoded_maps
from pipesim.launches.records.record import LaunchRecord, SeenParameter
from pipesim.ptx.extract import with_contents_read
from pipesim.ptx.flow.inline import inline_calls
from pipesim.ptx.flow.slice import LaunchNeed, slice_of
from pipesim.ptx.launch.file import MOST_REGISTERS, launch_json, read_launch
from pipesim.ptx.launch.image import require_parameters
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.declarations import Function, Module
from pipesim.ptx.text.instruction import Instruction
from pipesim.ptx.text.read import read_module
from pipesim.trace.whole import require_free, write_whole


@dataclass(frozen=True)
class CompiledLaunch:
    """The PTX of a kernel, ``arch`` for which it was compiled ("sm_90a"), and one launch of it."""

    name: str
    arch: str
    ptx: str
    launch: Launch

    def save(self, folder: Path | str, *, force: bool = False) -> tuple[Path, Path]:
        """Write ``NAME.ptx`` and ``NAME.json`` into a folder; their paths. OutputExistsError unless ``force``."""
        texts = {".ptx": self.ptx, ".json": launch_json(self.launch)}
        paths = {Path(folder) / f"{self.name}{suffix}": text for suffix, text in texts.items()}
        for path in paths:
            require_free(path, force=force)  # of both, before one is written
        for path, text in paths.items():
            write_whole(path, text.encode(), force=force)
        first, second = paths
        return first, second


@dataclass(frozen=True)
class KernelText:
    """A kernel in a PTX text: the function, and what is made of it when it is first asked for."""

    text: str
    module: Module
    entry: Function

    @property
    def arch(self) -> str:
        """The architecture that the text names first ("sm_90a")."""
        return self.module.target[0] if self.module.target else ""

    @cached_property
    def function(self) -> Function:
        """The kernel with the bodies of the functions that it calls. PtxError if it is too long."""
        return inline_calls(self.module, self.entry)

    @cached_property
    def has_barriers(self) -> bool:
        """Whether warps of the kernel wait for each other or for copies (:func:`barriers`)."""
        return barriers(self.function)

    @cached_property
    def needs(self) -> Sequence[LaunchNeed]:
        """What its synchronisation needs of a launch."""
        return slice_of(self.function).wanted


@dataclass(frozen=True)
class DescribedLaunch:
    """What was made of a record: a launch (None: ``reason`` says why not), and what a reader of it should know."""

    compiled: CompiledLaunch | None
    reason: str = ""
    notes: tuple[str, ...] = ()


def kernel_text(text: str, name: str, kernel: str) -> KernelText:
    """The kernel of this name in a PTX text; ``name`` is the file's, for messages. Raises PtxError."""
    module = read_module(text, name, kernel)
    entry = next((each for each in module.entries if each.name == kernel and each.body), None)
    if entry is None:
        others = ", ".join(each.name for each in module.entries[:3])
        raise PtxError(f"it has no kernel {kernel[:80]}", place=name, cause=f"its kernels are {others or 'none'}")
    return KernelText(text, module, entry)


def barriers(function: Function) -> bool:
    """Whether a kernel with its calls inlined uses mbarriers, barriers of a CTA or a cluster, asynchronous copies, or
    waits for other kernels.

    A barrier of the lanes of one warp (``bar.warp.sync``) is not among them.
    """
    return any(_synchronises(each) for each in function.body)


def _synchronises(each: Instruction) -> bool:
    match each.opcode:
        case "mbarrier" | "barrier" | "griddepcontrol":
            return True
        case "bar":
            return "warp" not in each.modifiers
        case "cp":
            return "async" in each.modifiers and "prefetch" not in each.modifiers
        case _:
            return False


def describe_launch(record: LaunchRecord, kernel: KernelText, cta: int | None = None) -> DescribedLaunch:
    """The launch of a record, or why there is none: the driver's parameters are those of the PTX, in its order.

    ``cta``: the one that is to be followed.
    """
    formals, seen = kernel.entry.params, record.parameters
    if seen is None:
        return DescribedLaunch(None, "the driver gave no parameters for it")
    if len(seen) != len(formals):
        return DescribedLaunch(None, f"the launch has {len(seen)} parameters, and its PTX {len(formals)}")
    for number, (given, formal) in enumerate(zip(seen, formals, strict=True)):
        if len(given.data) != formal.size:
            sizes = f"{len(given.data)} bytes in the launch and {formal.size} in its PTX"
            return DescribedLaunch(None, f"parameter {number} ({formal.name}) has {sizes}")
    try:
        read = tuple(with_decoded_maps(*each, lambda: kernel.needs) for each in zip(formals, seen, strict=True))
        launch = replace(_launch(record, kernel, read), cta=cta)
        require_parameters(launch, kernel.entry)
        if any(each.contents for given in seen for each in given.pointers):
            launch = with_contents_read(kernel.module, launch)
        read_launch(launch_json(launch), "launch file")  # what is written can be read
    except PipesimError as error:
        return DescribedLaunch(None, error.fact)
    decoded = [formal.name for formal, was, now in zip(formals, seen, read, strict=True) if was is not now]
    unseen = [formal.name for formal, now in zip(formals, read, strict=True) if unseen_map(formal, now)]
    return DescribedLaunch(
        CompiledLaunch(record.kernel, kernel.arch, kernel.text, launch),
        notes=(
            *(
                f"the tensor map in {name} was not seen being encoded: its box is decoded from its bytes"
                for name in decoded
            ),
            *(f"{name} may be a tensor map, and was not seen being encoded" for name in unseen),
        ),
    )


def _launch(record: LaunchRecord, kernel: KernelText, seen: Sequence[SeenParameter]) -> Launch:
    formals = kernel.entry.params
    parameters = (parameter(formal, given, lambda: kernel.needs) for formal, given in zip(formals, seen, strict=True))
    required = kernel.entry.directives.get("maxnreg", ())[:1]
    registers = required[0] if required and required[0] <= MOST_REGISTERS else record.registers
    return Launch(
        record.kernel, record.grid, record.block, record.cluster, record.dynamic_shared, registers, tuple(parameters)
    )
