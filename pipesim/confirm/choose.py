"""The delays that bring a finding about: what its schedule keeps waiting, as little of it as still shows it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice

from pipesim.confirm.delays import Delay, DelayPlace, place_of
from pipesim.confirm.run_with_delays import At, DelayedRun
from pipesim.findings.counts.tx_edge import one_operand
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import ACCESSES, MEETING_WAITS
from pipesim.model.machine import finished
from pipesim.model.moves import Kind, Move, attempt
from pipesim.model.program import Program
from pipesim.prove.counterexample.play import Play, play_schedule
from pipesim.ptx.emit.record import Stream
from pipesim.ptx.prepare import Kernel

_SEEDS = range(3)
_TURN_NS = 20_000_000  #: after which a turn is taken to have come
_MOST_HELD = 24  #: places that are tried, the longest waits first
_MOST_OTHERS = 3  #: single delays that are tried where the first ones show nothing on the GPU
_MOST_LOOKED_AT = 60_000  #: moves times agents of a schedule of which every wait is looked at
#: What a launch can show by other data than it leaves without delays.
_FOUND = frozenset({FaultKind.WRONG_ITEM, FaultKind.UNINITIALISED_READ})
_DATA = _FOUND | {FaultKind.RACE, FaultKind.TWO_OUTCOMES}


class Sign(Enum):
    """What a launch is expected to show of a finding. The value is a phrase for a report."""

    HANG = "it hangs"
    TRAP = "it traps"
    DATA = "its results differ"
    NONE = "no order of its warps decides whether it shows"


@dataclass(frozen=True)
class WaitingWarp:
    """A warp that waits at the end of the schedule: by its CTA and number, the position of its wait, and its line."""

    agent: str
    cta: int
    warp: int
    position: int
    line: str


@dataclass(frozen=True)
class DelayPlan:
    """What is tried for a finding. ``delays``: () if it shows in every run. ``waiting``: of a hang, who waits where.
    ``modelled``: whether the program run with these delays shows it; else they are the most that its schedule gives.
    ``turns``: where no delay suffices, who waits until whom; the program run with these shows it. ``others``:
    single delays that show it as well, for a chip on which the first do not. After a race the program ``hangs``, with
    these warps waiting in one run or another: what a launch may show instead of other data.
    """

    sign: Sign
    delays: tuple[Delay, ...] = ()
    waiting: tuple[WaitingWarp, ...] = ()
    modelled: bool = False
    turns: tuple[Delay, ...] = ()
    hangs: tuple[tuple[WaitingWarp, ...], ...] = ()
    others: tuple[tuple[Delay, ...], ...] = ()


class Chooser:
    """The delays of one schedule. ``unit_ns``: how long the first of them is; others are whole multiples of it."""

    def __init__(self, kernel: Kernel, program: Program, streams: list[Stream], unit_ns: int) -> None:
        self._kernel, self._program, self._streams, self._unit_ns = kernel, program, streams, unit_ns
        self._unit = 64 * (64 + sum(map(len, program.code)))  # longer than a run takes

    def plan(self, schedule: str, kind: FaultKind | None) -> DelayPlan:
        """The delays for a schedule as ``check --replay`` takes it; ``kind``: of the fault that it shows, if any.

        Raises ParameterError for a schedule that the program does not have.
        """
        play = play_schedule(self._program, schedule)
        fault = next((each for each in play.faults if each.kind is kind), None)
        sign = _sign(kind) if fault is not None or (kind is None and play.deadlock is not None) else Sign.NONE
        if fault is not None and fault.kind is FaultKind.TX_EDGE and one_operand(self._program, fault):
            sign = Sign.TRAP
        plan = DelayPlan(sign, (), self.waiting(play) if sign is Sign.HANG else ())
        if sign is Sign.NONE:
            return plan
        held = self._held(play, fault)
        shown = (few for few in ({}, *({at: self._unit} for at in held)) if self._shows(few, {}, play))
        if (few := next(shown, None)) is not None:
            others = tuple(self._delays(each) for each in islice(shown, _MOST_OTHERS))
            turns = self._turns(self._enders(play, {at: held[at] for at in few}), play)
            plan = replace(plan, delays=self._delays(few), modelled=True, turns=turns, others=others)
            return self._with_what_comes(plan, few, {})
        gates = {at: (n + 1) * self._unit for n, at in enumerate(sorted(held, key=held.__getitem__))}
        if not self._shows(gates, {}, play):
            delays = self._delays(dict.fromkeys(list(held)[:1], self._unit))
            return replace(plan, delays=delays, turns=self._turns(self._enders(play, held), play))
        for at in sorted(gates, key=gates.__getitem__, reverse=True):
            fewer = {other: until for other, until in gates.items() if other != at}
            if self._shows(fewer, {}, play):
                gates = fewer
        run = self._run(gates, {}, play, 0)
        sleeps = {at: -(-slept // self._unit) * self._unit for at, slept in run.slept.items() if slept}
        plan = replace(plan, delays=self._delays(sleeps), modelled=self._shows({}, sleeps, play))
        return self._with_what_comes(plan, {}, sleeps)

    def _with_what_comes(self, plan: DelayPlan, gates: Mapping[At, int], sleeps: Mapping[At, int]) -> DelayPlan:
        """With the ends of runs that continue after their race."""
        if plan.sign is not Sign.DATA:
            return plan
        runs = ((seed, pieces) for seed in _SEEDS for pieces in (False, True))
        plays = [DelayedRun(self._program, gates, sleeps, seed, pieces=pieces).play for seed, pieces in runs]
        return replace(plan, hangs=tuple(dict.fromkeys(self.waiting(each) for each in plays if each.deadlock)))

    def waiting(self, play: Play) -> tuple[WaitingWarp, ...]:
        """Who waits where at the end of a play."""
        found = []
        for agent, pc in enumerate(play.state.pcs):
            if not finished(self._program, play.state, agent):
                stream, name = self._streams[agent], self._program.agent_name(agent)
                position = stream.positions[pc] if pc < len(stream.positions) else -1
                line = self._program.line(agent, pc)
                found.append(WaitingWarp(name, stream.cta, stream.warp, position, line))
        return tuple(found)

    def _delays(self, sleeps: Mapping[At, int]) -> tuple[Delay, ...]:
        found: dict[DelayPlace, int] = {}
        for (agent, pc), sleep in sleeps.items():
            place = place_of(self._kernel, self._program, self._streams[agent], agent, pc)
            found[place] = max(found.get(place, 0), sleep // self._unit * self._unit_ns)
        return tuple(Delay(place, ns) for place, ns in found.items())

    def _enders(self, wanted: Play, held: Mapping[At, int]) -> dict[At, At]:
        """For each place where an agent is held the operation of another that comes last before it continues."""
        play, steps, found = Play(self._program, passes=lambda _: True), list[At](), dict[At, At]()
        for number, move in enumerate((*wanted.moves, None)):
            at = None if move is None or move.kind == Kind.LAND else (move.who, play.state.pcs[move.who])
            for place in (each for each, until in held.items() if until == number and at in (each, None)):
                if self._program.code[place[0]][place[1]][0] in MEETING_WAITS:
                    continue
                other = next((step for step in reversed(steps) if step[0] != place[0]), None)
                found |= {place: other} if other is not None and (move is None or at is not None) else {}
            if move is None:
                break
            if at is not None and move.kind == Kind.STEP and self._program.code[at[0]][at[1]][0] not in ACCESSES:
                steps.append(at)
            play.make(move)
        return found

    def _turns(self, turns: Mapping[At, At], wanted: Play) -> tuple[Delay, ...]:
        """As few of them as show it in a run of the program, () if all do not."""

        def shows(turns: Mapping[At, At]) -> bool:
            return all(self._ends_so(self._run({}, {}, wanted, seed, turns).play, wanted) for seed in _SEEDS)

        chosen = next((each for each in (*({at: until} for at, until in turns.items()), turns) if shows(each)), None)
        if not chosen:
            return ()
        turns = chosen
        for at in chosen if len(chosen) > 1 else ():
            fewer = {other: until for other, until in turns.items() if other != at}
            if shows(fewer):
                turns = fewer
        places = [tuple(place_of(self._kernel, self._program, self._streams[agent], agent, pc) for agent, pc in pair)
                  for pair in turns.items()]  # fmt: skip
        return tuple(Delay(at, _TURN_NS, replace(until, after=True)) for at, until in places if until.position >= 0)

    def _run(self, gates: Mapping[At, int], sleeps: Mapping[At, int], wanted: Play, seed: int,
             turns: Mapping[At, At] | None = None) -> DelayedRun:  # fmt: skip
        fault = wanted.faults[0] if wanted.faults else None

        def passes(found: Fault) -> bool:
            return fault is None or not self._same_fault(found, fault)

        return DelayedRun(self._program, gates, sleeps, seed, passes, turns or {})

    def _shows(self, gates: Mapping[At, int], sleeps: Mapping[At, int], wanted: Play) -> bool:
        """Whether each of a few runs ends as the schedule does."""
        return all(self._ends_so(self._run(gates, sleeps, wanted, seed).play, wanted) for seed in _SEEDS)

    def _ends_so(self, play: Play, wanted: Play) -> bool:
        if wanted.faults:
            return any(self._same_fault(found, wanted.faults[0]) for found in play.faults)
        if play.faults or play.deadlock is None:
            return False
        asked = {(each.agent, each.position) for each in self.waiting(wanted)}
        return asked == {(each.agent, each.position) for each in self.waiting(play)}

    def _same_fault(self, found: Fault, wanted: Fault) -> bool:
        """Whether it is of the same kind at the same instruction of the same agent, or traps at the same barrier; of a
        race, whether wrong data is found there.
        """
        if wanted.kind.traps:
            return (found.kind, found.barrier) == (wanted.kind, wanted.barrier)
        if found.kind not in (_FOUND if wanted.kind in _DATA else {wanted.kind}):
            return False
        at = {self._position(wanted.agent, wanted.pc), self._position(wanted.other_agent, wanted.other_pc)}
        return self._position(found.agent, found.pc) in at - {(-1, -1)}

    def _position(self, agent: int, pc: int) -> At:
        known = agent >= 0 and 0 <= pc < len(self._streams[agent].positions)
        return (agent, self._streams[agent].positions[pc]) if known else (-1, -1)

    def _held(self, wanted: Play, fault: Fault | None) -> dict[At, int]:
        """Where agents could continue and did not, the longest first, each with the number of the move that ended it.

        A transfer that lands late is held where it is issued.
        """
        program, moves = self._program, wanted.moves
        play, since, found = Play(program, passes=lambda _: True), dict[At, int](), list[tuple[int, int, At]]()
        if fault is not None and fault.other_agent >= 0:
            found += [(len(moves), len(moves), (fault.agent, fault.pc)),
                      (len(moves), len(moves), (fault.other_agent, fault.other_pc))]  # fmt: skip
        looks = len(moves) * len(program.agents) <= _MOST_LOOKED_AT
        for number, move in enumerate(moves):
            for agent in range(len(program.agents)) if looks else ():
                if (at := (agent, play.state.pcs[agent])) not in since and self._can_move(play, agent):
                    since[at] = number
            for flight in play.state.flights:
                since.setdefault((flight.agent, flight.pc), number)
            flight_at = play.state.flights[move.who][:2] if move.kind == Kind.LAND else None
            at = (flight_at[0], flight_at[1]) if flight_at else (move.who, play.state.pcs[move.who])
            begun = since.pop(at, number)
            if number - begun > 1:
                found.append((number - begun, number, at))
            play.make(move)
        left = [(len(moves) - begun, len(moves), at) for at, begun in since.items()]
        found += [each for each in left if each[0] > 1]
        longest = sorted(found, key=lambda each: (-each[0], each[1]))
        return {at: until for _, until, at in longest[:_MOST_HELD]}

    def _can_move(self, play: Play, agent: int) -> bool:
        if finished(self._program, play.state, agent):
            return False
        kinds = (Kind.STEP, Kind.OPEN)
        return any(attempt(self._program, play.state, Move(kind, agent)) is not None for kind in kinds)


def _sign(kind: FaultKind | None) -> Sign:
    if kind is None:
        return Sign.HANG
    if kind.traps:
        return Sign.TRAP
    return Sign.DATA if kind in _DATA else Sign.NONE
