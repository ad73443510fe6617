"""``autopsy``: the launches of a core dump, their CTAs grouped by how they are, and who waits for whom in each."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from pipesim.answers.autopsy.standing import Standing, Standings, WaitsFor
from pipesim.answers.autopsy.suppliers import (
    WalkedWarp,
    needs_of,
    one_sided,
    suppliers_of,
    threads_that_come,
    with_cause,
)
from pipesim.answers.autopsy.walks import Barrier, Walks
from pipesim.answers.autopsy.words import barrier_words, word_at
from pipesim.answers.views.autopsy import AutopsyReport, Detail, DumpedCtas, DumpedLaunch, WarpPlace
from pipesim.conform.diagnose.examination import RebuiltBarrier
from pipesim.coredump.cubin import Cubin, MachineCode, cubins_of
from pipesim.coredump.dump import LANES, CoreDump, Dim, DumpCta, DumpGrid, DumpWarp, open_dump
from pipesim.coredump.sass.word import SIZE
from pipesim.explain.blocked_agents import REGISTERS, cycle_of
from pipesim.model.barrier import BarrierWord
from pipesim.model.finding import BlockedAgent, Deadlock
from pipesim.model.tables import meeting_name
from pipesim.ptx.emit.names import short_file
from pipesim.ptx.names.mangled import kernel_name
from pipesim.ptx.source_owner import is_library

_BY_NOBODY = frozenset({WaitsFor.NOTHING, WaitsFor.SLEEP, WaitsFor.UNKNOWN})
_WIDE = 10  #: from this version of the SMs on, an instruction has 8 bits for a uniform register
_MOST_CTAS, _MOST_WARPS = 16, 32  #: of a cluster and of a CTA: what a damaged dump has beyond them is left out
_MOST_WALKED = 4  #: groups of CTAs whose warps are followed through their code
_WARP_GROUP = 4  #: warps that execute setmaxnreg together


def autopsy(path: Path) -> AutopsyReport:
    """The autopsy of a core dump. CoreDumpError if nothing can be read of it."""
    return autopsy_of(open_dump(path), str(path))


def autopsy_of(dump: CoreDump, name: str, *, anonymous: bool = False) -> AutopsyReport:
    """The autopsy of one that was opened; ``anonymous``: without names of kernels and files, and without memory."""
    return AutopsyReport(name, tuple(_Dump(dump, anonymous=anonymous).launches()), dump.notes)


def line_of(frames: list[tuple[str, int]]) -> tuple[str, int]:
    """The line of calls that are inlined into each other, the innermost first: the kernel's, or else the user's."""
    mine = [frame for frame in frames if not is_library(frame[0])]
    return frames[-1] if frames[-1] in mine else (mine or frames)[0]


class _Dump:
    """A dump with its machine code."""

    def __init__(self, dump: CoreDump, *, anonymous: bool) -> None:
        self.dump, self.anonymous = dump, anonymous
        self.cubins = tuple(cubins_of(dump.images()))
        self.codes = {code.address: (cubin, code) for cubin in self.cubins for code in cubin.functions if code.address}
        self.wide = any(each.major >= _WIDE for each in dump.devices)
        self.standings = Standings(dump, [code for _, code in self.codes.values()], wide=self.wide)

    def place(self, code: MachineCode | None, offset: int) -> str:
        """A line of the source, of the user's where calls are inlined into each other, or a place in machine code."""
        if code is None or self.anonymous:
            return f"+{offset:#x}"
        cubin = self.codes[code.address][0] if code.address in self.codes else None
        frames = cubin.lines.lines_of(code.address + offset) if cubin is not None else []
        if not frames or not frames[-1][0]:
            return f"{kernel_name(code.name)}+{offset:#x}"
        file, line = line_of(frames)
        return f"{short_file(file)}:{line}"

    def _kernel(self, name: str) -> str:
        return f"kernel-{sha256(name.encode()).hexdigest()[:8]}" if self.anonymous else name

    def launches(self) -> Iterator[DumpedLaunch]:
        """The launches that have CTAs in the dump."""
        archs = {each.number: each.arch for each in self.dump.devices}
        for number, grid in enumerate(self.dump.grids):
            ctas = [each for each in self.dump.ctas if (each.device, each.grid) == (grid.device, grid.number)]
            cubin, code = self.codes.get(grid.code, (None, None))
            yield DumpedLaunch(
                number=number,
                kernel=self._kernel(code.name) if code is not None else "",
                arch=archs.get(grid.device, ""),
                device=grid.device,
                grid=grid.grid,
                block=grid.block,
                cluster=_cluster(grid),
                detail=_detail(cubin),
                started=len(ctas),
                groups=tuple(self._groups(grid, ctas)),
            )

    def _groups(self, grid: DumpGrid, ctas: Sequence[DumpCta]) -> Iterator[DumpedCtas]:
        units: dict[Dim, list[DumpCta]] = {}
        for cta in ctas:
            units.setdefault(_unit(grid, cta), []).append(cta)
        alike: dict[Hashable, list[Unit]] = {}
        for _, members in sorted(units.items()):
            unit = Unit(self, grid, tuple(sorted(members, key=lambda each: _rank(grid, each))))
            alike.setdefault(unit.looks, []).append(unit)
        for n, some in enumerate(sorted(alike.values(), key=len, reverse=True)):
            yield some[0].described(some, walk=n < _MOST_WALKED)


@dataclass(frozen=True)
class PlacedWarp:
    """Lanes of a warp that are together, with the warp's number, and its name in a report."""

    name: str
    cta: DumpCta
    rank: int
    number: int
    standing: Standing


class Unit:
    """A CTA, or the CTAs of a cluster: those whose warps may wait for each other."""

    def __init__(self, dump: _Dump, grid: DumpGrid, ctas: tuple[DumpCta, ...]) -> None:
        self.dump, self.grid, self.ctas = dump, grid, ctas
        self.size = min(math.prod(_cluster(grid)), _MOST_CTAS)
        self.warps = min(-(-math.prod(grid.block) // LANES), _MOST_WARPS)  #: of a CTA

    @cached_property
    def placed(self) -> tuple[PlacedWarp, ...]:
        """Where the lanes of its warps are, in the order of the warps' numbers."""
        found = []
        for cta in self.ctas:
            rank = _rank(self.grid, cta)
            for warp in cta.warps:
                if warp.lanes:
                    number = _warp_number(self.grid, warp)
                    standing = sorted(self.dump.standings.of(warp), key=lambda each: _weight(each.waits))
                    for n, each in enumerate(standing):
                        name = self._name(number, rank, each.lanes[0].lane if n else -1)
                        found.append(PlacedWarp(name, cta, rank, number, each))
        return tuple(sorted(found, key=lambda each: (each.rank, each.number)))

    def _name(self, number: int, rank: int, lane: int = -1) -> str:
        """A warp, or lanes of it that are elsewhere, the first of which is ``lane``."""
        at = f"@{rank}" if self.size > 1 else ""
        return f"lanes of warp {number} from {lane}{at}" if lane >= 0 else f"warp/{number}{at}"

    @cached_property
    def looks(self) -> Hashable:
        """What is equal for CTAs that hang alike: where their warps are and for what, and the words of barriers."""
        return (
            tuple(
                (p.rank, p.number, len(p.standing.lanes), p.standing.offset, p.standing.waits, p.standing.parity,
                 p.standing.address if p.standing.waits is WaitsFor.MBARRIER else 0, p.standing.rank, p.standing.number)
                for p in self.placed
            ),
            tuple(sorted((each.barrier, each.arrivals_missing, each.bytes_missing) for each in self.blocked)),
        )  # fmt: skip

    @cached_property
    def ended(self) -> tuple[str, ...]:
        """The warps that are no more: of CTAs that still run, and of CTAs of the cluster that are gone."""
        live = {(each.rank, each.number) for each in self.placed}
        every = ((number, rank) for rank in range(self.size) for number in range(self.warps))
        return tuple(self._name(number, rank) for number, rank in every if (rank, number) not in live)

    @cached_property
    def blocked(self) -> tuple[BlockedAgent, ...]:
        """The warps that wait for something that others of the CTA or the cluster supply."""
        main = {(p.rank, p.number): p for p in reversed(self.placed)}
        shown = [
            p
            for p in self.placed
            if p.standing.waits not in _BY_NOBODY
            and not (p.standing.waits is WaitsFor.LANES and main[p.rank, p.number] is not p)
            and not self._is_over(p)
        ]
        return tuple(self._blocked(each) for each in shown)

    def word(self, placed: PlacedWarp) -> BarrierWord | None:
        """The word of the mbarrier that lanes wait for."""
        standing = placed.standing
        if standing.waits is not WaitsFor.MBARRIER:
            return None
        rank = standing.rank if self.size > 1 else placed.rank
        cta = next((each for each in self.ctas if _rank(self.grid, each) == rank), None)
        return word_at(cta.shared, standing.address) if cta is not None else None

    def _is_over(self, placed: PlacedWarp) -> bool:
        """Whether what lanes wait for has come: they run, and the dump shows them on the way."""
        word, parity, waits = self.word(placed), placed.standing.parity, placed.standing.waits
        if waits in (WaitsFor.NAMED, WaitsFor.CLUSTER):
            return self._blocked(placed).arrivals_missing <= 0
        return word is not None and parity >= 0 and word.parity != parity

    def barrier_name(self, rank: int, address: int) -> str:
        """What a report calls an mbarrier."""
        at = f"@{rank}" if self.size > 1 else ""
        return f"mbarrier {address:#x}{at}" if address >= 0 else f"an mbarrier{at}"

    def _blocked(self, placed: PlacedWarp) -> BlockedAgent:
        standing = placed.standing
        missing = count = lacks = 0
        match standing.waits:
            case WaitsFor.MBARRIER:
                word = self.word(placed)
                if word is not None:
                    missing, count, lacks = word.pending, word.expected, word.tx
            case WaitsFor.NAMED:
                count = standing.count or self.warps * LANES
                missing = count - self._came(placed)
            case WaitsFor.CLUSTER:
                count = self.size * self.warps - len(self.ended)
                missing = count - sum(p.standing.waits is WaitsFor.CLUSTER for p in self.placed)
            case WaitsFor.REGISTERS:
                count = _WARP_GROUP * LANES * max(standing.number - standing.warp.registers, 0)
                missing = count - self._free_registers(placed.cta)
            case WaitsFor.LANES:
                count = len(standing.warp.lanes)
                missing = count - len(standing.lanes)
        return BlockedAgent(
            agent=placed.name,
            barrier=self.waited_for(placed),
            parity=standing.parity,
            phase_wanted=-1,
            phase_now=-1,
            arrivals_missing=max(missing, 0),
            count=count,
            bytes_missing=lacks,
            line=self.dump.place(standing.code, standing.offset),
        )

    def waited_for(self, placed: PlacedWarp) -> str:
        """What a warp waits for, as a report names it; "" if no other one supplies it."""
        standing = placed.standing
        match standing.waits:
            case WaitsFor.MBARRIER:
                return self.barrier_name(*self.barrier_of(placed))
            case WaitsFor.NAMED:
                return meeting_name(standing.number)
            case WaitsFor.CLUSTER:
                return "the cluster barrier"
            case WaitsFor.REGISTERS:
                return REGISTERS
            case WaitsFor.LANES:
                return f"the lanes of warp {placed.number}"
            case WaitsFor.GLOBAL if standing.address >= 0 and not self.dump.anonymous:
                held = self.dump.dump.memory(standing.address, 4)
                value = f", which holds {int.from_bytes(held, 'little'):,}" if held else ""
                return f"{WaitsFor.GLOBAL.value} at {standing.address:#x}{value}"
            case WaitsFor.NOTHING | WaitsFor.SLEEP | WaitsFor.UNKNOWN:
                return ""
            case _:
                return str(standing.waits.value)

    def barrier_of(self, placed: PlacedWarp) -> Barrier:
        """The mbarrier that lanes wait for."""
        return (placed.standing.rank if self.size > 1 else 0), placed.standing.address

    def _came(self, placed: PlacedWarp) -> int:
        """Threads that wait at the same named barrier: a warp counts as a whole."""
        number = placed.standing.number
        here = [p for p in self.placed if p.rank == placed.rank and p.standing.waits is WaitsFor.NAMED]
        return LANES * sum(p.standing.number == number for p in here)

    def _free_registers(self, cta: DumpCta) -> int:
        """What warps of a CTA have given back; one that has ended keeps what it was launched with."""
        return max(0, LANES * sum(self.grid.registers - warp.registers for warp in cta.warps))

    @cached_property
    def walked(self) -> tuple[WalkedWarp, ...]:
        """Every warp of the CTA or cluster with its way, those that have ended too."""
        found = self.dump.codes.get(self.grid.code)
        if found is None:
            return ()
        walks = Walks(self.dump.dump, self.grid, found[1], self.size * self.warps, wide=self.dump.wide)
        made = []

        def place(index: int) -> str:
            return self.dump.place(found[1], index * SIZE)

        for rank in range(self.size):
            for number in range(self.warps):
                here = [p for p in self.placed if (p.rank, p.number) == (rank, number)]
                warp = here[0].standing.warp if here else None
                walk = walks.of(number, self._block(rank), rank, warp, [p.standing for p in here])
                blocked = self.waited_for(here[0]) if here else ""
                made.append(WalkedWarp(self._name(number, rank), rank, walk, blocked, place))
        return tuple(made)

    def _block(self, rank: int) -> Dim:
        """The index of the CTA with this rank, whether or not it is in the dump."""
        width, height, depth = _cluster(self.grid)
        x, y, z = (at // n * n for at, n in zip(self.ctas[0].block, (width, height, depth), strict=True))
        return x + rank % width, y + rank // width % height, z + rank // (width * height)

    def explained(self) -> Deadlock:
        """Who waits for whom, with those who could supply what is missing, and the ring in which they wait."""
        warps = self.walked
        if not warps:
            return Deadlock(self.blocked, self.ended, cut=True)
        by_name = {p.name: p for p in self.placed}
        blocked, lacking = [], {}
        for each in self.blocked:
            placed = by_name[each.agent]
            barrier, word = self.barrier_of(placed), self.word(placed)
            needs = needs_of(placed.standing, barrier, word)
            lacking[each.barrier] = needs
            found = replace(each, suppliers=suppliers_of(each.agent, each.barrier, needs, warps))
            name = self._name(placed.number, placed.rank)
            me = next((each for each in warps if each.name == name), None)
            if word is not None and me is not None:
                found = with_cause(found, me, barrier, word, warps)
            elif placed.standing.waits is WaitsFor.NAMED:
                come = threads_that_come(placed.standing, warps, placed.rank)
                found = replace(found, given=come if come < found.count else -1)
            blocked.append(found)
        edges = {
            each.agent: [s.agent for s in each.suppliers if s.next_line and s.waits_for and s.agent != each.agent]
            for each in blocked
        }
        names = list(edges)
        ring = cycle_of({n: [names.index(s) for s in edges[name] if s in edges] for n, name in enumerate(names)})
        known = all(warp.walk.ends and not warp.walk.lost for warp in warps)
        ring_names, uneven = tuple(names[n] for n in ring), one_sided(lacking.items(), warps)
        return Deadlock(tuple(blocked), self.ended, ring_names, cut=not known, one_sided=uneven)

    def described(self, alike: Sequence[Unit], *, walk: bool) -> DumpedCtas:
        """What this CTA shows, for all that are ``alike``."""
        blocked = self.blocked
        names = {each.agent for each in blocked}
        others: dict[tuple[str, str], list[str]] = {}
        for p in self.placed:
            if p.name not in names and p.standing.waits is not WaitsFor.LANES:
                does = WaitsFor.NOTHING if self._is_over(p) else p.standing.waits
                line = self.dump.place(p.standing.code, p.standing.offset)
                others.setdefault((does.value, line), []).append(p.name)
        return DumpedCtas(
            ctas=sum(len(each.ctas) for each in alike),
            numbers=tuple(_number(self.grid, cta) for each in alike for cta in each.ctas),
            deadlock=self.explained() if walk else Deadlock(blocked, self.ended, cut=True),
            barriers=tuple(self._barriers()),
            others=tuple(WarpPlace(tuple(warps), does, line) for (does, line), warps in others.items()),
        )

    def _barriers(self) -> Iterator[RebuiltBarrier]:
        for cta in self.ctas:
            rank = _rank(self.grid, cta)
            waiting: dict[int, list[str]] = {}
            for p in self.placed:
                if p.standing.waits is WaitsFor.MBARRIER and (p.standing.rank == rank or self.size == 1):
                    waiting.setdefault(p.standing.address, []).append(p.name)
            for address, word in barrier_words(cta.shared, waiting).items():
                name = self.barrier_name(rank, address)
                agents = tuple(waiting.get(address, ()))
                yield RebuiltBarrier(name, word.parity, word.pending, word.expected, word.tx, agents)


def _weight(waits: WaitsFor) -> int:
    """Of lanes of one warp that are apart, those that wait for other warps are named first."""
    return {WaitsFor.LANES: 2, WaitsFor.NAMED: 1}.get(waits, 0)


def _detail(cubin: Cubin | None) -> Detail:
    if cubin is None or not cubin.section(".debug_line"):
        return Detail.CODE
    return Detail.PTX if cubin.ptx else Detail.LINES


def _cluster(grid: DumpGrid) -> Dim:
    x, y, z = grid.cluster
    return max(x, 1), max(y, 1), max(z, 1)


def _unit(grid: DumpGrid, cta: DumpCta) -> Dim:
    """The cluster that a CTA is of."""
    x, y, z = (at // size for at, size in zip(cta.block, _cluster(grid), strict=True))
    return z, y, x


def _rank(grid: DumpGrid, cta: DumpCta) -> int:
    """A CTA's number in its cluster."""
    (x, y, z), (width, height, _) = (
        tuple(at % n for at, n in zip(cta.block, _cluster(grid), strict=True)),
        _cluster(grid),
    )
    return x + width * (y + height * z)


def _number(grid: DumpGrid, cta: DumpCta) -> int:
    x, y, z = cta.block
    return x + grid.grid[0] * (y + grid.grid[1] * z)


def _warp_number(grid: DumpGrid, warp: DumpWarp) -> int:
    """A warp's number by its threads: a slot of the SM says nothing about it."""
    x, y, z = warp.lanes[0].thread
    return (x + grid.block[0] * (y + grid.block[1] * z)) // LANES
