"""The tiles of a program: who writes them and who reads them, by what engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pipesim.explain.anatomy.parts import Extent, TilePart, TouchKind, Use
from pipesim.model.groups import ACCESSES, ENGINE_ACCESSES
from pipesim.model.ops import Engine, Op, Operation, operand, ranks
from pipesim.model.program import Program
from pipesim.model.tables import Tile

_WRITES = frozenset({TouchKind.COPY, TouchKind.WRITE, TouchKind.TRANSFER_WRITE})
_ORDER = {touch: n for n, touch in enumerate(TouchKind)}


class _TouchWay(NamedTuple):
    """How one agent touches a tile."""

    agent: int
    how: TouchKind
    engine: Engine | None
    to: tuple[int, ...]


@dataclass
class Touches:
    """Every touch of memory, entered under its tile, or under (space, CTA) where no tile lies.

    Accesses that overlap several tiles count for each of them.
    """

    program: Program
    found: defaultdict[object, dict[_TouchWay, Extent]] = field(default_factory=lambda: defaultdict(dict))

    def enter(self, access: int, way: _TouchWay, nbytes: int, places: list[list[object]]) -> None:
        """Enter one operation on an access."""
        for place in places[access]:
            ways = self.found[place]
            ways[way] = ways.get(way, Extent(nbytes, nbytes)).join(Extent(nbytes, nbytes))


def touches(program: Program) -> Touches:
    """Read every operation of every agent once."""
    book = Touches(program)
    places = [_places(program, index) for index in range(len(program.accesses))]
    for agent, code in enumerate(program.code):
        for operation in code:
            for access, how, engine, nbytes, to in _accesses(program, operation):
                book.enter(access, _TouchWay(agent, how, engine, to), nbytes, places)
    return book


def _places(program: Program, access: int) -> list[object]:
    """The tiles that an access overlaps, or its memory if there is none."""
    a = program.accesses[access]
    over = [
        n
        for n, t in enumerate(program.tiles)
        if (t.space, t.cta) == (a.space, a.cta)
        and a.offset < t.offset + t.slots * t.nbytes
        and t.offset < a.offset + a.nbytes
    ]
    return list(over) if over else [(a.space, a.cta)]


def _accesses(
    program: Program, operation: Operation
) -> Iterator[tuple[int, TouchKind, Engine | None, int, tuple[int, ...]]]:
    """The accesses that an operation touches: how, by what engine, how many bytes, in which CTAs of a multicast."""
    op = operation[0]
    if op in ACCESSES:
        how = TouchKind.READ if op == Op.READ else TouchKind.WRITE
        yield operand(operation, "access"), how, None, program.accesses[operand(operation, "access")].nbytes, ()
    elif op in ENGINE_ACCESSES:
        how = TouchKind.TRANSFER_READ if op == Op.TRANSFER_READ else TouchKind.TRANSFER_WRITE
        yield operand(operation, "access"), how, Engine(operand(operation, "engine")), operand(operation, "bytes"), ()
    elif op == Op.TMA_LOAD:
        nbytes, to = operand(operation, "bytes"), ranks(operand(operation, "cta_mask"))
        for access in program.accesses_of(operation):
            yield access, TouchKind.COPY, None, nbytes, to


def tiles(book: Touches, cta: int) -> tuple[TilePart, ...]:
    """The tiles of this CTA, then the memory that is touched outside them."""
    found = [_part(book, cta, index, tile) for index, tile in enumerate(book.program.tiles) if tile.cta == cta]
    loose = sorted({(a.space, a.cta) for a in book.program.accesses if a.cta == cta} & book.found.keys())
    return (*found, *(_part(book, cta, place, Tile("", place[0], cta, 0, 1, 1)) for place in loose))


def _part(book: Touches, cta: int, place: object, tile: Tile) -> TilePart:
    uses = _uses(book, cta, place)
    nbytes = tile.nbytes if tile.name else 0
    slots = tile.slots if tile.name else 0
    return TilePart(
        tile.name,
        tile.space,
        slots,
        nbytes,
        tuple(use for use in uses if use.how in _WRITES),
        tuple(use for use in uses if use.how not in _WRITES),
    )


def _uses(book: Touches, cta: int, place: object) -> list[Use]:
    """The touches of one place by role, CTA and way; own agents first, what several other CTAs do alike as one."""
    program = book.program
    together: defaultdict[tuple[int, str, TouchKind, Engine | None, tuple[int, ...]], list[Extent]] = defaultdict(list)
    for way, span in book.found[place].items() if place in book.found else ():
        agent = program.agents[way.agent]
        together[agent.cta, agent.role, way.how, way.engine, way.to].append(span)
    merged: dict[Use, tuple[int, ...]] = {}
    for (where, role, how, engine, to), spans in together.items():
        nbytes = Extent(min(s.low for s in spans), max(s.high for s in spans))
        alike = Use(role, (cta,) if where == cta else (), len(spans), how, engine, to, nbytes)
        merged[alike] = (*merged.get(alike, ()), where)
    uses = [replace(use, ctas=ctas) for use, ctas in merged.items()]
    roles = {role: n for n, role in enumerate(dict.fromkeys(agent.role for agent in program.agents))}
    return sorted(uses, key=lambda u: (u.ctas != (cta,), u.ctas, roles[u.role], _ORDER[u.how], u.engine or 0, u.to))
