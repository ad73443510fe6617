"""The launches of a program on a chip: copies of their buffers, and the schedules of their findings.

The program runs as it does without pipesim: its launches are observed, and the memory that they lead to is copied
before each. Once it has ended, each launch is checked, and what is refuted is launched by other processes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipesim.answers.budget import Budget, states_of
from pipesim.answers.check import check
from pipesim.answers.progress import SILENT, Progress
from pipesim.confirm.confirm import ConfirmOptions, confirm
from pipesim.confirm.launches import Chip
from pipesim.confirm.memory import LaunchBytes, LaunchMemory
from pipesim.confirm.report import ConfirmProgramReport, LaunchOnChip
from pipesim.errors import LaunchFileError, PipesimError, internal_error
from pipesim.launches.files.gather import gather, write_launches
from pipesim.launches.record.preparation import require_no_variables
from pipesim.launches.records.record import LaunchRecord
from pipesim.model.finding import Verdict
from pipesim.process.limits import LimitReachedError, limit_error
from pipesim.process.watch import current
from pipesim.report.findings.brief import in_one_line
from pipesim.targets import find

_WORD = 8


@dataclass(frozen=True)
class LaunchConfirming:
    """How launches are put on a chip. ``folder``: where their PTX and launch files are written."""

    folder: Path
    chip: Chip
    options: ConfirmOptions
    budget: Budget | None = None
    progress: Progress = SILENT

    def report(
        self, spool: Path, command: Sequence[str] = (), status: int | None = None, patterns: Sequence[str] = ()
    ) -> ConfirmProgramReport:
        """What becomes of the launches that a spool folder has. Raises as ``gather``."""
        made_of: dict[str, LaunchRecord] = {}
        report, texts = gather(spool, command=command, status=status, patterns=patterns, made_of=made_of)
        write_launches(report, texts, self.folder, force=self.options.force)
        found = []
        for kernel in (each for each in report.kernels if each.barriers is not False):
            for each in kernel.caught:
                none = LaunchOnChip(kernel.name, kernel.ptx, each.file, Verdict.UNKNOWN, f"unknown: {each.reason}")
                found.append(self._confirmed(none, made_of[each.file], spool) if each.file else none)
            if not kernel.caught:
                found.append(LaunchOnChip(kernel.name, "", "", Verdict.UNKNOWN, f"unknown: {kernel.reason}"))
        return ConfirmProgramReport(str(self.folder), tuple(report.command), status, tuple(found), report.notes)

    def _confirmed(self, launch: LaunchOnChip, record: LaunchRecord, spool: Path) -> LaunchOnChip:
        """One launch; an error of it is what is said about it."""
        try:
            target = find(str(self.folder / launch.ptx), launch=str(self.folder / launch.launch))
            program = target.build()
            most = states_of(None, program)
            checked = check(
                target, {}, max_states=most, program=program, quick=True, budget=self.budget, progress=self.progress
            )
            launch = replace(launch, verdict=checked.verdict, said=in_one_line(checked))
            if not checked.refutations:
                return launch
            require_no_variables(target.editable.text if target.editable is not None else "")
            given = target.kernel.kernel.launch.parameters if target.kernel is not None else ()
            names = [each.name or f"parameter {n}" for n, each in enumerate(given)]
            memory = copied_memory(record, names, spool)
            return replace(launch, on_chip=confirm(target, checked, self.chip, self.options, memory))
        except PipesimError as error:
            fact = error.fact
        except Exception as error:  # noqa: BLE001  # a mistake of ours in one launch must not lose the others
            fact = internal_error(error).fact
        except LimitReachedError as reached:
            current().resume()
            fact = limit_error(reached).fact
        known = f"{launch.said}; not launched again" if launch.verdict is Verdict.REFUTED else "unknown"
        return replace(launch, said=f"{known}: {fact}")


def copied_memory(record: LaunchRecord, names: Sequence[str], spool: Path) -> LaunchMemory:
    """The memory of a launch as its program had it; addresses are those of its parameters and in tensor maps.

    LaunchFileError where it was not copied.
    """
    if not record.memory:
        raise LaunchFileError("its memory was not copied", cause="it is launched by a CUDA graph, or leads nowhere")
    if any(not each.file for each in record.memory):
        total = sum(each.nbytes for each in record.memory)
        raise LaunchFileError(f"its buffers have {total:,} bytes", correction="copy more, with --max-bytes")
    made = LaunchMemory([], [], [""] * len(record.memory))
    for each in record.memory:
        made.buffers.append(LaunchBytes(each.nbytes, file=str(spool / each.file)))
    for name, parameter in zip(names, record.parameters or (), strict=True):
        data = parameter.data
        made.parameters.append(LaunchBytes(len(data), known=[(0, data.hex())]))
        for at in (*(each.at for each in parameter.pointers), *(each.at for each in parameter.maps)):
            address = int.from_bytes(data[at : at + _WORD], "little")
            inside = [n for n, each in enumerate(record.memory) if 0 <= address - each.start < each.nbytes]
            if not inside:
                raise LaunchFileError(f"{name} leads to memory that is mapped in parts, which was not copied")
            made.parameters[-1].pointers.append((at, inside[0], address - record.memory[inside[0]].start))
            made.names[inside[0]] = made.names[inside[0]] or name
    return made
