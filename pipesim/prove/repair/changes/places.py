"""Corrections of what an instruction is on: another group of barriers, another slot, a stage that is carried on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

from pipesim.model.edits import Listing, listing, replace_operations
from pipesim.model.groups import (
    BY_PARITY,
    LIFE,
    ON_BARRIER,
    ON_NAMED_BARRIER,
    PARITY_WAITS,
    READS_MEMORY,
    SIGNALS,
    TOUCHES_MEMORY,
    WRITES_MEMORY,
)
from pipesim.model.ops import Op, OperandName, Operation, operand, ranks, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import Access, Tile
from pipesim.prove.repair.changes.order import gives_back, phases_of_writes
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.prove.repair.sites import begin_of, is_at, members, site_of, stages_of


def other_group(program: Program, agent: int, repair: Repair) -> Listing:
    """The instruction on the barriers of the group that ``past`` is about, at the same stages; of a ring of another
    length at those that the agent has waited for.
    """
    before, sizes = listing(program, agent), Counter((barrier.name, barrier.cta) for barrier in program.barriers)
    found: dict[int, Operation] = {}
    stage: dict[int, int] = {}  # by the number of stages
    cta, group = program.agents[agent].cta, repair.past.about
    for pc, site in enumerate(program.instructions[agent]):
        if before.code[pc][0] in PARITY_WAITS:
            at = program.barriers[operand(before.code[pc], "barrier")]
            stage[sizes[at.name, at.cta]] = at.stage
        if site == repair.at:
            alike = sizes[group, cta] == sizes[site.about, cta]
            there = stages_of(program, agent, group).get(-1 if alike else stage.get(sizes[group, cta], -1))
            op = before.code[pc]
            found[pc] = _on_group(program, op, group) if there is None else with_operand(op, "barrier", there)
    return replace_operations(before, found)


def other_cta(program: Program, agent: int, repair: Repair) -> Listing:
    """The arrive, or the copies, on the barrier at the same place in the CTA of rank ``value``; with -1 each of several
    in a row on that of another CTA; with ``was`` 1 of the CTA that is ``value`` further than the agent's.
    """
    before = listing(program, agent)
    found: dict[int, Operation] = {}
    rank = 0
    for pc, site in enumerate(program.instructions[agent]):
        if is_at(site, repair.at):
            rank = rank + 1 if pc and before.code[pc] == before.code[pc - 1] else 0
            at = operand(before.code[pc], "barrier")
            own = (program.agents[agent].cta + repair.value) % program.ctas
            there = program.counterpart(at, own if repair.was == 1 else rank if repair.value < 0 else repair.value)
            found[pc] = with_operand(before.code[pc], "barrier", at if there is None else there)
    return replace_operations(before, found)


def swap_groups(program: Program, agent: int, repair: Repair) -> Listing:
    """The releases (or with ``at`` the waits, with ``value`` 1 all operations) of two groups, each on the other."""
    before = listing(program, agent)
    one, other = repair.group.split(",")
    to = {one: other, other: one}
    found: dict[int, Operation] = {}
    for pc, op in enumerate(before.code):
        group = site_of(program, agent, pc).about
        meant = (
            op[0] in ON_BARRIER - LIFE if repair.value else op[0] in PARITY_WAITS if repair.at.op else gives_back(op)
        )
        if group in to and meant:
            found[pc] = _on_group(program, op, to[group])
    return replace_operations(before, found)


def _on_group(program: Program, op: Operation, group: str) -> Operation:
    """The operation on the barrier of this group that has the same stage and CTA, as it is where there is none."""
    at = program.barriers[operand(op, "barrier")]
    there = [n for n, b in enumerate(program.barriers) if (b.name, b.stage, b.cta) == (group, at.stage, at.cta)]
    return with_operand(op, "barrier", there[0]) if there else op


# slots


def with_slots(program: Program, repair: Repair) -> Program:
    """The program with the bytes in its table of accesses that a correction moves operations to."""
    known = dict.fromkeys(program.accesses)
    for agent in members(program, repair.role):
        for pc, op in enumerate(program.code[agent]):
            if op[0] not in TOUCHES_MEMORY:
                continue
            if repair.kind is RepairKind.CARRY or not repair.at.line or site_of(program, agent, pc) == repair.at:
                for access in _elsewhere(program, program.accesses[operand(op, "access")], repair):
                    others = ranks(operand(op, "cta_mask")) if op[0] == Op.TMA_LOAD else ()
                    known |= dict.fromkeys((access, *(replace(access, cta=rank) for rank in others)))
    return program if len(known) == len(program.accesses) else replace(program, accesses=tuple(known))


def _elsewhere(program: Program, access: Access, repair: Repair) -> Iterator[Access]:
    """The access in every slot of its tile, or in every part of its slot."""
    tile = program.tile_of(access)
    if tile is not None and repair.kind is RepairKind.PART:
        begin = access.offset - (access.offset - tile.offset) % tile.nbytes
        yield from (replace(access, offset=begin + n * access.nbytes) for n in range(repair.value))
    elif tile is not None:
        inside = (access.offset - tile.offset) % tile.nbytes
        yield from (replace(access, offset=tile.offset + n * tile.nbytes + inside) for n in range(tile.slots))


def shifted_slot(program: Program, agent: int, repair: Repair) -> Listing:
    """The instruction on the slot that is this many further in its tile; or (STAGES) on that of the stage that the
    agent has waited for, or expects bytes on, in a ring of as many; without ``value`` else on that to which its item is
    written, or in turn.
    """
    before = listing(program, agent)
    found: dict[int, Operation] = {}
    stage: dict[int, int] = {}  # by the number of stages
    first, turn = None, -1  # of all uses of a tile
    written = slots_of_items(program) if repair.kind is RepairKind.STAGES else {}
    sizes = Counter((barrier.name, barrier.cta) for barrier in program.barriers)
    for pc, site in enumerate(program.instructions[agent]):
        op = before.code[pc]
        if op[0] in PARITY_WAITS or (op[0] == Op.ARRIVE and operand(op, "expect")):
            at = program.barriers[operand(op, "barrier")]
            stage[sizes[at.name, at.cta]] = at.stage
        if site == repair.at or (not repair.at.line and op[0] in TOUCHES_MEMORY and _is_in(program, op, repair.group)):
            tile = program.tile_of(program.accesses[operand(op, "access")])
            if tile is not None:
                slot = program.slot_of(operand(op, "access"))
                first = first or site
                turn += site == first
                in_turn = stage.get(tile.slots, slot if repair.value else len(found)) if repair.at.line else turn
                if op[0] in READS_MEMORY and repair.at.line and not repair.value:
                    in_turn = written.get((tile, operand(op, "item")), in_turn)
                to = slot + repair.value if repair.kind is RepairKind.SHIFT else in_turn
                found[pc] = in_slot(program, op, slot, to % tile.slots)
    return replace_operations(before, found)


def own_part(program: Program, agent: int, repair: Repair) -> Listing:
    """The instruction on the part of its slot that is the agent's, by its place in the role, or by its CTA."""
    before, me = listing(program, agent), program.agents[agent]
    mine = [n for n in members(program, me.role) if program.agents[n].cta == me.cta].index(agent)
    found: dict[int, Operation] = {}
    for pc, site in enumerate(program.instructions[agent]):
        if site == repair.at:
            access = program.accesses[operand(before.code[pc], "access")]
            parts = list(_elsewhere(program, access, repair))
            to = parts[(me.cta if repair.was == 1 else mine) % repair.value]
            found[pc] = with_operand(before.code[pc], "access", program.accesses.index(to))
    return replace_operations(before, found)


def _is_in(program: Program, op: Operation, name: str) -> bool:
    """True if the operation is on this tile."""
    tile = program.tile_of(program.accesses[operand(op, "access")])
    return tile is not None and tile.name == name


def slots_of_items(program: Program) -> dict[tuple[Tile, int], int]:
    """The slot of a tile that an item is written to, where it is one."""
    found: dict[tuple[Tile, int], set[int]] = {}
    for code in program.code:
        for op in (op for op in code if op[0] in WRITES_MEMORY):
            tile = program.tile_of(program.accesses[operand(op, "access")])
            if tile is not None:
                found.setdefault((tile, operand(op, "item")), set()).add(program.slot_of(operand(op, "access")))
    return {key: slots.pop() for key, slots in found.items() if len(slots) == 1}


def in_turn_at(program: Program, agent: int, repair: Repair) -> Listing:
    """The instruction on the barriers of its group, or on the named barriers that are given, one after the other."""
    before, cta = listing(program, agent), program.agents[agent].cta
    found: dict[int, Operation] = {}
    turns: Counter[int] = Counter()  # by CTA: each has the stages in its own turn
    known = {number: n for n, (rank, number) in enumerate(program.named_barriers) if rank == cta}
    for pc in (pc for pc, site in enumerate(program.instructions[agent]) if site == repair.at):
        op, there = before.code[pc], cta
        name: OperandName = "named_barrier" if op[0] in ON_NAMED_BARRIER else "barrier"
        if name == "named_barrier":
            order = [known[int(n)] for n in repair.group.split(",") if int(n) in known]
        else:
            there = program.barriers[operand(op, name)].cta
            order = [barrier for _, barrier in sorted(stages_of(program, agent, repair.group, there).items())]
        if order:
            found[pc] = with_operand(op, name, order[turns[there] % len(order)])
        turns[there] += 1
    return replace_operations(before, found)


def in_slot(program: Program, op: Operation, slot: int, to: int) -> Operation:
    """The access in another slot; as it is where the program's table has no such bytes."""
    access = program.accesses[operand(op, "access")]
    tile = program.tile_of(access)
    there = replace(access, offset=access.offset + (to - slot) * (tile.nbytes if tile is not None else 0))
    return with_operand(op, "access", program.accesses.index(there)) if there in program.accesses else op


# stages that are carried on


def carried_on(program: Program, agent: int, repair: Repair) -> Listing:
    """The waits for the group stage by stage, ``value`` the parity of the first lap; what the agent does with the stage
    that it has waited for it does with the new one. With ``was`` 1 its releases stay where they are; with 2 each wait
    is for the stage and lap in which what the agent reads after it is signalled; with 3 and 4 see :func:`_ahead`.
    """
    before, stages = listing(program, agent), stages_of(program, agent, repair.group)
    order = sorted(stages)
    by_barrier = {barrier: stage for stage, barrier in stages.items()}
    now: dict[int, int] = {}  #: of each stage that the program names the one that is meant
    others = _of_other_rings(program, agent, repair.group, len(order))
    given, sites = _turns(program, agent), program.instructions[agent]
    others |= {pc for pc, op in enumerate(before.code) if op[0] in ON_BARRIER and sites[pc].about in given}
    turn, turns = 0, _turns_of_reads(program, agent, repair.group, order) if repair.was == 2 else {}
    found, start = dict[int, Operation](), repair.value
    if repair.was in (3, 4):
        (turns, found), start = _ahead(program, agent, repair), 0
        if not turns:
            return replace_operations(before, found)
    for pc, op in enumerate(before.code):
        if op[0] in BY_PARITY and operand(op, "barrier") in by_barrier:
            turn = turns.get(pc, turn)
            stage = order[turn % len(order)]
            now[by_barrier[operand(op, "barrier")]] = stage
            parity = (start + turn // len(order)) & 1
            found[pc] = with_operand(with_operand(op, "barrier", stages[stage]), "parity", parity)
            turn += op[0] in PARITY_WAITS  # a try belongs to the wait after it
        elif pc not in others and pc not in found and not (repair.was == 1 and gives_back(op)):
            found[pc] = _at_stage(program, op, now, len(order))
    return replace_operations(before, found)


def passes_by(program: Program, agent: int, group: str) -> int:
    """By how many stages more an agent has to advance in each iteration to pass all that are filled; 0 if it varies."""
    mine, code = stages_of(program, agent, group).values(), program.code[agent]
    signalled = len({signal for signal in phases_of_writes(program, group).values() if signal[0] in mine})
    waits = sum(op[0] in PARITY_WAITS and operand(op, "barrier") in mine for op in code)
    more, rest = divmod(signalled - waits, max(max(_iterations(program, agent), default=0) + 1, 1))
    return more if not rest and waits else 0


def waits_in_turn(program: Program, agent: int, group: str) -> int:
    """How often an agent that takes turns waits for a group in each iteration; 0 if it varies, or it takes none."""
    mine = stages_of(program, agent, group).values()
    waits = sum(op[0] in PARITY_WAITS and operand(op, "barrier") in mine for op in program.code[agent])
    each, rest = divmod(waits, max(_iterations(program, agent), default=0) + 1)
    return each if not rest and turn_of(program, agent) >= 0 else 0


def turn_of(program: Program, agent: int) -> int:
    """Which of those that take turns an agent is, -1 if that is not one number."""
    found = set(_turns(program, agent).values())
    return found.pop() if len(found) == 1 else -1


def _turns(program: Program, agent: int) -> dict[str, int]:
    """The groups of several stages of which the agent waits for one alone, or for one of each of several rows or
    columns and signals others, and which of them that is.
    """
    waited: dict[str, set[int]] = {}
    for op in (op for op in program.code[agent] if op[0] in PARITY_WAITS):
        at = program.barriers[operand(op, "barrier")]
        waited.setdefault(at.name, set()).add(at.stage)
    found: dict[str, int] = {}
    for group, each in waited.items():
        teams, rest = divmod(len(stages_of(program, agent, group)), len(each))
        signals = {operand(op, "barrier") for op in program.code[agent] if op[0] in SIGNALS}
        others = {stage for stage, bar in stages_of(program, agent, group).items() if bar in signals} - each
        if teams > 1 and not rest and (others or len(each) == 1):
            places = ({stage % teams for stage in each}, {stage // len(each) for stage in each})
            found |= next(({group: min(place)} for place in places if len(place) == 1), {})
    return found


def _iterations(program: Program, agent: int) -> list[int]:
    """For each operation the iteration of the outermost loop that it is in, or after which it is; 0 before it.

    Of a kernel's code, which has no loops, one begins with the first instruction that is repeated least often.
    """
    depth, turn, found, code = 0, 0, list[int](), program.code[agent]
    if program.coverage.extracted:
        sites, begin = program.instructions[agent], begin_of(program, agent)
        times = {site: n for site, n in Counter(sites[begin:]).items() if n > 1 and site.op not in TOUCHES_MEMORY}
        head = next((site for site, n in times.items() if n == min(times.values())), None)
        return [max(n - 1, 0) for n in accumulate(site == head for site in sites)]
    for op in code:
        depth += (op[0] == Op.LOOP_BEGIN) - (op[0] == Op.LOOP_END)
        turn += op[0] == Op.LOOP_NEXT and depth == 1
        found.append(turn)
    return found


def _ahead(program: Program, agent: int, repair: Repair) -> tuple[dict[int, int], dict[int, Operation]]:
    """Of waits the turn that is ``value`` further with each iteration, or (``was`` 4) turn before, and reads of it."""
    turns, reads, last, code = dict[int, int](), dict[int, Operation](), -1, program.code[agent]
    stage = {barrier: n for n, (_, barrier) in enumerate(sorted(stages_of(program, agent, repair.group).items()))}
    signals = phases_of_writes(program, repair.group).items()
    filled = {key: stage[bar] + lap * len(stage) for key, (bar, lap) in signals if bar in stage}
    items = {turn: item for (_, item), turn in filled.items()}
    for pc, (op, iteration) in enumerate(zip(code, _iterations(program, agent), strict=True)):
        by = repair.value * (iteration if repair.was == 3 else max(turn_of(program, agent), 0))
        item = operand(op, "item") if op[0] in READS_MEMORY else -1
        if op[0] in PARITY_WAITS and operand(op, "barrier") in stage:
            at = stage[operand(op, "barrier")] + len(stage) * operand(op, "parity")
            skipped = (at - last - 1) % (2 * len(stage)) if repair.was == 4 else 0
            last = last + 1 + skipped if last >= 0 else at
            if (last - at) % (2 * len(stage)):
                return {}, {}
            turns[pc] = last + by
        elif item >= 0 and (old := filled.get((program.cells[operand(op, "access")][0], item))) is not None:
            slot = program.slot_of(operand(op, "access"))
            to = in_slot(program, op, slot, (slot + by) % len(stage))
            reads[pc] = with_operand(to, "item", items.get(old + by, item))
    return turns, reads


def _of_other_rings(program: Program, agent: int, group: str, stages: int) -> set[int]:
    """What an agent does with another ring of as many stages: its waits, and what follows no others."""
    sizes = Counter((barrier.name, barrier.cta) for barrier in program.barriers)
    after: dict[str, set[str]] = {}  # of each tile or group the rings waited for last, in a row, when it is used
    places: dict[str, list[int]] = {}
    row: set[str] = set()
    waiting = False
    for pc, (op, site) in enumerate(zip(program.code[agent], program.instructions[agent], strict=True)):
        about = site.about if op[0] in (ON_BARRIER | TOUCHES_MEMORY) - LIFE else ""
        if op[0] in BY_PARITY:
            row = row if waiting else set()
            row |= {about} if sizes[about, program.barriers[operand(op, "barrier")].cta] == stages else set()
        waiting = op[0] in BY_PARITY or (waiting and not about)
        if about:
            places.setdefault(about, []).append(pc)
            for each in (*row, about) if waiting else (about,):
                after.setdefault(each, set()).update(row)
    return {pc for about, rings in after.items() if rings and group not in rings for pc in places[about]}


def _turns_of_reads(program: Program, agent: int, group: str, order: list[int]) -> dict[int, int]:
    """Of each wait for the group the turn in which the next item that the agent reads is signalled there."""
    turns: dict[int, set[int]] = {}  # by item
    cells: set[int] = set()  # elsewhere items have the same numbers
    for (cell, item), (barrier, lap) in phases_of_writes(program, group).items():
        cells.add(cell)
        stage = program.barriers[barrier].stage
        if stage in order:  # else it is in a CTA in which the group has more stages
            turns.setdefault(item, set()).add(lap * len(order) + order.index(stage))
    found: dict[int, int] = {}
    read: set[int] = set()
    for pc, op in reversed(list(enumerate(program.code[agent]))):
        if op[0] not in READS_MEMORY:
            pass
        elif operand(op, "item") in turns and program.cells[operand(op, "access")][0] in cells:
            read = turns[operand(op, "item")]
        if op[0] in BY_PARITY and site_of(program, agent, pc).about == group and len(read) == 1:
            found[pc] = min(read)
    return found


def _at_stage(program: Program, op: Operation, now: dict[int, int], stages: int) -> Operation:
    """The operation with its barrier and its slot at the stage that is meant, in rings of as many stages."""
    if op[0] in ON_BARRIER and op[0] != Op.INIT and operand(op, "barrier") >= 0:
        at = program.barriers[operand(op, "barrier")]
        group = stages_of(program, 0, at.name, at.cta)
        if len(group) == stages and at.stage in now:
            op = with_operand(op, "barrier", group[now[at.stage]])
    if op[0] in TOUCHES_MEMORY:
        tile, slot = program.tile_of(program.accesses[operand(op, "access")]), program.slot_of(operand(op, "access"))
        if tile is not None and tile.slots == stages and slot in now:
            op = in_slot(program, op, slot, now[slot])
    return op


def uses_in_turn(program: Program, agent: int, group: str) -> bool:
    """True if the agent waits for the barriers of the group one after the other."""
    stages = stages_of(program, agent, group)
    order = [stages[stage] for stage in sorted(stages)]
    mine = [operand(op, "barrier") for op in program.code[agent] if op[0] in PARITY_WAITS]
    waits = [barrier for barrier in mine if barrier in order]
    turns = Counter(waits)
    return bool(turns) and all(barrier == order[n % len(order)] for n, barrier in enumerate(waits))
