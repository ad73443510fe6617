"""The ring law: the period that no schedule of a producer/consumer ring can beat, and what sets it.

period = max(producer's time, consumer's time, time of a tile on the copy engine, (time round the ring) / stages)
"""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.timed.costs import Cost, Prices
from pipesim.timed.profile import Profile


@dataclass(frozen=True)
class Bound:
    """The largest term in 1/1000 cycle, its name in words, and every term."""

    period_millicycles: int
    by: str
    terms: tuple[tuple[str, int], ...]


def ring_law(program: Program, profile: Profile, *, recording: bool = False) -> Bound | None:
    """The bound of a program that is one ring (one group of stages that copies fill, one that hands them back).

    None for any other program, and for one without a trip.
    """
    stages = _stages(program)
    price = Prices(program, profile, recording=recording)
    prices = tuple(tuple(price(op) for op in code) for code in program.code)
    stamps = 2 * profile["record.issue"] if recording else 0  # of a wait: its costs leave them to the engine
    trips = [_trip(code, price, stamps) for code, price in zip(program.code, prices, strict=True)]
    producers = [t for t in trips if t is not None and t.copy is not None]
    consumers = [t for t in trips if t is not None and t.copy is None]
    if not stages or len(producers) != 1 or not consumers:
        return None
    producer = producers[0]
    copy = producer.copy
    assert copy is not None
    consumer = max(t.millicycles for t in consumers)
    slowest = max(t.between_waits for t in consumers)
    # the consumer is woken by the landing; the producer's next try notices the arrive, at best at once
    hand_over = profile["wait.wake_up"] + profile["wait.issue"]
    around = producer.to_copy + 1000 * (copy.flight + hand_over) + slowest
    terms = (
        ("the producer's issue", producer.millicycles),
        ("the consumers", consumer),
        ("the copy engine", 1000 * copy.engine),
        (f"the way round the ring over {stages} stage{'s' if stages > 1 else ''}", around // stages),
    )
    name, period = max(terms, key=lambda term: term[1])
    return Bound(period, name, terms)


@dataclass(frozen=True)
class _Trip:
    """One trip of an agent's loop: all of it, from the wait's return to the copy's issue, to the arrive's effect."""

    millicycles: int
    to_copy: int
    between_waits: int
    copy: Cost | None


def _trip(code: tuple[tuple[int, ...], ...], prices: tuple[Cost, ...], stamps: int) -> _Trip | None:
    """The first whole trip of the agent's first loop: every trip of a ring has the same operations."""
    begin = next((pc for pc, op in enumerate(code) if op[0] == Op.LOOP_BEGIN), None)
    if begin is None or code[begin][2] < 1:
        return None
    end = next(pc for pc in range(begin, len(code)) if code[pc][0] in (Op.LOOP_NEXT, Op.LOOP_END))
    busy = to_copy = after_wait = 0
    copy: Cost | None = None
    waited = False
    effect = 0
    for pc in range(begin + 1, end):
        price = prices[pc]
        busy += price.busy
        if code[pc][0] in (Op.WAIT, Op.WAIT_UNLESS):
            waited = True
            busy += stamps
            continue
        if code[pc][0] == Op.TMA_LOAD and copy is None:
            copy, to_copy = price, after_wait
        if waited:
            effect = after_wait + (price.visible or price.busy)
            after_wait += price.busy
    step = next((price.busy for op, price in zip(code, prices, strict=True) if op[0] == Op.LOOP_NEXT), 0)
    return _Trip(1000 * (busy + step), 1000 * to_copy, 1000 * effect, copy)


def _stages(program: Program) -> int:
    """Stages of the ring: the two groups of barriers of a program that has just two of the same size, else 0."""
    groups: dict[str, int] = {}
    for barrier in program.barriers:
        groups[barrier.name] = groups.get(barrier.name, 0) + 1
    return next(iter(groups.values())) if len(groups) == 2 and len(set(groups.values())) == 1 else 0
