"""A program that was read from a kernel's PTX beside a recorded trace of that kernel: one naming for both.

PTX has no names. The trace names its warps (role, index, warp) and its mbarriers (groups with stages and counts), which
lie in shared memory in the order of its table. So a warp of the kernel has the trace's name for it, and the mbarriers
are named in the order of their addresses; the counts of their inits have to be those of the trace. What a kernel does
at no site of its trace, and what warps without records do, happens unseen. Work is not an operation of a program from
PTX: the events at sites of work are left out. A try that its wait follows immediately is that wait, in PTX; where the
trace records tries, it is both again.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pipesim.conform.steady import without_work
from pipesim.errors import EvidenceError
from pipesim.model.edits import Listing, delete_operations, listing, with_listings
from pipesim.model.groups import ON_BARRIER, PARITY_TRIES, PARITY_WAITS
from pipesim.model.ops import Op, Operation, operand, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import Agent, Barrier
from pipesim.trace.arrays import np
from pipesim.trace.schema import (
    READ_FROM,
    AgentInfo,
    CtaInfo,
    EventKind,
    SiteKey,
    Trace,
    TraceMeta,
)
from pipesim.trace.sites import barrier_groups, with_roles_of_first_cta

Place = tuple[int, int]  #: rank of a CTA, byte offset in its shared memory


@dataclass(frozen=True)
class RecordedKernel:
    """A kernel's program with the names of its trace, and the trace without what no program from PTX says.

    ``sites``: those at which the trace records.
    """

    program: Program
    trace: Trace
    sites: frozenset[SiteKey]


def recorded_kernel(
    program: Program, places: Sequence[Place], trace: Trace, by_line: Sequence[tuple[str, int]] = ()
) -> RecordedKernel:
    """The two in one naming; ``places``: CTA and offset of each mbarrier of the program, in its order.

    ``by_line``: the mbarriers' names by the lines of their inits, which a trace has where the source was not read.
    EvidenceError if the warps or the mbarriers of the trace are not the kernel's.
    """
    program = replace(program, grid=max(1, trace.meta.grid // program.agent_ctas))
    if trace.meta.extra.get(READ_FROM) == "ptx":
        program = _as_recorded(with_roles_of_first_cta(program), by_line, trace.meta)
        _require_same(program, trace.meta)
        return RecordedKernel(_without_idle_inits(program), trace, frozenset(site.key for site in trace.meta.sites))
    named = _with_tries(_with_barriers(_with_agents(program, trace.meta), places, trace.meta), trace)
    agents = tuple(AgentInfo(a.role, a.index, a.warp) for a in named.agents if a.cta == 0)
    more = len(agents) - len(trace.meta.agents)
    left = without_work(trace)
    ctas = tuple(_with_silent(each, more) for each in trace.meta.ctas)
    meta = replace(left.meta, agents=agents, ctas=ctas)
    return RecordedKernel(named, Trace(meta, left.events), frozenset(site.key for site in meta.sites))


def _of_another(fact: str, cause: str = "it was recorded of another kernel, or in another launch") -> EvidenceError:
    return EvidenceError(fact, cause=cause, correction="name the PTX and the launch file of the recording")


def _as_recorded(program: Program, by_line: Sequence[tuple[str, int]], meta: TraceMeta) -> Program:
    """The program with the trace's names where these are others for the same warps and mbarriers."""
    if by_line and barrier_groups(program) != meta.barriers:
        named = (Barrier(b.cta, *name) for b, name in zip(program.barriers, by_line, strict=True))
        program = replace(program, barriers=tuple(named))
    mine = [agent for agent in program.agents if agent.cta == 0]
    if [agent.warp for agent in mine] != [info.warp for info in meta.agents]:
        return program
    called = {(agent.warp, agent.lanes): info for agent, info in zip(mine, meta.agents, strict=True)}
    if len(set(zip((agent.role for agent in mine), (info.role for info in meta.agents), strict=True))) != len(
        {agent.role for agent in mine}
    ):
        return program
    agents = (
        replace(a, role=called[a.warp, a.lanes].role, index=called[a.warp, a.lanes].index) for a in program.agents
    )
    return replace(program, agents=tuple(agents))


def _without_idle_inits(program: Program) -> Program:
    """Without the inits after the first of mbarriers that nothing else names: on hardware these are stores that no
    operation sees. PTX does not allow them; Triton leaves them where it has removed every use.
    """
    named = {operand(op, "barrier") for code in program.code for op in code if op[0] in ON_BARRIER and op[0] != Op.INIT}
    in_use = {replace(program.barriers[n], cta=0) for n in named if n >= 0}  # in every CTA: a copy may signal several
    seen: set[int] = set()
    listings: dict[int, Listing] = {}
    for agent, code in enumerate(program.code):
        again: set[int] = set()
        for place, barrier in [(place, operand(op, "barrier")) for place, op in enumerate(code) if op[0] == Op.INIT]:
            if barrier in seen and replace(program.barriers[barrier], cta=0) not in in_use:
                again.add(place)
            seen.add(barrier)
        if again:
            listings[agent] = delete_operations(listing(program, agent), again)
    return with_listings(program, listings) if listings else program


def _require_same(program: Program, meta: TraceMeta) -> None:
    """EvidenceError unless warps and mbarriers of a trace with a program's own names are this program's."""
    agents = tuple(AgentInfo(a.role, a.index, a.warp) for a in program.agents if a.cta == 0)
    if agents != meta.agents or barrier_groups(program) != meta.barriers:
        raise _of_another(
            f"the trace of {meta.protocol} has other warps or mbarriers than {program.name}",
            "it was recorded of another kernel, or of another launch",
        )


def _with_silent(header: CtaInfo, more: int) -> CtaInfo:
    """A CTA's header with this many more warps, which record nothing."""

    def longer(numbers: tuple[int, ...]) -> tuple[int, ...]:
        return (*numbers, *(0,) * more) if numbers else ()

    return replace(header, written=longer(header.written), dropped=longer(header.dropped), passes=longer(header.passes))


def _with_agents(program: Program, meta: TraceMeta) -> Program:
    """The program with the trace's agents first in each CTA, in its order and with its names."""
    order: list[int] = []
    agents: list[Agent] = []
    taken = {info.role for info in meta.agents}
    for cta in range(program.ctas):
        mine = [number for number, agent in enumerate(program.agents) if agent.cta == cta]
        for info in meta.agents:
            of_warp = [n for n in mine if program.agents[n].warp == info.warp]
            if not of_warp:
                raise _of_another(
                    f"the trace of {meta.protocol} has a warp {info.warp} ({info.name}) that {program.name} lacks"
                )
            chosen = max(of_warp, key=lambda n: len(program.code[n]))
            mine.remove(chosen)
            order.append(chosen)
            agents.append(replace(program.agents[chosen], role=info.role, index=info.index))
        seen: Counter[str] = Counter()
        for number in mine:
            agent = program.agents[number]
            role = f"unrecorded {agent.role}" if agent.role in taken else agent.role
            order.append(number)
            agents.append(replace(agent, role=role, index=seen[role]))
            seen[role] += 1
    return replace(
        program,
        agents=tuple(agents),
        code=tuple(program.code[n] for n in order),
        lines=tuple(program.lines[n] for n in order),
    )


def _with_barriers(program: Program, places: Sequence[Place], meta: TraceMeta) -> Program:
    """The program with the trace's names of mbarriers, in its order."""
    names = [(group.name, stage) for group in meta.barriers for stage in range(group.stages)]
    offsets = sorted({offset for _, offset in places})
    if len(offsets) != len(names):
        raise _of_another(
            f"the trace of {meta.protocol} has {len(names)} mbarriers and {program.name} has {len(offsets)}"
        )
    named = dict(zip(offsets, names, strict=True))
    order = sorted(range(len(places)), key=lambda n: (places[n][0], offsets.index(places[n][1])))
    number_of = {old: new for new, old in enumerate(order)}
    found = replace(
        program,
        barriers=tuple(Barrier(places[n][0], *named[places[n][1]]) for n in order),
        code=tuple(tuple(_renumber_barrier(op, number_of) for op in code) for code in program.code),
    )
    groups = barrier_groups(found)
    if groups != meta.barriers:
        theirs, ours = next((a, b) for a, b in zip(meta.barriers, groups, strict=True) if a != b)
        raise _of_another(
            f"{theirs.name} of the trace completes with {theirs.count} arrivals; the mbarriers at its place in "
            f"{program.name} with {ours.count}",
            cause="the mbarriers of the trace are taken to lie in shared memory in its order",
        )
    return found


def _renumber_barrier(op: Operation, number_of: dict[int, int]) -> Operation:
    if op[0] not in ON_BARRIER:
        return op
    old = operand(op, "barrier")
    return op if old < 0 else with_operand(op, "barrier", number_of[old])


def _with_tries(program: Program, trace: Trace) -> Program:
    """Each wait as a try and a wait that depends on it, where the trace has a try instead."""
    meta, events = trace.meta, trace.events
    sites = {n: site for n, site in enumerate(meta.sites) if site.kind in (EventKind.TRY, EventKind.WAIT_ENTER)}
    tries = [n for n, site in sites.items() if site.kind is EventKind.TRY]
    if not np.isin(events.site, tries).any():
        return program
    if meta.window:
        raise EvidenceError(
            f"the trace of {meta.protocol} has tries, of which a window keeps a part",
            cause="a try directly before its wait is one operation with it in the program of a kernel's PTX",
            correction="record it without a window",
        )
    wait_rows = np.flatnonzero(np.isin(events.site, list(sites)))
    code, lines = list(program.code), list(program.lines)
    for number, agent in enumerate(program.agents):
        index = next((n for n, a in enumerate(meta.agents) if (a.role, a.index) == (agent.role, agent.index)), -1)
        agent_rows = [int(row) for row in wait_rows if events.agent[row] == index]
        first = next((int(events.cta[row]) for row in agent_rows if events.cta[row] % program.ctas == agent.cta), -1)
        waits: dict[str, deque[tuple[EventKind, int]]] = defaultdict(deque)
        for row in agent_rows:
            if events.cta[row] == first:
                site = sites[int(events.site[row])]
                waits[site.barrier].append((site.kind, int(events.value[row])))
        code[number], lines[number] = _code_with_tries(program, number, waits)
    return replace(program, code=tuple(code), lines=tuple(lines), registers=program.registers + 1)


def _code_with_tries(
    program: Program, agent: int, waits: Mapping[str, deque[tuple[EventKind, int]]]
) -> tuple[tuple[Operation, ...], tuple[int, ...]]:
    """An agent's code and lines; ``waits``: by group, which of its waits were entered or tried, and the answers."""
    made: list[Operation] = []
    where: list[int] = []
    answers: dict[int, int] = {}
    for op, line in zip(program.code[agent], program.lines[agent], strict=True):
        group = (
            waits.get(program.barriers[operand(op, "barrier")].name) if op[0] in PARITY_WAITS | PARITY_TRIES else None
        )
        asks = op[0] != Op.WAIT_UNLESS or not answers.get(operand(op, "register"), 0)
        kind, value = group.popleft() if group and asks else (EventKind.WAIT_ENTER, 0)
        if op[0] in PARITY_TRIES:
            answers[operand(op, "register")] = value
        if op[0] == Op.WAIT and kind is EventKind.TRY:
            barrier, parity, semantics = op[1:]
            made.append((int(Op.TRY_WAIT), barrier, parity, program.registers, semantics))
            made.append((int(Op.WAIT_UNLESS), barrier, parity, program.registers, semantics))
            where += [line, line]
            if group and not value:
                group.popleft()
        else:
            made.append(op)
            where.append(line)
    return tuple(made), tuple(where)
