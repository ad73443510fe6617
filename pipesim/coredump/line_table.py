"""Which line of the source an instruction is from: the line programs of DWARF 2 that NVIDIA's compilers write.

``.debug_line`` names lines of the source; an extended opcode of NVIDIA's says of a row in which row the function was
called that it was inlined from, and where in ``.debug_str`` that function's name is. ``.nv_debug_line_sass`` is of the
same form and names lines of the PTX.
"""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

_SET_ADDRESS, _END, _INLINED = 2, 1, 0x90
_MOST_ROWS = 1 << 20
_MOST_CALLS = 64  #: functions that are inlined into each other


class LineFrame(NamedTuple):
    """A line of a file, and the function that was inlined there, "" if none was."""

    file: str
    line: int
    function: str


class _LineRow(NamedTuple):
    address: int
    file: int
    line: int
    call: int = 0  #: the row of the same function, from 1, of the call that it was inlined at; 0 if it was not
    name: int = 0  #: where in the strings that function's name begins


class _LineProgram:
    """A place in a line program."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self.at = data, at

    def take(self, size: int) -> int:
        """A number of this many bytes. IndexError beyond the end."""
        if size < 0 or self.at + size > len(self._data):
            raise IndexError
        self.at += size
        return int.from_bytes(self._data[self.at - size : self.at], "little")

    def number(self, *, signed: bool = False) -> int:
        """A number in bytes of 7 bits (LEB128)."""
        value = shift = 0
        while True:
            byte = self.take(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value


class LineTable:
    """The lines of a module. What is damaged ends the table there."""

    def __init__(self, data: bytes, strings: bytes = b"") -> None:
        self.files: list[str] = []
        self.sizes: dict[str, int] = {}  #: the bytes that these had, 0 if that was not written
        self._strings = strings
        self._sequences: list[list[_LineRow]] = []
        with suppress(IndexError, ValueError):  # what was read before is kept
            self._parse(data)

    def lines_of(self, address: int) -> list[LineFrame]:
        """The line of an instruction, then those of the calls that it was inlined at, the kernel's last."""
        for rows in self._sequences:
            if rows[0].address <= address < rows[-1].address:
                at = bisect_right(rows, address, key=lambda each: each.address) - 1
                return list(self._way_out(rows, rows[at]))
        return []

    def rows(self) -> Iterator[tuple[int, int]]:
        """The address and the line of each row."""
        return ((row.address, row.line) for rows in self._sequences for row in rows)

    def _way_out(self, rows: list[_LineRow], row: _LineRow) -> Iterator[LineFrame]:
        for _ in range(_MOST_CALLS):
            name = self._strings[row.name : self._strings.find(b"\0", row.name)] if row.call else b""
            file = self.files[row.file - 1] if 0 < row.file <= len(self.files) else ""
            yield LineFrame(file, row.line, name.decode("utf-8", "replace"))
            if not 0 < row.call <= len(rows):
                return
            row = rows[row.call - 1]

    def _parse(self, data: bytes) -> None:
        end = min(4 + int.from_bytes(data[:4], "little"), len(data))
        reader = _LineProgram(data, 10 + int.from_bytes(data[6:10], "little"))
        base, width, opcodes = int.from_bytes(data[12:13], "little", signed=True), data[13], data[14]
        self._read_files(data, 14 + opcodes)
        address, file, line, inlined, rows = 0, 1, 1, (0, 0), list[_LineRow]()
        while reader.at < end and len(rows) < _MOST_ROWS:
            opcode = reader.take(1)
            if opcode >= opcodes:
                address += (opcode - opcodes) // width
                line += base + (opcode - opcodes) % width
                rows.append(_LineRow(address, file, line, *inlined))
                continue
            match opcode:
                case 0:
                    length = reader.number()
                    following, kind = reader.at + length, reader.take(1)
                    if kind == _SET_ADDRESS:
                        address = reader.take(length - 1)
                    elif kind == _INLINED:
                        inlined = reader.number(), reader.number()
                    elif kind == _END:
                        self._sequences.append([*rows, _LineRow(address, file, line)])
                        address, file, line, inlined, rows = 0, 1, 1, (0, 0), []
                    reader.at = following
                case 1:
                    rows.append(_LineRow(address, file, line, *inlined))
                case 2:
                    address += reader.number()
                case 3:
                    line += reader.number(signed=True)
                case 4:
                    file = reader.number()
                case 8:
                    address += (255 - opcodes) // width
                case 9:
                    address += reader.take(2)
                case _:
                    for _ in range(data[14 + opcode]):
                        reader.number()

    def _read_files(self, data: bytes, at: int) -> None:
        folders = [""]
        while data[at]:
            end = data.index(0, at)
            folders.append(data[at:end].decode("utf-8", "replace"))
            at = end + 1
        at += 1
        while data[at]:
            end = data.index(0, at)
            name, folder = data[at:end].decode("utf-8", "replace"), data[end + 1]  # in one byte: few have 128 folders
            self.files.append(f"{folders[folder]}/{name}" if 0 < folder < len(folders) else name)
            at = end + 1
            reader = _LineProgram(data, at)
            *_, self.sizes[self.files[-1]] = [reader.number() for _ in range(3)]  # the folder, a time and the size
            at = reader.at
