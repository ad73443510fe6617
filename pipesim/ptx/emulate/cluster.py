"""All warps of one cluster, round-robin until no warp can continue; then the oldest copy lands, and so on.

That is one schedule of the launch, a legal one in which copies land as late as possible. What every warp did in it is
recorded; whether it does the same in every schedule is the proof's question.

A cluster that hangs is followed further: where every warp waits, the phase that is most overdue is completed.

Then it is known what the warps do after a hang, so that corrections can be tried on all of it; the order in which they
do so is one of many. What lacks something is a guess: the wait for the earliest phase of an mbarrier, since all later
phases come after it. Where the guess is wrong the cluster hangs again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import NamedTuple, Protocol

from pipesim.bounds import MAX_KERNEL_OPERATIONS, MAX_WARP_INSTRUCTIONS
from pipesim.model import barrier as mbarrier
from pipesim.model.barrier import BarrierState
from pipesim.model.finding import FaultKind
from pipesim.model.groups import BY_PARITY, ON_NAMED_BARRIER, PARITY_TRIES
from pipesim.model.ops import Op, Space, operand
from pipesim.ptx.emit.record import FirstParities, Place, StreamRecorder, WaysDiffer
from pipesim.ptx.emulate.accesses import flush, read, write
from pipesim.ptx.emulate.boxless import BoxlessCopies, LandedCopy
from pipesim.ptx.emulate.cluster_barrier import ClusterBarrier
from pipesim.ptx.emulate.cluster_memory import ClusterMemory
from pipesim.ptx.emulate.code import Code
from pipesim.ptx.emulate.lanes.exchanges import LaneExchanges
from pipesim.ptx.emulate.memory import RANK_SHIFT
from pipesim.ptx.emulate.stop import Status
from pipesim.ptx.emulate.values import WARP, Value
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.emulate.ways import DividedWarp
from pipesim.ptx.free.varying import FreeInputs
from pipesim.ptx.launch.image import Image
from pipesim.ptx.launch.values import Launch

Apart = Mapping[tuple[int, int], tuple[int, ...]]  #: for warps, by CTA and number, sets of lanes that continue alone
ENDLESS = "a loop without end: each lap of it leaves everything as it was"
_MOST_COMPLETED = 4_000  #: phases; beyond them nothing is guessed
TURN = 2_000  #: instructions of one warp before the next has its turn
_LONG = (24, 6)  #: a run may be long, or is, that has had one in this many of the instructions that are followed
_TOKEN = 1 << 62  #: added to a state that an arrive returns, whose low bits are those of the barrier's address


@dataclass
class EmulationLimits:
    """What bounds an emulation: instructions of all warps together, and the operations that they record.

    ``one_cta``: for which other CTAs of the grid it holds is not asked. ``asked``: the instructions that a message
    names, where runs before have had some of them.
    """

    instructions: int = MAX_WARP_INSTRUCTIONS
    operations: int = MAX_KERNEL_OPERATIONS
    one_cta: bool = False
    asked: int = 0

    def without(self, spent: int) -> EmulationLimits:
        """What is left for another run."""
        return replace(self, instructions=self.instructions - spent, asked=self.asked or self.instructions)


class Landing(NamedTuple):
    """Something under way: when it ends, ``land`` is called."""

    agent: int
    position: int
    land: Callable[[], None]


@dataclass
class NamedBarrier:
    """A named barrier of a CTA: threads that have arrived, those that it counts to, and how often it was complete.

    ``votes``: what arrived with ``bar.red``; ``results``: the votes of each generation that is complete, and
    ``reduced`` the result of these, once a warp asks: for those that are ``asking``, how many of each generation.
    ``all_of_cta``: the position of an instruction that waits there without a count, for all threads of the CTA, or -1;
    ``places``: the positions at which threads of this generation arrive.
    """

    arrived: int = 0
    generation: int = 0
    all_of_cta: int = -1
    votes: list[Value] = field(default_factory=list)
    results: dict[int, list[Value]] = field(default_factory=dict)
    reduced: dict[int, Value] = field(default_factory=dict)
    asking: dict[int, int] = field(default_factory=dict)
    places: set[int] = field(default_factory=set)

    def complete(self) -> None:
        """The next generation begins."""
        if self.generation in self.asking:
            self.results[self.generation] = self.votes
        self.arrived, self.votes, self.all_of_cta, self.places = 0, [], -1, set()
        self.generation += 1

    def answered(self, generation: int) -> None:
        """One of the warps that ask for its result has it."""
        self.asking[generation] -= 1
        if not self.asking[generation]:
            for each in (self.asking, self.results, self.reduced):
                each.pop(generation, None)

    @property
    def stands(self) -> object:
        """How many threads have arrived, and which results warps still ask for, without the values."""
        asked = tuple((self.generation - n, count, n in self.reduced) for n, count in self.asking.items())
        return self.arrived, self.all_of_cta, len(self.votes), asked


class RoundWatcher(Protocol):
    """Looks at the cluster after each round of its warps."""

    @property
    def shown(self) -> bool:
        """Whether what it looks for was there."""

    def look(self) -> None:
        """All warps had a turn."""


class Cluster(ClusterMemory):
    """The CTAs of one cluster and their warps, of which each begins with its ``constants``."""

    def __init__(
        self,
        code: Code,
        launch: Launch,
        image: Image,
        constants: Callable[[Cluster, int, int], list[Value]],
        apart: Apart | None = None,
        inputs: FreeInputs | None = None,
    ) -> None:
        super().__init__(code, launch, image, inputs or FreeInputs())
        self.threads = prod(launch.block)
        self.warps_of_cta = -(-self.threads // 32)
        self.initialised: dict[Place, int] = {}  #: the position of the first init
        self.reused: frozenset[Place] = frozenset()  #: mbarriers over whose bytes something is written before or after
        self.too_early: set[Place] = set()  #: mbarriers that were used before their init
        self.begin: frozenset[int] = frozenset()  #: agents that run before the others, since they initialise them
        self.past_hangs = False  #: whether it is followed further where it hangs, and how many phases that took
        self.completed, self._wait_counts = 0, _WaitCounts()
        self.first_parities: FirstParities = {}
        self._turns: Counter[tuple[int, Place]] = Counter()
        self.closed: Counter[int] = Counter()  #: groups of products of wgmma, by agent
        self.boxless = BoxlessCopies()
        self.named: dict[tuple[int, int], NamedBarrier] = {}
        self.flights: deque[Landing] = deque()
        self.pending: dict[int, list[int]] = {}
        self.cluster_barrier = ClusterBarrier()
        self.watcher: RoundWatcher | None = None
        self.moved: set[EmulatedWarp] = set()  #: the warps that ran since the watcher looked last
        self.pauses = False  #: whether a turn ends where a loop begins again
        self.is_long: Callable[[bool], None] | None = None  #: called where the run is long; True: where it may be
        self.repeats: Callable[[int], bool] | None = None  #: by a number of instructions: whether all is as it was
        self.repeats_from = 0  #: the number of instructions from which on it is asked
        self.limited = False  #: it was not followed to the end, since a limit was reached
        self.reductions: set[int] = set()  #: items that red.async leaves
        self.void_fences: frozenset[int] = frozenset()  #: that do not order what copies use, as other lanes wrote it
        self.fences_apart: frozenset[int] = frozenset()  #: that lanes did not execute which signal later
        self.refused: frozenset[int] = frozenset()  #: instructions that are not known and may touch what others use
        self.misaligned: Mapping[int, str] = {}  #: copies whose address in global memory PTX does not allow
        self._recorded = 0  #: operations
        self.warps: list[EmulatedWarp] = []
        self._make_warps(constants, apart or {})

    def _make_warps(self, constants: Callable[[Cluster, int, int], list[Value]], apart: Apart) -> None:
        for cta in range(self.ctas):
            for number in range(self.warps_of_cta):
                lanes = min(32, self.threads - 32 * number)
                whole = (1 << lanes) - 1
                for mask in apart.get((cta, number), (whole,)):
                    warp = EmulatedWarp(self, self.code, cta, number, mask, constants(self, cta, number))
                    warp.lanes, warp.all_lanes = mask, whole
                    warp.agent = self.recorder.agent(cta, number, mask)
                    self.warps.append(warp)
                    if 0 < self.launch.resident <= cta:
                        warp.begin_later(partial(self._has_room, cta))

    def _has_room(self, cta: int) -> bool:
        """Whether enough CTAs have ended for this one to begin."""
        left = {warp.cta for warp in self.warps if warp.status is not Status.ENDED}
        return self.ctas - len(left) > cta - self.launch.resident

    # running

    def run(self, limits: EmulationLimits | None = None) -> int:
        """Run until no warp can continue; how many warp instructions that took."""
        total = self._run(limits or EmulationLimits())
        if self.words is None:
            self.recorder.separate_reads()
        return total

    def _run(self, limits: EmulationLimits) -> int:
        total, long = sum(self._turn(warp) for warp in self.warps if warp.agent in self.begin), [*_LONG]
        while True:
            moved = 0
            for warp in self.warps:
                if warp.status in (Status.READY, Status.BLOCKED):
                    moved += self._turn(warp)
                    if total + moved > limits.instructions or self._recorded > limits.operations:
                        break  # a round of all may record many times as much
            total += moved
            if self.watcher is not None:
                self.watcher.look()
            if self.is_long is not None and long and total > limits.instructions // long[0]:
                del long[0]
                self.is_long(bool(long))
            asked = moved and total > self.repeats_from  # else what is in flight lands
            if asked and self.repeats is not None and self.repeats(total):
                self._stop_all(ENDLESS)
                return total
            if total > limits.instructions:
                self._stop_all(f"the limit of {limits.asked or limits.instructions:,} warp instructions was reached")
                return total
            if self._recorded > limits.operations:
                self._stop_all(f"the limit of {limits.operations:,} operations was reached")
                return total
            if not moved:
                if self.flights:
                    self.flights.popleft().land()
                elif (place := self.boxless.settle(self.barrier)) is not None:
                    state = self.barrier(place)
                    self.effect(place, mbarrier.add_tx(state, -state.tx))
                elif not self._complete_overdue():
                    return total

    def parity_in_turn(self, agent: int, place: Place, parity: int, *, waits: bool) -> int:
        """The parity of a wait or try: the one given, or, of those with other first parities, that of its turn."""
        first = self.first_parities.get((agent, place))
        if first is None:
            return parity
        turn = self._turns[agent, place]
        self._turns[agent, place] += waits
        return (first + turn) & 1

    def _complete_overdue(self) -> bool:
        """Complete the phase that a cluster lacks which hangs; False if nothing waits, or it is not to be done."""
        if not self.past_hangs or self.completed >= _MOST_COMPLETED:
            return False
        warp = _most_overdue(self.recorder, self.warps, self.barriers, self._wait_counts)
        if warp is None:
            return False
        self.completed += 1
        op = self.recorder.streams[warp.agent].code[-1]
        if op[0] in BY_PARITY:
            place = list(self.recorder.barriers)[operand(op, "barrier")]
            state = self.barrier(place)
            self.barriers[place] = state._replace(pending=state.expected, tx=0, done=state.done + 1)
        elif op[0] in ON_NAMED_BARRIER:
            self.named[list(self.recorder.named)[operand(op, "named_barrier")]].complete()
        else:
            warp.ready = None
        return True

    def must_part(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """Where no warp can continue: the warps of which some lanes wait and others still have to run, as lane sets."""
        found: dict[tuple[int, int], tuple[int, ...]] = {}
        for warp in self.warps:
            waiting = warp.lanes_that_wait_to_run() if warp.status is Status.BLOCKED else warp.to_part
            waiting = waiting or warp.apart.to_part
            if waiting:
                others = tuple(
                    w.lanes for w in self.warps if (w.cta, w.number) == (warp.cta, warp.number) and w is not warp
                )
                found[warp.cta, warp.number] = tuple(sorted((warp.lanes & ~waiting, waiting, *others)))
        return found

    def _turn(self, warp: EmulatedWarp) -> int:
        if warp.status is Status.BLOCKED and warp.ready is not None and not warp.ready_now():
            return 0
        if self.watcher is not None:
            self.moved.add(warp)
        stream = self.recorder.streams[warp.agent]
        before = len(stream.code)
        try:
            return max(warp.run(TURN), 1)
        except WaysDiffer:
            warp.end_at("what follows depends on the result of a try_wait by more than a wait for the same phase", None)
            return 1
        finally:
            self._recorded += len(stream.code) - before

    def _stop_all(self, what: str) -> None:
        self.limited = True
        self.flights.clear()
        for warp in self.warps:
            warp.exchanges = LaneExchanges()
            if warp.status in (Status.READY, Status.BLOCKED):
                last = self.recorder.streams[warp.agent].code[-2:]
                asks = len(last) == 2 and all(op[0] in PARITY_TRIES for op in last)
                warp.end_at(f"{what} in a loop of tries that is not a wait for each of them" if asks else what, None)

    # what warps do

    def barrier(self, place: Place) -> BarrierState:
        """The state of the mbarrier at this place."""
        return self.barriers.get(place, mbarrier.FRESH)

    def effect(self, place: Place, effect: mbarrier.Effect) -> FaultKind | None:
        """Put the effect of an operation on an mbarrier into its state; a fault is found again by the proof."""
        if effect[2] is FaultKind.NOT_INITIALISED:
            self.too_early.add(place)
        self.barriers[place] = effect[0]
        return effect[2]

    def token(self, place: Place, before: BarrierState) -> int:
        """The state that an arrive returns: a number that represents the barrier and its phase."""
        return _TOKEN | before.done << 32 | place[0] << RANK_SHIFT | place[1]

    def of_token(self, token: int) -> tuple[Place, int] | None:
        """Barrier and phase that a state represents; None if it is none."""
        place = token >> RANK_SHIFT & 0xFF, token & (1 << RANK_SHIFT) - 1
        return (place, (token ^ _TOKEN) >> 32) if token >> 62 == 1 else None

    def land_on(self, agent: int, position: int, place: Place, nbytes: int, boxless: LandedCopy | None = None) -> None:
        """A copy lands later; ``boxless``: of a map whose box is not known."""
        self.fly(agent, position, partial(self._land, place, nbytes, boxless))

    def _land(self, place: Place, nbytes: int, boxless: LandedCopy | None) -> None:
        if boxless is not None and boxless.key not in self.boxless.sizes:
            self.boxless.land(place, boxless)
            return
        self.effect(place, mbarrier.add_tx(self.barrier(place), -nbytes))
        self.boxless.known_bytes(place, self.barrier(place))

    def fly(self, agent: int, position: int, land: Callable[[], None]) -> None:
        """Something ends later."""
        self.flights.append(Landing(agent, position, land))

    def lanes_ended(self, warp: DividedWarp) -> None:
        """Some lanes of a warp have ended, and others have not."""
        self.cluster_barrier.lanes_ended(self, warp)

    def ended(self, warp: DividedWarp) -> None:
        """A warp has ended: what it never waited for in tensor memory may happen as late as here."""
        where = Space.TENSOR, warp.cta
        for _, position, ranges in warp.tensor_reads:
            read(self, warp, where, ranges, position)
        for _, position, ranges in warp.tensor_writes:
            write(self, warp, where, ranges, [first for first, _ in ranges], None, position)
        flush(self, warp)
        for cta, number in self.named:
            if cta == warp.cta:
                self.count_ended(cta, number)

    def count_ended(self, cta: int, number: int) -> None:
        """Complete a barrier that all threads of the CTA wait at, where those that have not come have ended.

        Their end is the arrival that is missing. They join as often as it is complete without them.
        """
        named = self.named[cta, number]
        missing = WARP * self.warps_of_cta - named.arrived
        ended = [each for each in self.warps if each.cta == cta and each.status is Status.ENDED]
        if named.all_of_cta < 0 or not named.arrived or missing > sum(each.threads for each in ended):
            return
        self.notes.ended.add(named.all_of_cta)
        barrier, threads = self.recorder.named_barrier(cta, number), WARP * self.warps_of_cta
        for each in ended:
            self.recorder.add(each.agent, named.all_of_cta, Op.BAR_SYNC, barrier, threads, each.threads)
        named.complete()


@dataclass
class _WaitCounts:
    """How often each agent has waited for each mbarrier, as far as its code was counted."""

    _counted: Counter[int] = field(default_factory=Counter)
    _times: Counter[tuple[int, int]] = field(default_factory=Counter)

    def of(self, agent: int, barrier: int, code: Sequence[tuple[int, ...]]) -> int:
        """Of one agent with this code, which only grows."""
        new, self._counted[agent] = code[self._counted[agent] :], len(code)
        self._times.update((agent, operand(each, "barrier")) for each in new if each[0] in BY_PARITY)
        return self._times[agent, barrier]


def _most_overdue(
    recorder: StreamRecorder, warps: Sequence[EmulatedWarp], states: Mapping[Place, BarrierState], counts: _WaitCounts
) -> EmulatedWarp | None:
    """The warp that waits for it, None if none waits: for an mbarrier before a named barrier or the cluster.

    Of equal phases that of the barrier for which the warp has waited least often, as of a stage that is filled; of
    named barriers that of the fewest threads: a meeting of the whole CTA is last for all.
    """
    places = list(recorder.barriers)

    def rank(warp: EmulatedWarp) -> tuple[int, int, int]:
        code = recorder.streams[warp.agent].code
        op = code[-1]
        if op[0] not in BY_PARITY:
            return (1, operand(op, "threads"), 0) if op[0] in ON_NAMED_BARRIER else (2, 0, 0)
        mine = operand(op, "barrier")
        return 0, states[places[mine]].done, counts.of(warp.agent, mine, code)

    return min((warp for warp in warps if warp.status is Status.BLOCKED), key=rank, default=None)
