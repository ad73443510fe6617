"""Two core dumps as one of a process with two devices, or with two kernels on one: the sections of both."""

import struct

from pipesim.coredump.dump import CoreDump, DumpSection
from pipesim.coredump.elf import ElfSection, parse_elf

_HEADER, _ROW = 64, struct.Struct("<IIQQQQIIQQ")
_OF_DEVICE = {DumpSection.CONTEXTS, DumpSection.GRIDS, DumpSection.SMS}


def joined(first: bytes, second: bytes, *, device: int = 1) -> bytes:
    """The second dump's only device becomes one with this number: of 0, the kernels of both are on one device.

    Its SMs then come after the first dump's, as SMs of their own.
    """
    made, rows = bytearray(_HEADER), [ElfSection(0, 0, 0, 0, 0, 0, 0, 0)]

    def add(elf_data: bytes, each: ElfSection, link: int, info: int, data: bytes | None = None) -> None:
        content = elf_data[each.offset : each.offset + each.size] if data is None else data
        rows.append(each._replace(offset=len(made), size=len(content), link=link, info=info, name=0))
        made.extend(content)

    elfs = [parse_elf(data, "core") for data in (first, second)]
    tables = [next(n for n, _ in elf.of_kind(DumpSection.DEVICES)) for elf in elfs]
    devices = bytearray(elfs[0].bytes_of(elfs[0].sections[tables[0]]) + elfs[1].bytes_of(elfs[1].sections[tables[1]]))
    entry = elfs[0].sections[tables[0]].row
    struct.pack_into("<I", devices, entry + 24, 1)
    for n in range(1, len(elfs[0].sections)):
        each = elfs[0].sections[n]
        add(first, each, each.link, each.info, bytes(devices) if n == tables[0] and device else None)
    base = len(rows) - 1
    for n in range(1, len(elfs[1].sections)):
        each = elfs[1].sections[n]
        if n == tables[1]:
            add(second, each._replace(kind=0), 0, 0)
        elif each.link == tables[1] and each.kind in _OF_DEVICE:
            add(second, each, tables[0], device)
        else:
            add(second, each, each.link + base if each.link else 0, each.info)
    head = bytearray(first[:_HEADER])
    struct.pack_into("<Q", head, 40, len(made))
    struct.pack_into("<HHH", head, 58, _ROW.size, min(len(rows), 0xFFFF), 0)
    made[:_HEADER] = head
    for each in rows:
        made.extend(_ROW.pack(0, each.kind, 0, each.address, each.offset, each.size, each.link, each.info, 0, each.row))
    return bytes(made)


def without_kernels(data: bytes) -> bytes:
    """A dump of a device on which nothing runs: its tables of grids and SMs are empty."""
    made, elf = bytearray(data), parse_elf(data, "core")
    (start,) = struct.unpack_from("<Q", data, 40)
    for number, each in elf.sections.items():
        if each.kind in (DumpSection.GRIDS, DumpSection.SMS):
            struct.pack_into("<Q", made, start + _ROW.size * number + 32, 0)
    return bytes(made)


def opened(data: bytes) -> CoreDump:
    """A dump of these bytes."""
    return CoreDump(parse_elf(data, "core"), "core")
