"""Corrections that add operations to the work on a stage: arrives, waits, commits, fences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set

from pipesim.model.edits import Insertion, Listing, insert_operations, listing
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
from pipesim.model.ops import Engine, Fence, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.rules.sync import WARP
from pipesim.model.tables import SourceInstruction
from pipesim.prove.repair.changes.order import gives_back, is_use, phases_of_writes, works
from pipesim.prove.repair.kinds import FencePlace, Placement, Repair
from pipesim.prove.repair.sites import begin_of, members, published_at, site_of, stages_of

_PROXY_FENCE: Operation = (int(Op.FENCE), int(Fence.PROXY_ASYNC), 0)
_SERVES = ON_BARRIER - ASKS - LIFE  #: signal the barrier that they name


def add_inits(program: Program, agent: int, _: Repair) -> Listing:
    """The inits that are missing of groups of which the agent initialises some barriers, after the last of these."""
    before, cta = listing(program, agent), program.agents[agent].cta
    counts: dict[str, tuple[int, int]] = {}  # by group: the last init, its count
    done: set[int] = set()
    for pc, op in enumerate(before.code):
        if op[0] == Op.INIT:
            counts[program.barriers[operand(op, "barrier")].name] = pc, operand(op, "count")
            done.add(operand(op, "barrier"))
    new = []
    for bar, each in enumerate(program.barriers):
        if each.cta == cta and each.name in counts and bar not in done:
            pc, count = counts[each.name]
            new.append(Insertion(pc + 1, (int(Op.INIT), bar, count), before.lines[pc]))
    return insert_operations(before, new)


# arrives


def add_arrives(program: Program, agent: int, repair: Repair) -> Listing:
    """An arrive on the group at the end of each piece of work that begins with a wait for another group of its stages.

    Where the piece has such an arrive already it stays as it is. With ``at`` the arrive comes after that instruction,
    which may be in a later piece; with :attr:`Placement.LAST` after the last use of anything before the same barrier is
    waited for again.
    """
    before, stages = listing(program, agent), stages_of(program, agent, repair.group)
    found: list[Insertion] = []
    if not stages or not any(op[0] in ACCESSES | ENGINE_ACCESSES for op in before.code):
        return before
    one_warp = repair.was == Placement.ONE_WARP.value
    from_first = agent - _first_of_role(program, agent)
    if one_warp and (from_first % repair.value if repair.value else from_first):
        return before
    if repair.at.op and not one_warp and agent not in _arriving(program, repair.role, repair.group):
        return before
    for start, end, barrier in _unreleased_pieces(program, before, stages, repair.past.about):
        if repair.at.op:
            last = repair.was == Placement.LAST.value
            place = _place_after(program, agent, range(start, end if last else len(before.code)), repair.at, last=last)
        elif repair.was == Placement.LAST.value:
            place = _last_use(before, start, end)
        else:
            place = _end_of_use(before, start, end)
        if place > start:
            release = _release(program, repair.role, agent, range(start, place), barrier, alone=one_warp)
            found += [Insertion(place, release, before.lines[place - 1])] if release is not None else []
    return insert_operations(before, found)


def at_the_end(program: Program, agent: int, repair: Repair) -> Listing:
    """The arrives that are missing when the agent ends, after a wait for the transfers that are left under way; or
    (``value`` 2) the one that tells of what it writes last.
    """
    before, stages = listing(program, agent), stages_of(program, agent, repair.group)
    if repair.value == 2:
        return insert_operations(before, _next_stage(before, [stages[stage] for stage in sorted(stages)]))
    arrives = [pc for pc, op in enumerate(before.code) if gives_back(op) and operand(op, "barrier") in stages.values()]
    if not arrives:
        return insert_operations(before, _once(program, agent, repair, stages.values()))
    last, end = arrives[-1], end_of_work(before)
    engines = dict.fromkeys(operand(op, "engine") for op in before.code if op[0] == Op.WAIT_GROUP)
    block: list[Operation] = [(int(Op.WAIT_GROUP), engine, 0) for engine in engines]
    if any(op == _PROXY_FENCE for op in before.code[last - 2 : last]):
        block.append(_PROXY_FENCE)
    like = before.code[last]
    missing = [barrier for start, _, barrier in _unreleased_pieces(program, before, stages) if start > arrives[0]]
    block += [(like[0], barrier, *like[2:]) for barrier in missing]
    return insert_operations(before, [Insertion(end, op, before.lines[last]) for op in block]) if missing else before


def _once(program: Program, agent: int, repair: Repair, barriers: Iterable[int]) -> Iterator[Insertion]:
    """An arrive on each of the barriers, which no agent signals, of as many agents as its count: at the end of an
    agent, or after its first execution of ``at``.
    """
    before, role = listing(program, agent), repair.role
    first = (pc + 1 for pc, site in enumerate(program.instructions[agent]) if site == repair.at)
    end = next(first, 0) if repair.at.op else end_of_work(before)
    for barrier in barriers:
        if any(op[0] in SIGNALS and operand(op, "barrier") == barrier for op in program.operations):
            return
        if count := share_of(program, role, agent, barrier):
            yield Insertion(end, (int(Op.ARRIVE), barrier, count, 0, -1, 0), before.lines[max(end - 1, 0)])


def _next_stage(before: Listing, barriers: list[int]) -> Iterator[Insertion]:
    """An arrive after the last write, on the barrier that follows the last one of these that the agent signals."""
    told = [pc for pc, op in enumerate(before.code) if op[0] == Op.ARRIVE and operand(op, "barrier") in barriers]
    written = [pc for pc in range(told[-1], len(before.code)) if before.code[pc][0] in OWN_WRITES] if told else []
    if written:
        last = before.code[told[-1]]
        after = barriers[(barriers.index(operand(last, "barrier")) + 1) % len(barriers)]
        arrive = (int(Op.ARRIVE), after, operand(last, "count"), 0, -1, operand(last, "semantics"))
        yield Insertion(written[-1] + 1, arrive, before.lines[written[-1]])


def share_of(program: Program, role: str, agent: int, barrier: int) -> int:
    """The arrivals of an agent if those of these roles alone are counted: its part, one or those of whole warps, or all
    of them for the first agent; 0 if it has none.
    """
    team = [n for n in members(program, role) if program.agents[n].cta == program.agents[agent].cta]
    inits = (op for op in program.operations if op[0] == Op.INIT and operand(op, "barrier") == barrier)
    count = next((operand(op, "count") for op in inits), 1)
    mine = count // len(team) if not count % len(team) else count * (agent == team[0])
    return mine if mine == 1 or not mine % WARP else 0


def end_of_work(before: Listing) -> int:
    """Where the work of an agent ends: before it meets its cluster, and before it invalidates barriers."""
    end = len(before.code)
    while end and before.code[end - 1][0] in LOOP_MARKS | CLUSTER | {int(Op.INVAL)}:
        end -= 1
    return end


def _unreleased_pieces(
    program: Program, before: Listing, stages: dict[int, int], begun_by: str = ""
) -> Iterator[tuple[int, int, int]]:
    """The pieces of work without an arrive, those that begin with a wait for this group where it is given: the wait,
    where the stage is used again, the barrier.
    """
    mine = set(stages.values())
    begins = [
        (pc, operand(op, "barrier"))
        for pc, op in enumerate(before.code)
        if op[0] in PARITY_WAITS and operand(op, "barrier") not in mine
        if begun_by in ("", program.barriers[operand(op, "barrier")].name)
    ]
    done: set[tuple[int, int]] = set()
    for n, (pc, barrier) in enumerate(begins):
        stage = program.barriers[barrier].stage
        if stage not in stages:
            continue
        following = (at for at, other in begins[n + 1 :] if other == barrier)
        end = next(following, len(before.code))
        due = stages[stage]
        if not any(gives_back(op) and operand(op, "barrier") == due for op in before.code[pc:end]):
            if (due, end) not in done:  # two waits may begin one piece of work
                yield pc, end, due
            done.add((due, end))


def _end_of_use(before: Listing, start: int, end: int) -> int:
    """After the last access of the piece of work that begins at ``start``: before its next wait or loop mark."""
    used = -1
    for pc in range(start + 1, end):
        op = before.code[pc]
        if op[0] in PARITY_WAITS or op[0] in LOOP_MARKS:
            if used >= 0:
                break
        elif op[0] in ACCESSES | ENGINE_ACCESSES | {int(Op.WAIT_GROUP)} or works(op):
            used = pc
    return used + 1


def _arriving(program: Program, role: str, group: str) -> list[int]:
    """The agents of a role that arrive on a group, all of them if none does."""
    mine = [agent for agent in members(program, role)
            if any(gives_back(op) and site.about == group
                   for op, site in zip(program.code[agent], program.instructions[agent], strict=True))]  # fmt: skip
    return mine or members(program, role)


def _first_of_role(program: Program, agent: int) -> int:
    me = program.agents[agent]
    return min(n for n in members(program, me.role) if program.agents[n].cta == me.cta)


def _last_use(before: Listing, start: int, end: int) -> int:
    """After the last operation between the two that uses memory, or waits for transfers, or gives something back."""
    used = [pc for pc in range(start + 1, end) if works(before.code[pc]) or gives_back(before.code[pc])]
    return used[-1] + 1 if used else -1


def _place_after(program: Program, agent: int, places: range, at: SourceInstruction, *, last: bool) -> int:
    """After the first execution of an instruction at one of these places, or after the last one; -1 without one."""
    return next((pc + 1 for pc in (reversed(places) if last else places) if site_of(program, agent, pc) == at), -1)


def _release(program: Program, role: str, agent: int, piece: range, barrier: int, *, alone: bool) -> Operation | None:
    """An arrive as the others on the group, else as its count asks, or (``alone``) one arrival; a commit where a
    tcgen05 engine has used the stage; None of agents that it does not count.
    """
    code = program.code[agent]
    if any(
        op[0] in ENGINE_ACCESSES and operand(op, "engine") == Engine.TCGEN05 for op in code[piece.start : piece.stop]
    ):
        return (int(Op.COMMIT), int(Engine.TCGEN05), barrier)
    group = {n for n, each in enumerate(program.barriers) if each.name == program.barriers[barrier].name}
    own = [op for op in code if op[0] == Op.ARRIVE and not operand(op, "expect")]
    mine = [op for op in own if operand(op, "barrier") in group]
    theirs = [
        op
        for other in program.code
        for op in other
        if op[0] == Op.ARRIVE and not operand(op, "expect") and operand(op, "barrier") in group
    ]
    count = Counter(operand(op, "count") for op in mine or theirs).most_common(1)
    like = next(iter(mine or own or theirs), None)
    asked = count[0][0] if count else 1 if alone else share_of(program, role, agent, barrier)
    return (int(Op.ARRIVE), barrier, asked, 0, -1, operand(like, "semantics") if like else 0) if asked else None


# waits


def add_waits(program: Program, agent: int, repair: Repair) -> Listing:
    """A wait for the group before each piece of work that ends with an arrive on another group of its stages (with
    ``past`` on that one); with ``at`` before each execution of that instruction, for one stage after the other, or
    (:attr:`Placement.FIRST`) before the first alone, for all stages. An ``at`` without a line is every use of a tile.
    """
    before, stages = listing(program, agent), stages_of(program, agent, repair.group)
    if not stages or any(op[0] in BRANCHES for op in before.code):
        return before
    mine = set(stages.values())
    like = next((op for code in (before.code, *program.code) for op in code if op[0] == Op.WAIT), None)
    tail = like[3:] if like is not None else (0,)
    turns: Counter[int] = Counter()
    found: dict[int, Insertion] = {}
    if repair.was == Placement.VISIT.value:
        for place, barrier, lap in _visits(program, agent, repair):
            if lap < times_signalled(program, barrier) + repair.value:  # it is filled once more
                wait = (int(Op.WAIT), barrier, (repair.value + lap) & 1, *tail)
                found[place] = Insertion(place, wait, before.lines[place])
        return insert_operations(before, found.values())
    if repair.at.op:
        order = [stages[stage] for stage in sorted(stages)]
        places = [pc for pc, site in enumerate(program.instructions[agent]) if is_use(site, repair.at)]
        if repair.was == Placement.WRITTEN.value:
            return insert_operations(before, _waits_for_what_is_read(program, before, repair.group, places, tail))
        if repair.was == Placement.FIRST.value:
            waits = [(int(Op.WAIT), barrier, repair.value, *tail) for barrier in order]
            return insert_operations(
                before, [Insertion(pc, wait, before.lines[pc]) for pc in places[:1] for wait in waits]
            )
        if repair.was == Placement.PARTLY.value:
            every, rest = divmod(len(places), sum(times_signalled(program, barrier) for barrier in order) or 1)
            places = places[::every] if every > 1 and not rest else []
        for n, place in enumerate(places):
            wait = (int(Op.WAIT), order[n % len(order)], (repair.value + n // len(order)) & 1, *tail)
            found[place] = Insertion(place, wait, before.lines[place])
        return insert_operations(before, found.values())
    begin = begin_of(program, agent)
    for place, op in enumerate(before.code):
        ends = op[0] == Op.ARRIVE or gives_back(op)
        if ends and repair.past.about and program.barriers[operand(op, "barrier")].name != repair.past.about:
            continue
        if ends and operand(op, "barrier") not in mine and program.barriers[operand(op, "barrier")].stage in stages:
            barrier = stages[program.barriers[operand(op, "barrier")].stage]
            here = place
            while here > begin and here not in found and works(before.code[here - 1]):
                here -= 1
            wait = (int(Op.WAIT), barrier, (repair.value + turns[barrier]) & 1, *tail)
            found[here] = Insertion(here, wait, before.lines[place])
            turns[barrier] += 1
    return insert_operations(before, found.values())


def times_signalled(program: Program, barrier: int) -> int:
    """How often the agent that does so most often signals a barrier."""
    return max(sum(op[0] in _SERVES and operand(op, "barrier") == barrier for op in code)
               for code in program.code)  # fmt: skip


def _visits(program: Program, agent: int, repair: Repair) -> Iterator[tuple[int, int, int]]:
    """Where an agent begins to use what a barrier of the group is about without a wait for it since it did so last, and
    the how manieth time that is: bytes that others use before their arrivals on this barrier alone.

    It begins again after other such bytes, and after each of its own signals on the group of ``past``.
    """
    mine = set(stages_of(program, agent, repair.group).values())
    owner: dict[int, int] = {}
    for other, code in enumerate(program.code):
        used: set[int] = set()
        for op in code[published_at(program, other) :] if other != agent else ():
            if op[0] in TOUCHES_MEMORY:
                used.update(range(*program.cells[operand(op, "access")]))
            if op[0] in _SERVES and operand(op, "barrier") in mine:
                signalled = operand(op, "barrier")
                owner |= {cell: signalled if owner.get(cell, signalled) == signalled else -1 for cell in used}
                used.clear()
    now, begin = -1, published_at(program, agent)
    laps: Counter[int] = Counter()
    waited: set[int] = set()
    for pc, op in enumerate(program.code[agent][begin:], begin):
        if op[0] in PARITY_WAITS:
            waited.add(operand(op, "barrier"))
        elif op[0] in TOUCHES_MEMORY:
            about = (owner.get(cell, -1) for cell in range(*program.cells[operand(op, "access")]))
            barrier = next((each for each in about if each >= 0), now)
            if barrier != now:
                if barrier not in waited:
                    yield pc, barrier, laps[barrier]
                laps[barrier] += 1
                waited.discard(barrier)
            now = barrier
        elif repair.past.about == program.instructions[agent][pc].about and (op[0] == Op.ARRIVE or gives_back(op)):
            now = -1


def _waits_for_what_is_read(
    program: Program, before: Listing, group: str, places: list[int], tail: tuple[int, ...]
) -> Iterator[Insertion]:
    """Before each read the wait for the phase of the group in which the bytes with this item are signalled."""
    signalled = phases_of_writes(program, group)
    known: set[tuple[int, int]] = set()
    for place in places:
        op = before.code[place]
        if op[0] not in READS_MEMORY:
            continue
        cells = range(*program.cells[operand(op, "access")])
        phase = next((signalled[key] for cell in cells if (key := (cell, operand(op, "item"))) in signalled), None)
        if phase is not None and phase not in known:
            known.add(phase)
            yield Insertion(place, (int(Op.WAIT), phase[0], phase[1] & 1, *tail), before.lines[place])


def waiting_for_groups(program: Program, agent: int, repair: Repair) -> Listing:
    """A wait for groups of an engine before (``was`` > 0: after) an instruction, in agents with transfers on it."""
    before, engine = listing(program, agent), int(repair.group)
    wait = (int(Op.WAIT_GROUP), engine, repair.value)
    found = []
    issued = False
    for pc, op in enumerate(before.code):
        if op[0] in ENGINE_ACCESSES and operand(op, "engine") == engine:
            issued = True
        if issued and site_of(program, agent, pc) == repair.at:
            found.append(Insertion(pc + (repair.was > 0), wait, before.lines[pc]))
    return insert_operations(before, found)


# commits


def add_commits(program: Program, agent: int, repair: Repair) -> Listing:
    """A commit after the transfers of an engine that none closes; with ``value`` 1 one before each wait for groups that
    has none, also where nothing was transferred; with 2 one between transfers of the same instruction as well.
    """
    before, engine = listing(program, agent), int(repair.group)
    commit = (int(Op.COMMIT), engine, -1)
    found: list[Insertion] = []
    last = -1  # of transfers that no commit has closed
    waited = False  # since the last commit
    since: set[SourceInstruction] = set()  # transfers since the last commit
    for pc, op in enumerate(before.code):
        if op[0] in ENGINE_ACCESSES and operand(op, "engine") == engine:
            whole = program.coverage.extracted and last == pc - 1  # of one instruction, part by part
            if repair.value == 2 and last >= 0 and site_of(program, agent, pc) in since and not whole:
                found.append(Insertion(last + 1, commit, before.lines[last]))
                since.clear()
            last = pc
            since.add(site_of(program, agent, pc))
        elif op[0] == Op.COMMIT and (operand(op, "engine"), operand(op, "barrier")) == (engine, -1):
            last, waited = -1, False
            since.clear()
        elif last >= 0 and op[0] not in ENGINE_ACCESSES | {int(Op.ENGINE_WORK)}:
            found.append(Insertion(last + 1, commit, before.lines[last]))
            last, waited = -1, False
            since.clear()
        if repair.value == 1 and op[0] == Op.WAIT_GROUP and operand(op, "engine") == engine:
            if waited:
                found.append(Insertion(pc, commit, before.lines[pc]))
            waited = True
    if last >= 0:
        found.append(Insertion(last + 1, commit, before.lines[last]))
    return insert_operations(before, found)


# fences


_AFTER, _UNTIL = (
    {
        FencePlace.AFTER_READS: ENDS_READS,
        FencePlace.BEFORE_WRITES: SEES_READS_END,
        FencePlace.AFTER_WRITES: OWN_WRITES,
        FencePlace.BEFORE_TRANSFERS: SEES_READS_END,
    },
    {
        FencePlace.AFTER_READS: HANDS_ON,
        FencePlace.BEFORE_WRITES: OWN_WRITES,
        FencePlace.AFTER_WRITES: HANDS_ON,
        FencePlace.BEFORE_TRANSFERS: ENGINE_ACCESSES | {int(Op.TMA_LOAD)},
    },
)
_FIRST = frozenset({FencePlace.BEFORE_WRITES, FencePlace.BEFORE_TRANSFERS})  #: placed before what follows


def add_fences(program: Program, agent: int, repair: Repair) -> Listing:
    """A proxy fence between each operation of one set and the next one of another, where there is none; after writes
    only of what transfers use.
    """
    kind, before = FencePlace(repair.value), listing(program, agent)
    after, until = _AFTER[kind], _UNTIL[kind]
    other = _of_no_transfer(program, agent) if kind is FencePlace.AFTER_WRITES else set()
    return insert_operations(before, _fences(before, after, until, other, late=kind in _FIRST))


def _of_no_transfer(program: Program, agent: int) -> set[int]:
    """The places of an agent's accesses to bytes that no transfer uses."""
    engines = ENGINE_ACCESSES | {int(Op.TMA_LOAD)}
    used = {operand(op, "access") for op in program.operations if op[0] in engines}
    cells = {cell for access in used for cell in range(*program.cells[access])}
    code = enumerate(program.code[agent])
    own = {pc: program.cells[operand(op, "access")] for pc, op in code if op[0] in OWN_WRITES}
    return {pc for pc, mine in own.items() if cells.isdisjoint(range(*mine))}


def _fences(before: Listing, after: Set[int], until: Set[int], other: Set[int], *, late: bool) -> list[Insertion]:
    found: list[Insertion] = []
    line = -1
    for place, op in enumerate(before.code):
        if line >= 0 and op[0] in until:
            found.append(Insertion(place, _PROXY_FENCE, before.lines[place] if late else line))
            line = -1
        if op[0] == Op.FENCE and op[FENCE] == Fence.PROXY_ASYNC:
            line = -1
        elif place not in other and (op[0] in after or (after is OWN_WRITES and _ends_copies(op))):
            line = before.lines[place]
    return found


def _ends_copies(op: Operation) -> bool:
    """True for a wait for cp.async, whose copies are written through the proxy of ordinary writes (PTX ISA)."""
    return op[0] == Op.WAIT_GROUP and operand(op, "engine") == Engine.CP_ASYNC
