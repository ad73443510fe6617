"""Corrections of instructions that are right but for what they are on: a group, a stage, a slot.

The evidence is what is left alone: a group at which no agent arrives while a role arrives twice on another one.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, combinations

from pipesim.model.groups import ASYNC_ACCESSES, ON_BARRIER, PARITY_WAITS, READS_MEMORY, TOUCHES_MEMORY
from pipesim.model.ops import Op, OperandName, Operation, operand
from pipesim.model.program import Program
from pipesim.model.tables import SourceInstruction
from pipesim.prove.repair.changes.arithmetic import arrivals_of, count_of
from pipesim.prove.repair.changes.missing_instructions import given_back_after
from pipesim.prove.repair.changes.numbers import may_expect, of_group
from pipesim.prove.repair.changes.order import gives_back, reads_what_is_signalled, waited_before
from pipesim.prove.repair.changes.places import passes_by, slots_of_items, turn_of, uses_in_turn, waits_in_turn
from pipesim.prove.repair.kinds import NOWHERE, TO_THE_OTHER, Ranked, Repair, RepairKind
from pipesim.prove.repair.sites import (
    begin_of,
    executes_everywhere,
    families,
    members,
    operations_at,
    roles_of,
    sites_of,
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
    for role in roles_of(program):
        for done, groups in _barrier_uses(program, role).items():
            by_any_role[done] |= set(groups)
    for role in roles_of(program):
        mine = _barrier_uses(program, role)
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
    sizes = _sizes(program)
    own = {group for other in _EXCLUDES.get(done, ()) for group in mine.get(other, ())}
    own -= by_any_role["gives back"] - by_any_role["waits"] if done == "waits" else set()  # one that takes turns waits
    signalled = by_any_role["gives back"] | by_any_role["expects"] | by_any_role["copies"]
    expected = mine.get("expects", {})
    for group, sites in mine[done].items():
        astray = done == "copies" and group not in by_any_role["expects"]
        for other in expected if astray else (name for name in sizes if name not in {*mine[done], *own}):
            twice = len(sites) > 1 or (done == "waits" and _is_signalled(mine, group))
            unserved = done == "gives back" and other in by_any_role["waits"] - signalled
            crossed = done == "gives back" and group in mine.get("waits", ()) and other in by_any_role["waits"]
            if other in by_any_role[done] and not (twice or astray or crossed):
                continue
            rank = 2 if astray or unserved or crossed or (twice and other not in by_any_role[done]) else 6
            for site in sites:
                turn = done == "waits" and rank == 2 and other in mine.get("gives back", ())
                turn = turn and given_back_after(program, role, site).about != other  # whose end comes later
                if sizes[other] == sizes[group] or len(sizes[other]) == 1 or rank == 2:
                    moved = Repair(K.OTHER_GROUP, role, group, at=site, past=site._replace(about=other))
                    yield rank + turn, moved
                    copies = _copies_after(program, role, site) if done == "expects" and len(sites) > 1 else []
                    if copies:
                        also = (replace(moved, at=copy, past=copy._replace(about=other)) for copy in copies)
                        yield rank, replace(moved, also=tuple(also))


def _copies_after(program: Program, role: str, expect: SourceInstruction) -> list[SourceInstruction]:
    """The copies whose bytes an expect is for: those on its group until the next expect of it."""
    found, last = dict[SourceInstruction, None](), NOWHERE
    for agent in members(program, role):
        for op, site in zip(program.code[agent], program.instructions[agent], strict=True):
            if site.about == expect.about and (_use_of(op) == "expects" or op[0] == Op.TMA_LOAD):
                last = last if op[0] == Op.TMA_LOAD else site
                found |= {site: None} if op[0] == Op.TMA_LOAD and last == expect else {}
    return list(found)


def _is_signalled(mine: _BarrierUses, group: str) -> bool:
    return any(group in mine.get(done, ()) for done in ("gives back", "expects"))


def _swaps(program: Program, role: str, mine: _BarrierUses) -> Iterator[Ranked]:
    sizes = _sizes(program)
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
    return {
        site.about
        for agent in range(len(program.agents))
        if program.agents[agent].role != role
        for site in program.instructions[agent]
        if site.op == Op.ARRIVE and group in waited_before(program, agent, site.about)
    }


def _sizes(program: Program) -> dict[str, tuple[int, ...]]:
    """The stages of every group."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for barrier in program.barriers:
        found[barrier.name].add(barrier.stage)
    return {name: tuple(sorted(stages)) for name, stages in found.items()}


def _barrier_uses(program: Program, role: str) -> _BarrierUses:
    """What a role does on barriers: gives back, waits, expects, copies; on which groups; at which instructions."""
    found: defaultdict[str, defaultdict[str, dict[SourceInstruction, None]]] = defaultdict(lambda: defaultdict(dict))
    for agent in members(program, role):
        for op, site in zip(program.code[agent], program.instructions[agent], strict=True):
            done = _use_of(op)
            if done:
                found[done][site.about][site] = None
    return {done: dict(groups) for done, groups in found.items()}


def _use_of(op: Operation) -> str:
    if op[0] not in ON_BARRIER or operand(op, "barrier") < 0:
        return ""
    if op[0] in PARITY_WAITS:
        return "waits"
    if op[0] == Op.TMA_LOAD:
        return "copies"
    if gives_back(op):
        return "gives back"
    return "expects" if may_expect(op, set()) else ""


def of_slots(program: Program) -> Iterator[Ranked]:
    """Accesses in the slot of another stage, copies that signal another stage."""
    yield from _filled_together(program)
    slots = {tile.name: tile.slots for tile in program.tiles}
    sizes = _sizes(program)
    for role in roles_of(program):
        for tile in _not_used_in_turn(program, role):
            yield 2, Repair(K.STAGES, role, tile, at=SourceInstruction(int(Op.WRITE), "", tile))
        for site in sites_of(program, role):
            tile = _tile_at(program, role, site)
            if tile:
                yield from _of_parts(program, role, site)
            in_ring = site.op in ON_BARRIER and len(sizes.get(site.about, ())) > 1
            if in_ring and (other := _of_other_ring(program, role, site, sizes)):
                yield 3, Repair(K.STAGES, role, site.about, other, at=site)
            if in_ring and _is_stuck(program, role, site, "barrier"):
                yield 4, Repair(K.STAGES, role, site.about, at=site)
            if slots.get(tile, 1) > 1:
                stuck = _is_stuck(program, role, site, "access")
                used = [program.slot_of(operand(op, "access")) for op in operations_at(program, role, site)[0]]
                fewer = 1 < len(set(used)) < slots[tile] < len(used) and site.op in READS_MEMORY  # as of another ring
                yield 5 if stuck else 3 if fewer else 6, Repair(K.STAGES, role, tile, int(not stuck), at=site)
                if site.op in READS_MEMORY and _reads_elsewhere(program, role, site):
                    yield 6, Repair(K.STAGES, role, tile, was=1, at=site)
            for group in dict.fromkeys((site.about, tile) if tile else ()):  # a copy's barrier, or its slot
                on_slot = group == tile
                if not _goes_round(program, role, site, on_slot=on_slot or not in_ring):
                    continue
                rank = 3 if is_crossed(program, role, site, on_slot=on_slot) else 7
                first = begins_at(program, role, site, on_slot=on_slot)
                several = len(sizes[group]) if group in sizes else slots[group]
                for by in shifts(several):
                    in_order = first > 0 and (first + by) % several == 0
                    yield min(rank, 4) if in_order else rank, Repair(K.SHIFT, role, group, by, several, at=site)


def _of_parts(program: Program, role: str, site: SourceInstruction) -> Iterator[Ranked]:
    """An instruction by which all warps of a role, or all CTAs, use the same part of a slot, of as many as they are."""
    used = [ops[0] for ops in operations_at(program, role, site) if ops]
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
    used: dict[tuple[str, int], list[tuple[SourceInstruction, int, int]]] = {}
    for agent, code in enumerate(program.code):
        for op, site in zip(code, program.instructions[agent], strict=True):
            tile = program.tile_of(program.accesses[operand(op, "access")]) if op[0] in TOUCHES_MEMORY else None
            if tile is not None and tile.slots > 1:
                use = site, program.slot_of(operand(op, "access")), tile.slots
                used.setdefault((tile.name, agent), []).append(use)
                roles.setdefault(tile.name, set()).add(program.agents[agent].role)
    found: dict[str, None] = {}
    for (tile_name, _), uses in used.items():
        first = [(slot, slots) for site, slot, slots in uses if site == uses[0][0]]
        in_turn = all(slot == (first[0][0] + turn) % slots for turn, (slot, slots) in enumerate(first))
        if roles[tile_name] == {role} and not in_turn:
            found[tile_name] = None
    return list(found)


def _tile_at(program: Program, role: str, site: SourceInstruction) -> str:
    """The tile that an instruction uses, "" if none."""
    if site.op not in TOUCHES_MEMORY:
        return ""
    every = chain.from_iterable(operations_at(program, role, site))
    used = (program.tile_of(program.accesses[operand(op, "access")]) for op in every)
    return next((tile.name for tile in used if tile is not None), "")


def _is_stuck(program: Program, role: str, site: SourceInstruction, name: OperandName) -> bool:
    """True if an instruction is executed several times, always on the same barrier or on the same bytes."""
    if site.op == Op.INIT:
        return False
    used = [[operand(op, name) for op in code] for code in operations_at(program, role, site)]
    if name == "barrier":  # also of other CTAs
        used = [[program.barriers[barrier].stage for barrier in each] for each in used]
    elif name == "access":  # or parts of the same slot
        used = [[program.slot_of(access) for access in each] for each in used]
    return any(len(each) > 1 for each in used) and all(len(set(each)) < 2 for each in used)


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
    used = [
        [program.barriers[operand(op, "barrier")].stage for op in ops] for ops in operations_at(program, role, site)
    ]
    period = max(len(set(used[0])), 1)
    others = {len(stages) for name, stages in sizes.items() if name != site.about}
    in_turn = all(stage == n % period for each in used for n, stage in enumerate(each))
    return period if 1 < period < len(sizes[site.about]) < len(used[0]) and period in others and in_turn else 0


def _filled_together(program: Program) -> Iterator[Ranked]:
    """Expects and copies on barriers of another stage than that of the slots that are filled: those of a role that are
    executed equally often, as in the body of a loop.
    """
    sizes = _sizes(program)
    for role in roles_of(program):
        uses = _barrier_uses(program, role)
        for group, sites in uses.get("copies", {}).items():
            often = Counter(site for agent in members(program, role)[:1] for site in program.instructions[agent])
            for times in sorted({often[site] for site in sites}, reverse=True):
                every = [site for site in (*uses.get("expects", {}).get(group, ()), *sites) if often[site] == times]
                lines = "\n".join(dict.fromkeys(site.line for site in every))
                crossed = any(_in_other_slot(program, role, site) for site in sites if often[site] == times)
                for by in range(1, len(sizes[group]) if len(every) > 1 else 0):
                    yield (
                        3 if crossed else 7,
                        Repair(K.SHIFT, role, group, by, len(sizes[group]), SourceInstruction(0, lines, "")),
                    )


def _in_other_slot(program: Program, role: str, site: SourceInstruction) -> bool:
    """True if a copy is always into another slot than that of the stage of its barrier."""
    first = operations_at(program, role, site)[0]
    mine = [(program.slot_of(operand(op, "access")), program.barriers[operand(op, "barrier")].stage) for op in first]
    return all(slot not in (-1, stage) for slot, stage in mine)


def _goes_round(program: Program, role: str, site: SourceInstruction, *, on_slot: bool) -> bool:
    """True if the role uses several slots, or stages, at the instruction: one alone is meant to be that one."""
    every = chain.from_iterable(operations_at(program, role, site))
    if on_slot:
        return len({program.slot_of(operand(op, "access")) for op in every}) > 1
    return len({program.barriers[operand(op, "barrier")].stage for op in every}) > 1


def begins_at(program: Program, role: str, site: SourceInstruction, *, on_slot: bool = False) -> int:
    """The slot, or the stage, with which an instruction begins that goes round; 0 of one that does not."""
    used = [
        program.barriers[operand(op, "barrier")].stage
        if op[0] in ON_BARRIER and not on_slot
        else program.slot_of(operand(op, "access"))
        for op in operations_at(program, role, site)[0]
    ]
    return used[0] if len(set(used)) > 1 else 0


def of_single_warps(program: Program) -> Iterator[Ranked]:
    """Roles of which all warps issue the same copies, or do so at one instruction: one of them is meant to."""
    for role in roles_of(program):
        mine = members(program, role)
        here = [agent for agent in mine if program.agents[agent].cta == program.agents[mine[0]].cta]
        codes = [program.code[agent][begin_of(program, agent) :] for agent in here]
        if len(codes) > 1 and len(set(codes)) == 1 and any(op[0] == Op.TMA_LOAD for op in codes[0]):
            yield 1, Repair(K.ONE_WARP, role, "", len(codes))
        for site in (s for s in sites_of(program, role) if s.op in ASYNC_ACCESSES and len(here) > 1):
            used = operations_at(program, role, site)[: len(here)]
            if all(used[0] == each for each in used):
                yield 2, Repair(K.ONE_WARP, role, site.about, len(here), at=site)
        for site in (s for s in sites_of(program, role) if s.op == Op.ARRIVE and len(here) > 1):
            each, rest = divmod(arrivals_of(program, site.about), max(count_of(program, site.about), 1))
            fits = each > 1 and not rest and not len(here) % each and executes_everywhere(program, role, site)
            if each != program.ctas and fits:
                yield 3, Repair(K.ONE_WARP, role, site.about, each, at=site)


def of_ctas(program: Program) -> Iterator[Ranked]:
    """Arrives and copies on the barrier of another CTA: of one in which it is waited for, and that nothing signals."""
    if program.ctas == 1:
        return
    waited = {operand(op, "barrier") for op in program.operations if op[0] in PARITY_WAITS}
    given = {operand(op, "barrier") for op in program.operations if gives_back(op)}
    for role in roles_of(program):
        uses = _barrier_uses(program, role)
        for group in dict.fromkeys(group for done in ("gives back", "copies") for group in uses.get(done, ())):
            mine = {n for n, barrier in enumerate(program.barriers) if barrier.name == group}
            ranks = sorted({program.barriers[n].cta for n in mine & waited})
            unserved = {program.barriers[n].cta for n in mine & waited - given}
            astray = bool(mine & given - waited)
            short = _least_served(program, {n for n in mine & waited if program.barriers[n].stage == 0})
            for site in uses.get("gives back", {}).get(group, ()):
                if site.op == Op.ARRIVE:
                    for to in ranks:
                        yield (
                            1 if [to] == short else 2 if astray or to in unserved else 6,
                            Repair(K.OTHER_CTA, role, group, to, at=site),
                        )
                    yield 2, Repair(K.OTHER_CTA, role, group, -1, at=site)
                    yield from (
                        (3, Repair(K.OTHER_CTA, role, group, by, 1, site)) for by in _neighbours(program, site, ranks)
                    )
            copies = uses.get("copies", {}).get(group, ())
            if copies and len(ranks) < program.ctas:  # all of them: often two tiles by two instructions
                every = NOWHERE._replace(op=int(Op.TMA_LOAD), about=group)
                yield from ((2, Repair(K.OTHER_CTA, role, group, to, at=every)) for to in ranks)


def _least_served(program: Program, barriers: set[int]) -> list[int]:
    """The CTAs whose barrier of these gets the smallest part of its count, of those that get some."""
    parts: dict[int, float] = {}
    for bar in barriers:
        ops = [op for op in program.operations if op[0] in ON_BARRIER and operand(op, "barrier") == bar]
        count = next((operand(op, "count") for op in ops if op[0] == Op.INIT), 0)
        given = sum(operand(op, "count") for op in ops if op[0] == Op.ARRIVE)
        parts[program.barriers[bar].cta] = given / count if count else 0.0
    least = min(parts.values(), default=0.0)
    return [cta for cta, part in parts.items() if 0 < part == least] if len({*parts.values()}) > 1 else []


def _neighbours(program: Program, site: SourceInstruction, waited: list[int]) -> list[int]:
    """Of an arrive that is always so much further than the agent's own CTA by how many it may be meant to be, if it is
    in CTAs in which its group is waited for.
    """
    pairs = {
        (program.agents[agent].cta, program.barriers[operand(op, "barrier")].cta)
        for agent, code in enumerate(program.code)
        for op, here in zip(code, program.instructions[agent], strict=True)
        if here == site
    }
    by, several = {(there - own) % program.ctas for own, there in pairs}, program.ctas
    others = [each for each in (1, -1, 0) if all((own + each) % several in waited for own, _ in pairs)]
    return [each for each in others if each % several not in by] if len(by) == 1 else []


def is_crossed(program: Program, role: str, site: SourceInstruction, *, on_slot: bool) -> bool:
    """True if a copy signals, or an access (or ``on_slot`` a copy) uses, always another stage than that of the barrier
    before it.
    """
    found: list[bool] = []
    for agent in members(program, role):
        stage = -1
        for op, here in zip(program.code[agent], program.instructions[agent], strict=True):
            if here == site:
                slot = program.slot_of(operand(op, "access"))
                signals = op[0] == Op.TMA_LOAD and not on_slot
                mine = program.barriers[operand(op, "barrier")].stage if signals else slot
                found.append(-1 not in (stage, mine) and mine != stage)
            elif op[0] in PARITY_WAITS or (op[0] == Op.ARRIVE and operand(op, "expect")):
                stage = program.barriers[operand(op, "barrier")].stage
    return bool(found) and all(found)


def _of_given_turns(program: Program, role: str) -> Iterator[Ranked]:
    """The arrives of those that take turns in a group, each on the barriers that it waits for itself: on the next."""
    for group in dict.fromkeys(site.about for site in sites_of(program, role) if site.op in PARITY_WAITS):
        own, to = set[frozenset[int]](), set[int]()
        for code in (program.code[agent] for agent in members(program, role)):
            here = [op for op in code if op[0] in ON_BARRIER and of_group(program, op, group)]
            waited, given = (
                {program.barriers[operand(op, "barrier")].stage for op in here if op[0] in ops}
                for ops in (PARITY_WAITS, {int(Op.ARRIVE)})
            )
            own.add(frozenset(waited))
            to |= given if given <= waited else {-1}
        if len(own) > 1 and to and -1 not in to:
            lines = dict.fromkeys(s.line for s in sites_of(program, role) if s.op == Op.ARRIVE and s.about == group)
            at = SourceInstruction(int(Op.ARRIVE), "\n".join(lines), "")
            yield 2, Repair(K.SHIFT, role, group, len(own), TO_THE_OTHER, at=at)


def of_turns(program: Program) -> Iterator[Ranked]:
    """Stages and phases that a role restarts, with every tile for instance, while others continue."""
    sizes = _sizes(program)
    for role in dict.fromkeys((*roles_of(program), *families(program).values())):
        yield from _of_given_turns(program, role)
    for role in roles_of(program):
        for group in _barrier_uses(program, role).get("waits", ()):
            if len(sizes[group]) > 1 and not all(
                uses_in_turn(program, agent, group) for agent in members(program, role)
            ):
                for start in (0, 1):
                    yield 4, Repair(K.CARRY, role, group, start)
                    yield 4, Repair(K.CARRY, role, group, start, 1)
            if len(sizes[group]) > 1 and (more := passes_by(program, members(program, role)[0], group)) > 0:
                yield 4, Repair(K.CARRY, role, group, more, 3)
            team = members(program, families(program).get(role, role))
            if len(sizes[group]) > 1 and (each := max(waits_in_turn(program, n, group) for n in team)):
                yield 4, Repair(K.CARRY, role, group, each, 4)
                others = len({turn_of(program, n) for n in team}) - 1
                yield 4, Repair(K.CARRY, role, group, each * others, 3)
            if len(sizes[group]) > 1 and reads_what_is_signalled(program, role, group):
                yield 5, Repair(K.CARRY, role, group, 0, 2)
