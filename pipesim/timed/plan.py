"""The plan of a simulation: for each operation what it costs and what it records, looked up before the clock starts."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from pipesim.model.groups import ACCESSES, RETURNS_LATE, TIMES_ITSELF_ONLY
from pipesim.model.program import Program
from pipesim.timed.costs import Cost, Prices
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
    busy: int  #: of its cost: asked for at every step


def plan(
    program: Program, profile: Profile, *, traced: bool, also: frozenset[SiteKey] = NO_SITES
) -> tuple[SiteTable, list[Meaning], tuple[tuple[Planned, ...], ...]]:
    """The site table, what each number in a timestamp means, and the plan of every operation of every agent.

    ``also``: the optional sites at which records are made.
    """
    known = outline(program, also)
    price = Prices(program, profile, traced=traced)
    record = profile["record.issue"] if traced else 0
    plans = []
    for distinct, places in zip(known.distinct, known.places, strict=True):
        planned = [_planned(each, price, record) for each in distinct]
        plans.append(tuple([planned[number] for number in places]))
    return known.table, known.meanings, tuple(plans)


def _planned(each: Distinct, price: Prices, record: int) -> Planned:
    """The plan of one distinct operation; ``record``: cycles of a record."""
    kind, cost = each.op[0], price(each.op)
    if each.recorded and not kinds(each.op) and kind not in RETURNS_LATE:  # the engine adds a wait's
        cost = replace(cost, busy=cost.busy + record)
    return Planned(
        kind in TIMES_ITSELF_ONLY, kind in RETURNS_LATE, kind in ACCESSES, cost, each.first, each.second, cost.busy
    )
