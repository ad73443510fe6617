"""Corrections that join what is left over: bytes that are read and never written with a copy that writes others' bytes,
a group that is only waited for with one that is only signalled, a try with the wait that uses its answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from pipesim.model.edits import Listing, listing, replace_operations
from pipesim.model.finding import Fault
from pipesim.model.groups import PARITY_TRIES, PARITY_WAITS, READS_MEMORY, READS_REGISTER, TOUCHES_MEMORY, WRITES_MEMORY
from pipesim.model.ops import Op, Operation, Space, operand, ranks, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import Access, SourceInstruction
from pipesim.prove.repair.changes.order import gives_back
from pipesim.prove.repair.kinds import Ranked, Repair, RepairKind
from pipesim.prove.repair.sites import members, roles_of, sites_of

K = RepairKind
EVERY_CTA = -1  #: the ``was`` of an OTHER_PLACE of the agents of all CTAs
_MOST_PLACES = 4  #: distances that are tried for one instruction


def of_what_is_left_over(program: Program) -> Iterator[Ranked]:
    """The corrections of which the evidence is something that nothing else uses."""
    yield from _of_places(program)
    yield from _of_groups(program)
    for role in roles_of(program):
        pairs = (pair for agent in members(program, role) for pair in _answers(program, agent))
        groups = {site_of_wait(program, wait): None for try_, wait in pairs if try_[1:3] != wait[1:3]}
        yield from ((1, Repair(K.TRY, role, group)) for group in groups)


# bytes


def _of_places(program: Program) -> Iterator[Ranked]:
    """Instructions that write, moved so far that all of it lies in bytes that are read and never written."""
    unwritten = {
        cta: _without(_ranges(program, cta, READS_MEMORY), _ranges(program, cta, WRITES_MEMORY))
        for cta in range(program.ctas)
    }
    for role in roles_of(program) if any(unwritten.values()) else ():
        for site in (site for site in sites_of(program, role) if site.op in WRITES_MEMORY and site.line):
            for cta in (EVERY_CTA, *(reversed(range(program.ctas)) if program.ctas > 1 else ())):
                mine = list(_written_at(program, role, site, cta))
                starts = dict.fromkeys(begin - mine[0].offset for begin, _ in unwritten[mine[0].cta]) if mine else ()
                for by in [by for by in starts if all(_inside(replace_at(a, by), unwritten) for a in mine)][
                    :_MOST_PLACES
                ]:
                    first = SourceInstruction(0, "", f"{mine[0].offset + by:,}")
                    yield 2, Repair(K.OTHER_PLACE, role, site.about, by, cta, at=site, past=first)


def replace_at(access: Access, by: int) -> Access:
    """The bytes this many further."""
    return replace(access, offset=access.offset + by)


def _written_at(program: Program, role: str, site: SourceInstruction, cta: int) -> Iterator[Access]:
    """What the agents of a CTA (:data:`EVERY_CTA`) write at an instruction, in every CTA to which it goes."""
    for agent in members(program, role):
        if cta in (EVERY_CTA, program.agents[agent].cta):
            for op, here in zip(program.code[agent], program.instructions[agent], strict=True):
                if here == site:
                    yield from _everywhere(program, op)


def _everywhere(program: Program, op: Operation) -> Iterator[Access]:
    access = program.accesses[operand(op, "access")]
    mask = operand(op, "cta_mask") if op[0] == Op.TMA_LOAD else 0
    yield from (replace(access, cta=rank) for rank in ranks(mask)) if mask > 0 else (access,)


def _ranges(program: Program, cta: int, ops: frozenset[int]) -> list[tuple[int, int]]:
    """The bytes of a CTA's shared memory that operations of these sorts access, as ranges in order."""
    every = {operand(op, "access"): op for op in program.operations if op[0] in ops}
    found = sorted(
        (access.offset, access.offset + access.nbytes)
        for op in every.values()
        for access in _everywhere(program, op)
        if access.space is Space.SHARED and access.cta == cta
    )
    joined: list[tuple[int, int]] = []
    for begin, end in found:
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((begin, end))
    return joined


def _without(ranges: list[tuple[int, int]], others: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What of the ranges none of the others has."""
    found: list[tuple[int, int]] = []
    for begin, end in ranges:
        for first, last in others:
            if begin < first < end:
                found.append((begin, first))
            if first < end and begin < last:
                begin = max(begin, last)
        if begin < end:
            found.append((begin, end))
    return found


def _inside(access: Access, ranges: dict[int, list[tuple[int, int]]]) -> bool:
    end = access.offset + access.nbytes
    return access.space is Space.SHARED and any(
        begin <= access.offset and end <= last for begin, last in ranges[access.cta]
    )


def with_bytes(program: Program, repair: Repair) -> Program:
    """The program with the bytes in its table of accesses to which an OTHER_PLACE moves what is written."""
    moved = (replace_at(each, repair.value) for each in _written_at(program, repair.role, repair.at, repair.was))
    known = dict.fromkeys((*program.accesses, *(each for each in moved if each.offset >= 0)))  # in a smaller program
    return replace(program, accesses=tuple(known))


def elsewhere(program: Program, agent: int, repair: Repair) -> Listing:
    """The instruction with the bytes that lie ``value`` further."""
    before, found = listing(program, agent), dict[int, Operation]()
    if repair.was in (EVERY_CTA, program.agents[agent].cta):
        for pc, site in enumerate(program.instructions[agent]):
            if site == repair.at and site.op in TOUCHES_MEMORY:
                there = replace_at(program.accesses[operand(before.code[pc], "access")], repair.value)
                if there in program.accesses:
                    found[pc] = with_operand(before.code[pc], "access", program.accesses.index(there))
    return replace_operations(before, found)


# reads


def of_reads_again(program: Program, fault: Fault) -> Iterator[Ranked]:
    """Of a fault at a read of bytes that the agent has read before, as often: without it, and all others of them."""
    for agent, pc in ((fault.agent, fault.pc), (fault.other_agent, fault.other_pc)):
        if agent < 0 or pc < 0 or not program.coverage.extracted or program.code[agent][pc][0] != Op.READ:
            continue
        place, late = operand(program.code[agent][pc], "access"), program.instructions[agent][pc]
        times: dict[SourceInstruction, int] = {}
        for op, site in zip(program.code[agent], program.instructions[agent], strict=True):
            if op[0] == Op.READ and operand(op, "access") == place:
                times[site] = times.get(site, 0) + 1
        first, *others = times
        cells = program.cells[place]
        writes = [program.cells[operand(op, "access")] for op in program.operations if op[0] in WRITES_MEMORY]
        written = sum(begin < cells[1] and cells[0] < end for begin, end in writes)
        if late not in others or times[first] < max(times[late], written):  # another one could be meant
            continue
        role = ",".join(each for each in roles_of(program) if {first, late} <= set(sites_of(program, each)))
        again = [Repair(K.OMIT, role, site.about, at=site, past=first) for site in others if site != late]
        alone = Repair(K.OMIT, role, late.about, at=late, past=first)
        yield 2, alone
        if again:
            yield 2, replace(alone, also=tuple(again))


# groups


def _of_groups(program: Program) -> Iterator[Ranked]:
    """Two groups exchanged in all roles that wait for one which nothing signals, and signal one that nothing awaits."""
    waits: defaultdict[str, dict[str, None]] = defaultdict(dict)  # by group: the roles
    signals: defaultdict[str, dict[str, None]] = defaultdict(dict)
    sizes: defaultdict[str, set[int]] = defaultdict(set)
    for barrier in program.barriers:
        sizes[barrier.name].add(barrier.stage)
    commits: set[str] = set()
    for agent, code in enumerate(program.code):
        role = program.agents[agent].role
        for op, site in zip(code, program.instructions[agent], strict=True):
            if op[0] in PARITY_WAITS:
                waits[site.about][role] = None
            elif gives_back(op) and site.about in sizes:
                signals[site.about][role] = None
                commits |= {role} if op[0] == Op.COMMIT else set()
    for one in (group for group in waits if group not in signals):
        for other in (group for group in signals if group not in waits and sizes[group] == sizes[one]):
            both = [role for role in waits[one] if role in signals[other]]
            for rank, mine in ((2, [r for r in both if r not in commits]), (3, [r for r in both if r in commits])):
                if mine:
                    yield rank, Repair(K.SWAP, ",".join(mine), f"{one},{other}", 1)


# tries


def _answers(program: Program, agent: int) -> Iterator[tuple[Operation, Operation]]:
    """The tries of an agent, each with the wait that depends on its answer."""
    last: dict[int, Operation] = {}
    for op in program.code[agent]:
        if op[0] in PARITY_TRIES:
            last[operand(op, "register")] = op
        elif op[0] in READS_REGISTER & PARITY_WAITS and operand(op, "register") in last:
            yield last[operand(op, "register")], op


def site_of_wait(program: Program, wait: Operation) -> str:
    """The group of barriers that a wait is for."""
    return program.barriers[operand(wait, "barrier")].name


def tries_what_it_awaits(program: Program, agent: int, repair: Repair) -> Listing:
    """Each try for the barrier and parity of the wait that depends on its answer."""
    before, found = listing(program, agent), dict[int, Operation]()
    last: dict[int, int] = {}
    for pc, op in enumerate(before.code):
        if op[0] in PARITY_TRIES:
            last[operand(op, "register")] = pc
        elif op[0] in READS_REGISTER & PARITY_WAITS and site_of_wait(program, op) == repair.group:
            at = last.get(operand(op, "register"), -1)
            if at >= 0:
                there = with_operand(before.code[at], "barrier", operand(op, "barrier"))
                found[at] = with_operand(there, "parity", operand(op, "parity"))
    return replace_operations(before, found)
