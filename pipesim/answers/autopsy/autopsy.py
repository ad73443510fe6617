"""``autopsy``: the launches of a core dump, their CTAs grouped by how they are, and who waits for whom in each.

Barriers without a name are grouped by rings: those that one instruction of a warp goes through again and again, stage
by stage. That is the address arithmetic of the code, as far as it was followed: a loop that was unrolled by the number
of stages has an instruction for each, and shows no ring.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from pipesim.answers.autopsy.barrier_names import renamed, source_names, with_names
from pipesim.answers.autopsy.coded_dump import CodedDump, cluster_of, number_of, rank_of, unit_of
from pipesim.answers.autopsy.exceptions import elsewhere, is_stopped
from pipesim.answers.autopsy.global_words import STORES, Cta, WaitingCta, WordSearch
from pipesim.answers.autopsy.standing import WaitsFor
from pipesim.answers.autopsy.suppliers import WalkedWarp
from pipesim.answers.autopsy.unit import Unit
from pipesim.answers.autopsy.walks import OFFSET
from pipesim.answers.views.autopsy import AutopsyReport, AwaitedWord, Detail, DumpedLaunch
from pipesim.coredump.cubin import Cubin, MachineCode
from pipesim.coredump.dump import CoreDump, Dim, DumpCta, DumpGrid, open_dump
from pipesim.coredump.sass.sync import SassSync

_MOST_WALKED = 4  #: groups of CTAs whose warps are followed through their code
_MOST_SPINNING, _MOST_FOLLOWED = 64, 96  #: CTAs of a group whose loops are executed, and of a launch that may store


def autopsy(path: Path) -> AutopsyReport:
    """The autopsy of a core dump. CoreDumpError if nothing can be read of it."""
    return autopsy_of(open_dump(path), str(path))


def autopsy_of(dump: CoreDump, name: str, *, anonymous: bool = False) -> AutopsyReport:
    """The autopsy of one that was opened; ``anonymous``: without names of kernels and files, and without memory."""
    coded = CodedDump(dump, name, anonymous=anonymous)
    launches = [_Launch(coded, number, grid) for number, grid in enumerate(dump.grids)]
    described = tuple(with_names(each.described(), each.names) for each in launches)
    words = () if is_stopped(coded) else tuple(_words(launches, hidden=anonymous))
    return AutopsyReport(name, described, (*dump.notes, *elsewhere(coded)), words)


class _Launch:
    """A launch of the dump: its CTAs, those of equal looks together."""

    def __init__(self, dump: CodedDump, number: int, grid: DumpGrid) -> None:
        self.dump, self.number, self.grid = dump, number, grid
        self.cubin: Cubin | None = None
        self.code: MachineCode | None = None
        if grid.code in dump.codes:
            self.cubin, self.code = dump.codes[grid.code]
        named = {each.code for each in dump.dump.grids if (each.device, each.number) == (grid.device, grid.number)}
        mine = (each for each in dump.dump.ctas if (each.device, each.grid) == (grid.device, grid.number))
        others = named - {grid.code}  # of another context, which may have a grid of the same number
        self.ctas = [each for each in mine if not others or not self._runs(each, others)]
        members: dict[Dim, list[DumpCta]] = {}
        for cta in self.ctas:
            members.setdefault(unit_of(grid, cta), []).append(cta)
        alike: dict[Hashable, list[Unit]] = {}
        for _, some in sorted(members.items()):
            unit = Unit(dump, grid, tuple(sorted(some, key=lambda each: rank_of(grid, each))))
            alike.setdefault(unit.looks, []).append(unit)
        self.alike = sorted(alike.values(), key=len, reverse=True)

    def _runs(self, cta: DumpCta, kernels: set[int]) -> bool:
        """Whether lanes of a CTA are in the code of these kernels, by its address."""
        at = {self.dump.standings.code_at(lane.pc) for warp in cta.warps for lane in warp.lanes}
        return any(code is not None and code.address in kernels for code in at)

    def described(self) -> DumpedLaunch:
        """What a report says of it."""
        archs = {each.number: each.arch for each in self.dump.dump.devices}
        groups = (some[0].described(some, walk=n < _MOST_WALKED) for n, some in enumerate(self.alike))
        return DumpedLaunch(
            number=self.number,
            kernel=self.dump.kernel_name(self.code.name) if self.code is not None else "",
            arch=archs.get(self.grid.device, ""),
            device=self.grid.device,
            grid=self.grid.grid,
            block=self.grid.block,
            cluster=cluster_of(self.grid),
            detail=_detail(self.cubin),
            started=len(self.ctas) if self.dump.dump.shows_all else math.prod(self.grid.grid),
            groups=tuple(groups),
        )

    @cached_property
    def names(self) -> dict[str, str]:
        """What the source calls its barriers: ``full[1]`` by ``mbarrier 0x1008``; of others the stages of rings."""
        if self.cubin is None or self.code is None or not self.alike:
            return {}
        unit = self.alike[0][0]
        found = source_names(self.cubin, self.code, self.dump.sources, unit.walked)
        texts, stages = {address: f"{name}[{n}]" for address, (name, n) in found.items()}, stages_of(unit.walked)
        named = {stages[address].start for address in found.keys() & stages.keys()}
        texts |= {address: str(each) for address, each in stages.items() if each.start not in named}
        ranks = range(unit.size) if unit.size > 1 else (-1,)
        return {
            unit.barrier_name(rank, address): f"{text}{f'@{rank}' if rank >= 0 else ''}"
            for address, text in texts.items()
            for rank in ranks
        }

    def waiting(self) -> Iterator[WaitingCta]:
        """The CTAs whose warps spin on global memory, some of each group."""
        for some in self.alike:
            for unit in some[:_MOST_SPINNING]:
                waits = {each.agent for each in unit.blocked}
                for p in unit.placed:
                    spin = unit.spins.get(p.name)
                    if spin is not None and p.name in waits and p.standing.waits is WaitsFor.GLOBAL:
                        cta = number_of(self.grid, p.cta.block)
                        line = self.dump.place_of(p.standing)
                        word = self.dump.word_name(self.grid, spin.address)
                        yield WaitingCta((self.number, cta), self.key(unit), word, p.name, line, spin)

    @cached_property
    def noticed(self) -> frozenset[int]:
        """The instructions of its kernel that store to global memory, or ask for words of it."""
        syncs = self.dump.standings.flow(self.code).syncs if self.code is not None else []
        stores = {n for n, sync in enumerate(syncs) if sync is not None and sync.kind in STORES}
        return frozenset({*stores, *(each.spin.at for each in self.waiting())})

    @property
    def is_all(self) -> bool:
        """Whether :meth:`units` leaves none of its CTAs out."""
        followed = len(list(self.units())) * math.prod(cluster_of(self.grid))
        return self.code is not None and followed >= math.prod(self.grid.grid)

    def key(self, unit: Unit) -> Cta:
        """What a CTA or a cluster of it is known by."""
        return self.number, number_of(self.grid, unit.block_of(0))

    def units(self) -> Iterator[Unit]:
        """The CTAs or clusters of the grid: those of the dump, and some that are not there."""
        here = [unit for some in self.alike for unit in some]
        yield from here[:_MOST_FOLLOWED]
        known, (width, height, depth) = {unit_of(self.grid, unit.ctas[0]) for unit in here}, cluster_of(self.grid)
        x, y, z = self.grid.grid
        every = ((c, b, a) for c in range(0, z, depth) for b in range(0, y, height) for a in range(0, x, width))
        gone = (each for each in every if (each[0] // depth, each[1] // height, each[2] // width) not in known)
        for c, b, a in islice(gone, _MOST_FOLLOWED):
            cta = DumpCta(self.grid.device, -1, self.grid.number, (a, b, c), b"", ())
            yield Unit(self.dump, self.grid, (cta,))


def _words(launches: Sequence[_Launch], *, hidden: bool) -> Iterator[AwaitedWord]:
    """The words of global memory that warps spin on; ``hidden``: without values."""
    waiting = [each for launch in launches for each in launch.waiting()]
    units = {launch.key(unit): unit for launch in launches for unit in launch.units()} if waiting else {}
    for each in WordSearch(units, {launch.number: launch.noticed for launch in launches}).words(waiting):
        word = replace(each, whole=each.whole and all(launch.is_all for launch in launches))
        if hidden:
            waits = tuple(wait._replace(wanted="") for wait in word.waits)
            word = replace(word, value="", waits=waits, writers=tuple(replace(w, value="") for w in word.writers))
        yield replace(word, writers=tuple(renamed(each, launches[each.launch].names) for each in word.writers))


def _detail(cubin: Cubin | None) -> Detail:
    if cubin is None or not cubin.section(".debug_line"):
        return Detail.CODE
    return Detail.PTX if cubin.ptx else Detail.LINES


_GOES = frozenset({
    SassSync.WAIT, SassSync.ARRIVE, SassSync.EXPECT, SassSync.CP_ASYNC_ARRIVE, SassSync.COPY, SassSync.TENSOR_COPY,
})  # fmt: skip
_WORD = 8  #: bytes of a barrier


class RingStage(NamedTuple):
    """Which element of which ring a barrier is. ``start``: the address of the first one."""

    start: int
    number: int
    of: int

    def __str__(self) -> str:
        return f"ring at {self.start:#x} [{self.number} of {self.of}]"


def stages_of(warps: Sequence[WalkedWarp]) -> dict[int, RingStage]:
    """The stages of rings by the addresses of their barriers in the shared memory of a CTA."""
    rings: list[range] = []
    for ring in sorted(_gone_through(warps), key=lambda each: (-len(each), each.start)):
        near = [n for n, each in enumerate(rings) if each.step == ring.step and not set(each).isdisjoint(ring)]
        if near:
            parts = [ring, *(rings[n] for n in near)]
            rings = [each for n, each in enumerate(rings) if n not in near]
            ring = range(min(each.start for each in parts), max(each.stop for each in parts), ring.step)
        elif any(not set(each).isdisjoint(ring) for each in rings):
            continue  # some stages of a longer one
        rings.append(ring)
    return {address: RingStage(each.start, n, len(each)) for each in rings for n, address in enumerate(each)}


def _gone_through(warps: Sequence[WalkedWarp]) -> Iterator[range]:
    """The barriers that single instructions of a warp go through with one stride, and from the last to the first."""
    ways: defaultdict[tuple[str, int, int], list[int]] = defaultdict(list)
    for warp in warps:
        for event in (*warp.walk.behind, *warp.walk.ahead):
            if event.sync.kind in _GOES and event.address is not None and not event.addresses:
                ways[warp.name, event.index, event.lanes].append(event.address & OFFSET)
    for way in ways.values():
        start, stop = min(way), max(way)
        step = min((each - start for each in set(way) - {start}), default=0)
        if step and not step % _WORD:
            ring = range(start, stop + step, step)
            turns = {(b - a) // step % len(ring) for a, b in pairwise(way)}
            if set(way) == set(ring) and len(turns) == 1:
                yield ring
