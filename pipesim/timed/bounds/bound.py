"""The ring law: the period that no schedule of a producer/consumer ring can beat, and what sets it.

period = max(producer's time, consumer's time, time of a tile on the copy engine, (time round the ring) / stages)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from pipesim.model.groups import LOOP_MARKS, MAY_BLOCK, PARITY_TRIES, PARITY_WAITS, PLAIN_WAITS
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.timed.costs import Cost, Prices, record_cycles
from pipesim.timed.profile import Profile


@dataclass(frozen=True)
class Bound:
    """The largest term in 1/1000 cycle, its name in words, and every term."""

    period_millicycles: int
    by: str
    terms: tuple[tuple[str, int], ...]


def ring_law(program: Program, profile: Profile, *, traced: bool = False) -> Bound | None:
    """The bound of a program that is one ring (one group of stages that copies fill, one that hands them back).

    None for any other program, for one without an iteration, for one whose iterations do not all cost the same, and for
    one whose iterations use an engine, leave something under way or wait otherwise: the law knows of one copy only.
    """
    price = Prices(program, profile, traced=traced)
    stamps = 2 * record_cycles(program, profile, traced=traced)  # of a wait: its costs leave them to the engine
    trips = [
        _trip(program, code, [price(op, line) for op, line in zip(code, lines, strict=True)], stamps)
        for code, lines in zip(program.code, program.lines, strict=True)
    ]
    producers = [t for t in trips if t is not None and t.copy is not None]
    consumers = [t for t in trips if t is not None and t.copy is None]
    if len(producers) != 1 or not consumers or len(producers) + len(consumers) != len(trips):
        return None
    producer = producers[0]
    copy = producer.copy
    stages = _stages(program, producer, consumers)
    if not stages or copy is None:
        return None
    # A landing wakes the consumer, or its first try finds the tile there; the producer's next try notices the arrive,
    # at best immediately.
    taken = max(_returns(t, landed=True) + t.after_wait for t in consumers)
    around = producer.after_wait + copy.flight + taken + _returns(producer, landed=False)
    terms = (
        ("the producer's issue", 1000 * producer.cycles),
        ("the consumers", 1000 * max(t.cycles for t in consumers)),
        ("the copy engine", 1000 * copy.engine),
        (f"the latency around the ring over {stages} stage{'s' if stages > 1 else ''}", 1000 * around // stages),
    )
    name, period = max(terms, key=lambda term: term[1])
    return Bound(period, name, terms)


@dataclass(frozen=True)
class _Trip:
    """An iteration of an agent's loop, in cycles: all, and from its wait's return to its signal to the other side.

    That is the issue of its copy, or the effect of its first arrive. ``waits`` and ``serves`` are groups of barriers.
    """

    cycles: int
    after_wait: int
    waits: str
    serves: str
    copy: Cost | None
    noticing: tuple[Cost, ...]  #: the wait, and the try that can answer instead


def returns(cost: Cost, *, landed: bool) -> int:
    """The least time from when a phase is seen to complete until a wait, or a try that finds it, returns."""
    return min(cost.busy, cost.visible) if landed else cost.busy


def _returns(trip: _Trip, *, landed: bool) -> int:
    """The least time from when the phase that an iteration waits for is seen to complete until it continues."""
    return min(returns(each, landed=landed) for each in trip.noticing)


def _trip(program: Program, code: tuple[Operation, ...], prices: list[Cost], stamps: int) -> _Trip | None:
    """The iteration of an agent that is one loop of equal cost, each with one wait and what it serves."""
    marks = [pc for pc, op in enumerate(code) if op[0] in LOOP_MARKS]
    bounds = list(pairwise(marks))
    if (
        not bounds
        or operand(code[marks[0]], "trips") != len(bounds)
        or any(code[pc][0] != Op.LOOP_NEXT for pc in marks[1:-1])
    ):
        return None  # no loop, no iteration, or more than one loop
    bodies = {tuple((code[pc][0], prices[pc]) for pc in range(begin + 1, end)) for begin, end in bounds}
    if len(bodies) != 1:
        return None
    begin, end = bounds[0]
    busy, after_wait, served = 0, 0, -1
    waits = serves = ""
    copy: Cost | None = None
    noticing: list[Cost] = []
    for pc in range(begin + 1, end):
        op, price = code[pc], prices[pc]
        if op[0] in PARITY_WAITS | PARITY_TRIES:
            noticing.append(price)
        if op[0] in PARITY_WAITS:
            if waits:
                return None
            waits = program.barriers[operand(op, "barrier")].name
            if op[0] in PLAIN_WAITS or operand(op, "register") < 0:  # else it may be skipped, and cost nothing
                busy += price.busy + stamps
            continue
        hands_over = served < 0 and bool(waits)
        copies = op[0] == Op.TMA_LOAD and hands_over
        if op[0] in MAY_BLOCK or (price.flight >= 0 and not copies):
            return None
        if copies or (hands_over and op[0] == Op.ARRIVE and not operand(op, "expect")):
            copy = price if copies else None
            served = after_wait + (0 if copy else price.visible)
            serves = program.barriers[operand(op, "barrier")].name
        after_wait += price.busy if waits else 0
        busy += price.busy
    step = next((prices[pc].busy for pc in marks if code[pc][0] == Op.LOOP_NEXT), 0)
    return _Trip(busy + step, served, waits, serves, copy, tuple(noticing)) if served >= 0 else None


def _stages(program: Program, producer: _Trip, consumers: list[_Trip]) -> int:
    """Stages of the ring, 0 if the agents' waits and arrives do not make one ring of all barriers of the program."""
    groups: dict[str, int] = {}
    for barrier in program.barriers:
        groups[barrier.name] = groups.get(barrier.name, 0) + 1
    full, empty = producer.serves, producer.waits
    if full == empty or set(groups) != {full, empty} or groups[full] != groups[empty]:
        return 0
    return groups[full] if all((t.waits, t.serves) == (full, empty) for t in consumers) else 0
