"""The plan of a simulation: for each operation what it costs and what it records, looked up before the clock starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from pipesim.model.groups import ACCESSES, NO_EFFECT, RETURNS_LATE, TIMES_ITSELF_ONLY, WORKS
from pipesim.model.ops import Op
from pipesim.model.positions import BARRIER
from pipesim.model.program import Program
from pipesim.timed.costs import Cost, Prices, record_cycles
from pipesim.timed.profile import Profile
from pipesim.timed.skeleton import Distinct, skeleton
from pipesim.trace.recorder import Meaning
from pipesim.trace.schema import SiteKey
from pipesim.trace.sites import NO_SITES, SiteTable, kinds

#: What a simulation has to do for an operation; it asks by the order of these numbers, too.
IDLE: Final = 0  #: nothing: time passes. It changes no state, records nothing, and nobody waits for it
PRIVATE: Final = 1  #: carry it out; nobody else can notice when
PLAIN: Final = 2  #: carry it out when all that is due before has happened
ISSUES: Final = 3  #: the same, and it puts something under way
WAITS: Final = 4  #: it may block, or gives an answer
LOOKS_TWICE: Final = 5  #: a try that looks once more if it fails
SUSPENDS: Final = 6  #: a try that waits for a bulk copy to complete its phase, up to a limit
ACCESS: Final = 7  #: the agent's own access, which is open while it lasts
SLOWED: Final = 8  #: a work that others slow; it may be an access


class Planned(NamedTuple):
    """One operation: its cost, and what its timestamps mean (-1: none).

    A try has one timestamp: ``first`` if it fails, ``second`` if it succeeds.
    """

    kind: int
    busy: int  #: of its cost, if nobody notices that it lasts
    first: int
    second: int
    cost: Cost
    opens: bool  #: it holds an access open
    lasts: tuple[int, ...]  #: not empty if others notice while it lasts: what its two timestamps mean then


#: What is asked of an operation at every step, and the rest. A bare tuple: it is taken apart in a fifth of the time.
PlannedStep = tuple[int, int, int, int, Planned]


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
        planned = [_planned(each, price, record, tries[_fed(each, known.fed)]) for each in distinct]
        steps = [(each.kind, each.busy, each.first, each.second, each) for each in planned]
        plans.append(tuple([steps[number] for number in places]))
    return known.table, known.meanings, tuple(plans)


def _fed(each: Distinct, fed: frozenset[int]) -> bool:
    """Whether an operation is a try on an mbarrier that bulk copies complete."""
    return each.op[0] == Op.TRY_WAIT and each.op[BARRIER] in fed


def _planned(each: Distinct, price: Prices, record: int, tries: int) -> Planned:
    """The plan of one distinct operation; ``record``: cycles of a record; ``tries``: the kind of a try."""
    code, cost = each.op[0], price(each.op, each.line)
    if each.recorded and not kinds(each.op) and code not in RETURNS_LATE:  # the engine adds a wait's
        cost = replace(cost, busy=cost.busy + record)
    opens = code in ACCESSES
    slowed = cost.demand and cost.flight < 0  # a multiplication is slowed while it is issued: the engine sees to that
    if code in WORKS and (slowed or (opens and cost.busy)):
        return Planned(SLOWED if slowed else ACCESS, 0, -1, -1, cost, opens, (each.first, each.second))
    return Planned(_kind(each, cost, tries), cost.busy, each.first, each.second, cost, opens, ())


def _kind(each: Distinct, cost: Cost, tries: int) -> int:
    """The kind of an operation that nobody notices while it lasts."""
    code = each.op[0]
    if code in RETURNS_LATE:
        return tries if code == Op.TRY_WAIT else WAITS
    if code in TIMES_ITSELF_ONLY:
        return IDLE if code in NO_EFFECT and each.first < 0 else PRIVATE
    return PLAIN if cost.flight < 0 else ISSUES
