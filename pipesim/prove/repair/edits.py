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
    numbers,
    order,
    partners,
    places,
)
from pipesim.prove.repair.kinds import OF_WORDS, Repair, RepairKind
from pipesim.prove.repair.sites import members

_MEETS = frozenset({RepairKind.SYNC, RepairKind.PRIME, RepairKind.WARP_SYNC, RepairKind.NUMBER, RepairKind.AFTER_INIT})


def apply_repair(program: Program, repair: Repair) -> Program | None:
    """The program with this correction, None if it changes nothing or makes no program."""
    found = None
    for part in (*repair.also, replace(repair, also=())) if repair.also else ():
        found = apply_repair(found or program, part) or found
    if repair.also:
        return found
    if repair.kind in OF_WORDS:
        return None  # of which a flat program has none
    if repair.kind is RepairKind.COUNT_IN:
        return _counted_in(program, repair)
    if repair.kind is RepairKind.MASK:
        program = _with_places(program, repair)
    if repair.kind is RepairKind.OTHER_PLACE:
        program = left_over.with_bytes(program, repair)
    if repair.kind in _MEETS:
        program = joint_actions.with_meetings(program, repair)
    change = _of_agent(repair)
    if repair.kind in (RepairKind.CARRY, RepairKind.PART) or change is places.shifted_slot:
        program = places.with_slots(program, repair)
    listings = {agent: change(program, agent, repair) for agent in members(program, repair.role)}
    if all(after.code == program.code[agent] for agent, after in listings.items()):
        return None
    try:
        return with_listings(program, listings)
    except PipesimError:
        return None


def place_of(program: Program, repair: Repair) -> str:
    """The author's line that a correction is about, "" if none."""
    if repair.at.line:
        return repair.at.line.partition("\n")[0]
    after = apply_repair(program, repair)
    if after is None:
        return ""
    for agent, (before, now) in enumerate(zip(program.code, after.code, strict=True)):
        if before != now:
            pairs = enumerate(zip(before, now, strict=False))
            first = next((n for n, (one, other) in pairs if one != other), min(len(before), len(now)))
            if repair.kind is RepairKind.LATER:
                given = (n for n, op in enumerate(before) if order.gives_back(op))
                first = next((n for n in given if program.instructions[agent][n].about == repair.group), first)
            return (after if len(now) > len(before) else program).line(agent, first)
    return ""


def _of_agent(repair: Repair) -> Callable[[Program, int, Repair], Listing]:
    """What makes the corrected operations of one agent."""
    if repair.kind in (RepairKind.SHIFT, RepairKind.STAGES) and repair.is_on_slot:
        return places.shifted_slot
    if repair.kind is RepairKind.STAGES and repair.at.op:
        return places.in_turn_at
    if repair.kind is RepairKind.PRIME and not repair.value:
        return partners.first_arrives
    if repair.kind is RepairKind.PRIME:
        return partners.arrives_in_loop if repair.at.op else joint_actions.prime_meetings
    return numbers.of_operand if repair.kind in numbers.CHANGES else _CHANGES[repair.kind]


_CHANGES: dict[RepairKind, Callable[[Program, int, Repair], Listing]] = {
    RepairKind.PHASES: numbers.in_turn,
    RepairKind.STAGES: numbers.in_turn,
    RepairKind.LAPS: numbers.in_laps,
    RepairKind.CARRY: places.carried_on,
    RepairKind.PART: places.own_part,
    RepairKind.OTHER_GROUP: places.other_group,
    RepairKind.SWAP: places.swap_groups,
    RepairKind.OTHER_CTA: places.other_cta,
    RepairKind.OTHER_PLACE: left_over.elsewhere,
    RepairKind.TRY: left_over.tries_what_it_awaits,
    RepairKind.ONE_WARP: order.of_one_warp,
    RepairKind.DROP: order.drop_arrives,
    RepairKind.LATER: order.later,
    RepairKind.MOVE: order.moved_past,
    RepairKind.OMIT: order.omit_instruction,
    RepairKind.ONCE: order.once,
    RepairKind.INIT: additions.add_inits,
    RepairKind.INSIDE: order.inside,
    RepairKind.LEAVE_OUT: order.left_out,
    RepairKind.ARRIVE: additions.add_arrives,
    RepairKind.TAIL: additions.at_the_end,
    RepairKind.ACQUIRE: additions.add_waits,
    RepairKind.FENCE: additions.add_fences,
    RepairKind.GROUP_WAIT: additions.waiting_for_groups,
    RepairKind.CLOSE: additions.add_commits,
    RepairKind.EVERY_TIME: iterations.every_time,
    RepairKind.ONLY_FIRST: iterations.only_first,
    RepairKind.AGAIN: iterations.waits_again,
    RepairKind.DRAIN: iterations.waits_at_the_end,
    RepairKind.ITERATION: iterations.in_other_iteration,
    RepairKind.TRIPS: iterations.of_another_length,
    RepairKind.EVERY_WARP: joint_actions.like_the_others,
    RepairKind.OUTSIDE: joint_actions.like_the_others,
    RepairKind.PEERS: joint_actions.to_every_cta,
    RepairKind.SYNC: joint_actions.add_meetings,
    RepairKind.WARP_SYNC: joint_actions.meeting_of_lanes,
    RepairKind.BOTH: partners.both_halves,
    RepairKind.NUMBER: joint_actions.own_number,
    RepairKind.CLUSTER_END: joint_actions.at_the_cluster,
    RepairKind.AFTER_INIT: joint_actions.after_init,
}


def _counted_in(program: Program, repair: Repair) -> Program | None:
    """All agents of the role arrive on the group, and its count is that of all who arrive."""
    kind = RepairKind.EVERY_WARP if repair.at.op else RepairKind.ARRIVE
    arrives = apply_repair(program, replace(repair, kind=kind, value=int(bool(repair.at.op)), was=-1))
    if arrives is None:
        return None
    return apply_repair(arrives, Repair(RepairKind.COUNT, "", repair.group, repair.value, repair.was))


def _with_places(program: Program, repair: Repair) -> Program:
    """The program with the bytes at which the multicasts may land in every CTA, so that they can be named."""
    known = dict.fromkeys(program.accesses)
    for op in program.operations:
        if op[0] == Op.TMA_LOAD and numbers.multicasts(program, op, repair):
            place = program.accesses[operand(op, "access")]
            known |= dict.fromkeys(replace(place, cta=rank) for rank in range(program.ctas))
    return replace(program, accesses=tuple(known))
