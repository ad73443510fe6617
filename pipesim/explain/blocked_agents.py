"""Who waits for what, what is missing, and who could still send it: a machine that is stuck, explained as data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pipesim.model import barrier as mbarrier
from pipesim.model.barrier import BarrierState
from pipesim.model.finding import BlockedAgent, Deadlock, Supplier
from pipesim.model.groups import ARRIVALS, CLUSTER, EXPECTS, ON_NAMED_BARRIER, PARITY_WAITS, TAKES_REGISTERS
from pipesim.model.machine import State, finished, own_channel
from pipesim.model.moves import held_up
from pipesim.model.ops import Engine, Op, Operation, operand, operands
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import WARP
from pipesim.model.tables import meeting_name

_PARTS: dict[str, Callable[[BarrierState], bool]] = {
    "arrival": lambda word: word.pending > 0,
    "bytes": lambda word: word.tx > 0,
    "expectation": lambda word: word.tx < 0,  # more bytes landed than were expected
}

Wanted = Callable[[Operation], bool]
Places = dict[int, list[int]]  #: by agent: the positions of its operations that supply something, at least one
Arrivals = dict[int, Places]  #: by mbarrier

REGISTERS = "registers of its CTA"  #: what a request for more waits for, as a report names it


class Senders(dict[int, tuple[tuple[Supplier, ...], list[int]]]):
    """By mbarrier: who could still send what its phase lacks, and which of these agents are stuck before they do."""

    def __init__(self, program: Program) -> None:
        """``arrivals`` are looked for once: hundreds of CTAs may wait for a barrier each."""
        self.arrivals: Arrivals = {}
        for agent, code in enumerate(program.code):
            for pc, op in enumerate(code):
                for barrier in [operand(op, "barrier")] if _arrives(op) else program.commit_barriers(op):
                    self.arrivals.setdefault(barrier, {}).setdefault(agent, []).append(pc)


def explain(program: Program, state: State) -> Deadlock | None:
    """The deadlock that ``state`` is in, or None if some agent can still move or something is still in flight."""
    agents = range(len(program.agents))
    waiting: dict[int, int] = {}
    for agent in agents:
        if not finished(program, state, agent):
            stopped = held_up(program, state, agent)
            if stopped is None:
                return None
            waiting[agent] = stopped.blocked
    if not waiting or state.flights:
        return None
    if _may_be_ended(program, waiting):
        return None
    edges: dict[int, list[int]] = {}
    blocked = []
    senders = Senders(program)
    for agent, channel in waiting.items():
        found, suppliers = _describe_blocked(program, state, agent, channel, waiting, senders)
        edges[agent] = suppliers
        blocked.append(found)
    done = tuple(program.agent_name(a) for a in agents if a not in waiting)
    ring = tuple(program.agent_name(a) for a in cycle_of(edges))
    return Deadlock(tuple(blocked), done, ring, cut=bool(program.cut))


def _may_be_ended(program: Program, waiting: Mapping[int, int]) -> bool:
    """Whether an agent that was read only in part, and has done all of that, may do what others wait for, by channel.

    If it is silent, none that waits for the phase of an mbarrier notices it.
    """
    read = {agent for agent in program.cut if agent not in waiting}
    return bool(read) and (not read <= set(program.silent) or max(waiting.values()) >= len(program.barriers))


def blocked_agents(program: Program, state: State) -> tuple[BlockedAgent, ...]:
    """Every agent that cannot move in ``state``, whether or not others can, and what it waits for."""
    found: dict[int, int] = {}
    for agent in range(len(program.agents)):
        stopped = held_up(program, state, agent)
        if stopped is not None:
            found[agent] = stopped.blocked
    senders = Senders(program)
    return tuple(_describe_blocked(program, state, a, channel, found, senders)[0] for a, channel in found.items())


def in_flight(state: State, barrier: int) -> int:
    """Bytes under way that this barrier will count when they land."""
    return sum(flight.remaining for flight in state.flights if flight.barrier == barrier)


def channel_name(program: Program, channel: int, agent: int) -> str:
    """What ``agent``, blocked on this channel, waits for, in words."""
    if channel < len(program.barriers):
        return program.barrier_name(channel)
    channel -= len(program.barriers)
    if channel < len(program.named_barriers):
        return meeting_name(program.named_barriers[channel][1])
    if channel == len(program.named_barriers):
        return "the cluster barrier"
    owner = channel - len(program.named_barriers) - 1
    if owner >= len(program.agents):
        return REGISTERS
    return "its own transfers" if owner == agent else f"the wgmma groups of {program.agent_name(owner)}"


def _describe_blocked(
    program: Program, state: State, agent: int, channel: int, waiting: dict[int, int], senders: Senders
) -> tuple[BlockedAgent, list[int]]:
    """What this agent waits for, and the agents it waits for that are stuck before their next contribution."""
    if channel < len(program.barriers):
        if channel not in senders:
            senders[channel] = _senders(program, state, channel, waiting, senders.arrivals)
        return _blocked_on_mbarrier(program, state, agent, channel, senders[channel][0]), senders[channel][1]
    number = channel - len(program.barriers)
    if channel >= own_channel(program, len(program.agents)):
        return _blocked_on_registers(program, state, agent, channel, waiting)
    if number > len(program.named_barriers):
        return _blocked_on_groups(program, state, agent, channel, waiting)
    if number < len(program.named_barriers):
        arrived, count, _ = state.named[number]
    else:
        here = [held == state.cluster[1] for held in state.cluster_held]
        ended = sum(state.pcs[a] >= program.ends[a] and not come for a, come in enumerate(here))
        arrived, count = state.cluster[0], len(program.agents) - ended
    joins = _places(program, _joins(number, program))
    # every other agent that waits here has arrived, and arrives again only when this is over
    able = [a for a in joins if waiting.get(a) != channel]
    suppliers = tuple(_supplier(program, state, a, waiting, {"arrival": joins}) for a in able)
    found = _blocked(program, state, agent, channel, (count - arrived, count), suppliers)
    return found, [a for a in able if a in waiting and _next(state, a, joins[a]) >= 0]


def _blocked(
    program: Program, state: State, agent: int, channel: int, lacks: tuple[int, int], suppliers: tuple[Supplier, ...],
    phases: tuple[int, int] = (0, 0),
) -> BlockedAgent:  # fmt: skip
    """An agent that waits for something else than an mbarrier. ``lacks``: how many, of how many; ``phases``: the one
    that it wants, and the one that is now.
    """
    who, line = program.agent_name(agent), program.line(agent, state.pcs[agent])
    return BlockedAgent(who, channel_name(program, channel, agent), -1, *phases, *lacks, 0, line, suppliers)


def _blocked_on_registers(
    program: Program, state: State, agent: int, channel: int, waiting: dict[int, int]
) -> tuple[BlockedAgent, list[int]]:
    """It asks for more registers than are free; those of its CTA that have more than they need later may give some."""
    pools = program.register_pools
    assert pools is not None
    wanted = operand(program.code[agent][state.pcs[agent]], "registers")
    needed = WARP * len(pools.members(agent)) * (wanted - pools.of_group(pools.members(agent), state.pcs))

    def gives(op: Operation) -> bool:
        return op[0] == Op.SETMAXNREG and operand(op, "registers") < pools.launched

    given = _places(program, gives)
    able = [a for a in given if waiting.get(a) != channel and program.agents[a].cta == program.agents[agent].cta]
    suppliers = tuple(_supplier(program, state, a, waiting, {"registers": given}) for a in able)
    lacks = pools.missing_registers(agent, state.pcs, wanted), needed
    return _blocked(program, state, agent, channel, lacks, suppliers), [
        a for a in able if a in waiting and _next(state, a, given[a]) >= 0
    ]


def _blocked_on_groups(
    program: Program, state: State, agent: int, channel: int, waiting: dict[int, int]
) -> tuple[BlockedAgent, list[int]]:
    """Of its warp group this agent waits for one that has not closed as many groups; its groups are the phases."""
    member = channel - own_channel(program, 0)
    engine, groups = operands(program.code[agent][state.pcs[agent]], "engine", "groups")
    closed = [state.commits[a * len(Engine) + engine] for a in (agent, member)]

    def commits(op: Operation) -> bool:
        return op[0] == Op.COMMIT and operands(op, "engine", "barrier") == (engine, -1)

    missing = max(closed[0] - groups - closed[1], 0)
    closes = _places(program, commits)
    wanted = closed[0] - groups
    suppliers = (_supplier(program, state, member, waiting, {"arrival": closes}),) if missing else ()
    found = _blocked(program, state, agent, channel, (missing, wanted), suppliers, (wanted - 1, closed[1]))
    return found, [member] if member in waiting and _next(state, member, closes.get(member, [])) >= 0 else []


def _blocked_on_mbarrier(
    program: Program, state: State, agent: int, barrier: int, suppliers: tuple[Supplier, ...]
) -> BlockedAgent:
    pc = state.pcs[agent]
    operation = program.code[agent][pc]
    word = state.barriers[barrier]
    parity = operand(operation, "parity") if operation[0] in PARITY_WAITS else -1
    return BlockedAgent(
        agent=program.agent_name(agent),
        barrier=program.barrier_name(barrier),
        parity=parity,
        phase_wanted=mbarrier.phase_wanted(word, parity) if parity >= 0 else word.done,
        phase_now=word.done,
        arrivals_missing=word.pending,
        count=word.expected,
        bytes_missing=word.tx,
        line=program.line(agent, pc),
        suppliers=suppliers,
        bytes_in_flight=min(in_flight(state, barrier), max(word.tx, 0)),
    )


def _senders(
    program: Program, state: State, barrier: int, waiting: dict[int, int], arrivals: Arrivals
) -> tuple[tuple[Supplier, ...], list[int]]:
    """What a report says of all that wait for this barrier: hundreds of CTAs may wait for one."""
    word = state.barriers[barrier]
    lacks = word._replace(tx=0) if 0 < word.tx <= in_flight(state, barrier) else word  # no agent has to send that
    parts = [part for part, missing in _PARTS.items() if missing(lacks)]
    needs = {part: _places(program, contributes(program, barrier, part)) for part in parts if part != "arrival"}
    needs = {part: needs.get(part, arrivals.get(barrier, {})) for part in parts}
    able = sorted({a for places in needs.values() for a in places})
    suppliers = _led_past(program, state, barrier, waiting, needs, arrivals) or tuple(
        _supplier(program, state, a, waiting, needs) for a in able
    )
    ahead = [a for a in able if any(_next(state, a, places.get(a, [])) >= 0 for places in needs.values())]
    return suppliers, [a for a in ahead if a in waiting]


def _led_past(
    program: Program, state: State, barrier: int, waiting: dict[int, int], needs: dict[str, Places], arrivals: Arrivals
) -> tuple[Supplier, ...]:
    """Agents that arrive at other barriers of the group and never at this one, where only arrivals are missing and
    whoever arrives at this one has done so in this phase, and will not again.
    """
    if set(needs) != {"arrival"}:
        return ()
    here = needs["arrival"]
    done = state.barriers[barrier].done
    if not here or not all(pcs[-1] < state.pcs[a] and len(pcs) > done for a, pcs in here.items()):
        return ()
    group = program.barriers[barrier].name
    others = [b for b, one in enumerate(program.barriers) if one.name == group and b != barrier]
    found = []
    for agent, at in enumerate(state.pcs):
        before = {b: [pc for pc in arrivals.get(b, {}).get(agent, []) if pc < at] for b in others}
        last = max(others, key=lambda b: before[b][-1:], default=-1)
        if last >= 0 and before[last] and agent not in here:
            supplier = _supplier(program, state, agent, waiting, {"arrival": arrivals[last]})
            found.append(replace(supplier, next_line="", last_barrier=program.barrier_name(last)))
    return tuple(found)


def contributes(program: Program, barrier: int, part: str) -> Wanted:
    """A test for operations that supply this part of a phase of this barrier."""
    if part == "arrival":
        return lambda op: (_arrives(op) and operand(op, "barrier") == barrier) or barrier in program.commit_barriers(op)
    if part == "bytes":
        return lambda op: (
            (op[0] == Op.TMA_LOAD and barrier in (landed for landed, _ in program.landings(op)))
            or (op[0] == Op.COMPLETE_TX and operand(op, "barrier") == barrier)
        )
    return lambda op: (
        (op[0] in EXPECTS and operand(op, "barrier") == barrier and operand(op, "expect") > 0)
        or (op[0] == Op.EXPECT_TX and operand(op, "barrier") == barrier)
    )


def _arrives(op: Operation) -> bool:
    """Whether it brings a phase nearer to its end: without ``noinc`` a cp.async arrive adds what it then takes away."""
    return op[0] in ARRIVALS or (op[0] == Op.CP_ASYNC_ARRIVE and operand(op, "noinc") == 1)


def _joins(number: int, program: Program) -> Wanted:
    """A test for operations that arrive at this named barrier, or at the cluster barrier."""
    if number >= len(program.named_barriers):
        return lambda op: op[0] == Op.CLUSTER_ARRIVE
    return lambda op: op[0] in ON_NAMED_BARRIER and operand(op, "named_barrier") == number


def _places(program: Program, wanted: Wanted) -> Places:
    found = {a: [pc for pc, op in enumerate(code) if wanted(op)] for a, code in enumerate(program.code)}
    return {a: places for a, places in found.items() if places}


def _next(state: State, agent: int, places: Sequence[int]) -> int:
    """Position of the agent's next such operation, -1 if none follows. One it is blocked inside is already done."""
    start = state.pcs[agent] + (1 if state.holds[agent] else 0)
    return next((pc for pc in places if pc >= start), -1)


def _supplier(
    program: Program, state: State, agent: int, waiting: dict[int, int], needs: Mapping[str, Places]
) -> Supplier:
    code = program.code[agent]
    parts = [part for part, places in needs.items() if agent in places]
    supplied = sorted({pc for part in parts for pc in needs[part][agent]})
    following = _next(state, agent, supplied)
    last = max((pc for pc in supplied if pc < state.pcs[agent]), default=-1)
    loop, trip = outermost_trip(code, last)
    return Supplier(
        agent=program.agent_name(agent),
        supplies=" and ".join(parts),
        next_line=program.line(agent, following) if following >= 0 else "",
        last_line=program.line(agent, last) if last >= 0 else "",
        last_iteration=_iteration(program, agent, last) if last >= 0 else -1,
        waits_for=channel_name(program, waiting[agent], agent) if agent in waiting else "",
        last_trip=trip,
        last_loop=program.loops[loop] if loop >= 0 else "",
    )


def outermost_trip(code: tuple[Operation, ...], pc: int) -> tuple[int, int]:
    """The mark of the outermost loop that the operation at ``pc`` is in, and its iteration, from 0; (-1, -1) in no
    loop.
    """
    inside: dict[int, int] = {}  # mark → iteration, the outermost first
    for op in code[: pc + 1]:
        if op[0] == Op.LOOP_BEGIN:
            inside[operand(op, "loop")] = 0
        elif op[0] == Op.LOOP_NEXT and operand(op, "loop") in inside:
            inside[operand(op, "loop")] += 1
        elif op[0] == Op.LOOP_END:
            inside.pop(operand(op, "loop"), None)
    return next(iter(inside.items()), (-1, -1))


def _iteration(program: Program, agent: int, pc: int) -> int:
    """How many operations of this code on this group of barriers the agent ran before ``pc``."""
    code = program.code[agent]
    target = _target(program, code[pc])
    return sum(1 for other in code[:pc] if other[0] == code[pc][0] and _target(program, other) == target)


def _target(program: Program, op: Operation) -> object:
    """What an arriving operation arrives at: a group of mbarriers, a named barrier, or the cluster barrier."""
    if op[0] in ON_NAMED_BARRIER:
        return operand(op, "named_barrier")
    if op[0] in CLUSTER | TAKES_REGISTERS:
        return ""
    barrier = operand(op, "barrier")
    return program.barriers[barrier].name if barrier >= 0 else ""


def cycle_of(edges: dict[int, list[int]]) -> list[int]:
    """The first ring of agents in which each waits for the next, [] if there is none."""
    for start in edges:
        path: list[int] = []
        if _follow_waits(start, start, edges, path, set()):
            return path
    return []


def _follow_waits(agent: int, start: int, edges: dict[int, list[int]], path: list[int], seen: set[int]) -> bool:
    path.append(agent)
    seen.add(agent)
    for following in edges.get(agent, ()):
        if following == start or (following not in seen and _follow_waits(following, start, edges, path, seen)):
            return True
    path.pop()
    return False
