"""What ``launches`` answers: the kernels that a program launched, what was written of each, and verdicts if asked."""

from dataclasses import dataclass
from enum import Enum

from pipesim.answers.views.autopsy import AutopsyReport
from pipesim.answers.views.conclusion import Conclusion, of_verdict, worst
from pipesim.conform.agreement import Agreement
from pipesim.model.ending import Ending
from pipesim.model.finding import Verdict


@dataclass(frozen=True)
class LaunchRecording:
    """One launch that was to be recorded. ``trace`` and ``launch`` are files; "" if there are none, for a ``reason``.

    ``buffer``: the file of the records as the kernel left them, kept where no trace could be made of them. ``took_ns``:
    from the launch to its end as the host saw it. ``agreement``: whether the trace agrees with the program of the PTX,
    None if they were not compared; ``page``: the comparison in lines, where something is to be said. ``in_graph``:
    which kernel of which launch of a CUDA graph it was, "" if of none.
    """

    trace: str
    launch: str
    buffer: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    events: int
    ending: Ending | None
    took_ns: int
    reason: str = ""
    agreement: Agreement | None = None
    page: tuple[str, ...] = ()
    in_graph: str = ""


@dataclass(frozen=True)
class KernelRecording:
    """A kernel that was launched. ``ptx``: its file; "" if nothing of it was recorded, for the ``reason``.

    ``registers``, ``spills`` and ``stack`` are those of a thread, before and after the records were put in, by the same
    assembler; the latter two in bytes. ``launches``: how often it was launched, None if that is not known.
    """

    name: str
    origin: str
    ptx: str
    launches: int | None
    registers: tuple[int, int]
    spills: tuple[int, int]
    stack: tuple[int, int]
    recorded: tuple[LaunchRecording, ...] = ()
    warnings: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class RecordReport:
    """Everything that a program launched and what was recorded of it. ``folder`` has the files.

    ``status``: the exit status of the ``command``, as a shell has it, None where a part of a program was recorded.
    ``compared``: whether traces were to be compared with their programs.
    """

    folder: str
    command: tuple[str, ...]
    status: int | None
    devices: tuple[str, ...]
    kernels: tuple[KernelRecording, ...]
    notes: tuple[str, ...] = ()
    compared: bool = False

    @property
    def traces(self) -> tuple[LaunchRecording, ...]:
        """The launches of which there is a trace, in the order of the kernels."""
        return tuple(each for kernel in self.kernels for each in kernel.recorded if each.trace)

    @property
    def conclusion(self) -> Conclusion:
        """Unknown if there is no trace. Wrong if a launch did not end by itself, else the worst of the comparisons."""
        if not self.traces:
            return Conclusion.UNKNOWN
        return worst(_conclusion(each) for each in self.traces)


def _conclusion(each: LaunchRecording) -> Conclusion:
    """The conclusion from one trace; one that was not compared says nothing against its kernel."""
    if each.ending is not Ending.FINISHED:
        return Conclusion.WRONG
    return Conclusion.AGREES if each.agreement is None else of_verdict(each.agreement.verdict)


class HangCause(Enum):
    """Why a program was dumped. The value is a phrase for a report."""

    ASKED = "a person asked for it"
    STOOD_STILL = "nothing was read or written by it"


class DumpEnd(Enum):
    """How a core dump ended. The value is a phrase for a report."""

    COMPLETE = "complete"
    TRUNCATED = "truncated: its process ended, or the disk was full, before it was whole"
    MISSING = "missing: the driver wrote nothing"


@dataclass(frozen=True)
class ProcessDump:
    """The core dump of a process: ``rank`` in a distributed program ("" if it has none), the file and its size."""

    process: int
    rank: str
    file: str
    nbytes: int
    end: DumpEnd


@dataclass(frozen=True)
class DumpsAlike:
    """Dumps whose kernels stand alike, and what the first says; None, for a ``problem``, if it cannot be read."""

    dumps: tuple[ProcessDump, ...]
    autopsy: AutopsyReport | None
    problem: str = ""


@dataclass(frozen=True)
class HangReport:
    """What became of a program. ``cause`` is None where it ended by itself, with ``status`` as a shell has it.

    ``seconds``: without input and output, where that was the cause. ``dumps``: one of each process with a CUDA context,
    or those of an exception, of which the program ended.
    ``alike``: those that are complete, by what they say.
    """

    command: tuple[str, ...]
    status: int | None
    cause: HangCause | None
    seconds: float | None
    dumps: tuple[ProcessDump, ...]
    alike: tuple[DumpsAlike, ...] = ()

    @property
    def complete(self) -> tuple[ProcessDump, ...]:
        """Those that can be read to their end."""
        return tuple(each for each in self.dumps if each.end is DumpEnd.COMPLETE)


INDEX_FORMAT = "pipesim-launches"  #: of the file that lists them in a folder
INDEX_VERSION = 1
NOT_LISTED = frozenset({"verdict", "said"})  #: what a check says is not in that file


@dataclass(frozen=True)
class CaughtLaunch:
    """One launch of a kernel, of those that differ. ``file``: its launch file; "" if there is none, for a ``reason``.

    ``via``: "launch", or "graph" where a CUDA graph has it. ``notes`` are for who reads the file. ``verdict`` is None
    where it was not asked for, and ``said`` says it in a line.
    """

    file: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    via: str
    reason: str = ""
    notes: tuple[str, ...] = ()
    verdict: Verdict | None = None
    said: str = ""


@dataclass(frozen=True)
class CaughtKernel:
    """A kernel that was launched, with one PTX. ``ptx``: its file; "" if there is none, for a ``reason``.

    ``origin``: what had the PTX ("Triton", "NVRTC"). ``barriers``: whether its warps synchronise, None if not known.
    ``launches``: how often it was launched; None where a process ended before it could say so. ``distinct`` of them
    differ in more than addresses; ``left_out`` of these were not recorded, for a limit.
    """

    name: str
    origin: str
    arch: str
    ptx: str
    barriers: bool | None
    launches: int | None
    distinct: int
    left_out: int
    caught: tuple[CaughtLaunch, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class LaunchesReport:
    """Everything that a program launched. ``folder`` has the files, and ``launches.json``, which lists them.

    ``status``: the exit status of the ``command``, as a shell has it, None where a part of a program was observed.
    ``checked``: verdicts were asked for. ``notes``: what could not be observed.
    """

    folder: str
    command: tuple[str, ...]
    status: int | None
    devices: tuple[str, ...]
    kernels: tuple[CaughtKernel, ...]
    notes: tuple[str, ...] = ()
    checked: bool = False

    @property
    def written(self) -> tuple[CaughtLaunch, ...]:
        """The launches that have a file, in the order of the kernels."""
        return tuple(each for kernel in self.kernels for each in kernel.caught if each.file)

    @property
    def conclusion(self) -> Conclusion:
        """Unknown if nothing was written. Where verdicts were asked for, the worst of them.

        A launch of a kernel with barriers that could not be described is unknown then; of a kernel without PTX nothing
        is said.
        """
        if not self.written:
            return Conclusion.UNKNOWN
        if not self.checked:
            return Conclusion.AGREES
        every = [each for kernel in self.kernels for each in kernel.caught]
        return worst(of_verdict(each.verdict or Verdict.UNKNOWN) for each in every)
