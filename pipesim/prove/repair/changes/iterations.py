"""Corrections of how often something is executed: in some iterations only, in an iteration too few or too many."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from pipesim.model.edits import Insertion, Listing, insert_operations, move_operation
from pipesim.model.groups import (
    ASKS,
    BY_PARITY,
    CLUSTER,
    LIFE,
    LOOP_MARKS,
    MEETINGS,
    NO_EFFECT,
    ON_BARRIER,
    ON_NAMED_BARRIER,
    PARITY_WAITS,
    TOUCHES_MEMORY,
)
from pipesim.model.ops import Op, OperandName, Operation, operand, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import SourceInstruction
from pipesim.prove.repair.changes.additions import end_of_work, times_signalled, wait_for, waits_in_turn
from pipesim.prove.repair.changes.missing_instructions import waits_for_each
from pipesim.prove.repair.changes.places import in_slot
from pipesim.prove.repair.kinds import MOVING, NOWHERE, SIGNALLING, Ranked, Repair, RepairKind
from pipesim.prove.repair.sites import (
    AgentCode,
    barrier_of,
    begin_of,
    members,
    operations_at,
    ring_of,
    roles_of,
    sites_of,
    stages_of,
)

K = RepairKind
_SIGNALLED = SIGNALLING | {int(Op.FENCE)}
_MOST_IN_BLOCK = 6  #: instructions that are left out together
_ENDS_BLOCK = CLUSTER | {int(Op.WAIT_GROUP)}  #: more waits for groups serialise
_MOST_TRIPS = 2  #: iterations that a loop may have too few or too many


def of_iterations(program: Program) -> Iterator[Ranked]:
    """Instructions and iterations that a role executes too rarely, too often, or in the wrong iteration."""
    yield from _left_out_sometimes(program)
    for role in roles_of(program):  # once after a loop, meant at the end of each iteration
        for op in {site.op: None for site in sites_of(program, role, MEETINGS)}:
            for loop in dict.fromkeys(program.loops):
                yield 5, Repair(K.EVERY_TIME, role, loop, 2, at=NOWHERE._replace(op=op))
    yield from _awaited_too_rarely(program)
    yield from _in_every_iteration(program)
    yield from _in_one_iteration(program)
    yield from _of_trips(program)


def _left_out_sometimes(program: Program) -> Iterator[Ranked]:
    """Instructions that an agent executes less often than the one beside them: in some iterations only."""
    for role in roles_of(program):
        sites = set(sites_of(program, role))
        found: dict[Repair, int] = {}
        for agent in members(program, role):
            placed = [site for site in program.instructions[agent][begin_of(program, agent) :] if site in sites]
            often, me = Counter(placed), AgentCode(program, agent)
            for one, other in dict.fromkeys(pairwise(placed)):
                for before, at, past in ((0, other, one), (1, one, other)):
                    missing = often[past] - often[at]
                    rarely = missing > often[at] and at.op in _SIGNALLED  # once instead of each time
                    if at.op in (MOVING | TOUCHES_MEMORY) - CLUSTER and (0 < missing <= often[at] or rarely):
                        repair = Repair(K.EVERY_TIME, role, at.about, before, at=at, past=past)
                        drains = at.op == Op.WAIT_GROUP and waits_for_each(program, role, int(at.about))
                        rank = 6 if drains else 3 if missing == 1 else 5 if rarely else 4
                        found[repair] = max(rank, 5) if _is_carried(program, _by_turn(me, repair)[2]) else rank
            ways = {0: _neighbours(placed), 1: _neighbours(placed[::-1])}
            for repair in [each for each in found if not each.also]:
                if (block := _block(ways[repair.value], often, repair)) is not None:
                    found.setdefault(block, found[repair])
        late = sorted(found, key=lambda each: each.at.op in PARITY_WAITS and not each.value)  # a wait is before its use
        yield from ((found[repair], repair) for repair in late)


_Neighbours = Mapping[SourceInstruction, set[SourceInstruction]]


def _neighbours(placed: Sequence[SourceInstruction]) -> _Neighbours:
    """What comes right after each instruction."""
    found = defaultdict[SourceInstruction, set[SourceInstruction]](set)
    for one, other in pairwise(placed):
        found[one].add(other)
    return found


def _block(next_to: _Neighbours, often: Counter[SourceInstruction], first: Repair) -> Repair | None:
    """The same of all instructions that are always next to one that is executed sometimes only; None of one."""
    chain = [first]
    while len(chain) < _MOST_IN_BLOCK:
        beside = [*next_to.get(chain[-1].at, ())]
        if len(beside) != 1 or often[following := beside[0]] != often[first.at] or following.op in _ENDS_BLOCK:
            break
        chain.append(replace(first, group=following.about, at=following, past=chain[-1].at))
    return replace(chain[-1], also=tuple(chain[:-1])) if len(chain) > 1 else None


def every_time(me: AgentCode, repair: Repair) -> Listing:
    """The instruction after (``value`` 1: before) every execution of the one at ``past``, with the stage of its turn.

    As it is where the turns in which it is executed now do not tell its stage, its parity or its slot.
    """
    if repair.value == 2:
        return _meeting_each_time(me, repair)
    program, before = me.program, me.same
    turns, there, known = _by_turn(me, repair)
    if _is_carried(program, known):  # what comes first in the ring comes in the first turn
        known = {turn - min(known): op for turn, op in known.items()}
        ops = [known.get(turn) or _of_turn(program, known, turn) for turn in range(len(turns))]
        before = me.replaced({pcs[0]: op for pcs, op in zip(there, ops, strict=True) if pcs and op})
    elif len(known) == 1:
        ((like_at, like),) = known.items()
        ops = [_at_stage_of(program, like, me.code[turns[like_at]], me.code[pc]) for pc in turns]
    else:
        ops = [_of_turn(program, known, turn) for turn in range(len(turns))]
    line = next((before.lines[pc] for pcs in there for pc in pcs), 0)
    missing = zip(turns, there, ops, strict=True)
    new = [Insertion(pc + 1 - repair.value, op, line) for pc, pcs, op in missing if op and not pcs]
    return insert_operations(before, new)


def _by_turn(me: AgentCode, repair: Repair) -> tuple[list[int], list[list[int]], dict[int, Operation]]:
    """Where the instruction at ``past`` is, where the one at ``at`` is in each of its turns, and what it does there."""
    turns = me.at(repair.past)
    bounds = [-1, *turns] if repair.value else [*turns, len(me.sites)]
    there = [[pc for pc in range(a + 1, b) if me.sites[pc] == repair.at] for a, b in pairwise(bounds)]
    return turns, there, {turn: me.code[pcs[0]] for turn, pcs in enumerate(there) if pcs}


def _is_carried(program: Program, known: Mapping[int, Operation]) -> bool:
    """True if signals or waits begin with the first barrier of a ring, but not in a turn of that one."""
    first = min(known, default=0)
    if not first or any(op[0] in TOUCHES_MEMORY or barrier_of(op) < 0 for op in known.values()):
        return False
    at = program.barriers[barrier_of(known[first])]
    stages = sorted(stages_of(program, 0, at.name, at.cta))
    return at.stage == stages[0] and first % len(stages) > 0


def _at_stage_of(program: Program, like: Operation, beside: Operation, now: Operation) -> Operation | None:
    """A signal as the only one that is known, at the stage of what is executed beside it now, if it was so there."""
    if like[0] in BY_PARITY | TOUCHES_MEMORY or barrier_of(like) < 0:
        return like
    at = program.barriers[barrier_of(like)]
    there = stages_of(program, 0, at.name, at.cta).get(_stage_of(program, now))
    return like if there is None or _stage_of(program, beside) != at.stage else with_operand(like, "barrier", there)


def _stage_of(program: Program, op: Operation) -> int:
    if barrier_of(op) >= 0:
        return program.barriers[barrier_of(op)].stage
    return program.slot_of(operand(op, "access")) if op[0] in TOUCHES_MEMORY else -1


def _of_turn(program: Program, known: Mapping[int, Operation], turn: int) -> Operation | None:
    """The operation of a turn: as those of other turns if these are alike, else on the next barrier of the group, in
    the next slot, with the next item; None where the known ones do not follow each other so.
    """
    ops = list(dict.fromkeys(known.values()))
    if len(ops) < 2:
        return ops[0] if ops else None
    (first, like), (second, other) = list(known.items())[:2]
    name: OperandName | None = None
    order: list[int] = []
    if all(barrier_of(op) >= 0 for op in ops):
        name, at = "barrier", program.barriers[barrier_of(like)]
        order = ring_of(program, 0, at.name, at.cta)
    elif all(op[0] in ON_NAMED_BARRIER for op in ops):
        name, order = "named_barrier", sorted({operand(op, "named_barrier") for op in ops})
    elif not all(op[0] in TOUCHES_MEMORY for op in ops):
        return None

    step = 1
    if name is not None and second == first + 1 and {operand(like, name), operand(other, name)} <= set(order):
        step = (order.index(operand(other, name)) - order.index(operand(like, name))) % len(order) or len(order)

    def on_turn(then: int) -> Operation:
        op = like
        if name is not None:
            lap, place = divmod((then - first) * step + order.index(operand(like, name)), len(order))
            op = with_operand(op, name, order[place])
            op = with_operand(op, "parity", (operand(like, "parity") + lap) & 1) if op[0] in BY_PARITY else op
        if op[0] in TOUCHES_MEMORY:
            more = (operand(other, "item") - operand(like, "item")) // (second - first)
            op = with_operand(op, "item", operand(like, "item") + (then - first) * more)
            access = operand(op, "access")
            tile, slot = program.tile_of(program.accesses[access]), program.slot_of(access)
            if tile is not None:
                by = program.slot_of(operand(other, "access")) - slot if second == first + 1 else 1
                op = in_slot(program, op, slot, (slot + (then - first) * by) % tile.slots)
        return op

    return on_turn(turn) if all(on_turn(then) == op for then, op in known.items()) else None


def _meeting_each_time(me: AgentCode, repair: Repair) -> Listing:
    """The meeting right after the only loop of this name at the end of its other iterations as well."""
    loops = list(_loops(me, repair.group))
    if len(loops) != 1:
        return me.same
    end = loops[0][-1].stop + 1
    there = [op for op in me.code[end:] if op[0] not in NO_EFFECT][: 2 if repair.at.op == Op.CLUSTER_ARRIVE else 1]
    if not there or there[0][0] != repair.at.op:
        return me.same
    line = me.same.lines[me.code.index(there[0], end)]
    return insert_operations(me.same, [Insertion(trip.stop, op, line) for trip in loops[0][:-1] for op in there])


def _awaited_too_rarely(program: Program) -> Iterator[Ranked]:
    """Waits of a role for a group that it waits for elsewhere, or tries, and which is signalled more often."""
    for role in roles_of(program):
        agent, sites = members(program, role)[0], sites_of(program, role)
        waits = Counter(barrier_of(op) for op in program.code[agent] if op[0] in PARITY_WAITS)
        for group in dict.fromkeys(site.about for site in sites if site.op in BY_PARITY):
            ring = ring_of(program, agent, group)
            if not any(waits[barrier] for barrier in ring):
                tries = (site for site in sites if site.op in BY_PARITY and site.about == group)
                yield from ((2, Repair(K.AGAIN, role, group, 1, at=site)) for site in tries)
            elif any(times_signalled(program, each) > waits[each] + bool(waits[each]) for each in ring):
                used = (site for site in reversed(sites) if site.op in TOUCHES_MEMORY | ON_NAMED_BARRIER)
                yield from ((4, Repair(K.AGAIN, role, group, at=site)) for site in used)


def waits_again(me: AgentCode, repair: Repair) -> Listing:
    """A wait for the group after each try for it (``value`` 1), or before the first execution of the instruction after
    each of the waits for it, if all of them are stage by stage in turn then.
    """
    order = me.ring(repair.group)
    asks = {pc: op for pc, op in enumerate(me.code) if op[0] in BY_PARITY and barrier_of(op) in order}
    if repair.value:
        waits = ((pc, wait_for(barrier_of(op), operand(op, "parity"))) for pc, op in asks.items())
        return me.inserted(waits, after=True)
    new, turn, waited = list[tuple[int, Operation]](), 0, False
    start = next((operand(op, "parity") for op in asks.values()), 0)
    for pc, site in enumerate(me.sites):
        lap, stage = divmod(turn, max(len(order), 1))
        if pc in asks:
            if (barrier_of(asks[pc]), operand(asks[pc], "parity")) != (order[stage], (start + lap) & 1):
                return me.same
            turn += asks[pc][0] in PARITY_WAITS  # a try belongs to the wait after it
            waited = True
        elif waited and site == repair.at:
            new.append((pc, wait_for(order[stage], start + lap)))
            turn, waited = turn + 1, False
    return me.inserted(new)


def waits_at_the_end(me: AgentCode, repair: Repair) -> Listing:
    """For each stage of the group a wait after the last that the agent does with it, unless it ends with that wait."""
    order, end = me.ring(repair.group), end_of_work(me.code)
    asks = [op for op in me.code if op[0] in PARITY_WAITS and barrier_of(op) in order]
    work = next((pc for pc in range(end - 1, -1, -1) if me.code[pc] not in asks), 0)
    missing, start = len(order) - (end - 1 - work), operand(asks[0], "parity") if asks else 0
    waits = waits_in_turn([end] * missing if asks else (), order, start, turn=len(asks))
    return me.ended(end, (wait for _, wait in waits), work)


def _in_every_iteration(program: Program) -> Iterator[Ranked]:
    """Waits, and arrivals at named barriers, that are executed several times on a barrier that others serve once."""
    for role in roles_of(program):
        for site in sites_of(program, role, PARITY_WAITS | ON_NAMED_BARRIER):
            every = Counter(_barrier_of(op) for op in operations_at(program, role, site)[0])
            served = [max(Counter(_barrier_of(op) for op, here in zip(code, sites, strict=True)
                                  if here != site and op[0] not in ASKS)[barrier]
                          for code, sites in zip(program.code, program.instructions, strict=True))
                      for barrier, times in every.items() if times > 1]  # fmt: skip
            if served and set(served) == {1}:
                yield 3, Repair(K.ONLY_FIRST, role, site.about, at=site)


def _barrier_of(op: Operation) -> tuple[str, int]:
    """The barrier, or the named barrier, that an operation is on; -1 of any other."""
    if op[0] in ON_BARRIER - LIFE:
        return "barrier", barrier_of(op)
    return "named", operand(op, "named_barrier") if op[0] in ON_NAMED_BARRIER else -1


def only_first(me: AgentCode, repair: Repair) -> Listing:
    """Without the instruction where it has been executed on the same barrier before."""
    places = me.at(repair.at)
    first = {_barrier_of(me.code[pc]): pc for pc in reversed(places)}
    return me.deleted(set(places) - set(first.values()))


def _in_one_iteration(program: Program) -> Iterator[Ranked]:
    """Signals and waits that are executed in the last iteration of a loop alone, or in the first."""
    for role in roles_of(program):
        me = AgentCode(program, members(program, role)[0])
        for name in dict.fromkeys(filter(None, program.loops)):
            for trips in _loops(me, name):
                first, last = (Counter(me.sites[pc] for pc in trips[n]) for n in (0, -1))
                for site in dict.fromkeys((*first, *last)) if len(trips) > 1 else ():
                    if site.op in MOVING - CLUSTER and len(me.at(site)) == 1 == first[site] + last[site]:
                        too_late = last[site] and site.op in SIGNALLING
                        yield 3 if too_late else 6, Repair(K.ITERATION, role, name, first[site], at=site)


def in_other_iteration(me: AgentCode, repair: Repair) -> Listing:
    """The instruction at the same place in the first iteration (``value`` 1: the last): after as many of those that
    come right before it.
    """
    sites = me.sites
    for trips in _loops(me, repair.group):
        now, then = (trips[0], trips[-1]) if repair.value else (trips[-1], trips[0])
        at = next((pc for pc in now if sites[pc] == repair.at), -1)
        if at > now.start and now != then:
            turn = sites[now.start : at].count(sites[at - 1])
            places = [pc + 1 for pc in (then.start - 1, *then) if sites[pc] == sites[at - 1] or pc < then.start]
            return move_operation(me.same, at, places[min(turn, len(places) - 1)])
    return me.same


# loops of another length


def _of_trips(program: Program) -> Iterator[Ranked]:
    """Loops of a role that have an iteration more or less than those of the same name in other roles."""
    trips: dict[str, dict[str, int]] = {}
    for role in roles_of(program):
        for begin in program.code[members(program, role)[0]]:
            if begin[0] == Op.LOOP_BEGIN and (name := program.loops[operand(begin, "loop")]):
                trips.setdefault(name, {})[role] = operand(begin, "trips")
    for name, by_role in trips.items():
        alike: dict[int, list[str]] = {}
        for role, mine in by_role.items():
            alike.setdefault(mine, []).append(role)
        for was, roles in alike.items():
            odd = 2 * len(roles) < len(by_role)  # else it may as well be that of the others
            for other, theirs in alike.items():
                past = NOWHERE if odd else NOWHERE._replace(about=" and ".join(theirs))
                if 0 < abs(other - was) <= _MOST_TRIPS:
                    yield 3 if odd else 4, Repair(K.TRIPS, ",".join(roles), name, other - was, past=past)


def of_another_length(me: AgentCode, repair: Repair) -> Listing:
    """The loops of this name with ``value`` iterations more at their end, or fewer; a loop that is executed several
    times only with fewer.
    """
    loops = list(_loops(me, repair.group))
    if repair.value < 0:
        return me.deleted(pc for trips in loops for trip in trips[1:][repair.value :] for pc in trip)
    if len(loops) != 1 or len(loops[0]) < 3:
        return me.same
    alike = [trip for trip in loops[0][1:] if len(trip) == len(loops[0][-1])]
    end, new = alike[-1].stop, list[Insertion]()
    for turn in range(len(alike), len(alike) + repair.value):
        for places in zip(*alike, strict=True):
            op = _of_turn(me.program, {n: me.code[pc] for n, pc in enumerate(places)}, turn)
            if op is None:
                return me.same
            new.append(Insertion(end, op, me.same.lines[places[-1]]))
    return insert_operations(me.same, new)


def _loops(me: AgentCode, name: str) -> Iterator[list[range]]:
    """Of each time that an agent executes a loop of this name the iterations, each with the mark before it."""
    begun: dict[int, list[int]] = {}
    for pc, op in enumerate(me.code):
        if op[0] in LOOP_MARKS and me.program.loops[operand(op, "loop")] == name:
            marks = begun.setdefault(operand(op, "loop"), [])
            if op[0] == Op.LOOP_BEGIN:
                marks.clear()
            marks.append(pc)
            if op[0] == Op.LOOP_END:
                yield [range(one, other) for one, other in pairwise(marks)]
