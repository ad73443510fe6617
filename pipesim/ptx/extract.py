"""A kernel's PTX and one launch in, a flat program with its coverage out: reading, emulation, emission."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from pipesim.model.program import Program
from pipesim.ptx.coverage import coverage_of
from pipesim.ptx.emit.build import program_of
from pipesim.ptx.emit.names import kernel_name
from pipesim.ptx.emit.record import Stream
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.emulation import Emulation, Kernel, emulate, prepare
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.instruction import Special
from pipesim.ptx.text.module import Module
from pipesim.ptx.work.path import Paths
from pipesim.ptx.work.timed import with_work

_CLOCKS = frozenset(
    map(Special, ("%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"))
)


@dataclass(frozen=True)
class Extraction:
    """A flat program and how much was run for it: warp instructions, and those of the kernel that were kept."""

    program: Program
    places: tuple[tuple[int, int], ...]  #: CTA and byte offset in shared memory of each barrier of the program
    instructions: int
    kept: int
    body: int
    kernel: Kernel = field(repr=False, compare=False)
    streams: list[Stream] = field(repr=False, compare=False)

    @cached_property
    def timed(self) -> Program:
        """The program with what the warps compute between their operations: the one to simulate, not to prove."""
        code = self.kernel.code
        return with_work(self.program, self.streams, code.function, Paths(code, code.regions.uses))

    @cached_property
    def reads_clock(self) -> bool:
        """Whether the kernel can wait for a time to pass, which no estimate from its instructions knows."""
        body = self.kernel.function.body
        return any(each.opcode == "nanosleep" or not _CLOCKS.isdisjoint(each.operands) for each in body)

    def with_lock_failures(self, failures: int) -> Extraction:
        """The same kernel where so many compare-and-swaps on a lock fail: the policy that a recording determines."""
        kernel = self.kernel.with_lock_failures(failures)
        return emit(kernel, emulate(kernel))


def extract(module: Module, launch: Launch, limits: EmulationLimits | None = None) -> Extraction:
    """Emulate one cluster of the launch and write what it did as a flat program.

    Raises LaunchFileError if launch and kernel do not fit.
    """
    kernel = prepare(module, launch)
    return emit(kernel, emulate(kernel, limits))


def with_contents_read(module: Module, launch: Launch) -> Launch:
    """The launch with only as much of the arrays in memory as reading the kernel asks for.

    Nothing is left out where the kernel is not followed to its end. LaunchFileError if launch and kernel do not fit.
    """
    kernel = prepare(module, launch)
    emulation = emulate(kernel)
    if emit(kernel, emulation).program.coverage.stopped:
        return launch
    return emulation.cluster.image.as_read(launch)


def emit(kernel: Kernel, emulation: Emulation) -> Extraction:
    """What the warps did, as a flat program with its coverage."""
    cluster, function, module = emulation.cluster, kernel.function, kernel.module
    coverage = coverage_of(kernel, emulation)
    recorder = cluster.recorder
    name = kernel_name(kernel.launch.entry)
    program = program_of(name, recorder, cluster.initialised, function, module, kernel.launch, coverage)
    body = len(function.body)
    places, kept = tuple(recorder.barriers), len(kernel.code.kept)
    return Extraction(program, places, emulation.instructions, kept, body, kernel, recorder.streams)
