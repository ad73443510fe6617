"""Corrections that let a role do its part of what other roles wait for: once before it begins, or in its loop."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from pipesim.model.edits import Listing
from pipesim.model.groups import LIFE, ON_BARRIER, PARITY_WAITS, TOUCHES_MEMORY
from pipesim.model.ops import Op, Operation, operand, with_operand
from pipesim.model.program import Program
from pipesim.prove.repair.changes.additions import arrive_on, share_of, times_signalled, wait_for
from pipesim.prove.repair.handovers import readers_of
from pipesim.prove.repair.kinds import NOWHERE, SIGNALLING, Ranked, Repair, RepairKind
from pipesim.prove.repair.sites import (
    AgentCode,
    arrived_at,
    barrier_of,
    begin_of,
    executions,
    gives_back,
    members,
    numbered,
    published_at,
    roles_of,
    sites_of,
    stages_of,
)

K = RepairKind


def of_partners(program: Program) -> Iterator[Ranked]:
    """Arrives that are missing before or in a loop, and both halves of a pipeline that one role leaves out."""
    yield from _of_first_arrives(program)
    yield from _of_meetings_in_loops(program)
    yield from _of_both_halves(program)


def _of_first_arrives(program: Program) -> Iterator[Ranked]:
    """Arrives on every stage of a group before its loop, of a role that arrives there in it.

    Less likely in a kernel of which other waits begin with the parity of the phase before the first.
    """
    rank = 6 if program.coverage.extracted and _begins_before(program) else 4
    for role in roles_of(program):
        for group in dict.fromkeys(site.about for site in sites_of(program, role, {int(Op.ARRIVE)})):
            first, mine = Repair(K.PRIME, role, group), members(program, role)
            codes = [AgentCode(program, n) for n in mine]
            late = [me.agent for me in codes if first_arrives(me, first) != me.same]
            primed = any(_begins_with(program, n, group) for n in mine if n not in late)
            names = " and ".join(map(program.agent_name, late)) if primed else ""
            yield rank, replace(first, past=NOWHERE._replace(about=names))
            given = (program.barriers[barrier_of(op)] for me in codes for op in me.code
                     if op[0] == Op.ARRIVE and not operand(op, "expect"))  # fmt: skip
            stages = {each.stage for each in given if each.name == group}
            if len(stages) == 1 < len(stages_of(program, mine[0], group)):
                yield rank, replace(first, was=min(stages))


def _begins_with(program: Program, agent: int, group: str) -> bool:
    """True if the agent arrives on the group before it waits for anything."""
    for site in program.instructions[agent][begin_of(program, agent) :]:
        if site.op in PARITY_WAITS or (site.op == Op.ARRIVE and site.about == group):
            return site.op == Op.ARRIVE
    return False


def _begins_before(program: Program) -> bool:
    """True if some agent waits for a barrier first with parity 1."""
    firsts: dict[tuple[int, int], int] = {}
    for agent, _, op, _ in executions(program, ops=PARITY_WAITS):
        firsts.setdefault((agent, barrier_of(op)), operand(op, "parity"))
    return 1 in firsts.values()


def _of_meetings_in_loops(program: Program) -> Iterator[Ranked]:
    """bar_arrives of a role for every bar_sync of others that it does not serve, after each use of what it uses."""
    synced: defaultdict[str, dict[int, int]] = defaultdict(dict)  # by role: the numbers, and their threads
    for agent, _, op, _ in executions(program, ops={int(Op.BAR_SYNC)}):
        synced[program.agents[agent].role][program.named_barrier(op)] = operand(op, "threads")
    for role in roles_of(program):
        theirs = {n: threads for other in synced if other != role for n, threads in synced[other].items()}
        asked = {n: threads for n, threads in theirs.items() if n not in {0, *synced[role]}}
        after = sites_of(program, role, TOUCHES_MEMORY | {int(Op.WAIT_GROUP)})
        for threads in sorted(set(asked.values())):
            numbers = sorted(n for n, each in asked.items() if each == threads)
            rank = 2 if _lacks(program, members(program, role)[0], numbers[0], threads) else 4
            rank += not set(arrived_at(program, role)).isdisjoint(numbers)  # in its loop already
            yield from ((rank, Repair(K.PRIME, role, numbered(numbers), threads, at=site)) for site in after)


def _lacks(program: Program, agent: int, number: int, threads: int) -> bool:
    """True if as many threads are missing at a named barrier as those of this agent alone, which writes for others."""
    me, come = program.agents[agent], 0
    for each, code in zip(program.agents, program.code, strict=True):
        if each.cta == me.cta and any(program.named_barrier(op) == number for op in code):
            come += each.lanes.bit_count()
    alone = len(members(program, me.role)) == program.ctas
    return alone and come + me.lanes.bit_count() == threads and bool(readers_of(program, [agent]))


def _of_both_halves(program: Program) -> Iterator[Ranked]:
    """A wait for what no role waits for, and an arrive on what is waited for and no role signals: of one role."""
    waits, signals = set[str](), set[str]()
    for _, _, op, site in executions(program, ops=ON_BARRIER - LIFE):
        if barrier_of(op) >= 0:
            (waits if op[0] in PARITY_WAITS else signals).add(site.about)
    for signalled in sorted(signals - waits):
        for waited in sorted(waits - signals):
            for role in roles_of(program):
                sites = sites_of(program, role)
                if {site.about for site in sites if site.op not in LIFE}.isdisjoint({signalled, waited}):
                    for site in (s for s in sites if s.op in PARITY_WAITS | SIGNALLING):
                        for start in (1, 0):
                            yield 3, Repair(K.BOTH, role, f"{signalled},{waited}", start, at=site)


def first_arrives(me: AgentCode, repair: Repair) -> Listing:
    """An arrive on every stage of the group (``was`` >= 0: on this one) before the agent's loop, as it arrives there
    first, but where it does so before its loop.
    """
    due = [barrier for stage, barrier in sorted(me.stages(repair.group).items()) if repair.was in (-1, stage)]
    given = [pc for pc, op in enumerate(me.code) if gives_back(op) and barrier_of(op) in due]
    begins = next((pc for pc, op in enumerate(me.code) if op[0] in PARITY_WAITS), 0)
    if not given or (like := me.code[given[0]])[0] != Op.ARRIVE:
        return me.same
    done = {barrier_of(me.code[pc]) for pc in given if pc < begins}
    new = (with_operand(like, "barrier", each) for each in due if each not in done)
    return me.ended(published_at(me.program, me.agent), new, given[0])


def arrives_in_loop(me: AgentCode, repair: Repair) -> Listing:
    """After each execution of an instruction a bar_arrive for the next of the meetings of others that the agent does
    not serve, in their order.
    """
    program, role = me.program, me.program.agents[me.agent].role
    numbers = {int(number) for number in repair.group.split(",")}
    others = (
        [op for op in code if op[0] == Op.BAR_SYNC and program.named_barrier(op) in numbers]
        for other, code in zip(program.agents, program.code, strict=True)
        if other.cta == me.cta and other.role != role
    )
    served = Counter(operand(op, "named_barrier") for op in me.code if op[0] == Op.BAR_ARRIVE)
    due: list[Operation] = []
    for op in max(others, key=len, default=[]):
        bar, lanes = operand(op, "named_barrier"), program.agents[me.agent].lanes.bit_count()
        due += [(int(Op.BAR_ARRIVE), bar, repair.value, lanes)] if not served[bar] else []
        served[bar] = max(served[bar] - 1, 0)
    return me.inserted(zip(me.at(repair.at), due, strict=False), after=True)


def both_halves(me: AgentCode, repair: Repair) -> Listing:
    """Before each execution of an instruction a wait for one group, and an arrive on the other, stage by stage."""
    waits, gives = map(me.ring, repair.group.split(","))
    found: list[tuple[int, Operation]] = []
    for n, pc in enumerate(me.at(repair.at) if waits and len(waits) == len(gives) else ()):
        lap, turn = divmod(n, len(waits))
        count = share_of(me, gives[turn], repair.role)
        if count and lap < times_signalled(me.program, waits[turn]) + repair.value:
            found += [(pc, wait_for(waits[turn], repair.value + lap)), (pc, arrive_on(gives[turn], count))]
    return me.inserted(found)
