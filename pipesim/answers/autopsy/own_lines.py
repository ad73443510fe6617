"""Which line a report names of an instruction of machine code: the innermost of the user's functions but for helpers.

The rule is that of PTX (``Helpers``), of calls that were inlined and of others: a function that is called is in the
code of its kernel, from where a CALL leads to where the next one does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

from pipesim.coredump.cubin import Cubin, MachineCode
from pipesim.coredump.line_table import LineFrame
from pipesim.coredump.sass.sync import SassSync, SyncInstruction
from pipesim.coredump.sass.word import SIZE, branch_target
from pipesim.ptx.text.instruction import Frame
from pipesim.ptx.text.locations import Helpers

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
