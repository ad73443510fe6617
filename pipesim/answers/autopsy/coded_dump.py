"""A dump with its machine code: the places of instructions, the names of words, and where a CTA is in its grid.

Of an instruction a report names the line of the innermost of the user's functions but for helpers. The rule is that of
PTX (``Helpers``), of calls that were inlined and of others: a function that is called is in the code of its kernel,
from where a CALL leads to where the next one does.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from pipesim.answers.autopsy.standing import Standing, Standings
from pipesim.coredump.cubin import Cubin, MachineCode, cubins_of
from pipesim.coredump.dump import CoreDump, Dim, DumpCta, DumpGrid
from pipesim.coredump.line_table import LineFrame
from pipesim.coredump.sass.sync import SassSync, SyncInstruction
from pipesim.coredump.sass.word import SIZE, branch_target
from pipesim.ptx.emit.names import short_file
from pipesim.ptx.names.paths import kernel_name
from pipesim.ptx.source_files import enter_sources
from pipesim.ptx.text.instruction import Frame
from pipesim.ptx.text.locations import Helpers, is_library

_MOST_AWAY = 1 << 30  #: bytes of a word from where a parameter points to


def line_of(frames: list[LineFrame]) -> LineFrame:
    """The line of calls that are inlined into each other, the innermost first: the kernel's, or else the user's."""
    mine = [frame for frame in frames if not is_library(frame.file)]
    return frames[-1] if frames[-1] in mine else (mine or frames)[0]


class CodedDump:
    """A dump with its machine code."""

    def __init__(self, dump: CoreDump, name: str, *, anonymous: bool) -> None:
        self.dump, self.anonymous = dump, anonymous
        self.cubins = tuple(cubins_of(dump.images()))
        sizes = {file: size for cubin in self.cubins for file, size in cubin.lines.sizes.items() if not anonymous}
        self.sources = enter_sources(Path(name), sizes, sizes)  #: those that are there, or beside the dump
        self.codes: dict[int, tuple[Cubin | None, MachineCode]] = {
            each.address: (None, each) for each in dump.functions
        }
        self.codes |= {each.address: (cubin, each) for cubin in self.cubins for each in cubin.functions if each.address}
        self.wide = dump.wide
        self._own: dict[int, OwnLines] = {}
        self.standings = Standings(dump, [code for _, code in self.codes.values()], wide=self.wide)

    def place(self, code: MachineCode | None, offset: int, calls: Sequence[int] = ()) -> str:
        """A line of the source, or a place in machine code; ``calls``: the addresses of those that led there."""
        pc = (code.address if code is not None else 0) + offset
        given = next(filter(None, (self.dump.line_at(pc + n) for n in (0, SIZE, 2 * SIZE))), "")  # after a wait
        if given and not self.anonymous:
            return short_file(given)
        if code is None or self.anonymous:
            return f"+{offset:#x}"
        cubin = self.codes[code.address][0] if code.address in self.codes else None
        if cubin is None:
            return f"{kernel_name(code.name)}+{offset:#x}"
        if code.address not in self._own:
            self._own[code.address] = OwnLines(cubin, code, self.standings.flow(code).syncs)
        frame = self._own[code.address].line_of(offset, [each - code.address for each in calls])
        return f"{short_file(frame.file)}:{frame.line}" if frame else f"{kernel_name(code.name)}+{offset:#x}"

    def place_of(self, standing: Standing) -> str:
        """The line of where lanes wait."""
        calls = self.dump.callers(standing.warp, standing.lanes[0])
        return self.place(standing.code, standing.offset, calls)

    def word_name(self, grid: DumpGrid, address: int) -> str:
        """A word of global memory, by the parameter of the kernel that points to it or closely before it."""
        cubin, code = self.codes.get(grid.code, (None, None))
        at = cubin.parameters_of(code.name) if cubin is not None and code is not None else {}
        found = []
        for number, (start, size) in at.items():
            for slot in range(start, min(start + size, len(grid.parameters)) - 7, 8):
                away = address - int.from_bytes(grid.parameters[slot : slot + 8], "little")
                if 0 <= away < _MOST_AWAY:
                    found.append((away, f"param_{number}" + (f"[{slot - start}]" if slot > start else "")))
        if not found:
            return "" if self.anonymous else f"at {address:#x}"
        away, name = min(found)
        return f"{name} + {away}" if away else name

    def kernel_name(self, name: str) -> str:
        """The name of a kernel in a report."""
        return f"kernel-{sha256(name.encode()).hexdigest()[:8]}" if self.anonymous else name


def cluster_of(grid: DumpGrid) -> Dim:
    """The CTAs of a cluster in each direction."""
    x, y, z = grid.cluster
    return max(x, 1), max(y, 1), max(z, 1)


def unit_of(grid: DumpGrid, cta: DumpCta) -> Dim:
    """The cluster that a CTA is of."""
    x, y, z = (at // size for at, size in zip(cta.block, cluster_of(grid), strict=True))
    return z, y, x


def rank_of(grid: DumpGrid, cta: DumpCta) -> int:
    """A CTA's number in its cluster."""
    width, height, depth = cluster_of(grid)
    x, y, z = (at % n for at, n in zip(cta.block, (width, height, depth), strict=True))
    return x + width * (y + height * z)


def number_of(grid: DumpGrid, block: Dim) -> int:
    """A CTA's number in its grid."""
    x, y, z = block
    return x + grid.grid[0] * (y + grid.grid[1] * z)


_CALL = 0x944
_MOST_CALLERS, _DEEPEST = 8, 4
_OF_A_HEADER = 4  #: one more than in PTX: of what is inlined, assemblers name the line above as well
_NOT_NAMED = frozenset({SassSync.BRANCH, SassSync.CALL, SassSync.EXIT, SassSync.LANES, SassSync.SLEEP})
_Places = tuple[int, ...]  #: offsets, the innermost first


class OwnLines:
    """The lines of one kernel's code."""

    def __init__(self, cubin: Cubin, code: MachineCode, syncs: Sequence[SyncInstruction | None]) -> None:
        self._cubin, self._code = cubin, code
        self._callers: defaultdict[int, list[int]] = defaultdict(list)
        for n, word in enumerate(code.words):
            if word.opcode == _CALL:
                self._callers[branch_target(word, n * SIZE)].append(n * SIZE)
        self._entries = sorted(self._callers)
        named = (n * SIZE for n, sync in enumerate(syncs) if sync is not None and sync.kind not in _NOT_NAMED)
        chains = (self._frames(places) for at in named for places in self._ways_to(at))
        self._helpers = Helpers((frames for frames in chains if frames), _OF_A_HEADER)

    def line_of(self, offset: int, calls: Sequence[int]) -> Frame | None:
        """The line of an instruction, None if the module has none; ``calls``: the offsets of those that led there."""
        ways = [(offset, *calls)] if calls else list(self._ways_to(offset))
        frames = self._frames(ways[0] if len(ways) == 1 else (offset,))
        return self._helpers.own(frames) if frames else None

    def _entry(self, offset: int) -> int:
        """Where the function begins that an instruction is in, -1 of the kernel itself."""
        at = bisect_right(self._entries, offset)
        return self._entries[at - 1] if at else -1

    def _ways_to(self, offset: int, depth: int = 0) -> Iterator[_Places]:
        entry = self._entry(offset)
        if entry < 0 or depth == _DEEPEST:
            yield (offset,)
            return
        for caller in self._callers[entry][:_MOST_CALLERS]:
            yield from ((offset, *rest) for rest in self._ways_to(caller, depth + 1))

    def _frames(self, places: _Places) -> tuple[Frame, ...]:
        """The lines of these places, the kernel's first."""
        found = list[Frame]()
        for at in places:
            lines = self._cubin.lines.lines_of(self._code.address + at)
            found += [Frame(each.file, each.line, self._name(each, at)) for each in lines if each.file]
        return tuple(reversed(found))

    def _name(self, frame: LineFrame, at: int) -> str:
        return frame.function or f"{self._code.name} {self._entry(at)}"
