"""How what is under way lands, as the steps of one Promela process."""

from __future__ import annotations

from collections.abc import Sequence

from pipesim.formats.promela.flights import ModelledFlight
from pipesim.formats.promela.operations import PromelaStep, Words, clamp
from pipesim.model.moves import arrive_in_order
from pipesim.model.ops import IN_ORDER
from pipesim.model.state import TMA


def landings(words: Words, sharing: Sequence[ModelledFlight]) -> list[PromelaStep]:
    """How what is under way in one place may land: whole, or just the bytes that complete a phase before."""
    flight = sharing[0]
    name = words.flights.name(flight)
    if flight.engine == TMA:
        item = words.brings(flight) or str(flight.item)
        filled = tuple(f"cell[{cell}] = {item}" for cell in range(flight.first, flight.end))
        whole = (*filled, f"add_tx({flight.barrier}, 1 - {name})", f"{name} = 0")
        due = f"tx[{flight.barrier}]"
        part = (f"{name} = {name} - {due}", f"add_tx({flight.barrier}, -{due})")
        return [
            PromelaStep(name, words.unless_exited(flight.ctas, whole)),
            PromelaStep(f"0 < {due} && {due} < {name} - 1", words.unless_exited(flight.ctas, part)),
        ]
    effects: tuple[str, ...] = (f"{name} = 0",)
    if flight.arrivals:
        effects += (f"arrive({flight.barrier}, {clamp(flight.arrivals)}, 0)",)
    if flight.writes:
        effects += tuple(_holds_item(words, flight, cell) for cell in range(flight.first, flight.end))
    earlier = [words.flights.name(other) for other in _predecessors(words, flight)]
    guard = f"{name} && !({' || '.join(earlier)})" if earlier else name
    return [PromelaStep(guard, words.unless_exited(flight.ctas, effects))]


def _predecessors(words: Words, flight: ModelledFlight) -> list[ModelledFlight]:
    """What must have landed before it: of a commit or on an engine that works in order the transfers, and of a commit
    the commits before it where they keep their order.
    """
    if not flight.arrivals and flight.engine not in IN_ORDER:
        return []
    all_ = words.flights.of_engine(flight.agent, flight.engine)
    before = all_[: all_.index(flight)]
    made = flight.pc, flight.arrivals
    return [
        other
        for other in before
        if not other.arrivals
        or (flight.arrivals and arrive_in_order(words.program, flight.engine, (other.pc, other.arrivals), made))
    ]


def _holds_item(words: Words, flight: ModelledFlight, cell: int) -> str:
    """The cell holds the item, but where a later write of the same engine, still under way, covers it."""
    later = [
        words.flights.name(other)
        for other in words.flights.of_engine(flight.agent, flight.engine)
        if other != flight and other.writes and other.first <= cell < other.end and other.pc > flight.pc
    ]
    filled = f"cell[{cell}] = {flight.item}"
    if flight.engine not in IN_ORDER or not later:
        return filled
    return f"if :: {' || '.join(later)} :: else -> {filled} fi"
