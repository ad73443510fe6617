"""Corrections of named barriers, of barriers of another stage, of lanes that meet, and of the cluster."""

from collections.abc import Callable, Iterator
from heapq import merge
from itertools import pairwise
from operator import itemgetter

from pipesim.model.finding import Fault, FaultKind
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
from pipesim.model.ops import Engine, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.tables import NAMED_BARRIERS, SourceInstruction
from pipesim.prove.repair.changes.arithmetic import WARP, count_of, pairs, warpgroups
from pipesim.prove.repair.changes.joint_actions import copying_into
from pipesim.prove.repair.changes.missing_instructions import waits_for_each
from pipesim.prove.repair.changes.order import gives_back
from pipesim.prove.repair.changes.other_operands import begins_at, shifts
from pipesim.prove.repair.kinds import NOWHERE, OF_COPIES, SIGNALLING, TO_THE_OTHER, Ranked, Repair, RepairKind
from pipesim.prove.repair.sites import (
    arrived_at,
    engines_of,
    executes,
    executes_everywhere,
    executes_together,
    families,
    members,
    numbers_of,
    operations_at,
    roles_of,
    site_of,
    sites_of,
    stages_of,
    threads_of,
    warp_of,
)

K = RepairKind
_MEETINGS = 2  #: before a write, before which it could be waited for transfers
_NEAR = 4  #: operations before and after one that may be the access it is for


def of_meetings(program: Program) -> Iterator[Ranked]:
    """Named barriers: who waits there, who only arrives, and meetings that are missing."""
    in_use = {0}.union(*(numbers_of(program, agent) for agent in range(len(program.agents))))
    yield from ((4, Repair(K.SYNCS, "", str(number))) for number in sorted(in_use))
    yield from _for_each_slot(program, in_use)
    for role in (*roles_of(program), *dict.fromkeys(families(program).values())):
        mine = members(program, role)
        sites = list(sites_of(program, role))
        for site in (site for site in sites if site.op in ON_NAMED_BARRIER):
            at = _numbers_at(program, role, site)
            numbered = ",".join(map(str, at))
            if site.op == Op.BAR_ARRIVE:
                yield 3, Repair(K.SYNCS, role, numbered, at=site)
            rank = 2 if _is_crossed(program, role, site) else 6
            yield from _other_numbers(program, role, site, at)
            yield from ((rank, Repair(K.SHIFT, role, numbered, by, at=site)) for by in range(1, len(at)))
        yield from _to_the_other(program, role, sites)
        common = [site for site in sites if executes_together(program, role, site)]
        if any(len(warp_of(program, agent)) > 1 for agent in mine):
            yield from _of_lanes(program, role)
            continue
        own = numbers_of(program, mine[0])
        for numbers, count in _meeting_places(program, role):
            group = ",".join(map(str, numbers))
            for site in reversed(common):
                rank = 5 if numbers[0] in in_use else 6
                yield rank, Repair(K.SYNC, role, group, count, 1, at=site)
                yield rank, Repair(K.SYNC, role, group, count, 0, at=site)
                if len(numbers) == 1 and numbers[0] not in own:  # which others may meet together
                    yield rank, Repair(K.SYNC, role, group, count, 2, at=site)
            arrives = set(numbers) <= set(arrived_at(program, role))  # it could as well do so once more, before
            waits = [_waits_at(program, agent, numbers) for agent in mine]
            if any(waits) and not all(waits):  # they take turns
                yield 4, Repair(K.PRIME, role, group, count, 1)
            yield 4 if arrives else 7, Repair(K.PRIME, role, group, count)
        for group in dict.fromkeys(barrier.name for barrier in program.barriers):
            stages = len(stages_of(program, mine[0], group))
            at_group = [
                site for site in sites if site.about == group and site.op in (SIGNALLING - MEETINGS) | PARITY_WAITS
            ]
            for beside in at_group:
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
                    past = NOWHERE._replace(about=tile.name)
                    yield 3, Repair(K.NUMBER, "", str(number), tile.slots, past=past)


def _other_numbers(program: Program, role: str, site: SourceInstruction, at: list[int]) -> Iterator[Ranked]:
    """The same at other named barriers in use, as many of them and of as many threads."""
    asked = {
        program.named_barrier(op): operand(op, "threads") for op in program.operations if op[0] in ON_NAMED_BARRIER
    }
    found: dict[tuple[int, ...], None] = {}
    if not at:  # a meeting of a warp's lanes
        return
    threads = next(operand(op, "threads") for ops in operations_at(program, role, site) for op in ops)
    for other in roles_of(program):
        for beside in (beside for beside in sites_of(program, other) if beside.op in ON_NAMED_BARRIER):
            found[tuple(_numbers_at(program, other, beside))] = None
    for numbers in sorted(found):
        if set(at) < set(numbers) and asked.get(numbers[0]) == threads and at[0] > 0:
            yield 3, Repair(K.STAGES, role, ",".join(map(str, numbers)), at=site)
        if len(numbers) == len(at) and 0 not in numbers and numbers != tuple(at) and asked.get(numbers[0]) == threads:
            rank = 3 if set(numbers) & set(at) or _arrives_for_itself(program, role, site, at) else 7
            rank = 4 if rank == 3 and _is_after(program, role, site, at) else rank
            yield rank, Repair(K.SHIFT, role, ",".join(map(str, (*at, *numbers))), len(at), at[0], at=site)


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


def _to_the_other(program: Program, role: str, sites: list[SourceInstruction]) -> Iterator[Ranked]:
    """All that arrive where the same agents wait, of agents that take turns: at the barriers of the next one."""
    waits = {
        agent: {program.named_barrier(op) for op in program.code[agent] if op[0] == Op.BAR_SYNC}
        for agent in members(program, role)
    }
    own: list[SourceInstruction] = []
    found: set[int] = set()
    for site in (site for site in sites if site.op == Op.BAR_ARRIVE):
        each = zip(waits.values(), operations_at(program, role, site), strict=True)
        at = [(there, {program.named_barrier(op) for op in ops}) for there, ops in each]
        if all(numbers <= there for there, numbers in at):
            own.append(site)
            found |= {number for _, numbers in at for number in numbers}
    if len(found) > 1 and 0 not in found:
        numbered, lines = ",".join(map(str, sorted(found))), "\n".join(site.line for site in own)
        for by in range(1, len(found)):
            yield 2, Repair(K.SHIFT, role, numbered, by, TO_THE_OTHER, at=own[0]._replace(line=lines))


def _arrives_for_itself(program: Program, role: str, site: SourceInstruction, at: list[int]) -> bool:
    """True if a role only arrives at named barriers at which it waits as well."""
    synced = {
        number
        for other in sites_of(program, role)
        if other.op == Op.BAR_SYNC
        for number in _numbers_at(program, role, other)
    }
    return site.op == Op.BAR_ARRIVE and bool(at) and set(at) <= synced


def gives_away(op: Operation) -> bool:
    """True for what comes after the use of a slot, not before it."""
    return op[0] == Op.BAR_ARRIVE or gives_back(op)


def _is_crossed(program: Program, role: str, site: SourceInstruction) -> bool:
    """True if an instruction on barriers is for other stages than the slots that are used beside it."""
    numbers = _numbers_at(program, role, site) if site.op in ON_NAMED_BARRIER else []
    found: list[bool] = []
    for agent in members(program, role):
        code = program.code[agent]
        for pc in range(len(code)):
            if site_of(program, agent, pc) != site:
                continue
            after, before = code[pc + 1 : pc + _NEAR], [*reversed(code[max(pc - _NEAR, 0) : pc])]
            near = [*before, *after] if gives_away(code[pc]) else [*after, *before]
            slot = next((program.slot_of(operand(op, "access")) for op in near if op[0] in TOUCHES_MEMORY), -1)
            if code[pc][0] in ON_NAMED_BARRIER:
                number = program.named_barrier(code[pc])
                stage = numbers.index(number) if number in numbers else slot
            else:
                stage = program.barriers[operand(code[pc], "barrier")].stage
            found.append(slot not in (-1, stage))
    return bool(found) and all(found)


def _waits_at(program: Program, agent: int, numbers: list[int]) -> bool:
    """True if the agent waits at one of these named barriers."""
    return any(op[0] == Op.BAR_SYNC and program.named_barrier(op) in numbers for op in program.code[agent])


def of_uses(program: Program, fault: Fault, found: Iterator[Ranked]) -> Iterator[Ranked]:
    """With what those who use a fault's bytes may learn of each other, or wait."""
    rank: Callable[[Ranked], int] = itemgetter(0)
    if fault.kind is not FaultKind.RACE:
        of_read = merge(before_transfers(program, fault.agent, fault.pc), _before_read(program, fault), key=rank)
        return merge(of_read, found, key=rank)
    of_race = of_reuse if program.coverage.extracted else of_last_uses
    told = sorted(dict.fromkeys((*of_signals_for_all(program, fault), *of_met_signals(program, fault))), key=rank)
    return merge(of_race(program, fault), told, found, key=rank)


_BY_GROUPS = frozenset({int(Op.COMMIT), int(Op.WAIT_GROUP)})


def of_reuse(program: Program, fault: Fault) -> Iterator[Ranked]:
    """Of a race for bytes that transfers read: a meeting before they begin, their agents' wait before these meet the
    writers, or a meeting after it; of warps with the same code a meeting of all before an access of threads.
    """
    pairs = (
        (fault.agent, fault.pc, fault.other_agent, fault.other_pc),
        (fault.other_agent, fault.other_pc, fault.agent, fault.pc),
    )
    alike = families(program).get(role := program.agents[fault.agent].role, role)
    if fault.other_agent >= 0 and program.agents[fault.other_agent].role in alike.split(","):
        for agent, pc, *_ in (pair for pair in pairs if _is_of_threads(program.code[pair[0]][pair[1]])):
            for numbers, count in _meeting_places(program, alike):
                meeting = Repair(K.SYNC, alike, ",".join(map(str, numbers)), count, 0, at=site_of(program, agent, pc))
                yield 3, meeting
    for reader, read, writer, written in pairs:
        op, code = program.code[reader][read], program.code[writer]
        if op[0] in READS_MEMORY:
            yield from _given_back_after(program, reader, read)
        if op[0] != Op.TRANSFER_READ:
            continue
        engine, one = operand(op, "engine"), program.agents[reader].role
        role, by_threads = families(program).get(one, one), code[written][0] in ACCESSES
        yield from _earlier_waits(program, role, reader, engine) if by_threads else ()
        ends = (site for site in program.instructions[reader][read:] if site.op in SIGNALS | {int(Op.WAIT_GROUP)})
        signal = next(ends, NOWHERE)
        of_engine = [one for one in program.code[reader] if one[0] in _BY_GROUPS and operand(one, "engine") == engine]
        waits = [operand(one, "groups") for one in of_engine if one[0] == Op.WAIT_GROUP]
        rarely = by_threads or 2 * len(waits) < len(of_engine)  # than it commits
        if signal.op in SIGNALS and signal.line and rarely and not any(waits):
            using = ",".join(each for each in role.split(",") if engine in engines_of(program, each))
            yield 2, Repair(K.GROUP_WAIT, using, str(engine), 0, at=signal)
        if not by_threads:
            continue
        mets = [site_of(program, writer, pc) for pc in range(written) if code[pc][0] == Op.BAR_SYNC]
        for site in dict.fromkeys(reversed(mets[-_MEETINGS:])):
            for depth in (1, 0) if not waits_for_each(program, one, engine) else ():
                yield 2, Repair(K.GROUP_WAIT, role, str(engine), depth, at=site)
        yield from before_transfers(program, reader, read) if writer != reader else ()
        for pc, wait in enumerate(program.code[reader]):
            if wait[0] == Op.WAIT_GROUP and operand(wait, "engine") == engine:
                yield from _meetings_after(program, role, reader, pc)
                break


def _before_read(program: Program, fault: Fault) -> Iterator[Ranked]:
    """The warps with the same code meet before a read of one of them."""
    role = program.agents[fault.agent].role
    alike = families(program).get(role, role)
    if program.coverage.extracted and len(members(program, alike)) > 1:
        for numbers, count in _meeting_places(program, alike):
            at = site_of(program, fault.agent, fault.pc)
            yield 3, Repair(K.SYNC, alike, ",".join(map(str, numbers)), count, 0, at=at)


def _is_of_threads(op: Operation) -> bool:
    """True of an access of threads, and of their cp.asyncs."""
    return op[0] in ACCESSES or (op[0] == Op.TRANSFER_WRITE and operand(op, "engine") == Engine.CP_ASYNC)


def _given_back_after(program: Program, agent: int, read: int) -> Iterator[Ranked]:
    """What a role, with those who share its code, gives back comes only after the last use of the tile that is read."""
    role, use = program.agents[agent].role, site_of(program, agent, read)
    role = families(program).get(role, role)
    signals = (site for site in sites_of(program, role) if site.op in SIGNALS | COMMITS and not site.about.isdecimal())
    for group in dict.fromkeys(site._replace(line="") for site in signals if use.about):
        yield 3, Repair(K.MOVE, role, group.about, 4, at=group, past=use._replace(line=""))
    for site in (site for site in sites_of(program, role) if site.op in SIGNALS and site.line and use.about):
        yield 5, Repair(K.MOVE, role, site.about, 2, at=site, past=use._replace(line=""))


def before_transfers(program: Program, agent: int, pc: int) -> Iterator[Ranked]:
    """The warps of a role meet before one of them begins a transfer of what they have written."""
    one = program.agents[agent].role
    role = families(program).get(one, one)
    sites = reversed(program.instructions[agent][:pc])
    at = next((site for site in sites if executes_everywhere(program, role, site)), NOWHERE)
    for numbers, count in _meeting_places(program, role) if program.code[agent][pc][0] == Op.TRANSFER_READ else ():
        yield 2, Repair(K.SYNC, role, ",".join(map(str, numbers)), count, 1, at=at)


def _earlier_waits(program: Program, role: str, agent: int, engine: int) -> Iterator[Ranked]:
    """The first wait for groups of an engine before the meeting that it comes after now."""
    met: SourceInstruction | None = None
    for op, site in zip(program.code[agent], program.instructions[agent], strict=True):
        met = site if op[0] == Op.BAR_SYNC else met
        if op[0] == Op.WAIT_GROUP and operand(op, "engine") == engine:
            yield from ((2, Repair(K.MOVE, role, site.about, 1, at=site, past=past)) for past in (met,) if past)
            break


def of_last_uses(program: Program, fault: Fault) -> Iterator[Ranked]:
    """Of a race a wait for transfers that comes too late; what its agents give back only after their last use of the
    tile that it is for.
    """
    for agent, pc in ((fault.agent, fault.pc), (fault.other_agent, fault.other_pc)):
        if program.code[agent][pc][0] == Op.TRANSFER_READ:
            engine = operand(program.code[agent][pc], "engine")
            yield from _earlier_waits(program, program.agents[agent].role, agent, engine)
    for agent, pc in ((fault.agent, fault.pc), (fault.other_agent, fault.other_pc)):
        role, use = program.agents[agent].role, site_of(program, agent, pc)
        if use.op in READS_MEMORY and use.about:
            for site in (site for site in sites_of(program, role) if site.op in SIGNALS | COMMITS and site.line):
                yield 4, Repair(K.MOVE, role, site.about, 3, at=site, past=use._replace(line=""))


def of_signals_for_all(program: Program, fault: Fault) -> Iterator[Ranked]:
    """Of bytes that several warps read, and of which one alone says that they are: they meet before it does."""
    for agent, pc in ((fault.agent, fault.pc), (fault.other_agent, fault.other_pc)):
        if agent < 0 or pc < 0 or program.code[agent][pc][0] not in READS_MEMORY:
            continue
        role = program.agents[agent].role
        team = families(program).get(role, role)
        for mate in members(program, team):
            sites = program.instructions[mate]
            read = next((n for n, site in enumerate(sites) if site == site_of(program, agent, pc)), len(sites))
            told = next((n for n in range(read, len(sites)) if sites[n].op in SIGNALS), -1)
            if told < 0 or executes(program, agent, sites[told]):
                continue
            common = (site for site in reversed(sites[read:told]) if executes_everywhere(program, team, site))
            last = next(common, None)
            rank = 2 if program.coverage.extracted else 7  # in a description each warp can as well signal for itself
            for numbers, count in _meeting_places(program, team) if last is not None else ():
                yield rank, Repair(K.SYNC, team, ",".join(map(str, numbers)), count, 1, at=last or NOWHERE)


def of_met_signals(program: Program, fault: Fault) -> Iterator[Ranked]:
    """Of a race for bytes that warps read, what they signal before it: after their last read there; where one of them
    does once they have met, both after it.
    """
    for agent, pc in ((fault.agent, fault.pc), (fault.other_agent, fault.other_pc)):
        role, use = program.agents[agent].role, site_of(program, agent, pc)
        met = next((each for each in reversed(program.instructions[agent][:pc]) if each.op == Op.BAR_SYNC), NOWHERE)
        team = families(program).get(role, role)
        for site in (site for site in sites_of(program, role) if site.op in SIGNALS | COMMITS and site.line):
            late = use.op in READS_MEMORY or _comes_first(program, agent, site, use)
            if use.op in ACCESSES and use.line and program.coverage.extracted and late:
                yield 3, Repair(K.MOVE, team, site.about, 2, at=site, past=use)
        if use.op not in READS_MEMORY or not met.op:
            continue
        meet = Repair(K.MOVE, team, met.about, 2, at=met, past=use)
        for other in members(program, team):
            pairs = pairwise(program.instructions[other])
            for signal in dict.fromkeys(b for a, b in pairs if a == met and b.op in SIGNALS | COMMITS and b.line):
                yield 3, Repair(K.MOVE, program.agents[other].role, signal.about, at=signal, past=met, also=(meet,))


def _comes_first(program: Program, agent: int, one: SourceInstruction, other: SourceInstruction) -> bool:
    """True if an agent executes one instruction before it executes another one for the first time."""
    return next((site == one for site in program.instructions[agent] if site in (one, other)), False)


def _meetings_after(program: Program, role: str, agent: int, pc: int) -> Iterator[Ranked]:
    """The warps of a role meet before the first that all of them execute after an operation of one of them."""
    sites = (site_of(program, agent, n) for n in range(pc + 1, len(program.code[agent])))
    first = next((site for site in sites if executes_everywhere(program, role, site)), None)
    for numbers, count in _meeting_places(program, role) if first is not None else ():
        yield 2, Repair(K.SYNC, role, ",".join(map(str, numbers)), count, 0, at=first or NOWHERE)


def _of_lanes(program: Program, role: str) -> Iterator[Ranked]:
    """Meetings of the lanes of a warp beside instructions that all of them execute."""
    first = members(program, role)[0]
    lanes = warp_of(program, first)
    for site in reversed([s for s in sites_of(program, role) if all(executes(program, a, s) for a in lanes)]):
        yield from ((4, Repair(K.WARP_SYNC, "", "", 0, was, at=site)) for was in (1, 0))


def _numbers_at(program: Program, role: str, site: SourceInstruction) -> list[int]:
    """The named barriers of one instruction, in order."""
    found = {program.named_barrier(op) for each in operations_at(program, role, site) for op in each}
    return sorted(number for number in found if number < NAMED_BARRIERS)


def _meeting_places(program: Program, role: str) -> Iterator[tuple[list[int], int]]:
    """Named barriers at which a role could meet, with the threads: its own, those of others alone, a free one."""
    mine = members(program, role)
    own = {number: None for agent in mine for number in numbers_of(program, agent)}
    asked: dict[int, int] = {}
    for op in program.operations:
        if op[0] in ON_NAMED_BARRIER:
            asked.setdefault(program.named_barrier(op), operand(op, "threads"))
    yield from (([number], asked[number]) for number in own)
    apart = [[number for number in numbers_of(program, agent) if number] for agent in mine]
    if len(own) > 1 and all(len(numbers) == 1 for numbers in apart):  # of each warp group its own
        yield sorted({number for (number,) in apart}), asked[apart[0][0]]
    for site in (site for site in sites_of(program, role) if site.op in ON_NAMED_BARRIER):
        numbers = _numbers_at(program, role, site)
        if len(numbers) > 1:
            yield numbers, asked[numbers[0]]
    others: dict[int, list[int]] = {}
    for agent in range(len(program.agents)):
        for number in numbers_of(program, agent):
            if number not in own and number not in others.get(asked[number], []):
                others.setdefault(asked[number], []).append(number)
    for count, numbers in others.items():
        yield sorted(numbers), count
    warps = 32 * len({(program.agents[agent].cta, program.agents[agent].warp) for agent in mine}) // program.ctas
    if warps == threads_of(program, program.agents[mine[0]].cta):
        yield [0], warps
    elif len(mine) > 1 and warps not in {asked[number] for number in own}:
        yield [min(max(asked, default=0) + 1, NAMED_BARRIERS - 1)], warps
        if not own and (groups := len(warpgroups(program, role))) > 1:
            yield [max(asked, default=0) + 1 + n for n in range(groups)], 4 * WARP


def of_the_cluster(program: Program) -> Iterator[Ranked]:
    """Arrives for the other CTAs, and a meeting of all before they exit."""
    if program.ctas == 1:
        return
    released = pairs(program, lambda op: gives_back(op) and operand(op, "barrier") >= 0)
    for role, group in released:
        commits = any(site.op == Op.COMMIT and site.about == group for site in sites_of(program, role))
        at = NOWHERE._replace(op=int(Op.COMMIT), about=group) if commits else NOWHERE
        yield 2, Repair(K.PEERS, role, group, int(_is_remote(program, role, group)), at=at)
        if (was := count_of(program, group)) > 0 and any(op[0] == Op.TMA_LOAD for op in program.operations):
            gives = {op for op in program.code[members(program, role)[0]] if gives_back(op)}
            mine = {op for op in gives if program.barriers[operand(op, "barrier")].name == group}
            told = {program.barriers[operand(op, "barrier")].cta for op in mine}
            each, rest = divmod(was, max(len(told), 1))
            copying = len(copying_into(program, program.agents[members(program, role)[0]].cta))
            split = bool(mine) and all(op[0] == Op.ARRIVE and operand(op, "count") == copying for op in mine)
            now = each if split else each * copying
            counted = () if now == was else (Repair(K.COUNT, "", group, now, was),)
            if not rest:
                yield 3, Repair(K.PEERS, role, group, OF_COPIES, at=at, also=counted)
    met = {sum(op[0] == Op.CLUSTER_ARRIVE for op in code) for code in program.code}
    drains = any(op[0] in PARITY_WAITS for code in program.code for op in code[-1:])  # and not for all, maybe
    yield 1 if len(met) > 1 else 3 + drains, Repair(K.CLUSTER_END, "", "")
    for role in roles_of(program):
        waits = dict.fromkeys(site.about for site in sites_of(program, role) if site.op in PARITY_WAITS)
        remote = (group for group in waits if any(_is_remote(program, other, group) for other in roles_of(program)))
        yield from ((3, Repair(K.DRAIN, role, group)) for group in remote)


def _is_remote(program: Program, role: str, group: str) -> bool:
    """True if agents of the role arrive on the group of another CTA."""
    return any(
        gives_back(op)
        and site.about == group
        and program.barriers[operand(op, "barrier")].cta != program.agents[agent].cta
        for agent in members(program, role)
        for op, site in zip(program.code[agent], program.instructions[agent], strict=True)
    )
