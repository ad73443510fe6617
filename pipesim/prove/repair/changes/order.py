"""Corrections that move operations of an agent, or leave some out; the groups of barriers that belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from itertools import pairwise

from pipesim.model.edits import (
    Listing,
    delete_operations,
    listing,
    releases,
    reorder_operations,
    replace_operations,
    with_expected_bytes,
)
from pipesim.model.groups import (
    COMMITS,
    ENGINE_ACCESSES,
    ISSUES,
    LIFE,
    ON_BARRIER,
    PARITY_WAITS,
    READS_MEMORY,
    SIGNALS,
    STAGE_WORK,
    TOUCHES_MEMORY,
    WRITES_MEMORY,
)
from pipesim.model.ops import Engine, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.tables import SourceInstruction
from pipesim.prove.repair.kinds import Repair
from pipesim.prove.repair.sites import barriers_of, begin_of, members, site_of, stages_of, warp_of

_ON_MEMORY = (ON_BARRIER | TOUCHES_MEMORY | ISSUES | {int(Op.WAIT_GROUP), int(Op.ENGINE_WORK)}) - LIFE
_HANDS_ON = frozenset({int(Op.TMA_LOAD), int(Op.ARRIVE)}) | ENGINE_ACCESSES


def gives_back(op: Operation) -> bool:
    """True for what signals to others that an agent is done with a stage: an arrive without bytes, or a commit."""
    committed = op[0] in COMMITS and operand(op, "barrier") >= 0
    return releases(op) or committed or op[0] == Op.CP_ASYNC_ARRIVE


def works(op: Operation) -> bool:
    """True for what an agent does with a stage, which can stand between its wait and its release."""
    return op[0] in STAGE_WORK and not (op[0] in COMMITS and operand(op, "barrier") >= 0)


def drop_arrives(program: Program, agent: int, repair: Repair) -> Listing:
    """Without every arrive on the group (0), without those that repeat the arrive before (1), or one alone of those on
    one barrier between two waits of the agent: the last (2), or of those that expect bytes the first, for all (3); or
    the last of those in a row on one barrier (4).
    """
    before, mine = listing(program, agent), set(stages_of(program, agent, repair.group).values())
    if repair.value > 1:
        return _one_a_stage(before, mine, expect=repair.value == 3, in_a_row=repair.value == 4)
    found: set[int] = set()
    last: Operation | None = None
    for place, op in enumerate(before.code):
        if (releases(op) or (repair.value and op[0] == Op.ARRIVE)) and operand(op, "barrier") in mine:
            repeated = last is not None and _alike(op, last)
            last = op
            if repeated or repair.value == 0:
                found.add(place)
        elif not works(op):
            last = None
    return delete_operations(before, found)


def _one_a_stage(before: Listing, mine: set[int], *, expect: bool, in_a_row: bool) -> Listing:
    """Of the signals on each of these barriers between two waits the last, or the first with the bytes of all."""
    kept: dict[int, int] = {}
    nbytes: Counter[int] = Counter()
    found: set[int] = set()
    for place, op in enumerate(before.code):
        if op[0] in PARITY_WAITS:
            kept = kept if in_a_row else {}
        elif expect and op[0] == Op.ARRIVE and operand(op, "expect") and operand(op, "barrier") in mine:
            first = kept.setdefault(operand(op, "barrier"), place)
            nbytes[first] += operand(op, "expect")
            found |= {place} - {first}
        elif not expect and gives_back(op) and operand(op, "barrier") in mine:
            kept = kept if operand(op, "barrier") in kept or not in_a_row else {}
            found |= {kept.get(operand(op, "barrier"), place)} - {place}
            kept[operand(op, "barrier")] = place
    at_once = {place: with_expected_bytes(before.code[place], size) for place, size in nbytes.items()}
    return delete_operations(replace_operations(before, at_once), found)


def _alike(one: Operation, other: Operation) -> bool:
    return all(operand(one, name) == operand(other, name) for name in ("barrier", "count", "expect"))


def later(program: Program, agent: int, repair: Repair) -> Listing:
    """Every release of the group after the work that follows it directly; or every bar_arrive at these numbers; or all
    invals at the end.
    """
    before, mine = listing(program, agent), set(barriers_of(program, repair.group))
    if repair.at.op == Op.INVAL:
        return reorder_operations(
            before, sorted(range(len(before.code)), key=lambda pc: before.code[pc][0] == Op.INVAL)
        )
    named = set() if mine else {int(number) for number in repair.group.split(",") if number.isdecimal()}
    order: list[int] = []
    held: list[int] = []
    for place, op in enumerate(before.code):
        if (gives_back(op) and operand(op, "barrier") in mine) or (
            op[0] == Op.BAR_ARRIVE and program.named_barrier(op) in named
        ):
            first = place
            while order and order[-1] == first - 1 and before.code[first - 1][0] == Op.FENCE:
                first = order.pop()  # it orders what comes before the arrive
            held += range(first, place + 1)
            continue
        if held and not works(op):
            order += held
            held = []
        order.append(place)
    return reorder_operations(before, order + held)


def moved_past(program: Program, agent: int, repair: Repair) -> Listing:
    """Every operation at ``at`` after the next one at ``past``, if that comes before the next at ``at``; with ``value``
    1 before the last one at ``past``, if that comes after the last at ``at``; with 2 after the last one at ``past``
    before the next at ``at``; with 3 after the last one at ``past`` of the same item; with 4 every signal of the group
    after the last use of its slot of that tile before the slot is filled again.
    """
    before = listing(program, agent)
    if repair.value == 1:
        backward = _past(program.instructions[agent][::-1], repair)
        return reorder_operations(before, [len(before.code) - 1 - place for place in reversed(backward)])
    if repair.value in (3, 4):
        last = _last_of_item(program, agent, repair) if repair.value == 3 else _last_of_slot(program, agent, repair)
        return reorder_operations(before, _each_after(len(before.code), last))
    return reorder_operations(before, _past(program.instructions[agent], repair))


def _last_of_item(program: Program, agent: int, repair: Repair) -> dict[int, int]:
    """By execution of the instruction the last use of the item in the tile that was used last before it."""
    code, sites, found = program.code[agent], program.instructions[agent], dict[int, int]()
    uses = [pc for pc, site in enumerate(sites) if is_use(site, repair.past)]
    for place in (pc for pc, site in enumerate(sites) if site == repair.at):
        last = next((pc for pc in reversed(uses) if pc < place), -1)
        same = (pc for pc in reversed(uses) if last >= 0 and operand(code[pc], "item") == operand(code[last], "item"))
        found[place] = max(next(same, place), place)
    return found


def _last_of_slot(program: Program, agent: int, repair: Repair) -> dict[int, int]:
    """By signal of the group the last use of its slot of the tile before the next wait for that, or the same signal."""
    code, sites, found = program.code[agent], program.instructions[agent], dict[int, int]()
    filled: dict[int, set[int]] = {}  # by slot the barriers on which copies to it complete
    tiles = [range(t.offset, t.offset + t.nbytes * t.slots) for t in program.tiles if t.name == repair.past.about]
    for op in (op for op in program.operations if op[0] == Op.TMA_LOAD):
        if any(program.accesses[operand(op, "access")].offset in tile for tile in tiles):
            filled.setdefault(program.slot_of(operand(op, "access")), set()).add(operand(op, "barrier"))
    for place, site in enumerate(sites):
        if (site.op, site.about) != (repair.at.op, repair.group):
            continue
        barrier, last = operand(code[place], "barrier"), place
        stage = program.barriers[barrier].stage
        for pc in range(place + 1, len(code)):
            again = code[pc][0] in PARITY_WAITS and operand(code[pc], "barrier") in filled.get(stage, ())
            if again or (sites[pc] == site and operand(code[pc], "barrier") == barrier):
                break
            if is_use(sites[pc], repair.past) and program.slot_of(operand(code[pc], "access")) == stage:
                last = pc
        ends = sites[last].op in ENGINE_ACCESSES and operand(code[last], "engine") != Engine.TCGEN05
        found[place] = (
            next((n for n in range(last, len(sites)) if sites[n].op == Op.WAIT_GROUP), last) if ends else last
        )
    return found


def _each_after(count: int, last: Mapping[int, int]) -> list[int]:
    """The order in which some places come after others."""
    moved: dict[int, list[int]] = {}
    for place, end in last.items():
        moved.setdefault(end, []).append(place)
    held = {place for place, end in last.items() if place != end}
    order = ([*([pc] if pc not in held else []), *(p for p in moved.get(pc, ()) if p != pc)] for pc in range(count))
    return [pc for each in order for pc in each]


def _past(sites: Sequence[SourceInstruction], repair: Repair) -> list[int]:
    order: list[int] = []
    if repair.value == 2:
        ends = [place for place, site in enumerate(sites) if site == repair.at] + [len(sites)]
        begin = _begins_a_lap(sites, ends[:-1])
        for place, end in pairwise(ends):
            uses = [n for n in range(place + 1, end) if is_use(sites[n], repair.past)]
            lap = next((n for n in range(place + 1, end) if sites[n] == begin), end)  # the next one
            last = max((n for n in uses if n < lap), default=place if lap < end else max(uses, default=place))
            if sites[last].op in ENGINE_ACCESSES:  # which ends with the wait for it
                last = next((n for n in range(last, end) if sites[n].op == Op.WAIT_GROUP), last)
            order += [*range(place + 1, last + 1), place, *range(last + 1, end)]
        return [*range(ends[0]), *order]
    moved: dict[int, int] = {}  # after which place comes which
    at = -1
    for place, site in enumerate(sites):
        if site == repair.at:
            at = place
        elif site == repair.past and at >= 0:
            moved[place], at = at, -1
    held = set(moved.values())
    return [n for place in range(len(sites)) if place not in held for n in (place, moved.get(place, -1)) if n >= 0]


def _begins_a_lap(sites: Sequence[SourceInstruction], signals: Sequence[int]) -> SourceInstruction | None:
    """The first wait that comes once between any two of these signals, which are at those places; None without one."""
    laps = [Counter(s for s in sites[a:b] if s.op in PARITY_WAITS) for a, b in pairwise(signals)]
    return next((s for s in sites if laps and all(lap[s] == 1 for lap in laps)), None)


def is_use(site: SourceInstruction, at: SourceInstruction) -> bool:
    """True for the instruction, on whichever tile; where it has no line for every use of the tile that it is about."""
    if at.line:
        return (site.op, site.line) == (at.op, at.line)
    return site == at or (site.about == at.about and site.op in TOUCHES_MEMORY)


def omit_instruction(program: Program, agent: int, repair: Repair) -> Listing:
    """Without the instruction, or (``value`` 1) the first time; without all inits or invals where none is named."""
    before = listing(program, agent)
    if not repair.at.op or (repair.at.op == Op.INVAL and not repair.at.about):
        every = repair.at.op or Op.INIT
        return delete_operations(before, {pc for pc, op in enumerate(before.code) if op[0] == every})
    places = [pc for pc, site in enumerate(program.instructions[agent]) if site == repair.at]
    return delete_operations(before, places[: len(places) > 1] if repair.value else places)


def once(program: Program, agent: int, repair: Repair) -> Listing:
    """Without the repetitions of an instruction: every lane of the warp makes it."""
    before, mine = listing(program, agent), program.instructions[agent]
    again = {pc for pc in range(1, len(mine)) if before.code[pc] == before.code[pc - 1] and mine[pc] == repair.at}
    return delete_operations(before, again)


def elected_agent(program: Program, agent: int) -> int:
    """Of the lanes of a warp that are apart the agent that does most for others: copies, transfers, arrives."""
    mine = warp_of(program, agent)
    return max(mine, key=lambda n: (sum(op[0] in _HANDS_ON for op in program.code[n]), -n))


def inside(program: Program, agent: int, repair: Repair) -> Listing:
    """Without the instruction in lanes that are not elected."""
    alone = len(warp_of(program, agent)) == 1 or agent == elected_agent(program, agent)
    return listing(program, agent) if alone else omit_instruction(program, agent, repair)


def of_one_warp(program: Program, agent: int, repair: Repair) -> Listing:
    """Without all that a warp does on mbarriers and memory after the prologue, in all warps of a role but the first;
    or without one instruction alone, and the commit after it, or of an arrive in all but the first of ``value`` warps.
    """
    before, me = listing(program, agent), program.agents[agent]
    first = min(n for n in members(program, me.role) if program.agents[n].cta == me.cta)
    if agent == first or (repair.at.op in SIGNALS and not (agent - first) % repair.value):
        return before
    begin = begin_of(program, agent)
    own = {pc for pc in range(begin, len(before.code)) if before.code[pc][0] in _ON_MEMORY}
    if repair.at.op:
        own = {pc for pc in own if site_of(program, agent, pc) == repair.at}
        own |= {pc + 1 for pc in own if before.code[pc + 1 : pc + 2] and before.code[pc + 1][0] in COMMITS}
    return delete_operations(before, own)


def left_out(program: Program, agent: int, repair: Repair) -> Listing:
    """Without the waits for the group after which the agent touches no memory and arrives nowhere until the next."""
    before, mine = listing(program, agent), set(stages_of(program, agent, repair.group).values())
    waits = [pc for pc, op in enumerate(before.code) if op[0] in PARITY_WAITS and operand(op, "barrier") in mine]
    if not waits:
        return before
    idle = {
        at
        for at, end in zip(waits, [*waits[1:], len(before.code)], strict=True)
        if not any(op[0] in TOUCHES_MEMORY or gives_back(op) or op[0] == Op.ARRIVE for op in before.code[at:end])
    }
    return delete_operations(before, idle) if idle == set(waits) else before


# A role that waits for ``empty`` and then signals ``full`` fills; one that waits for ``full`` and then arrives on
# ``empty`` gives back. Where both sides agree, the two groups are partners.


def waited_before(program: Program, agent: int, group: str) -> set[str]:
    """The groups that the agent has waited for last when it signals a group."""
    found: set[str] = set()
    last = ""
    for op, site in zip(program.code[agent], program.instructions[agent], strict=True):
        if op[0] in PARITY_WAITS:
            last = site.about
        elif site.about == group and last and (op[0] == Op.ARRIVE or gives_back(op)):
            found.add(last)
    return found


def arriving_on(program: Program, group: str, but: str = "") -> list[int]:
    """The agents that arrive on a group, but those of one role."""
    mine = set(barriers_of(program, group))
    return [
        agent
        for agent, code in enumerate(program.code)
        if program.agents[agent].role != but
        and any((op[0] == Op.ARRIVE or gives_back(op)) and operand(op, "barrier") in mine for op in code)
    ]


def returned_after(program: Program, role: str, group: str) -> set[str]:
    """The groups for which others have waited last when they arrive on this one."""
    others = arriving_on(program, group, role)
    return set().union(*(waited_before(program, agent, group) for agent in others)) if others else set()


def shares_memory(program: Program, role: str, agents: list[int]) -> bool:
    """True if a role and one of these agents use the same memory: then one may have to wait for the other."""
    mine = {cell for agent in members(program, role) for cell in _cells(program, agent)}
    return any(not mine.isdisjoint(_cells(program, agent)) for agent in agents)


def _cells(program: Program, agent: int, by: Set[int] = TOUCHES_MEMORY) -> set[int]:
    """The cells of what an agent accesses by these operations; a multicast's in every CTA that it names a place in."""
    used = {operand(op, "access") for op in program.code[agent] if op[0] in by}
    return {cell for access in used for cell in range(*program.cells[access])}


def readers_of(program: Program, agents: list[int]) -> frozenset[str]:
    """The roles of these agents, and those that read what they write; () if none does."""
    written = {cell for agent in agents for cell in _cells(program, agent, WRITES_MEMORY)}
    own = {program.agents[agent].role for agent in agents}
    others = {
        each.role for n, each in enumerate(program.agents) if not written.isdisjoint(_cells(program, n, READS_MEMORY))
    }
    return frozenset(own | others) if others - own else frozenset()


def phases_of_writes(program: Program, group: str) -> dict[tuple[int, int], tuple[int, int]]:
    """Of each cell and item that is written the barrier of the group on which that is signalled first, and the phase.

    A copy is signalled on its own barrier; anything else on the next one of the group that its agent signals.
    """
    found: dict[tuple[int, int], tuple[int, int]] = {}
    mine = set(barriers_of(program, group))
    for code in program.code:
        given: Counter[int] = Counter()  # arrivals of this agent: one in each phase
        written: list[tuple[int, int]] = []
        for op in code:
            barrier = operand(op, "barrier") if op[0] in SIGNALS | COMMITS | {int(Op.TMA_LOAD)} else -1
            if op[0] in WRITES_MEMORY and (op[0] != Op.TMA_LOAD or barrier in mine):
                written += [(cell, operand(op, "item")) for cell in range(*program.cells[operand(op, "access")])]
            if barrier in mine:
                phase = barrier, max(given[barrier] - (op[0] == Op.TMA_LOAD), 0)
                given[barrier] += op[0] != Op.TMA_LOAD
                found |= {key: phase for key in written if key not in found}
                written = []
    return found


def reads_what_is_signalled(program: Program, role: str, group: str) -> bool:
    """True if a role reads what is written before a signal on the group."""
    read = {cell for agent in members(program, role) for cell in _cells(program, agent, READS_MEMORY)}
    return not read.isdisjoint(cell for cell, _ in phases_of_writes(program, group))


def uses_what_others_fill(program: Program, agent: int, engine: int) -> bool:
    """True if the agent's transfers on an engine use memory that agents of other roles write."""
    role = program.agents[agent].role
    used = {
        cell
        for op in program.code[agent]
        if op[0] in ENGINE_ACCESSES and operand(op, "engine") == engine
        for cell in range(*program.cells[operand(op, "access")])
    }
    written = {
        operand(op, "access")
        for other, code in enumerate(program.code)
        if program.agents[other].role != role
        for op in code
        if op[0] in WRITES_MEMORY
    }
    return any(not used.isdisjoint(range(*program.cells[access])) for access in written)


def first_parities(program: Program, role: str, group: str) -> tuple[int, ...]:
    """With which parity a role begins to wait for a group, as those who arrive on it tell.

    If they begin by waiting for what the role signals, it fills stages for them, and the first are free; if they expect
    the first to be free, it takes over what they fill. If neither: as other roles that wait for the group do.
    """
    told = {
        site.about
        for agent in members(program, role)
        for op, site in zip(program.code[agent], program.instructions[agent], strict=True)
        if op[0] in SIGNALS
    }
    theirs = {parity for n in arriving_on(program, group, role) for parity in begins(program, n, told).values()}
    if len(theirs) == 1:
        return (1 - theirs.pop(),)
    waited = {barrier for n in members(program, role) for barrier in begins(program, n, {group})}
    alike = {
        parity
        for n, agent in enumerate(program.agents)
        if agent.role != role
        for barrier, parity in begins(program, n, {group}).items()
        if not waited or barrier in waited
    }
    return tuple(alike) if len(alike) == 1 else (1, 0)


def begins(program: Program, agent: int, groups: set[str]) -> dict[int, int]:
    """The parities with which an agent begins to wait for the barriers of these groups, by barrier."""
    first: dict[int, int] = {}
    for op, site in zip(program.code[agent], program.instructions[agent], strict=True):
        if op[0] in PARITY_WAITS and site.about in groups:
            first.setdefault(operand(op, "barrier"), operand(op, "parity"))
    return first
