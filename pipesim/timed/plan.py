"""The plan of a simulation: for each operation what it costs and what it records, looked up before the clock starts."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from pipesim.model.groups import ACCESSES, NO_EFFECT, RETURNS_LATE, TIMES_ITSELF_ONLY, WORKS
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.timed.costs import Cost, Prices, record_cycles
from pipesim.timed.outline import Distinct, outline
from pipesim.timed.profile import Profile
from pipesim.trace.recorder import Meaning
from pipesim.trace.schema import SiteKey
from pipesim.trace.sites import NO_SITES, SiteTable, kinds


class Planned(NamedTuple):
    """One operation: whether it is private, waits, holds an access open; its cost; what its timestamps mean (-1: none).

    A try has one timestamp: ``first`` if it fails, ``second`` if it succeeds.
    """

    private: bool
    waits: bool
    opens: bool
    cost: Cost
    first: int
    second: int
    busy: int  #: of its cost, if nobody notices that it lasts: asked for at every step
    lasts: tuple[int, ...]  #: not empty if others notice while it lasts: what its two timestamps mean then
    suspends: bool  #: a try that others can end: on an mbarrier that bulk copies complete
    idle: bool  #: nothing but time passes: it changes no state, records nothing, and nobody waits for it


def plan(
    program: Program, profile: Profile, *, traced: bool, also: frozenset[SiteKey] = NO_SITES
) -> tuple[SiteTable, list[Meaning], tuple[tuple[Planned, ...], ...]]:
    """The site table, what each number in a timestamp means, and the plan of every operation of every agent.

    ``also``: the optional sites at which records are made.
    """
    known = outline(program, also)
    fed = fed_by_copies(program) if profile["try.limit"] else frozenset()
    price = Prices(program, profile, traced=traced)
    record = record_cycles(program, profile, traced=traced)
    plans = []
    for distinct, places in zip(known.distinct, known.places, strict=True):
        planned = [_planned(each, price, record, fed) for each in distinct]
        plans.append(tuple([planned[number] for number in places]))
    return known.table, known.meanings, tuple(plans)


def fed_by_copies(program: Program) -> frozenset[int]:
    """The mbarriers that bulk copies complete: the chip wakes who is suspended in a try on one when the bytes land."""
    found: set[int] = set()
    for op in {op for code in program.code for op in code if op[0] == Op.TMA_LOAD}:
        barrier, mask = operand(op, "barrier"), operand(op, "cta_mask")
        ranks = [rank for rank in range(program.ctas) if mask >> rank & 1]
        found |= {program.barrier_at_rank(barrier, rank) for rank in ranks} if mask else {barrier}
    return frozenset(found)


def _planned(each: Distinct, price: Prices, record: int, fed: frozenset[int]) -> Planned:
    """The plan of one distinct operation; ``record``: cycles of a record; ``fed``: as :func:`fed_by_copies` has it."""
    kind, cost = each.op[0], price(each.op, each.line)
    if each.recorded and not kinds(each.op) and kind not in RETURNS_LATE:  # the engine adds a wait's
        cost = replace(cost, busy=cost.busy + record)
    private, waits, opens = kind in TIMES_ITSELF_ONLY, kind in RETURNS_LATE, kind in ACCESSES
    if kind in WORKS and (cost.demand or (opens and cost.busy)):
        return Planned(False, False, opens, cost, -1, -1, 0, (each.first, each.second), suspends=False, idle=False)
    idle = private and kind in NO_EFFECT and each.first < 0
    suspends = kind == Op.TRY_WAIT and operand(each.op, "barrier") in fed
    return Planned(private, waits, opens, cost, each.first, each.second, cost.busy, (), suspends, idle)
