"""What a CUDA core dump says: devices, grids, CTAs, warps and lanes, their registers, shared memory, and machine code.

The driver writes a table for each level, and says with each section to which row of which table it belongs: the layout
is that of NVIDIA's cudacoredump.h. Later drivers append fields to the rows, so a row is read as far as it goes. Rows of
warps are in the order of the hardware's slots: which threads they have, only the lanes say. What ended has no row.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pipesim.bounds import MAX_AGENTS, MAX_SMS
from pipesim.coredump.cubin import MachineCode
from pipesim.coredump.elf import ElfFile, ElfSection, open_elf
from pipesim.errors import CoreDumpError

_CORE, _CUDA = 4, 190  # e_type and e_machine
LANES = 32
_MOST_REGISTERS = 255
_MOST_CALLS, _CALL_BYTES = 16, 16
WIDE = 10  #: from this version of the SMs on, an instruction has 8 bits for a uniform register
#: Where constant bank 0 has the sizes of a block and of the grid, and where stacks end: before that version, and since
SIZES_AT, STACK_AT = ((0, 12), (0x360, 0x370)), (0x28, 0x37C)
Dim = tuple[int, int, int]


class DumpSection(IntEnum):
    """Types of sections (CudbgSectionHeaderTypes)."""

    MANAGED_MEMORY = 0x80000001
    GLOBAL_MEMORY = 0x80000002
    LOCAL_MEMORY = 0x80000003
    SHARED_MEMORY = 0x80000004
    REGISTERS = 0x80000005
    IMAGE = 0x80000006
    RELOCATED_IMAGE = 0x80000007
    BACKTRACE = 0x80000008
    DEVICES = 0x80000009
    CONTEXTS = 0x8000000A
    SMS = 0x8000000B
    GRIDS = 0x8000000C
    CTAS = 0x8000000D
    WARPS = 0x8000000E
    LANES = 0x8000000F
    MODULES = 0x80000010
    PREDICATES = 0x80000011
    PARAMETERS = 0x80000012
    UNIFORM_REGISTERS = 0x80000013
    UNIFORM_PREDICATES = 0x80000014
    CONSTANT_BANKS = 0x80000015
    META = 0x80000016


@dataclass(frozen=True)
class DumpDevice:
    """A GPU of the process: its number, and the version of its SMs (9, 0)."""

    number: int
    major: int
    minor: int
    sms: int

    @property
    def arch(self) -> str:
        """Its version as compilers name it ("sm_90")."""
        return f"sm_{self.major}{self.minor}"


@dataclass(frozen=True)
class DumpGrid:
    """A launch that had not ended. ``code``: the address of its kernel; ``parameters``: the bytes, if they are there;
    ``banks``: the address and size of each constant bank.
    """

    device: int
    number: int
    code: int
    parameters_at: int  #: their offset in constant bank 0
    registers: int
    grid: Dim
    block: Dim
    cluster: Dim
    parameters: bytes
    banks: dict[int, tuple[int, int]]
    context: int = 0


@dataclass(frozen=True)
class DumpLane:
    """A thread that had not ended. ``pc``: an address, or 0; ``offset``: from the start of its function."""

    row: int
    lane: int
    thread: Dim
    pc: int
    offset: int


@dataclass(frozen=True)
class DumpWarp:
    """A warp with lanes that had not ended. Its row does not say which of the CTA's warps it is: its lanes do."""

    registers: int
    lanes: tuple[DumpLane, ...]
    section: int  #: of its lanes' table
    table: tuple[int, int]  #: the section and the row that hold it
    exception: int = 0  #: CUDBGException_t, of any of its lanes
    error_pc: int = 0  #: the instruction that raised it, 0 if the hardware does not say
    is_broken: bool = False  #: it reached a breakpoint, as of ``trap``


@dataclass(frozen=True)
class DumpCta:
    """A CTA that had not ended. ``shared``: its shared memory, from the start of the window; empty if it is missing."""

    device: int
    sm: int
    grid: int
    block: Dim
    shared: bytes
    warps: tuple[DumpWarp, ...]


class _TableRow(NamedTuple):
    """A row of a table. A field that this version does not have is 0."""

    data: bytes  #: of the table
    begin: int
    size: int

    def get(self, at: int, form: str = "I") -> int:
        """One of its fields."""
        if at + struct.calcsize(form) > self.size:
            return 0
        return int(struct.unpack_from("<" + form, self.data, self.begin + at)[0])

    def dim(self, at: int) -> Dim:
        """Three of its fields."""
        return self.get(at), self.get(at + 4), self.get(at + 8)


class CoreDump:
    """A dump that was opened. What is not there, because the file was cut off, is said in ``notes``."""

    functions: tuple[MachineCode, ...] = ()  #: code that is in no image
    shows_all = True  #: a CTA that is not there has ended, or has not begun
    notes: tuple[str, ...]

    def __init__(self, elf: ElfFile, place: str) -> None:
        if (elf.kind, elf.machine) != (_CORE, _CUDA):
            cause = "it is machine code" if elf.machine == _CUDA else "it is the dump of a process of the host"
            raise CoreDumpError("this is not a core dump of a GPU", place=place, cause=cause)
        self.elf = elf
        self._numbers = {(each.kind, each.link, each.info): number for number, each in elf.sections.items()}
        self.notes = (*elf.notes, *self._missing())
        if not any(elf.of_kind(DumpSection.DEVICES)):
            cause = "; ".join(self.notes) or "it has no table of devices"
            more = "the process must live until the dump is complete"
            raise CoreDumpError("nothing can be read of this core dump", place=place, cause=cause, correction=more)

    def _missing(self) -> Iterator[str]:
        elf = self.elf
        if elf.expected and not elf.listed:
            yield f"it was cut off after {elf.length:,} bytes, before the table of its sections, which is at its end"
        elif not elf.expected:
            yield "its header names no sections: it was not written to its end"
        elif elf.listed < elf.expected:
            lost = elf.expected - elf.listed
            yield f"{lost:,} of its {elf.expected:,} sections are not in the file, from number {elf.listed:,} on"
        kinds = {each.kind for each in elf.missing.values()} & set(DumpSection)
        if elf.missing:
            words = sorted(DumpSection(kind).name.lower().replace("_", " ") for kind in kinds)
            yield f"{len(elf.missing):,} of its sections are not in the file: {', '.join(words) or 'of unknown types'}"

    def _rows(self, section: ElfSection | None, most: int = MAX_AGENTS) -> list[_TableRow]:
        """The rows of a table, not more than these; none if it is not there."""
        if section is None or section.row < 8:
            return []
        data, size = self.elf.bytes_of(section), section.row
        return [_TableRow(data, n * size, size) for n in range(min(len(data) // size, most))]

    def _section(self, kind: DumpSection, link: int, info: int) -> ElfSection | None:
        return self.elf.sections.get(self._numbers.get((kind, link, info), -1))

    def data(self, kind: DumpSection, link: int, info: int) -> bytes:
        """What is in the section of this type that belongs to a row of a table; nothing if it is not there."""
        section = self._section(kind, link, info)
        return self.elf.bytes_of(section) if section is not None else b""

    @cached_property
    def _device_table(self) -> int:
        return next(number for number, _ in self.elf.of_kind(DumpSection.DEVICES))

    @cached_property
    def devices(self) -> tuple[DumpDevice, ...]:
        """The GPUs that the process saw."""
        rows = self._rows(self.elf.sections[self._device_table])
        return tuple(DumpDevice(each.get(24), each.get(56), each.get(60), each.get(36)) for each in rows)

    @cached_property
    def wide(self) -> bool:
        """Whether its machine code is that of sm_100 and later."""
        return any(each.major >= WIDE for each in self.devices)

    @cached_property
    def grids(self) -> tuple[DumpGrid, ...]:
        """The launches that had not ended, of all devices."""
        return tuple(self._grids())

    def _grids(self) -> Iterator[DumpGrid]:
        for number, section in self.elf.of_kind(DumpSection.GRIDS):
            for n, row in enumerate(self._rows(section)):
                banks = {
                    bank.get(12): (bank.get(0, "Q"), bank.get(8))
                    for bank in self._rows(self._section(DumpSection.CONSTANT_BANKS, number, n), 64)
                }
                least = self._extents.get((section.info, row.get(0, "Q")), (1, 1, 1))
                yield DumpGrid(
                    device=section.info,
                    number=row.get(0, "Q"),
                    code=row.get(24, "Q"),
                    parameters_at=row.get(48, "Q"),
                    registers=row.get(68),
                    grid=self._size_of(row.dim(72), least, banks.get(0, (0, 0))[0]),
                    block=row.dim(84),
                    cluster=row.dim(104),
                    parameters=self.data(DumpSection.PARAMETERS, number, n),
                    banks=banks,
                    context=row.get(8, "Q"),
                )

    def _size_of(self, told: Dim, least: Dim, bank: int) -> Dim:
        """The size of a grid that has at least these CTAs: of a cooperative launch the table says one."""
        if all(a <= b for a, b in zip(least, told, strict=True)):
            return told
        data = self.memory(bank + SIZES_AT[self.wide][1], 12) if bank else b""
        x, y, z = struct.unpack("<III", data) if data else least
        if not data:
            self.notes = (*self.notes, f"the size of a grid is not known: it has CTAs in {x} x {y} x {z}")
        return x, y, z

    @cached_property
    def _extents(self) -> dict[tuple[int, int], Dim]:
        """Of each grid, how far its CTAs reach."""
        found: dict[tuple[int, int], Dim] = {}
        for cta in self.ctas:
            a, b, c = found.get((cta.device, cta.grid), (1, 1, 1))
            x, y, z = cta.block
            found[cta.device, cta.grid] = max(a, x + 1), max(b, y + 1), max(c, z + 1)
        return found

    @cached_property
    def ctas(self) -> tuple[DumpCta, ...]:
        """The CTAs that had not ended, in the order of the SMs."""
        return tuple(self._ctas())

    def _ctas(self) -> Iterator[DumpCta]:
        for table, section in self.elf.of_kind(DumpSection.SMS):
            for number_of_sm, sm in enumerate(self._rows(section, MAX_SMS)):
                number, rows = self._table(DumpSection.CTAS, table, number_of_sm)
                for n, row in enumerate(rows):
                    yield DumpCta(
                        device=section.info,
                        sm=sm.get(0),
                        grid=row.get(0, "Q"),
                        block=row.dim(8),
                        shared=self.data(DumpSection.SHARED_MEMORY, number, n),
                        warps=tuple(self._warps(number, n)),
                    )

    def _table(self, kind: DumpSection, link: int, info: int) -> tuple[int, list[_TableRow]]:
        """The number of the table of this type that belongs to a row of a table, 0 if it has none, and its rows."""
        number = self._numbers.get((kind, link, info), 0)
        return number, self._rows(self.elf.sections.get(number) if number else None)

    def _warps(self, table: int, row: int) -> Iterator[DumpWarp]:
        number, rows = self._table(DumpSection.WARPS, table, row)
        for n, warp in enumerate(rows):
            lane_table, of_lanes = self._table(DumpSection.LANES, number, n)
            of_lanes = of_lanes[:LANES]
            yield DumpWarp(
                registers=warp.get(32),
                lanes=tuple(
                    DumpLane(k, lane.get(16) % LANES, lane.dim(20), lane.get(0, "Q"), lane.get(8, "Q"))
                    for k, lane in enumerate(of_lanes)
                ),
                section=lane_table,
                table=(number, n),
                exception=max((lane.get(32) for lane in of_lanes), default=0),
                error_pc=warp.get(0, "Q") if warp.get(24) else 0,
                is_broken=bool(warp.get(20)),
            )

    @property
    def shared_windows(self) -> dict[int, int]:
        """Where shared memory is among generic addresses, by context."""
        tables = (self._rows(section) for _, section in self.elf.of_kind(DumpSection.CONTEXTS))
        return {row.get(0, "Q"): row.get(8, "Q") for rows in tables for row in rows}

    @property
    def exceptions(self) -> tuple[tuple[int, int, int], ...]:
        """Of each SM that saw one: its number, the exception, and the instruction, 0 if the hardware does not say."""
        tables = (self._rows(section, MAX_SMS) for _, section in self.elf.of_kind(DumpSection.SMS))
        return tuple(
            (sm.get(0), sm.get(8), sm.get(16, "Q") if sm.get(12) else 0) for rows in tables for sm in rows if sm.get(8)
        )

    def registers(self, warp: DumpWarp, lane: DumpLane) -> tuple[int, ...]:
        """The registers of a lane from R0 on, as far as the dump has them."""
        return _words(self.data(DumpSection.REGISTERS, warp.section, lane.row))

    def predicates(self, warp: DumpWarp, lane: DumpLane) -> tuple[int, ...]:
        """The predicates of a lane, from P0 on."""
        return _words(self.data(DumpSection.PREDICATES, warp.section, lane.row))

    def uniform_registers(self, warp: DumpWarp) -> tuple[int, ...]:
        """The uniform registers of a warp, from UR0 on."""
        return _words(self.data(DumpSection.UNIFORM_REGISTERS, *warp.table))

    def callers(self, warp: DumpWarp, lane: DumpLane, /) -> tuple[int, ...]:
        """The addresses of the calls that a lane is in, the innermost first."""
        rows = self._rows(self._section(DumpSection.BACKTRACE, warp.section, lane.row), _MOST_CALLS)
        return tuple(row.get(8, "Q") - _CALL_BYTES for row in rows)

    def images(self) -> Iterator[bytes]:
        """The machine code that is loaded, each module once: with the addresses at which it is, where that is there."""
        for _, section in self.elf.of_kind(DumpSection.RELOCATED_IMAGE):
            yield self.elf.bytes_of(section)

    def line_at(self, _address: int) -> str:
        """The line of the source that is given beside an instruction, "" in a dump: its machine code may have it."""
        return ""

    def memory(self, address: int, size: int) -> bytes:
        """Bytes of the device's memory; nothing where the dump does not have all of them."""
        found = self.memory_from(address, size)
        return found if len(found) == size else b""

    def memory_from(self, address: int, most: int) -> bytes:
        """Bytes of the device's memory from an address on, as far as the dump has them."""
        at = bisect_right(self._memory, address, key=lambda each: each.address) - 1
        inside = address - self._memory[at].address if at >= 0 else 0
        if at < 0 or inside >= self._memory[at].size:
            return b""
        return self.elf.read(self._memory[at].offset + inside, min(most, self._memory[at].size - inside))

    @cached_property
    def _memory(self) -> list[ElfSection]:
        kinds = (DumpSection.GLOBAL_MEMORY, DumpSection.MANAGED_MEMORY)
        found = (each for kind in kinds for _, each in self.elf.of_kind(kind))
        return sorted(found, key=lambda each: each.address)


def _words(data: bytes) -> tuple[int, ...]:
    """The words of a section of registers, which a damaged dump may make longer than a lane has registers."""
    count = min(len(data) // 4, _MOST_REGISTERS)
    return struct.unpack(f"<{count}I", data[: 4 * count])


def open_dump(path: Path) -> CoreDump:
    """A core dump of a GPU, as it is or packed by gzip or xz. CoreDumpError if it is none."""
    unused = frozenset({DumpSection.LOCAL_MEMORY})
    return CoreDump(open_elf(path, unused), str(path))
