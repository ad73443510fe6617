"""What a change may do beside what it is for: it serialises, or leaves more bytes that no agent reads.

Serialised are two roles, though the tile by which one hands its data to the other has several slots, and two agents of
one role, be it in two CTAs, that never work at the same time.

Two operations may be carried out at the same time if neither occurs before the other in the run that represents every
schedule. What a correction serialises are those of which no two uses of memory are so any more.
"""

from collections import Counter, defaultdict
from itertools import combinations

from pipesim.model.groups import READS_MEMORY, TOUCHES_MEMORY, WRITES_MEMORY
from pipesim.model.ops import Space, operand
from pipesim.model.program import Program
from pipesim.prove.certificate.canonical import CanonicalRun
from pipesim.prove.counterexample.leftovers import bytes_left
from pipesim.prove.word_order import OccursBefore

MOST_OPERATIONS = 20_000  #: of a program in which this is looked for
_Pair = tuple[str, str]  #: roles, or agents of one role


def serialised(before: Program, after: Program) -> tuple[_Pair, ...]:
    """The pairs that a change keeps from working at the same time: in the program before it they do, or, of roles, it
    hangs. Agents of one role may be meant to take turns.
    """
    if sum(map(len, after.code)) > MOST_OPERATIONS:
        return ()
    roles, agents, _ = _taking_turns(after)
    if not roles and not agents:
        return ()
    roles_before, agents_before, ended = _taking_turns(before)
    found = [each for each in roles if not (ended and each in roles_before)]
    return (*found, *(each for each in agents if ended and each not in agents_before))


def _taking_turns(program: Program) -> tuple[dict[_Pair, None], dict[_Pair, None], bool]:
    """The pairs of roles no two uses of which by several slots of a tile are unordered, and of agents of one role of
    which no two uses are; whether all agents end.
    """
    used: dict[str, dict[str, dict[int, list[int]]]] = {}  # by tile, role and agent
    slots: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    items: defaultdict[tuple[str, str, bool], set[int]] = defaultdict(set)  # written, or read
    touches: list[list[int]] = []
    for agent, code in enumerate(program.code):
        role = program.agents[agent].role
        touches.append([pc for pc, op in enumerate(code) if op[0] in TOUCHES_MEMORY])
        for pc in touches[-1]:
            access = operand(code[pc], "access")
            tile = program.tile_of(program.accesses[access])
            if tile is not None and tile.slots > 1:
                used.setdefault(tile.name, {}).setdefault(role, {}).setdefault(agent, []).append(pc)
                slots[tile.name, role].add(program.slot_of(access))
                items[tile.name, role, code[pc][0] in WRITES_MEMORY].add(operand(code[pc], "item"))
    clocks = OccursBefore(program, ((agent, pc) for agent, pcs in enumerate(touches) for pc in pcs))
    run = CanonicalRun(program, [clocks]).to_end()

    def overlap(a: int, mine: list[int], b: int, theirs: list[int]) -> bool:
        at = 0
        for pc in (pc for pc in mine if (a, pc) in clocks.before):
            while at < len(theirs) and clocks.before[a, pc].covers(b, theirs[at]):
                at += 1
            there = clocks.before.get((b, theirs[at])) if at < len(theirs) else None
            if there is not None and not there.covers(a, pc):
                return True
        return False

    roles: dict[_Pair, None] = {}
    for name, by_role in used.items():
        several = {role: of for role, of in by_role.items()
                   if 1 < len(slots[name, role]) < min(map(len, of.values()))}  # fmt: skip
        for one, other in combinations(several, 2):
            handed = any(items[name, a, True] & items[name, b, False] for a, b in ((one, other), (other, one)))
            pairs = ((a, m, b, t) for a, m in several[one].items() for b, t in several[other].items())
            if handed and not any(overlap(*pair) for pair in pairs):
                roles[one, other] = None
    agents: dict[_Pair, None] = {}
    often = [agent for agent, pcs in enumerate(touches) if len(pcs) > 1]
    for a, b in combinations(often, 2):
        if program.agents[a].role == program.agents[b].role and not overlap(a, touches[a], b, touches[b]):
            agents[program.agent_name(a), program.agent_name(b)] = None
    return roles, agents, run.finished


# bytes that no agent reads: where there are more, a fault is gone with its work


def leaves_more(before: Program, after: Program) -> bool:
    """True if more bytes are written that no agent reads at any time, or are read that none writes, or more of them
    are unread at the end.

    Of the end of a program that hangs nothing is known.
    """
    if any(now > was for now, was in zip(_of_one_side(after), _of_one_side(before), strict=True)):
        return True
    left = bytes_left(before)
    return left is not None and (bytes_left(after) or 0) > left


def _of_one_side(program: Program) -> list[int]:
    """How many bytes of the CTAs' memory operations write and none reads, and how many they read and none writes; then
    the same of accesses that have nothing else, as often as they are executed.
    """
    written, read, bounds = Counter[tuple[int, ...]](), Counter[tuple[int, ...]](), program.cell_bounds
    for op in (op for op in program.operations if op[0] in TOUCHES_MEMORY):
        if program.accesses[operand(op, "access")].space is not Space.GLOBAL:
            used = (cell for each in program.accesses_of(op) for cell in range(*program.cells[each]))
            (read if op[0] in READS_MEMORY else written)[tuple(used)] += 1
    found, often = [], []
    for one, other in ((written, read), (read, written)):
        alone = {cell for used in one for cell in used}.difference(*other)
        found.append(sum(bounds[cell + 1] - bounds[cell] for cell in alone))
        often.append(
            sum(n * (bounds[c + 1] - bounds[c]) for used, n in one.items() if alone.issuperset(used) for c in used)
        )
    return found + often
