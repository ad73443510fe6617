"""Corrections that add operations to the work on a stage: arrives, waits, commits, fences."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pipesim.model.edits import Insertion, Listing, insert_operations
from pipesim.model.groups import (
    ACCESSES,
    ASKS,
    BRANCHES,
    CLUSTER,
    ENDS_READS,
    ENGINE_ACCESSES,
    FENCE,
    HANDS_ON,
    LIFE,
    LOOP_MARKS,
    ON_BARRIER,
    OWN_WRITES,
    PARITY_WAITS,
    READS_MEMORY,
    SEES_READS_END,
    SIGNALS,
    TOUCHES_MEMORY,
)
from pipesim.model.ops import Engine, Fence, Op, Operation, operand, with_operand
from pipesim.model.program import Program
from pipesim.model.rules.sync import WARP
from pipesim.model.tables import SourceInstruction
from pipesim.prove.repair.handovers import phases_of_writes
from pipesim.prove.repair.kinds import FencePlace, Placement, Repair
from pipesim.prove.repair.sites import (
    AgentCode,
    arrives,
    barrier_of,
    barriers_of,
    begin_of,
    beside,
    cells_of,
    executions,
    gives_back,
    is_use,
    members,
    on_engine,
    published_at,
    works,
)

_PROXY_FENCE: Operation = (int(Op.FENCE), int(Fence.PROXY_ASYNC), 0)
_SERVES = ON_BARRIER - ASKS - LIFE  #: signal the barrier that they name
_USES = ACCESSES | ENGINE_ACCESSES


def wait_for(barrier: int, lap: int, tail: Sequence[int] = (0,)) -> Operation:
    """The wait for the phase of a lap."""
    return (int(Op.WAIT), barrier, lap & 1, *tail)


def arrive_on(barrier: int, count: int, semantics: int = 0) -> Operation:
    """An arrive that expects no bytes."""
    return (int(Op.ARRIVE), barrier, count, 0, -1, semantics)


def waits_in_turn(
    places: Iterable[int], ring: Sequence[int], start: int, tail: Sequence[int] = (0,), turn: int = 0
) -> Iterator[tuple[int, Operation]]:
    """A wait at each of these places, stage by stage, the first with the parity ``start``."""
    for n, place in enumerate(places if ring else (), turn):
        yield place, wait_for(ring[n % len(ring)], start + n // len(ring), tail)


def add_inits(me: AgentCode, _: Repair) -> Listing:
    """The inits that are missing of groups of which the agent initialises some barriers, after the last of these."""
    last = {me.program.barriers[barrier_of(op)].name: pc for pc, op in enumerate(me.code) if op[0] == Op.INIT}
    done = {barrier_of(op) for op in me.code if op[0] == Op.INIT}
    new = ((last[each.name], bar) for bar, each in enumerate(me.program.barriers)
           if each.cta == me.cta and each.name in last and bar not in done)  # fmt: skip
    return me.inserted(((pc, with_operand(me.code[pc], "barrier", bar)) for pc, bar in new), after=True)


# arrives


def add_arrives(me: AgentCode, repair: Repair) -> Listing:
    """An arrive on the group at the end of each piece of work that begins with a wait for another group of its stages.

    Where the piece has such an arrive already it stays as it is. With ``at`` the arrive comes after that instruction,
    which may be in a later piece; with :attr:`Placement.LAST` after the last use of anything before the same barrier is
    waited for again.
    """
    stages, one_warp = me.stages(repair.group), repair.was == Placement.ONE_WARP.value
    if not stages or not any(op[0] in _USES for op in me.code):
        return me.same
    from_first = me.agent - beside(me.program, me.agent)[0]
    if one_warp and (from_first % repair.value if repair.value else from_first):
        return me.same
    if repair.at.op and not one_warp and me.agent not in _arriving(me.program, repair.role, repair.group):
        return me.same
    found: list[tuple[int, Operation]] = []
    last = repair.was == Placement.LAST.value
    for start, end, barrier in _unreleased_pieces(me, stages, repair.past.about):
        if repair.at.op:
            places = range(start, end if last else len(me.code))
            place = next((pc for pc in (reversed(places) if last else places) if me.sites[pc] == repair.at), -1)
        elif last:
            place = max((n for n in range(start + 1, end) if works(me.code[n]) or gives_back(me.code[n])), default=-1)
        else:
            place = _end_of_use(me.code, start, end)
        if place >= start:
            release = _release(me, repair.role, me.code[start : place + 1], barrier, alone=one_warp)
            found += [(place, release)] if release is not None else []
    return me.inserted(found, after=True)


def at_the_end(me: AgentCode, repair: Repair) -> Listing:
    """The arrives that are missing when the agent ends, after a wait for the transfers that are left under way; or
    (``value`` 2) the one that tells of what it writes last.
    """
    ring, code = me.ring(repair.group), me.code
    if repair.value == 2:
        return me.inserted(_next_stage(code, ring), after=True)
    given = [pc for pc, op in enumerate(code) if gives_back(op) and barrier_of(op) in ring]
    if not given:
        return _once(me, repair, ring)
    last = given[-1]
    engines = dict.fromkeys(operand(op, "engine") for op in code if op[0] == Op.WAIT_GROUP)
    block: list[Operation] = [(int(Op.WAIT_GROUP), engine, 0) for engine in engines]
    block += [_PROXY_FENCE] if _PROXY_FENCE in code[last - 2 : last] else []
    pieces = _unreleased_pieces(me, me.stages(repair.group))
    missing = [with_operand(code[last], "barrier", barrier) for start, _, barrier in pieces if start > given[0]]
    return me.ended(end_of_work(code), [*block, *missing], last) if missing else me.same


def _once(me: AgentCode, repair: Repair, barriers: Sequence[int]) -> Listing:
    """An arrive on each of the barriers, which no agent signals, of as many agents as its count: at its end."""
    end = end_of_work(me.code)
    signalled = {barrier_of(op) for op in me.program.operations if op[0] in SIGNALS}
    counts = ((barrier, share_of(me, barrier, repair.role)) for barrier in barriers if barrier not in signalled)
    return me.ended(end, [arrive_on(barrier, count) for barrier, count in counts if count], max(end - 1, 0))


def _next_stage(code: Sequence[Operation], ring: list[int]) -> Iterator[tuple[int, Operation]]:
    """An arrive after the last write, on the barrier that follows the last one of these that the agent signals."""
    told = [pc for pc, op in enumerate(code) if op[0] == Op.ARRIVE and barrier_of(op) in ring]
    written = [pc for pc in range(told[-1], len(code)) if code[pc][0] in OWN_WRITES] if told else []
    if written:
        last = code[told[-1]]
        after = ring[(ring.index(barrier_of(last)) + 1) % len(ring)]
        yield written[-1], arrive_on(after, operand(last, "count"), operand(last, "semantics"))


def share_of(me: AgentCode, barrier: int, role: str) -> int:
    """The arrivals of an agent if those of these roles alone are counted: its part, one or those of whole warps, or all
    of them for the first agent; 0 if it has none.
    """
    team = [n for n in members(me.program, role) if me.program.agents[n].cta == me.cta]
    inits = (op for op in me.program.operations if op[0] == Op.INIT and barrier_of(op) == barrier)
    count = next((operand(op, "count") for op in inits), 1)
    mine = count // len(team) if not count % len(team) else count * (me.agent == team[0])
    return mine if mine == 1 or not mine % WARP else 0


def end_of_work(code: Sequence[Operation]) -> int:
    """Where the work of an agent ends: before it meets its cluster, and before it invalidates barriers."""
    end = len(code)
    while end and code[end - 1][0] in LOOP_MARKS | CLUSTER | {int(Op.INVAL)}:
        end -= 1
    return end


def _unreleased_pieces(me: AgentCode, stages: Mapping[int, int], begun_by: str = "") -> Iterator[tuple[int, int, int]]:
    """The pieces of work without an arrive, those that begin with a wait for this group where it is given: the wait,
    where the stage is used again, the barrier.
    """
    mine, barriers = set(stages.values()), me.program.barriers
    waits = ((pc, barrier_of(op)) for pc, op in enumerate(me.code) if op[0] in PARITY_WAITS)
    begins = [(pc, bar) for pc, bar in waits if bar not in mine and begun_by in ("", barriers[bar].name)]
    done: set[tuple[int, int]] = set()
    for n, (pc, barrier) in enumerate(begins):
        due = stages.get(barriers[barrier].stage)
        end = next((at for at, other in begins[n + 1 :] if other == barrier), len(me.code))
        if due is not None and not any(gives_back(op) and barrier_of(op) == due for op in me.code[pc:end]):
            if (due, end) not in done:  # two waits may begin one piece of work
                yield pc, end, due
            done.add((due, end))


def _end_of_use(code: Sequence[Operation], start: int, end: int) -> int:
    """The last access of the piece of work that begins at ``start``: before its next wait or loop mark."""
    used = -1
    for pc in range(start + 1, end):
        op = code[pc]
        if op[0] in PARITY_WAITS or op[0] in LOOP_MARKS:
            if used >= 0:
                break
        elif op[0] in _USES | {int(Op.WAIT_GROUP)} or works(op):
            used = pc
    return used


def _arriving(program: Program, role: str, group: str) -> list[int]:
    """The agents of a role that arrive on a group, all of them if none does."""
    found = dict.fromkeys(n for n, _, op, site in executions(program, role) if gives_back(op) and site.about == group)
    return list(found) or members(program, role)


def _release(me: AgentCode, role: str, piece: Sequence[Operation], barrier: int, *, alone: bool) -> Operation | None:
    """An arrive as the others on the group, else as its count asks, or (``alone``) one arrival; a commit where a
    tcgen05 engine has used the stage; None of agents that it does not count.
    """
    if any(on_engine(op, ENGINE_ACCESSES, Engine.TCGEN05) for op in piece):
        return (int(Op.COMMIT), int(Engine.TCGEN05), barrier)
    group = set(barriers_of(me.program, me.program.barriers[barrier].name))
    own, every = (
        [op for op in code if op[0] == Op.ARRIVE and not operand(op, "expect")]
        for code in (me.code, me.program.operations)
    )
    mine, theirs = ([op for op in ops if barrier_of(op) in group] for ops in (own, every))
    count = Counter(operand(op, "count") for op in mine or theirs).most_common(1)
    like = next(iter(mine or own or theirs), None)
    asked = count[0][0] if count else 1 if alone else share_of(me, barrier, role)
    return arrive_on(barrier, asked, operand(like, "semantics") if like else 0) if asked else None


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


# waits


def add_waits(me: AgentCode, repair: Repair) -> Listing:
    """A wait for the group before each piece of work that ends with an arrive on another group of its stages (with
    ``past`` on that one); or as the placement says, with ``at`` before what is executed there: without a line that is
    every use of a tile.
    """
    ring, program, start = me.ring(repair.group), me.program, repair.value
    if not ring or any(op[0] in BRANCHES for op in me.code):
        return me.same
    like = next((op for code in (me.code, *program.code) for op in code if op[0] == Op.WAIT), None)
    tail = like[3:] if like is not None else (0,)
    if repair.was == Placement.VISIT.value:  # as long as it is filled once more
        visits = (each for each in _visits(me, repair) if each[2] < times_signalled(program, each[1]) + start)
        return me.inserted((place, wait_for(barrier, start + lap, tail)) for place, barrier, lap in visits)
    if not repair.at.op:
        return _waits_for_work(me, repair, tail)
    places = [pc for pc, site in enumerate(me.sites) if is_use(site, repair.at)]
    if repair.was == Placement.WRITTEN.value:
        return me.inserted(_waits_for_what_is_read(me, repair.group, places, tail))
    every, rest = divmod(len(places), sum(times_signalled(program, barrier) for barrier in ring) or 1)
    return me.inserted(waits_in_turn(places[::every] if every > 1 and not rest else (), ring, start, tail))


def _waits_for_work(me: AgentCode, repair: Repair, tail: Sequence[int]) -> Listing:
    stages, barriers, begin = me.stages(repair.group), me.program.barriers, begin_of(me.program, me.agent)
    turns: Counter[int] = Counter()
    found: dict[int, Insertion] = {}
    for place, op in enumerate(me.code):
        at = barriers[barrier_of(op)] if arrives(op) and barrier_of(op) not in stages.values() else None
        if at is None or repair.past.about not in ("", at.name) or at.stage not in stages:
            continue
        here, barrier = place, stages[at.stage]
        while here > begin and here not in found and works(me.code[here - 1]):
            here -= 1
        wait = wait_for(barrier, repair.value + turns[barrier], tail)
        found[here] = Insertion(here, wait, me.same.lines[place])
        turns[barrier] += 1
    return insert_operations(me.same, found.values())


def times_signalled(program: Program, barrier: int) -> int:
    """How often the agent that does so most often signals a barrier."""
    return max(sum(op[0] in _SERVES and barrier_of(op) == barrier for op in code) for code in program.code)


def _visits(me: AgentCode, repair: Repair) -> Iterator[tuple[int, int, int]]:
    """Where an agent begins to use what a barrier of the group is about without a wait for it since it did so last, and
    the how manieth time that is: bytes that others use before their arrivals on this barrier alone.

    It begins again after other such bytes, and after each of its own signals on the group of ``past``.
    """
    program, mine = me.program, set(me.ring(repair.group))
    owner: dict[int, int] = {}
    for other, code in enumerate(program.code):
        used: set[int] = set()
        for op in code[published_at(program, other) :] if other != me.agent else ():
            used.update(cells_of(program, op))
            if op[0] in _SERVES and (signalled := barrier_of(op)) in mine:
                owner |= {cell: signalled if owner.get(cell, signalled) == signalled else -1 for cell in used}
                used.clear()
    now, begin = -1, published_at(program, me.agent)
    laps: Counter[int] = Counter()
    waited: set[int] = set()
    for pc, op in enumerate(me.code[begin:], begin):
        if op[0] in PARITY_WAITS:
            waited.add(barrier_of(op))
        elif op[0] in TOUCHES_MEMORY:
            about = (owner.get(cell, -1) for cell in cells_of(program, op))
            barrier = next((each for each in about if each >= 0), now)
            if barrier != now:
                if barrier not in waited:
                    yield pc, barrier, laps[barrier]
                laps[barrier] += 1
                waited.discard(barrier)
            now = barrier
        elif repair.past.about == me.sites[pc].about and arrives(op):
            now = -1


def _waits_for_what_is_read(
    me: AgentCode, group: str, places: list[int], tail: Sequence[int]
) -> Iterator[tuple[int, Operation]]:
    """Before each read the wait for the phase of the group in which the bytes with this item are signalled."""
    signalled = phases_of_writes(me.program, group)
    known: set[tuple[int, int]] = set()
    for place in (place for place in places if me.code[place][0] in READS_MEMORY):
        op = me.code[place]
        keys = ((cell, operand(op, "item")) for cell in cells_of(me.program, op))
        phase = next((signalled[key] for key in keys if key in signalled), None)
        if phase is not None and phase not in known:
            known.add(phase)
            yield place, wait_for(*phase, tail)


def waiting_for_groups(me: AgentCode, repair: Repair) -> Listing:
    """A wait for groups of an engine before an instruction, in agents with transfers on it."""
    engine = int(repair.group)
    first = next((pc for pc, op in enumerate(me.code) if on_engine(op, ENGINE_ACCESSES, engine)), len(me.code))
    wait = (int(Op.WAIT_GROUP), engine, repair.value)
    return me.inserted((pc, wait) for pc in me.at(repair.at) if pc >= first)


# commits


def add_commits(me: AgentCode, repair: Repair) -> Listing:
    """A commit after the transfers of an engine that none closes; with ``value`` 1 one before each wait for groups that
    has none, also where nothing was transferred; with 2 one between transfers of the same instruction as well.
    """
    engine, extracted = int(repair.group), me.program.coverage.extracted
    commit = (int(Op.COMMIT), engine, -1)
    found: list[Insertion] = []
    last = -1  # of transfers that no commit has closed
    waited = False  # since the last commit
    since: set[SourceInstruction] = set()  # transfers since the last commit

    def close() -> None:
        nonlocal last, waited
        if last >= 0:
            found.append(Insertion(last + 1, commit, me.same.lines[last]))
        last, waited = -1, False
        since.clear()

    for pc, (op, site) in enumerate(zip(me.code, me.sites, strict=True)):
        if on_engine(op, ENGINE_ACCESSES, engine):
            whole = extracted and last == pc - 1  # of one instruction, part by part
            if repair.value == 2 and last >= 0 and site in since and not whole:
                close()
            last = pc
            since.add(site)
        elif op[0] == Op.COMMIT and (operand(op, "engine"), barrier_of(op)) == (engine, -1):
            last = -1
            close()
        elif last >= 0 and op[0] not in ENGINE_ACCESSES | {int(Op.ENGINE_WORK)}:
            close()
        if repair.value == 1 and op[0] == Op.WAIT_GROUP and operand(op, "engine") == engine:
            found += [Insertion(pc, commit, me.same.lines[pc])] if waited else []
            waited = True
    close()
    return insert_operations(me.same, found)


# fences

#: After which operations of an agent a fence is placed, and before which that follow.
_FENCES = {
    FencePlace.AFTER_READS: (ENDS_READS, HANDS_ON),
    FencePlace.AFTER_WRITES: (OWN_WRITES, HANDS_ON),
    FencePlace.BEFORE_TRANSFERS: (SEES_READS_END, ENGINE_ACCESSES | {int(Op.TMA_LOAD)}),
}


def add_fences(me: AgentCode, repair: Repair) -> Listing:
    """A proxy fence between each operation of one set and the next one of another, where there is none; after writes
    only of what transfers use, or of cp.async, which writes through the proxy of ordinary writes (PTX ISA).
    """
    kind = FencePlace(repair.value)
    (after, until), writes = _FENCES[kind], kind is FencePlace.AFTER_WRITES
    other = _of_no_transfer(me) if writes else set()
    found: list[Insertion] = []
    line = -1
    for place, op in enumerate(me.code):
        if line >= 0 and op[0] in until:
            late = kind is FencePlace.BEFORE_TRANSFERS
            found.append(Insertion(place, _PROXY_FENCE, me.same.lines[place] if late else line))
            line = -1
        if op[0] == Op.FENCE and op[FENCE] == Fence.PROXY_ASYNC:
            line = -1
        elif place not in other and (
            op[0] in after or (writes and on_engine(op, {int(Op.WAIT_GROUP)}, Engine.CP_ASYNC))
        ):
            line = me.same.lines[place]
    return insert_operations(me.same, found)


def _of_no_transfer(me: AgentCode) -> set[int]:
    """The places of an agent's writes to bytes that no transfer uses."""
    engines = ENGINE_ACCESSES | {int(Op.TMA_LOAD)}
    used = {cell for each in executions(me.program, ops=engines) for cell in cells_of(me.program, each.op)}
    own = ((pc, op) for pc, op in enumerate(me.code) if op[0] in OWN_WRITES)
    return {pc for pc, op in own if used.isdisjoint(cells_of(me.program, op))}
