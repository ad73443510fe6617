"""Single corrections of a protocol, as changes of a flat program: a closed list, each of a whole role or group.

A mistake of a protocol is made in every lap, so a correction changes every lap. It is named by roles and groups of
barriers, not by positions: what fixes the smallest program that fails can be tried on the one that was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from enum import Enum
from typing import assert_never

from pipesim.errors import PipesimError
from pipesim.model.edits import (
    Insertion,
    Listing,
    changed,
    deleted,
    expecting,
    inserted,
    listing,
    rearranged,
    releases,
    with_listings,
)
from pipesim.model.groups import (
    ACCESSES,
    BRANCHES,
    BY_PARITY,
    COMMITS,
    ENDS_READS,
    ENGINE_ACCESSES,
    HANDS_ON,
    LOOP_MARKS,
    ON_NAMED_BARRIER,
    OWN_WRITES,
    PARITY_WAITS,
    SEES_READS_END,
    STAGE_WORK,
)
from pipesim.model.ops import Fence, Op, Operation, operand, with_operand
from pipesim.model.positions import FENCE
from pipesim.model.program import Program


class RepairKind(Enum):
    """What is changed."""

    COUNT = "count"  #: the count of a group's inits
    EXPECT = "expect"  #: the bytes that a role expects
    PHASES = "phases"  #: the parities of a role's waits: the first, then the other one at every lap
    STAGES = "stages"  #: the same, and its stages, one after the other
    ARRIVE = "arrive"  #: a role arrives at the end of its work on a stage
    DROP = "drop"  #: an arrive is left out
    STAY = "stay"  #: a role arrives without dropping out of the barrier
    LATER = "later"  #: an arrive comes after the reads and writes that follow it
    ACQUIRE = "acquire"  #: a role waits before it uses a stage
    THREADS = "threads"  #: the number of threads at a named barrier
    DEPTH = "depth"  #: how many groups of transfers a role leaves under way when it waits for them
    FENCE = "fence"  #: a proxy fence: of a reader before it signals (0), of a writer after its waits (1)
    MASK = "mask"  #: the CTAs of a role's multicasts
    LAPS = "laps"  #: the parities of all waits of all roles: the first as it is, then the other one at every lap


@dataclass(frozen=True)
class Repair:
    """One correction: its kind, the role ("" for all), the group of barriers, and a number.

    ``value`` is the count, the bytes, the threads or the mask of CTAs, the parity of the first lap, or which of several
    arrives on a barrier in a row (0 the first); ``was`` is what it was, -1 where that is not a number. A named barrier
    is its number.
    """

    kind: RepairKind
    role: str
    group: str
    value: int = 0
    was: int = -1


def repaired(program: Program, repair: Repair) -> Program | None:
    """The program with this correction, None if it changes nothing or makes no program."""
    if repair.kind is RepairKind.MASK:
        program = _with_places(program, repair)
    listings = {
        agent: _applied(program, agent, repair)
        for agent in range(len(program.agents))
        if repair.role in ("", program.agents[agent].role)
    }
    if all(after.code == program.code[agent] for agent, after in listings.items()):
        return None
    try:
        return with_listings(program, listings)
    except PipesimError:
        return None


def _with_places(program: Program, repair: Repair) -> Program:
    """The program with the bytes at which the multicasts land in every CTA of the mask, so that they can be named."""
    known = dict.fromkeys(program.accesses)
    for code in program.code:
        for op in code:
            if _multicasts(program, op, repair.group):
                place = program.accesses[operand(op, "access")]
                ranks = (rank for rank in range(program.ctas) if repair.value >> rank & 1)
                known |= dict.fromkeys(replace(place, cta=rank) for rank in ranks)
    return replace(program, accesses=tuple(known))


def _multicasts(program: Program, op: Operation, group: str) -> bool:
    """True for a multicast that is counted on barriers of this group."""
    copies = op[0] == Op.TMA_LOAD and operand(op, "cta_mask") > 0
    return copies and program.barriers[operand(op, "barrier")].name == group


def place_of(program: Program, repair: Repair) -> str:
    """The author's line that a correction is about, "" if none."""
    after = repaired(program, repair)
    if after is None:
        return ""
    for agent, (before, now) in enumerate(zip(program.code, after.code, strict=True)):
        if before != now:
            pairs = enumerate(zip(before, now, strict=False))
            first = next((n for n, (one, other) in pairs if one != other), min(len(before), len(now)))
            return (after if len(now) > len(before) else program).line(agent, first)
    return ""


def _applied(program: Program, agent: int, repair: Repair) -> Listing:
    """The operations of one agent, changed."""
    before = listing(program, agent)
    stages = _stages(program, agent, repair.group)
    mine = set(stages.values())
    match repair.kind:
        case RepairKind.COUNT:
            inits = set(barriers_of(program, repair.group))
            return _each(
                before,
                lambda op: op[0] == Op.INIT and operand(op, "barrier") in inits,
                lambda op: with_operand(op, "count", repair.value),
            )
        case RepairKind.EXPECT:
            copied = {operand(op, "barrier") for op in before.code if op[0] == Op.TMA_LOAD}
            return _each(
                before,
                lambda op: may_expect(op, copied) and operand(op, "barrier") in mine,
                lambda op: expecting(op, repair.value),
            )
        case RepairKind.THREADS:
            named = {n for n, barrier in enumerate(program.named_barriers) if str(barrier[1]) == repair.group}
            return _each(
                before,
                lambda op: op[0] in ON_NAMED_BARRIER and operand(op, "named_barrier") in named,
                lambda op: with_operand(op, "threads", repair.value),
            )
        case RepairKind.DEPTH:
            engine = int(repair.group)
            return _each(
                before,
                lambda op: op[0] == Op.WAIT_GROUP and operand(op, "engine") == engine,
                lambda op: with_operand(op, "groups", repair.value),
            )
        case RepairKind.MASK:
            return _each(
                before,
                lambda op: _multicasts(program, op, repair.group),
                lambda op: with_operand(op, "cta_mask", repair.value),
            )
        case RepairKind.STAY:
            drops = Op.ARRIVE_DROP
            return _each(
                before,
                lambda op: op[0] == drops and operand(op, "barrier") in mine,
                lambda op: (int(Op.ARRIVE), *op[1:]),
            )
        case RepairKind.PHASES | RepairKind.STAGES:
            return _in_turn(before, stages, repair)
        case RepairKind.LAPS:
            return _in_laps(before)
        case RepairKind.FENCE:
            return _fencing(before, *(_FENCE_BEFORE_WRITES if repair.value else _FENCE_AFTER_READS))
        case RepairKind.DROP:
            return _without(before, mine, repair.value)
        case RepairKind.LATER:
            return _later(before, mine)
        case RepairKind.ARRIVE:
            return _arriving(program, before, stages)
        case RepairKind.ACQUIRE:
            return _acquiring(program, before, stages, repair.value)
        case _:
            assert_never(repair.kind)


def _each(before: Listing, wanted: Callable[[Operation], bool], change: Callable[[Operation], Operation]) -> Listing:
    return changed(before, {place: change(op) for place, op in enumerate(before.code) if wanted(op)})


def _works(op: Operation) -> bool:
    """True for what an agent does with a stage, which can stand between its wait and its release."""
    return op[0] in STAGE_WORK and not (op[0] in COMMITS and operand(op, "barrier") >= 0)


def may_expect(op: Operation, copied: set[int]) -> bool:
    """True for what expects bytes, and for an arrive on a barrier of the agent's own copies, which could."""
    return op[0] == Op.EXPECT_TX or (
        op[0] == Op.ARRIVE and (operand(op, "expect") > 0 or operand(op, "barrier") in copied)
    )


def barriers_of(program: Program, group: str) -> list[int]:
    """The barriers of a group, in all CTAs."""
    return [n for n, barrier in enumerate(program.barriers) if barrier.name == group]


def _stages(program: Program, agent: int, group: str) -> dict[int, int]:
    """The barriers of a group in the agent's CTA, by stage."""
    cta = program.agents[agent].cta
    return {b.stage: n for n, b in enumerate(program.barriers) if (b.name, b.cta) == (group, cta)}


# the changes


def _in_turn(before: Listing, stages: dict[int, int], repair: Repair) -> Listing:
    """Every wait on the group with the parity that its turn has; with STAGES also on the stage that it has."""
    mine, order = set(stages.values()), [stages[stage] for stage in sorted(stages)]
    turns: Counter[int] = Counter()
    all_turns = 0
    found: dict[int, Operation] = {}
    for place, op in enumerate(before.code):
        if op[0] not in BY_PARITY or operand(op, "barrier") not in mine:
            continue
        if repair.kind is RepairKind.STAGES:
            barrier, lap = order[all_turns % len(order)], all_turns // len(order)
        else:
            barrier, lap = operand(op, "barrier"), turns[operand(op, "barrier")]
        found[place] = with_operand(with_operand(op, "barrier", barrier), "parity", (repair.value + lap) & 1)
        if op[0] in PARITY_WAITS:  # a try belongs to the wait after it
            turns[operand(op, "barrier")] += 1
            all_turns += 1
    return changed(before, found)


def _in_laps(before: Listing) -> Listing:
    """Every wait with the parity of its turn; the first on each barrier keeps the one that it has."""
    turns: dict[int, int] = {}
    found: dict[int, Operation] = {}
    for place, op in enumerate(before.code):
        if op[0] in BY_PARITY:
            turn = turns.setdefault(operand(op, "barrier"), operand(op, "parity"))
            found[place] = with_operand(op, "parity", turn)
            if op[0] in PARITY_WAITS:
                turns[operand(op, "barrier")] = 1 - turn
    return changed(before, found)


_FENCE_AFTER_READS = ENDS_READS, HANDS_ON
_FENCE_BEFORE_WRITES = SEES_READS_END, OWN_WRITES


def _fencing(before: Listing, after: Set[int], until: Set[int]) -> Listing:
    """A proxy fence between each operation of ``after`` and the next one of ``until``, where there is none."""
    found: list[Insertion] = []
    line = -1
    for place, op in enumerate(before.code):
        if line >= 0 and op[0] in until:
            at = before.lines[place] if op[0] in OWN_WRITES else line
            found.append(Insertion(place, (int(Op.FENCE), int(Fence.PROXY_ASYNC), 0), at))
            line = -1
        if op[0] == Op.FENCE and op[FENCE] == Fence.PROXY_ASYNC:
            line = -1
        elif op[0] in after:
            line = before.lines[place]
    return inserted(before, found)


def _without(before: Listing, mine: set[int], nth: int) -> Listing:
    """Without every arrive on the group (0), or without those that repeat the arrive before (1)."""
    found: set[int] = set()
    last: Operation | None = None
    for place, op in enumerate(before.code):
        if releases(op) and operand(op, "barrier") in mine:
            repeated, last = op == last, op
            if repeated or nth == 0:
                found.add(place)
        elif not _works(op):
            last = None
    return deleted(before, found)


def _later(before: Listing, mine: set[int]) -> Listing:
    """Every arrive on the group after the accesses that follow it directly."""
    order: list[int] = []
    held: list[int] = []
    for place, op in enumerate(before.code):
        if releases(op) and operand(op, "barrier") in mine:
            held.append(place)
            continue
        if held and not _works(op):
            order += held
            held = []
        order.append(place)
    return rearranged(before, order + held)


def _arriving(program: Program, before: Listing, stages: dict[int, int]) -> Listing:
    """An arrive on the group at the end of each piece of work that begins with a wait for another group of its stages.

    Where the piece has such an arrive already it stays as it is.
    """
    mine = set(stages.values())
    like = next((op for code in program.code for op in code if releases(op)), None)
    tail = like[3:] if like is not None else (0, -1, 0)
    count = Counter(operand(op, "count") for op in before.code if releases(op)).most_common(1)
    found: list[Insertion] = []
    due, line, used = -1, 0, False

    def arrive(place: int) -> Insertion:
        return Insertion(place, (int(Op.ARRIVE), due, count[0][0] if count else 1, *tail), line)

    for place, op in enumerate(before.code):
        begins = (
            op[0] in PARITY_WAITS
            and operand(op, "barrier") not in mine
            and program.barriers[operand(op, "barrier")].stage in stages
        )
        if (begins or op[0] in LOOP_MARKS) and due >= 0 and used:
            found.append(arrive(place))
            due = -1
        if begins:
            due, used = stages[program.barriers[operand(op, "barrier")].stage], False
        elif op[0] in ACCESSES | ENGINE_ACCESSES:
            used, line = True, before.lines[place]
        elif op[0] == Op.ARRIVE and operand(op, "barrier") in mine:
            due = -1
    if due >= 0 and used:
        found.append(arrive(len(before.code)))
    return inserted(before, found)


def _acquiring(program: Program, before: Listing, stages: dict[int, int], start: int) -> Listing:
    """A wait for the group before each piece of work that ends with an arrive on another group of its stages."""
    if any(op[0] in BRANCHES for op in before.code):
        return before
    mine = set(stages.values())
    like = next((op for code in program.code for op in code if op[0] == Op.WAIT), None)
    tail = like[3:] if like is not None else (0,)
    turns: Counter[int] = Counter()
    found: dict[int, Insertion] = {}
    for place, op in enumerate(before.code):
        anchors = (
            op[0] == Op.ARRIVE
            and operand(op, "barrier") not in mine
            and program.barriers[operand(op, "barrier")].stage in stages
        )
        if anchors:
            barrier = stages[program.barriers[operand(op, "barrier")].stage]
            here = place
            while here and here not in found and _works(before.code[here - 1]):
                here -= 1
            wait = (int(Op.WAIT), barrier, (start + turns[barrier]) & 1, *tail)
            found[here] = Insertion(here, wait, before.lines[place])
            turns[barrier] += 1
    return inserted(before, found.values())
