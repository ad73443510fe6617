"""Corrections of numbers, each worked out from what the program does, and of operands by themselves: counts, bytes,
threads, lanes, masks.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

from pipesim.model.barrier import MAX_COUNT
from pipesim.model.groups import (
    ENGINE_ACCESSES,
    MULTICASTS,
    PARITY_WAITS,
    TAKES_REGISTERS,
)
from pipesim.model.ops import Engine, Op, Operation, operand, ranks
from pipesim.model.program import Program
from pipesim.model.rules.sync import WARP
from pipesim.model.rules.warp_shape import GRANULE, SM_REGISTERS
from pipesim.model.tables import NAMED_BARRIERS
from pipesim.prove.repair.changes.operand_changes import bytes_of_expects, may_expect
from pipesim.prove.repair.kinds import NOWHERE, ROWS, Repair, RepairKind
from pipesim.prove.repair.sites import (
    barrier_of,
    barriers_of,
    executions,
    gives_back,
    members,
    numbered,
    pairs,
    roles_of,
    sites_of,
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
