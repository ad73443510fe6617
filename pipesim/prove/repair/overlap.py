"""Which roles never work at the same time, though the tile by which one hands its data to the other has several slots.

Two operations may be carried out at the same time if neither occurs before the other in the run that represents every
schedule. What a correction serialises are the roles of which no two uses of the tile are so any more.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

from pipesim.model.groups import TOUCHES_MEMORY, WRITES_MEMORY
from pipesim.model.ops import operand
from pipesim.model.program import Program
from pipesim.prove.certificate.canonical import CanonicalRun
from pipesim.prove.repair.places import tile_of
from pipesim.prove.word_order import OccursBefore

MOST_OPERATIONS = 20_000  #: of a program in which this is looked for
_Roles = tuple[str, str]


def serialised(before: Program, after: Program) -> tuple[_Roles, ...]:
    """The pairs of roles that a change keeps from working at the same time: in the program before it they do, or it
    hangs.
    """
    if sum(map(len, after.code)) > MOST_OPERATIONS:
        return ()
    found, _ = _taking_turns(after)
    was, ended = _taking_turns(before) if found else ({}, True)
    return tuple(each for each in found if not (ended and each in was))


def _taking_turns(program: Program) -> tuple[dict[_Roles, None], bool]:
    """The pairs of roles no two uses of which by several slots of a tile are unordered; whether all agents end."""
    used: dict[str, dict[str, dict[int, list[int]]]] = {}  # by tile, role and agent
    slots: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    items: defaultdict[tuple[str, str, bool], set[int]] = defaultdict(set)  # written, or read
    for agent, code in enumerate(program.code):
        role = program.agents[agent].role
        for pc, op in enumerate(code):
            tile = tile_of(program, program.accesses[operand(op, "access")]) if op[0] in TOUCHES_MEMORY else None
            if tile is not None and tile.slots > 1:
                used.setdefault(tile.name, {}).setdefault(role, {}).setdefault(agent, []).append(pc)
                slots[tile.name, role].add(program.slot_of(operand(op, "access")))
                items[tile.name, role, op[0] in WRITES_MEMORY].add(operand(op, "item"))
    clocks = OccursBefore(program, ((a, pc) for by in used.values() for of in by.values() for a in of for pc in of[a]))
    run = CanonicalRun(program, [clocks])
    run.to_end()

    def overlap(a: int, mine: list[int], b: int, theirs: list[int]) -> bool:
        at = 0
        for pc in (pc for pc in mine if (a, pc) in clocks.before):
            while at < len(theirs) and clocks.before[a, pc].covers(b, theirs[at]):
                at += 1
            there = clocks.before.get((b, theirs[at])) if at < len(theirs) else None
            if there is not None and not there.covers(a, pc):
                return True
        return False

    found: dict[_Roles, None] = {}
    for name, by_role in used.items():
        several = {role: of for role, of in by_role.items()
                   if 1 < len(slots[name, role]) < min(map(len, of.values()))}  # fmt: skip
        for one, other in combinations(several, 2):
            handed = any(items[name, a, True] & items[name, b, False] for a, b in ((one, other), (other, one)))
            pairs = ((a, m, b, t) for a, m in several[one].items() for b, t in several[other].items())
            if handed and not any(overlap(*pair) for pair in pairs):
                found[one, other] = None
    return found, run.finished
