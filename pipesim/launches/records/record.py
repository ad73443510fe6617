"""What is recorded of a process that is observed, as plain data."""

from dataclasses import dataclass, field

from pipesim.ptx.launch.values import Shape, TensorMap


@dataclass(frozen=True)
class ObservedProcess:
    """A process that was observed, and the device that it used first ("" where it used none)."""

    pid: int
    argv: tuple[str, ...]
    device: str
    arch: str


@dataclass(frozen=True)
class SeenPointer:
    """A word of a parameter, at a byte offset, that is an address of device memory, and what was copied from there.

    ``align`` is the largest power of two, at most 4096, that divides it.
    """

    at: int
    align: int
    contents: bytes | None = None


@dataclass(frozen=True)
class SeenMap:
    """128 bytes of a parameter, at a byte offset, that are a tensor map which the process has encoded."""

    at: int
    map: TensorMap


@dataclass(frozen=True)
class SeenParameter:
    """The bytes of one parameter, as the driver gave them, and what is known about them."""

    data: bytes
    pointers: tuple[SeenPointer, ...] = ()
    maps: tuple[SeenMap, ...] = ()


@dataclass(frozen=True)
class CopiedMemory:
    """An allocation that parameters of a launch lead to: its first address, and the file of its copy before the launch.

    ``file``: "" where there was no room for it.
    """

    start: int
    nbytes: int
    file: str


@dataclass(frozen=True)
class LaunchRecord:
    """One launch. ``code`` is the file of its PTX or of its fat binary's entry, "" where there is none (``why_not``).

    ``image``: the key of the module, "" if not known. ``parameters`` is None where the driver gave none. ``place`` is
    the file and the line of the record, ``process`` the file. ``in_graph``: which kernel of which
    launch of a CUDA graph it was, "" where that is not known or it was none.
    """

    kernel: str
    image: str
    code: str
    origin: str
    why_not: str
    grid: Shape
    block: Shape
    cluster: Shape
    dynamic_shared: int
    registers: int
    via: str
    parameters: tuple[SeenParameter, ...] | None
    process: str = ""
    place: str = ""
    memory: tuple[CopiedMemory, ...] = ()
    in_graph: str = ""


@dataclass(frozen=True)
class CountRecord:
    """How often a process launched a kernel, in how many different ways, and how many of these were not recorded."""

    kernel: str
    image: str
    launches: int
    distinct: int
    left_out: int
    process: str = ""


@dataclass(frozen=True)
class StepRecord:
    """A launch, or an ``act`` that orders streams, in the order of a process. ``launch``: the number of its record.

    -1 if it has none. ``buffers``: parameter, offset in it, end of the allocation and address of what each points to.
    """

    kernel: str
    launch: int
    buffers: tuple[tuple[int, int, int, int], ...]
    stream: str
    programmatic: bool
    act: str
    event: str
    process: str = ""


@dataclass(frozen=True)
class InstrumentedRecord:
    """A kernel that was instrumented; its PTX is the file ``code``.

    ``registers``, ``spills`` and ``stack``: before and after, of a thread, the latter two in bytes.
    """

    kernel: str
    code: str
    registers: tuple[int, int]
    spills: tuple[int, int]
    stack: tuple[int, int]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordedRecord:
    """A launch that was recorded, with the file of its buffer in the folder, or the ``reason`` why it was not."""

    launch: LaunchRecord
    file: str
    reason: str


@dataclass
class SpoolRecords:
    """All records of a spool folder, in the order of the processes' numbers and of their lines."""

    processes: list[ObservedProcess] = field(default_factory=list)
    launches: list[LaunchRecord] = field(default_factory=list)
    counts: list[CountRecord] = field(default_factory=list)
    steps: list[StepRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    instrumented: list[InstrumentedRecord] = field(default_factory=list)
    recorded: list[RecordedRecord] = field(default_factory=list)
