"""The anatomy of one CTA of a flat program, and how the other CTAs of its cluster differ from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from pipesim.errors import ParameterError
from pipesim.explain.anatomy.groups import SignalLedger, groups, ledger
from pipesim.explain.anatomy.memory import Touches, tiles, touches
from pipesim.explain.anatomy.parts import Anatomy, Extent, Meeting, Member, Other, RolePart, Signal, Totals, Use
from pipesim.model.groups import CLUSTER, MEETING_WAITS, ON_NAMED_BARRIER
from pipesim.model.ops import Op, Space, operand
from pipesim.model.program import Program
from pipesim.model.tables import meeting_name

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
            _span([held for index in indices if (held := _registers(program, index))]),
        )
        for role, indices in agents.items()
    )


def _registers(program: Program, agent: int) -> int:
    """What the agent's last ``setmaxnreg`` gives it, 0 without one."""
    return next((operand(op, "registers") for op in reversed(program.code[agent]) if op[0] == Op.SETMAXNREG), 0)


def _span(values: list[int]) -> Extent | None:
    return Extent(min(values), max(values)) if values else None


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
