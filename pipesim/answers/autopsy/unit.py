"""A CTA of a dump, or the CTAs of a cluster: where their warps are, what they wait for, and who could supply it."""

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from pipesim.answers.autopsy.coded_dump import CodedDump, cluster_of, number_of, rank_of
from pipesim.answers.autopsy.exceptions import exception_of, is_stopped
from pipesim.answers.autopsy.spins import Spin, spin_of
from pipesim.answers.autopsy.standing import Standing, WaitsFor, lane_state
from pipesim.answers.autopsy.suppliers import (
    SHARED_STORES,
    WalkedWarp,
    needs_of,
    one_sided,
    suppliers_of,
    threads_that_come,
    with_cause,
)
from pipesim.answers.autopsy.walks import OFFSET, WINDOW, Barrier, Walks
from pipesim.answers.autopsy.words import barrier_words, word_at
from pipesim.answers.views.autopsy import UNKNOWN_LANES, DumpedCtas, WarpPlace
from pipesim.conform.diagnose.examination import RebuiltBarrier
from pipesim.coredump.cubin import MachineCode
from pipesim.coredump.dump import LANES, Dim, DumpCta, DumpGrid, DumpWarp
from pipesim.coredump.sass.walk import comes_to
from pipesim.coredump.sass.word import SIZE
from pipesim.explain.blocked_agents import REGISTERS, cycle_of
from pipesim.model.barrier import BarrierWord
from pipesim.model.finding import BlockedAgent, Deadlock
from pipesim.model.tables import meeting_name

_BY_NOBODY = frozenset({WaitsFor.NOTHING, WaitsFor.SLEEP, WaitsFor.UNKNOWN, WaitsFor.UNREAD})
_MOST_CTAS, _MOST_WARPS = 16, 32  #: of a cluster and of a CTA: what a damaged dump has beyond them is left out
_WARP_GROUP = 4  #: warps that execute setmaxnreg together


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

    def __init__(self, dump: CodedDump, grid: DumpGrid, ctas: tuple[DumpCta, ...]) -> None:
        self.dump, self.grid, self.ctas = dump, grid, ctas
        self.size = min(math.prod(cluster_of(grid)), _MOST_CTAS)
        self.warps = min(-(-math.prod(grid.block) // LANES), _MOST_WARPS)  #: of a CTA

    @cached_property
    def placed(self) -> tuple[PlacedWarp, ...]:
        """Where the lanes of its warps are, in the order of the warps' numbers."""
        found = []
        for cta in self.ctas:
            rank = rank_of(self.grid, cta)
            for warp in cta.warps:
                if warp.lanes:
                    number = _warp_number(self.grid, warp)
                    standing = sorted(self.dump.standings.of(warp), key=lambda each: _weight(each.waits))
                    for n, each in enumerate(standing):
                        name = self._name(number, rank, each.lanes[0].lane if n else -1)
                        found.append(PlacedWarp(name, cta, rank, number, each))
        met = Counter((p.rank, p.standing.number) for p in found if p.standing.waits is WaitsFor.NAMED)
        for n, p in enumerate(found):
            other, count = p.standing.otherwise, p.standing.count or self.warps * LANES
            if other is not None and LANES * met[p.rank, p.standing.number] >= count and self._comes_to(p, other):
                found[n] = replace(p, standing=other)
        return tuple(sorted(found, key=lambda each: (each.rank, each.number)))

    def _comes_to(self, placed: PlacedWarp, other: Standing) -> bool:
        """Whether lanes reach the place where they would ask; else they continue to the barrier, as their CTA does."""
        if other.code is None:
            return False
        ready, _ = self._walks(other.code).code_of(placed.number, self.block_of(placed.rank), placed.rank)
        start = (other.pc - other.code.address) // SIZE
        lanes = lane_state(self.dump.dump, other.warp, other.lanes[:1], start, wide=self.dump.wide)
        return comes_to(ready, lanes, other.offset // SIZE) is not None

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
                 p.standing.address if p.standing.waits is WaitsFor.MBARRIER else 0, p.standing.rank, p.standing.number,
                p.standing.warp.exception, p.standing.warp.error_pc)
                for p in self.placed
            ),
            tuple(sorted((each.barrier, each.arrivals_missing, each.bytes_missing) for each in self.blocked)),
        )  # fmt: skip

    @cached_property
    def ended(self) -> tuple[str, ...]:
        """The warps that are no more: of CTAs that still run, and of CTAs of the cluster that are gone."""
        return () if self._cut else self._absent

    @cached_property
    def _cut(self) -> bool:
        """Whether tables of its CTAs are missing: what is absent then need not have ended."""
        return any(not all(warp.lanes for warp in cta.warps) or not cta.warps for cta in self.ctas if cta.sm >= 0)

    @cached_property
    def _absent(self) -> tuple[str, ...]:
        live = {(each.rank, each.number) for each in self.placed}
        every = ((number, rank) for rank in range(self.size) for number in range(self.warps))
        return tuple(self._name(number, rank) for number, rank in every if (rank, number) not in live)

    @cached_property
    def blocked(self) -> tuple[BlockedAgent, ...]:
        """The warps that wait for something that others of the CTA or the cluster supply.

        None where all wait for mbarriers of which no address is known: each of these may be complete.
        """
        main = {(p.rank, p.number): p for p in reversed(self.placed)}
        shown = [
            p
            for p in self.placed
            if p.standing.waits not in _BY_NOBODY
            and not (p.standing.waits is WaitsFor.LANES and main[p.rank, p.number] is not p)
            and not self._is_over(p)
            and not exception_of(self.dump, p.standing.warp)[0]
        ]
        known = any(p.standing.waits is not WaitsFor.MBARRIER or p.standing.address >= 0 for p in shown)
        return tuple(self._blocked(each) for each in shown) if known else ()

    def word(self, placed: PlacedWarp) -> BarrierWord | None:
        """The word of the mbarrier that lanes wait for."""
        standing = placed.standing
        if standing.waits is not WaitsFor.MBARRIER:
            return None
        rank = standing.rank if self.size > 1 else placed.rank
        cta = next((each for each in self.ctas if rank_of(self.grid, each) == rank), None)
        return word_at(cta.shared, standing.address) if cta is not None else None

    def _is_over(self, placed: PlacedWarp) -> bool:
        """Whether what lanes wait for has come: they run, and the dump shows them on the way."""
        word, parity, waits = self.word(placed), placed.standing.parity, placed.standing.waits
        if waits in (WaitsFor.NAMED, WaitsFor.CLUSTER):
            return self._blocked(placed).arrivals_missing <= 0
        spin = self.spins.get(placed.name)
        if spin is not None and _has_ended(spin):
            return True
        return word is not None and parity >= 0 and word.parity != parity

    def barrier_name(self, rank: int, address: int) -> str:
        """What a report calls an mbarrier."""
        at = f"@{rank}" if self.size > 1 and rank >= 0 else ""
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
            line=self.dump.place_of(standing),
        )

    def waited_for(self, placed: PlacedWarp) -> str:
        """What a warp waits for, as a report names it; "" if no other one supplies it."""
        standing = placed.standing
        match standing.waits:
            case WaitsFor.MBARRIER:
                word = self.word(placed)
                none = ", which is not initialised" if word is not None and not (word.expected or word.parity) else ""
                return self.barrier_name(*self.barrier_of(placed)) + none
            case WaitsFor.NAMED:
                return meeting_name(standing.number)
            case WaitsFor.CLUSTER:
                return "the cluster barrier"
            case WaitsFor.REGISTERS:
                return REGISTERS
            case WaitsFor.LANES:
                return f"the lanes of warp {placed.number}"
            case WaitsFor.GLOBAL if (spin := self.spins.get(placed.name)) is not None:
                name = self.dump.word_name(self.grid, spin.address)
                return f"{WaitsFor.GLOBAL.value} ({name})" if name else WaitsFor.GLOBAL.value
            case WaitsFor.SHARED if (spin := self.spins.get(placed.name)) is not None:
                known = spin.seen is not None and not self.dump.anonymous
                value = f", which is {spin.seen:,}" if known else ""
                value += f", to be {spin.wanted}" if known and spin.wanted else ""
                rank, offset = self.shared_place(placed, spin.address)
                at = f"{offset:#x}" + (f"@{rank}" if rank != placed.rank else "")
                return f"{WaitsFor.SHARED.value} ({at}){value}"
            case waits if waits in _BY_NOBODY:
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
    def spins(self) -> dict[str, Spin]:
        """The loops in which lanes ask for a word of memory, by the names of :attr:`placed`."""
        found = {}
        for p in self.placed:
            code = p.standing.code
            if p.standing.waits in (WaitsFor.GLOBAL, WaitsFor.SHARED) and code is not None:
                walks = self._walks(code)
                memory = partial(self._shared_word, p) if p.standing.waits is WaitsFor.SHARED else walks.memory
                ready, _ = walks.code_of(p.number, self.block_of(p.rank), p.rank)
                index, at = (p.standing.pc - code.address) // SIZE, p.standing.offset // SIZE
                way, every = self.dump.standings.flow(code).way_back(index), list[Spin]()
                for lane in p.standing.lanes:  # of several words, the first one that keeps the warp there
                    lanes = lane_state(self.dump.dump, p.standing.warp, (lane,), index, wide=self.dump.wide)
                    spin = spin_of(ready, at, lanes, way, memory)
                    every += [spin] if spin is not None else []
                    if spin is None or spin.seen is None or not spin.ends(spin.seen):
                        break
                if every:
                    found[p.name] = every[-1] if not _has_ended(every[-1]) else every[0]
        return found

    def shared_place(self, placed: PlacedWarp, address: int) -> Barrier:
        """The CTA whose shared memory lanes ask for a word of, and where it is there."""
        flow = self.dump.standings.flow(placed.standing.code) if placed.standing.code is not None else None
        sync = flow.at(placed.standing.offset // SIZE) if flow is not None else None
        remote = sync is not None and sync.remote and self.size > 1
        return (address >> WINDOW & 0xFF if remote else placed.rank), address & OFFSET

    def _shared_word(self, placed: PlacedWarp, address: int, size: int) -> int | None:
        """A number in the shared memory of a CTA; None if the dump does not have it."""
        rank, offset = self.shared_place(placed, address)
        cta = next((each for each in self.ctas if rank_of(self.grid, each) == rank), None)
        data = cta.shared[offset : offset + size] if cta is not None else b""
        return int.from_bytes(data, "little") if len(data) == size else None

    @cached_property
    def walked(self) -> tuple[WalkedWarp, ...]:
        """Every warp of the CTA or cluster with its way, those that have ended too."""
        code = self.dump.codes.get(self.grid.code, (None, None))[1]
        asks = code is not None and any(p.standing.waits is WaitsFor.SHARED for p in self.placed)
        syncs = self.dump.standings.flow(code).syncs if asks and code is not None else []
        return self.walked_past(frozenset(n for n, each in enumerate(syncs) if each and each.kind in SHARED_STORES))

    def walked_past(self, noticed: frozenset[int], *, blind: bool = False) -> tuple[WalkedWarp, ...]:
        """The same with some loads and stores of its kernel, or without what memory holds."""
        cubin, code = self.dump.codes.get(self.grid.code, (None, None))
        if cubin is None or code is None:  # of a text there are some instructions
            return ()
        walks, made = self._walks(code), []

        def place(index: int) -> str:
            return self.dump.place(code, index * SIZE)

        for rank in range(self.size):
            block = self.block_of(rank)
            for number in range(self.warps):
                here = [p for p in self.placed if (p.rank, p.number) == (rank, number)]
                if self._cut and not here:
                    continue
                warp, standing = here[0].standing.warp if here else None, [p.standing for p in here]
                walk = walks.of(number, block, rank, warp, standing, noticed, blind=blind)
                waits = bool(here) and not self._is_over(here[0]) and not here[0].standing.warp.exception
                blocked, cta = self.waited_for(here[0]) if waits else "", number_of(self.grid, block)
                made.append(WalkedWarp(self._name(number, rank), rank, walk, blocked, place, cta))
        return tuple(made)

    def leads_past(self, start: int, passed: frozenset[int]) -> int:
        """The branch by which its kernel ends without one of these instructions, -1 if there is none."""
        code = self.dump.codes[self.grid.code][1]
        return self.dump.standings.flow(code).leads_past(start, passed)

    def _walks(self, code: MachineCode) -> Walks:
        cubin = self.dump.codes[code.address][0] if code.address in self.dump.codes else None
        alone = cubin is None or {each.name for each in cubin.functions} <= set(cubin.kernels)
        warps = self.size * self.warps
        return Walks(self.dump.dump, self.grid, code, warps, wide=self.dump.wide, alone=alone)

    def block_of(self, rank: int) -> Dim:
        """The index of the CTA with this rank, whether or not it is in the dump."""
        width, height, depth = cluster_of(self.grid)
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
            spin = self.spins.get(each.agent)
            if placed.standing.waits is WaitsFor.SHARED and spin is not None:
                barrier = self.shared_place(placed, spin.address)
            needs = needs_of(placed.standing, barrier, word)
            lacking[each.barrier] = needs
            found = replace(each, suppliers=suppliers_of(each.agent, each.barrier, needs, warps))
            name = self._name(placed.number, placed.rank)
            me = next((each for each in warps if each.name == name), None)
            if self._cut:
                pass  # arrivals are missing, and how many
            elif word is not None and me is not None:
                found = with_cause(found, me, barrier, word, warps)
            elif placed.standing.waits is WaitsFor.NAMED:
                come = threads_that_come(placed.standing, warps, placed.rank)
                found = replace(found, given=come if come < found.count else -1)
            blocked.append(found)
        ring_names = _ring(blocked, elsewhere=True) or _ring(blocked, elsewhere=False)
        known = not self._cut and all(warp.walk.ends and not warp.walk.lost for warp in warps)
        uneven = one_sided(lacking.items(), warps)
        return Deadlock(tuple(blocked), self.ended, ring_names, cut=not known, one_sided=uneven)

    def described(self, alike: "Sequence[Unit]", *, walk: bool) -> DumpedCtas:
        """What this CTA shows, for all that are ``alike``."""
        blocked = self.blocked
        names = {each.agent for each in blocked}
        others: dict[tuple[str, str, str], list[str]] = {}
        for p in self.placed:
            exception, at = exception_of(self.dump, p.standing.warp)
            if exception:
                others.setdefault(("", at, exception), []).append(self._name(p.number, p.rank))
            elif p.name not in names and p.standing.waits is not WaitsFor.LANES:
                unread = p.standing.waits is WaitsFor.MBARRIER and p.standing.address < 0
                does = WaitsFor.UNREAD if unread else WaitsFor.NOTHING if self._is_over(p) else p.standing.waits
                line = self.dump.place_of(p.standing)
                others.setdefault((does.value, line, ""), []).append(p.name)
        if self._cut and self._absent:
            others[UNKNOWN_LANES, "", ""] = list(self._absent)
        return DumpedCtas(
            ctas=sum(len(each.ctas) for each in alike),
            numbers=tuple(number_of(self.grid, cta.block) for each in alike for cta in each.ctas),
            deadlock=self.explained() if walk else Deadlock(blocked, self.ended, cut=True),
            barriers=tuple(self._barriers()),
            others=tuple(
                WarpPlace(tuple(dict.fromkeys(warps)), does, line, exception)
                for (does, line, exception), warps in others.items()
            ),
            stopped=is_stopped(self.dump),
        )

    def _barriers(self) -> Iterator[RebuiltBarrier]:
        for cta in self.ctas:
            rank = rank_of(self.grid, cta)
            waiting: dict[int, list[str]] = {}
            for p in self.placed:
                if p.standing.waits is WaitsFor.MBARRIER and (p.standing.rank == rank or self.size == 1):
                    waiting.setdefault(p.standing.address, []).append(p.name)
            for address, word in barrier_words(cta.shared, waiting).items():
                name = self.barrier_name(rank, address)
                agents = tuple(waiting.get(address, ()))
                yield RebuiltBarrier(name, word.parity, word.pending, word.expected, word.tx, agents)


def _ring(blocked: Sequence[BlockedAgent], *, elsewhere: bool) -> tuple[str, ...]:
    """Agents that wait for each other; ``elsewhere``: without those who are waited for where they wait themselves."""
    names = [each.agent for each in blocked]
    edges = {
        n: [
            names.index(s.agent)
            for s in each.suppliers
            if s.next_line and s.waits_for and s.agent in names and s.agent != each.agent
            and not (elsewhere and s.waits_for == each.barrier)
        ]
        for n, each in enumerate(blocked)
    }  # fmt: skip
    return tuple(names[n] for n in cycle_of(edges))


def _has_ended(spin: Spin) -> bool:
    return spin.seen is not None and bool(spin.ends(spin.seen))


def _weight(waits: WaitsFor) -> int:
    """Of lanes of one warp that are apart, those that wait for other warps are named first."""
    return {WaitsFor.LANES: 2, WaitsFor.NAMED: 1}.get(waits, 0)


def _warp_number(grid: DumpGrid, warp: DumpWarp) -> int:
    """A warp's number by its threads: a slot of the SM says nothing about it."""
    x, y, z = warp.lanes[0].thread
    return (x + grid.block[0] * (y + grid.block[1] * z)) // LANES
