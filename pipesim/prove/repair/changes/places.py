"""Corrections of what an instruction is on: another group of barriers, another slot, a stage that is carried on."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

from pipesim.model.edits import Listing
from pipesim.model.groups import (
    BY_PARITY,
    LIFE,
    ON_BARRIER,
    PARITY_WAITS,
    READS_MEMORY,
    SIGNALS,
    TOUCHES_MEMORY,
    WRITES_MEMORY,
)
from pipesim.model.ops import Op, Operation, operand, ranks, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import Access, Tile
from pipesim.prove.repair.handovers import phases_of_writes
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.prove.repair.sites import (
    AgentCode,
    barrier_of,
    begin_of,
    beside,
    executions,
    gives_back,
    ring_of,
    stages_of,
)


class _Awaited:
    """The stage that an agent has waited for last in a ring of each length (or expects bytes on)."""

    def __init__(self, program: Program) -> None:
        self._barriers = program.barriers
        self.sizes = Counter((barrier.name, barrier.cta) for barrier in program.barriers)
        self.stage: dict[int, int] = {}  # by the number of stages

    def see(self, op: Operation) -> None:
        """An operation that waits, or expects bytes."""
        at = self._barriers[barrier_of(op)]
        self.stage[self.sizes[at.name, at.cta]] = at.stage


def other_group(me: AgentCode, repair: Repair) -> Listing:
    """The instruction on the barriers of the group that ``past`` is about, at the same stages; of a ring of another
    length at those that the agent has waited for.
    """
    awaited, group, found = _Awaited(me.program), repair.past.about, dict[int, Operation]()
    stages, several = me.stages(group), awaited.sizes[group, me.cta]
    for pc, (op, site) in enumerate(zip(me.code, me.sites, strict=True)):
        if op[0] in PARITY_WAITS:
            awaited.see(op)
        if site == repair.at:
            alike = several == awaited.sizes[site.about, me.cta]
            there = stages.get(-1 if alike else awaited.stage.get(several, -1))
            found[pc] = _on_group(me.program, op, group) if there is None else with_operand(op, "barrier", there)
    return me.replaced(found)


def other_cta(me: AgentCode, repair: Repair) -> Listing:
    """The arrive on the barrier at the same place in the CTA of rank ``value``; with ``was`` 1 of the CTA that is
    ``value`` further than the agent's.
    """
    to = (me.cta + repair.value) % me.program.ctas if repair.was == 1 else repair.value
    there = {pc: me.program.counterpart(barrier_of(me.code[pc]), to) for pc in me.at(repair.at)}
    found = {pc: with_operand(me.code[pc], "barrier", each) for pc, each in there.items() if each is not None}
    return me.replaced(found)


def swap_groups(me: AgentCode, repair: Repair) -> Listing:
    """The releases (or with ``at`` the waits, with ``value`` 1 all operations) of two groups, each on the other."""
    one, other = repair.group.split(",")
    to, found = {one: other, other: one}, dict[int, Operation]()
    for pc, (op, site) in enumerate(zip(me.code, me.sites, strict=True)):
        waits = op[0] in PARITY_WAITS if repair.at.op else gives_back(op)
        if site.about in to and (op[0] in ON_BARRIER - LIFE if repair.value else waits):
            found[pc] = _on_group(me.program, op, to[site.about])
    return me.replaced(found)


def _on_group(program: Program, op: Operation, group: str) -> Operation:
    """The operation on the barrier of this group that has the same stage and CTA, as it is where there is none."""
    at = program.barriers[barrier_of(op)]
    there = stages_of(program, 0, group, at.cta).get(at.stage)
    return op if there is None else with_operand(op, "barrier", there)


# slots


def with_slots(program: Program, repair: Repair) -> Program:
    """The program with the bytes in its table of accesses that a correction moves operations to."""
    known = dict.fromkeys(program.accesses)
    for _, _, op, site in executions(program, repair.role, TOUCHES_MEMORY):
        if repair.kind is RepairKind.CARRY or not repair.at.line or site == repair.at:
            for access in _elsewhere(program, program.accesses[operand(op, "access")], repair):
                others = ranks(operand(op, "cta_mask")) if op[0] == Op.TMA_LOAD else ()
                known |= dict.fromkeys((access, *(replace(access, cta=rank) for rank in others)))
    return program if len(known) == len(program.accesses) else replace(program, accesses=tuple(known))


def _elsewhere(program: Program, access: Access, repair: Repair) -> Iterator[Access]:
    """The access in every slot of its tile, or in every part of its slot."""
    tile = program.tile_of(access)
    if tile is not None:
        inside = (access.offset - tile.offset) % tile.nbytes
        parts = repair.kind is RepairKind.PART
        begin, step = (access.offset - inside, access.nbytes) if parts else (tile.offset + inside, tile.nbytes)
        yield from (replace(access, offset=begin + n * step) for n in range(repair.value if parts else tile.slots))


def shifted_slot(me: AgentCode, repair: Repair) -> Listing:
    """The instruction on the slot that is this many further in its tile; or (STAGES) on that of the stage that the
    agent has waited for, or expects bytes on, in a ring of as many; without ``value`` else on that to which its item is
    written, or in turn.
    """
    program, awaited, found = me.program, _Awaited(me.program), dict[int, Operation]()
    first, turn = None, -1  # of all uses of a tile
    written = slots_of_items(program) if repair.kind is RepairKind.STAGES else {}
    for pc, (op, site) in enumerate(zip(me.code, me.sites, strict=True)):
        if op[0] in PARITY_WAITS or (op[0] == Op.ARRIVE and operand(op, "expect")):
            awaited.see(op)
        tile = program.tile_of(program.accesses[operand(op, "access")]) if op[0] in TOUCHES_MEMORY else None
        if tile is None or (site != repair.at if repair.at.line else tile.name != repair.group):
            continue
        slot = program.slot_of(operand(op, "access"))
        first = first or site
        turn += site == first
        to = turn
        if repair.kind is RepairKind.SHIFT:
            to = slot + repair.value
        elif repair.at.line:
            to = awaited.stage.get(tile.slots, slot if repair.value else len(found))
            if op[0] in READS_MEMORY and not repair.value:
                to = written.get((tile, operand(op, "item")), to)
        found[pc] = in_slot(program, op, slot, to % tile.slots)
    return me.replaced(found)


def own_part(me: AgentCode, repair: Repair) -> Listing:
    """The instruction on the part of its slot that is the agent's, by its place in the role, or by its CTA."""
    accesses, found = me.program.accesses, dict[int, Operation]()
    mine = me.cta if repair.was == 1 else beside(me.program, me.agent).index(me.agent)
    for pc in me.at(repair.at):
        parts = list(_elsewhere(me.program, accesses[operand(me.code[pc], "access")], repair))
        found[pc] = with_operand(me.code[pc], "access", accesses.index(parts[mine % repair.value]))
    return me.replaced(found)


def slots_of_items(program: Program) -> dict[tuple[Tile, int], int]:
    """The slot of a tile that an item is written to, where it is one."""
    found: dict[tuple[Tile, int], set[int]] = {}
    for op in (op for op in program.operations if op[0] in WRITES_MEMORY):
        tile = program.tile_of(program.accesses[operand(op, "access")])
        if tile is not None:
            found.setdefault((tile, operand(op, "item")), set()).add(program.slot_of(operand(op, "access")))
    return {key: slots.pop() for key, slots in found.items() if len(slots) == 1}


def in_turn_at(me: AgentCode, repair: Repair) -> Listing:
    """The instruction on the barriers of its group, one after the other, of each CTA in its own turn."""
    found: dict[int, Operation] = {}
    turns: Counter[int] = Counter()
    for pc in me.at(repair.at):
        there = me.program.barriers[barrier_of(me.code[pc])].cta
        ring = ring_of(me.program, me.agent, repair.group, there)
        found[pc] = with_operand(me.code[pc], "barrier", ring[turns[there] % len(ring)])
        turns[there] += 1
    return me.replaced(found)


def in_slot(program: Program, op: Operation, slot: int, to: int) -> Operation:
    """The access in another slot; as it is where the program's table has no such bytes."""
    access = program.accesses[operand(op, "access")]
    tile = program.tile_of(access)
    there = replace(access, offset=access.offset + (to - slot) * (tile.nbytes if tile is not None else 0))
    return with_operand(op, "access", program.accesses.index(there)) if there in program.accesses else op


# stages that are carried on


def carried_on(me: AgentCode, repair: Repair) -> Listing:
    """The waits for the group stage by stage, ``value`` the parity of the first lap; what the agent does with the stage
    that it has waited for it does with the new one. With ``was`` 1 its releases stay where they are; with 3 and 4 see
    :func:`_ahead`.
    """
    stages, program = me.stages(repair.group), me.program
    order = sorted(stages)
    by_barrier = {barrier: stage for stage, barrier in stages.items()}
    now: dict[int, int] = {}  #: of each stage that the program names the one that is meant
    given = _turns(program, me.agent)
    others = _of_other_rings(me, repair.group, len(order))
    others |= {pc for pc, op in enumerate(me.code) if op[0] in ON_BARRIER and me.sites[pc].about in given}
    turn, turns, found, start = 0, dict[int, int](), dict[int, Operation](), repair.value
    if repair.was in (3, 4):
        (turns, found), start = _ahead(me, repair), 0
        if not turns:
            return me.replaced(found)
    for pc, op in enumerate(me.code):
        if op[0] in BY_PARITY and barrier_of(op) in by_barrier:
            turn = turns.get(pc, turn)
            stage = order[turn % len(order)]
            now[by_barrier[barrier_of(op)]] = stage
            parity = (start + turn // len(order)) & 1
            found[pc] = with_operand(with_operand(op, "barrier", stages[stage]), "parity", parity)
            turn += op[0] in PARITY_WAITS  # a try belongs to the wait after it
        elif pc not in others and pc not in found and not (repair.was == 1 and gives_back(op)):
            found[pc] = _at_stage(program, op, now, len(order))
    return me.replaced(found)


def passes_by(program: Program, agent: int, group: str) -> int:
    """By how many stages more an agent has to advance in each iteration to pass all that are filled; 0 if it varies."""
    mine, code = ring_of(program, agent, group), program.code[agent]
    signalled = len({signal for signal in phases_of_writes(program, group).values() if signal[0] in mine})
    waits = sum(op[0] in PARITY_WAITS and barrier_of(op) in mine for op in code)
    more, rest = divmod(signalled - waits, max(max(_iterations(program, agent), default=0) + 1, 1))
    return more if not rest and waits else 0


def waits_in_turn(program: Program, agent: int, group: str) -> int:
    """How often an agent that takes turns waits for a group in each iteration; 0 if it varies, or it takes none."""
    mine = ring_of(program, agent, group)
    waits = sum(op[0] in PARITY_WAITS and barrier_of(op) in mine for op in program.code[agent])
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
        at = program.barriers[barrier_of(op)]
        waited.setdefault(at.name, set()).add(at.stage)
    signals = {barrier_of(op) for op in program.code[agent] if op[0] in SIGNALS}
    found: dict[str, int] = {}
    for group, each in waited.items():
        stages = stages_of(program, agent, group)
        teams, rest = divmod(len(stages), len(each))
        others = {stage for stage, bar in stages.items() if bar in signals} - each
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


def _ahead(me: AgentCode, repair: Repair) -> tuple[dict[int, int], dict[int, Operation]]:
    """Of waits the turn that is ``value`` further with each iteration, or (``was`` 4) turn before, and reads of it."""
    program, turns, reads, last = me.program, dict[int, int](), dict[int, Operation](), -1
    stage = {barrier: n for n, barrier in enumerate(me.ring(repair.group))}
    signals = phases_of_writes(program, repair.group).items()
    filled = {key: stage[bar] + lap * len(stage) for key, (bar, lap) in signals if bar in stage}
    items = {turn: item for (_, item), turn in filled.items()}
    for pc, (op, iteration) in enumerate(zip(me.code, _iterations(program, me.agent), strict=True)):
        by = repair.value * (iteration if repair.was == 3 else max(turn_of(program, me.agent), 0))
        item = operand(op, "item") if op[0] in READS_MEMORY else -1
        if op[0] in PARITY_WAITS and barrier_of(op) in stage:
            at = stage[barrier_of(op)] + len(stage) * operand(op, "parity")
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


def _of_other_rings(me: AgentCode, group: str, stages: int) -> set[int]:
    """What an agent does with another ring of as many stages: its waits, and what follows no others."""
    sizes = Counter((barrier.name, barrier.cta) for barrier in me.program.barriers)
    after: dict[str, set[str]] = {}  # of each tile or group the rings waited for last, in a row, when it is used
    places: dict[str, list[int]] = {}
    row: set[str] = set()
    waiting = False
    for pc, (op, site) in enumerate(zip(me.code, me.sites, strict=True)):
        about = site.about if op[0] in (ON_BARRIER | TOUCHES_MEMORY) - LIFE else ""
        if op[0] in BY_PARITY:
            row = row if waiting else set()
            row |= {about} if sizes[about, me.program.barriers[barrier_of(op)].cta] == stages else set()
        waiting = op[0] in BY_PARITY or (waiting and not about)
        if about:
            places.setdefault(about, []).append(pc)
            for each in (*row, about) if waiting else (about,):
                after.setdefault(each, set()).update(row)
    return {pc for about, rings in after.items() if rings and group not in rings for pc in places[about]}


def _at_stage(program: Program, op: Operation, now: dict[int, int], stages: int) -> Operation:
    """The operation with its barrier and its slot at the stage that is meant, in rings of as many stages."""
    if op[0] != Op.INIT and barrier_of(op) >= 0:
        at = program.barriers[barrier_of(op)]
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
    order = ring_of(program, agent, group)
    waits = [barrier_of(op) for op in program.code[agent] if op[0] in PARITY_WAITS and barrier_of(op) in order]
    return bool(waits) and all(barrier == order[n % len(order)] for n, barrier in enumerate(waits))
