"""What a wait on an mbarrier is for, and which mbarriers are waited for with one parity only."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

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

    def add(self, other: "_AccessSets") -> None:
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
