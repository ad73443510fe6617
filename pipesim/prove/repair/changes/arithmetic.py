"""Corrections of numbers: counts, bytes, threads, lanes and masks, each worked out from what the program does."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from pipesim.model.barrier import MAX_COUNT
from pipesim.model.groups import ENGINE_ACCESSES, MULTICASTS, ON_BARRIER, PARITY_WAITS, TAKES_REGISTERS
from pipesim.model.ops import Engine, Op, Operation, operand, ranks
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import GRANULE, SM_REGISTERS
from pipesim.model.tables import NAMED_BARRIERS, SourceInstruction
from pipesim.prove.repair.changes.numbers import bytes_of_expects, may_expect
from pipesim.prove.repair.changes.order import gives_back
from pipesim.prove.repair.kinds import NOWHERE, ROWS, Repair, RepairKind
from pipesim.prove.repair.sites import barriers_of, members, roles_of, site_of, sites_of

WARP = 32
FEWEST = 24  #: registers of a thread that setmaxnreg may ask for (PTX ISA)


def counts(program: Program, *, by_lanes: bool = False) -> Iterator[Repair]:
    """The arrivals that a phase is given if everyone who arrives on the group does so as often as now; of barriers of
    one name that are initialised with several counts, such as those of one line of a kernel, those of each count apart.

    ``by_lanes``: those only where all lanes of warps arrive, and the count is that of the warps.
    """
    for group, parts in _by_count(program).items():
        for was, mine in parts.items():
            others = [count for count in parts if count != was and len(parts[count]) > len(mine)]
            several = _arrivals_on(program, min(mine), each=False)
            for once in dict.fromkeys(
                (_arrivals_on(program, min(mine)), several, _for_each_wait(program, mine), *others)
            ):
                of_warps = once == WARP * was and _by_warps(program, set(mine))
                if was >= 0 and 1 <= once <= MAX_COUNT and once != was and of_warps is by_lanes:
                    yield Repair(RepairKind.COUNT, "", group, once, was)


def _by_count(program: Program) -> dict[str, dict[int, list[int]]]:
    """The barriers of each name by the count of their inits."""
    counts = {operand(op, "barrier"): operand(op, "count") for op in program.operations if op[0] == Op.INIT}
    found: dict[str, dict[int, list[int]]] = {}
    for n, barrier in enumerate(program.barriers):
        found.setdefault(barrier.name, {}).setdefault(counts.get(n, -1), []).append(n)
    return found


def _by_warps(program: Program, mine: set[int]) -> bool:
    """True if all arrivals on the barriers are plain arrives that all lanes of a warp execute."""
    arrives = [op for op in program.operations if _arrivals(op) and operand(op, "barrier") in mine]
    return all(op[0] == Op.ARRIVE and operand(op, "count") % WARP == 0 for op in arrives)


def count_of(program: Program, group: str) -> int:
    """The count with which all barriers of a group are initialised, -1 if there are several, or none."""
    mine = set(barriers_of(program, group))
    inits = {operand(op, "count") for op in program.operations if op[0] == Op.INIT and operand(op, "barrier") in mine}
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
            sums[-1] += _arrivals(op) if op[0] in ON_BARRIER and operand(op, "barrier") == first else 0
        mostly = Counter(filter(None, sums)).most_common(1)
        once += mostly[0][0] if mostly else 0
    return once


def _for_each_wait(program: Program, barriers: list[int]) -> int:
    """All arrivals on each of these barriers by how often one is waited for, 0 if that is not the same number."""
    found: set[int] = set()
    for barrier in barriers:
        mine = [
            [op for op in code if op[0] in ON_BARRIER and operand(op, "barrier") == barrier] for code in program.code
        ]
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
    return 1 if op[0] == Op.COMMIT and operand(op, "barrier") >= 0 else 0


def expects(program: Program) -> Iterator[Repair]:
    """The bytes that land on each barrier between two expects of it, where they are always as many."""
    landed: defaultdict[int, int] = defaultdict(int)
    expected: defaultdict[int, list[int]] = defaultdict(list)
    whose: defaultdict[int, set[str]] = defaultdict(set)
    for agent, code in enumerate(program.code):
        copied = {barrier for op in code if op[0] == Op.TMA_LOAD for barrier in _signalled_barriers(program, op)}
        for op in code:
            if op[0] == Op.TMA_LOAD:
                for barrier in _signalled_barriers(program, op):
                    landed[barrier] += operand(op, "bytes")
            elif may_expect(op, copied):
                expected[operand(op, "barrier")].append(operand(op, "bytes" if op[0] == Op.EXPECT_TX else "expect"))
                whose[operand(op, "barrier")].add(program.agents[agent].role)
    found: defaultdict[tuple[str, str], set[tuple[int, int]]] = defaultdict(set)
    for barrier, sizes in expected.items():
        if 0 in sizes and sum(sizes) == landed[barrier]:  # some arrivals expect all, others none
            continue
        each, rest = divmod(landed[barrier], len(sizes))
        for role in whose[barrier]:
            odd = [size for size in dict.fromkeys(sizes) if size != each] or sizes[:1]
            found[role, program.barriers[barrier].name].add((each, odd[0]) if not rest else (-1, -1))
    for (role, group), several in found.items():
        sizes_now = {nbytes for nbytes, _ in several}
        nbytes, was = next(((nbytes, was) for nbytes, was in sorted(several) if nbytes != was), (0, 0))
        if len(sizes_now) == 1 and nbytes > 0:
            yield Repair(RepairKind.EXPECT, role, group, nbytes, was)
        else:
            yield from _expects_each_time(program, role, group)


def _expects_each_time(program: Program, role: str, group: str) -> Iterator[Repair]:
    """As many bytes as are copied with each expect, where these differ: the first that is wrong is named.

    Nothing where they are as many in all: then it is a copy that is counted on another barrier.
    """
    for agent in members(program, role):
        code = program.code[agent]
        copied = bytes_of_expects(program, agent, group)
        asked = {pc: operand(code[pc], "bytes" if code[pc][0] == Op.EXPECT_TX else "expect") for pc in copied}
        if sum(asked.values()) == sum(copied.values()):
            continue
        for pc, nbytes in copied.items():
            if (was := asked[pc]) != nbytes > 0:
                yield Repair(RepairKind.EXPECT, role, group, nbytes, was, past=NOWHERE._replace(op=int(Op.TMA_LOAD)))
                return


def _signalled_barriers(program: Program, copy: Operation) -> list[int]:
    """The barriers on which a copy is counted."""
    mask, barrier = operand(copy, "cta_mask"), operand(copy, "barrier")
    if not mask:
        return [barrier]
    there = (program.counterpart(barrier, rank) for rank in ranks(mask))
    return [each for each in there if each is not None]


def masks(program: Program) -> Iterator[Repair]:
    """All CTAs of the cluster for multicasts that some of them do not receive."""
    everyone = (1 << program.ctas) - 1
    found: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for agent, code in enumerate(program.code):
        for op in code:
            if op[0] in MULTICASTS:
                key = program.agents[agent].role, program.barriers[operand(op, "barrier")].name
                found[key].add(operand(op, "cta_mask"))
    for (role, group), some in found.items():
        if some - {0, everyone}:
            was = some - {0, everyone}
            past = NOWHERE if len(was) == 1 else NOWHERE._replace(about="one that differs in each CTA")
            yield Repair(RepairKind.MASK, role, group, everyone, min(was), past=past)
            for site in (s for s in sites_of(program, role) if s.op in MULTICASTS and s.about == group):
                for value in (v for w in range(2, program.ctas) if not program.ctas % w for v in (-w, -w - ROWS)):
                    yield Repair(RepairKind.MASK, role, group, value, min(was), site, past)
        if 0 in some and program.ctas > 1:
            for site in (s for s in sites_of(program, role) if s.op == Op.TMA_LOAD and s.about == group):
                yield Repair(RepairKind.MASK, role, group, everyone, 0, site)


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
            yield Repair(RepairKind.REGISTERS, role, "", now, was)


def threads(program: Program) -> Iterator[Repair]:
    """As many threads as the agents have that ever arrive at named barriers, for all those with which it is the same.

    Where those that arrive are twice the number asked for, or more, several groups of warps meet at one number: then
    each has a number of its own.
    """
    wrong: dict[tuple[int, int], list[int]] = {}
    for name in dict.fromkeys(number for _, number in program.named_barriers if number < NAMED_BARRIERS):
        here = [[op for op in code if program.named_barrier(op) == name] for code in program.code]
        come = sum(operand(ops[0], "lanes") for ops in here if ops) // program.ctas
        asked = {operand(op, "threads") for ops in here for op in ops}
        if not asked or asked == {come}:
            continue
        if len(asked) == 1 and min(asked) > WARP and come >= 2 * min(asked) and not come % min(asked):
            yield Repair(RepairKind.NUMBER, "", str(name), _free(program), come // min(asked))
            yield from (Repair(RepairKind.NUMBER, "", str(name), _free(program), alike) for alike in (-1, 0))
        meetings = {n: [a for a, ops in enumerate(here) if n in {operand(op, "threads") for op in ops}] for n in asked}
        met = {n: sum(operand(here[a][0], "lanes") for a in those) for n, those in meetings.items()}
        apart = len(asked) > 1 and all(lanes == n * program.ctas for n, lanes in met.items())
        for count in sorted(asked) if apart else ():  # have nothing to do with each other
            role = ",".join(dict.fromkeys(program.agents[a].role for a in meetings[count]))
            yield Repair(RepairKind.NUMBER, role, str(name), _free(program), -count)
        if asked:
            wrong.setdefault((come, min(asked - {come})), []).append(name)
    for (come, was), names in wrong.items():
        yield Repair(RepairKind.THREADS, "", ",".join(map(str, names)), come, was)


def warpgroups(program: Program, role: str) -> list[int]:
    """The numbers of the warpgroups of which a role, or several, are all warps; [] if it is of a part of one."""
    warps = {program.agents[agent].warp for agent in members(program, role)}
    groups = sorted({warp // 4 for warp in warps})
    return groups if len(warps) == 4 * len(groups) else []


def _free(program: Program) -> int:
    """The first number from which on no named barrier is in use."""
    used = [number for _, number in program.named_barriers if number < NAMED_BARRIERS]
    return min(max(used, default=0) + 1, NAMED_BARRIERS - 1)


def lanes(program: Program) -> Iterator[tuple[Repair, bool]]:
    """One lane for an arrive of a whole warp, and all for that of an elected one; and whether that is what is likely.

    All lanes are where each has copies of its own to signal, by ``cp.async``; for writes ``__syncwarp`` does. So they
    are where those of others arrive on the same group.
    """
    seen: set[Repair] = set()
    given: defaultdict[str, set[int]] = defaultdict(set)
    for code in program.code:
        for op in (op for op in code if op[0] == Op.ARRIVE):
            given[program.barriers[operand(op, "barrier")].name].add(operand(op, "count"))
    for agent, code in enumerate(program.code):
        role, warp_wide = program.agents[agent].role, program.agents[agent].lanes.bit_count() == WARP
        if not warp_wide:
            continue
        own = False  # since the wait before
        for pc, op in enumerate(code):
            copies = op[0] in ENGINE_ACCESSES and operand(op, "engine") == Engine.CP_ASYNC
            own = op[0] not in PARITY_WAITS and (own or copies)
            if op[0] != Op.ARRIVE:
                continue
            site = site_of(program, agent, pc)
            wide = operand(op, "count") % WARP == 0
            to, was = (1, WARP) if wide else (WARP, 1)
            found = Repair(RepairKind.LANES, role, site.about, to, was, site)
            if found not in seen and (wide or operand(op, "count") == 1):
                seen.add(found)
                threads = not wide and count_of(program, site.about) == WARP * arrivals_of(program, site.about)
                yield found, wide or own or threads or to in given[site.about]
    for role in roles_of(program):  # of several groups together
        every = dict.fromkeys(each.group for each in seen if (each.role, each.value) == (role, 1))
        if len(every) > 1:
            yield Repair(RepairKind.LANES, role, ",".join(sorted(every)), 1, WARP), True


def ends(program: Program) -> Iterator[Repair]:
    """Arrives that should come when the transfers of their agent have ended; cp.async arrives that are not counted."""
    for role in roles_of(program):
        mine = [n for n, agent in enumerate(program.agents) if agent.role == role]
        ops = {op for agent in mine for op in program.code[agent]}
        used = {operand(op, "engine") for op in ops if op[0] in ENGINE_ACCESSES}
        sites: dict[SourceInstruction, None] = {}
        for agent in mine:
            for pc, op in enumerate(program.code[agent]):
                if gives_back(op) and (op[0] == Op.ARRIVE or op[0] == Op.CP_ASYNC_ARRIVE):
                    sites[site_of(program, agent, pc)] = None
        for site in sites:
            if site.op == Op.CP_ASYNC_ARRIVE:
                yield Repair(RepairKind.NOINC, role, site.about, at=site)
                continue
            for engine in sorted(used & {Engine.CP_ASYNC, Engine.TCGEN05}):
                yield Repair(RepairKind.ON_END, role, site.about, engine, at=site)


def pairs(program: Program, wanted: Callable[[Operation], bool]) -> list[tuple[str, str]]:
    """Every role and group of barriers of which the role has such an operation."""
    found: dict[tuple[str, str], None] = {}
    for agent, code in enumerate(program.code):
        for op in code:
            if wanted(op):
                found[program.agents[agent].role, program.barriers[operand(op, "barrier")].name] = None
    return list(found)


def inits(program: Program) -> Iterator[Repair]:
    """Barriers that no agent initialises, of a group of which others are; inits that several lanes or roles make."""
    yield Repair(RepairKind.INIT, "", "")
    for role in roles_of(program):
        mine = [n for n, agent in enumerate(program.agents) if agent.role == role]
        for site in {site: None for agent in mine for site in program.instructions[agent] if site.op == Op.INIT}:
            yield Repair(RepairKind.ONCE, role, site.about, at=site)
    yield from (Repair(RepairKind.OMIT, role, "") for role in reversed(roles_of(program)))
