"""Corrections that add what a role lacks: arrives, waits, commits; or leave out waits that no agent needs."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from pipesim.model.groups import ACCESSES, ENGINE_ACCESSES, LIFE, ON_BARRIER, PARITY_WAITS, TOUCHES_MEMORY
from pipesim.model.ops import Engine, Op, operand
from pipesim.model.program import Program
from pipesim.model.tables import SourceInstruction
from pipesim.prove.repair.changes.arithmetic import arrivals_of, count_of, pairs
from pipesim.prove.repair.changes.order import arriving_on, first_parities, gives_back, returned_after, shares_memory
from pipesim.prove.repair.kinds import NOWHERE, Placement, Ranked, Repair, RepairKind
from pipesim.prove.repair.sites import barriers_of, engines_of, families, members, roles_of, sites_of, stages_of

K = RepairKind
_DEEPEST = 3  #: groups that a wait which is added may leave under way


def of_arrives(program: Program) -> Iterator[Ranked]:
    """Arrives that are missing: of a role on a group, in its tail, of warps that no agent counts."""
    released = pairs(program, lambda op: gives_back(op) and operand(op, "barrier") >= 0)
    waits = pairs(program, lambda op: op[0] in PARITY_WAITS)
    groups = dict.fromkeys(barrier.name for barrier in program.barriers)
    for role in roles_of(program):
        after = [s for s in reversed(sites_of(program, role)) if s.op in (ON_BARRIER - LIFE) | TOUCHES_MEMORY]
        for group in (group for group in groups if not arrivals_of(program, group) and (role, group) not in waits):
            yield from ((5, Repair(K.TAIL, role, group, at=site)) for site in after)  # once in its work
        told = pairs(program, lambda op: op[0] == Op.ARRIVE)
        yield from ((3, Repair(K.TAIL, role, group, 2)) for one, group in told if one == role)
        users = [
            n for n in members(program, role) if any(op[0] in ACCESSES | ENGINE_ACCESSES for op in program.code[n])
        ]
        if not users:
            continue
        last = Engine.TCGEN05.value if Engine.TCGEN05 in set(engines_of(program, role)) else 0
        for group in groups:
            stages, returned = len(barriers_of(program, group)), returned_after(program, role, group)
            asked = [name for one, name in waits if (one, len(barriers_of(program, name))) == (role, stages)]
            asked.sort(key=lambda name: name not in returned)
            alike = [SourceInstruction(int(Op.WAIT), "", name) for name in asked if name != group]
            if (role, group) in released:  # as soon as it is safe
                after = [
                    s for s in sites_of(program, role) if s.op in ACCESSES | ENGINE_ACCESSES | {int(Op.WAIT_GROUP)}
                ]
                for was, past in ((-1, NOWHERE), *((Placement.LAST.value, past) for past in alike)):
                    yield from ((4, Repair(K.ARRIVE, role, group, last, was, site, past)) for site in after)
                yield 5, Repair(K.TAIL, role, group, 1)
            else:
                yield 4, Repair(K.ARRIVE, role, group, last)
                yield 4, Repair(K.TAIL, role, group)
                each, rest = divmod(len(users), max(count_of(program, group), 1) * program.ctas)
                if each > 1 and not rest:
                    after = [
                        site for site in sites_of(program, role) if site.op in {int(Op.BAR_SYNC), int(Op.WAIT_GROUP)}
                    ]
                    for site in (*after, NOWHERE):
                        each = 0 if each == len(users) else each
                        yield 4, Repair(K.ARRIVE, role, group, each, Placement.ONE_WARP.value, at=site)
                for past in alike:
                    yield 4, Repair(K.ARRIVE, role, group, last, past=past)
                    yield 4, Repair(K.ARRIVE, role, group, last, Placement.LAST.value, past=past)
                    begun = [s for s in sites_of(program, role) if s.op in PARITY_WAITS and s.about == past.about]
                    yield from ((4, Repair(K.ARRIVE, role, group, last, at=site, past=past)) for site in begun)
            yield from _counted_in(program, role, group, users)
            if (role, group) not in (*released, *waits) and (was := count_of(program, group)) > 0:
                yield from _handed_over(program, role, group, was, alike, last)


def _handed_over(
    program: Program, role: str, group: str, was: int, begun: list[SourceInstruction], last: int
) -> Iterator[Ranked]:
    """A group that one role gives back, given back by another one instead, which uses what is filled after the wait.

    Not between warps that execute the same code.
    """
    waiting = [n for n, code in enumerate(program.code) if group in _awaited_groups(program, n) and code]
    now = len(members(program, role)) // program.ctas
    if now and shares_memory(program, role, waiting):
        alike = families(program).get(role, "").split(",")
        ones = (program.agents[n].role for n in arriving_on(program, group, role))
        for one in dict.fromkeys(one for one in ones if one not in alike):
            others = Repair(K.DROP, one, group), Repair(K.COUNT, "", group, now, was)
            yield from ((4, Repair(K.ARRIVE, role, group, last, past=past, also=others)) for past in begun)


def _counted_in(program: Program, role: str, group: str, users: list[int]) -> Iterator[Ranked]:
    """The agents of a role that use the stages of a group and do not arrive, and the count with them."""
    silent = [
        agent
        for agent in users
        if not any(gives_back(op) and operand(op, "barrier") in stages_of(program, agent, group).values()
                   for op in program.code[agent])
    ]  # fmt: skip
    was, now = count_of(program, group), arrivals_of(program, group)
    waits = {name for one in silent for name in _awaited_groups(program, one)}
    siblings = [n for n in range(len(program.agents)) if n not in silent and _awaited_groups(program, n) & waits]
    heard = any(gives_back(op) and operand(op, "barrier") in barriers_of(program, group)
                for agent in siblings for op in program.code[agent])  # fmt: skip
    if silent and heard and was == now > 0 and group not in waits:
        for site in sites_of(program, role):
            if site.op == Op.ARRIVE and site.about == group:
                yield 5, Repair(K.COUNT_IN, role, group, was + len(silent), was, at=site)
        yield 5, Repair(K.COUNT_IN, role, group, was + len(silent) // program.ctas, was)


def _awaited_groups(program: Program, agent: int) -> set[str]:
    """The groups that an agent waits for."""
    return {site.about for site in program.instructions[agent] if site.op in PARITY_WAITS}


def of_waits(program: Program) -> Iterator[Ranked]:
    """Parities, and waits that are missing or that no agent needs."""
    waits = pairs(program, lambda op: op[0] in PARITY_WAITS)
    groups = dict.fromkeys(barrier.name for barrier in program.barriers)
    for kind in (K.PHASES, K.STAGES):
        for pair in waits:
            likely, slip = first_parities(program, *pair), 5 if program.coverage.extracted and kind is K.PHASES else 6
            once = 3 * _waits_once(program, *pair)  # with the other parity it does not wait at all
            yield from ((4 + once * start if start in likely else slip, Repair(kind, *pair, start)) for start in (0, 1))
    unasked = [(role, group) for role in roles_of(program) for group in groups if (role, group) not in set(waits)]
    for role, group in unasked:
        yield from _of_a_wait(program, role, group)
    for role, group in waits:  # it may wait at its end alone
        starts = first_parities(program, role, group)
        yield from ((5, Repair(K.ACQUIRE, role, group, start, Placement.VISIT.value)) for start in starts)
    yield from _of_first_turns(program)
    yield from ((6, Repair(K.LEAVE_OUT, *pair)) for pair in waits)
    several = _of_one_parity(program)
    for group, of_group in several.items() if len(several) == 1 else ():
        role = ",".join(dict.fromkeys(of_group))
        yield from ((2, Repair(K.PHASES, role, group, start)) for start in first_parities(program, of_group[0], group))
    yield 3 if several else 7, Repair(K.LAPS, "", "")


def _of_one_parity(program: Program) -> dict[str, list[str]]:
    """The groups of a kernel on which an agent waits for a barrier several times, always with the same parity: who."""
    found: dict[str, list[str]] = {}
    for agent, code in enumerate(program.code if program.coverage.extracted else ()):
        waits = Counter(operand(op, "barrier") for op in code if op[0] in PARITY_WAITS)
        parities = Counter(bar for bar, _ in {op[1:3] for op in code if op[0] in PARITY_WAITS})
        for bar in (bar for bar, times in waits.items() if parities[bar] == 1 < times):
            found.setdefault(program.barriers[bar].name, []).append(program.agents[agent].role)
    return found


def _of_first_turns(program: Program) -> Iterator[Ranked]:
    """The first wait of those who take turns, each with a barrier of its own, with the other parity at one of them: a
    turn that is free, of one group and of all such groups together.
    """
    first: dict[str, dict[int, dict[str, int]]] = {}  # by group, stage and role the parity of the first wait
    stages: dict[tuple[str, int], set[int]] = {}
    for agent, code in enumerate(program.code):
        for op in (op for op in code if op[0] in PARITY_WAITS):
            at = program.barriers[operand(op, "barrier")]
            first.setdefault(at.name, {}).setdefault(at.stage, {}).setdefault(
                program.agents[agent].role, operand(op, "parity")
            )
            stages.setdefault((at.name, agent), set()).add(at.stage)
    several = {group for (group, _), each in stages.items() if len(each) > 1}
    turns = {group: each for group, each in first.items() if group not in several and len(each) > 1}
    flips = [
        Repair(K.PHASES, ",".join(roles), group, 1 - min(roles.values()), stage)
        for group, each in turns.items()
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
    waits = [[op[:2] for op, site in zip(program.code[agent], program.instructions[agent], strict=True)
              if op[0] in PARITY_WAITS and site.about == group] for agent in members(program, role)]  # fmt: skip
    return all(len(set(each)) == len(each) for each in waits)


def _of_a_wait(program: Program, role: str, group: str) -> Iterator[Ranked]:
    """A wait of a role for a group, with the parities that the first lap could have.

    Before it signals the group after whose phase others give this one back; else before any that it signals.
    """
    starts = first_parities(program, role, group)
    ends = [other for one, other in pairs(program, lambda op: op[0] == Op.ARRIVE or gives_back(op)) if one == role]
    returned = returned_after(program, role, group)
    asked = {(one, other) for one, other in pairs(program, lambda op: op[0] in PARITY_WAITS)}
    served = any(other == group for _, other in asked) and any(one == role for one, _ in asked)
    unlikely = group in ends or not shares_memory(program, role, arriving_on(program, group, role))
    rank = 7 if unlikely or (served and returned.isdisjoint(ends)) else 5
    yield from ((rank, Repair(K.ACQUIRE, role, group, start)) for start in starts)
    for end in sorted((end for end in ends if len(ends) > 1 and end != group), key=lambda end: end not in returned):
        past = SourceInstruction(int(Op.ARRIVE), "", end)
        yield from ((rank, Repair(K.ACQUIRE, role, group, start, past=past)) for start in starts)
    for end in (*(end for end in ends if end in returned), ""):
        past = SourceInstruction(int(Op.ARRIVE), "", end) if end else NOWHERE
        yield from ((rank, Repair(K.ACQUIRE, role, group, start, Placement.VISIT.value, past=past)) for start in starts)
    used = [site for site in reversed(sites_of(program, role)) if site.op in TOUCHES_MEMORY]
    tiles = [SourceInstruction(int(Op.READ), "", tile) for tile in dict.fromkeys(s.about for s in reversed(used))]
    yield from ((rank, Repair(K.ACQUIRE, role, group, 0, Placement.WRITTEN.value, tile)) for tile in tiles)
    for start in starts:
        yield from ((6, Repair(K.ACQUIRE, role, group, start, Placement.FIRST.value, tile)) for tile in tiles)
    for start in reversed(starts):
        yield from ((max(rank, 6), Repair(K.ACQUIRE, role, group, start, at=site)) for site in used)
        partly = Placement.PARTLY.value
        yield from ((rank, Repair(K.ACQUIRE, role, group, start, partly, site)) for site in used[::-1])


def of_transfers(program: Program) -> Iterator[Ranked]:
    """Commits and waits for groups of transfers that are missing: a wait as late as it is enough."""
    for role in roles_of(program):
        for engine in engines_of(program, role):
            if engine == Engine.TCGEN05:
                continue
            yield 2, Repair(K.CLOSE, role, str(engine))
            yield 3, Repair(K.CLOSE, role, str(engine), 2)
            commits = [s for s in sites_of(program, role) if s.op == Op.COMMIT and s.about == str(engine)]
            for site in _left_out(program, role, engine) if engine == Engine.CP_ASYNC else ():
                yield 2, Repair(K.CLOSE, role, str(engine), 1, at=site)
            left = any(op[0] == Op.WAIT_GROUP and operand(op, "engine") == engine and operand(op, "groups")
                       for n in members(program, role) for op in program.code[n])  # fmt: skip
            for site in commits:
                past = given_back_after(program, role, site)
                yield 6, Repair(K.GROUP_WAIT, role, str(engine), 0, 1 + left, at=site, past=past)
            before = [site for site in sites_of(program, role) if site.op != Op.WAIT_GROUP]
            rank = 7 if waits_for_each(program, role, engine) else 5
            for depth in range(_DEEPEST, -1, -1):
                yield from ((rank, Repair(K.GROUP_WAIT, role, str(engine), depth, at=at)) for at in reversed(before))


def _left_out(program: Program, role: str, engine: int) -> dict[SourceInstruction, None]:
    """The commits that come before a wait for groups most times, and not each time."""
    found: dict[SourceInstruction, None] = {}
    for agent in members(program, role):
        commit, last = NOWHERE, NOWHERE
        before, without = dict[SourceInstruction, SourceInstruction](), dict[SourceInstruction, None]()
        times, copies = Counter(program.instructions[agent]), dict[SourceInstruction, SourceInstruction]()
        for op, site in zip(program.code[agent], program.instructions[agent], strict=True):
            if op[0] == Op.COMMIT and operand(op, "engine") == engine:
                commit = site
            elif op[0] in ENGINE_ACCESSES and operand(op, "engine") == engine:
                last = site
            elif op[0] == Op.WAIT_GROUP and operand(op, "engine") == engine:
                if commit.op:
                    before[site] = commit
                else:
                    without[site], copies[site] = None, last
                commit = NOWHERE
        again = (before[wait] if times[before[wait]] > 1 else copies[wait] for wait in without if wait in before)
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
    codes = [program.code[agent] for agent in members(program, role)]
    commits = [sum(op[0] == Op.COMMIT and operand(op, "engine") == engine for op in code) for code in codes]
    waits = sum(op[0] == Op.WAIT_GROUP and operand(op, "engine") == engine for code in codes for op in code)
    return 4 * waits >= max(3 * (sum(commits) - sum(map(bool, commits))), 1)
