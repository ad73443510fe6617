"""Corrections that let a role do its part of what other roles wait for: once before it begins, or in its loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from pipesim.model.edits import Insertion, Listing, insert_operations, listing
from pipesim.model.groups import LIFE, ON_BARRIER, PARITY_WAITS, TOUCHES_MEMORY
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.prove.repair.changes.additions import share_of, times_signalled
from pipesim.prove.repair.changes.order import gives_back, readers_of
from pipesim.prove.repair.kinds import NOWHERE, SIGNALLING, Ranked, Repair, RepairKind
from pipesim.prove.repair.sites import arrived_at, begin_of, members, published_at, roles_of, sites_of, stages_of

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
        given = [site for site in sites_of(program, role) if site.op == Op.ARRIVE]
        for group in dict.fromkeys(site.about for site in given):
            first = Repair(K.PRIME, role, group)
            late = [n for n in members(program, role) if first_arrives(program, n, first) != listing(program, n)]
            primed = any(_begins_with(program, n, group) for n in members(program, role) if n not in late)
            names = " and ".join(map(program.agent_name, late)) if primed else ""
            yield rank, replace(first, past=NOWHERE._replace(about=names))
            mine = (operand(op, "barrier") for agent in members(program, role) for op in program.code[agent]
                    if op[0] == Op.ARRIVE and not operand(op, "expect"))  # fmt: skip
            stages = {program.barriers[each].stage for each in mine if program.barriers[each].name == group}
            if len(stages) == 1 < len(stages_of(program, members(program, role)[0], group)):
                yield rank, Repair(K.PRIME, role, group, was=min(stages))


def _begins_with(program: Program, agent: int, group: str) -> bool:
    """True if the agent arrives on the group before it waits for anything."""
    sites = program.instructions[agent][begin_of(program, agent) :]
    first = next((n for n, site in enumerate(sites) if site.op in PARITY_WAITS), len(sites))
    return any(site.op == Op.ARRIVE and site.about == group for site in sites[:first])


def _begins_before(program: Program) -> bool:
    """True if some agent waits for a barrier first with parity 1."""
    firsts: dict[tuple[int, int], int] = {}
    for agent, code in enumerate(program.code):
        for op in (op for op in code if op[0] in PARITY_WAITS):
            firsts.setdefault((agent, operand(op, "barrier")), operand(op, "parity"))
    return 1 in firsts.values()


def _of_meetings_in_loops(program: Program) -> Iterator[Ranked]:
    """bar_arrives of a role for every bar_sync of others that it does not serve, after each use of what it uses."""
    for role in roles_of(program):
        mine = set(members(program, role))
        asked = {
            (program.named_barrier(op), operand(op, "threads"))
            for agent in set(range(len(program.agents))) - mine
            for op in program.code[agent]
            if op[0] == Op.BAR_SYNC
        }
        arrived = set(arrived_at(program, role))
        own = {program.named_barrier(op) for agent in mine for op in program.code[agent] if op[0] == Op.BAR_SYNC}
        after = [site for site in sites_of(program, role) if site.op in TOUCHES_MEMORY | {int(Op.WAIT_GROUP)}]
        for threads in sorted({threads for number, threads in asked if number not in {0, *own}}):
            numbers = sorted(number for number, each in asked if each == threads and number not in {0, *own})
            group = ",".join(map(str, numbers))
            rank = 2 if _lacks(program, min(mine), numbers[0], threads) else 4
            rank += not arrived.isdisjoint(numbers)  # in its loop already
            yield from ((rank, Repair(K.PRIME, role, group, threads, at=site)) for site in after)


def _lacks(program: Program, agent: int, number: int, threads: int) -> bool:
    """True if as many threads are missing at a named barrier as those of this agent alone, which writes for others."""
    me = program.agents[agent]
    here = [
        program.agents[n].lanes.bit_count()
        for n, code in enumerate(program.code)
        if program.agents[n].cta == me.cta and any(program.named_barrier(op) == number for op in code)
    ]
    writes = bool(readers_of(program, [agent]))
    return writes and len(members(program, me.role)) == program.ctas and sum(here) + me.lanes.bit_count() == threads


def _of_both_halves(program: Program) -> Iterator[Ranked]:
    """A wait for what no role waits for, and an arrive on what is waited for and no role signals: of one role."""
    used: dict[str, set[str]] = {"waits": set(), "signals": set()}
    for agent, code in enumerate(program.code):
        for op, site in zip(code, program.instructions[agent], strict=True):
            if op[0] in ON_BARRIER - LIFE and operand(op, "barrier") >= 0:
                used["waits" if op[0] in PARITY_WAITS else "signals"].add(site.about)
    for signalled in sorted(used["signals"] - used["waits"]):
        for waited in sorted(used["waits"] - used["signals"]):
            for role in roles_of(program):
                own = {site.about for site in sites_of(program, role) if site.op not in LIFE}
                if own.isdisjoint({signalled, waited}):
                    for site in (s for s in sites_of(program, role) if s.op in PARITY_WAITS | SIGNALLING):
                        for start in (1, 0):
                            yield 3, Repair(K.BOTH, role, f"{signalled},{waited}", start, at=site)


def first_arrives(program: Program, agent: int, repair: Repair) -> Listing:
    """An arrive on every stage of the group (``was`` >= 0: on this one) before the agent's loop, as it arrives there
    first, but where it does so before its loop.
    """
    before, stages = listing(program, agent), stages_of(program, agent, repair.group)
    stages = {stage: barrier for stage, barrier in stages.items() if repair.was in (-1, stage)}
    given = [pc for pc, op in enumerate(before.code) if gives_back(op) and operand(op, "barrier") in stages.values()]
    begins = next((pc for pc, op in enumerate(before.code) if op[0] in PARITY_WAITS), 0)
    if not given or before.code[given[0]][0] != Op.ARRIVE:
        return before
    place, like, line = published_at(program, agent), before.code[given[0]], before.lines[given[0]]
    done = {operand(before.code[pc], "barrier") for pc in given if pc < begins}
    arrives = ((like[0], stages[stage], *like[2:]) for stage in sorted(stages) if stages[stage] not in done)
    return insert_operations(before, [Insertion(place, op, line) for op in arrives])


def arrives_in_loop(program: Program, agent: int, repair: Repair) -> Listing:
    """After each execution of an instruction a bar_arrive for the next of the meetings of others that the agent does
    not serve, in their order.
    """
    before, me = listing(program, agent), program.agents[agent]
    numbers = {int(number) for number in repair.group.split(",")}
    meetings = max(
        (
            [op for op in code if op[0] == Op.BAR_SYNC and program.named_barrier(op) in numbers]
            for other, code in zip(program.agents, program.code, strict=True)
            if other.cta == me.cta and other.role != me.role
        ),
        key=len,
        default=[],
    )
    served = Counter(operand(op, "named_barrier") for op in before.code if op[0] == Op.BAR_ARRIVE)
    due: list[Operation] = []
    for op in meetings:
        bar = operand(op, "named_barrier")
        if not served[bar]:
            due.append((int(Op.BAR_ARRIVE), bar, repair.value, me.lanes.bit_count()))
        served[bar] = max(served[bar] - 1, 0)
    places = [pc for pc, site in enumerate(program.instructions[agent]) if site == repair.at]
    new = zip(places, due, strict=False)
    return insert_operations(before, [Insertion(pc + 1, op, before.lines[pc]) for pc, op in new])


def both_halves(program: Program, agent: int, repair: Repair) -> Listing:
    """Before each execution of an instruction a wait for one group, and an arrive on the other, stage by stage."""
    before = listing(program, agent)
    waits, gives = (sorted(stages_of(program, agent, group).items()) for group in repair.group.split(","))
    places = [pc for pc, site in enumerate(program.instructions[agent]) if site == repair.at]
    found: list[Insertion] = []
    for n, pc in enumerate(places if waits and len(waits) == len(gives) else ()):
        lap, turn = divmod(n, len(waits))
        count = share_of(program, repair.role, agent, gives[turn][1])
        if count and lap < times_signalled(program, waits[turn][1]) + repair.value:
            wait = (int(Op.WAIT), waits[turn][1], (repair.value + lap) & 1, 0)
            arrive = (int(Op.ARRIVE), gives[turn][1], count, 0, -1, 0)
            found += [Insertion(pc, op, before.lines[pc]) for op in (wait, arrive)]
    return insert_operations(before, found)
