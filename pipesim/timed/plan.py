"""The plan of a simulation: for each operation what it costs and what it records, looked up before the clock starts."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from pipesim.model.groups import ACCESSES, RETURNS_LATE, TIMES_ITSELF_ONLY
from pipesim.model.program import Program
from pipesim.timed.costs import PRICED, Cost, Prices
from pipesim.timed.profile import Profile
from pipesim.trace.recorder import Meaning
from pipesim.trace.schema import SiteKey
from pipesim.trace.sites import NO_SITES, RECORDED, SiteBook, SiteTable, kinds


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


def plan(
    program: Program, profile: Profile, *, traced: bool, also: frozenset[SiteKey] = NO_SITES
) -> tuple[SiteTable, list[Meaning], tuple[tuple[Planned, ...], ...]]:
    """The site table, what each number in a timestamp means, and the plan of every operation of every agent.

    ``also``: the optional sites at which records are made.
    """
    book = SiteBook(program, also)
    price = Prices(program, profile, traced=traced)
    meanings: dict[Meaning, int] = {}
    plans = []
    numbers = [0] * program.ctas
    for agent, code in enumerate(program.code):
        book.begin(agent)
        cta = program.agents[agent].cta
        number, numbers[cta] = numbers[cta], numbers[cta] + 1
        known: dict[tuple[int, ...], Planned] = {}
        mine = []
        for op in code:
            kind = op[0]
            if kind in RECORDED:
                records = book.records(op)
                key = (id(records), *op[: PRICED.get(kind, len(op))])
            else:
                records = ()
                key = op[: PRICED.get(kind, len(op))]
            planned = known.get(key)
            if planned is None:
                stamps = [
                    meanings.setdefault(Meaning(cta, number, r.site, r.stage, r.parity, value), len(meanings))
                    for r in records
                    for value in ((r.value,) if r.value >= 0 else (0, 1))  # -1: the result of a try_wait
                ]
                first, second = (*stamps, -1, -1)[:2]
                cost = price(op)
                if traced and records and not kinds(op) and kind not in RETURNS_LATE:  # the engine adds a wait's
                    cost = replace(cost, busy=cost.busy + profile["record.issue"])
                planned = known[key] = Planned(
                    kind in TIMES_ITSELF_ONLY, kind in RETURNS_LATE, kind in ACCESSES, cost, first, second
                )
            mine.append(planned)
        plans.append(tuple(mine))
    return book.table(), list(meanings), tuple(plans)
