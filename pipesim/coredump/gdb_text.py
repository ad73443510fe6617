"""The text of cuda-gdb, as people paste it into issues, read as far as it goes in place of a core dump.

``info cuda threads`` says where all threads are, ``info cuda lanes`` and ``warps`` those of one warp or one SM;
``x/i`` gives instructions with the function's name, ``info registers`` a thread's registers, and ``x/gx`` memory. The
instructions that matter are written as machine code again, the rest of the code is zeros: not known.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pipesim.bounds import MAX_AGENTS
from pipesim.coredump.cubin import Cubin, MachineCode
from pipesim.coredump.dump import LANES, CoreDump, Dim, DumpCta, DumpDevice, DumpGrid, DumpLane, DumpWarp, open_dump
from pipesim.coredump.elf import DUMP
from pipesim.coredump.sass.word import RZ, SIZE, Word
from pipesim.errors import CoreDumpError
from pipesim.inputs import InputKind

_BINARY = (b"\x7fELF", b"\x1f\x8b", b"\xfd7zXZ")
_TEXT = InputKind("text of cuda-gdb", 1 << 24, CoreDumpError, "give what cuda-gdb printed")
_CUBIN = InputKind("cubin", 1 << 28, CoreDumpError, "give the machine code of the kernel: cuobjdump -xelf all PROGRAM")
_MOST_THREADS, _MOST_CODE, _MOST_SHARED = 1024, 1 << 20, 1 << 18
_DIM = r"\((\d{1,9}),(\d{1,9}),(\d{1,9})\)"
_PC = r"0x([0-9a-f]{1,16})"
_DEVICE = re.compile(r"^\*?\s*(\d{1,3})\s.*\bsm_(\d{1,2})(\d)\d*a?\s+(\d{1,4})\s")
_KERNEL = re.compile(rf"^\*?\s*(\d{{1,6}})\s+\S+\s+(\d{{1,3}})\s+(\d{{1,18}})\s+Active.*?{_DIM}\s+{_DIM}\s+(\S.*?)\s*$")
_FOCUS = re.compile(rf"CUDA kernel (\d{{1,6}}), grid (\d{{1,18}}),.*?block {_DIM}, thread {_DIM}")
_CLUSTER = re.compile(rf"cluster dim {_DIM}")
_LAUNCHED = re.compile(rf"(\w+)(?:\([^<]*\))?<<<{_DIM},{_DIM}>>>")
_THREADS = re.compile(rf"^\*?\s*{_DIM}\s+{_DIM}\s+{_DIM}\s+{_DIM}\s+\d+\s+{_PC}\s+(?:(\S+)\s+)?(\d+)\s*$")
_WARP = re.compile(rf"^\*?\s*\d+\s+{_PC}\s+{_PC}\s+{_PC}\s+(\d{{1,6}})\s+{_DIM}\s+{_DIM}")
_LANE = re.compile(rf"^\*?\s*\d+\s+(active|divergent)\s+{_PC}\s+{_DIM}")
_PLACE = re.compile(rf"{_PC}\s+<(\w{{2,}})(?:\([^>]*\))?\+(\d{{1,8}})>")
_CODE = re.compile(rf"^(?:=>)?\s*{_PC}\s+<(\w+)\+(\d{{1,8}})>:\s+(.*)$")
_DATA = re.compile(rf"^{_PC}(?:\s+<[^>]*>)?:((?:\s+0x(?:[0-9a-f]{{8}}|[0-9a-f]{{16}}))+)\s*$")
_REGISTER = re.compile(r"^(R|UR)(\d{1,3})\s+0x([0-9a-f]{1,8})\b")
#: By how a mnemonic begins: the opcode of the form that is written for it.
_OPCODES = {
    "SYNCS.PHASECHK": 0x5A7, "BAR.SYNC": 0xB1D, "BRA": 0x947, "EXIT": 0x94D, "WARPSYNC": 0x948, "BSYNC": 0x941,
    "UCGABAR_WAIT": 0xDC7, "NANOSLEEP": 0x95D, "LDG.E.STRONG": 0x981, "ATOMG.E.CAS": 0x9A9, "ATOMG": 0x9A8,
    "ACQBULK": 0x82E,
}  # fmt: skip
_NOP, _STRONG, _GUARDED = 0x918, 7 << 13, re.compile(r"^@(!?)P(\d)\s+")
_UNKNOWN_BYTE = 0xFF  #: of shared memory that is not in the text: no barrier has such a word


_SHAPE: tuple[Dim, Dim, str] = (1, 1, 1), (_MOST_THREADS, 1, 1), ""  #: of a kernel of which the text has none


class GdbDump(CoreDump):
    """What a text says, with the properties of a dump; ``cubin``: the machine code of its kernel."""

    exceptions = ()  # these are lines of it that are not read
    shared_windows: ClassVar[dict[int, int]] = {}

    def __init__(self, text: str, place: str, cubin: bytes = b"") -> None:
        self._devices: dict[int, DumpDevice] = {}
        self._kernels: dict[int, tuple[int, int, Dim, Dim, str]] = {}
        self._pcs: defaultdict[tuple[int, Dim], dict[Dim, int]] = defaultdict(dict)
        self._clusters: dict[int, Dim] = {}
        self._code: dict[str, dict[int, str]] = {}
        self._base: dict[str, int] = {}
        self._of_thread: defaultdict[tuple[int, Dim, Dim], dict[tuple[str, int], int]] = defaultdict(dict)
        self._shared: defaultdict[tuple[int, Dim], dict[int, bytes]] = defaultdict(dict)
        self._words: dict[int, bytes] = {}
        self._lines: dict[int, str] = {}
        self._focus: tuple[int, Dim, Dim] = (0, (0, 0, 0), (0, 0, 0))
        self._kernel, self.shows_all = 0, False
        for line in text.splitlines():
            self._read(line.rstrip())
        self._base |= {found[2]: int(found[1], 16) - int(found[3]) for found in _PLACE.finditer(text)}
        if not self._pcs:
            more = "paste `info cuda kernels`, `info cuda threads`, and of each warp `x/8i $pc-64` and `info registers`"
            if text.startswith("PAR1"):
                more = "of a trace `pipesim diff TRACE --protocol KERNEL.ptx` says who waits for whom"
            raise CoreDumpError("no thread of a GPU is in this text", place=place, correction=more)
        self.notes = () if self._code else ("it has no instructions: paste `x/8i $pc-64` of each warp as well",)
        self.notes += () if self.shows_all else ("it may lack CTAs: paste `info cuda threads`, which has all of them",)
        self.devices = tuple(self._devices.values()) or (DumpDevice(0, 9, 0, 0),)
        self.functions = tuple(self._functions(Cubin(cubin) if cubin else None))
        self.grids = tuple(self._grid(number) for number in dict.fromkeys(number for number, _ in self._pcs))
        self.ctas = tuple(self._cta(n, *each) for n, each in enumerate(list(self._pcs)[:MAX_AGENTS]))

    def _read(self, line: str) -> None:
        """One line, if it is of a kind that is known."""
        if found := _FOCUS.search(line):
            n = [int(each) for each in found.groups()]
            self._focus, self._kernel = (n[0], (n[2], n[3], n[4]), (n[5], n[6], n[7])), n[0]
            if cluster := _CLUSTER.search(line):
                self._clusters[n[0]] = int(cluster[1]), int(cluster[2]), int(cluster[3])
        elif found := _LAUNCHED.search(line):
            n = [int(each) for each in found.groups()[1:]]
            self._kernels.setdefault(self._kernel, (0, self._kernel, (n[0], n[1], n[2]), (n[3], n[4], n[5]), found[1]))
        elif found := re.match(r"^Kernel (\d{1,6})\s*$", line):
            self._kernel = int(found[1])
        elif found := _KERNEL.match(line):
            n = [int(each) for each in found.groups()[:9]]
            self._kernels[n[0]] = n[1], n[2], (n[3], n[4], n[5]), (n[6], n[7], n[8]), found[10].partition("(")[0]
        elif found := _DEVICE.match(line):
            number, major, minor, sms = (int(each) for each in found.groups())
            self._devices[number] = DumpDevice(number, major, minor, sms)
        elif found := _THREADS.match(line):
            n = [int(each) for each in found.groups()[:12]]
            pc, block, self.shows_all = int(found[13], 16), (n[0], n[1], n[2]), True
            self._put((self._kernel, block), (n[3], n[4], n[5]), (n[9], n[10], n[11]), pc)
            self._lines |= {pc: f"{found[14]}:{found[15]}"} if found[14] else {}
        elif found := _WARP.match(line):
            n = [int(each) for each in found.groups()[3:]]
            block, first, mask = (n[1], n[2], n[3]), (n[4], n[5], n[6]), int(found[1], 16)
            lanes = [at - (mask & -mask).bit_length() + 1 for at in range(LANES) if mask >> at & 1]
            for each in lanes:
                self._put((n[0], block), first, first, int(found[3], 16), each)
        elif found := _LANE.match(line):
            thread = int(found[3]), int(found[4]), int(found[5])
            self._put(self._focus[:2], thread, thread, int(found[2], 16))
        elif found := _CODE.match(line):
            self._code.setdefault(found[2], {})[int(found[3])] = found[4]
        elif found := _DATA.match(line):
            at, data = int(found[1], 16), b"".join(_bytes_of(each) for each in found[2].split())
            (self._shared[self._focus[:2]] if at < _MOST_SHARED else self._words)[at] = data
        elif found := _REGISTER.match(line):
            self._of_thread[self._focus][found[1], int(found[2])] = int(found[3], 16)

    def _put(self, cta: tuple[int, Dim], first: Dim, last: Dim, pc: int, beyond: int = 0) -> None:
        """Threads of a CTA from one to another, all at one place."""
        width, height, _ = self._kernels.get(cta[0], (0, 0, *_SHAPE))[3]
        start, end = (x + width * (y + height * z) for x, y, z in (first, last))
        for n in range(start + beyond, min(end + beyond, start + beyond + _MOST_THREADS) + 1):
            if width and height and n >= 0:
                self._pcs[cta][n % width, n // width % height, n // (width * height)] = pc

    def _functions(self, cubin: Cubin | None) -> list[MachineCode]:
        made = []
        for each in cubin.functions if cubin is not None else ():
            base = next((at for name, at in self._base.items() if name in each.name), 0)
            made += [replace(each, address=base)] if base else []
        if made:
            return made
        for number, (name, lines) in enumerate(self._code.items()):
            end = min(max(lines), _MOST_CODE) + SIZE
            words = [
                _word(lines[at], self._base[name] + at) if at in lines else Word(0, 0) for at in range(0, end, SIZE)
            ]
            code = b"".join(low.to_bytes(8, "little") + high.to_bytes(8, "little") for low, high in words)
            made.append(MachineCode(name, self._base[name], code, number))
        return made

    def _grid(self, kernel: int) -> DumpGrid:
        device, grid, size, block, name = self._kernels.get(kernel, (0, kernel, *_SHAPE))
        code = next((each.address for each in self.functions if name and name in each.name), 0)
        return DumpGrid(device, grid, code, 0, 0, size, block, self._clusters.get(kernel, (1, 1, 1)), b"", {})

    def _cta(self, number: int, kernel: int, block: Dim) -> DumpCta:
        device, grid, _, (width, height, _), _ = self._kernels.get(kernel, (0, kernel, *_SHAPE))
        warps: defaultdict[int, list[DumpLane]] = defaultdict(list)
        for thread, pc in self._pcs[kernel, block].items():
            n = thread[0] + width * (thread[1] + height * thread[2])
            warps[n // LANES].append(DumpLane(n, n % LANES, thread, pc, pc))
        given = self._shared.get((kernel, block), {})
        shared = bytearray([_UNKNOWN_BYTE]) * max((at + len(data) for at, data in given.items()), default=0)
        for at, data in given.items():
            shared[at : at + len(data)] = data
        made = (DumpWarp(0, tuple(lanes), number, (number, n)) for n, lanes in sorted(warps.items()))
        return DumpCta(device, -1, grid, block, bytes(shared), tuple(made))

    def images(self) -> Iterator[bytes]:
        """None: a text has no machine code in files."""
        return iter(())

    def callers(self, _warp: DumpWarp, _lane: DumpLane, /) -> tuple[int, ...]:
        """Nothing: a text has ``bt`` of one thread at most."""
        return ()

    def line_at(self, address: int) -> str:
        """The line of the source that the text has beside a program counter."""
        return self._lines.get(address, "")

    def _register(self, warp: DumpWarp, lane: DumpLane, kind: str) -> tuple[Any, ...]:
        """Registers of a thread that was in focus, None for one that is not in the text."""
        values = self._of_thread.get((*list(self._pcs)[warp.section], lane.thread), {})
        known = [n for name, n in values if name == kind]
        return tuple(values.get((kind, n)) for n in range(max(known, default=-1) + 1))

    def registers(self, warp: DumpWarp, lane: DumpLane) -> tuple[Any, ...]:
        """Those of a lane from R0 on."""
        return self._register(warp, lane, "R")

    def predicates(self, _warp: DumpWarp, _lane: DumpLane) -> tuple[int, ...]:
        """None: nothing that waits depends on them."""
        return ()

    def uniform_registers(self, warp: DumpWarp) -> tuple[Any, ...]:
        """Those of the warp, of which a thread was in focus."""
        return next((found for lane in warp.lanes if (found := self._register(warp, lane, "UR"))), ())

    def memory_from(self, address: int, most: int) -> bytes:
        """Global memory that the text shows."""
        return next((d[address - at :][:most] for at, d in self._words.items() if 0 <= address - at < len(d)), b"")


def _bytes_of(word: str) -> bytes:
    return int(word, 16).to_bytes((len(word) - 2) // 2, "little")


def _word(text: str, at: int) -> Word:
    """An instruction as machine code, as far as it waits, asks or branches; else one that does nothing."""
    guard, rest = _GUARDED.match(text), _GUARDED.sub("", text)
    under = int(guard[2]) << 12 | bool(guard[1]) << 15 if guard else 7 << 12
    opcode = next((code for name, code in _OPCODES.items() if rest.startswith(name)), _NOP)
    low, high = opcode | under, _STRONG if "STRONG" in rest else 0
    numbers = [int(each, 16) for each in re.findall(r"(?<=[ ,])0x([0-9a-f]{1,16})", rest)]
    bracket = re.search(r"\[([^\[\]]*)\][^\[\]]*$", rest)
    inside = re.findall(r"\b(U?R)(\d{1,3}|Z)|\+(-?)0x([0-9a-f]{1,6})", bracket[1]) if bracket else []
    register = {kind: int(n) if n.isdigit() else RZ for kind, n, _, _ in inside if kind and (kind, n) != ("UR", "Z")}
    low |= (register.get("R", RZ) & 0xFF) << 24
    match opcode:
        case 0x947:
            away = ((numbers or [at + SIZE])[-1] - at - SIZE) // 4
            low |= (away & 0xFF) << 16 | (away >> 8 & (1 << 30) - 1) << 34
            high |= 7 << 23 | away >> 38 & 0x3FFF
        case 0xB1D:
            low |= (numbers or [0])[0] << 54 | (numbers[1] if len(numbers) > 1 else 0) << 42
        case 0x5A7 | 0x981 | 0x9A8 | 0x9A9:
            value = re.search(r"\],?R(\d{1,3})", rest)
            offset = next((-int(n, 16) if minus else int(n, 16) for _, _, minus, n in inside if n), 0)
            low |= (int(value[1]) if value else RZ) << 32 | (offset & 0xFFFFFF) << 40
            high |= 1 << 27 | register["UR"] if "UR" in register else 0
            high |= 0 if opcode == 0x5A7 else 4 << 9
            written = re.match(r"[\w.]+\s+(?:P\w,)?R(\d{1,3})", rest)
            low |= (int(written[1]) if written else RZ) << 16
    return Word(low & (1 << 64) - 1, high)


def open_dump_or_text(path: Path, cubin: Path | None = None) -> CoreDump:
    """A core dump, or instead the text of cuda-gdb, with machine code beside it. CoreDumpError if neither."""
    with DUMP.open(path) as file:
        start = file.read(8)
    if start.startswith(_BINARY):
        return open_dump(path)
    return GdbDump(
        _TEXT.read_bytes(path).decode("utf-8", "replace"), str(path), _CUBIN.read_bytes(cubin) if cubin else b""
    )
