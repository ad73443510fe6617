"""What ``record`` answers: the kernels that a program launched, with the traces that were recorded of each."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.answers.views.conclusion import Conclusion, of_verdict, worst
from pipesim.conform.agreement import Agreement
from pipesim.model.ending import Ending


@dataclass(frozen=True)
class LaunchRecording:
    """One launch that was to be recorded. ``trace`` and ``launch`` are files; "" if there are none, for a ``reason``.

    ``buffer``: the file of the records as the kernel left them, kept where no trace could be made of them. ``took_ns``:
    from the launch to its end as the host saw it. ``agreement``: whether the trace agrees with the program of the PTX,
    None if they were not compared; ``page``: the comparison in lines, where something is to be said.
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
