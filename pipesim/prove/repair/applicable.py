"""Which corrections a program could have, the likeliest first: read off its operations.

The order is what an engineer would look for first. A slip at one instruction, which leaves its trace in the others (a
warp that does not do what its siblings do, a number that differs from what the program does), comes before a missing
operation, and that before another plan: other phases, fewer waits. Nothing here is printed before it is proved.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, islice, pairwise, takewhile

from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import (
    ACCESSES,
    CLUSTER,
    COMMITS,
    ENGINE_ACCESSES,
    MAY_ACQUIRE,
    MAY_RELEASE,
    MEETINGS,
    OWN_WRITES,
    PARITY_WAITS,
    SIGNALS,
    TOUCHES_MEMORY,
)
from pipesim.model.ops import Fence, Op, Order, Scope, operand, order_of, scope_of
from pipesim.model.program import Program
from pipesim.model.tables import SourceInstruction
from pipesim.prove.repair.changes import (
    iterations,
    left_over,
    meeting_points,
    missing_instructions,
    numbers,
    other_operands,
)
from pipesim.prove.repair.handovers import uses_what_others_fill
from pipesim.prove.repair.kinds import MOVING, NOWHERE, SIGNALLING, FencePlace, Ranked, Repair, RepairKind
from pipesim.prove.repair.siblings import Siblings
from pipesim.prove.repair.sites import (
    arrived_at,
    barrier_of,
    begin_of,
    engines_of,
    executes,
    executes_everywhere,
    executions,
    families,
    gives_back,
    members,
    numbered,
    operations_at,
    pairs,
    roles_of,
    sites_of,
    warp_of,
    works,
)

K = RepairKind
_NEAR, _FAR = 3, 5  #: other instructions after one that it may be moved past; what signals may be moved further
_LOOKED_AT = 16  #: operations
_MOST_COUNTS = 4  #: that are wrong for one reason, such as a warp more
_OF_ANOTHER, _OF_ONE = 3, 2  #: ranks that are added
_AFTER_RACED = 5  #: the rank of a signal that comes only after the last use of the bytes of a fault


def repairs(
    program: Program,
    groups: frozenset[str],
    roles: frozenset[str] = frozenset(),
    asked: Program | None = None,
    sites: frozenset[SourceInstruction] = frozenset(),
) -> Iterator[Ranked]:
    """The corrections of the program with their ranks, the likeliest first; of one rank those of these instructions,
    then those about these groups.

    ``roles``: those that touch the bytes of a fault; what another one does is less likely to be wrong. ``asked``: the
    program that was asked about, in which roles share code of which this one may have too few iterations.
    """
    every, raced = [], {site.about for site in sites}
    for n, (least, repair) in enumerate(dict.fromkeys(_alike(program, Siblings(asked or program)))):
        least = min(least, _AFTER_RACED) if repair.is_after_uses and repair.past.about in raced else least
        rank = least + _OF_ANOTHER * (bool(roles and repair.role) and roles.isdisjoint(repair.roles))
        every.append(
            (
                *(rank, repair.meets, repair.at not in sites, repair.group not in groups),
                *(len(repair.roles) > 1 or bool(repair.also), n, repair),
            )
        )
    for rank, *_, repair in sorted(every, key=lambda each: each[:6]):
        yield rank, repair


def fences(reader: str) -> Iterator[Ranked]:
    """Proxy fences after what one role reads and another writes: of the reader, of everyone."""
    yield 0, Repair(K.FENCE, reader, "", FencePlace.AFTER_READS.value)
    yield 1, Repair(K.FENCE, "", "", FencePlace.AFTER_READS.value)


def fences_of_writes(program: Program, writer: str, reader: str) -> Iterator[Ranked]:
    """Proxy fences between what one role writes and an engine reads for another: one that comes too late, then of the
    writer first, of those who share its code, of all who write, of the reader.
    """
    fences = (s for s in sites_of(program, writer, {int(Op.FENCE)}) if s.about == str(Fence.PROXY_ASYNC.value))
    for fence in fences:
        for signal in sites_of(program, writer, SIGNALLING):
            yield 0, Repair(K.MOVE, writer, signal.about, at=signal, past=fence)
    for role in dict.fromkeys((writer, families(program).get(writer, writer))):
        yield 1, Repair(K.FENCE, role, "", FencePlace.AFTER_WRITES.value)
    yield 2, Repair(K.FENCE, "", "", FencePlace.AFTER_WRITES.value)
    yield 3, Repair(K.FENCE, reader, "", FencePlace.BEFORE_TRANSFERS.value)


def initialisations(program: Program) -> Iterator[Ranked]:
    """Inits that are missing, come too late, or are made several times."""
    for repair in numbers.inits(program):
        yield 0 if repair.kind is not K.OMIT else 1, repair


def invals(program: Program, fault: Fault | None) -> Iterator[Ranked]:
    """Of a fault of an inval: all invals of a role after everything else that it does, or none of them."""
    if fault is None or fault.kind not in (FaultKind.INVALIDATED, FaultKind.INVAL_PENDING):
        return
    for role in dict.fromkeys(program.agents[each.agent].role for each in executions(program, ops={int(Op.INVAL)})):
        yield 3, Repair(K.LATER, role, "", at=NOWHERE._replace(op=int(Op.INVAL)))
        yield 6, Repair(K.OMIT, role, "", at=NOWHERE._replace(op=int(Op.INVAL)))


def publications(program: Program) -> Iterator[Ranked]:
    """Fences and meetings after inits that are not visible to all who use the barriers."""
    made = dict.fromkeys(each.agent for each in executions(program, ops={int(Op.INIT)}))
    for role in dict.fromkeys(program.agents[agent].role for agent in made):
        yield 0, Repair(K.AFTER_INIT, role, "", 1)
    fence = (int(Op.FENCE), int(Fence.MBARRIER_INIT))
    last = {each.agent: each.op[0] for each in executions(program) if each.op[0] == Op.INIT or each.op[:2] == fence}
    fenced = all(last[agent] == Op.FENCE for agent in made)
    yield 1, Repair(K.AFTER_INIT, "", "", was=program.ctas if fenced else -1)


def group_waits(program: Program, engine: int) -> Iterator[Ranked]:
    """Waits for all groups of an engine, as late as they can be; then those that leave fewer of them pending."""
    for role in dict.fromkeys(families(program).get(role, role) for role in roles_of(program)):
        if engine in engines_of(program, role.partition(",")[0]):
            sites = [site for site in reversed(sites_of(program, role)) if site.op != Op.WAIT_GROUP]
            yield from ((0, Repair(K.GROUP_WAIT, role, str(engine), 0, at=site)) for site in sites)
    yield from ((1, repair) for repair in numbers.group_depths(program) if repair.group == str(engine))


def stronger(program: Program) -> Iterator[Ranked]:
    """Orders that release what came before, for operations that are relaxed, or of a scope that is too narrow; both
    orders for an atomic whose answer is used.
    """
    atomics = _atomics(program)
    seen: set[tuple[str, SourceInstruction]] = set()
    for agent, _, op, site in executions(program, ops=MAY_RELEASE | MAY_ACQUIRE):
        given, role = operand(op, "semantics"), program.agents[agent].role
        at = site._replace(about="") if site.line else site
        if (role, at) in seen or (order_of(given) != Order.RELAXED and scope_of(given) != Scope.CTA):
            continue
        seen.add((role, at))
        word = site.about.partition("[")[0] if barrier_of(op) >= 0 and program.is_word(barrier_of(op)) else ""
        if word and (both := atomics.get((role, site.line))) is not None:
            yield 2, Repair(K.STRONGER, role, word, 2, both, at=site._replace(op=0, about=""), past=site)
        for wide in (2,) if word else (0, 1) if program.ctas > 1 else (0,):
            yield wide, Repair(K.STRONGER, role, word or at.about, wide, given, at=at)


def _atomics(program: Program) -> dict[tuple[str, str], int]:
    """By role and line the order of atomics whose answer is used: they are a wait for a word, and an arrive."""
    found: dict[tuple[str, str], dict[int, int]] = {}
    for agent, _, op, site in executions(program, ops=MAY_RELEASE | MAY_ACQUIRE):
        if barrier_of(op) >= 0 and program.is_word(barrier_of(op)) and site.line:
            found.setdefault((program.agents[agent].role, site.line), {})[op[0]] = operand(op, "semantics")
    return {at: each[int(Op.ARRIVE)] for at, each in found.items() if len(each) > 1 and Op.ARRIVE in each}


def _alike(program: Program, siblings: Siblings) -> Iterator[Ranked]:
    """Every correction, those of a role whose lines other roles execute as well also for all of these, and those on
    one of several groups that are named alike for all of these. What a compiler made several roles of is one function:
    one of them alone is less likely.
    """
    for rank, repair in _possible(program):
        every = siblings.together(repair)
        yield rank + _OF_ONE * (bool(program.coverage.extracted) and siblings.is_shared(repair)), repair
        for each in (every, siblings.of_line(repair), siblings.of_line(every) if every is not None else None):
            if each is not None:
                yield rank, each


def _possible(program: Program) -> Iterator[Ranked]:
    """Every correction of the list with its rank; some of them may change nothing."""
    yield from _of_one_operation(program)
    yield from other_operands.of_single_warps(program)
    yield from other_operands.of_ctas(program)
    yield from _of_places(program)
    yield from iterations.of_iterations(program)
    yield from missing_instructions.of_arrives(program)
    yield from missing_instructions.of_waits(program)
    yield from missing_instructions.of_transfers(program)
    yield from missing_instructions.of_partners(program)
    yield from left_over.of_what_is_left_over(program)
    yield from other_operands.of_groups(program)
    yield from other_operands.of_slots(program)
    yield from other_operands.of_turns(program)
    yield from meeting_points.of_meetings(program)
    yield from meeting_points.of_the_cluster(program)


def _of_one_operation(program: Program) -> Iterator[Ranked]:
    """Numbers, and another operation in the same place."""
    for repair, likely in numbers.lanes(program):
        yield 1 if repair.value == 1 else 2 if likely else 4, repair
    yield from ((0, repair) for repair in numbers.ends(program))
    yield from ((2, repair) for repair in numbers.expects(program))
    yield from ((1, Repair(K.ARRIVES_TOO, *pair)) for pair in pairs(program, lambda op: op[0] == Op.EXPECT_TX))
    yield from ((2, repair) for repair in numbers.masks(program))
    yield from ((2 + (repair.was > program.launch_registers), repair) for repair in numbers.registers(program))
    yield from _of_counts(program)
    every = list(numbers.threads(program))
    shared = {repair.group for repair in every if repair.kind is K.NUMBER}
    for repair in every:
        yield 3 if repair.kind is K.THREADS and shared & set(repair.group.split(",")) else 2, repair
    yield from ((2, Repair(K.STAY, *pair)) for pair in pairs(program, lambda op: op[0] == Op.ARRIVE_DROP))
    yield from ((4, repair) for repair in numbers.group_depths(program))


def _of_counts(program: Program) -> Iterator[Ranked]:
    """Counts: of one group, of two exchanged, of several that are wrong for one reason."""
    several = list(numbers.counts(program))
    yield from ((3, repair) for repair in several)
    for one, other in combinations(several, 2):
        if (one.value, one.was) == (other.was, other.value):
            yield 3, replace(one, also=(other,))
    of_groups = list({repair.group: repair for repair in reversed(several)}.values())
    if 1 < len(of_groups) <= _MOST_COUNTS:
        yield 4, replace(of_groups[0], also=tuple(of_groups[1:]))
    yield from ((5, repair) for repair in numbers.counts(program, by_lanes=True))


def _of_places(program: Program) -> Iterator[Ranked]:
    """What comes later, what is omitted, what other warps or lanes do."""
    released = pairs(program, gives_back)
    expected = pairs(program, lambda op: op[0] == Op.ARRIVE and operand(op, "expect") > 0)
    yield from ((1, Repair(K.DROP, *pair, 1)) for pair in dict.fromkeys((*released, *expected)))
    yield from ((3, Repair(K.DROP, *pair, 3)) for pair in expected)
    yield from ((1, Repair(K.LATER, *pair, _awaited_after(program, *pair))) for pair in released)
    yield from ((8, Repair(K.DROP, *pair, 0)) for pair in released)
    for role in (*dict.fromkeys(families(program).values()), *roles_of(program)):
        yield from _of_some_warps(program, role)
    for role in roles_of(program):
        mine, sites = members(program, role), sites_of(program, role)
        apart = any(len(warp_of(program, agent)) > 1 for agent in mine)
        for site in (site for site in sites if site.op in SIGNALLING | PARITY_WAITS):
            if site.op != Op.CLUSTER_WAIT and not executes_everywhere(program, role, site):
                by_cta = _by_cta(program, mine, site)
                rank = 1 if site.op in CLUSTER else 5 if site.op not in SIGNALLING else 4 if by_cta else 2
                for home in range(1 + (program.ctas > 1)):
                    yield rank, Repair(K.EVERY_WARP, role, site.about, home, int(by_cta), site)
            if apart:
                yield from ((1, Repair(kind, "", site.about, at=site)) for kind in (K.INSIDE, K.OUTSIDE))
        if named := arrived_at(program, role):
            yield 1, Repair(K.LATER, role, numbered(named))
        for at in dict.fromkeys(site._replace(line="") for site in sites if site.op in SIGNALLING - MEETINGS):
            yield 3, Repair(K.DROP, role, at.about, 2, at=at)
            yield 3 if at.op in COMMITS else 5, Repair(K.DROP, role, at.about, 4, at=at)
        for site in (site for site in sites if site.op in SIGNALLING | {int(Op.TMA_LOAD)} and site.op != Op.ARRIVE):
            if any((site, site) in pairwise(program.instructions[agent]) for agent in mine):
                yield 2, Repair(K.ONCE, role, site.about, at=site)
        yield from _of_order(program, role, sites)
        for site in (site for site in sites if site.op in SIGNALLING):
            yield 8, Repair(K.OMIT, role, site.about, at=site)
            yield 8 if site.op in MEETINGS else 6, Repair(K.OMIT, role, site.about, 1, at=site)


def _of_some_warps(program: Program, role: str) -> Iterator[Ranked]:
    """Several instructions on one group that the same warps of a role leave out."""
    mine = members(program, role)
    parts: dict[tuple[int, str], dict[tuple[bool, ...], SourceInstruction]] = {}
    for site in (site for site in sites_of(program, role, SIGNALLING - MEETINGS) if site.line):
        who = tuple(executes(program, agent, site) for agent in mine)
        parts.setdefault((site.op, site.about), {})[who] = site
    for (op, about), executing in parts.items():
        if len(executing) == 1 and not all(*executing):
            by_cta = _by_cta(program, mine, *executing.values())
            yield 2, Repair(K.EVERY_WARP, role, about, 0, int(by_cta), SourceInstruction(op, "", about))


def _awaited_after(program: Program, role: str, group: str) -> int:
    """The engine for whose groups a role waits right after it has arrived on the group, -1 if it does not; only of one
    that uses what others fill.
    """
    for agent in members(program, role):
        code = program.code[agent]
        for pc, op in enumerate(code):
            if gives_back(op) and program.instructions[agent][pc].about == group:
                for later in takewhile(works, code[pc + 1 :]):
                    if later[0] == Op.WAIT_GROUP and uses_what_others_fill(program, agent, operand(later, "engine")):
                        return operand(later, "engine")
    return -1


def _meets_at(program: Program, role: str, site: SourceInstruction) -> set[int]:
    return {program.named_barrier(op) for ops in operations_at(program, role, site) for op in ops}


def _by_cta(program: Program, agents: list[int], site: SourceInstruction) -> bool:
    """True if whether an agent executes the instruction depends on its CTA alone: often that is meant."""
    does = {(program.agents[agent].cta, executes(program, agent, site)) for agent in agents}
    return len({cta for cta, _ in does}) == len(does) > 1


def _too_early(one: SourceInstruction, other: SourceInstruction) -> bool:
    """True for what rarely comes first: a release before a use, a use before a wait, a sync before the group wait."""
    uses = ACCESSES | ENGINE_ACCESSES
    if one.op == Op.BAR_SYNC:
        return other.op == Op.WAIT_GROUP
    waits = PARITY_WAITS | {int(Op.WAIT_GROUP)}
    return (one.op in SIGNALS and other.op in uses) or (one.op in uses and other.op in waits)


def _may_come_before(moved: SourceInstruction, other: SourceInstruction) -> bool:
    """True for a wait, a fence or a signal that may come too late; a signal rarely comes before a use."""
    uses = other.op in TOUCHES_MEMORY | {int(Op.WAIT_GROUP)}
    return moved.op in MOVING - MEETINGS and not (uses and moved.op in SIGNALLING)


def _of_order(program: Program, role: str, sites: list[SourceInstruction]) -> Iterator[Ranked]:
    """Two instructions in the reverse order, where one of them signals or waits."""
    following: dict[tuple[SourceInstruction, SourceInstruction], None] = {}
    earlier: dict[tuple[SourceInstruction, SourceInstruction], None] = {}  # the first of a pair comes after the second
    nearest: dict[SourceInstruction, set[SourceInstruction]] = {}  # what comes next, where it is executed
    for agent in members(program, role):
        begin = begin_of(program, agent)
        setting_up = set(program.instructions[agent][:begin]) - set(program.instructions[agent][begin:])
        own = set(sites) - {site for site in setting_up if site.op != Op.INIT}
        placed = [site for site in program.instructions[agent] if site in own]
        for n, one in enumerate(placed):
            others = takewhile(lambda other: other != one, placed[n + 1 : n + 1 + _LOOKED_AT])  # noqa: B023 (used here)
            near = list(islice(dict.fromkeys(others), _FAR))
            following |= dict.fromkeys((one, other) for other in near[: _FAR if one.op in SIGNALLING else _NEAR])
            earlier |= dict.fromkeys((other, one) for other in near[1:] if _may_come_before(other, one))
            nearest.setdefault(one, set()).update(near[:1])
    alone = {site for site in sites if site.op in SIGNALS and not executes_everywhere(program, role, site)}
    for one, other in following:
        later = sites.index(other) < sites.index(one)  # in the next iteration
        follows = other.op not in OWN_WRITES or not later  # of what others wait for
        if one.op in SIGNALLING - MEETINGS and other.op in TOUCHES_MEMORY - {int(Op.TMA_LOAD)} and follows:
            yield 6, Repair(K.MOVE, role, one.about, 2, at=one, past=other._replace(line=""))
        later = later and one.op in SIGNALS
        if one.op == Op.INIT or not (one.op in MOVING or other.op in MOVING - MEETINGS - SIGNALS):
            continue
        rank = 6 if not _too_early(one, other) else 4 if one.op not in SIGNALS else 5
        rank = 6 if one.op == Op.BAR_SYNC and nearest[one] != {other} else rank
        if (one.op == Op.BAR_SYNC and nearest.get(other, set()) & alone) or (other.op == Op.BAR_SYNC and one in alone):
            rank = 4  # the warps meet before one of them signals for all
        rank = 6 if later and other.op != Op.WAIT_GROUP else rank
        if not later or other.op not in OWN_WRITES:
            yield rank, Repair(K.MOVE, role, one.about, was=1 if later else -1, at=one, past=other)
    passed_on = {program.named_barrier(op) for op in program.operations if op[0] == Op.BAR_ARRIVE}
    turns = {site for site in sites if site.op == Op.BAR_SYNC and _meets_at(program, role, site) & passed_on}
    for one, other in earlier:
        heard = one.op == Op.WAIT_GROUP and other.op == Op.BAR_SYNC and other not in turns  # by those who write then
        rank = 4 if heard else 7 if one.op not in SIGNALS and other.op not in TOUCHES_MEMORY else 6
        yield rank, Repair(K.MOVE, role, one.about, 1, at=one, past=other)
