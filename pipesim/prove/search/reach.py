"""How far processes may come while others are held still, and what they may touch on the way: never too little.

A wait ends an agent's way if the barrier cannot complete the phase without those held still: the arrivals that the
others may still make by then are too few, or bytes are missing that none of them brings. Everything else is taken to
be passed, whatever the result of a try_wait, and a phase to complete as soon as the counts allow it.
"""

from __future__ import annotations

from typing import Any

from pipesim.model.barrier import LIVE, BarrierState, token_phase
from pipesim.model.groups import PARITY_TRIES, PARITY_WAITS, PLAIN_WAITS, WRITES_REGISTER
from pipesim.model.machine import TMA, Flight
from pipesim.model.ops import IN_ORDER, Engine, Op, Operation, operand
from pipesim.model.positions import (
    ANSWER,
    AWAITED_TOKEN,
    BARRIER,
    COMMIT_BARRIER,
    ENGINE,
    GROUPS,
    JUMP_REGISTER,
    NAMED_BARRIER,
    PARITY,
    SKIP,
    VALUE,
)
from pipesim.model.program import Program
from pipesim.prove.search.footprint import NOTHING, Touch
from pipesim.prove.search.parts import Local, Row
from pipesim.prove.search.successors import Process, Successors
from pipesim.prove.search.supplies import Gives, Supplies

_FAR = 256  #: operations that an agent's way is followed; beyond, it may do all that it still has to do
_NO_END = 1 << 60


class Reach:
    """What processes may touch while others are held still, in any state of one program."""

    def __init__(self, program: Program, successors: Successors) -> None:
        self._program = program
        self._successors = successors
        self._supplies = Supplies(program, successors.parts, successors.footprints)

    def noticing(self, row: Row, held: list[Process], others: list[Process]) -> list[Process]:
        """Those of ``others`` that, before one of ``held`` moves, may do what does not leave its move as it is."""
        meanwhile = _Meanwhile(self._program, self._successors, self._supplies, row, held, others)
        touched = meanwhile.touched()
        moves = NOTHING
        for process in held:
            moves = moves.join(process.touch)
        mixed = moves.adds & meanwhile.mixed(held, moves.adds)
        return [
            process
            for process, touch in zip(others, touched, strict=True)
            if touch.noticed(moves) or touch.adds & mixed
        ]


class _Way:
    """How far an agent has come, what it has touched, and what is known of the state in which it stands there."""

    def __init__(self, agent: int, local: Local, generation: int) -> None:
        self.agent = agent
        self.local = local
        self.at = local.pc
        self.reads = 0
        self.writes = 0
        self.adds = 0
        self.ended = False
        self.arrived = local.hold > 0  #: at the named barrier where it is
        self.done: dict[int, int] = {}  #: phases of a barrier that are over, since it has seen so
        self.generations: dict[int, int] = {}  #: the same of a named barrier, counted from now
        self.cluster = 0  #: the same of the cluster barrier
        self.held = local.cluster_held - generation if local.cluster_held >= 0 else -1
        self.registers: list[int | None] = list(local.registers)
        self.tries: dict[int, tuple[int, int, int]] = {}  #: by register: barrier, parity, and ``done`` at the try
        self.closed: dict[int, int] = {}  #: groups, by engine
        self.sure_from = -1  #: before this operation a jump may have left everything out
        self.loose = False  #: after such a jump only mbarriers are known to hold it up

    def take(self, touch: Touch) -> None:
        """It touches this on its way."""
        self.reads |= touch.reads
        self.writes |= touch.writes
        self.adds |= touch.adds

    def write_register(self, op: Operation) -> None:
        """Forget what the operation overwrites, and remember a try."""
        if op[0] not in WRITES_REGISTER:
            return
        register = operand(op, "register")
        if register < 0:
            return
        self.registers[register] = None
        self.tries.pop(register, None)
        if op[0] in PARITY_TRIES and self.at >= self.sure_from:
            self.tries[register] = (op[BARRIER], op[PARITY], self.done.get(op[BARRIER], 0))

    def go_on(self, op: Operation) -> None:
        """To the next operation, or past a jump."""
        self.arrived = False
        self.at += 1
        if op[0] != Op.JUMP_IF:
            return
        known = self.registers[op[JUMP_REGISTER]]
        if known is not None and self.at > self.sure_from:
            self.at += op[SKIP] if known == op[VALUE] else 0
            return
        self.sure_from = max(self.sure_from, self.at + op[SKIP])
        self.registers = [None] * len(self.registers)
        self.tries = {}
        self.loose = True


class _Meanwhile:
    """The others, let run as far as they may come."""

    def __init__(
        self,
        program: Program,
        successors: Successors,
        supplies: Supplies,
        row: Row,
        held: list[Process],
        others: list[Process],
    ) -> None:
        self._program = program
        self._parts = successors.parts
        self._supplies = supplies
        self._row = row
        self._held = [(process, process.flight) for process in held if process.flight is not None]
        self._counts: dict[int, int] = {}
        self._landing = 0
        self._free = 0
        self._flights: list[Touch | None] = []
        self._ways: list[_Way] = []
        generation = self._value(self._parts.cluster)[1]
        for process in others:
            if process.flight is None:
                self._flights.append(None)
                self._ways.append(_Way(process.agent, self._value(process.part), generation))
            else:
                self._flights.append(self._landed(process, process.flight))

    def touched(self) -> list[Touch]:
        """What the others touch, in their order."""
        farther = True
        while farther:
            farther = False
            for way in self._ways:
                while not way.ended and self._goes(way):
                    farther = True
        ways = iter(self._ways)
        found = []
        for flight in self._flights:
            if flight is None:
                way = next(ways)
                flight = Touch(way.reads, way.writes, way.adds)
            found.append(flight)
        return found

    def mixed(self, held: list[Process], adds: int) -> int:
        """Those of the parts ``adds`` at which arrivals of the held and of the others cannot be exchanged.

        They can where all of them together complete at most the current phase, and the last of them that. The bytes of
        the phase must not change in between.
        """
        mixed = 0
        for part in range(adds.bit_length()):
            if adds >> part & 1 and part != self._parts.cluster:
                count = self._counts.get(part, 0) + sum(self._brings(process, part) for process in held)
                if self._free >> part & 1 or self._landing >> part & 1 or count > self._pending(part):
                    mixed |= 1 << part
        return mixed

    def _pending(self, part: int) -> int:
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
        return self._parts.values[part][self._row[part]]

    def _landed(self, process: Process, flight: Flight) -> Touch:
        if any(self._follows(process, flight, held, before) for held, before in self._held):
            return NOTHING
        if flight.barrier >= 0:
            part = self._parts.barriers[flight.barrier]
            if flight.engine == TMA:
                self._landing |= 1 << part
            else:
                self._counts[part] = self._counts.get(part, 0) + flight.arrivals
        return process.touch

    @staticmethod
    def _follows(process: Process, flight: Flight, held: Process, before: Flight) -> bool:
        """True if the flight can land only after the one that is held."""
        if held.part != process.part or held.place > process.place:
            return False
        return flight.after > 0 or (flight.engine in IN_ORDER and before.after == 0)

    def _goes(self, way: _Way) -> bool:
        """One operation farther, or one arrival at a named barrier; False if the agent stays here."""
        code = self._program.code[way.agent]
        if way.at >= len(code):
            way.ended = True
            return False
        if way.at - way.local.pc >= _FAR:
            rest = self._supplies.rest[way.agent][way.at]
            way.take(rest)
            way.ended = True
            self._free |= rest.reads | rest.writes | rest.adds
            return True
        op, given = code[way.at], self._supplies.gives[way.agent][way.at]
        if op[0] == Op.BAR_SYNC and not way.arrived:
            way.arrived = True
            self._give(way, given)
            return True
        if way.at >= way.sure_from and self._stays(way, op):
            return False
        if op[0] == Op.BAR_SYNC:
            way.take(
                Touch(reads=1 << self._parts.named[op[NAMED_BARRIER]], writes=given.touch.writes)
            )  # it may end here
        else:
            self._give(way, given)
        way.write_register(op)
        way.go_on(op)
        return True

    def _give(self, way: _Way, given: Gives) -> None:
        way.take(given.touch)
        for part, count in given.counts:
            self._counts[part] = self._counts.get(part, 0) + count
        self._landing |= given.landing
        self._free |= given.free

    def _stays(self, way: _Way, op: Operation) -> bool:
        """True if the agent cannot get past this operation while the held ones stand still."""
        match op[0]:
            case code if code in PARITY_WAITS:
                skips = code not in PLAIN_WAITS and self._skips(way, op)
                return not skips and self._waits(way, op[BARRIER], op[PARITY])
            case Op.WAIT_STATE:
                return self._waits_for_state(way, op[BARRIER], way.registers[op[AWAITED_TOKEN]])
            case Op.BAR_SYNC:
                return self._syncs(way, self._parts.named[op[NAMED_BARRIER]])
            case Op.CLUSTER_ARRIVE:
                way.held = way.cluster
                return False
            case Op.CLUSTER_WAIT:
                return self._waits_for_cluster(way)
            case Op.COMMIT if op[COMMIT_BARRIER] < 0:
                way.closed[op[ENGINE]] = way.closed.get(op[ENGINE], 0) + 1
                return False
            case Op.WAIT_GROUP:
                return not way.loose and self._waits_for_group(way, op[ENGINE], op[GROUPS])
            case _:
                return False

    def _waits(self, way: _Way, barrier: int, parity: int) -> bool:
        done = self._seen(barrier, parity, way.done.get(barrier, 0))
        if done is None:
            return True
        way.done[barrier] = done
        return False

    def _skips(self, way: _Way, op: Operation) -> bool:
        """True if the register may say that there is no need to wait."""
        register = op[ANSWER]
        if register < 0 or way.registers[register] == 0:
            return False
        if register not in way.tries:
            return True
        barrier, parity, before = way.tries[register]
        done = self._seen(barrier, parity, before)
        if done is None:
            return False
        if (barrier, parity) == (op[BARRIER], op[PARITY]):
            way.done[barrier] = max(way.done.get(barrier, 0), done)
        return True

    def _waits_for_state(self, way: _Way, barrier: int, token: int | None) -> bool:
        if token is None:
            return False
        phase, word = token_phase(token), self._value(self._parts.barriers[barrier])
        if word.done < phase:
            return False  # the token is of another barrier: the wait breaks a rule, and does not hold it up
        if self._most_done(barrier) <= phase:
            return True
        way.done[barrier] = max(way.done.get(barrier, 0), phase + 1)
        return False

    def _syncs(self, way: _Way, part: int) -> bool:
        arrived, _, generation = self._value(part)
        if way.loose or self._free >> part & 1:
            return False
        waits_now = way.at == way.local.pc and way.local.hold > 0
        needed = way.local.hold - generation if waits_now else way.generations.get(part, 0) + 1
        if (arrived + self._counts.get(part, 0)) // self._supplies.threads[part] < needed:
            return True
        way.generations[part] = needed
        return False

    def _waits_for_cluster(self, way: _Way) -> bool:
        part = self._parts.cluster
        if way.loose or way.held < 0 or self._free >> part & 1 or self._parts.gone:
            way.held = -1
            return False
        arrived = self._value(part)[0] + self._counts.get(part, 0)
        if arrived // len(self._program.agents) <= way.held:
            return True
        way.cluster, way.held = way.held + 1, -1
        return False

    def _waits_for_group(self, way: _Way, engine: int, groups: int) -> bool:
        commits = self._parts.commits.get(way.agent)
        closed = way.closed.get(engine, 0) + (self._value(commits)[engine] if commits is not None else 0)
        members = self._program.warp_groups[way.agent] if engine == Engine.WGMMA else (way.agent,)
        mine = [flight for _, flight in self._held if flight.engine == engine and flight.agent in members]
        return any(0 <= flight.group < closed - groups for flight in mine)

    def _seen(self, barrier: int, parity: int, done: int) -> int | None:
        """The least number of phases, ``done`` or more, after which this parity lets pass; None for too many."""
        word: BarrierState = self._value(self._parts.barriers[barrier])
        most = self._most_done(barrier)
        if most == _NO_END:
            return done
        least = max(done, word.done)
        if least & 1 == parity & 1:
            least += 1
        return least if least <= most else None

    def _most_done(self, barrier: int) -> int:
        """The phases that may be over while the held ones stand still."""
        part = self._parts.barriers[barrier]
        word: BarrierState = self._value(part)
        if self._free >> part & 1 or word.life != LIVE or word.expected < 1:
            return _NO_END
        arrivals = self._counts.get(part, 0)
        if arrivals < word.pending or (word.tx and not self._landing >> part & 1):
            return word.done
        return word.done + 1 + (arrivals - word.pending) // word.expected
