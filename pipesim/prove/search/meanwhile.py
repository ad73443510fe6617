"""How far processes may come while others are held still, and what they may touch on the way: never too little.

A wait ends an agent's way if the barrier cannot complete the phase without those held still: the arrivals that the
others may still make by then are too few, or bytes are missing that none of them brings. Everything else is taken to
be passed, whatever the result of a try_wait, and a phase to complete as soon as the counts allow it. What an agent does
between two waits is the same in every state, and read off the code once (:mod:`pipesim.prove.search.ways`).
"""

from typing import Any, NamedTuple, assert_never

from pipesim.model.barrier import LIVE, BarrierState, token_phase
from pipesim.model.machine import TMA, Flight
from pipesim.model.moves import lands_after
from pipesim.model.ops import Engine
from pipesim.model.program import Program
from pipesim.prove.search.footprint import NOTHING, Touch
from pipesim.prove.search.parts import Parts, Row
from pipesim.prove.search.successors import Process
from pipesim.prove.search.ways import (
    ClusterArrive,
    ClusterWait,
    End,
    GroupWait,
    Leg,
    PhaseWait,
    StateWait,
    Stop,
    Supplies,
    Sync,
    Way,
)

_NO_END = 1 << 60


class FreeProcess(NamedTuple):
    """A process that is not held: its way, None for a transfer, and what it does immediately if it can move.

    ``weight``: 0 if it cannot.
    """

    process: Process
    way: Way | None
    weight: int
    reads: int
    writes: int
    adds: int


class Moves(NamedTuple):
    """What the next moves of the held processes add to, and what of others they notice: reads, writes, additions.

    Whether they notice additions where they add as well depends on how many there are.
    """

    adds: int
    by_read: int
    by_write: int
    by_add: int

    def notice(self, touched: Touch | Leg | FreeProcess) -> bool:
        """True if they notice this, however many arrivals there are."""
        return bool(touched.reads & self.by_read or touched.writes & self.by_write or touched.adds & self.by_add)


class _AgentProgress:
    """How far an agent has come on its way, and what is known about its state there."""

    __slots__ = ("asked", "cluster", "done", "generations", "held", "leg", "number", "way", "weight")

    def __init__(self, way: Way, generation: int, weight: int) -> None:
        self.way = way
        self.weight = weight  #: 0 also when it has been taken into account
        self.number = 0
        self.leg = way.legs[0]
        self.done: dict[int, int] = {}  #: phases of a barrier that are over, since it has seen so, by part
        self.asked = {told.register: 0 for told in self.leg.tries} if self.leg.tries else {}  #: ``done`` at a try
        self.generations: dict[int, int] = {}  #: the same of a named barrier, counted from now
        self.cluster = 0  #: the same of the cluster barrier
        held = way.local.cluster_held
        self.held = held - generation if held >= 0 else -1

    def go_on(self) -> Leg:
        """To the next leg."""
        legs = self.way.legs
        self.number = number = self.number + 1
        if number == len(legs):
            self.way.longer()
        self.leg = leg = legs[number]
        for told in leg.tries:
            self.asked[told.register] = self.done.get(told.part, 0)
        return leg


class Meanwhile:
    """The others, let run as far as they may come while the ``held`` ones stand still."""

    def __init__(
        self,
        program: Program,
        parts: Parts,
        supplies: Supplies,
        row: Row,
        held: list[Process],
        others: list[FreeProcess],
        moves: Moves,
    ) -> None:
        self._program = program
        self._parts = parts
        self._values = parts.values
        self._supplies = supplies
        self._row = row
        self._held = held
        self._moves = moves
        self._flying = [(process, process.flight) for process in held if process.flight is not None]
        self._counts: dict[int, int] = {}
        self._landing = 0
        self._free = 0
        self._weight = 0  # of those that the moves notice
        self._found: list[tuple[Process, Touch | _AgentProgress]] = []
        self._walking: list[_AgentProgress] = []
        generation = self._value(self._parts.cluster)[1]
        for each in others:
            at_once = each.weight > 0 and moves.notice(each)  # who can move can do this at least
            self._weight += each.weight if at_once else 0
            if each.way is None:
                self._found.append((each.process, self._landed(each.process)))
                continue
            walker = _AgentProgress(each.way, generation, 0 if at_once else each.weight)
            self._count_leg(walker, walker.leg)
            self._walking.append(walker)
            self._found.append((each.process, walker))

    def interfering_processes(self, most: int) -> list[Process] | None:
        """Those of the others that do what the moves notice, or notice them; None if they weigh more than ``most``.

        They may then be asked for again, with a higher limit.
        """
        if self._weight > most or not self._advance_agents(most):
            return None
        moves = self._moves
        if moves.adds:
            moves = moves._replace(by_add=moves.by_add | (moves.adds & self._mixed_parts(moves.adds)))
        return [
            process for process, did in self._found if moves.notice(did.leg if isinstance(did, _AgentProgress) else did)
        ]

    def _advance_agents(self, most: int) -> bool:
        """Advance the agents until all of them stay where they are; False if they weigh too much."""
        farther = True
        while farther:
            farther = False
            for walker in self._walking:
                while not self._stays(walker, walker.leg.stop):
                    self._count_leg(walker, walker.go_on())
                    farther = True
                    if self._weight > most:
                        return False
        return True

    def _count_leg(self, walker: _AgentProgress, leg: Leg) -> None:
        """Count what the operations of a leg bring, and the weight of the agent if the moves notice it now."""
        counts = self._counts
        for part, count in leg.counts:
            counts[part] = counts.get(part, 0) + count
        self._landing |= leg.landing
        self._free |= leg.free
        if walker.weight and self._moves.notice(leg):
            self._weight += walker.weight
            walker.weight = 0

    def _mixed_parts(self, adds: int) -> int:
        """Those of the parts ``adds`` at which arrivals of the held and of the others cannot be exchanged.

        They can where all of them together complete at most the current phase, and the last of them that. The bytes of
        the phase must not change in between.
        """
        mixed, left = 0, adds & ~(1 << self._parts.cluster)
        while left:
            bit = left & -left
            part = bit.bit_length() - 1
            left ^= bit
            count = self._counts.get(part, 0) + sum(self._brings(process, part) for process in self._held)
            if self._free & bit or self._landing & bit or count > self._pending_arrivals(part):
                mixed |= bit
        return mixed

    def _pending_arrivals(self, part: int) -> int:
        """How many arrivals, or threads, the current phase still takes."""
        word = self._value(part)
        if isinstance(word, BarrierState):
            return word.pending if word.life == LIVE else -1
        arrived: int = word[0]
        return self._supplies.threads[part] - arrived

    def _brings(self, process: Process, part: int) -> int:
        """How many the next move of a held process brings to a part."""
        if not process.touch.adds >> part & 1:
            return 0
        if process.flight is not None:
            return process.flight.arrivals
        at = self._value(process.part).pc
        return sum(count for to, count in self._supplies.gives[process.agent][at].counts if to == part)

    def _value(self, part: int) -> Any:  # each part has a type of its own
        return self._values[part][self._row[part]]

    def _landed(self, process: Process) -> Touch:
        """What the transfer touches, unless it can land only after one that is held."""
        flight = process.flight
        assert flight is not None
        if self._flying and any(self._follows(process, flight, held, before) for held, before in self._flying):
            return NOTHING
        if flight.barrier >= 0:
            part = self._parts.barriers[flight.barrier]
            if flight.engine == TMA:
                self._landing |= 1 << part
            else:
                self._counts[part] = self._counts.get(part, 0) + flight.arrivals
        return process.touch

    def _follows(self, process: Process, flight: Flight, held: Process, before: Flight) -> bool:
        """True if the flight can land only after the one that is held."""
        if held.part != process.part or held.place > process.place:
            return False
        return lands_after(self._program, flight, before)

    def _stays(self, walker: _AgentProgress, stop: Stop) -> bool:
        """True if the agent cannot get past this stop while the held ones stand still."""
        match stop:
            case PhaseWait():
                return self._waits(walker, stop)
            case GroupWait():
                return self._waits_for_group(walker, stop)
            case Sync():
                return self._syncs(walker, stop)
            case End():
                return True
            case StateWait():
                return self._waits_for_state(walker, stop)
            case ClusterArrive():
                walker.held = walker.cluster
                return False
            case ClusterWait():
                return self._waits_for_cluster(walker, stop)
            case _:
                assert_never(stop)

    def _waits(self, walker: _AgentProgress, stop: PhaseWait) -> bool:
        """True if the phase that it asks for cannot be complete. (Nearly all stops are of this kind.)"""
        part, parity, told = stop
        word: BarrierState = self._values[part][self._row[part]]
        done = walker.done
        if told is not None:
            asked = self._next(word, parity, walker.asked[told.register])
            if asked <= word.done or asked <= self._most_done(
                part, word
            ):  # the register may say that there is no need to wait
                done[part] = max(done.get(part, 0), asked)
                return False
        least = self._next(word, parity, done.get(part, 0))
        if least > word.done and least > self._most_done(part, word):
            return True
        done[part] = least
        return False

    @staticmethod
    def _next(word: BarrierState, parity: int, done: int) -> int:
        """The least number of phases, ``done`` or more and not fewer than now, after which this parity lets pass."""
        least = done if done > word.done else word.done  # noqa: FURB136  # hot: a call costs more
        return least if (least ^ parity) & 1 else least + 1

    def _waits_for_state(self, walker: _AgentProgress, stop: StateWait) -> bool:
        if stop.token is None:
            return False
        phase, word = token_phase(stop.token), self._value(stop.part)
        if word.done < phase:
            return False  # the token is of another barrier: the wait breaks a rule, and does not hold it up
        if self._most_done(stop.part, word) <= phase:
            return True
        walker.done[stop.part] = max(walker.done.get(stop.part, 0), phase + 1)
        return False

    def _syncs(self, walker: _AgentProgress, stop: Sync) -> bool:
        part = stop.part
        arrived, _, generation = self._value(part)
        if stop.loose or self._free >> part & 1:
            return False
        needed = walker.way.local.hold - generation if stop.now else walker.generations.get(part, 0) + 1
        if (arrived + self._counts.get(part, 0)) // self._supplies.threads[part] < needed:
            return True
        walker.generations[part] = needed
        return False

    def _waits_for_cluster(self, walker: _AgentProgress, stop: ClusterWait) -> bool:
        part = self._parts.cluster
        if stop.loose or walker.held < 0 or self._free >> part & 1 or self._parts.gone:
            walker.held = -1
            return False
        arrived = self._value(part)[0] + self._counts.get(part, 0)
        if arrived // len(self._program.agents) <= walker.held:
            return True
        walker.cluster, walker.held = walker.held + 1, -1
        return False

    def _waits_for_group(self, walker: _AgentProgress, stop: GroupWait) -> bool:
        agent, engine = walker.way.agent, stop.engine
        commits = self._parts.commits.get(agent)
        closed = stop.closed + (self._value(commits)[engine] if commits is not None else 0)
        members = self._program.warp_groups[agent] if engine == Engine.WGMMA else (agent,)
        mine = [flight for _, flight in self._flying if flight.engine == engine and flight.agent in members]
        return any(0 <= flight.group < closed - stop.groups for flight in mine)

    def _most_done(self, part: int, word: BarrierState) -> int:
        """The phases that may be over while the held ones stand still."""
        if self._free >> part & 1 or word.life != LIVE or word.expected < 1:
            return _NO_END
        arrivals = self._counts.get(part, 0)
        if arrivals < word.pending or (word.tx and not self._landing >> part & 1):
            return word.done
        return word.done + 1 + (arrivals - word.pending) // word.expected
