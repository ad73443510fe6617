"""The anatomy of one CTA of a flat program, and how the other CTAs of its cluster differ from it."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from pipesim.errors import ParameterError
from pipesim.explain.anatomy.groups import groups
from pipesim.explain.anatomy.parts import (
    Anatomy,
    Meeting,
    Member,
    Other,
    RolePart,
    Signal,
    TilePart,
    Totals,
    TouchKind,
    Use,
)
from pipesim.explain.ledger import Extent, SignalLedger, ledger
from pipesim.model.groups import ACCESSES, CLUSTER, ENGINE_ACCESSES, MEETING_WAITS, ON_NAMED_BARRIER
from pipesim.model.ops import Engine, Op, Operation, Space, operand, ranks
from pipesim.model.program import Program
from pipesim.model.tables import Tile, meeting_name

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


_BARRIER_BYTES = 8


def anatomy(program: Program, cta: int = 0) -> Anatomy:
    """What the CTA of this rank consists of. Reads the program and runs nothing."""
    if not 0 <= cta < program.ctas:
        raise ParameterError(
            f"there is no CTA {cta} in {program.name}",
            cause=f"its cluster has {program.ctas} CTAs" if program.ctas > 1 else "it is not a cluster",
            correction=f"use 0 to {program.ctas - 1}" if program.ctas > 1 else "use 0",
        )
    books = ledger(program), touches(program)
    shown = _one(program, *books, cta)
    ranks = (rank for rank in range(program.ctas) if rank not in (cta, program.words_cta))
    others = tuple(_other(shown, _one(program, *books, rank)) for rank in ranks)
    return replace(shown, others=others)


def _one(program: Program, barriers: SignalLedger, memory: Touches, cta: int) -> Anatomy:
    roles = _roles(program, cta)
    registers = [(len(role.warps), role.registers.high) for role in roles if role.registers is not None]
    mine = [tile for tile in program.tiles if tile.cta == cta and tile.space == Space.TENSOR]
    totals = Totals(
        warps=len({agent.warp for agent in program.agents if agent.cta == cta}),
        smem_bytes=program.smem_bytes,
        barrier_bytes=_BARRIER_BYTES * sum(1 for barrier in program.barriers if barrier.cta == cta),
        tmem_bytes=max((tile.offset + tile.slots * tile.nbytes for tile in mine), default=0),
        registers=sum(32 * warps * each for warps, each in registers),
        register_warps=sum(warps for warps, _ in registers),
    )
    return Anatomy(
        program.name,
        program.params,
        program.grid,
        program.ctas if program.words_cta < 0 else program.words_cta,
        cta,
        roles,
        groups(barriers, cta) + (groups(barriers, program.words_cta) if program.words_cta >= 0 else ()),
        tiles(memory, cta),
        _meetings(program, cta),
        totals,
        (),
        talk=program.words_cta >= 0,
    )


def _roles(program: Program, cta: int) -> tuple[RolePart, ...]:
    """The roles that have agents in this CTA, in the program's order."""
    agents: defaultdict[str, list[int]] = defaultdict(list)
    for index, agent in enumerate(program.agents):
        if agent.cta == cta:
            agents[agent.role].append(index)
    return tuple(
        RolePart(
            role,
            tuple(sorted({program.agents[index].warp for index in indices})),
            len(indices),
            _registers(program, indices),
        )
        for role, indices in agents.items()
    )


def _registers(program: Program, agents: Sequence[int]) -> Extent | None:
    """What the last ``setmaxnreg`` of each agent gives it, None if there is none."""
    asked = ([operand(op, "registers") for op in program.code[a] if op[0] == Op.SETMAXNREG] for a in agents)
    held = [each[-1] for each in asked if each and each[-1]]
    return Extent(min(held), max(held)) if held else None


@dataclass
class _MeetingVisit:
    """One agent at one named barrier."""

    times: int = 0
    waits: bool = False


def _meetings(program: Program, cta: int) -> tuple[Meeting, ...]:
    """The agents that arrive at each named barrier and, in a cluster, to the cluster barrier."""
    visits: defaultdict[int | None, dict[int, _MeetingVisit]] = defaultdict(dict)
    threads: defaultdict[int | None, set[int]] = defaultdict(set)
    for agent, code in enumerate(program.code):
        if program.agents[agent].cta != cta:
            continue
        for op in code:
            if op[0] in ON_NAMED_BARRIER:
                number = program.named_barrier(op)
                threads[number].add(operand(op, "threads"))
            elif op[0] in CLUSTER:
                number = None
            else:
                continue
            visit = visits[number].setdefault(agent, _MeetingVisit())
            visit.times += op[0] != Op.CLUSTER_WAIT
            visit.waits |= op[0] in MEETING_WAITS
    everyone = 32 * len({(agent.cta, agent.warp) for agent in program.agents})
    return tuple(
        Meeting(
            number,
            Extent(min(threads[number]), max(threads[number])) if number is not None else Extent(everyone, everyone),
            _members(program, visits[number]),
        )
        for number in sorted(visits, key=lambda n: -1 if n is None else n)
    )


def _members(program: Program, visits: dict[int, _MeetingVisit]) -> tuple[Member, ...]:
    together: defaultdict[tuple[str, bool], list[int]] = defaultdict(list)
    for agent, visit in visits.items():
        together[program.agents[agent].role, visit.waits].append(visit.times)
    return tuple(
        Member(role, len(times), waits, Extent(min(times), max(times))) for (role, waits), times in together.items()
    )


# the other CTAs of the cluster

Rename = Callable[[int], int]
_Way = TypeVar("_Way", Signal, Use)


def _other(shown: Anatomy, other: Anatomy) -> Other:
    """What is not the same in another CTA, ranks counted from each CTA by the counting that leaves least."""
    ways: list[tuple[Rename, Rename]] = [
        (lambda rank: (rank - shown.cta) % shown.ctas, lambda rank: (rank - other.cta) % shown.ctas)
    ]
    if shown.ctas & (shown.ctas - 1) == 0:  # pairs, rows and columns of CTAs are found by flipping bits of the rank
        ways.insert(0, (lambda rank: rank ^ shown.cta, lambda rank: rank ^ other.cta))
    found = [_differences(_named_parts(shown, one), _named_parts(other, two)) for one, two in ways]
    return Other(other.cta, min(found, key=len))


def differences(one: Anatomy, two: Anatomy) -> tuple[str, ...]:
    """The names of what is not the same in two CTAs of one rank."""
    return _differences(_named_parts(one, int), _named_parts(two, int))


def _differences(one: dict[str, list[object]], two: dict[str, list[object]]) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys([*one, *two]) if one.get(name) != two.get(name))


def _named_parts(part: Anatomy, rename: Rename) -> dict[str, list[object]]:
    """Everything in a CTA under its name, ranks counted from this CTA."""
    found: defaultdict[str, list[object]] = defaultdict(list)
    for role in part.roles:
        found[role.name].append((role.warps, role.agents, role.registers))
    for group in part.groups:
        signals, sent = (_with_ranks(side, rename) for side in (group.signals, group.sent))
        found[group.name].append(replace(group, signals=signals, sent=sent))
    for tile in part.tiles:
        writers, readers = (_with_ranks(side, rename) for side in (tile.writers, tile.readers))
        found[tile.name or tile.space.name.lower()].append(replace(tile, writers=writers, readers=readers))
    for meeting in part.meetings:
        found["the cluster barrier" if meeting.number is None else meeting_name(meeting.number)].append(meeting)
    return dict(found)


def _with_ranks(side: tuple[_Way, ...], rename: Rename) -> tuple[_Way, ...]:
    """The same with other ranks, in an order that does not depend on them."""
    renamed = (
        replace(way, ctas=tuple(sorted(map(rename, way.ctas))), to=tuple(sorted(map(rename, way.to)))) for way in side
    )
    return tuple(sorted(renamed, key=lambda way: (way.ctas, way.to, repr(way))))
