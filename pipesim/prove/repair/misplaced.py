"""Corrections of instructions that are right but for what they are on: a group, a stage, a slot.

The evidence is what is left alone: a group at which nobody arrives while a role arrives twice on another one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pipesim.model.groups import ON_BARRIER, PARITY_WAITS, TOUCHES_MEMORY
from pipesim.model.instruction import SourceInstruction
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.prove.repair.kinds import NOWHERE, Ranked, Repair, RepairKind
from pipesim.prove.repair.numbers import may_expect
from pipesim.prove.repair.order import gives_back
from pipesim.prove.repair.partners import waited_before
from pipesim.prove.repair.places import uses_in_turn
from pipesim.prove.repair.sites import members, roles_of, sites_of

K = RepairKind
#: What is done on a group excludes that the same role does this on it, too.
_SELF = {"waits": ("gives back", "expects"), "gives back": ("waits",), "expects": ("waits",)}
_MOST_SLOTS = 4  #: by which an access is shifted


def of_groups(program: Program) -> Iterator[Ranked]:
    """Instructions on another group of as many stages, and two groups the wrong way round."""
    sizes = _sizes(program)
    does: defaultdict[str, set[str]] = defaultdict(set)  # by what is done: the groups on which anybody does it
    for role in roles_of(program):
        for done, groups in _on(program, role).items():
            does[done] |= set(groups)
    for role in roles_of(program):
        mine = _on(program, role)
        for done, groups in mine.items():
            for group, sites in groups.items():
                own = {other for other_done in _SELF.get(done, ()) for other in mine.get(other_done, ())}
                others = [
                    other for other in sizes if other not in {*groups, *own} and sizes[other] == sizes[group]
                ]
                for site in sites:
                    for other in others:
                        alone, several = other not in does[done], len(sites) > 1
                        if alone or several:
                            rank = 2 if alone and several else 6
                            yield rank, Repair(K.OTHER_GROUP, role, group, at=site, past=site._replace(about=other))
        for done, at in (("gives back", NOWHERE), ("waits", NOWHERE._replace(op=int(Op.WAIT)))):
            groups = list(mine.get(done, ()))
            for n, one in enumerate(groups):
                for other in groups[n + 1 :]:
                    if sizes[one] == sizes[other]:
                        rank = 2 if done == "gives back" and _is_swapped(program, role, one, other) else 5
                        yield rank, Repair(K.SWAP, role, f"{one},{other}", at=at)


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


def _on(program: Program, role: str) -> dict[str, dict[str, dict[SourceInstruction, None]]]:
    """What a role does on barriers: gives back, waits, expects, copies; on which groups; at which instructions."""
    found: defaultdict[str, defaultdict[str, dict[SourceInstruction, None]]] = defaultdict(lambda: defaultdict(dict))
    for agent in members(program, role):
        for op, site in zip(program.code[agent], program.instructions[agent], strict=True):
            done = _done(op)
            if done:
                found[done][site.about][site] = None
    return {done: dict(groups) for done, groups in found.items()}


def _done(op: Operation) -> str:
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
    slots = {tile.name: tile.slots for tile in program.tiles}
    sizes = _sizes(program)
    for role in roles_of(program):
        for site in sites_of(program, role):
            if site.op == Op.TMA_LOAD:
                several = len(sizes.get(site.about, ()))
            elif site.op in TOUCHES_MEMORY:
                several = slots.get(site.about, 1)
            else:
                continue
            rank = 3 if is_crossed(program, role, site) else 7
            for by in range(1, min(several, _MOST_SLOTS + 1)):
                yield rank, Repair(K.SHIFT, role, site.about, by, at=site)


def is_crossed(program: Program, role: str, site: SourceInstruction) -> bool:
    """True if a copy signals, or an access uses, always another stage than that of the barrier before it."""
    found: list[bool] = []
    for agent in members(program, role):
        stage = -1
        for op, here in zip(program.code[agent], program.instructions[agent], strict=True):
            if here == site:
                slot = program.slot_of(operand(op, "access"))
                mine = program.barriers[operand(op, "barrier")].stage if op[0] == Op.TMA_LOAD else slot
                found.append(-1 not in (stage, mine) and mine != stage)
            elif op[0] in PARITY_WAITS or (op[0] == Op.ARRIVE and operand(op, "expect")):
                stage = program.barriers[operand(op, "barrier")].stage
    return bool(found) and all(found)


def of_turns(program: Program) -> Iterator[Ranked]:
    """Stages and phases that a role begins anew, with every tile for instance, while others go on."""
    sizes = _sizes(program)
    for role in roles_of(program):
        for group in _on(program, role).get("waits", ()):
            if len(sizes[group]) > 1 and not all(uses_in_turn(program, agent, group) for agent in members(program, role)):
                for start in (0, 1):
                    yield 4, Repair(K.CARRY, role, group, start)
                    yield 4, Repair(K.CARRY, role, group, start, 1)
