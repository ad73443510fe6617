"""A kernel's PTX file with some of its lines written otherwise, read again: what a correction of a line is tried on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pipesim.model.program import Program
from pipesim.ptx.emulation import emulate, prepare
from pipesim.ptx.extract import emit
from pipesim.ptx.kernel import launch_of


class KernelReading(NamedTuple):
    """A program that was read from a file, with where its operations and its barriers are.

    ``lines``: for each agent and operation the line of the PTX file. ``offsets``: for each barrier its byte offset in
    shared memory.
    """

    program: Program
    lines: tuple[tuple[int, ...], ...]
    offsets: tuple[int, ...]


@dataclass(frozen=True)
class EditableKernel:
    """A PTX file and how one launch of it is named; see :func:`pipesim.ptx.kernel.read_kernel`."""

    ptx: Path
    launch: Path | None
    sets: tuple[str, ...]
    text: str

    def line(self, number: int) -> str:
        """The text of a line of the file, from 1 on."""
        return self.text.split("\n")[number - 1]

    def read(self, lines: Mapping[int, str] | None = None) -> KernelReading:
        """The program with these lines instead, by number. Raises PtxError or LaunchFileError."""
        text = self.text.split("\n")
        for number, new in (lines or {}).items():
            text[number - 1] = new
        ready = prepare(*launch_of("\n".join(text), self.ptx, self.launch, self.sets))
        emulation = emulate(ready)
        body = ready.function.body
        where = tuple(tuple(body[at].line for at in each.positions) for each in emulation.cluster.recorder.streams)
        made = emit(ready, emulation)
        return KernelReading(made.program, where, tuple(offset for _, offset in made.places))
