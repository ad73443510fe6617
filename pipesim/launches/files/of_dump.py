"""The launch of a kernel that hung, out of its core dump: its PTX and a launch file that ``pipesim check`` accepts."""

from __future__ import annotations

from collections.abc import Iterator

from pipesim.answers.autopsy.coded_dump import line_of
from pipesim.coredump.cubin import cubins_of
from pipesim.coredump.dump import CoreDump, DumpGrid
from pipesim.launches.files.launch_file import DescribedLaunch, describe_launch, kernel_text
from pipesim.launches.records.record import LaunchRecord, SeenParameter, SeenPointer
from pipesim.ptx.text.module import Param

_MOST_ALIGN = 1 << 12
_RESERVED = 1024  #: bytes of shared memory that the system keeps for itself
_MOST_CONTENTS = 1 << 16  #: bytes after a pointer, if the synchronisation may depend on them
_SPACE = 40  #: bits below those that all addresses of a process share
_ROUNDED = 128  #: bytes to which the shared memory of a CTA is rounded up


def launch_of_dump(dump: CoreDump, grid: DumpGrid, ptx: str = "", cta: int | None = None) -> DescribedLaunch:
    """The launch of a grid, or why there is none, with this PTX or that in the dump; ``cta``: the one to be followed.

    A word of a parameter is a pointer if the dump has memory there, or if it lies where the code does. Memory is as the
    dump has it: what the kernel wrote before it stopped is not what was there at the launch. Raises PtxError.
    """
    both = ((c, code) for c in cubins_of(dump.images()) for code in c.functions if code.address == grid.code)
    cubin, code = next(both, (None, None))
    if cubin is None or code is None:
        return DescribedLaunch(None, "the machine code of its kernel is not in the dump")
    if not (ptx or cubin.ptx):
        return DescribedLaunch(None, "there is no PTX in the dump: compile with -lineinfo, or give --ptx FILE")
    kernel, text = code.name, kernel_text(ptx or cubin.ptx_with_lines(line_of), "its PTX", code.name)
    shared = next((len(each.shared) for each in dump.ctas if each.grid == grid.number), 0)
    dynamic = shared - max(cubin.size_of(f".nv.shared.{kernel}"), _RESERVED)
    record = LaunchRecord(
        kernel=kernel,
        image="",
        code="",
        origin="",
        why_not="",
        grid=grid.grid,
        block=grid.block,
        cluster=tuple(max(n, 1) for n in grid.cluster),  # type: ignore[arg-type]  # three of them
        dynamic_shared=dynamic if dynamic >= _ROUNDED else 0,
        registers=grid.registers,
        via="core dump",
        parameters=tuple(_parameter(dump, grid, each) for each in text.entry.params),
    )
    return describe_launch(record, text, cta)


def _parameter(dump: CoreDump, grid: DumpGrid, formal: Param) -> SeenParameter:
    data = grid.parameters[formal.offset : formal.offset + formal.size]
    return SeenParameter(data, tuple(_pointers(dump, grid, data)))


def _pointers(dump: CoreDump, grid: DumpGrid, data: bytes) -> Iterator[SeenPointer]:
    for at in range(0, len(data) - 7, 8):
        value = int.from_bytes(data[at : at + 8], "little")
        contents = dump.memory_from(value, _MOST_CONTENTS)
        if contents or (value and value >> _SPACE == grid.code >> _SPACE):
            yield SeenPointer(at, min(value & -value, _MOST_ALIGN), contents or None)
