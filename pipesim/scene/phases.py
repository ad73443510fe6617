"""Arrows, transfers in flight and counters: what the replay of a trace through its program says."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipesim.conform.replay.replay_log import FlightSeen, PhaseSeen, ReplayedPart, ReplayLog
from pipesim.explain.operation_words import operation_in_short
from pipesim.model.groups import DELAYED_ARRIVALS, ENGINE_ACCESSES, READS_MEMORY
from pipesim.model.ops import AT, IN_ORDER, Op, operand
from pipesim.model.program import Program
from pipesim.model.waits import WaitPurpose, wait_purposes
from pipesim.scene.parts import OPEN, Arrow, Counter, CounterKind, SceneSlice, SceneTrack, in_phase
from pipesim.trace.activity import SliceKind

_Drawn = tuple[int, int, int, FlightSeen, SliceKind]  #: begin, end, CTA
Landings = Mapping[tuple[int, int, int, int], int]  #: first CTA of the cluster, agent, operation, barrier → time


@dataclass
class PhasePictures:
    """What a picture gets beside its agents: filled CTA by CTA.

    ``slices`` are those of the agents, in whose list those in flight go too; ``of_row`` their slice by event. ``when``:
    the time of each event. ``landings``: the exact times at which transfers ended, where a simulation knows them.
    """

    program: Program
    slices: list[SceneSlice]
    of_row: Sequence[int]
    when: Sequence[int]
    sms: Mapping[int, int]
    landings: Landings
    tracks: list[SceneTrack]
    arrows: list[Arrow] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    unseen: int = 0  #: arrivals without a record of their own, from which no arrow can start

    def __post_init__(self) -> None:
        self._asked = wait_purposes(self.program)
        self._names: dict[tuple[int, ...], str] = {}
        self._shown: dict[int, bool] = {}  #: agents whose MMAs write a result that is in the program

    def add(self, first_cta: int, log: ReplayLog) -> None:
        """One CTA, or one cluster whose first CTA this is."""
        landed = self._flights(first_cta, log)
        phases: defaultdict[tuple[int, int], list[tuple[int, int, ReplayedPart]]] = defaultdict(list)
        for each in log.contributions:
            at, source = self._source(each, landed)
            if source >= 0:
                phases[each.barrier, each.phase].append((at, source, each))
                if self.slices[source].phase is None:
                    self.slices[source] = in_phase(self.slices[source], each.phase)
            else:
                self.unseen += 1
        for seen in log.seen:
            self._add_arrows(seen, phases.get((seen.barrier, seen.phase), []))
        self._count(first_cta, log, phases)

    def _flights(self, first_cta: int, log: ReplayLog) -> dict[tuple[int, int, int], int]:
        """The slices of what was in flight, on as many tracks as overlap; each by agent, operation and barrier."""
        drawn: list[_Drawn] = []
        for flight in log.flights:
            kind = self._flight_kind(flight)
            if kind is None or flight.row < 0:
                continue
            begin = self.when[flight.row]
            exact = self.landings.get((first_cta, flight.agent, flight.pc, flight.barrier))
            end = exact if exact is not None else OPEN if flight.by < 0 else max(begin, self.when[flight.by])
            drawn.append((begin, end, self._cta(first_cta, flight), flight, kind))
        drawn.sort(key=lambda each: each[0])  # stable: ties stay in the order of issue
        found = {}
        for (begin, end, _, flight, kind), track in zip(drawn, self._tracks(drawn), strict=True):
            exact = (first_cta, flight.agent, flight.pc, flight.barrier) in self.landings
            found[flight.agent, flight.pc, flight.barrier] = len(self.slices)
            self.slices.append(self._flight(flight, kind, track, begin, end, at_most=not exact))
        return found

    def _tracks(self, drawn: Sequence[_Drawn]) -> list[int]:
        """The track of each, in order of their beginning: the first of its row that is free again, else a new one.

        Copies of a CTA share a row of tracks; MMAs have one for each agent, whose engine carries them out in order.
        """
        free: defaultdict[tuple[int, int], list[int]] = defaultdict(list)  # until when each track of a row is taken
        placed: list[tuple[int, int, int]] = []
        for begin, end, cta, flight, kind in drawn:
            row = (cta, flight.agent if kind is SliceKind.MMA else -1)
            last = end if end != OPEN else 1 << 62
            n = next((n for n, until in enumerate(free[row]) if until <= begin), len(free[row]))
            free[row][n : n + 1] = [last]
            placed.append((*row, n))
        numbers = {}
        for place in sorted(set(placed)):
            cta, agent, _ = place
            numbers[place] = len(self.tracks)
            what = f"MMAs of {self.program.agent_name(agent)}" if agent >= 0 else "copies in flight"
            kind = SliceKind.MMA if agent >= 0 else SliceKind.COPY
            self.tracks.append(SceneTrack(cta, self.sms.get(cta, -1), -1, what, kind))
        return [numbers[place] for place in placed]

    def _flight_kind(self, flight: FlightSeen) -> SliceKind | None:
        """How a flight is drawn. One MMA, or one batch of them whose results are in registers that the program does not
        name, is one slice: what it writes, or the first of what it reads; None for the rest.
        """
        code = self.program.code[flight.agent]
        op = code[flight.pc]
        if op[0] == Op.TMA_LOAD or op[0] == Op.CP_ASYNC_ARRIVE:
            return SliceKind.COPY
        in_order = operand(op, "engine") in IN_ORDER
        if op[0] in DELAYED_ARRIVALS:
            return (SliceKind.MMA if in_order else SliceKind.COPY) if flight.barrier >= 0 else None
        if not in_order:
            return SliceKind.COPY
        if op[0] not in READS_MEMORY:
            return SliceKind.MMA
        follows = flight.pc > 0 and code[flight.pc - 1][: AT["engine"][op[0]] + 1] == op[: AT["engine"][op[0]] + 1]
        return None if follows or self._writes_results(flight.agent) else SliceKind.MMA

    def _writes_results(self, agent: int) -> bool:
        found = self._shown.get(agent)
        if found is None:
            found = self._shown[agent] = any(
                op[0] in ENGINE_ACCESSES - READS_MEMORY and operand(op, "engine") in IN_ORDER
                for op in self.program.code[agent]
            )
        return found

    def _flight(
        self, flight: FlightSeen, kind: SliceKind, track: int, begin: int, end: int, *, at_most: bool
    ) -> SceneSlice:
        op = self.program.code[flight.agent][flight.pc]
        name = self._names.get(op)
        if name is None:
            name = self._names[op] = operation_in_short(self.program, op)
        barrier = self.program.barrier_name(flight.barrier) if flight.barrier >= 0 else ""
        nbytes = operand(op, "bytes") if op[0] in AT["bytes"] else 0
        row = flight.row if flight.own else -1
        return SceneSlice(track, kind, name, begin, end, row, barrier, value=nbytes, at_most=at_most)

    def _cta(self, first_cta: int, flight: FlightSeen) -> int:
        """Where it is drawn: at the barrier that counts it, else at who issued it."""
        if flight.barrier >= 0:
            return first_cta + self.program.barriers[flight.barrier].cta
        return first_cta + self.program.agents[flight.agent].cta

    def _source(self, each: ReplayedPart, landed: Mapping[tuple[int, int, int], int]) -> tuple[int, int]:
        """When something counted, and its slice (-1: none)."""
        if each.landing:
            found = landed.get((each.agent, each.pc, each.barrier), -1)
            return (self.slices[found].end if found >= 0 else 0), found
        found = self.of_row[each.row] if each.row >= 0 else -1
        return (self.when[each.row] if each.row >= 0 else 0), found

    def _add_arrows(self, seen: PhaseSeen, needed: list[tuple[int, int, ReplayedPart]]) -> None:
        target = self.of_row[seen.row]
        if target < 0:
            return
        self.slices[target] = in_phase(self.slices[target], seen.phase)
        if seen.phase < 0 or not needed:
            return
        back = self.when[seen.row]
        last = max(needed, key=lambda each: each[0])
        for at, source, each in needed:
            self.arrows.append(Arrow(source, target, min(at, back) if each.landing else at, back, each is last[2]))

    def _count(
        self,
        first_cta: int,
        log: ReplayLog,
        phases: Mapping[tuple[int, int], list[tuple[int, int, ReplayedPart]]],
    ) -> None:
        """Phases and bytes of each barrier, and the slots in use of each group that is waited on for room."""
        by_barrier: defaultdict[int, list[tuple[int, int, ReplayedPart]]] = defaultdict(list)
        for (barrier, _), made in phases.items():
            by_barrier[barrier] += made
        ends = {barrier: _completions(made) for barrier, made in by_barrier.items()}
        for barrier, made in sorted(by_barrier.items()):
            where = self.program.barriers[barrier]
            cta, name = first_cta + where.cta, f"{where.name}[{where.stage}]"
            counted = ((at, phase + 1) for phase, at in ends[barrier])
            self.counters.append(Counter(cta, name, CounterKind.PHASE, ((0, 0), *counted)))
            if any(each.nbytes for _, _, each in made):
                changes = [(at, each.nbytes) for at, _, each in made if each.nbytes]
                self.counters.append(Counter(cta, name, CounterKind.BYTES, _sums(changes)))
        for (cta, group), changes in sorted(self._slots(log.seen, ends).items()):
            self.counters.append(Counter(first_cta + cta, group, CounterKind.SLOTS, _sums(changes)))

    def _slots(
        self, seen: Sequence[PhaseSeen], ends: Mapping[int, list[tuple[int, int]]]
    ) -> dict[tuple[int, str], list[tuple[int, int]]]:
        """When slots are taken and given back, by CTA and group.

        A wait for room takes the slot of its stage when it returns; the next phase of its barrier gives the slot back.
        """
        taken: dict[tuple[int, int], int] = {}  # (barrier, phase that gives the slot back) → when it was taken
        for each in seen:
            role = self.program.agents[each.agent].role
            if self._asked.get((role, self.program.barriers[each.barrier].name)) is WaitPurpose.ROOM:
                key = (each.barrier, each.phase + 1)
                taken[key] = min(self.when[each.row], taken.get(key, 1 << 62))
        found: defaultdict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
        for (barrier, phase), at in taken.items():
            where = self.program.barriers[barrier]
            found[where.cta, where.name].append((at, 1))
            back = next((end for n, end in _around(ends.get(barrier, []), phase) if n == phase), None)
            if back is not None:
                found[where.cta, where.name].append((max(at, back), -1))
        return found


def _around(ends: list[tuple[int, int]], phase: int) -> list[tuple[int, int]]:
    """The entry of a phase, if it is where it would be in a list of all phases; else the whole list."""
    if ends and 0 <= phase - ends[0][0] < len(ends) and ends[phase - ends[0][0]][0] == phase:
        return [ends[phase - ends[0][0]]]
    return ends


def _completions(made: list[tuple[int, int, ReplayedPart]]) -> list[tuple[int, int]]:
    """(phase, when it completed) in order: with the last of what it needed, and not before the phase before it."""
    latest: dict[int, int] = {}
    complete: set[int] = set()
    for at, _, each in made:
        latest[each.phase] = max(at, latest.get(each.phase, at))
        if each.completes:
            complete.add(each.phase)
    found, time = [], 0
    for phase in sorted(complete):
        time = max(time, latest[phase])
        found.append((phase, time))
    return found


def _sums(changes: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The sum after each change, one point for each time; from 0 on."""
    points = {0: 0}
    total = 0
    for at, change in sorted(changes, key=lambda each: each[0]):
        total += change
        points[at] = total
    return tuple(points.items())
