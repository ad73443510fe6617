"""The launch of a kernel that hung, out of its core dump: its PTX and a launch file that ``pipesim check`` accepts."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pipesim.answers.autopsy.coded_dump import line_of
from pipesim.coredump.cubin import cubins_of
from pipesim.coredump.dump import CoreDump, DumpGrid
from pipesim.launches.files.embedded_ptx import dumped_ptx
from pipesim.launches.files.launch_file import DescribedLaunch, describe_launch, kernel_text
from pipesim.launches.records.record import LaunchRecord, SeenParameter, SeenPointer
from pipesim.ptx.kernel import PTX

_MOST_ALIGN = 1 << 12
_RESERVED = 1024  #: bytes of shared memory that the system keeps for itself
_MOST_CONTENTS = 1 << 16  #: bytes after a pointer, if the synchronisation may depend on them
_SPACE = 40  #: bits below those that all addresses of a process share
_ROUNDED = 128  #: bytes to which the shared memory of a CTA is rounded up


def launch_of_dump(
    dump: CoreDump, grid: DumpGrid, ptx: Path | None = None, cta: int | None = None
) -> DescribedLaunch:  # fmt: skip
    """The launch of a grid, or why there is none, with the PTX in the dump, or that of a file, or of any in a folder.

    ``cta``: the one to be followed. PTX from elsewhere has to have the parameters of the machine code, at their places.
    A word of a parameter is a pointer if the dump has memory there, or if it lies where the code does. Memory is as the
    dump has it: what the kernel wrote before it stopped is not what was there at the launch. Raises PtxError.
    """
    both = ((c, code) for c in cubins_of(dump.images()) for code in c.functions if code.address == grid.code)
    cubin, code = next(both, (None, None))
    if cubin is None or code is None:
        return DescribedLaunch(None, "the machine code of its kernel is not in the dump")
    if ptx is None and not cubin.ptx:
        return DescribedLaunch(None, "there is no PTX in the dump: compile with -lineinfo, or give --ptx PATH")
    kernel, places = code.name, cubin.parameters_of(code.name)
    given = _texts(ptx, kernel) if ptx is not None else [cubin.ptx_with_lines(line_of)]
    texts = [kernel_text(each, "its PTX", kernel) for each in given]
    if ptx is not None:
        texts = [t for t in texts if not places or [n for _, n in places.values()] == [p.size for p in t.entry.params]]
    if len(texts) != 1:
        found = f"{len(texts)} different ones of" if texts else f"none of the {len(given)} with"
        return DescribedLaunch(None, f"{ptx} has {found} this kernel with the parameters of the machine code")
    text = texts[0]
    mine = (each for each in dump.ctas if (each.device, each.grid) == (grid.device, grid.number))
    shared = next((len(each.shared) for each in mine), 0)
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
        parameters=tuple(
            _parameter(dump, grid, places.get(n, (each.offset, each.size))) for n, each in enumerate(text.entry.params)
        ),
    )
    return describe_launch(record, text, cta)


def _texts(ptx: Path, kernel: str) -> Sequence[str]:
    """The PTX in a file, or the different ones of a folder that have a kernel. PtxError, UsageError."""
    if not ptx.is_dir():
        return [PTX.read_text(ptx)]
    return list(dict.fromkeys(text for _, text in dumped_ptx(ptx).get(kernel, ())))


def _parameter(dump: CoreDump, grid: DumpGrid, place: tuple[int, int]) -> SeenParameter:
    data = grid.parameters[place[0] : sum(place)]
    return SeenParameter(data, tuple(_pointers(dump, grid, data)))


def _pointers(dump: CoreDump, grid: DumpGrid, data: bytes) -> Iterator[SeenPointer]:
    for at in range(0, len(data) - 7, 8):
        value = int.from_bytes(data[at : at + 8], "little")
        contents = dump.memory_from(value, _MOST_CONTENTS)
        if contents or (value and value >> _SPACE == grid.code >> _SPACE):
            yield SeenPointer(at, min(value & -value, _MOST_ALIGN), contents or None)
