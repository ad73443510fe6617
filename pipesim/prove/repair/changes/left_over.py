"""Corrections that join what is left over: bytes that are read and never written with a copy that writes others' bytes,
a group that is only waited for with one that is only signalled, a try with the wait that uses its answer.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import islice

from pipesim.model.edits import Listing
from pipesim.model.finding import Fault
from pipesim.model.groups import PARITY_TRIES, PARITY_WAITS, READS_MEMORY, READS_REGISTER, TOUCHES_MEMORY, WRITES_MEMORY
from pipesim.model.ops import Op, Operation, Space, operand, ranks, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import Access, SourceInstruction
from pipesim.prove.repair.kinds import Ranked, Repair, RepairKind
from pipesim.prove.repair.sites import (
    AgentCode,
    barrier_of,
    cells_of,
    executions,
    gives_back,
    operations_of,
    roles_of,
    sites_of,
    stages_in,
)

K = RepairKind
EVERY_CTA = -1  #: the ``was`` of an OTHER_PLACE of the agents of all CTAs
_MOST_PLACES = 4  #: distances that are tried for one instruction


def of_what_is_left_over(program: Program) -> Iterator[Ranked]:
    """The corrections of which the evidence is something that nothing else uses."""
    yield from _of_places(program)
    yield from _of_groups(program)
    tried: dict[tuple[str, str], None] = {}
    for agent, each in enumerate(program.agents):
        for try_at, wait in _answers(me := AgentCode(program, agent)).items():
            if me.code[try_at][1:3] != me.code[wait][1:3]:
                tried[each.role, program.barriers[barrier_of(me.code[wait])].name] = None
    yield from ((1, Repair(K.TRY, *pair)) for pair in tried)


# bytes


def _of_places(program: Program) -> Iterator[Ranked]:
    """Instructions that write, moved so far that all of it lies in bytes that are read and never written."""
    unwritten = _unwritten(program)
    for role in roles_of(program) if unwritten else ():
        for site in (site for site in sites_of(program, role, WRITES_MEMORY) if site.line):
            for cta in (EVERY_CTA, *(reversed(range(program.ctas)) if program.ctas > 1 else ())):
                moved = Repair(K.OTHER_PLACE, role, site.about, was=cta, at=site)
                mine = list(_written_at(program, moved))
                free = unwritten.get(mine[0].cta, ()) if mine else ()
                fits = (by for by in (each.start - mine[0].offset for each in free)
                        if all(_inside(each, by, unwritten.get(each.cta, ())) for each in mine))  # fmt: skip
                for by in islice(fits, _MOST_PLACES):
                    first = SourceInstruction(0, "", f"{mine[0].offset + by:,}")
                    yield 2, replace(moved, value=by, past=first)


def _unwritten(program: Program) -> dict[int, list[range]]:
    """The bytes of each CTA's shared memory that are read and never written, as ranges in order."""
    read, written = (
        {
            cell
            for op in program.operations
            if op[0] in by
            for access in program.accesses_of(op)
            if program.accesses[access].space is Space.SHARED
            for cell in range(*program.cells[access])
        }
        for by in (READS_MEMORY, WRITES_MEMORY)
    )
    found: dict[int, list[range]] = {}
    for cell in sorted(read - written):
        ranges = found.setdefault(program.cell_ctas[cell], [])
        begin, end = program.cell_bounds[cell], program.cell_bounds[cell + 1]
        ranges.append(range(ranges.pop().start if ranges and ranges[-1].stop == begin else begin, end))
    return found


def _inside(access: Access, by: int, ranges: Collection[range]) -> bool:
    begin, end = access.offset + by, access.offset + by + access.nbytes
    return access.space is Space.SHARED and any(each.start <= begin and end <= each.stop for each in ranges)


def _written_at(program: Program, repair: Repair) -> Iterator[Access]:
    """What the agents of a CTA (:data:`EVERY_CTA`) write at an instruction, in every CTA to which it goes."""
    for agent, _, op, site in executions(program, repair.role, WRITES_MEMORY):
        if site == repair.at and repair.was in (EVERY_CTA, program.agents[agent].cta):
            access = program.accesses[operand(op, "access")]
            there = ranks(operand(op, "cta_mask")) if op[0] == Op.TMA_LOAD else ()
            yield from (replace(access, cta=rank) for rank in there or (access.cta,))


def with_bytes(program: Program, repair: Repair) -> Program:
    """The program with the bytes in its table of accesses to which an OTHER_PLACE moves what is written."""
    moved = (replace(each, offset=each.offset + repair.value) for each in _written_at(program, repair))
    known = dict.fromkeys((*program.accesses, *(each for each in moved if each.offset >= 0)))  # in a smaller program
    return replace(program, accesses=tuple(known))


def elsewhere(me: AgentCode, repair: Repair) -> Listing:
    """The instruction with the bytes that lie ``value`` further."""
    found, accesses = dict[int, Operation](), me.program.accesses
    for pc in me.at(repair.at) if repair.was in (EVERY_CTA, me.cta) and repair.at.op in TOUCHES_MEMORY else ():
        access = accesses[operand(me.code[pc], "access")]
        there = replace(access, offset=access.offset + repair.value)
        if there in accesses:
            found[pc] = with_operand(me.code[pc], "access", accesses.index(there))
    return me.replaced(found)


# reads


def of_reads_again(program: Program, fault: Fault) -> Iterator[Ranked]:
    """Of a fault at a read of bytes that the agent has read before, as often: without it, and all others of them."""
    for agent, pc in operations_of(fault):
        if agent < 0 or pc < 0 or not program.coverage.extracted or program.code[agent][pc][0] != Op.READ:
            continue
        place, late = operand(program.code[agent][pc], "access"), program.instructions[agent][pc]
        mine = zip(program.code[agent], program.instructions[agent], strict=True)
        times = Counter(site for op, site in mine if op[0] == Op.READ and operand(op, "access") == place)
        first, *others = times
        cells = set(range(*program.cells[place]))
        written = sum(
            not cells.isdisjoint(cells_of(program, op)) for op in program.operations if op[0] in WRITES_MEMORY
        )
        if late not in others or times[first] < max(times[late], written):  # another one could be meant
            continue
        role = ",".join(each for each in roles_of(program) if {first, late} <= set(sites_of(program, each)))
        alone, *again = (
            Repair(K.OMIT, role, site.about, at=site, past=first)
            for site in (late, *(each for each in others if each != late))
        )
        yield 2, alone
        if again:
            yield 2, replace(alone, also=tuple(again))


# groups


def _of_groups(program: Program) -> Iterator[Ranked]:
    """Two groups exchanged in all roles that wait for one which nothing signals, and signal one that nothing awaits."""
    waits: defaultdict[str, dict[str, None]] = defaultdict(dict)  # by group: the roles
    signals: defaultdict[str, dict[str, None]] = defaultdict(dict)
    sizes = stages_in(program)
    commits: set[str] = set()
    for agent, _, op, site in executions(program):
        role = program.agents[agent].role
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


def _answers(me: AgentCode) -> dict[int, int]:
    """The tries of an agent, each with the wait that depends on its answer."""
    last: dict[int, int] = {}
    found: dict[int, int] = {}
    for pc, op in enumerate(me.code):
        if op[0] in PARITY_TRIES:
            last[operand(op, "register")] = pc
        elif op[0] in READS_REGISTER & PARITY_WAITS and operand(op, "register") in last:
            found[last[operand(op, "register")]] = pc
    return found


def tries_what_it_awaits(me: AgentCode, repair: Repair) -> Listing:
    """Each try for the barrier and parity of the wait that depends on its answer."""
    found = {
        at: with_operand(with_operand(me.code[at], "barrier", barrier_of(op)), "parity", operand(op, "parity"))
        for at, op in ((at, me.code[wait]) for at, wait in _answers(me).items())
        if me.program.barriers[barrier_of(op)].name == repair.group
    }
    return me.replaced(found)
