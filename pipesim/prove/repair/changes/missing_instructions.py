"""Corrections that add what a role lacks: arrives, waits, commits; or leave out waits that no agent needs."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from pipesim.model.groups import ACCESSES, ENGINE_ACCESSES, LIFE, ON_BARRIER, PARITY_WAITS, TOUCHES_MEMORY
from pipesim.model.ops import Engine, Op, operand
from pipesim.model.program import Program
from pipesim.model.tables import SourceInstruction
from pipesim.prove.repair.changes.additions import first_arrives
from pipesim.prove.repair.changes.numbers import arrivals_of, count_of
from pipesim.prove.repair.handovers import arriving_on, first_parities, readers_of, returned_after, shares_memory
from pipesim.prove.repair.kinds import NOWHERE, SIGNALLING, Placement, Ranked, Repair, RepairKind
from pipesim.prove.repair.sites import (
    ARRIVES,
    AgentCode,
    arrived_at,
    arrives,
    barrier_of,
    barriers_of,
    begin_of,
    engines_of,
    executions,
    families,
    gives_back,
    groups_in,
    members,
    numbered,
    on_engine,
    pairs,
    roles_of,
    sites_of,
    stages_of,
)

K = RepairKind
_DEEPEST = 3  #: groups that a wait which is added may leave under way
_USES = ACCESSES | ENGINE_ACCESSES


def of_arrives(program: Program) -> Iterator[Ranked]:
    """Arrives that are missing: of a role on a group, in its tail, of warps that no agent counts."""
    released, groups = pairs(program, gives_back), groups_in(program)
    waits = pairs(program, lambda op: op[0] in PARITY_WAITS)
    for role, group in pairs(program, lambda op: op[0] == Op.ARRIVE):
        yield 3, Repair(K.TAIL, role, group, 2)
    for role in roles_of(program):
        users = list(dict.fromkeys(each.agent for each in executions(program, role, _USES)))
        last = Engine.TCGEN05.value if Engine.TCGEN05 in engines_of(program, role) else 0
        for group in groups if users else ():
            stages, returned = len(barriers_of(program, group)), returned_after(program, role, group)
            asked = [name for one, name in waits if (one, len(barriers_of(program, name))) == (role, stages)]
            asked.sort(key=lambda name: name not in returned)
            alike = [SourceInstruction(int(Op.WAIT), "", name) for name in asked if name != group]
            if (role, group) in released:  # as soon as it is safe
                after = sites_of(program, role, _USES | {int(Op.WAIT_GROUP)})
                for was, past in ((-1, NOWHERE), *((Placement.LAST.value, past) for past in alike)):
                    yield from ((4, Repair(K.ARRIVE, role, group, last, was, site, past)) for site in after)
                yield 5, Repair(K.TAIL, role, group, 1)
            else:
                yield 4, Repair(K.ARRIVE, role, group, last)
                yield 4, Repair(K.TAIL, role, group)
                yield from _of_one_warp(program, role, group, len(users))
                for past in alike:
                    yield 4, Repair(K.ARRIVE, role, group, last, past=past)
                    yield 4, Repair(K.ARRIVE, role, group, last, Placement.LAST.value, past=past)
            yield from _counted_in(program, role, group, users)
            if (role, group) not in (*released, *waits) and (was := count_of(program, group)) > 0:
                yield from _handed_over(program, role, group, was, alike, last)


def _of_one_warp(program: Program, role: str, group: str, users: int) -> Iterator[Ranked]:
    """One arrive of every few warps, where as many fewer are counted."""
    each, rest = divmod(users, max(count_of(program, group), 1) * program.ctas)
    for site in (
        (*sites_of(program, role, {int(Op.BAR_SYNC), int(Op.WAIT_GROUP)}), NOWHERE) if each > 1 and not rest else ()
    ):
        yield 4, Repair(K.ARRIVE, role, group, each % users, Placement.ONE_WARP.value, at=site)


def _handed_over(
    program: Program, role: str, group: str, was: int, begun: list[SourceInstruction], last: int
) -> Iterator[Ranked]:
    """A group that one role gives back, given back by another one instead, which uses what is filled after the wait.

    Not between warps that execute the same code.
    """
    waiting = [n for n in range(len(program.code)) if group in _awaited_groups(program, n)]
    now = len(members(program, role)) // program.ctas
    if now and shares_memory(program, role, waiting):
        alike = families(program).get(role, "").split(",")
        ones = (program.agents[n].role for n in arriving_on(program, group, role))
        for one in dict.fromkeys(one for one in ones if one not in alike):
            others = Repair(K.DROP, one, group), Repair(K.COUNT, "", group, now, was)
            yield from ((4, Repair(K.ARRIVE, role, group, last, past=past, also=others)) for past in begun)


def _counted_in(program: Program, role: str, group: str, users: list[int]) -> Iterator[Ranked]:
    """The agents of a role that use the stages of a group and do not arrive, and the count with them."""
    mine = set(barriers_of(program, group))
    every = executions(program, ops=ARRIVES)
    heard = {each.agent for each in every if barrier_of(each.op) in mine and gives_back(each.op)}
    silent = [agent for agent in users if agent not in heard]
    was, now = count_of(program, group), arrivals_of(program, group)
    waits = {name for one in silent for name in _awaited_groups(program, one)}
    if waits and was == now > 0 and group not in waits and any(_awaited_groups(program, n) & waits for n in heard):
        for site in sites_of(program, role, {int(Op.ARRIVE)}):
            if site.about == group:
                yield 5, Repair(K.COUNT_IN, role, group, was + len(silent), was, at=site)
        yield 5, Repair(K.COUNT_IN, role, group, was + len(silent) // program.ctas, was)


def _awaited_groups(program: Program, agent: int) -> set[str]:
    """The groups that an agent waits for."""
    return {site.about for site in program.instructions[agent] if site.op in PARITY_WAITS}


def of_waits(program: Program) -> Iterator[Ranked]:
    """Parities, and waits that are missing or that no agent needs."""
    waits = pairs(program, lambda op: op[0] in PARITY_WAITS)
    for kind in (K.PHASES, K.STAGES):
        for pair in waits:
            likely, slip = first_parities(program, *pair), 5 if program.coverage.extracted and kind is K.PHASES else 6
            once = 3 * _waits_once(program, *pair)  # with the other parity it does not wait at all
            yield from ((4 + once * start if start in likely else slip, Repair(kind, *pair, start)) for start in (0, 1))
    given = pairs(program, arrives)
    for role in roles_of(program):
        ends = [group for one, group in given if one == role]
        for group in (group for group in groups_in(program) if (role, group) not in waits):
            yield from _of_a_wait(program, role, group, ends, waits)
    for role, group in waits:  # it may wait at its end alone
        starts = first_parities(program, role, group)
        yield from ((5, Repair(K.ACQUIRE, role, group, start, Placement.VISIT.value)) for start in starts)
    yield from _of_first_turns(program)
    yield from ((6, Repair(K.LEAVE_OUT, *pair)) for pair in waits)
    several = _of_one_parity(program)
    for group, of_group in several.items() if len(several) == 1 else ():
        starts = first_parities(program, of_group[0], group)
        yield from ((2, Repair(K.PHASES, ",".join(dict.fromkeys(of_group)), group, start)) for start in starts)
    yield 3 if several else 7, Repair(K.LAPS, "", "")


def _of_one_parity(program: Program) -> dict[str, list[str]]:
    """The groups of a kernel on which an agent waits for a barrier several times, always with the same parity: who."""
    waits: dict[tuple[int, int], list[int]] = {}  # by agent and barrier
    for agent, _, op, _ in executions(program, ops=PARITY_WAITS) if program.coverage.extracted else ():
        waits.setdefault((agent, barrier_of(op)), []).append(operand(op, "parity"))
    found: dict[str, list[str]] = {}
    for (agent, barrier), parities in waits.items():
        if len(set(parities)) == 1 < len(parities):
            found.setdefault(program.barriers[barrier].name, []).append(program.agents[agent].role)
    return found


def _of_first_turns(program: Program) -> Iterator[Ranked]:
    """The first wait of those who take turns, each with a barrier of its own, with the other parity at one of them: a
    turn that is free, of all such groups together.
    """
    first: dict[str, dict[int, dict[str, int]]] = {}  # by group, stage and role the parity of the first wait
    stages: dict[tuple[str, int], set[int]] = {}
    for agent, _, op, _ in executions(program, ops=PARITY_WAITS):
        at, role = program.barriers[barrier_of(op)], program.agents[agent].role
        first.setdefault(at.name, {}).setdefault(at.stage, {}).setdefault(role, operand(op, "parity"))
        stages.setdefault((at.name, agent), set()).add(at.stage)
    several = {group for (group, _), each in stages.items() if len(each) > 1}
    flips = [
        Repair(K.PHASES, ",".join(roles), group, 1 - min(roles.values()), stage)
        for group, each in first.items()
        if group not in several and len(each) > 1
        for stage, roles in each.items()
        if len(set(roles.values())) == 1
    ]
    if len(flips) > 1:
        yield 4, replace(flips[0], also=tuple(flips[1:]))
    for stage in dict.fromkeys(each.was for each in flips):
        every = [each for each in flips if each.was == stage]
        yield from ((4, repair) for repair in every)
        if len(every) > 1 and len({each.value for each in every}) == 1:
            yield 3, replace(every[0], also=tuple(every[1:]))


def _waits_once(program: Program, role: str, group: str) -> bool:
    """True if no agent of the role waits for a barrier of the group more than once."""
    waits = [
        (agent, barrier_of(op)) for agent, _, op, site in executions(program, role, PARITY_WAITS) if site.about == group
    ]
    return len(set(waits)) == len(waits)


def _of_a_wait(
    program: Program, role: str, group: str, ends: list[str], waits: list[tuple[str, str]]
) -> Iterator[Ranked]:
    """A wait of a role for a group, with the parities that the first lap could have.

    Before it signals the group after whose phase others give this one back; else before any that it signals: of the
    groups ``ends``.
    """
    starts, returned = first_parities(program, role, group), returned_after(program, role, group)
    served = any(other == group for _, other in waits) and any(one == role for one, _ in waits)
    unlikely = group in ends or not shares_memory(program, role, arriving_on(program, group, role))
    rank = 7 if unlikely or (served and returned.isdisjoint(ends)) else 5
    others = sorted((end for end in ends if len(ends) > 1 and end != group), key=lambda end: end not in returned)
    places = [(-1, end) for end in ("", *others)]
    places += [(Placement.VISIT.value, end) for end in (*(end for end in ends if end in returned), "")]
    for was, end in places:
        past = SourceInstruction(int(Op.ARRIVE), "", end) if end else NOWHERE
        yield from ((rank, Repair(K.ACQUIRE, role, group, start, was, past=past)) for start in starts)
    used = sites_of(program, role, TOUCHES_MEMORY)
    tiles = (SourceInstruction(int(Op.READ), "", tile) for tile in dict.fromkeys(site.about for site in used))
    yield from ((rank, Repair(K.ACQUIRE, role, group, 0, Placement.WRITTEN.value, tile)) for tile in tiles)
    partly = Placement.PARTLY.value
    for start in reversed(starts):
        yield from ((rank, Repair(K.ACQUIRE, role, group, start, partly, site)) for site in used)


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


def of_transfers(program: Program) -> Iterator[Ranked]:
    """Commits and waits for groups of transfers that are missing: a wait as late as it is enough."""
    for role in roles_of(program):
        before = [site for site in reversed(sites_of(program, role)) if site.op != Op.WAIT_GROUP]
        for engine in (engine for engine in engines_of(program, role) if engine != Engine.TCGEN05):
            group = str(engine)
            yield 2, Repair(K.CLOSE, role, group)
            yield 3, Repair(K.CLOSE, role, group, 2)
            left_out = _left_out(program, role, engine) if engine == Engine.CP_ASYNC else ()
            yield from ((2, Repair(K.CLOSE, role, group, 1, at=site)) for site in left_out)
            rank = 7 if waits_for_each(program, role, engine) else 5
            for depth in range(_DEEPEST, -1, -1):
                yield from ((rank, Repair(K.GROUP_WAIT, role, group, depth, at=at)) for at in before)


def _left_out(program: Program, role: str, engine: int) -> dict[SourceInstruction, None]:
    """The commits that come before a wait for groups most times, and not each time."""
    found: dict[SourceInstruction, None] = {}
    for agent in members(program, role):
        commit, last = NOWHERE, NOWHERE
        before, copies = dict[SourceInstruction, SourceInstruction](), dict[SourceInstruction, SourceInstruction]()
        times = Counter(program.instructions[agent])
        for op, site in zip(program.code[agent], program.instructions[agent], strict=True):
            if on_engine(op, {int(Op.COMMIT)}, engine):
                commit = site
            elif on_engine(op, ENGINE_ACCESSES, engine):
                last = site
            elif on_engine(op, {int(Op.WAIT_GROUP)}, engine):
                (before if commit.op else copies)[site] = commit if commit.op else last
                commit = NOWHERE
        again = (before[wait] if times[before[wait]] > 1 else copies[wait] for wait in copies if wait in before)
        found |= dict.fromkeys(again)
    return found


def given_back_after(program: Program, role: str, site: SourceInstruction) -> SourceInstruction:
    """The first instruction after this one by which an agent of the role gives something back; NOWHERE without one."""
    for agent in members(program, role):
        mine = list(zip(program.code[agent], program.instructions[agent], strict=True))
        at = next((pc for pc, (_, here) in enumerate(mine) if here == site), len(mine))
        found = next((here for op, here in mine[at:] if gives_back(op)), NOWHERE)
        if found != NOWHERE:
            return found
    return NOWHERE


def waits_for_each(program: Program, role: str, engine: int) -> bool:
    """True if the role waits about as often for groups of the engine as it closes one."""
    every = executions(program, role, {int(Op.COMMIT), int(Op.WAIT_GROUP)})
    mine = [each for each in every if operand(each.op, "engine") == engine]
    commits = [each.agent for each in mine if each.op[0] == Op.COMMIT]
    return 4 * (len(mine) - len(commits)) >= max(3 * (len(commits) - len(set(commits))), 1)
