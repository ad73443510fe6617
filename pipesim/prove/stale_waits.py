"""Waits that an agent makes again for a phase that it has been given, so that it reads a tile that it has read before.

A wait by parity returns where its phase is complete. An agent that begins again with the first stage and its
parity, although those who fill the stages continue, is let through and computes with an old tile. Nothing else may show
it: no access races, and every schedule ends well. To wait twice for one phase is right as well (a look before the wait,
a tile that stays for many iterations, a tile that is read in parts), so a wait is stale only if all of this holds:

1. It returns with the phase of an mbarrier that an earlier wait of its agent has returned with.
2. Of what this phase delivered by bytes, the agent then reads only what it has read before this wait, and something of
   it, until it waits again on the same array of barriers. Of what threads and tensor cores had written before this
   wait, for which no mbarrier counts bytes, the same until its next wait for any mbarrier.
3. It has handed that back in between: it has arrived on an mbarrier for which the agent that delivered it waits. Of an
   agent that never arrives on one of those, while others do, it is asked that it has signalled or met any agent; where
   no agent does, nothing is asked.
   What an agent has written itself is not a delivery to it. What a thread writes in place, over what it has read,
   delivers to others what was written and continues to deliver what it was made of: a tile that is computed in place is
   still the tile that a copy has brought. Nor is it new to an agent that waits for the same mbarrier as its writer. A
   write over what its agent has waited for uses it as a read does: it may be an atomic.
4. Something is delivered later (of a thread: after it has signalled or met others) by the same line, on the same array
   of barriers, or in the same way on a barrier for which no agent ever waits; this agent never reads it, and no agent
   does that has not read what was read again; and if bytes on an mbarrier delivered it, no wait of this agent ever
   returns with that phase.

The run that is looked at is the canonical one. Under the certificate every schedule has the same phases, the same waits
for each and the same items in each read (docs/proof.md), so what is found is so in every schedule; without it, in this
one. Where the run does not reach its end, what an agent would still read counts as read.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import ARRIVALS, BARRIER, DELAYED_ARRIVALS, MEETINGS, PARITY, PARITY_WAITS, READS_MEMORY
from pipesim.model.machine import Flight, State, Step
from pipesim.model.moves import run_canonically
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.tables import SIZE_UNKNOWN


def stale_waits(program: Program) -> tuple[Fault, ...]:
    """The first stale wait of each line: ``barrier`` and ``found`` are the phase, ``cause`` is the wait that was given
    it before, ``other`` is the copy or write that delivered what is not read.
    """
    shared = any(why == SIZE_UNKNOWN for _, _, why in program.unsure)  # what a phase delivers is not known
    if program.cut or program.coverage.unread or shared or not any(map(_waits_again, program.code)):
        return ()
    watched = _Deliveries(program)
    ended = run_canonically(program, watched)
    return tuple(watched.stale(ended.state))


def _waits_again(code: tuple[Operation, ...]) -> bool:
    """Whether two waits in a row for one barrier are of the same parity, as those of phases in a row are not."""
    last: dict[int, int] = {}
    for op in code:
        if op[0] == Op.INIT:
            last.pop(op[BARRIER], None)
        elif op[0] in PARITY_WAITS:
            if last.get(op[BARRIER]) == op[PARITY]:
                return True
            last[op[BARRIER]] = op[PARITY]
    return False


@dataclass
class _Delivery:
    """What one write or copy has left in memory: by which operation, in which phase (-1, -1: no mbarrier counts it)."""

    at: tuple[int, int]
    cells: range
    phase: tuple[int, int]
    number: int
    time: int
    by_thread: bool = False
    signalled: int = -1  # when the agent that wrote it had signalled or met others last
    in_place: bool = False  # over what its agent had read
    readers: set[int] = field(default_factory=set)


@dataclass
class _Again:
    """A wait that was given a phase again, and what its agent has read since."""

    at: tuple[int, int]
    earlier: tuple[int, int]
    phase: tuple[int, int]
    made: int  # how much had been delivered by then
    old: dict[int, _Delivery] = field(default_factory=dict)  # by number
    kept: bool = False  # something of it was not read before, or not handed back in between


class _Deliveries:
    """Observes who delivers what, who reads it, and which phases each agent's waits return with."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._made: list[_Delivery] = []
        self._held: dict[int, tuple[_Delivery, ...]] = {}  # by cell: the last write, before it what that was made of
        self._given: dict[tuple[int, int], tuple[int, int]] = {}  # by agent and barrier: (phase, pc of the wait)
        self._phases: list[set[tuple[int, int]]] = [set() for _ in program.agents]
        self._read: list[dict[int, int]] = [{} for _ in program.agents]  # by delivery: when it was read last
        self._arrived: list[dict[int, int]] = [{} for _ in program.agents]  # by barrier: when it last arrived there
        self._open: list[dict[str, _Again]] = [{} for _ in program.agents]  # by array of barriers
        self._latest: dict[int, _Again | None] = {}  # by agent: its last wait, if that was given a phase again
        self._closed: list[_Again] = []
        self._waited: list[dict[int, int]] = [{} for _ in program.agents]  # by barrier: when it last waited there
        self._signalled = [-1] * len(program.agents)  # when it last signalled or met others
        self._time = 0
        self._waits_for = [{op[BARRIER] for op in code if op[0] in PARITY_WAITS} for code in program.code]
        self._arrives_on = [{b for op in code for b in _arrivals(program, op)} for code in program.code]
        self._arrived_on = set().union(*self._arrives_on)

    def on_step(self, before: State, agent: int, result: Step) -> None:
        """An agent moved, or was blocked."""
        pc = before.pcs[agent]
        if result.state.pcs[agent] == pc:
            return
        op = self._program.code[agent][pc]
        self._time += 1
        if op[0] in PARITY_WAITS:
            self._wait(agent, pc, op[BARRIER], before.barriers[op[BARRIER]].done - 1)
        elif op[0] in READS_MEMORY:
            for cell in range(*self._program.cells[operand(op, "access")]):
                for made in _of_others(agent, self._held.get(cell, ())):
                    self._look(agent, made)
        elif op[0] == Op.WRITE:
            self._write((agent, pc), range(*self._program.cells[operand(op, "access")]))
        elif op[0] == Op.INIT:
            for other in range(len(self._program.agents)):
                self._given.pop((other, op[BARRIER]), None)
        arrived = _arrivals(self._program, op)
        self._arrived[agent] |= dict.fromkeys(arrived, self._time)
        if arrived or op[0] in MEETINGS:
            self._signalled[agent] = self._time

    def on_landing(self, flight: Flight, nbytes: int, result: Step) -> None:
        """A transfer delivered its bytes, or a part of them."""
        if flight.writes and nbytes in (-1, flight.remaining):
            counted = (-1, -1)
            if flight.barrier >= 0:
                done = result.state.barriers[flight.barrier].done
                counted = flight.barrier, done - (result.signalled == flight.barrier)
            cells = range(flight.first, flight.end)
            made = _Delivery((flight.agent, flight.pc), cells, counted, len(self._made), self._time)
            self._made.append(made)
            self._held |= dict.fromkeys(cells, (made,))

    def _write(self, at: tuple[int, int], cells: range) -> None:
        """A thread writes, perhaps over what it has read, which stays beneath what it writes."""
        agent = at[0]
        made = _Delivery(at, cells, (-1, -1), len(self._made), self._time, True, self._signalled[agent])
        self._made.append(made)
        for cell in cells:
            beneath = _of_others(agent, self._held.get(cell, ()))
            for old in beneath:
                if self._was_given(agent, old):
                    self._look(agent, old)
            used = bool(beneath) and agent in beneath[0].readers
            made.in_place = made.in_place or used
            self._held[cell] = (made, *beneath) if used else (made,)

    def _wait(self, agent: int, pc: int, barrier: int, phase: int) -> None:
        name = self._program.barriers[barrier].name
        self._close(agent, name)
        self._latest[agent] = None
        earlier = self._given.get((agent, barrier))
        of_word = self._program.is_word(barrier)  # which keeps its value
        if phase >= 0 and earlier is not None and earlier[0] == phase and not of_word:
            again = _Again((agent, pc), (agent, earlier[1]), (barrier, phase), len(self._made))
            self._open[agent][name] = self._latest[agent] = again
        self._given[agent, barrier] = phase, pc
        self._phases[agent].add((barrier, phase))
        self._waited[agent][barrier] = self._time

    def _look(self, agent: int, made: _Delivery) -> None:
        """An agent reads a cell of what was delivered."""
        last = self._read[agent].get(made.number)
        for again in self._open[agent].values():
            if self._delivers(again, made) and made.number not in again.old:
                again.kept = again.kept or last is None or not self._handed_back(agent, made, last)
                again.old[made.number] = made
        made.readers.add(agent)
        self._read[agent][made.number] = self._time

    def _delivers(self, again: _Again, made: _Delivery) -> bool:
        """Whether this may be what the wait is for."""
        if made.phase[0] >= 0:
            return made.phase == again.phase
        if again is not self._latest[again.at[0]] or made.number >= again.made:
            return False
        return not (made.in_place and again.phase[0] in self._waits_for[made.at[0]])

    def _was_given(self, agent: int, made: _Delivery) -> bool:
        """Whether it has waited for this, or since this for an mbarrier on which who wrote it arrives."""
        if made.phase[0] >= 0:
            return made.phase in self._phases[agent]
        return any(self._waited[agent].get(barrier, -1) > made.time for barrier in self._arrives_on[made.at[0]])

    def _handed_back(self, agent: int, made: _Delivery, read: int) -> bool:
        room = self._waits_for[made.at[0]]
        mine = room & self._arrives_on[agent]
        if not mine:
            return room.isdisjoint(self._arrived_on) or self._signalled[agent] > read
        return any(self._arrived[agent].get(barrier, -1) > read for barrier in mine)

    def _close(self, agent: int, name: str) -> None:
        again = self._open[agent].pop(name, None)
        if again is not None and again.old and not again.kept:
            self._closed.append(again)

    def stale(self, end: State) -> Iterator[Fault]:
        """The waits that are stale, the first of each role and line."""
        for agent, mine in enumerate(self._open):
            for name in tuple(mine):
                self._close(agent, name)
        said: set[tuple[str, str]] = set()
        for again in self._closed:
            where = self._place(again.at)
            missed = None if where in said else self._missed(again, end)
            if missed is not None:
                said.add(where)
                barrier, phase = again.phase
                yield Fault(
                    FaultKind.STALE_WAIT, *again.at, barrier, phase, missed.phase[1], *missed.at, *again.earlier
                )

    def _missed(self, again: _Again, end: State) -> _Delivery | None:
        """What was delivered in place of what was read again, None if nothing is left unread."""
        agent = again.at[0]
        for old in again.old.values():
            for made in self._made[old.number + 1 :]:
                together = made.by_thread and made.at[0] == old.at[0] and made.signalled < old.time
                if made.phase in self._phases[agent] or together or not self._are_alike(old, made):
                    continue
                if agent not in made.readers and made.readers <= old.readers and not self._will_read(made, end):
                    return made
        return None

    def _are_alike(self, one: _Delivery, other: _Delivery) -> bool:
        """Whether the same line delivered both, or bytes on barriers of one array; or one role did, in the same way and
        size, and no agent ever waits for the other's barrier. A size alone would compare a ring with what stays.
        """
        if self._place(one.at) == self._place(other.at):
            return True
        barriers = [each.phase[0] for each in (one, other)]
        if min(barriers) < 0:
            return False
        if len({self._program.barriers[barrier].name for barrier in barriers}) == 1:
            return True
        return self._way(one) == self._way(other) and not any(barriers[1] in waited for waited in self._waits_for)

    def _way(self, made: _Delivery) -> tuple[str, int, int]:
        """Whose operation it was, which, and how many bytes it delivered."""
        agent, pc = made.at
        op = self._program.code[agent][pc]
        return self._program.agents[agent].role, op[0], self._program.accesses[self._program.accesses_of(op)[0]].nbytes

    def _will_read(self, made: _Delivery, end: State) -> bool:
        """Whether an agent has operations left that read these cells."""
        for agent, code in enumerate(self._program.code):
            for op in code[end.pcs[agent] :]:
                if op[0] in READS_MEMORY:
                    first, last = self._program.cells[operand(op, "access")]
                    if first < made.cells.stop and made.cells.start < last:
                        return True
        return False

    def _place(self, at: tuple[int, int]) -> tuple[str, str]:
        return self._program.agents[at[0]].role, self._program.line(*at)


def _of_others(agent: int, held: tuple[_Delivery, ...]) -> tuple[_Delivery, ...]:
    """Without what threads of this agent wrote."""
    if held and held[0].by_thread:
        return tuple(each for each in held if not each.by_thread or each.at[0] != agent)
    return held


def _arrivals(program: Program, op: Operation) -> list[int]:
    """The mbarriers on which an operation arrives, now or when earlier work has finished."""
    if op[0] in ARRIVALS:
        return [op[BARRIER]]
    return program.commit_barriers(op) if op[0] in DELAYED_ARRIVALS else []
