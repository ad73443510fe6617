"""Corrections of numbers, each worked out from what the program does, and of operands by themselves: counts, bytes,
threads, lanes, masks, parities; another operation in the place of one.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Set
from typing import NamedTuple

from pipesim.model.barrier import MAX_COUNT
from pipesim.model.edits import Listing, with_expected_bytes
from pipesim.model.groups import (
    BY_PARITY,
    ENGINE_ACCESSES,
    MAY_ACQUIRE,
    MAY_RELEASE,
    MULTICASTS,
    ON_BARRIER,
    ON_NAMED_BARRIER,
    PARITY_WAITS,
    TAKES_REGISTERS,
)
from pipesim.model.ops import Engine, Op, OperandName, Operation, Order, operand, ranks, semantics, with_operand
from pipesim.model.program import Program
from pipesim.model.rules.sync import WARP
from pipesim.model.rules.warp_shape import GRANULE, SM_REGISTERS
from pipesim.model.tables import NAMED_BARRIERS, SourceInstruction
from pipesim.prove.repair.kinds import NOWHERE, ROWS, SCOPES, TO_THE_OTHER, Repair, RepairKind
from pipesim.prove.repair.sites import (
    AgentCode,
    barrier_of,
    barriers_of,
    executions,
    gives_back,
    members,
    numbered,
    pairs,
    ring_of,
    roles_of,
    sites_of,
    stages_of,
)

K = RepairKind
FEWEST = 24  #: registers of a thread that setmaxnreg may ask for (PTX ISA)


def counts(program: Program, *, by_lanes: bool = False) -> Iterator[Repair]:
    """The arrivals that a phase is given if everyone who arrives on the group does so as often as now; of barriers of
    one name that are initialised with several counts, such as those of one line of a kernel, those of each count apart.

    ``by_lanes``: those only where all lanes of warps arrive, and the count is that of the warps.
    """
    for group, parts in _by_count(program).items():
        for was, mine in parts.items():
            others = [count for count in parts if count != was and len(parts[count]) > len(mine)]
            once, several = (_arrivals_on(program, min(mine), each=each) for each in (True, False))
            for now in dict.fromkeys((once, several, _for_each_wait(program, mine), *others)):
                of_warps = now == WARP * was and _by_warps(program, set(mine))
                if was >= 0 and 1 <= now <= MAX_COUNT and now != was and of_warps is by_lanes:
                    yield Repair(K.COUNT, "", group, now, was)


def _by_count(program: Program) -> dict[str, dict[int, list[int]]]:
    """The barriers of each name by the count of their inits."""
    counts = {barrier_of(op): operand(op, "count") for op in program.operations if op[0] == Op.INIT}
    found: dict[str, dict[int, list[int]]] = {}
    for n, barrier in enumerate(program.barriers):
        found.setdefault(barrier.name, {}).setdefault(counts.get(n, -1), []).append(n)
    return found


def _by_warps(program: Program, mine: set[int]) -> bool:
    """True if all arrivals on the barriers are plain arrives that all lanes of a warp execute."""
    given = (op for op in program.operations if _arrivals(op) and barrier_of(op) in mine)
    return all(op[0] == Op.ARRIVE and operand(op, "count") % WARP == 0 for op in given)


def count_of(program: Program, group: str) -> int:
    """The count with which all barriers of a group are initialised, -1 if there are several, or none."""
    mine = set(barriers_of(program, group))
    inits = {operand(op, "count") for op in program.operations if op[0] == Op.INIT and barrier_of(op) in mine}
    return inits.pop() if len(inits) == 1 else -1


def arrivals_of(program: Program, group: str) -> int:
    """The arrivals on the first barrier of the group, of each agent once."""
    return _arrivals_on(program, min(barriers_of(program, group), default=-1))


def _arrivals_on(program: Program, first: int, *, each: bool = True) -> int:
    """The arrivals on a barrier of each agent, by one operation, or (not ``each``) by all between two of its waits."""
    once = 0
    for code in program.code:
        sums = [0]
        for op in code:
            if op[0] in PARITY_WAITS or (each and sums[-1]):
                sums.append(0)
            sums[-1] += _arrivals(op) if barrier_of(op) == first else 0
        mostly = Counter(filter(None, sums)).most_common(1)
        once += mostly[0][0] if mostly else 0
    return once


def _for_each_wait(program: Program, barriers: list[int]) -> int:
    """All arrivals on each of these barriers by how often one is waited for, 0 if that is not the same number."""
    found: set[int] = set()
    for barrier in barriers:
        mine = [[op for op in code if barrier_of(op) == barrier] for code in program.code]
        waits = max(sum(op[0] in PARITY_WAITS for op in code) for code in mine)
        each, rest = divmod(sum(_arrivals(op) for code in mine for op in code), max(waits, 1))
        found.add(0 if rest else each)
    return found.pop() if len(found) == 1 else 0


def _arrivals(op: Operation) -> int:
    """The arrivals that an operation makes sooner or later on the barrier that it names, 0 if it makes none."""
    if op[0] == Op.ARRIVE:
        return operand(op, "count")
    if op[0] == Op.CP_ASYNC_ARRIVE:
        return operand(op, "lanes") if operand(op, "noinc") else 0
    return 1 if op[0] == Op.COMMIT and barrier_of(op) >= 0 else 0


def expects(program: Program) -> Iterator[Repair]:
    """The bytes that land on each barrier between two expects of it, where they are always as many."""
    landed: defaultdict[int, int] = defaultdict(int)
    expected: defaultdict[int, list[int]] = defaultdict(list)
    whose: defaultdict[int, set[str]] = defaultdict(set)
    copied = [
        {barrier for op in code if op[0] == Op.TMA_LOAD for barrier in _signalled_barriers(program, op)}
        for code in program.code
    ]
    for agent, _, op, _ in executions(program):
        if op[0] == Op.TMA_LOAD:
            for barrier in _signalled_barriers(program, op):
                landed[barrier] += operand(op, "bytes")
        elif may_expect(op, copied[agent]):
            expected[barrier_of(op)].append(_expected(op))
            whose[barrier_of(op)].add(program.agents[agent].role)
    found: defaultdict[tuple[str, str], set[tuple[int, int]]] = defaultdict(set)
    for barrier, sizes in expected.items():
        if 0 in sizes and sum(sizes) == landed[barrier]:  # some arrivals expect all, others none
            continue
        each, rest = divmod(landed[barrier], len(sizes))
        odd = next((size for size in sizes if size != each), sizes[0])
        for role in whose[barrier]:
            found[role, program.barriers[barrier].name].add((each, odd) if not rest else (-1, -1))
    for (role, group), several in found.items():
        nbytes, was = next(((nbytes, was) for nbytes, was in sorted(several) if nbytes != was), (0, 0))
        if len({nbytes for nbytes, _ in several}) == 1 and nbytes > 0:
            yield Repair(K.EXPECT, role, group, nbytes, was)
        else:
            yield from _expects_each_time(program, role, group)


def _expected(op: Operation) -> int:
    return operand(op, "bytes" if op[0] == Op.EXPECT_TX else "expect")


def _expects_each_time(program: Program, role: str, group: str) -> Iterator[Repair]:
    """As many bytes as are copied with each expect, where these differ: the first that is wrong is named.

    Nothing where they are as many in all: then it is a copy that is counted on another barrier.
    """
    for agent in members(program, role):
        copied = bytes_of_expects(program, agent, group)
        asked = {pc: _expected(program.code[agent][pc]) for pc in copied}
        wrong = (pc for pc, nbytes in copied.items() if asked[pc] != nbytes > 0)
        pc = -1 if sum(asked.values()) == sum(copied.values()) else next(wrong, -1)
        if pc >= 0:
            yield Repair(K.EXPECT, role, group, copied[pc], asked[pc], past=NOWHERE._replace(op=int(Op.TMA_LOAD)))
            return


def _signalled_barriers(program: Program, copy: Operation) -> list[int]:
    """The barriers on which a copy is counted."""
    mask = operand(copy, "cta_mask")
    there = (program.counterpart(barrier_of(copy), rank) for rank in ranks(mask))
    return [each for each in there if each is not None] if mask else [barrier_of(copy)]


def masks(program: Program) -> Iterator[Repair]:
    """All CTAs of the cluster for multicasts that some of them do not receive."""
    everyone, widths = (1 << program.ctas) - 1, [w for w in range(2, program.ctas) if not program.ctas % w]
    for role, group in pairs(program, lambda op: op[0] in MULTICASTS):
        sites = [site for site in sites_of(program, role, MULTICASTS) if site.about == group]
        some = {
            operand(op, "cta_mask") for *_, op, site in executions(program, role, MULTICASTS) if site.about == group
        }
        if was := some - {0, everyone}:
            past = NOWHERE if len(was) == 1 else NOWHERE._replace(about="one that differs in each CTA")
            yield Repair(K.MASK, role, group, everyone, min(was), past=past)
            for site in sites:
                yield from (
                    Repair(K.MASK, role, group, v, min(was), site, past) for w in widths for v in (-w, -w - ROWS)
                )
        if 0 in some and program.ctas > 1:
            yield from (Repair(K.MASK, role, group, everyone, 0, site) for site in sites if site.op == Op.TMA_LOAD)


def registers(program: Program) -> Iterator[Repair]:
    """For each role that asks for registers as many as the others leave of those of its CTA, where these are fewer."""
    here = {agent.warp: n for n, agent in reversed(list(enumerate(program.agents))) if not agent.cta}
    last = {n: [op for op in program.code[n] if op[0] in TAKES_REGISTERS][-1:] for n in here.values()}
    held = {n: operand(ops[0], "registers") if ops else program.launch_registers for n, ops in last.items()}
    pool = min(WARP * len(here) * program.launch_registers or SM_REGISTERS, SM_REGISTERS)
    for role in roles_of(program):
        mine = [n for n in members(program, role) if last.get(n)]
        rest = pool // WARP - sum(each for n, each in held.items() if n not in mine)
        now = rest // max(len(mine), 1) // GRANULE * GRANULE
        if mine and FEWEST <= now < (was := held[mine[0]]):
            yield Repair(K.REGISTERS, role, "", now, was)


def threads(program: Program) -> Iterator[Repair]:
    """As many threads as the agents have that ever arrive at named barriers, for all those with which it is the same.

    Where those that arrive are twice the number asked for, or more, several groups of warps meet at one number: then
    each has a number of its own.
    """
    wrong: dict[tuple[int, int], list[int]] = {}
    numbers = dict.fromkeys(number for _, number in program.named_barriers if number < NAMED_BARRIERS)
    free = min(max(numbers, default=0) + 1, NAMED_BARRIERS - 1)
    for name in numbers:
        here = [[op for op in code if program.named_barrier(op) == name] for code in program.code]
        come = sum(operand(ops[0], "lanes") for ops in here if ops) // program.ctas
        asked = {operand(op, "threads") for ops in here for op in ops}
        if not asked or asked == {come}:
            continue
        if len(asked) == 1 and min(asked) > WARP and come >= 2 * min(asked) and not come % min(asked):
            yield from (Repair(K.NUMBER, "", str(name), free, alike) for alike in (come // min(asked), -1, 0))
        wrong.setdefault((come, min(asked - {come})), []).append(name)
    for (come, was), names in wrong.items():
        yield Repair(K.THREADS, "", numbered(names), come, was)


def lanes(program: Program) -> Iterator[tuple[Repair, bool]]:
    """One lane for an arrive of a whole warp, and all for that of an elected one; and whether that is what is likely.

    All lanes are where each has copies of its own to signal, by ``cp.async``; for writes ``__syncwarp`` does. So they
    are where those of others arrive on the same group.
    """
    seen: set[Repair] = set()
    given: defaultdict[str, set[int]] = defaultdict(set)
    for *_, op, site in executions(program, ops={int(Op.ARRIVE)}):
        given[site.about].add(operand(op, "count"))
    own, last = False, -1  # whether the agent has had copies since its last wait
    for agent, _, op, site in executions(program, ops=ENGINE_ACCESSES | PARITY_WAITS | {int(Op.ARRIVE)}):
        own = own and agent == last and op[0] not in PARITY_WAITS
        last = agent
        own = own or (op[0] in ENGINE_ACCESSES and operand(op, "engine") == Engine.CP_ASYNC)
        if op[0] == Op.ARRIVE and program.agents[agent].lanes.bit_count() == WARP:
            wide = operand(op, "count") % WARP == 0
            to, was = (1, WARP) if wide else (WARP, 1)
            found = Repair(K.LANES, program.agents[agent].role, site.about, to, was, site)
            if found not in seen and (wide or operand(op, "count") == 1):
                seen.add(found)
                every = not wide and count_of(program, site.about) == WARP * arrivals_of(program, site.about)
                yield found, wide or own or every or to in given[site.about]


def ends(program: Program) -> Iterator[Repair]:
    """Arrives that should come when the transfers of their agent have ended; cp.async arrives that are not counted."""
    for role in roles_of(program):
        used = {operand(each.op, "engine") for each in executions(program, role, ENGINE_ACCESSES)}
        engines = sorted(used & {Engine.CP_ASYNC, Engine.TCGEN05})
        given = (each for each in executions(program, role, {int(Op.ARRIVE), int(Op.CP_ASYNC_ARRIVE)}))
        for site in dict.fromkeys(each.site for each in given if gives_back(each.op)):
            if site.op == Op.CP_ASYNC_ARRIVE:
                yield Repair(K.NOINC, role, site.about, at=site)
            else:
                yield from (Repair(K.ON_END, role, site.about, engine, at=site) for engine in engines)


def inits(program: Program) -> Iterator[Repair]:
    """Barriers that no agent initialises, of a group of which others are; inits that several lanes or roles make."""
    yield Repair(K.INIT, "", "")
    for role in roles_of(program):
        yield from (Repair(K.ONCE, role, site.about, at=site) for site in sites_of(program, role, {int(Op.INIT)}))
    yield from (Repair(K.OMIT, role, "") for role in reversed(roles_of(program)))


def group_depths(program: Program) -> Iterator[Repair]:
    """Fewer groups under way than a role leaves now, as many as possible first; the group is the engine's number."""
    found: dict[tuple[str, int, int], dict[Repair, None]] = {}
    for agent, _, op, site in executions(program, ops={int(Op.WAIT_GROUP)}):
        if was := operand(op, "groups"):
            role, engine = program.agents[agent].role, operand(op, "engine")
            at = Repair(K.DEPTH, role, str(engine), -1, was, site)
            found.setdefault((role, engine, was), {})[at] = None
    for (role, engine, was), fewer in found.items():
        for place in [*((each.at for each in fewer) if len(fewer) > 1 else ()), NOWHERE]:
            yield from (Repair(K.DEPTH, role, str(engine), depth, was, place) for depth in range(was - 1, -1, -1))
        yield from fewer  # which may differ in a larger one


# what they change


def of_operand(me: AgentCode, repair: Repair) -> Listing:
    """The operations of one agent, each changed by itself."""
    if repair.kind is K.EXPECT and repair.past.op:
        sizes = bytes_of_expects(me.program, me.agent, repair.group)
        return me.replaced({pc: with_expected_bytes(me.code[pc], nbytes) for pc, nbytes in sizes.items()})
    row = CHANGES[repair.kind]
    groups = set(repair.group.split(",")) if row.of_group else set()
    here = (pc for pc, op in enumerate(me.code) if op[0] in row.ops)
    if repair.at.op or repair.at.line:
        here = (pc for pc in here if _is_at(me.sites[pc], repair.at))
    if row.of_group:
        here = (pc for pc in here if me.program.barriers[barrier_of(me.code[pc])].name in groups)
    return me.replaced({pc: row.change(me, repair, me.code[pc]) for pc in here})


def _is_at(site: SourceInstruction, at: SourceInstruction) -> bool:
    """True for the instruction, and for all of its line where it names nothing that they are about."""
    if at.about:
        return site == at
    return site.op == (at.op or site.op) and site.line in at.line.split("\n")  # several, of what belongs together


def may_expect(op: Operation, copied: Collection[int] = ()) -> bool:
    """True for what expects bytes, and for an arrive on a barrier of the agent's own copies, which could."""
    return op[0] == Op.EXPECT_TX or (op[0] == Op.ARRIVE and (operand(op, "expect") > 0 or barrier_of(op) in copied))


def bytes_of_expects(program: Program, agent: int, group: str) -> dict[int, int]:
    """For each expect of an agent on a group the bytes that it copies with that barrier until it expects more there."""
    mine = set(ring_of(program, agent, group))
    found: dict[int, int] = {}
    last: dict[int, int] = {}
    for pc, op in enumerate(program.code[agent]):
        if op[0] == Op.TMA_LOAD and barrier_of(op) in last:
            found[last[barrier_of(op)]] += operand(op, "bytes")
        elif may_expect(op) and barrier_of(op) in mine:
            last[barrier_of(op)] = pc
            found[pc] = 0
    return found


def multicasts(program: Program, op: Operation, repair: Repair) -> bool:
    """True for a multicast (``was`` 0: another copy) that is counted on barriers of the group."""
    copies = op[0] in MULTICASTS and (operand(op, "cta_mask") > 0) is (repair.was > 0)
    return copies and program.barriers[barrier_of(op)].name == repair.group


def _expect(me: AgentCode, repair: Repair, op: Operation) -> Operation:
    copied = {barrier_of(each) for each in me.code if each[0] == Op.TMA_LOAD}
    return with_expected_bytes(op, repair.value) if may_expect(op, copied) else op


def _lanes(_: AgentCode, repair: Repair, op: Operation) -> Operation:
    """``value`` lanes instead of ``was``: arrivals and expected bytes are counted for each."""
    if operand(op, "count") % repair.was:
        return op
    count, expect = (operand(op, name) * repair.value // repair.was for name in ("count", "expect"))
    return with_operand(with_operand(op, "count", count), "expect", expect) if count else op


def _number(name: OperandName) -> Callable[[AgentCode, Repair, Operation], Operation]:
    """Another number in the place of the one that is wrong."""

    def change(_: AgentCode, repair: Repair, op: Operation) -> Operation:
        return with_operand(op, name, repair.value) if operand(op, name) == repair.was else op

    return change


def _threads(me: AgentCode, repair: Repair, op: Operation) -> Operation:
    wanted = str(me.program.named_barrier(op)) in repair.group.split(",")
    return with_operand(op, "threads", repair.value) if wanted else op


def _depth(_: AgentCode, repair: Repair, op: Operation) -> Operation:
    """As many groups as are given, or (below 0) one fewer than now, however many."""
    was = operand(op, "groups")
    wanted = operand(op, "engine") == int(repair.group) and (repair.value < 0 or was == repair.was)
    return with_operand(op, "groups", repair.value if repair.value >= 0 else max(was - 1, 0)) if wanted else op


def _mask(me: AgentCode, repair: Repair, op: Operation) -> Operation:
    if not multicasts(me.program, op, repair):
        return op
    step, own = -repair.value, me.cta
    row = step - ROWS  # with the agent's own CTA, or its column, or those that are given
    mine = (r for r in range(me.program.ctas) if (r // row == own // row if row > 0 else not (r - own) % step))
    return with_operand(op, "cta_mask", sum(1 << r for r in mine) if step > 0 else repair.value)


def _on_end(_: AgentCode, repair: Repair, op: Operation) -> Operation:
    """The arrival when what the engine was given before has ended."""
    if repair.value == Engine.CP_ASYNC:
        return (int(Op.CP_ASYNC_ARRIVE), barrier_of(op), operand(op, "count"), 1)
    return (int(Op.COMMIT), repair.value, barrier_of(op))


def _syncs(me: AgentCode, repair: Repair, op: Operation) -> Operation:
    """A wait as well; of one instruction, or of all at a named barrier."""
    return (int(Op.BAR_SYNC), *op[1:]) if str(me.program.named_barrier(op)) in repair.group.split(",") else op


def _stronger(_: AgentCode, repair: Repair, op: Operation) -> Operation:
    """An order that releases or acquires, and a scope that has those in it who wait, or signal."""
    if op[0] != repair.at.op and not repair.past.op:
        return op
    release = Order.ACQ_REL if repair.past.op else Order.RELEASE  # an atomic is both
    order = release if op[0] in MAY_RELEASE else Order.ACQUIRE
    return with_operand(op, "semantics", semantics(order, SCOPES[repair.value]))


def _shift(me: AgentCode, repair: Repair, op: Operation) -> Operation:
    """The barrier that is this many stages further in its group, or among the named barriers of the instruction."""
    if op[0] in ON_NAMED_BARRIER:
        named, own = me.program.named_barriers, str(me.program.named_barrier(op))
        numbers = repair.group.split(",")
        to = numbers[(numbers.index(own) + repair.value) % len(numbers)] if own in numbers else -1
        other = (me.cta, int(to))  # which another CTA of the cluster need not have
        return with_operand(op, "named_barrier", named.index(other)) if other in named else op
    at = me.program.barriers[barrier_of(op)]
    if at.name != repair.group:
        return op
    there = stages_of(me.program, me.agent, at.name, at.cta)
    stages = sorted(there)
    if repair.was == TO_THE_OTHER:
        turn = at.stage % repair.value
        to = at.stage - turn + (turn + 1) % repair.value
        return with_operand(op, "barrier", there[to]) if to in there else op
    return with_operand(op, "barrier", there[stages[(stages.index(at.stage) + repair.value) % len(stages)]])


class _NumberChange(NamedTuple):
    """Which operations a kind changes, on all barriers or (``of_group``) those of its group, and how."""

    ops: Set[int]
    change: Callable[[AgentCode, Repair, Operation], Operation]
    of_group: bool = False


_ARRIVES = {int(Op.ARRIVE)}
CHANGES: dict[RepairKind, _NumberChange] = {
    K.COUNT: _NumberChange({int(Op.INIT)}, _number("count"), of_group=True),
    K.EXPECT: _NumberChange({int(Op.ARRIVE), int(Op.EXPECT_TX)}, _expect, of_group=True),
    K.REGISTERS: _NumberChange(TAKES_REGISTERS, _number("registers")),
    K.LANES: _NumberChange(_ARRIVES, _lanes, of_group=True),
    K.THREADS: _NumberChange(ON_NAMED_BARRIER, _threads),
    K.DEPTH: _NumberChange({int(Op.WAIT_GROUP)}, _depth),
    K.MASK: _NumberChange(MULTICASTS, _mask),
    K.ARRIVES_TOO: _NumberChange(
        {int(Op.EXPECT_TX)}, lambda _, __, op: (int(Op.ARRIVE), barrier_of(op), 1, operand(op, "bytes"), -1, 0)
    ),
    K.STAY: _NumberChange({int(Op.ARRIVE_DROP)}, lambda _, __, op: (int(Op.ARRIVE), *op[1:]), of_group=True),
    K.NOINC: _NumberChange({int(Op.CP_ASYNC_ARRIVE)}, lambda _, __, op: with_operand(op, "noinc", 1), of_group=True),
    K.ON_END: _NumberChange(_ARRIVES, _on_end, of_group=True),
    K.SYNCS: _NumberChange({int(Op.BAR_ARRIVE)}, _syncs),
    K.STRONGER: _NumberChange(MAY_RELEASE | MAY_ACQUIRE, _stronger),
    K.SHIFT: _NumberChange(ON_BARRIER | ON_NAMED_BARRIER, _shift),
}


# parities, which depend on the waits before


def in_turn(me: AgentCode, repair: Repair) -> Listing:
    """Every wait on the group, or its stage ``was``, with the parity of its turn; with STAGES also its stage."""
    stages = {stage: bar for stage, bar in me.stages(repair.group).items() if repair.was in (-1, stage)}
    order = [stages[stage] for stage in sorted(stages)]
    turns: Counter[int] = Counter()
    found: dict[int, Operation] = {}
    for place, op in enumerate(me.code):
        if op[0] not in BY_PARITY or barrier_of(op) not in order:
            continue
        if repair.kind is K.STAGES:
            lap, stage = divmod(turns.total(), len(order))
            barrier = order[stage]
        else:
            barrier, lap = barrier_of(op), turns[barrier_of(op)]
        found[place] = with_operand(with_operand(op, "barrier", barrier), "parity", (repair.value + lap) & 1)
        turns[barrier_of(op)] += op[0] in PARITY_WAITS  # a try belongs to the wait after it
    return me.replaced(found)


def in_laps(me: AgentCode, _: Repair) -> Listing:
    """Every wait with the parity of its turn; the first on each barrier keeps the one that it has."""
    turns: dict[int, int] = {}
    found: dict[int, Operation] = {}
    for place, op in enumerate(me.code):
        if op[0] in BY_PARITY:
            turn = turns.setdefault(barrier_of(op), operand(op, "parity"))
            found[place] = with_operand(op, "parity", turn)
            turns[barrier_of(op)] ^= op[0] in PARITY_WAITS
    return me.replaced(found)
