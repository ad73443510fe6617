"""The plan of a simulation: for each operation what it costs and what it records, looked up before the clock starts."""

from __future__ import annotations

from typing import NamedTuple

from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.timed.costs import PRICED, Cost, Prices
from pipesim.timed.profile import Profile
from pipesim.trace.recorder import Meaning
from pipesim.trace.sites import RECORDED, SiteBook, SiteTable

#: Operations that no other agent can notice: they cost time but need no event of their own.
PRIVATE = frozenset({Op.WORK, Op.LOOP_BEGIN, Op.LOOP_NEXT, Op.LOOP_END, Op.JUMP_IF, Op.FENCE, Op.SETMAXNREG})
TRIES = frozenset({Op.TRY_WAIT, Op.TEST_WAIT, Op.TEST_STATE})
#: Operations whose access is open for as long as they take.
ACCESSES = frozenset({Op.READ, Op.WRITE})
#: Operations whose return the engine works out.
WAITS = frozenset({Op.WAIT, Op.WAIT_UNLESS, Op.WAIT_STATE, Op.WAIT_GROUP, Op.BAR_SYNC, Op.CLUSTER_WAIT}) | TRIES


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
    program: Program, profile: Profile, *, recording: bool
) -> tuple[SiteTable, list[Meaning], tuple[tuple[Planned, ...], ...]]:
    """The site table, what each number in a timestamp means, and the plan of every operation of every agent."""
    book = SiteBook(program)
    price = Prices(program, profile, recording=recording)
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
                planned = known[key] = Planned(
                    kind in PRIVATE, kind in WAITS, kind in ACCESSES, price(op), first, second
                )
            mine.append(planned)
        plans.append(tuple(mine))
    return book.table(), list(meanings), tuple(plans)
