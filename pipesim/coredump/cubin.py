"""The machine code in a dump: its functions, where they are in memory, and what a compiler left beside them."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from pipesim.bounds import MAX_FUNCTION_BYTES
from pipesim.coredump.elf import ElfFile, parse_elf
from pipesim.coredump.line_table import LineFrame, LineTable
from pipesim.coredump.sass.word import SIZE, Word, words_of
from pipesim.errors import CoreDumpError

_PROGBITS = 1
_TEXT, _CONSTANTS = ".text.", ".nv.constant0."
#: Of .nv.info: the form with a size, and the attributes of a parameter, and of the bytes of all.
_SIZED, _PARAMETER, _ALL_PARAMETERS = 4, 0x17, 0x19


@dataclass(frozen=True)
class MachineCode:
    """The code of one kernel: its name, and its address in memory, 0 if it is not loaded."""

    name: str
    address: int
    code: bytes
    number: int  #: of its section

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Its instructions."""
        return tuple(words_of(self.code))

    def word_at(self, offset: int) -> Word | None:
        """The instruction at an offset, None outside."""
        return self.words[offset // SIZE] if 0 <= offset < len(self.code) // SIZE * SIZE else None


class Cubin:
    """One module. What is damaged in it is not there."""

    def __init__(self, image: bytes) -> None:
        self.elf: ElfFile = parse_elf(image, "machine code")
        self._named = {self.elf.name_of(each): number for number, each in self.elf.sections.items()}

    def section(self, name: str) -> bytes:
        """What is in the section of this name; nothing if there is none."""
        number = self._named.get(name)
        return self.elf.bytes_of(self.elf.sections[number]) if number is not None else b""

    def size_of(self, name: str) -> int:
        """The bytes of the section of this name, 0 if there is none."""
        number = self._named.get(name)
        return self.elf.sections[number].size if number is not None else 0

    @cached_property
    def functions(self) -> tuple[MachineCode, ...]:
        """The code of each kernel, and of functions that have a section of their own."""
        return tuple(
            MachineCode(name.removeprefix(_TEXT), each.address, self.elf.bytes_of(each)[:MAX_FUNCTION_BYTES], number)
            for number, each in self.elf.of_kind(_PROGBITS)
            if (name := self.elf.name_of(each)).startswith(_TEXT)
        )

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of its kernels: each has constants with its parameters."""
        return tuple(name.removeprefix(_CONSTANTS) for name in self._named if name.startswith(_CONSTANTS))

    def parameters_of(self, kernel: str) -> dict[int, tuple[int, int]]:
        """Where each parameter of a kernel begins after the first byte of all, and its bytes, by its number.

        EIATTR_KPARAM_INFO of ``.nv.info``. PTX counts from the first parameter, which may begin later if it is aligned.
        Neither the section nor its attributes are documented: they count only where they end where all do, as
        EIATTR_CBANK_PARAM_SIZE has it.
        """
        data, at, total, found = self.section(f".nv.info.{kernel}"), 0, 0, dict[int, tuple[int, int]]()
        while at + 4 <= len(data):
            form, attribute, size = struct.unpack_from("<BBH", data, at)
            at += 4
            if (form, attribute) == (_SIZED, _PARAMETER) and size >= 12 and at + size <= len(data):
                number, offset, packed = struct.unpack_from("<HHI", data, at + 4)
                found[number] = offset, packed >> 18
            total = size if form != _SIZED and attribute == _ALL_PARAMETERS else total
            at += size if form == _SIZED else 0
        ends = max((offset + size for offset, size in found.values()), default=0)
        return dict(sorted(found.items())) if ends == total else {}

    @cached_property
    def ptx(self) -> str:
        """The PTX that it was compiled from, "" if the compiler left none (``-lineinfo`` makes it do so)."""
        lines = self.section(".nv_debug_ptx_txt").split(b"\0")  # empty ones keep the numbers of the others
        return "\n".join(line.decode("utf-8", "replace") for line in lines).rstrip("\n")

    def ptx_with_lines(self, choose: Callable[[list[LineFrame]], LineFrame]) -> str:
        """The PTX with the ``.loc`` and ``.file`` directives put back, of which the compiler leaves empty lines.

        ``choose``: one of the frames of an instruction, as the line that it is from.
        """
        text, files = self.ptx.split("\n"), dict[str, int]()
        for address, number in self.ptx_lines.rows():
            frames = self.lines.lines_of(address)
            if frames and 1 < number <= len(text) and not text[number - 2].strip():
                file, line, _ = choose(frames)
                text[number - 2] = f".loc {files.setdefault(file, len(files) + 1)} {line} 0"
        return "\n".join([*text, *(f'.file {n} "{name}"' for name, n in files.items() if '"' not in name)])

    @cached_property
    def lines(self) -> LineTable:
        """The lines of the source."""
        return LineTable(self.section(".debug_line"), self.section(".debug_str"))

    @cached_property
    def ptx_lines(self) -> LineTable:
        """The lines of :attr:`ptx`."""
        return LineTable(self.section(".nv_debug_line_sass"))


def cubins_of(images: Iterator[bytes]) -> Iterator[Cubin]:
    """The modules of a dump that can be read."""
    for image in images:
        try:
            yield Cubin(image)
        except CoreDumpError:
            continue
