"""What ``launches`` answers: the kernels that a program launched, what was written of each, and verdicts if asked."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.answers.views.conclusion import Conclusion, of_verdict, worst
from pipesim.model.finding import Verdict

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
