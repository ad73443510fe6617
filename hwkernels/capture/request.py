"""What is to be run and recorded: a request, and what the pipeline requires of its subject. Needs no GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

from hwkernels.device.compile import CompiledKernel
from hwkernels.device.launch import Shape
from hwkernels.records.encodings import Encoding
from hwkernels.source_recorder.decode import DecodeContext
from hwkernels.source_recorder.measure import LaunchResult
from hwkernels.source_recorder.record_format import CLOCKS, MEMORIES
from hwkernels.source_recorder.session import ALL
from hwkernels.source_recorder.table import Table
from hwkernels.twins.buffers import Argument
from hwkernels.twins.fault import KernelFault
from pipesim.errors import ParameterError
from pipesim.trace.schema import Events, Run

#: "plain", "traced", "right": traced, without the fault of a request, and "marked": plain, with the clock at two marks
Builds = Mapping[str, CompiledKernel]


@dataclass(frozen=True)
class Needs:
    """What a subject requires of memory.

    ``shape``: of the launch, without room for records. ``wanted``: records that an agent's buffer should hold;
    ``least``: the fewest with which it is launched. ``room``: PIPESIM_ROOM. ``alignment``: of records in shared memory;
    None if they cannot go there. ``alone``: a CTA must take more than half of an SM's shared memory. ``window``: the
    first iteration that is recorded, and how many. ``passes``: its reports say how many iterations each agent made.
    ``words``: it may leave the words of its barriers. ``marks``: where the build "marked" reads the clock, if there is.
    ``encoding``: what a record is.
    """

    table: Table
    shape: Shape
    wanted: int
    least: int
    room: int
    alignment: int | None = None
    alone: bool = False
    window: tuple[int, int] = ALL
    passes: bool = False
    words: bool = False
    marks: tuple[int, ...] = ()
    encoding: Encoding = Encoding.TAGGED


class Subject(Protocol):
    """A kernel that can be captured: what it is, and the one place that knows how its kind differs from others.

    A subject is a frozen dataclass of plain values, which reads back from JSON (:mod:`.subprocess_capture`).
    """

    @property
    def name(self) -> str:
        """What errors call it."""

    @property
    def protocol(self) -> str:
        """The protocol that its trace is of."""

    @property
    def bounded(self) -> bool:
        """Whether its waits give up by themselves, and each CTA reports how it ended."""

    def shape(self, params: Mapping[str, int]) -> Shape:
        """The launch, without room for records."""

    def check(self, request: CaptureRequest) -> None:
        """Raise a UsageError of some kind unless all of the request can be carried out, as far as is known here."""

    def needs(self, request: CaptureRequest) -> Needs:
        """What it requires of memory. Raises ConfigurationError if it cannot be recorded."""

    def compile(self, request: CaptureRequest, memory: str) -> Builds:
        """The builds whose records go to this memory; the host's: without "plain", every record stored immediately."""

    def kernel_arguments(self, request: CaptureRequest) -> tuple[Argument, ...]:
        """The kernel's, in order; without the recorder's."""

    def check_kernel(self, sizes: Callable[[], Sequence[int]], *, traced: bool) -> None:
        """Raise ParameterError unless a loaded kernel with parameters of these sizes takes the arguments."""

    def limit_s(self, request: CaptureRequest) -> float:
        """When the host gives up a launch."""

    def decode_context(self, request: CaptureRequest, khz: int) -> DecodeContext:
        """What its records do not say themselves."""

    def marks(self, params: Mapping[str, int]) -> tuple[int, int]:
        """The iterations between which it takes its period; NEVER twice if it takes none."""

    def marked_waits(self, request: CaptureRequest) -> tuple[int, int]:
        """What an untraced launch finds in the marks of its reports: which waits to mark (0: none)."""

    def metadata(self, request: CaptureRequest, outcome: Outcome) -> dict[str, Any]:
        """What its trace says besides what all traces say."""


@dataclass(frozen=True)
class Outcome:
    """What all launches of a request left, for :meth:`Subject.metadata`: the events are of ``recorded``."""

    table: Table
    entry: str
    smem_bytes: int
    launched: Sequence[LaunchResult]
    recorded: LaunchResult
    runs: tuple[Run, ...]
    events: Events


@dataclass(frozen=True)
class CaptureRequest:
    """What to run and what to record.

    ``clock``: "clock", "globaltimer" or "both". ``repetitions``: pairs of an untraced and a traced launch.
    ``record_ctas``: how many CTAs' events to keep (whole clusters). ``deadline_ms``: when a wait gives up, of a kernel
    whose waits are bounded. ``memory``: where records go first: "shared", "device", "host", where they survive a kernel
    that traps or hangs, and cost more, or "" for shared memory if they fit there, else device memory. ``capacity``:
    records an agent, None for all. ``window``: (first, end) of the iterations to keep, () for all. ``fault``: what to
    do wrong. Of capacity, window and fault a subject takes those that it has. ``encoding``: what a record is ("tagged",
    "full" or "positional"), "" for the cheapest that the subject can have.
    """

    subject: Subject
    params: Mapping[str, int]
    clock: str = "clock"
    repetitions: int = 5
    record_ctas: int = 8
    deadline_ms: int = 250
    seed: int = 0
    memory: str = ""
    capacity: int | None = None
    window: tuple[int, ...] = ()
    fault: KernelFault | None = None
    encoding: str = ""

    @property
    def ctas(self) -> int:
        """CTAs in the launch."""
        return prod(self.subject.shape(self.params).grid)


def check_request(request: CaptureRequest) -> None:
    """Raise a UsageError of some kind unless every part of the request has a value that it can be run with."""
    request.subject.check(request)
    require_between(("repetitions", request.repetitions, 1, 1000), ("record_ctas", request.record_ctas, 0, 65535))
    for name, value, known in (
        ("memory", request.memory, ("", *MEMORIES)),
        ("clock", request.clock, tuple(CLOCKS)),
        ("encoding", request.encoding, ("", *(encoding.name.lower() for encoding in Encoding))),
    ):
        if value not in known:
            raise ParameterError(f"{name} = {value!r}", correction=f"use one of {', '.join(filter(None, known))}")


def require_between(*ranges: tuple[str, int, int, int]) -> None:
    """Raise ParameterError for a value (after its name) that is not between the two that follow it."""
    for name, value, low, high in ranges:
        if not low <= value <= high:
            raise ParameterError(f"{name} = {value} is out of range", correction=f"use {low:,} to {high:,}")
