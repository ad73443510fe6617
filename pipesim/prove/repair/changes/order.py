"""Corrections that move operations of an agent, or leave some out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from pipesim.model.edits import Listing, delete_operations, releases, replace_operations, with_expected_bytes
from pipesim.model.groups import (
    ENGINE_ACCESSES,
    ISSUES,
    LIFE,
    ON_BARRIER,
    PARITY_WAITS,
    TOUCHES_MEMORY,
)
from pipesim.model.ops import Engine, Op, Operation, operand
from pipesim.model.tables import SourceInstruction
from pipesim.prove.repair.kinds import Repair
from pipesim.prove.repair.sites import (
    AgentCode,
    barrier_of,
    barriers_of,
    begin_of,
    beside,
    gives_back,
    is_use,
    warp_of,
    works,
)

_ON_MEMORY = (ON_BARRIER | TOUCHES_MEMORY | ISSUES | {int(Op.WAIT_GROUP), int(Op.ENGINE_WORK)}) - LIFE
_HANDS_ON = frozenset({int(Op.TMA_LOAD), int(Op.ARRIVE)}) | ENGINE_ACCESSES


def drop_arrives(me: AgentCode, repair: Repair) -> Listing:
    """Without every arrive on the group (0), without those that repeat the arrive before (1), or one alone of those on
    one barrier between two waits of the agent: the last (2), or of those that expect bytes the first, for all (3); or
    the last of those in a row on one barrier (4).
    """
    mine = set(me.ring(repair.group))
    if repair.value > 1:
        return _one_a_stage(me, mine, expect=repair.value == 3, in_a_row=repair.value == 4)
    found: set[int] = set()
    last: Operation | None = None
    for place, op in enumerate(me.code):
        if (releases(op) or (repair.value and op[0] == Op.ARRIVE)) and barrier_of(op) in mine:
            repeated = last is not None and all(
                operand(op, n) == operand(last, n) for n in ("barrier", "count", "expect")
            )
            last = op
            if repeated or repair.value == 0:
                found.add(place)
        elif not works(op):
            last = None
    return me.deleted(found)


def _one_a_stage(me: AgentCode, mine: set[int], *, expect: bool, in_a_row: bool) -> Listing:
    """Of the signals on each of these barriers between two waits the last, or the first with the bytes of all."""
    kept: dict[int, int] = {}
    nbytes: Counter[int] = Counter()
    found: set[int] = set()
    for place, op in enumerate(me.code):
        barrier = barrier_of(op)
        if op[0] in PARITY_WAITS:
            kept = kept if in_a_row else {}
        elif expect and op[0] == Op.ARRIVE and operand(op, "expect") and barrier in mine:
            first = kept.setdefault(barrier, place)
            nbytes[first] += operand(op, "expect")
            found |= {place} - {first}
        elif not expect and gives_back(op) and barrier in mine:
            kept = kept if barrier in kept or not in_a_row else {}
            found |= {kept.get(barrier, place)} - {place}
            kept[barrier] = place
    at_once = {place: with_expected_bytes(me.code[place], size) for place, size in nbytes.items()}
    return delete_operations(replace_operations(me.same, at_once), found)


def later(me: AgentCode, repair: Repair) -> Listing:
    """Every release of the group after the work that follows it directly; or every bar_arrive at these numbers; or all
    invals at the end.
    """
    if repair.at.op == Op.INVAL:
        return me.reordered(sorted(range(len(me.code)), key=lambda pc: me.code[pc][0] == Op.INVAL))
    mine = set(barriers_of(me.program, repair.group))
    named = set() if mine else set(repair.group.split(","))
    order: list[int] = []
    held: list[int] = []
    for place, op in enumerate(me.code):
        meets = op[0] == Op.BAR_ARRIVE and str(me.program.named_barrier(op)) in named
        if meets or (gives_back(op) and barrier_of(op) in mine):
            first = place
            while order and order[-1] == first - 1 and me.code[first - 1][0] == Op.FENCE:
                first = order.pop()  # it orders what comes before the arrive
            held += range(first, place + 1)
            continue
        if held and not works(op):
            order += held
            held = []
        order.append(place)
    return me.reordered(order + held)


def moved_past(me: AgentCode, repair: Repair) -> Listing:
    """Every operation at ``at`` after the next one at ``past``, if that comes before the next at ``at``; with ``value``
    1 before the last one at ``past``, if that comes after the last at ``at``; with 2 after the last one at ``past``
    before the next at ``at``; with 3 after the last one at ``past`` of the same item; with 4 every signal of the group
    after the last use of its slot of that tile before the slot is filled again.
    """
    match repair.value:
        case 1:
            backward = _past(me.sites[::-1], repair)
            return me.reordered([len(me.code) - 1 - place for place in reversed(backward)])
        case 2:
            return me.reordered(_after_last(me.sites, repair))
        case 3 | 4:
            last = _last_of_item(me, repair) if repair.value == 3 else _last_of_slot(me, repair)
            return me.reordered(_each_after(len(me.code), last))
    return me.reordered(_past(me.sites, repair))


def _last_of_item(me: AgentCode, repair: Repair) -> dict[int, int]:
    """By execution of the instruction the last use of the item in the tile that was used last before it."""
    code, found = me.code, dict[int, int]()
    uses = [pc for pc, site in enumerate(me.sites) if is_use(site, repair.past)]
    for place in me.at(repair.at):
        last = next((pc for pc in reversed(uses) if pc < place), -1)
        same = (pc for pc in reversed(uses) if last >= 0 and operand(code[pc], "item") == operand(code[last], "item"))
        found[place] = max(next(same, place), place)
    return found


def _last_of_slot(me: AgentCode, repair: Repair) -> dict[int, int]:
    """By signal of the group the last use of its slot of the tile before the next wait for that, or the same signal."""
    program, code, sites, found = me.program, me.code, me.sites, dict[int, int]()
    filled: dict[int, set[int]] = {}  # by slot the barriers on which copies to it complete
    tiles = [range(t.offset, t.offset + t.nbytes * t.slots) for t in program.tiles if t.name == repair.past.about]
    for op in (op for op in program.operations if op[0] == Op.TMA_LOAD):
        if any(program.accesses[operand(op, "access")].offset in tile for tile in tiles):
            filled.setdefault(program.slot_of(operand(op, "access")), set()).add(barrier_of(op))
    for place, site in enumerate(sites):
        if (site.op, site.about) != (repair.at.op, repair.group):
            continue
        barrier, last = barrier_of(code[place]), place
        stage = program.barriers[barrier].stage
        for pc in range(place + 1, len(code)):
            again = code[pc][0] in PARITY_WAITS and barrier_of(code[pc]) in filled.get(stage, ())
            if again or (sites[pc] == site and barrier_of(code[pc]) == barrier):
                break
            if is_use(sites[pc], repair.past) and program.slot_of(operand(code[pc], "access")) == stage:
                last = pc
        ends = sites[last].op in ENGINE_ACCESSES and operand(code[last], "engine") != Engine.TCGEN05
        found[place] = _wait_for_groups(sites, last, len(sites)) if ends else last
    return found


def _wait_for_groups(sites: Sequence[SourceInstruction], begin: int, end: int) -> int:
    """The next wait for groups, by which a transfer ends; itself without one."""
    return next((n for n in range(begin, end) if sites[n].op == Op.WAIT_GROUP), begin)


def _each_after(count: int, last: Mapping[int, int]) -> list[int]:
    """The order in which some places come after others."""
    moved: dict[int, list[int]] = {}
    for place, end in last.items():
        moved.setdefault(end, []).append(place)
    held = {place for place, end in last.items() if place != end}
    order = ([*([pc] if pc not in held else []), *(p for p in moved.get(pc, ()) if p != pc)] for pc in range(count))
    return [pc for each in order for pc in each]


def _past(sites: Sequence[SourceInstruction], repair: Repair) -> list[int]:
    moved: dict[int, int] = {}  # after which place comes which
    at = -1
    for place, site in enumerate(sites):
        if site == repair.at:
            at = place
        elif site == repair.past and at >= 0:
            moved[at], at = place, -1
    return _each_after(len(sites), moved)


def _after_last(sites: Sequence[SourceInstruction], repair: Repair) -> list[int]:
    order: list[int] = []
    ends = [place for place, site in enumerate(sites) if site == repair.at] + [len(sites)]
    begin = _begins_a_lap(sites, ends[:-1])
    for place, end in pairwise(ends):
        uses = [n for n in range(place + 1, end) if is_use(sites[n], repair.past)]
        lap = next((n for n in range(place + 1, end) if sites[n] == begin), end)  # the next one
        last = max((n for n in uses if n < lap), default=place if lap < end else max(uses, default=place))
        last = _wait_for_groups(sites, last, end) if sites[last].op in ENGINE_ACCESSES else last
        order += [*range(place + 1, last + 1), place, *range(last + 1, end)]
    return [*range(ends[0]), *order]


def _begins_a_lap(sites: Sequence[SourceInstruction], signals: Sequence[int]) -> SourceInstruction | None:
    """The first wait that comes once between any two of these signals, which are at those places; None without one."""
    laps = [Counter(s for s in sites[a:b] if s.op in PARITY_WAITS) for a, b in pairwise(signals)]
    return next((s for s in sites if laps and all(lap[s] == 1 for lap in laps)), None)


def omit_instruction(me: AgentCode, repair: Repair) -> Listing:
    """Without the instruction, or (``value`` 1) the first time; without all inits or invals where none is named."""
    if not repair.at.op or (repair.at.op == Op.INVAL and not repair.at.about):
        every = repair.at.op or Op.INIT
        return me.deleted(pc for pc, op in enumerate(me.code) if op[0] == every)
    places = me.at(repair.at)
    return me.deleted(places[: len(places) > 1] if repair.value else places)


def once(me: AgentCode, repair: Repair) -> Listing:
    """Without the repetitions of an instruction: every lane of the warp makes it."""
    return me.deleted(pc for pc in me.at(repair.at) if pc and me.code[pc] == me.code[pc - 1])


def inside(me: AgentCode, repair: Repair) -> Listing:
    """Without the instruction in lanes of a warp other than the one that does most for others: copies, arrives."""
    code = me.program.code
    elected = max(warp_of(me.program, me.agent), key=lambda n: (sum(op[0] in _HANDS_ON for op in code[n]), -n))
    return me.same if me.agent == elected else omit_instruction(me, repair)


def of_one_warp(me: AgentCode, _: Repair) -> Listing:
    """Without all that a warp does on mbarriers and memory after the prologue, in all warps of a role but the first."""
    if me.agent == beside(me.program, me.agent)[0]:
        return me.same
    begin = begin_of(me.program, me.agent)
    return me.deleted(pc for pc in range(begin, len(me.code)) if me.code[pc][0] in _ON_MEMORY)


def left_out(me: AgentCode, repair: Repair) -> Listing:
    """Without the waits for the group after which the agent touches no memory and arrives nowhere until the next."""
    mine = set(me.ring(repair.group))
    waits = [pc for pc, op in enumerate(me.code) if op[0] in PARITY_WAITS and barrier_of(op) in mine]
    idle = {
        at
        for at, end in pairwise([*waits, len(me.code)])
        if not any(op[0] in TOUCHES_MEMORY or gives_back(op) or op[0] == Op.ARRIVE for op in me.code[at:end])
    }
    return me.deleted(idle) if idle == set(waits) else me.same
