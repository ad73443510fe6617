"""What a wait on an mbarrier is for, the waits of one iteration of a loop, and which iterations are steady state."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import lcm

from pipesim.model.groups import (
    ARRIVALS,
    ASKS,
    BARRIER,
    BLOCKING_WAITS,
    BRINGS_BYTES,
    BY_PARITY,
    COMMITS,
    COUNT,
    EXPECTS,
    LIFE,
    LOOP_MARKS,
    ON_BARRIER,
    PARITY,
    PARITY_WAITS,
    READS_MEMORY,
    SUPPLIES_HERE,
    TOUCHES_MEMORY,
    TRIP_BEGINS,
)
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.tables import ProgramData

Repeats = Callable[[int, int], bool]  #: whether an agent's operation is in a loop


_SUPPLIES = (SUPPLIES_HERE - LIFE) | COMMITS


def never_wrapped(code: Sequence[Sequence[Operation]], repeats: Repeats) -> tuple[int, ...]:
    """The mbarriers that are used in loops, and that every agent waits for with one parity only, or one state token.

    Not those whose arrivals complete several phases, of which no agent waits for all. Also those that are initialised
    and not used at all, where others are used in loops: a longer loop may reach them.
    """
    asked: set[tuple[int, int, int]] = set()  # barrier, agent, parity or position
    looped: set[int] = set()
    used: set[int] = set()
    made: dict[int, int] = {}  # with their counts
    arrived: Counter[int] = Counter()
    for agent, mine in enumerate(code):
        for pc, op in enumerate(mine):
            if op[0] == Op.INIT:
                made[op[BARRIER]] = op[COUNT]
            elif op[0] in BLOCKING_WAITS or op[0] in _SUPPLIES:
                bar = operand(op, "barrier")
                used.add(bar)
                if bar not in looped and repeats(agent, pc):
                    looped.add(bar)
            arrived[op[BARRIER] if op[0] in ARRIVALS else -1] += op[COUNT] if op[0] in ARRIVALS else 0
            if op[0] in BLOCKING_WAITS:
                asked.add((op[BARRIER], agent, op[PARITY] if op[0] in BY_PARITY else pc))
    waits = Counter((bar, agent) for bar, agent, _ in asked)
    again = {bar for (bar, _), n in waits.items() if n > 1} | {b for b, n in made.items() if arrived[b] >= 2 * n}
    return tuple(sorted((looped & {bar for bar, _ in waits} - again) | (made.keys() - used if looped else set())))


def never_wrapped_in(program: ProgramData) -> list[tuple[str, int]]:
    """Those of a described program, each by group and stage."""
    repeated = tuple(_repeated(program, agent) for agent in range(len(program.code)))
    found = never_wrapped(program.code, lambda agent, pc: pc in repeated[agent])
    return [(program.barriers[bar].name, program.barriers[bar].stage) for bar in found]


def _repeated(program: ProgramData, agent: int) -> frozenset[int]:
    """The agent's operations in a marked loop, or at a line that it executes more than once."""
    return frozenset(_in_marked_loops(program.code[agent])) | frozenset(_at_repeated_lines(program, agent))


def _in_marked_loops(code: Sequence[Operation]) -> Iterator[int]:
    depth = 0
    for pc, op in enumerate(code):
        if op[0] in LOOP_MARKS:
            depth += (op[0] == Op.LOOP_BEGIN) - (op[0] not in TRIP_BEGINS)
        elif depth:
            yield pc


def _at_repeated_lines(program: ProgramData, agent: int) -> Iterator[int]:
    lines = list(zip((op[0] for op in program.code[agent]), program.lines[agent], strict=True))
    often = Counter(lines)
    return (pc for pc, line in enumerate(lines) if often[line] > 1)


MOST_OPERATIONS = 4096  #: of each agent that are looked at: its first laps, which the others repeat


class WaitPurpose(Enum):
    """What a wait is for."""

    DATA = "data"  #: something that others have brought
    ROOM = "room"  #: a place that others have finished with


@dataclass
class _AccessSets:
    """The accesses of one lap: before an arrival, or after a wait."""

    read: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)

    def add(self, other: _AccessSets) -> None:
        """These as well."""
        self.read |= other.read
        self.written |= other.written


_Role = tuple[str, str]  #: role, group of barriers


class _Laps:
    """What the agents of a program touch around their arrivals and waits."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.given: defaultdict[int, _AccessSets] = defaultdict(_AccessSets)  # by barrier: before the arrivals on it
        self.used: defaultdict[tuple[str, int], _AccessSets] = defaultdict(
            _AccessSets
        )  # by role and barrier: after its waits
        self.with_bytes: set[str] = set()
        self.first: dict[_Role, int] = {}  # the parity of the first wait; 0 of one by state

    def enter(self, agent: int) -> None:
        """Replay the first laps of an agent."""
        program, role = self.program, self.program.agents[agent].role
        names = [barrier.name for barrier in program.barriers]
        before: dict[str, _AccessSets] = {}  # by group: since the last arrival on it
        ever = _AccessSets()
        after: dict[str, int] = {}  # by group: the barrier that was last waited for
        for op in program.code[agent][:MOST_OPERATIONS]:
            if op[0] in TOUCHES_MEMORY:
                touched = _access_sets(program, op)
                for each in (ever, *before.values(), *(self.used[role, barrier] for barrier in after.values())):
                    each.add(touched)
            elif op[0] in ASKS:
                barrier = operand(op, "barrier")
                after[names[barrier]] = barrier
                self.first.setdefault((role, names[barrier]), operand(op, "parity") if op[0] in BY_PARITY else 0)
            elif op[0] in ON_BARRIER:
                reached = _signalled_barriers(program, op)
                for barrier in reached:
                    self.given[barrier].add(before.get(names[barrier], ever))
                before |= {names[barrier]: _AccessSets() for barrier in reached}
            if op[0] in ON_BARRIER and _counts_bytes(op):
                self.with_bytes.add(names[operand(op, "barrier")])


def wait_purposes(program: Program) -> dict[_Role, WaitPurpose]:
    """For each role and each group of barriers that it waits for, what it waits for.

    A phase that bytes complete brings data. Of the phases that arrivals complete, a wait that a fresh barrier lets
    pass, by parity 1, is for room: nothing can have been brought yet. Any other is for room where the arriving
    agents have read what the waiting agent then writes over, and for data where they have written what it then
    reads, or where no memory tells (a token, an order of turns). No name of a barrier is looked at.
    """
    book = _Laps(program)
    for agent in range(len(program.agents)):
        book.enter(agent)
    found: dict[_Role, WaitPurpose] = {}
    for (role, group), first in book.first.items():
        if group in book.with_bytes:
            found[role, group] = WaitPurpose.DATA
        else:
            found[role, group] = WaitPurpose.ROOM if first == 1 else _by_memory(book, role, group)
    return found


def _by_memory(book: _Laps, role: str, group: str) -> WaitPurpose:
    barriers = [n for n, each in enumerate(book.program.barriers) if each.name == group]
    laps = [(book.given[n], book.used[role, n]) for n in barriers]
    together = [(_union(given for given, _ in laps), _union(used for _, used in laps))]
    for pairs in (laps, together):  # stage by stage; where that does not decide, by all of its stages
        data = any(_overlap(book.program, given.written, used.read) for given, used in pairs)
        room = any(_overlap(book.program, given.read, used.written) for given, used in pairs)
        if data != room:
            return WaitPurpose.DATA if data else WaitPurpose.ROOM
    return WaitPurpose.DATA


def _union(several: Iterable[_AccessSets]) -> _AccessSets:
    found = _AccessSets()
    for each in several:
        found.add(each)
    return found


def _overlap(program: Program, one: set[int], other: set[int]) -> bool:
    cells = {cell for access in one for cell in range(*program.cells[access])}
    return any(not cells.isdisjoint(range(*program.cells[access])) for access in other)


def _access_sets(program: Program, op: Operation) -> _AccessSets:
    access = operand(op, "access")
    if op[0] in READS_MEMORY:
        return _AccessSets(read={access})
    return _AccessSets(written={access, *program.accesses_of(op)})


def _signalled_barriers(program: Program, op: Operation) -> list[int]:
    """The barriers on which an operation arrives, now or when earlier asynchronous work has finished."""
    here = op[0] in ARRIVALS or op[0] == Op.CP_ASYNC_ARRIVE
    return [operand(op, "barrier")] if here else program.commit_barriers(op)


def _counts_bytes(op: Operation) -> bool:
    """True for what makes a phase wait for bytes."""
    if op[0] in EXPECTS:
        return operand(op, "expect") > 0
    return op[0] in BRINGS_BYTES


def last_waiting(program: Program) -> int | None:
    """The last agent of the first CTA that waits for an mbarrier: a period is read between the returns of its waits."""
    mine = [agent for agent, of in enumerate(program.agents) if of.cta == 0 and waits(program.code[agent])]
    return mine[-1] if mine else None


def waits_per_trip(program: Program) -> int:
    """Waits in an iteration of the last agent of the first CTA that waits.

    1 if unknown. A try and the wait that it may save are one.
    """
    agent = last_waiting(program)
    begins = common_trips(program).get(agent, []) if agent is not None else []
    if agent is None or len(begins) < 2:
        return 1
    return max(1, waits(program.code[agent][begins[-2] : begins[-1]]))


def iterations(program: Program) -> int:
    """Iterations of the loop that a period is of: those of the last agent of the first CTA that waits, 0 without one.

    Its waits where there is no common loop, as a period is then the time from one wait to the next.
    """
    agent = last_waiting(program)
    if agent is None:
        return 0
    begins = common_trips(program).get(agent, [])
    return len(begins) if len(begins) > 1 else waits(program.code[agent])


def waits(code: Sequence[Operation]) -> int:
    """The waits for a phase of an mbarrier among these operations."""
    return sum(1 for op in code if op[0] in PARITY_WAITS)


def common_trips(program: Program) -> dict[int, list[int]]:
    """For each agent that loops, where the iterations of the common loop begin; empty if there is no common loop."""
    loops: dict[int, dict[int, list[int]]] = {}
    for agent, code in enumerate(program.code):
        mine: dict[int, list[int]] = {}
        entered: dict[int, int] = {}
        for pc, op in enumerate(code):
            if op[0] in TRIP_BEGINS:
                mine.setdefault(operand(op, "loop"), []).append(pc)
                entered[operand(op, "loop")] = entered.get(operand(op, "loop"), 0) + (op[0] == Op.LOOP_BEGIN)
        if mine:
            loops[agent] = {mark: begins for mark, begins in mine.items() if entered[mark] == 1}
    common = set.intersection(*(set(mine) for mine in loops.values())) if loops else set()
    for mark in sorted(common, key=lambda m: -max(len(mine[m]) for mine in loops.values())):
        found = {agent: mine[mark] for agent, mine in loops.items()}
        if program.loops[mark] or len({len(begins) for begins in found.values()}) == 1:
            return found  # iterations of a loop without a name are the same only if their number is
    return {}


def steady_window(iterations: int, stages: int) -> tuple[int, int] | None:
    """The first and last iteration of the steady state of a loop, a multiple of ``stages`` apart.

    The first quarter (but at least one lap) and the last iterations are left out. None if no lap is left between.
    """
    first = max(iterations // 4, stages)
    laps = (iterations - 1 - iterations // 8 - first) // stages
    return (first, first + laps * stages) if laps >= 1 else None


@dataclass(frozen=True)
class PeriodMarks:
    """Between which waits of which agent a period is taken: numbers of its returned waits, ``iterations`` apart."""

    agent: int
    first: int
    last: int
    iterations: int


def period_marks(program: Program) -> PeriodMarks | None:
    """Where an untraced launch of ``program`` takes its period, so that it is the one that a trace of it shows.

    Between the same returns as ``conform.steady`` reads it. None where the run is too short for a steady state, or no
    agent waits.
    """
    agent = last_waiting(program)
    if agent is None:
        return None
    groups = Counter(barrier.name for barrier in program.barriers if barrier.cta == 0)
    stages = max(groups.values(), default=1)
    each = waits_per_trip(program)
    window = steady_window(waits(program.code[agent]), stages * each)
    if window is None:
        return None
    return PeriodMarks(agent, *window, (window[1] - window[0]) // each)


def marked_iterations(program: Program) -> tuple[int, int] | None:
    """Between which iterations a kernel of this program can take its period: those of a loop that all agents run.

    None if an agent has no loop, or too short a one.
    """
    iterations = [
        max((operand(op, "trips") for op in code if op[0] == Op.LOOP_BEGIN), default=0) for code in program.code if code
    ]
    stages: dict[str, int] = {}
    for barrier in program.barriers:
        stages[barrier.name] = max(stages.get(barrier.name, 0), barrier.stage + 1)
    return steady_window(min(iterations, default=0), lcm(*stages.values()) if stages else 1)
