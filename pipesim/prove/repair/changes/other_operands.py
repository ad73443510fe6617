"""Corrections of instructions that are right but for what they are on: a group, a stage, a slot.

The evidence is what is left alone: a group at which no agent arrives while a role arrives twice on another one.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, combinations

from pipesim.model.groups import ON_BARRIER, PARITY_WAITS, READS_MEMORY, TOUCHES_MEMORY
from pipesim.model.ops import Op, OperandName, Operation, operand
from pipesim.model.program import Program
from pipesim.model.tables import SourceInstruction, Tile
from pipesim.prove.repair.changes.missing_instructions import given_back_after
from pipesim.prove.repair.changes.numbers import count_of
from pipesim.prove.repair.changes.operand_changes import may_expect
from pipesim.prove.repair.changes.places import passes_by, slots_of_items, turn_of, uses_in_turn, waits_in_turn
from pipesim.prove.repair.handovers import waited_before
from pipesim.prove.repair.kinds import NOWHERE, TO_THE_OTHER, Ranked, Repair, RepairKind
from pipesim.prove.repair.sites import (
    barrier_of,
    begin_of,
    beside,
    executions,
    families,
    gives_back,
    members,
    operations_at,
    roles_of,
    sites_of,
    stages_in,
    team_of,
)

K = RepairKind
#: What is done on a group excludes that the same role does one of these on it as well.
_EXCLUDES = {"waits": ("gives back", "expects"), "gives back": ("waits",), "expects": ("waits",)}


def shifts(several: int) -> list[int]:
    """By how many of this many stages or slots an instruction may be wrong, the likeliest first: one, and two."""
    return list(dict.fromkeys(by for by in (1, several - 1, 2, several - 2) if 0 < by < several))


def of_groups(program: Program) -> Iterator[Ranked]:
    """Instructions on another group of as many stages, and two groups in the reverse order."""
    by_any_role: defaultdict[str, set[str]] = defaultdict(set)  # by what is done: the groups on which an agent does it
    uses = {role: _barrier_uses(program, role) for role in roles_of(program)}
    for mine in uses.values():
        for done, groups in mine.items():
            by_any_role[done] |= set(groups)
    for role, mine in uses.items():
        for done in mine:
            yield from _on_another(program, role, mine, done, by_any_role)
        yield from _swaps(program, role, mine)


_BarrierUses = dict[str, dict[str, dict[SourceInstruction, None]]]  # use → group → the instructions


def _on_another(
    program: Program, role: str, mine: _BarrierUses, done: str, by_any_role: Mapping[str, set[str]]
) -> Iterator[Ranked]:
    """Instructions of one sort on groups on which the role does not do so: likely where no agent does.

    Of copies also where the role expects bytes of them, if no role expects any where they are.
    """
    sizes = stages_in(program)
    own = {group for other in _EXCLUDES.get(done, ()) for group in mine.get(other, ())}
    own -= by_any_role["gives back"] - by_any_role["waits"] if done == "waits" else set()  # one that takes turns waits
    signalled = by_any_role["gives back"] | by_any_role["expects"] | by_any_role["copies"]
    expected = mine.get("expects", {})
    for group, sites in mine[done].items():
        astray = done == "copies" and group not in by_any_role["expects"]
        is_signalled = any(group in mine.get(each, ()) for each in ("gives back", "expects"))
        twice = len(sites) > 1 or (done == "waits" and is_signalled)
        for other in expected if astray else (name for name in sizes if name not in {*mine[done], *own}):
            unserved = done == "gives back" and other in by_any_role["waits"] - signalled
            crossed = done == "gives back" and group in mine.get("waits", ()) and other in by_any_role["waits"]
            if other in by_any_role[done] and not (twice or astray or crossed):
                continue
            rank = 2 if astray or unserved or crossed or (twice and other not in by_any_role[done]) else 6
            if sizes[other] != sizes[group] and len(sizes[other]) > 1 and rank > 2:
                continue
            for site in sites:
                turn = done == "waits" and rank == 2 and other in mine.get("gives back", ())
                turn = turn and given_back_after(program, role, site).about != other  # whose end comes later
                moved = Repair(K.OTHER_GROUP, role, group, at=site, past=site._replace(about=other))
                yield rank + turn, moved
                copies = _copies_after(program, role, site) if done == "expects" and len(sites) > 1 else []
                if copies:
                    also = (replace(moved, at=copy, past=copy._replace(about=other)) for copy in copies)
                    yield rank, replace(moved, also=tuple(also))


def _copies_after(program: Program, role: str, expect: SourceInstruction) -> list[SourceInstruction]:
    """The copies whose bytes an expect is for: those on its group until the next expect of it."""
    found, last = dict[SourceInstruction, None](), NOWHERE
    for *_, op, site in executions(program, role):
        if site.about == expect.about and (_use_of(op) == "expects" or op[0] == Op.TMA_LOAD):
            last = last if op[0] == Op.TMA_LOAD else site
            found |= {site: None} if op[0] == Op.TMA_LOAD and last == expect else {}
    return list(found)


def _swaps(program: Program, role: str, mine: _BarrierUses) -> Iterator[Ranked]:
    sizes = stages_in(program)
    for done, at in (("gives back", NOWHERE), ("waits", NOWHERE._replace(op=int(Op.WAIT)))):
        for one, other in combinations(mine.get(done, ()), 2):
            if sizes[one] == sizes[other]:
                rank = 2 if done == "gives back" and _is_swapped(program, role, one, other) else 5
                yield rank, Repair(K.SWAP, role, f"{one},{other}", at=at)
    every = dict.fromkeys(group for groups in mine.values() for group in groups)
    for one, other in combinations(every, 2):
        if sizes[one] == sizes[other] and count_of(program, one) != count_of(program, other):  # which tell them apart
            yield 5, Repair(K.SWAP, role, f"{one},{other}", 1)


def _is_swapped(program: Program, role: str, one: str, other: str) -> bool:
    """True if the role gives each of two groups back after the wait for what others fill after a wait for the other."""
    filled = {group: _filled_after(program, role, group) for group in (one, other)}
    agents = members(program, role)
    after = {group: {before for n in agents for before in waited_before(program, n, group)} for group in filled}
    return bool(after[one] & filled[other]) and bool(after[other] & filled[one]) and not after[one] & filled[one]


def _filled_after(program: Program, role: str, group: str) -> set[str]:
    """The groups that others signal when they have waited for this one last."""
    told = {
        (n, site.about) for n, *_, site in executions(program, ops={int(Op.ARRIVE)}) if program.agents[n].role != role
    }
    return {about for agent, about in told if group in waited_before(program, agent, about)}


def _barrier_uses(program: Program, role: str) -> _BarrierUses:
    """What a role does on barriers: gives back, waits, expects, copies; on which groups; at which instructions."""
    found: _BarrierUses = {}
    for *_, op, site in executions(program, role, ON_BARRIER):
        if done := _use_of(op):
            found.setdefault(done, {}).setdefault(site.about, {})[site] = None
    return found


def _use_of(op: Operation) -> str:
    if barrier_of(op) < 0:
        return ""
    if op[0] in PARITY_WAITS:
        return "waits"
    if op[0] == Op.TMA_LOAD:
        return "copies"
    return "gives back" if gives_back(op) else "expects" if may_expect(op) else ""


def of_slots(program: Program) -> Iterator[Ranked]:
    """Accesses in the slot of another stage, copies that signal another stage."""
    sizes = stages_in(program)
    for role in roles_of(program):
        for name in _not_used_in_turn(program, role):
            yield 2, Repair(K.STAGES, role, name, at=SourceInstruction(int(Op.WRITE), "", name))
        for site in sites_of(program, role):
            tile = _tile_at(program, role, site)
            yield from _of_parts(program, role, site)
            in_ring = site.op in ON_BARRIER and len(sizes.get(site.about, ())) > 1
            if in_ring and (other := _of_other_ring(program, role, site, sizes)):
                yield 3, Repair(K.STAGES, role, site.about, other, at=site)
            if tile is not None and tile.slots > 1:
                yield from _in_turn(program, role, site, tile)
            name = tile.name if tile is not None else ""
            for group in dict.fromkeys((site.about, name) if name else ()):  # a copy's barrier, or its slot
                on_slot = group == name
                if not _goes_round(program, role, site, on_slot=on_slot or not in_ring):
                    continue
                rank = 3 if is_crossed(program, role, site, on_slot=on_slot) else 7
                first = begins_at(program, role, site, on_slot=on_slot)
                several = len(sizes[group]) if group in sizes else tile.slots if tile is not None else 0
                for by in shifts(several):
                    in_order = first > 0 and (first + by) % several == 0
                    yield min(rank, 4) if in_order else rank, Repair(K.SHIFT, role, group, by, several, at=site)


def _in_turn(program: Program, role: str, site: SourceInstruction, tile: Tile) -> Iterator[Ranked]:
    """An instruction on slots of a tile, each in its turn or (of a read) where its items are written to."""
    reads, slots = site.op in READS_MEMORY, [_slots(program, ops) for ops in operations_at(program, role, site)]
    stuck = any(len(each) > 1 for each in slots) and all(len(set(each)) < 2 for each in slots)
    fewer = reads and 1 < len(set(slots[0])) < tile.slots < len(slots[0])  # as of another ring
    yield 5 if stuck else 3 if fewer else 6, Repair(K.STAGES, role, tile.name, int(not stuck), at=site)
    if reads and _reads_elsewhere(program, role, site):
        yield 6, Repair(K.STAGES, role, tile.name, was=1, at=site)


def _slots(program: Program, ops: list[Operation]) -> list[int]:
    return [program.slot_of(operand(op, "access")) for op in ops]


def _of_parts(program: Program, role: str, site: SourceInstruction) -> Iterator[Ranked]:
    """An instruction by which all warps of a role, or all CTAs, use the same part of a slot, of as many as they are."""
    used = [ops[0] for ops in operations_at(program, role, site) if ops] if site.op in TOUCHES_MEMORY else []
    places = [program.accesses[operand(op, "access")] for op in used]
    tile = program.tile_of(places[0]) if places else None
    if tile is not None and len({(each.offset, each.nbytes) for each in places}) == 1:
        parts, rest = divmod(tile.nbytes, places[0].nbytes)
        for by_cta, several in enumerate((len(used) // program.ctas, program.ctas)):
            if parts == several > 1 and not rest:
                yield 2, Repair(K.PART, role, tile.name, parts, by_cta, at=site)


def _not_used_in_turn(program: Program, role: str) -> list[str]:
    """The tiles of several slots that no other role uses, and whose slots an agent of this one does not use in turn."""
    roles: dict[str, set[str]] = {}
    used: dict[tuple[Tile, int], list[tuple[SourceInstruction, int]]] = {}
    for agent, _, op, site in executions(program, ops=TOUCHES_MEMORY):
        tile = program.tile_of(program.accesses[operand(op, "access")])
        if tile is not None and tile.slots > 1:
            used.setdefault((tile, agent), []).append((site, program.slot_of(operand(op, "access"))))
            roles.setdefault(tile.name, set()).add(program.agents[agent].role)
    found: dict[str, None] = {}
    for (tile, _), uses in used.items():
        first = [slot for site, slot in uses if site == uses[0][0]]
        in_turn = all(slot == (first[0] + turn) % tile.slots for turn, slot in enumerate(first))
        if roles[tile.name] == {role} and not in_turn:
            found[tile.name] = None
    return list(found)


def _tile_at(program: Program, role: str, site: SourceInstruction) -> Tile | None:
    """The tile that an instruction uses."""
    every = chain.from_iterable(operations_at(program, role, site)) if site.op in TOUCHES_MEMORY else ()
    used = (program.tile_of(program.accesses[operand(op, "access")]) for op in every)
    return next((tile for tile in used if tile is not None), None)


def _reads_elsewhere(program: Program, role: str, site: SourceInstruction) -> bool:
    """True if an instruction reads items from other slots of a tile than the ones to which they are written."""
    written = slots_of_items(program)
    return any(
        slot != program.slot_of(operand(op, "access"))
        for op in chain.from_iterable(operations_at(program, role, site))
        if (tile := program.tile_of(program.accesses[operand(op, "access")])) is not None
        and (slot := written.get((tile, operand(op, "item")))) is not None
    )


def _of_other_ring(program: Program, role: str, site: SourceInstruction, sizes: Mapping[str, tuple[int, ...]]) -> int:
    """The number of stages, fewer than its group has, which an instruction uses in turn and which another group has."""
    used = [_used(program, ops, "barrier") for ops in operations_at(program, role, site)]
    period = max(len(set(used[0])), 1)
    others = {len(stages) for name, stages in sizes.items() if name != site.about}
    in_turn = all(stage == n % period for each in used for n, stage in enumerate(each))
    return period if 1 < period < len(sizes[site.about]) < len(used[0]) and period in others and in_turn else 0


def _used(program: Program, ops: list[Operation], name: OperandName) -> list[int]:
    """The stages of the barriers that operations are on, or the slots that they access."""
    return _slots(program, ops) if name == "access" else [program.barriers[barrier_of(op)].stage for op in ops]


def _goes_round(program: Program, role: str, site: SourceInstruction, *, on_slot: bool) -> bool:
    """True if the role uses several slots, or stages, at the instruction: one alone is meant to be that one."""
    every = list(chain.from_iterable(operations_at(program, role, site)))
    return len(set(_used(program, every, "access" if on_slot else "barrier"))) > 1


def begins_at(program: Program, role: str, site: SourceInstruction, *, on_slot: bool = False) -> int:
    """The slot, or the stage, with which an instruction begins that goes round; 0 of one that does not."""
    slots = on_slot or site.op not in ON_BARRIER
    used = _used(program, operations_at(program, role, site)[0], "access" if slots else "barrier")
    return used[0] if len(set(used)) > 1 else 0


def of_single_warps(program: Program) -> Iterator[Ranked]:
    """Roles of which all warps issue the same copies: one of them is meant to."""
    for role in roles_of(program):
        codes = [program.code[n][begin_of(program, n) :] for n in beside(program, members(program, role)[0])]
        if len(codes) > 1 and len(set(codes)) == 1 and any(op[0] == Op.TMA_LOAD for op in codes[0]):
            yield 1, Repair(K.ONE_WARP, role, "", len(codes))


def of_ctas(program: Program) -> Iterator[Ranked]:
    """Arrives on the barrier of another CTA: of one in which it is waited for, and that nothing signals."""
    if program.ctas == 1:
        return
    waited = {barrier_of(op) for op in program.operations if op[0] in PARITY_WAITS}
    given = {barrier_of(op) for op in program.operations if gives_back(op)}
    for role in roles_of(program):
        for group, sites in _barrier_uses(program, role).get("gives back", {}).items():
            mine = {n for n, barrier in enumerate(program.barriers) if barrier.name == group}
            ranks = sorted({program.barriers[n].cta for n in mine & waited})
            unserved = {program.barriers[n].cta for n in mine & waited - given}
            astray = bool(mine & given - waited)
            short = _least_served(program, {n for n in mine & waited if program.barriers[n].stage == 0})
            for site in (site for site in sites if site.op == Op.ARRIVE):
                for to in ranks:
                    rank = 1 if [to] == short else 2 if astray or to in unserved else 6
                    yield rank, Repair(K.OTHER_CTA, role, group, to, at=site)
                for by in _neighbours(program, site, ranks):
                    yield 3, Repair(K.OTHER_CTA, role, group, by, 1, site)


def _least_served(program: Program, barriers: set[int]) -> list[int]:
    """The CTAs whose barrier of these gets the smallest part of its count, of those that get some."""
    parts: dict[int, float] = {}
    for bar in barriers:
        ops = [op for op in program.operations if barrier_of(op) == bar]
        count = next((operand(op, "count") for op in ops if op[0] == Op.INIT), 0)
        given = sum(operand(op, "count") for op in ops if op[0] == Op.ARRIVE)
        parts[program.barriers[bar].cta] = given / count if count else 0.0
    least = min(parts.values(), default=0.0)
    return [cta for cta, part in parts.items() if 0 < part == least] if len({*parts.values()}) > 1 else []


def _neighbours(program: Program, site: SourceInstruction, waited: list[int]) -> list[int]:
    """Of an arrive that is always so much further than the agent's own CTA by how many it may be meant to be, if it is
    in CTAs in which its group is waited for.
    """
    here = (each for each in executions(program, ops={site.op}) if each.site == site)
    pairs = {(program.agents[agent].cta, program.barriers[barrier_of(op)].cta) for agent, _, op, _ in here}
    by, several = {(there - own) % program.ctas for own, there in pairs}, program.ctas
    others = [each for each in (1, -1, 0) if all((own + each) % several in waited for own, _ in pairs)]
    return [each for each in others if each % several not in by] if len(by) == 1 else []


def is_crossed(program: Program, role: str, site: SourceInstruction, *, on_slot: bool) -> bool:
    """True if a copy signals, or an access (or ``on_slot`` a copy) uses, always another stage than that of the barrier
    before it.
    """
    found: list[bool] = []
    stage, last = -1, -1
    for agent, _, op, here in executions(program, role):
        stage, last = stage if agent == last else -1, agent
        if here == site:
            signals = op[0] == Op.TMA_LOAD and not on_slot
            (mine,) = _used(program, [op], "barrier" if signals else "access")
            found.append(-1 not in (stage, mine) and mine != stage)
        elif op[0] in PARITY_WAITS or (op[0] == Op.ARRIVE and operand(op, "expect")):
            stage = program.barriers[barrier_of(op)].stage
    return bool(found) and all(found)


def _of_given_turns(program: Program, role: str) -> Iterator[Ranked]:
    """The arrives of those that take turns in a group, each on the barriers that it waits for itself: on the next."""
    for group in dict.fromkeys(site.about for site in sites_of(program, role, PARITY_WAITS)):
        own, to = set[frozenset[int]](), set[int]()
        for code in (program.code[agent] for agent in members(program, role)):
            here = [op for op in code if barrier_of(op) >= 0 and program.barriers[barrier_of(op)].name == group]
            waits, signals = ([op for op in here if op[0] in ops] for ops in (PARITY_WAITS, {int(Op.ARRIVE)}))
            waited, given = (frozenset(_used(program, ops, "barrier")) for ops in (waits, signals))
            own.add(waited)
            to |= given if given <= waited else {-1}
        if len(own) > 1 and to and -1 not in to:
            lines = dict.fromkeys(s.line for s in sites_of(program, role, {int(Op.ARRIVE)}) if s.about == group)
            at = SourceInstruction(int(Op.ARRIVE), "\n".join(lines), "")
            yield 2, Repair(K.SHIFT, role, group, len(own), TO_THE_OTHER, at=at)


def of_turns(program: Program) -> Iterator[Ranked]:
    """Stages and phases that a role restarts, with every tile for instance, while others continue."""
    sizes = stages_in(program)
    for role in dict.fromkeys((*roles_of(program), *families(program).values())):
        yield from _of_given_turns(program, role)
    for role in roles_of(program):
        mine = members(program, role)
        team = members(program, team_of(program, mine[0]))
        for group in (g for g in _barrier_uses(program, role).get("waits", ()) if len(sizes[g]) > 1):
            if not all(uses_in_turn(program, agent, group) for agent in mine):
                yield from ((4, Repair(K.CARRY, role, group, start, was)) for start in (0, 1) for was in (-1, 1))
            if (more := passes_by(program, mine[0], group)) > 0:
                yield 4, Repair(K.CARRY, role, group, more, 3)
            if each := max(waits_in_turn(program, n, group) for n in team):
                yield 4, Repair(K.CARRY, role, group, each, 4)
                others = len({turn_of(program, n) for n in team}) - 1
                yield 4, Repair(K.CARRY, role, group, each * others, 3)
