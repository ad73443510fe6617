"""Why a deadlock is there, where the program shows it: a phase that was missed, and a count that is never reached."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from pipesim.explain.blocked_agents import contributes
from pipesim.explain.lap_counters import Aliasing
from pipesim.explain.ledger import Means, SignalLedger, ledger
from pipesim.model.finding import BlockedAgent, Deadlock, OneSided
from pipesim.model.groups import ARRIVALS, ASKS, CLUSTER, IN_FLIGHT, MEETINGS, ON_NAMED_BARRIER, PARITY_WAITS, SIGNALS
from pipesim.model.machine import State
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program

_MOST_NAMED = 2  #: barriers that are named


def own_barriers(program: Program) -> str:
    """The correction of pipelines that overlap; "" if none do."""
    return f"give each pipeline its own barriers: {'; '.join(program.overlaps)}" if program.overlaps else ""


def correction_of(program: Program, found: Deadlock, asked: Program) -> str:
    """What fixes a deadlock whatever the counts and parities are; "" if nothing is known. ``asked``: at other sizes."""
    if program.overlaps:
        return own_barriers(program)
    if found.kind == "lapped_waiter":
        return _count_or_leave_out(program, found)
    if found.cut:
        return ""  # what brings it may follow a wait, where nothing was read
    unserved = next((each for each in found.blocked if is_unserved(program, each, asked)), None)
    if unserved is None:
        return ""
    barrier, agent = unserved.barrier, unserved.agent
    words = (program.barrier_name(n) for n in range(len(program.barriers)) if program.is_word(n))
    if barrier in words:
        return (
            f"nothing gives {barrier} the value that {agent} waits for: add the store or the atomic, or omit the wait"
        )
    lacks = f"no role arrives on {barrier}" if unserved.arrivals_missing else f"no copy lands on {barrier}"
    do = "add the arrive" if unserved.arrivals_missing else "add the copy"
    others = _unawaited_barriers(program) if unserved.arrivals_missing else []
    if others:
        named = " and ".join(others[:_MOST_NAMED]) + (" and others" if len(others) > _MOST_NAMED else "")
        pipeline = barrier.rpartition(".")[0]  # whose two barriers are meant to be two
        part = pipeline and all(each.startswith(f"{pipeline}.") for each in others)
        do = f"a role lacks its part of {pipeline}" if part else "use one barrier for both"
        return f"{lacks}, and no role waits for {named}, on which arrivals are made: {do}"
    return f"{lacks}: {do} to the role that {agent} waits for, or omit this wait"


def _count_or_leave_out(program: Program, found: Deadlock) -> str:
    """What corrects waits of agents for which no other one waits: leave them out, or arrive where that one waits."""
    lapped = next(each for each in found.blocked if each.lapped_by or each.missed >= 0)
    names = {program.agent_name(a): a for a in range(len(program.agents))}
    group, me = lapped.barrier.rpartition("[")[0], program.agents[names[lapped.agent]]
    waiting = [
        a
        for a, code in enumerate(program.code)
        if program.agents[a].cta == me.cta and not _is_counted(program, a) and group in _awaited(program, code)
    ]
    leave = f"{me.role}: warps that neither use a stage nor arrive for it do not wait for {group}"
    theirs = dict.fromkeys(g for by in lapped.lapped_by for g in _awaited(program, program.code[names[by]]))
    counts = {g: count for g in theirs if g != group and (count := _count_of(program, g)) > 0}
    if len(counts) != 1:
        return leave
    ((other, count),) = counts.items()
    counted = f"initialised with a count of {count + len(waiting):,} instead of {count:,}"
    return f"{leave}; or each of them arrives on {other} as well, {counted}"


def _awaited(program: Program, code: Sequence[Operation]) -> list[str]:
    return [program.barriers[operand(op, "barrier")].name for op in code if op[0] in ASKS]


def _count_of(program: Program, group: str) -> int:
    """The count of the barriers of a group, 0 if they have several."""
    inits = (op for op in program.operations if op[0] == Op.INIT)
    found = {operand(op, "count") for op in inits if program.barriers[operand(op, "barrier")].name == group}
    return found.pop() if len(found) == 1 else 0


def is_unserved(program: Program, blocked: BlockedAgent, asked: Program) -> bool:
    """True of an agent that waits for an mbarrier to which no operation of the program brings what is missing.

    Nor does one of the program that was ``asked`` about, whose loops may have iterations that the other has not.
    """
    missing = {"arrival": blocked.arrivals_missing > 0, "bytes": blocked.bytes_missing > blocked.bytes_in_flight}
    barriers = {program.barrier_name(n) for n in range(len(program.barriers))}
    if blocked.barrier not in barriers or blocked.suppliers or not any(missing.values()):
        return False
    at = [n for n in range(len(asked.barriers)) if asked.barrier_name(n) == blocked.barrier]
    brings = [contributes(asked, n, part) for n in at for part, lacking in missing.items() if lacking]
    return not any(each(op) for each in brings for code in asked.code for op in code)


def _unawaited_barriers(program: Program) -> list[str]:
    """Barriers on which agents arrive, and for which none waits or asks."""
    served: dict[int, None] = {}
    awaited: set[int] = set()
    for op in program.operations:
        if op[0] in ARRIVALS or op[0] == Op.CP_ASYNC_ARRIVE:
            served[operand(op, "barrier")] = None
        elif op[0] in ASKS:
            awaited.add(operand(op, "barrier"))
        else:
            served |= dict.fromkeys(program.commit_barriers(op))
    return [program.barrier_name(n) for n in served if n not in awaited]


_MOST = 2  #: that are reported


def one_sided(program: Program, state: State, found: Deadlock) -> tuple[OneSided, ...]:
    """Of each barrier that agents wait for and to which no agent will come any more: roles whose agents come unequally
    often.
    """
    if found.cut:
        return ()  # what the agents do after their waits was not read
    agents = {program.agent_name(agent): agent for agent in range(len(program.agents))}
    told: dict[OneSided, None] = {}
    for blocked in found.blocked:
        never = blocked.given >= 0 or not any(supplier.next_line for supplier in blocked.suppliers)
        if blocked.arrivals_missing and never and not blocked.lapped_by:
            comes = _comes(program, program.code[agents[blocked.agent]][state.pcs[agents[blocked.agent]]])
            told |= dict.fromkeys(_uneven(program, blocked, comes)) if comes is not None else {}
    return tuple(told)[:_MOST]


def _comes(program: Program, wait: Operation) -> Callable[[Operation], bool] | None:
    """A test for what an agent does where others wait with this operation: at any barrier of the group."""
    if wait[0] in ON_NAMED_BARRIER:
        number = program.named_barrier(wait)
        return lambda op: program.named_barrier(op) == number
    if wait[0] in CLUSTER:
        return lambda op: op[0] == Op.CLUSTER_ARRIVE
    if wait[0] != Op.WAIT:
        return None
    group = program.barriers[operand(wait, "barrier")].name
    tests = [contributes(program, n, "arrival") for n, each in enumerate(program.barriers) if each.name == group]
    return lambda op: any(test(op) for test in tests)


def _uneven(program: Program, blocked: BlockedAgent, comes: Callable[[Operation], bool]) -> list[OneSided]:
    """The roles of which some agents come more often than others, each once."""
    found: list[OneSided] = []
    for role in dict.fromkeys(agent.role for agent in program.agents):
        tallies: defaultdict[int, list[str]] = defaultdict(list)
        line = ""
        for agent, each in enumerate(program.agents):
            if each.role == role:
                places = [pc for pc, op in enumerate(program.code[agent]) if comes(op)]
                line = line or (program.line(agent, places[-1]) if places else "")
                tallies[len(places)].append(program.agent_name(agent))
        if len(tallies) > 1:
            barrier = blocked.barrier.rpartition("[")[0] or blocked.barrier
            ordered = sorted(tallies.items(), reverse=True)
            found.append(OneSided(barrier, tuple((times, tuple(names)) for times, names in ordered), line))
    return found


def with_causes(
    program: Program, state: State, found: Deadlock, laps: Sequence[Aliasing], asked: Program | None = None
) -> Deadlock:
    """The same deadlock in ``state``, with the causes that are known; ``laps`` are the disagreements of its run.

    ``asked``: the program that was asked about, if this is one of smaller sizes.
    """
    book = ledger(program)
    agents = {program.agent_name(a): a for a in range(len(program.agents))}
    blocked = []
    for each in found.blocked:
        agent = agents[each.agent]
        blocked.append(_with_cause(book, state, agent, each, _missed_phase(program, state, agent, laps)))
    found = replace(found, blocked=tuple(blocked))
    correction = correction_of(program, found, asked or program)
    return replace(found, correction=correction, one_sided=one_sided(program, state, found))


def _with_cause(
    book: SignalLedger, state: State, agent: int, each: BlockedAgent, lapped: Aliasing | None
) -> BlockedAgent:
    """What one agent waits for, with its cause: it was lapped, or the count is never reached."""
    program = book.program
    if lapped is not None:
        arrives = contributes(program, lapped.barrier, "arrival")
        others = [n for n, code in enumerate(program.code) if n != agent and any(map(arrives, code))]
        names = tuple(program.agent_name(other) for other in others)
        group, missed = program.barriers[lapped.barrier].name, (lapped.barrier, lapped.parity)
        takes = [_waits_for(program, code, group) for code in program.code]
        past = (_waits_for(program, code[:pc], group) for code, pc in zip(program.code, state.pcs, strict=True))
        taking = (n for n, done in enumerate(past) if missed in done and takes[n] != takes[agent])
        rivals, counted = tuple(map(program.agent_name, taking)), _is_counted(program, agent)
        return replace(each, missed=lapped.meant, lapped_by=names, counted=counted, rivals=rivals)
    given = _arrivals_given(book, state, agent, each)
    return replace(each, given=given, count_line=_count_line(program, state, agent) if given >= 0 else "")


def _waits_for(program: Program, code: Sequence[Operation], group: str) -> list[tuple[int, int]]:
    """The barriers of a group that are waited for, with their parities."""
    waits = ((operand(op, "barrier"), operand(op, "parity")) for op in code if op[0] in PARITY_WAITS)
    return [wait for wait in waits if program.barriers[wait[0]].name == group]


def _is_counted(program: Program, agent: int) -> bool:
    """True if the agent does anything for which another one can wait, from its first wait on; not where agents meet
    after its last wait. Of one that was not read to its end that is not known before its second wait.
    """
    code = program.code[agent]
    asks = [pc for pc, op in enumerate(code) if op[0] in ASKS]
    begin, end = (asks[0], asks[-1]) if asks else (0, 0)
    signals = any(op[0] in SIGNALS | IN_FLIGHT for op in code[begin:])
    return signals or any(op[0] in MEETINGS for op in code[begin:end]) or (agent in program.cut and begin == end)


def _count_line(program: Program, state: State, agent: int) -> str:
    """Where the count of what an agent waits for is stated: the init, or the agent's own bar_sync."""
    wait = program.code[agent][state.pcs[agent]]
    if wait[0] in ON_NAMED_BARRIER:
        return program.line(agent, state.pcs[agent])
    for other, code in enumerate(program.code):
        for pc, op in enumerate(code):
            if op[0] == Op.INIT and operand(op, "barrier") == operand(wait, "barrier"):
                return program.line(other, pc)
    return ""


def _missed_phase(program: Program, state: State, agent: int, laps: Sequence[Aliasing]) -> Aliasing | None:
    """How a blocked agent missed the phase that it asks for, None if its wait means what its parity says.

    An agent that asks again with the same parity may mean the phase after next: nothing is reported about it.
    """
    pc = state.pcs[agent]
    found = [each for each in laps if (each.agent, each.pc) == (agent, pc) and not each.passed]
    if not found or (found[-1].meant < 0 and _is_counted(program, agent)):
        return None  # one that takes some of the phases only may begin with a later one
    before = [
        op for op in program.code[agent][:pc] if op[0] in PARITY_WAITS and operand(op, "barrier") == found[-1].barrier
    ]
    return None if before and operand(before[-1], "parity") == found[-1].parity else found[-1]


def _arrivals_given(book: SignalLedger, state: State, agent: int, blocked: BlockedAgent) -> int:
    """The arrivals that the program gives each phase, -1 where they reach the count or no agent can say.

    No agent can where agents branch or drop out, or do not all arrive equally often, and often for what is waited for.
    """
    operation = book.program.code[agent][state.pcs[agent]]
    if operation[0] in ON_NAMED_BARRIER:
        return _threads(book.program, operation, blocked)
    if operation[0] not in PARITY_WAITS or not blocked.arrivals_missing:
        return -1
    barrier = operand(operation, "barrier")
    ways = {way: tally for way, tally in book.given[barrier].items() if tally.arrivals.high}
    ways = {way: tally for way, tally in ways.items() if way.means is not Means.CP_ASYNC}
    rounds = {tally.times for tally in ways.values()}
    uneven = any(
        way.agent in book.branching or way.means is Means.ARRIVE_DROP or tally.arrivals.low != tally.arrivals.high
        for way, tally in ways.items()
    )
    if len(rounds) != 1 or uneven:
        return -1
    asked = book.asked[barrier][agent]
    times = rounds.pop()
    for phases in (asked.times, asked.times - asked.first_parity):  # the last phase may have no agent who waits for it
        if phases and times % phases == 0:
            given = sum(tally.arrivals.high for tally in ways.values()) * (times // phases)
            return given if given < blocked.count else -1
    return -1


def _threads(program: Program, wait: Operation, blocked: BlockedAgent) -> int:
    """The threads that ever arrive at the named barrier, -1 if they are enough."""
    number = operand(wait, "named_barrier")
    come = sum(
        operand(mine[0], "lanes")
        for code in program.code
        if (mine := [op for op in code if op[0] in ON_NAMED_BARRIER and operand(op, "named_barrier") == number])
    )
    return come if come < blocked.count else -1
