"""Corrections of what several agents do together: warps of a role, lanes of a warp, threads that meet."""

from collections import Counter
from dataclasses import replace

from pipesim.model.edits import Insertion, Listing, insert_operations, listing, replace_operations
from pipesim.model.groups import BRANCHES, LOOP_MARKS, ON_BARRIER, ON_NAMED_BARRIER
from pipesim.model.ops import Fence, Op, Operation, Scope, operand, ranks, semantics, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import NAMED_BARRIERS, SourceInstruction
from pipesim.prove.repair.changes.arithmetic import WARP, warpgroups
from pipesim.prove.repair.changes.order import gives_back, is_use
from pipesim.prove.repair.kinds import OF_COPIES, Repair, RepairKind
from pipesim.prove.repair.sites import barriers_of, begin_of, is_at, members, numbers_of, site_of, threads_of, warp_of

_CLUSTER, _INIT = semantics(scope=Scope.CLUSTER), Fence.MBARRIER_INIT


# warps and lanes that do what another one does


def like_the_others(program: Program, agent: int, repair: Repair) -> Listing:
    """The instruction as another agent executes it, of the role or (OUTSIDE) of the warp, in one that does not.

    In another CTA it is on that CTA's own barrier; with ``value`` on the same one.
    """
    before = listing(program, agent)
    if any(is_at(site_of(program, agent, pc), repair.at) for pc in range(len(before.code))):
        return before
    pool = warp_of(program, agent) if repair.kind is RepairKind.OUTSIDE else members(program, repair.role)
    donors = [other for other in pool if other != agent and _has(program, other, repair.at)]
    if not donors:
        return before
    cta = program.agents[agent].cta
    donor = min(donors, key=lambda other: (program.agents[other].cta != cta, other))
    mine = [site_of(program, agent, pc) for pc in range(len(before.code))]
    theirs = [site_of(program, donor, pc) for pc in range(len(program.code[donor]))]
    places: dict[tuple[SourceInstruction, int], int] = {}
    seen: Counter[SourceInstruction] = Counter()
    for pc, site in enumerate(mine):
        places[site, seen[site]] = pc
        seen[site] += 1
    seen.clear()
    last = begin_of(program, agent) - 1
    found: list[Insertion] = []
    for pc, site in enumerate(theirs):
        if is_at(site, repair.at):
            there = program.agents[donor].cta if not repair.value else cta
            op = _at_home(program, program.code[donor][pc], there, cta)
            found.append(Insertion(last + 1, op, program.lines[donor][pc]))
            after = program.code[donor][pc + 1 : pc + 2]
            if op[0] == Op.CLUSTER_ARRIVE and after and after[0][0] == Op.CLUSTER_WAIT:  # a cluster_sync is both
                found.append(Insertion(last + 1, after[0], program.lines[donor][pc + 1]))
        elif (site, seen[site]) in places:
            last = max(last, places[site, seen[site]])
        seen[site] += 1
    return insert_operations(before, found)


def _has(program: Program, agent: int, at: SourceInstruction) -> bool:
    return any(is_at(site_of(program, agent, pc), at) for pc in range(len(program.code[agent])))


def _at_home(program: Program, op: Operation, there: int, here: int) -> Operation:
    """The operation of an agent of one CTA as one of another executes it."""
    if there == here:
        return op
    if op[0] in ON_BARRIER and operand(op, "barrier") >= 0 and program.barriers[operand(op, "barrier")].cta == there:
        mine = program.counterpart(operand(op, "barrier"), here)
        return op if mine is None else with_operand(op, "barrier", mine)
    if op[0] in ON_NAMED_BARRIER:
        number = program.named_barrier(op)
        if (here, number) in program.named_barriers:
            return with_operand(op, "named_barrier", program.named_barriers.index((here, number)))
    return op


def to_every_cta(program: Program, agent: int, repair: Repair) -> Listing:
    """After each arrive on the group, or commit to it, one at the same place in every other CTA."""
    before, group = listing(program, agent), set(barriers_of(program, repair.group))
    if repair.value == OF_COPIES:
        return _to_those_who_copy(program, agent, before, group)
    found: list[Insertion] = []
    told: set[int] = set()  # by arrives in a row
    gives = [gives_back(op) and operand(op, "barrier") in group for op in before.code]
    for pc, op in enumerate(before.code):
        if not gives[pc]:
            told.clear()
            continue
        told.add(operand(op, "barrier"))
        if any(gives[pc + 1 : pc + 2]):
            continue
        everywhere = (program.counterpart(operand(op, "barrier"), rank) for rank in range(program.ctas))
        missing = [other for other in everywhere if other is not None and other not in told]
        found += [Insertion(pc + 1, with_operand(op, "barrier", other), before.lines[pc]) for other in missing]
    return insert_operations(before, found)


def copying_into(program: Program, cta: int) -> list[int]:
    """The CTAs whose copies land in this one."""
    copies = ((n, op) for n, code in enumerate(program.code) for op in code if op[0] == Op.TMA_LOAD)
    lands = ((n, ranks(operand(op, "cta_mask")) or (program.accesses[operand(op, "access")].cta,)) for n, op in copies)
    return sorted({program.agents[n].cta for n, there in lands if cta in there})


def _to_those_who_copy(program: Program, agent: int, before: Listing, group: set[int]) -> Listing:
    """Instead of arrives in a row on the same stage of the group one in each CTA whose copies land in the agent's.

    Of an arrive that is as many arrivals, one of them.
    """
    code, lines = list[Operation](), list[int]()
    everywhere, stage = copying_into(program, program.agents[agent].cta), -1
    for op, line in zip(*before, strict=True):
        own = op[0] == Op.ARRIVE and operand(op, "barrier") in group
        if own and program.barriers[operand(op, "barrier")].stage == stage:
            continue
        stage = program.barriers[operand(op, "barrier")].stage if own else -1
        there = [program.counterpart(operand(op, "barrier"), cta) for cta in everywhere] if own else []
        one = with_operand(op, "count", 1) if len(there) > 1 and operand(op, "count") == len(there) else op
        code += [with_operand(one, "barrier", bar) for bar in there if bar is not None] or [op]
        lines += [line] * (len(code) - len(lines))
    return Listing(tuple(code), tuple(lines)) if not any(op[0] in BRANCHES for op in before.code) else before


# threads that meet


def with_meetings(program: Program, repair: Repair) -> Program:
    """The program with the named barriers that a correction needs in its table."""
    known = dict.fromkeys(program.named_barriers)
    for agent in members(program, repair.role):
        me = program.agents[agent]
        if repair.kind is RepairKind.SYNC or (repair.kind is RepairKind.PRIME and repair.value):
            known |= dict.fromkeys((me.cta, int(number)) for number in repair.group.split(","))
        elif repair.kind is RepairKind.WARP_SYNC:
            apart = (each for n, each in enumerate(program.agents) if len(warp_of(program, n)) > 1)
            known |= dict.fromkeys((each.cta, NAMED_BARRIERS + each.warp) for each in apart)
        elif repair.kind is RepairKind.NUMBER:
            last = min(repair.value + len(program.agents), NAMED_BARRIERS)
            every = range(repair.value, last)
            if repair.past.about:  # for each slot
                every = range(int(repair.group), int(repair.group) + repair.value)
            known |= {(me.cta, number): None for number in every}
        elif repair.kind is RepairKind.AFTER_INIT and program.ctas == 1:
            known |= {(me.cta, 0): None}
    if len(known) == len(program.named_barriers):
        return program
    return replace(program, named_barriers=tuple(known))


def add_meetings(program: Program, agent: int, repair: Repair) -> Listing:
    """A bar_sync before (``was`` 1: after) each execution of an instruction, or (2) before the first alone, the numbers
    one after the other; at one alone where the agent uses no other of them. Of several in a row, as the parts of an
    access, after the last or before the first.
    """
    before, cta = listing(program, agent), program.agents[agent].cta
    every = [int(number) for number in repair.group.split(",")]
    own = [number for number in numbers_of(program, agent) if number in every]
    groups = warpgroups(program, repair.role)
    if len(groups) == len(every) > 1 and not any(
        set(every) & set(numbers_of(program, n)) for n in range(len(program.code))
    ):
        own = [every[groups.index(program.agents[agent].warp // 4)]]
    numbers = [program.named_barriers.index((cta, number)) for number in (own if len(own) == 1 else every)]
    found: list[Insertion] = []
    sites = program.instructions[agent]
    for pc in range(begin_of(program, agent), len(before.code)):
        if not is_use(sites[pc], repair.at):
            continue
        if repair.was == 1 and pc + 1 < len(sites) and is_use(sites[pc + 1], repair.at):
            continue
        if repair.was != 1 and pc and is_use(sites[pc - 1], repair.at):
            continue
        if not (repair.was == 2 and found):
            bar = numbers[len(found) % len(numbers)]
            op = (int(Op.BAR_SYNC), bar, repair.value, _lanes(program, agent))
            found.append(Insertion(pc + (repair.was == 1), op, before.lines[pc]))
    return insert_operations(before, found)


def meeting_of_lanes(program: Program, agent: int, repair: Repair) -> Listing:
    """A bar.warp.sync before (or after) each execution of an instruction that all lanes of the warp execute."""
    before, me = listing(program, agent), program.agents[agent]
    own = me.cta, NAMED_BARRIERS + me.warp
    if own not in program.named_barriers:
        return before
    sync = (int(Op.BAR_SYNC), program.named_barriers.index(own), 32, _lanes(program, agent))
    found = [
        Insertion(pc + (repair.was == 1), sync, before.lines[pc])
        for pc in range(len(before.code))
        if site_of(program, agent, pc) == repair.at
    ]
    return insert_operations(before, found)


def _lanes(program: Program, agent: int) -> int:
    return program.agents[agent].lanes.bit_count()


def prime_meetings(program: Program, agent: int, repair: Repair) -> Listing:
    """A bar_arrive at each of the numbers before the agent's own work begins; ``was`` 1: if it waits at none."""
    before, cta = listing(program, agent), program.agents[agent].cta
    numbers = repair.group.split(",")
    if repair.was == 1 and any(
        op[0] == Op.BAR_SYNC and str(program.named_barrier(op)) in numbers for op in before.code
    ):
        return before
    begin = begin_of(program, agent)
    line = before.lines[min(begin, len(before.lines) - 1)] if before.lines else 0
    arrives = [
        (int(Op.BAR_ARRIVE), program.named_barriers.index((cta, int(number))), repair.value, _lanes(program, agent))
        for number in numbers
    ]
    return insert_operations(before, [Insertion(begin, op, line) for op in arrives])


def own_number(program: Program, agent: int, repair: Repair) -> Listing:
    """Warps of all meetings but the first at other named barriers than the one given: one for each meeting; or (``was``
    below -1) the warps of the meeting of as many threads; or with a tile in ``past`` all in turn at one for each slot.
    """
    before, me = listing(program, agent), program.agents[agent]
    if repair.past.about:
        first = int(repair.group)
        here = [pc for pc, op in enumerate(before.code) if program.named_barrier(op) == first]
        to_each = [program.named_barriers.index((me.cta, first + slot)) for slot in range(repair.value)]
        turns = {pc: to_each[turn % repair.value] for turn, pc in enumerate(here)}
        now = {pc: with_operand(before.code[pc], "named_barrier", to) for pc, to in turns.items()}
        return replace_operations(before, now)
    meeting = 1 if repair.was < -1 else _of_number(program, agent, repair)
    if not meeting:
        return before
    to = program.named_barriers.index((me.cta, repair.value + meeting - 1))
    code = tuple(
        with_operand(op, "named_barrier", to)
        if program.named_barrier(op) == int(repair.group)
        and (repair.was >= -1 or operand(op, "threads") == -repair.was)
        else op
        for op in before.code
    )
    return Listing(code, before.lines)


def _of_number(program: Program, agent: int, repair: Repair) -> int:
    """Which of the ``was`` meetings at one number is the agent's: each has as many warps of every role, in order; with
    -1 each has a role of its own, with 0 the warps that follow each other.
    """
    me = program.agents[agent]
    if not repair.was:
        meeting = [
            (program.agents[n].warp, operand(op, "threads"), n)
            for n, code in enumerate(program.code)
            for op in [op for op in code if program.named_barrier(op) == int(repair.group)][:1]
            if program.agents[n].cta == me.cta
        ]
        found = [(n, threads) for _, threads, n in sorted(meeting)]
        return next((place * WARP // threads for place, (n, threads) in enumerate(found) if n == agent), 0)
    if repair.was < 0:
        meet = [
            a.role
            for n, a in enumerate(program.agents)
            if any(program.named_barrier(op) == int(repair.group) for op in program.code[n])
        ]
        return list(dict.fromkeys(meet)).index(me.role) if me.role in meet else 0
    mine = [
        n
        for n in members(program, me.role)
        if program.agents[n].cta == me.cta
        and any(program.named_barrier(op) == int(repair.group) for op in program.code[n])
    ]
    return mine.index(agent) * repair.was // len(mine) if agent in mine else 0


def at_the_cluster(program: Program, agent: int, _: Repair) -> Listing:
    """A cluster arrive and wait at the end, before invals, in agents that have fewer than others, or in all."""
    before = listing(program, agent)
    tallies = [sum(op[0] == Op.CLUSTER_ARRIVE for op in code) for code in program.code]
    if min(tallies) != max(tallies) and tallies[agent] == max(tallies):
        return before
    end = len(before.code)
    while end and before.code[end - 1][0] in LOOP_MARKS | {int(Op.INVAL)}:
        end -= 1
    line = before.lines[max(end - 1, 0)] if before.lines else 0
    pair = ((int(Op.CLUSTER_ARRIVE), _CLUSTER), (int(Op.CLUSTER_WAIT), _CLUSTER))
    return insert_operations(before, [Insertion(end, op, line) for op in pair])


def after_init(program: Program, agent: int, repair: Repair) -> Listing:
    """After the inits a fence, unless there ``was`` one, and (not with ``value`` 1) a meeting of all threads of the CTA
    or the cluster.
    """
    before, cta = listing(program, agent), program.agents[agent].cta
    inits = [pc for pc, op in enumerate(before.code) if op[0] == Op.INIT]
    fences = [pc for pc, op in enumerate(before.code) if op[0] == Op.FENCE and operand(op, "fence") == _INIT]
    place = max(fences[-1:] if repair.was > 0 and inits else inits[-1:], default=-1) + 1
    line = before.lines[max(place - 1, 0)] if before.lines else 0
    block: list[Operation] = [(int(Op.FENCE), int(Fence.MBARRIER_INIT), _CLUSTER)] if inits and repair.was < 0 else []
    if not repair.value and program.ctas > 1:
        block += [(int(Op.CLUSTER_ARRIVE), _CLUSTER), (int(Op.CLUSTER_WAIT), _CLUSTER)]
    elif not repair.value:
        bar = program.named_barriers.index((cta, 0))
        block.append((int(Op.BAR_SYNC), bar, threads_of(program, cta), _lanes(program, agent)))
    return insert_operations(before, [Insertion(place, op, line) for op in block])
