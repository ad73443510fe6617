"""What each warp did before the kernel stopped, and would do next, found by following its machine code.

A path from the kernel's entry is known to reach where the dump shows the warp by the registers that it has there:
those that are known are the same. Continued from there it begins with the registers of the dump.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pipesim.answers.autopsy.standing import Standing, WaitsFor, lane_state
from pipesim.coredump.cubin import MachineCode
from pipesim.coredump.dump import LANES, SIZES_AT, STACK_AT, CoreDump, Dim, DumpGrid, DumpWarp
from pipesim.coredump.sass.lanes import WORD, LaneState, Value, of_lane, together
from pipesim.coredump.sass.operands import CodeInputs
from pipesim.coredump.sass.sync import SassSync
from pipesim.coredump.sass.walk import SyncEvent, Walk, WalkEnd, WarpCode, comes_to
from pipesim.coredump.sass.word import SIZE

_MOST_BEHIND, _MOST_AHEAD = 12_000, 4_000  #: instructions of a path from the entry, and of one on from the dump
_ALL_BEHIND, _ALL_AHEAD = 160_000, 60_000  #: of all warps of a CTA or a cluster: a second or two
_PROLOGUE = 32  #: instructions in which a kernel takes its stack
WINDOW = 24
OFFSET = (1 << WINDOW) - 1  #: of an address in the window of a cluster, what is that in the shared memory of a CTA
_TID, _CTAID, _LANE, _RANK, _HIGH = (0x21, 0x22, 0x23), (0x25, 0x26, 0x27), 0x00, 0x88, 0x2F
#: What lanes are at, as a path meets it.
_MET = {
    WaitsFor.PRIMARY: SassSync.PRIMARY_WAIT,
    WaitsFor.MBARRIER: SassSync.WAIT, WaitsFor.NAMED: SassSync.BAR_SYNC, WaitsFor.CLUSTER: SassSync.CLUSTER_WAIT,
    WaitsFor.REGISTERS: SassSync.ASK_REGISTERS, WaitsFor.GROUPS: SassSync.GROUP_WAIT,
    WaitsFor.WGMMA: SassSync.WGMMA_WAIT,
}  # fmt: skip

#: Met by loads, which a path does not stop at otherwise.
_ASKED = frozenset({WaitsFor.GLOBAL, WaitsFor.SHARED, WaitsFor.SLEEP})

Barrier = tuple[int, int]  #: rank in the cluster, and address in the shared memory of that CTA


@dataclass(frozen=True)
class WarpWalk:
    """A warp's way: ``behind`` it and ``ahead`` of it.

    ``whole``: the path from the entry reached where the warp is, or to its end, without a branch that is not known.
    ``lost``: it, or some lane of it, ended elsewhere; else what it did is all that may have been. ``ends``: what is
    ahead is to its end. ``steps``: its instructions from the entry on, ``turned`` the branches with a condition among
    them, ``forked`` those of which the condition is not known.
    """

    behind: tuple[SyncEvent, ...]
    ahead: tuple[SyncEvent, ...]
    whole: bool
    lost: bool
    ends: bool
    steps: int = 0
    turned: tuple[int, ...] = ()
    forked: frozenset[int] = frozenset()


class Walks:
    """Paths of the ``warps`` of one CTA or cluster."""

    def __init__(
        self, dump: CoreDump, grid: DumpGrid, code: MachineCode, warps: int, *, wide: bool, alone: bool = True
    ) -> None:  # fmt: skip
        self._most_behind = min(_MOST_BEHIND, _ALL_BEHIND // max(warps, 1))
        self._most_ahead = min(_MOST_AHEAD, _ALL_AHEAD // max(warps, 1))
        self._dump, self._grid, self._code, self._wide, self._alone = dump, grid, code, wide, alone
        self._constants: dict[tuple[int, int, int], int | None] = {}

    def of(
        self, number: int, block: Dim, rank: int, warp: DumpWarp | None, standing: Sequence[Standing],
        noticed: frozenset[int] = frozenset(), *, blind: bool = False,
    ) -> WarpWalk:  # fmt: skip
        """The path of one warp of a CTA; ``warp`` is None for one that has ended.

        ``noticed``: loads and stores that are events of it. ``blind``: no word of memory is known, nor whether an end
        with a condition is one.
        """
        code, count = self.code_of(number, block, rank, blind=blind)
        behind, came = self._behind(code, count, warp, standing, noticed)
        came = [] if behind.lost else came
        ahead, ends = self._ahead(code, warp, standing, came, noticed) if warp is not None else ((), True)
        return replace(behind, ahead=ahead, ends=ends)

    def code_of(self, number: int, block: Dim, rank: int, *, blind: bool = False) -> tuple[WarpCode, int]:
        """The code as a warp of a CTA executes it, and the threads of that warp."""
        threads = self._threads(number)
        window = self._dump.shared_windows.get(self._grid.context)
        high = window >> 32 if window is not None else None
        special: dict[int, Value] = {_LANE: tuple(range(LANES)), _RANK: rank, _HIGH: high}
        special |= {each: together([threads[n][k] for n in range(LANES)]) for k, each in enumerate(_TID)}
        special |= dict(zip(_CTAID, block, strict=True))
        memory = (lambda _address, _size: None) if blind else self.memory
        around = CodeInputs(self._constant, special.get, memory, self._wide)
        code = WarpCode(self._code.words, around, stays=blind, alone=self._alone)
        return code, sum(each != (-1, -1, -1) for each in threads.values())

    def _threads(self, number: int) -> dict[int, Dim]:
        """The thread of each lane; (-1, -1, -1) for lanes that the block has no threads for."""
        width, height, depth = self._grid.block
        found = {}
        for lane in range(LANES):
            n = number * LANES + lane
            inside = n < width * height * depth
            found[lane] = (n % width, n // width % height, n // (width * height)) if inside else (-1, -1, -1)
        return found

    def _behind(
        self, code: WarpCode, threads: int, warp: DumpWarp | None, standing: Sequence[Standing],
        noticed: frozenset[int],
    ) -> tuple[WarpWalk, list[LaneState]]:  # fmt: skip
        def is_here(lanes: LaneState, event: SyncEvent) -> bool:
            first = ((p, next((n for n in p.lanes if lanes.mask >> n.lane & 1), None)) for p in standing)
            return any(
                lane is not None and _stands(code, lanes, event, lane.lane, p, self._dump.registers(p.warp, lane))
                for p, lane in first
            )

        asked = noticed | {each.offset // SIZE for each in standing if each.waits in _ASKED}
        walk = Walk(code, [LaneState((1 << threads) - 1, 0)], self._most_behind, is_here, asked)
        events = tuple(walk.events())
        came = WalkEnd.STOPPED if warp is not None else WalkEnd.EXIT
        ended = set(walk.ends)
        there = sum(1 << n.lane for each in standing if each.waits in _MET or each.waits in _ASKED for n in each.lanes)
        lost = bool(ended & {WalkEnd.STEPS, WalkEnd.LOST} or there & ~walk.stopped)
        whole = came in ended and not lost and all(each.sure for each in events)
        forked = frozenset(index for index, _ in walk.forked)
        return WarpWalk(events, (), whole, lost, True, walk.steps, tuple(walk.turned), forked), walk.there

    def _ahead(
        self, code: WarpCode, warp: DumpWarp, standing: Sequence[Standing], came: Sequence[LaneState],
        noticed: frozenset[int],
    ) -> tuple[tuple[SyncEvent, ...], bool]:  # fmt: skip
        starts = []
        for each in standing:
            if each.code is None or each.code.words is not self._code.words:
                return (), False
            index = (each.pc - each.code.address) // SIZE
            start = lane_state(self._dump, warp, each.lanes, index, wide=self._wide)
            same = [other.local for other in came if other.mask & start.mask]
            start.local = same[0].copy() if len(same) == 1 else {}
            starts.append(start)
        walk, places = Walk(code, starts, self._most_ahead, loads=noticed), {each.offset for each in standing}
        events = tuple(walk.events())
        new = (e for n, e in enumerate(events) if n >= len(starts) or e.index * SIZE not in places)
        return tuple(new), set(walk.ends) == {WalkEnd.EXIT}

    def memory(self, address: int, size: int) -> int | None:
        """A number in the memory of the device; None if the dump does not have it."""
        data = self._dump.memory(address, size)
        return int.from_bytes(data, "little") if data else None

    def _constant(self, bank: int, offset: int, size: int) -> int | None:
        key = bank, offset, size
        if key not in self._constants:
            self._constants[key] = self._read_constant(*key)
        return self._constants[key]

    def _read_constant(self, bank: int, offset: int, size: int) -> int | None:
        grid = self._grid
        at = offset - grid.parameters_at
        if bank == 0 and 0 <= at <= len(grid.parameters) - size:
            return int.from_bytes(grid.parameters[at : at + size], "little")
        start, length = grid.banks.get(bank, (0, 0))
        data = self._dump.memory(start + offset, size) if start and offset + size <= length else b""
        if data:
            return int.from_bytes(data, "little")
        if bank or size != 4:  # what the driver puts into constant bank 0
            return None
        if offset == STACK_AT[self._wide]:
            return self._stack
        sizes = {
            start + 4 * n: size[n]
            for start, size in zip(SIZES_AT[self._wide], (grid.block, grid.grid), strict=True)
            for n in range(3)
        }
        x, y, z = (max(n, 1) for n in grid.cluster)
        clusters = {} if self._wide else {0x140: int(any(grid.cluster)), 0x144: x, 0x148: y, 0x14C: z}
        return (sizes | clusters).get(offset)

    @cached_property
    def _stack(self) -> int | None:
        """The end of the stack of each thread: what a lane has in R1, with what its kernel took of it."""
        taken = 0
        for word in self._code.words[:_PROLOGUE]:
            if word.rd == word.ra == 1 and word.opcode in (0x836, 0x810):  # VIADD, IADD3
                taken = -word.immediate & WORD
                break
        first = self._code.address + _PROLOGUE * SIZE
        inside = range(first, self._code.address + len(self._code.code))
        lanes = ((warp, lane) for cta in self._dump.ctas for warp in cta.warps for lane in warp.lanes[:1])
        found = {self._dump.registers(warp, lane)[1:2] for warp, lane in lanes if lane.pc in inside}
        return max(found)[0] + taken & WORD if any(found) else None


def barriers_of(event: SyncEvent, rank: int) -> list[Barrier]:
    """The mbarriers of an event, of each lane if they differ; an address without a CTA's rank is of the warp's own."""
    known = [each for each in event.addresses or (event.address,) if each is not None]
    ranks = [each >> WINDOW & 0xFF for each in known]
    return [
        (theirs if event.sync.remote or theirs else rank, at & OFFSET) for at, theirs in zip(known, ranks, strict=True)
    ]


def _stands(
    code: WarpCode, lanes: LaneState, event: SyncEvent, lane: int, standing: Standing, own: Sequence[int]
) -> bool:
    """Whether a path is where the dump shows a lane: at such a wait, with the same operands, and on to its place with
    the same registers.
    """
    if standing.code is None:
        return False
    target = (standing.pc - standing.code.address) // SIZE
    if standing.waits in _ASKED:
        if event.index * SIZE != standing.offset:
            return False
        target = event.index
    elif event.sync.kind is not _MET.get(standing.waits):
        return False
    elif standing.waits is WaitsFor.MBARRIER:
        if event.address is None or event.address & OFFSET != standing.address:
            return False
        if event.value is None or event.value >> 31 != standing.parity:
            return False
    elif event.index * SIZE != standing.offset:
        return False
    here = comes_to(code, lanes, target)
    if here is None:
        return False
    theirs = [of_lane(value, lane) for value in here.registers[: len(own)]]
    unlike = standing.written  # a loop that asks changes some of them again and again
    return all(a is None or a == b or n in unlike for n, (a, b) in enumerate(zip(theirs, own, strict=True)))
