"""Programs written as lines of text, and the machine moved by lines of text."""

from typing import Any

from pipesim.model.machine import State, Step, initial_state, land, step
from pipesim.model.moves import can_land
from pipesim.model.ops import OPERANDS, Engine, Op, Operation, Space
from pipesim.model.program import Program
from pipesim.model.tables import Access, Agent, Barrier, Tile

DEFAULTS = {
    "register": -1, "semantics": 0, "expect": 0, "cta_mask": 0, "noinc": 0, "count": 1, "barrier": 0, "access": 0,
    "lanes": 32, "named_barrier": 0, "groups": 0, "state_register": 0, "bytes": 64, "item": -1, "parity": 0, "fence": 0,
    "loop": 0, "cycles": 1,
}  # fmt: skip


def operation(text: str) -> Operation:
    """One operation from its words: ``ARRIVE barrier=1 count=2``; operands left out have the usual value."""
    name, *pairs = text.split()
    op = Op[name]
    given = dict(pair.split("=") for pair in pairs)
    values = {k: Engine[v] if v[0].isalpha() else int(v) for k, v in given.items()}
    assert set(values) <= set(OPERANDS[op]), text
    return (int(op), *(int(values.get(n, DEFAULTS.get(n, 0))) for n in OPERANDS[op]))


def build(
    *code: str,
    barriers: int | tuple[Barrier, ...] = 1,
    slots: int = 1,
    accesses: tuple[Access, ...] = (),
    **fields: Any,
) -> Program:
    """A program of one CTA: an agent for each text, operations separated by semicolons, tiles of 64 bytes."""
    parsed = tuple(tuple(operation(part) for part in text.split(";") if part.strip()) for text in code)
    registers = max((v for a in parsed for o in a for n, v in zip(OPERANDS[Op(o[0])], o[1:], strict=True)
                     if "register" in n), default=-1)  # fmt: skip
    table: dict[str, Any] = {
        "name": "story",
        "params": {},
        "agents": tuple(Agent(0, i, (1 << 32) - 1, f"role{i}", 0) for i in range(len(code))),
        "barriers": tuple(Barrier(0, "b", i) for i in range(barriers)) if isinstance(barriers, int) else barriers,
        "accesses": accesses or tuple(Access(Space.SHARED, 0, 64 * i, 64) for i in range(slots)),
        "tiles": (Tile("tile", Space.SHARED, 0, 0, 64, slots),),
        "code": parsed,
        "lines": tuple((0,) * len(a) for a in parsed),
        "sources": ("story.py:1",),
        "named_barriers": ((0, 1),),
        "loops": ("",),
        "registers": registers + 1,
    }
    return Program(**{**table, **fields})


def play(program: Program, moves: str, state: State | None = None) -> tuple[State, list[Step]]:
    """Move the machine: a digit steps that agent, ``~`` lands the oldest flight that may, ``~16`` 16 bytes of it."""
    state = initial_state(program) if state is None else state
    made = []
    for move in moves.split():
        if move[0] == "~":
            flight = next(f for f in state.flights if can_land(program, state, f))
            made.append(land(program, state, flight, int(move[1:] or -1)))
        else:
            made.append(step(program, state, int(move)))
        state = made[-1].state
    return state, made
