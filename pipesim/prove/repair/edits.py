"""Corrections of a protocol as changes of a flat program: a closed list, each of a role, a group or an instruction.

A correction changes every iteration alike. It is named by roles, groups of barriers and source lines, not by positions:
what corrects the smallest program that fails can be tried on the one that was asked for.
"""

from collections.abc import Callable
from dataclasses import replace

from pipesim.errors import PipesimError
from pipesim.model.edits import Listing, with_listings
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.prove.repair.changes import (
    additions,
    iterations,
    joint_actions,
    left_over,
    operand_changes,
    order,
    places,
)
from pipesim.prove.repair.changes.operand_changes import multicasts
from pipesim.prove.repair.kinds import OF_WORDS, Repair, RepairKind
from pipesim.prove.repair.sites import AgentCode, gives_back, members

K = RepairKind
_MEETS = frozenset({K.SYNC, K.PRIME, K.WARP_SYNC, K.NUMBER, K.AFTER_INIT})


def apply_repair(program: Program, repair: Repair) -> Program | None:
    """The program with this correction, None if it changes nothing or makes no program."""
    if repair.also:
        found = None
        for part in (*repair.also, replace(repair, also=())):
            found = apply_repair(found or program, part) or found
        return found
    if repair.kind in OF_WORDS:
        return None  # of which a flat program has none
    if repair.kind is K.COUNT_IN:
        return _counted_in(program, repair)
    change = _of_agent(repair)
    program = _with_tables(program, repair, slots=change is places.shifted_slot)
    listings = {agent: change(AgentCode(program, agent), repair) for agent in members(program, repair.role)}
    if all(after.code == program.code[agent] for agent, after in listings.items()):
        return None
    try:
        return with_listings(program, listings)
    except PipesimError:
        return None


def place_of(program: Program, repair: Repair) -> str:
    """The author's line that a correction is about, "" if none."""
    after = None if repair.at.line else apply_repair(program, repair)
    for agent, (before, now) in enumerate(zip(program.code, after.code, strict=True) if after is not None else ()):
        if before != now:
            places = enumerate(zip(before, now, strict=False))
            first = next((n for n, (one, other) in places if one != other), min(len(before), len(now)))
            if repair.kind is K.LATER:
                given = (n for n, op in enumerate(before) if gives_back(op))
                first = next((n for n in given if program.instructions[agent][n].about == repair.group), first)
            return (after if after and len(now) > len(before) else program).line(agent, first)
    return repair.at.line.partition("\n")[0]


def _of_agent(repair: Repair) -> Callable[[AgentCode, Repair], Listing]:
    """What makes the corrected operations of one agent."""
    if repair.kind in (K.SHIFT, K.STAGES) and repair.is_on_slot:
        return places.shifted_slot
    if repair.kind is K.STAGES and repair.at.op:
        return places.in_turn_at
    if repair.kind is K.PRIME and not repair.value:
        return additions.first_arrives
    if repair.kind is K.PRIME:
        return additions.arrives_in_loop if repair.at.op else joint_actions.prime_meetings
    return operand_changes.of_operand if repair.kind in operand_changes.CHANGES else _CHANGES[repair.kind]


_CHANGES: dict[RepairKind, Callable[[AgentCode, Repair], Listing]] = {
    K.PHASES: operand_changes.in_turn,
    K.STAGES: operand_changes.in_turn,
    K.LAPS: operand_changes.in_laps,
    K.CARRY: places.carried_on,
    K.PART: places.own_part,
    K.OTHER_GROUP: places.other_group,
    K.SWAP: places.swap_groups,
    K.OTHER_CTA: places.other_cta,
    K.OTHER_PLACE: left_over.elsewhere,
    K.TRY: left_over.tries_what_it_awaits,
    K.ONE_WARP: order.of_one_warp,
    K.DROP: order.drop_arrives,
    K.LATER: order.later,
    K.MOVE: order.moved_past,
    K.OMIT: order.omit_instruction,
    K.ONCE: order.once,
    K.INIT: additions.add_inits,
    K.INSIDE: order.inside,
    K.LEAVE_OUT: order.left_out,
    K.ARRIVE: additions.add_arrives,
    K.TAIL: additions.at_the_end,
    K.ACQUIRE: additions.add_waits,
    K.FENCE: additions.add_fences,
    K.GROUP_WAIT: additions.waiting_for_groups,
    K.CLOSE: additions.add_commits,
    K.EVERY_TIME: iterations.every_time,
    K.ONLY_FIRST: iterations.only_first,
    K.AGAIN: iterations.waits_again,
    K.DRAIN: iterations.waits_at_the_end,
    K.ITERATION: iterations.in_other_iteration,
    K.TRIPS: iterations.of_another_length,
    K.EVERY_WARP: joint_actions.like_the_others,
    K.OUTSIDE: joint_actions.like_the_others,
    K.PEERS: joint_actions.to_every_cta,
    K.SYNC: joint_actions.add_meetings,
    K.WARP_SYNC: joint_actions.meeting_of_lanes,
    K.BOTH: additions.both_halves,
    K.NUMBER: joint_actions.own_number,
    K.CLUSTER_END: joint_actions.at_the_cluster,
    K.AFTER_INIT: joint_actions.after_init,
}


def _counted_in(program: Program, repair: Repair) -> Program | None:
    """All agents of the role arrive on the group, and its count is that of all who arrive."""
    kind = K.EVERY_WARP if repair.at.op else K.ARRIVE
    arrives = apply_repair(program, replace(repair, kind=kind, value=int(bool(repair.at.op)), was=-1))
    counts = Repair(K.COUNT, "", repair.group, repair.value, repair.was)
    return None if arrives is None else apply_repair(arrives, counts)


def _with_tables(program: Program, repair: Repair, *, slots: bool) -> Program:
    """The program with what a correction names in its tables: bytes, of a multicast in every CTA, and meetings."""
    if repair.kind is K.MASK:
        ops = (op for op in program.operations if op[0] == Op.TMA_LOAD and multicasts(program, op, repair))
        copied = dict.fromkeys(program.accesses[operand(op, "access")] for op in ops)
        everywhere = (replace(each, cta=rank) for each in copied for rank in range(program.ctas))
        return replace(program, accesses=tuple(dict.fromkeys((*program.accesses, *everywhere))))
    if repair.kind is K.OTHER_PLACE:
        return left_over.with_bytes(program, repair)
    if repair.kind in _MEETS:
        return joint_actions.with_meetings(program, repair)
    return places.with_slots(program, repair) if slots or repair.kind in (K.CARRY, K.PART) else program
