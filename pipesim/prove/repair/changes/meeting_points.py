"""Corrections of named barriers, of barriers of another stage, of lanes that meet, and of the cluster."""

from collections.abc import Iterator
from heapq import merge
from operator import itemgetter

from pipesim.model.finding import Fault
from pipesim.model.groups import (
    ACCESSES,
    COMMITS,
    MEETINGS,
    ON_NAMED_BARRIER,
    PARITY_WAITS,
    READS_MEMORY,
    SIGNALS,
    TOUCHES_MEMORY,
)
from pipesim.model.ops import Engine, Op, operand
from pipesim.model.program import Program
from pipesim.model.rules.sync import WARP
from pipesim.model.tables import NAMED_BARRIERS, SourceInstruction
from pipesim.prove.repair.changes.joint_actions import copying_into
from pipesim.prove.repair.changes.numbers import count_of
from pipesim.prove.repair.changes.other_operands import begins_at, shifts
from pipesim.prove.repair.kinds import NOWHERE, OF_COPIES, SIGNALLING, Ranked, Repair, RepairKind
from pipesim.prove.repair.sites import (
    arrived_at,
    barrier_of,
    engines_of,
    executes,
    executes_everywhere,
    executes_together,
    executions,
    families,
    gives_back,
    groups_in,
    members,
    numbered,
    numbers_of,
    on_engine,
    operations_at,
    operations_of,
    pairs,
    roles_of,
    site_of,
    sites_of,
    stages_of,
    team_of,
    threads_of,
    warp_of,
    warpgroups,
)

K = RepairKind
_NEAR = 4  #: operations before and after one that may be the access it is for


def of_meetings(program: Program) -> Iterator[Ranked]:
    """Named barriers: who waits there, who only arrives, and meetings that are missing."""
    in_use = {0}.union(*(numbers_of(program, agent) for agent in range(len(program.agents))))
    yield from _for_each_slot(program, in_use)
    for role in (*roles_of(program), *dict.fromkeys(families(program).values())):
        mine, sites = members(program, role), sites_of(program, role)
        for site in (site for site in sites if site.op in ON_NAMED_BARRIER):
            at = _numbers_at(program, role, site)
            if site.op == Op.BAR_ARRIVE:
                yield 3, Repair(K.SYNCS, role, numbered(at), at=site)
            rank = 2 if _is_crossed(program, role, site) else 6
            yield from _other_numbers(program, role, site, at)
            yield from ((rank, Repair(K.SHIFT, role, numbered(at), by, at=site)) for by in range(1, len(at)))
        common = [site for site in reversed(sites) if executes_together(program, role, site)]
        if any(len(warp_of(program, agent)) > 1 for agent in mine):
            yield from _of_lanes(program, role)
            continue
        for numbers, count in _meeting_places(program, role):
            group, rank = numbered(numbers), 5 if numbers[0] in in_use else 6
            yield from ((rank, Repair(K.SYNC, role, group, count, was, at=site)) for site in common for was in (1, 0))
            waits = [any(op[0] == Op.BAR_SYNC and program.named_barrier(op) in numbers for op in program.code[n])
                     for n in mine]  # fmt: skip
            if any(waits) and not all(waits):  # they take turns
                yield 4, Repair(K.PRIME, role, group, count, 1)
            once_more = set(numbers) <= set(arrived_at(program, role))  # it could as well do so before
            yield 4 if once_more else 7, Repair(K.PRIME, role, group, count)
        for group in groups_in(program):
            stages = len(stages_of(program, mine[0], group))
            for beside in (s for s in sites if s.about == group and s.op in (SIGNALLING - MEETINGS) | PARITY_WAITS):
                rank, first = 3 if _is_crossed(program, role, beside) else 7, begins_at(program, role, beside)
                for by in shifts(stages):
                    in_order = first > 0 and (first + by) % stages == 0
                    yield min(rank, 4) if in_order else rank, Repair(K.SHIFT, role, group, by, stages, at=beside)


def _for_each_slot(program: Program, in_use: set[int]) -> Iterator[Ranked]:
    """A named barrier for each slot of a tile, for one at which some warps arrive and others wait."""
    for number in sorted(in_use - {0}):
        done = [{op[0] for op in code if program.named_barrier(op) == number} for code in program.code]
        if {int(Op.BAR_ARRIVE)} in done and {int(Op.BAR_SYNC)} in done:
            for tile in (tile for tile in program.tiles if tile.slots > 1 and not tile.cta):
                others = set(range(number + 1, number + tile.slots))
                if not others & in_use and max(others) < NAMED_BARRIERS:
                    yield 3, Repair(K.NUMBER, "", str(number), tile.slots, past=NOWHERE._replace(about=tile.name))


def _threads_at(program: Program) -> dict[int, int]:
    """The threads of each named barrier, as it is asked for first."""
    found: dict[int, int] = {}
    for *_, op, _ in executions(program, ops=ON_NAMED_BARRIER):
        found.setdefault(program.named_barrier(op), operand(op, "threads"))
    return found


def _other_numbers(program: Program, role: str, site: SourceInstruction, at: list[int]) -> Iterator[Ranked]:
    """The same at other named barriers in use, as many of them and of as many threads."""
    asked = _threads_at(program)
    others = {
        tuple(_numbers_at(program, other, beside))
        for other in roles_of(program)
        for beside in sites_of(program, other, ON_NAMED_BARRIER)
    }
    threads = next((operand(op, "threads") for ops in operations_at(program, role, site) for op in ops), 0)
    for numbers in sorted(others):
        if (
            at
            and len(numbers) == len(at)
            and 0 not in numbers
            and numbers != tuple(at)
            and asked[numbers[0]] == threads
        ):
            rank = 3 if set(numbers) & set(at) or _arrives_for_itself(program, role, site, at) else 7
            rank = 4 if rank == 3 and _is_after(program, role, site, at) else rank
            yield rank, Repair(K.SHIFT, role, numbered((*at, *numbers)), len(at), at[0], at=site)


def _is_after(program: Program, role: str, site: SourceInstruction, numbers: list[int]) -> bool:
    """True if a role always arrives where it has waited last, at one of these: those who take turns do."""
    found: list[bool] = []
    for agent in members(program, role):
        last = -1
        for op, here in zip(program.code[agent], program.instructions[agent], strict=True):
            if here == site and op[0] == Op.BAR_ARRIVE and last > 0:
                found.append(last in numbers)
            last = program.named_barrier(op) if op[0] == Op.BAR_SYNC else last
    return bool(found) and all(found)


def _arrives_for_itself(program: Program, role: str, site: SourceInstruction, at: list[int]) -> bool:
    """True if a role only arrives at named barriers at which it waits as well."""
    synced = {program.named_barrier(each.op) for each in executions(program, role, {int(Op.BAR_SYNC)})}
    return site.op == Op.BAR_ARRIVE and set(at) <= synced


def _is_crossed(program: Program, role: str, site: SourceInstruction) -> bool:
    """True if an instruction on barriers is for other stages than the slots that are used beside it."""
    numbers = _numbers_at(program, role, site) if site.op in ON_NAMED_BARRIER else []
    found: list[bool] = []
    for agent, pc, op, here in executions(program, role, {site.op}):
        if here != site:
            continue
        code = program.code[agent]
        after, before = code[pc + 1 : pc + _NEAR], code[max(pc - _NEAR, 0) : pc][::-1]
        late = op[0] == Op.BAR_ARRIVE or gives_back(op)  # comes after the use of a slot
        near = (*before, *after) if late else (*after, *before)
        slot = next((program.slot_of(operand(op, "access")) for op in near if op[0] in TOUCHES_MEMORY), -1)
        if op[0] in ON_NAMED_BARRIER:
            number = program.named_barrier(op)
            stage = numbers.index(number) if number in numbers else slot
        else:
            stage = program.barriers[barrier_of(op)].stage
        found.append(slot not in (-1, stage))
    return bool(found) and all(found)


# what those who use the bytes of a race may learn of each other


def of_uses(program: Program, fault: Fault, found: Iterator[Ranked]) -> Iterator[Ranked]:
    """With what those who use a race's bytes may learn of each other, or wait."""
    rank = itemgetter(0)
    of_race = of_reuse if program.coverage.extracted else of_last_uses
    told = sorted(dict.fromkeys((*of_signals_for_all(program, fault), *of_met_signals(program, fault))), key=rank)
    return merge(of_race(program, fault), told, found, key=rank)


def _meetings(program: Program, role: str, at: SourceInstruction, rank: int, was: int) -> Iterator[Ranked]:
    """The warps of a role meet before an instruction, or (``was`` 1) after it."""
    for numbers, count in _meeting_places(program, role):
        yield rank, Repair(K.SYNC, role, numbered(numbers), count, was, at=at)


def of_reuse(program: Program, fault: Fault) -> Iterator[Ranked]:
    """Of a race for bytes that transfers read their agents' wait; of warps with the same code a meeting of all before
    an access of threads.
    """
    sides, team = operations_of(fault), team_of(program, fault.agent)
    if fault.other_agent >= 0 and program.agents[fault.other_agent].role in team.split(","):
        for agent, pc in sides:
            op = program.code[agent][pc]
            if op[0] in ACCESSES or on_engine(op, {int(Op.TRANSFER_WRITE)}, Engine.CP_ASYNC):
                yield from _meetings(program, team, site_of(program, agent, pc), 3, 0)
    for (reader, read), (writer, written) in (sides, sides[::-1]):
        op = program.code[reader][read]
        if op[0] != Op.TRANSFER_READ:
            continue
        engine, role = operand(op, "engine"), team_of(program, reader)
        by_threads = program.code[writer][written][0] in ACCESSES
        yield from _earlier_waits(program, role, reader, engine) if by_threads else ()
        if by_threads and writer != reader:  # they meet after their last instruction before the transfer: the fence
            before = reversed(program.instructions[reader][:read])
            last = next((site for site in before if executes_everywhere(program, role, site)), None)
            yield from _meetings(program, role, last, 2, 1) if last is not None else ()
        ends = (site for site in program.instructions[reader][read:] if site.op in SIGNALS | {int(Op.WAIT_GROUP)})
        signal = next(ends, NOWHERE)
        of_engine = [op for op in program.code[reader] if on_engine(op, {int(Op.COMMIT), int(Op.WAIT_GROUP)}, engine)]
        waits = [operand(op, "groups") for op in of_engine if op[0] == Op.WAIT_GROUP]
        rarely = by_threads or 2 * len(waits) < len(of_engine)  # than it commits
        if signal.op in SIGNALS and signal.line and rarely and not any(waits):
            using = ",".join(each for each in role.split(",") if engine in engines_of(program, each))
            yield 2, Repair(K.GROUP_WAIT, using, str(engine), 0, at=signal)


def _earlier_waits(program: Program, role: str, agent: int, engine: int) -> Iterator[Ranked]:
    """The first wait for groups of an engine before the meeting that it comes after now."""
    met = NOWHERE
    for op, site in zip(program.code[agent], program.instructions[agent], strict=True):
        met = site if op[0] == Op.BAR_SYNC else met
        if on_engine(op, {int(Op.WAIT_GROUP)}, engine):
            if met.op:
                yield 2, Repair(K.MOVE, role, site.about, 1, at=site, past=met)
            return


def _signals_of(program: Program, role: str) -> list[SourceInstruction]:
    return [site for site in sites_of(program, role, SIGNALS | COMMITS) if site.line]


def of_last_uses(program: Program, fault: Fault) -> Iterator[Ranked]:
    """Of a race a wait for transfers that comes too late; what its agents give back only after their last use of the
    tile that it is for.
    """
    late: list[Ranked] = []
    for agent, pc in operations_of(fault):
        role, use, op = program.agents[agent].role, site_of(program, agent, pc), program.code[agent][pc]
        if op[0] == Op.TRANSFER_READ:
            yield from _earlier_waits(program, role, agent, operand(op, "engine"))
        if use.op in READS_MEMORY and use.about:
            past = use._replace(line="")
            late += ((4, Repair(K.MOVE, role, s.about, 3, at=s, past=past)) for s in _signals_of(program, role))
    yield from late


def of_signals_for_all(program: Program, fault: Fault) -> Iterator[Ranked]:
    """Of bytes that several warps read, and of which one alone says that they are: they meet before it does."""
    for agent, pc in operations_of(fault):
        if agent < 0 or pc < 0 or program.code[agent][pc][0] not in READS_MEMORY:
            continue
        team, use = team_of(program, agent), site_of(program, agent, pc)
        for mate in members(program, team):
            sites = program.instructions[mate]
            read = sites.index(use) if use in sites else len(sites)
            told = next((n for n in range(read, len(sites)) if sites[n].op in SIGNALS), -1)
            if told < 0 or executes(program, agent, sites[told]):
                continue
            last = next((site for site in reversed(sites[read:told]) if executes_everywhere(program, team, site)), None)
            rank = 2 if program.coverage.extracted else 7  # in a description each warp can as well signal for itself
            yield from _meetings(program, team, last, rank, 1) if last is not None else ()


def of_met_signals(program: Program, fault: Fault) -> Iterator[Ranked]:
    """Of a race for bytes that warps of a kernel read, what they signal before it: after their last read there."""
    for agent, pc in operations_of(fault) if program.coverage.extracted else ():
        role, use = program.agents[agent].role, site_of(program, agent, pc)
        for site in _signals_of(program, role) if use.op in ACCESSES and use.line else ():
            first = next((each for each in program.instructions[agent] if each in (site, use)), use)
            if use.op in READS_MEMORY or first == site:
                yield 3, Repair(K.MOVE, team_of(program, agent), site.about, 2, at=site, past=use)


def _of_lanes(program: Program, role: str) -> Iterator[Ranked]:
    """Meetings of the lanes of a warp beside instructions that all of them execute."""
    lanes = warp_of(program, members(program, role)[0])
    for site in (s for s in reversed(sites_of(program, role)) if all(executes(program, a, s) for a in lanes)):
        yield from ((4, Repair(K.WARP_SYNC, "", "", 0, was, at=site)) for was in (1, 0))


def _numbers_at(program: Program, role: str, site: SourceInstruction) -> list[int]:
    """The named barriers of one instruction, in order."""
    found = {program.named_barrier(op) for each in operations_at(program, role, site) for op in each}
    return sorted(number for number in found if number < NAMED_BARRIERS)


def _meeting_places(program: Program, role: str) -> Iterator[tuple[list[int], int]]:
    """Named barriers at which a role could meet, with the threads: its own, those of others alone, a free one."""
    mine, asked = members(program, role), _threads_at(program)
    own = dict.fromkeys(number for agent in mine for number in numbers_of(program, agent))
    yield from (([number], asked[number]) for number in own)
    apart = [[number for number in numbers_of(program, agent) if number] for agent in mine]
    if len(own) > 1 and all(len(numbers) == 1 for numbers in apart):  # of each warp group its own
        yield sorted({number for (number,) in apart}), asked[apart[0][0]]
    for numbers in (_numbers_at(program, role, site) for site in sites_of(program, role, ON_NAMED_BARRIER)):
        if len(numbers) > 1:
            yield numbers, asked[numbers[0]]
    others: dict[int, dict[int, None]] = {}
    for number in (number for agent in range(len(program.agents)) for number in numbers_of(program, agent)):
        if number not in own:
            others.setdefault(asked[number], {})[number] = None
    yield from ((sorted(numbers), count) for count, numbers in others.items())
    warps = 32 * len({(program.agents[agent].cta, program.agents[agent].warp) for agent in mine}) // program.ctas
    if warps == threads_of(program, program.agents[mine[0]].cta):
        yield [0], warps
    elif len(mine) > 1 and warps not in {asked[number] for number in own}:
        free = max(asked, default=0) + 1
        yield [min(free, NAMED_BARRIERS - 1)], warps
        if not own and (groups := len(warpgroups(program, role))) > 1:
            yield [free + n for n in range(groups)], 4 * WARP


def of_the_cluster(program: Program) -> Iterator[Ranked]:
    """Arrives for the other CTAs, and a meeting of all before they exit."""
    if program.ctas == 1:
        return
    copies = any(op[0] == Op.TMA_LOAD for op in program.operations)
    for role, group in pairs(program, gives_back):
        commits = any(site.about == group for site in sites_of(program, role, {int(Op.COMMIT)}))
        at = NOWHERE._replace(op=int(Op.COMMIT), about=group) if commits else NOWHERE
        yield 2, Repair(K.PEERS, role, group, int(_is_remote(program, role, group)), at=at)
        if copies and (was := count_of(program, group)) > 0:
            yield from _to_those_who_copy(program, role, group, was, at)
    met = {sum(op[0] == Op.CLUSTER_ARRIVE for op in code) for code in program.code}
    drains = any(op[0] in PARITY_WAITS for code in program.code for op in code[-1:])  # and not for all, maybe
    yield 1 if len(met) > 1 else 3 + drains, Repair(K.CLUSTER_END, "", "")
    for role, group in pairs(program, lambda op: op[0] in PARITY_WAITS):
        if any(_is_remote(program, other, group) for other in roles_of(program)):
            yield 3, Repair(K.DRAIN, role, group)


def _to_those_who_copy(program: Program, role: str, group: str, was: int, at: SourceInstruction) -> Iterator[Ranked]:
    """One arrive for each CTA whose copies land in the agent's, and the count with which all of them are awaited."""
    first = members(program, role)[0]
    ops = {op for op in program.code[first] if gives_back(op) and program.barriers[barrier_of(op)].name == group}
    each, rest = divmod(was, max(len({program.barriers[barrier_of(op)].cta for op in ops}), 1))
    copying = len(copying_into(program, program.agents[first].cta))
    split = bool(ops) and all(op[0] == Op.ARRIVE and operand(op, "count") == copying for op in ops)
    now = each if split else each * copying
    counted = () if now == was else (Repair(K.COUNT, "", group, now, was),)
    if not rest:
        yield 3, Repair(K.PEERS, role, group, OF_COPIES, at=at, also=counted)


def _is_remote(program: Program, role: str, group: str) -> bool:
    """True if agents of the role arrive on the group of another CTA."""
    mine = (each for each in executions(program, role) if each.site.about == group and gives_back(each.op))
    return any(program.barriers[barrier_of(op)].cta != program.agents[agent].cta for agent, _, op, _ in mine)
