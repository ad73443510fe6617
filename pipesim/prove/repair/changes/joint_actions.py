"""Corrections of what several agents do together: warps of a role, lanes of a warp, threads that meet."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from pipesim.model.edits import Insertion, Listing, insert_operations
from pipesim.model.groups import BRANCHES, LOOP_MARKS, ON_NAMED_BARRIER
from pipesim.model.ops import Fence, Op, Operation, Scope, operand, ranks, semantics, with_operand
from pipesim.model.program import Program
from pipesim.model.rules.sync import WARP
from pipesim.model.tables import NAMED_BARRIERS, SourceInstruction
from pipesim.prove.repair.kinds import OF_COPIES, Repair, RepairKind
from pipesim.prove.repair.sites import (
    AgentCode,
    barrier_of,
    barriers_of,
    begin_of,
    executions,
    gives_back,
    is_at,
    is_use,
    members,
    numbers_of,
    threads_of,
    warp_of,
    warpgroups,
)

K = RepairKind
_CLUSTER, _INIT = semantics(scope=Scope.CLUSTER), Fence.MBARRIER_INIT
_MEETING_OF_CLUSTER: tuple[Operation, ...] = ((int(Op.CLUSTER_ARRIVE), _CLUSTER), (int(Op.CLUSTER_WAIT), _CLUSTER))


# warps and lanes that do what another one does


def like_the_others(me: AgentCode, repair: Repair) -> Listing:
    """The instruction as another agent executes it, of the role or (OUTSIDE) of the warp, in one that does not.

    In another CTA it is on that CTA's own barrier; with ``value`` on the same one.
    """
    program = me.program
    pool = warp_of(program, me.agent) if repair.kind is K.OUTSIDE else members(program, repair.role)
    donors = [other for other in pool if any(is_at(site, repair.at) for site in program.instructions[other])]
    if not donors or me.agent in donors:
        return me.same
    donor = min(donors, key=lambda other: (program.agents[other].cta != me.cta, other))
    there = program.agents[donor].cta if not repair.value else me.cta
    places: dict[tuple[SourceInstruction, int], int] = {}
    seen: Counter[SourceInstruction] = Counter()
    for pc, site in enumerate(me.sites):
        places[site, seen[site]] = pc
        seen[site] += 1
    seen.clear()
    last = begin_of(program, me.agent) - 1
    found: list[Insertion] = []
    code, lines = program.code[donor], program.lines[donor]
    for pc, site in enumerate(program.instructions[donor]):
        if is_at(site, repair.at):
            found.append(Insertion(last + 1, _at_home(program, code[pc], there, me.cta), lines[pc]))
            if code[pc][0] == Op.CLUSTER_ARRIVE and code[pc + 1 : pc + 2] and code[pc + 1][0] == Op.CLUSTER_WAIT:
                found.append(Insertion(last + 1, code[pc + 1], lines[pc + 1]))  # a cluster_sync is both
        elif (site, seen[site]) in places:
            last = max(last, places[site, seen[site]])
        seen[site] += 1
    return insert_operations(me.same, found)


def _at_home(program: Program, op: Operation, there: int, here: int) -> Operation:
    """The operation of an agent of one CTA as one of another executes it."""
    if there != here and barrier_of(op) >= 0 and program.barriers[barrier_of(op)].cta == there:
        mine = program.counterpart(barrier_of(op), here)
        return op if mine is None else with_operand(op, "barrier", mine)
    own = here, program.named_barrier(op)
    if there != here and op[0] in ON_NAMED_BARRIER and own in program.named_barriers:
        return with_operand(op, "named_barrier", program.named_barriers.index(own))
    return op


def to_every_cta(me: AgentCode, repair: Repair) -> Listing:
    """After each arrive on the group, or commit to it, one at the same place in every other CTA."""
    program, group = me.program, set(barriers_of(me.program, repair.group))
    if repair.value == OF_COPIES:
        return _to_those_who_copy(me, group)
    found: list[tuple[int, Operation]] = []
    told: set[int] = set()  # by arrives in a row
    gives = [gives_back(op) and barrier_of(op) in group for op in me.code]
    for pc, op in enumerate(me.code):
        told = told | {barrier_of(op)} if gives[pc] else set()
        if gives[pc] and not any(gives[pc + 1 : pc + 2]):
            everywhere = (program.counterpart(barrier_of(op), rank) for rank in range(program.ctas))
            missing = (other for other in everywhere if other is not None and other not in told)
            found += [(pc, with_operand(op, "barrier", other)) for other in missing]
    return me.inserted(found, after=True)


def copying_into(program: Program, cta: int) -> list[int]:
    """The CTAs whose copies land in this one."""
    copies = ((program.agents[n].cta, op) for n, _, op, _ in executions(program, ops={int(Op.TMA_LOAD)}))
    lands = ((n, ranks(operand(op, "cta_mask")) or (program.accesses[operand(op, "access")].cta,)) for n, op in copies)
    return sorted({n for n, there in lands if cta in there})


def _to_those_who_copy(me: AgentCode, group: set[int]) -> Listing:
    """Instead of arrives in a row on the same stage of the group one in each CTA whose copies land in the agent's.

    Of an arrive that is as many arrivals, one of them.
    """
    program, code, lines = me.program, list[Operation](), list[int]()
    everywhere, stage = copying_into(program, me.cta), -1
    for op, line in zip(*me.same, strict=True):
        own = op[0] == Op.ARRIVE and barrier_of(op) in group
        if own and program.barriers[barrier_of(op)].stage == stage:
            continue
        stage = program.barriers[barrier_of(op)].stage if own else -1
        there = [program.counterpart(barrier_of(op), cta) for cta in everywhere] if own else []
        one = with_operand(op, "count", 1) if len(there) > 1 and operand(op, "count") == len(there) else op
        code += [with_operand(one, "barrier", bar) for bar in there if bar is not None] or [op]
        lines += [line] * (len(code) - len(lines))
    return me.same if any(op[0] in BRANCHES for op in me.code) else Listing(tuple(code), tuple(lines))


# threads that meet


def with_meetings(program: Program, repair: Repair) -> Program:
    """The program with the named barriers that a correction needs in its table."""
    ctas = dict.fromkeys(program.agents[agent].cta for agent in members(program, repair.role))
    known = dict.fromkeys(
        (*program.named_barriers, *((cta, number) for cta in ctas for number in _new(program, repair)))
    )
    if repair.kind is K.WARP_SYNC and ctas:
        apart = (each for n, each in enumerate(program.agents) if len(warp_of(program, n)) > 1)
        known |= dict.fromkeys((each.cta, NAMED_BARRIERS + each.warp) for each in apart)
    return program if len(known) == len(program.named_barriers) else replace(program, named_barriers=tuple(known))


def _new(program: Program, repair: Repair) -> Iterator[int]:
    """The named barriers that each CTA needs."""
    if repair.kind is K.SYNC or (repair.kind is K.PRIME and repair.value):
        yield from map(int, repair.group.split(","))
    elif repair.kind is K.NUMBER and repair.past.about:  # for each slot
        yield from range(int(repair.group), int(repair.group) + repair.value)
    elif repair.kind is K.NUMBER:
        yield from range(repair.value, min(repair.value + len(program.agents), NAMED_BARRIERS))
    elif repair.kind is K.AFTER_INIT and program.ctas == 1:
        yield 0


def add_meetings(me: AgentCode, repair: Repair) -> Listing:
    """A bar_sync before (``was`` 1: after) each execution of an instruction, the numbers one after the other; at one
    alone where the agent uses no other of them. Of several in a row, as the parts of an access, after the last or
    before the first.
    """
    program, every = me.program, [int(number) for number in repair.group.split(",")]
    own = [number for number in numbers_of(program, me.agent) if number in every]
    groups = warpgroups(program, repair.role)
    if len(groups) == len(every) > 1 and not any(
        set(every) & set(numbers_of(program, n)) for n in range(len(program.code))
    ):
        own = [every[groups.index(program.agents[me.agent].warp // 4)]]
    numbers = [program.named_barriers.index((me.cta, number)) for number in (own if len(own) == 1 else every)]
    after = repair.was == 1
    uses = [is_use(site, repair.at) for site in me.sites]
    places = [pc for pc in range(begin_of(program, me.agent), len(uses)) if uses[pc]
              and not any(uses[pc + 1 : pc + 2] if after else uses[max(pc - 1, 0) : pc])]  # fmt: skip
    bars = (numbers[n % len(numbers)] for n in range(len(places)))
    return me.inserted(zip(places, (_sync(me, bar, repair.value) for bar in bars), strict=True), after=after)


def meeting_of_lanes(me: AgentCode, repair: Repair) -> Listing:
    """A bar.warp.sync before (or after) each execution of an instruction that all lanes of the warp execute."""
    own = me.cta, NAMED_BARRIERS + me.program.agents[me.agent].warp
    if own not in me.program.named_barriers:
        return me.same
    sync = _sync(me, me.program.named_barriers.index(own), WARP)
    return me.inserted(((pc, sync) for pc in me.at(repair.at)), after=repair.was == 1)


def _sync(me: AgentCode, bar: int, threads: int, op: Op = Op.BAR_SYNC) -> Operation:
    return (int(op), bar, threads, me.program.agents[me.agent].lanes.bit_count())


def prime_meetings(me: AgentCode, repair: Repair) -> Listing:
    """A bar_arrive at each of the numbers before the agent's own work begins; ``was`` 1: if it waits at none."""
    program, numbers = me.program, repair.group.split(",")
    waits = (op[0] == Op.BAR_SYNC and str(program.named_barrier(op)) in numbers for op in me.code)
    if repair.was == 1 and any(waits):
        return me.same
    begin = begin_of(program, me.agent)
    bars = (program.named_barriers.index((me.cta, int(number))) for number in numbers)
    arrives = (_sync(me, bar, repair.value, Op.BAR_ARRIVE) for bar in bars)
    return me.ended(begin, arrives, min(begin, len(me.code) - 1))


def own_number(me: AgentCode, repair: Repair) -> Listing:
    """Warps of all meetings but the first at other named barriers than the one given: one for each meeting; or with a
    tile in ``past`` all in turn at one for each slot.
    """
    program, first = me.program, int(repair.group)
    here = [pc for pc, op in enumerate(me.code) if program.named_barrier(op) == first]
    if repair.past.about:
        to = [program.named_barriers.index((me.cta, first + turn % repair.value)) for turn in range(len(here))]
    else:
        meeting = _of_number(me, repair) if here else 0
        if not meeting:
            return me.same
        to = [program.named_barriers.index((me.cta, repair.value + meeting - 1))] * len(here)
    return me.replaced({pc: with_operand(me.code[pc], "named_barrier", bar) for pc, bar in zip(here, to, strict=True)})


def _of_number(me: AgentCode, repair: Repair) -> int:
    """Which of the ``was`` meetings at one number is the agent's: each has as many warps of every role, in order; with
    -1 each has a role of its own, with 0 the warps that follow each other.
    """
    agents, first = me.program.agents, int(repair.group)
    meet = {
        n: op for n, _, op, _ in executions(me.program, ops=ON_NAMED_BARRIER) if me.program.named_barrier(op) == first
    }
    if repair.was < 0:
        return list(dict.fromkeys(agents[n].role for n in meet)).index(agents[me.agent].role)
    here = [n for n in meet if agents[n].cta == me.cta]
    if not repair.was:
        in_order = sorted(here, key=lambda n: (agents[n].warp, n))
        return in_order.index(me.agent) * WARP // operand(meet[me.agent], "threads")
    mine = [n for n in here if agents[n].role == agents[me.agent].role]
    return mine.index(me.agent) * repair.was // len(mine)


def at_the_cluster(me: AgentCode, _: Repair) -> Listing:
    """A cluster arrive and wait at the end, before invals, in agents that have fewer than others, or in all."""
    tallies = [sum(op[0] == Op.CLUSTER_ARRIVE for op in code) for code in me.program.code]
    if min(tallies) != max(tallies) == tallies[me.agent]:
        return me.same
    end = len(me.code)
    while end and me.code[end - 1][0] in LOOP_MARKS | {int(Op.INVAL)}:
        end -= 1
    return me.ended(end, _MEETING_OF_CLUSTER, max(end - 1, 0))


def after_init(me: AgentCode, repair: Repair) -> Listing:
    """After the inits a fence, unless there ``was`` one, and (not with ``value`` 1) a meeting of all threads of the CTA
    or the cluster.
    """
    program, several = me.program, me.program.ctas > 1
    inits = [pc for pc, op in enumerate(me.code) if op[0] == Op.INIT]
    fences = [pc for pc, op in enumerate(me.code) if op[0] == Op.FENCE and operand(op, "fence") == _INIT]
    place = max(fences[-1:] if repair.was > 0 and inits else inits[-1:], default=-1) + 1
    block: list[Operation] = [(int(Op.FENCE), int(_INIT), _CLUSTER)] if inits and repair.was < 0 else []
    if not repair.value and not several:
        block.append(_sync(me, program.named_barriers.index((me.cta, 0)), threads_of(program, me.cta)))
    elif not repair.value:
        block += _MEETING_OF_CLUSTER
    return me.ended(place, block, max(place - 1, 0))
