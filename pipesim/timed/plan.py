"""The plan of a simulation: for each operation what it costs and what it records, looked up before the clock starts.

An operation of a loop is repeated with other items; what it costs and what it records is decided once. The
skeleton of a program, its distinct operations and where each is, has no price in it: it is the same under every
profile, and cached for as long as its program exists.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from pipesim.model.groups import ACCESSES, BARRIER, NO_EFFECT, RETURNS_LATE, TIMES_ITSELF_ONLY, WORKS
from pipesim.model.ops import AT, Op, Operation, operand, ranks
from pipesim.model.program import Program
from pipesim.timed.costs import Cost, Prices, record_cycles
from pipesim.timed.profile import Profile
from pipesim.timed.work import cached
from pipesim.trace.recorder import Meaning
from pipesim.trace.schema import SiteKey
from pipesim.trace.sites import NO_SITES, RECORDED, SiteBook, SiteTable, kinds

#: How many leading integers of an operation decide its cost: which item it is for does not.
PRICED: dict[int, int] = AT["item"]
NO_OPERAND = -(1 << 62)  #: before the line of an operation in a key: no operation has such an operand


class Distinct(NamedTuple):
    """An operation of one agent: one of those that differ in nothing but their item, and what its timestamps mean.

    ``first`` and ``second`` index the meanings of the skeleton, -1: none. A try has one timestamp: ``first`` if it
    fails, ``second`` if it succeeds.
    """

    op: Operation
    line: int  #: its source line if that says what work it does, else -1
    recorded: bool  #: whether it leaves records
    first: int
    second: int


@dataclass(frozen=True)
class ProgramSkeleton:
    """The site table, what each number in a timestamp means, and for each agent its distinct operations, and which of
    them is at each place of its code. ``fed``: the mbarriers that bulk copies complete; when the bytes land, the
    hardware wakes an agent that is suspended in a try on one.
    """

    table: SiteTable
    meanings: list[Meaning]
    distinct: tuple[tuple[Distinct, ...], ...]
    places: tuple[tuple[int, ...], ...]
    fed: frozenset[int]


_Known = dict[Operation, tuple[int, "_Known"]]  # operation → its number, and the operations known after it


def skeleton(program: Program, also: frozenset[SiteKey] = NO_SITES) -> ProgramSkeleton:
    """The skeleton of a program. ``also``: the optional sites at which records are made."""
    known = _skeletons(program)
    found = known.get(also)
    if found is None:
        found = known[also] = _build_skeleton(program, also)
    return found


@cached
def _skeletons(_: Program) -> dict[frozenset[SiteKey], ProgramSkeleton]:
    """The skeletons of a program that have been made so far."""
    return {}


def _build_skeleton(program: Program, also: frozenset[SiteKey]) -> ProgramSkeleton:
    book = SiteBook(program, also)
    meanings: dict[Meaning, int] = {}
    numbers = [0] * program.ctas
    distinct, places = [], []
    for agent, each in enumerate(program.agents):
        number, numbers[each.cta] = numbers[each.cta], numbers[each.cta] + 1
        walk = _AgentWalk(book, meanings, each.cta, number)
        book.begin(agent)
        places.append(walk.along(program.code[agent], _works(program, agent)))
        distinct.append(tuple(walk.distinct))
    return ProgramSkeleton(book.table(), list(meanings), tuple(distinct), tuple(places), _fed_barriers(program))


def _fed_barriers(program: Program) -> frozenset[int]:
    """The mbarriers that bulk copies complete."""
    found: set[int] = set()
    for op in {op for op in program.operations if op[0] == Op.TMA_LOAD}:
        barrier = operand(op, "barrier")
        found |= {program.barrier_at_rank(barrier, rank) for rank in ranks(operand(op, "cta_mask"))} or {barrier}
    return frozenset(found)


def _works(program: Program, agent: int) -> dict[int, int]:
    """For each operation whose line says what work it does, the line."""
    worked = program.work_of_line
    return {pc: line for pc, line in enumerate(program.lines[agent]) if line in worked} if worked else {}


class _AgentWalk:
    """One agent's code, from its first operation to its last."""

    def __init__(self, book: SiteBook, meanings: dict[Meaning, int], cta: int, number: int) -> None:
        self._book = book
        self._meanings = meanings
        self._cta = cta
        self._number = number
        self._by_place: dict[
            tuple[int, bool], _Known
        ] = {}  # what an operation records depends on the place in the book
        self.distinct: list[Distinct] = []

    def along(self, code: tuple[Operation, ...], works: dict[int, int]) -> tuple[int, ...]:
        """For each operation which of the distinct ones it is. ``works``: the lines that say the work of theirs."""
        known = self._by_place.setdefault(self._book.place, {})
        found: list[int] = []
        for pc, op in enumerate(code):
            key = op[: PRICED.get(op[0], 99)]  # hot: a look-up for each operation, and nothing else
            if pc in works:
                key = (*key, NO_OPERAND, works[pc])
            entry = known.get(key)
            if entry is None:
                self._book.place = next(place for place, those in self._by_place.items() if those is known)
                entry = known[key] = self._new(op, works.get(pc, -1))
            number, known = entry
            found.append(number)
        return tuple(found)

    def _new(self, op: Operation, line: int) -> tuple[int, _Known]:
        records = self._book.records(op) if op[0] in RECORDED else ()
        stamps = [
            self._meanings.setdefault(
                Meaning(self._cta, self._number, r.site, r.stage, r.parity, value), len(self._meanings)
            )
            for r in records
            for value in ((r.value,) if r.value >= 0 else (0, 1))  # -1: the result of a try_wait
        ]
        first, second = (*stamps, -1, -1)[:2]
        self.distinct.append(Distinct(op, line, bool(records), first, second))
        return len(self.distinct) - 1, self._by_place.setdefault(self._book.place, {})


#: What a simulation has to do for an operation; it also asks by the order of these numbers.
IDLE: Final = 0  #: nothing: time passes. It changes no state, records nothing, and no agent waits for it
PRIVATE: Final = 1  #: carry it out; no other agent can notice when
PLAIN: Final = 2  #: carry it out when all that is due before has happened
ISSUES: Final = 3  #: the same, and it puts something under way
WAITS: Final = 4  #: it may block, or gives an answer
LOOKS_TWICE: Final = 5  #: a try that looks once more if it fails
SUSPENDS: Final = 6  #: a try that waits for a bulk copy to complete its phase, up to a limit
ACCESS: Final = 7  #: the agent's own access, which is open while it lasts
SLOWED: Final = 8  #: a work that others slow; it may be an access


class PlannedOperation(NamedTuple):
    """One operation: its cost, and what its timestamps mean (-1: none).

    A try has one timestamp: ``first`` if it fails, ``second`` if it succeeds.
    """

    kind: int
    busy: int  #: of its cost, if no other agent notices that it lasts
    first: int
    second: int
    cost: Cost
    opens: bool  #: it holds an access open
    lasts: tuple[int, ...]  #: not empty if others notice while it lasts: what its two timestamps mean then


#: What is asked of an operation at every step, and the rest. A bare tuple: it is taken apart in a fifth of the time.
PlannedStep = tuple[int, int, int, int, PlannedOperation]


def plan(
    program: Program, profile: Profile, *, traced: bool, also: frozenset[SiteKey] = NO_SITES
) -> tuple[SiteTable, list[Meaning], tuple[tuple[PlannedStep, ...], ...]]:
    """The site table, what each number in a timestamp means, and the plan of every operation of every agent.

    ``also``: the optional sites at which records are made.
    """
    known = skeleton(program, also)
    tries = {False: LOOKS_TWICE, True: SUSPENDS} if profile["try.limit"] > 0 else {False: WAITS, True: WAITS}
    price = Prices(program, profile, traced=traced)
    record = record_cycles(program, profile, traced=traced)
    plans = []
    for distinct, places in zip(known.distinct, known.places, strict=True):
        planned = [_plan_operation(each, price, record, tries[_asks_for_copies(each, known.fed)]) for each in distinct]
        steps = [(each.kind, each.busy, each.first, each.second, each) for each in planned]
        plans.append(tuple([steps[number] for number in places]))
    return known.table, known.meanings, tuple(plans)


def _asks_for_copies(each: Distinct, fed: frozenset[int]) -> bool:
    """Whether an operation is a try on an mbarrier that bulk copies complete."""
    return each.op[0] == Op.TRY_WAIT and each.op[BARRIER] in fed


def _plan_operation(each: Distinct, price: Prices, record: int, tries: int) -> PlannedOperation:
    """The plan of one distinct operation; ``record``: cycles of a record; ``tries``: the kind of a try."""
    code, cost = each.op[0], price(each.op, each.line)
    if each.recorded and not kinds(each.op) and code not in RETURNS_LATE:  # the engine adds a wait's
        cost = replace(cost, busy=cost.busy + record)
    opens = code in ACCESSES
    slowed = cost.demand and cost.flight < 0  # a multiplication is slowed while it is issued: the engine sees to that
    if code in WORKS and (slowed or (opens and cost.busy)):
        return PlannedOperation(SLOWED if slowed else ACCESS, 0, -1, -1, cost, opens, (each.first, each.second))
    return PlannedOperation(_kind(each, cost, tries), cost.busy, each.first, each.second, cost, opens, ())


def _kind(each: Distinct, cost: Cost, tries: int) -> int:
    """The kind of an operation that no other agent notices while it lasts."""
    code = each.op[0]
    if code in RETURNS_LATE:
        return tries if code == Op.TRY_WAIT else WAITS
    if code in TIMES_ITSELF_ONLY:
        return IDLE if code in NO_EFFECT and each.first < 0 else PRIVATE
    return PLAIN if cost.flight < 0 else ISSUES
