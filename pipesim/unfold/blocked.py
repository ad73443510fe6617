"""Who waits for what, what is missing, and who could still send it: a machine that is stuck, explained as data."""

from __future__ import annotations

from collections.abc import Callable

from pipesim.model import barrier as mbarrier
from pipesim.model.barrier import BarrierState
from pipesim.model.finding import Blocked, Deadlock, Supplier
from pipesim.model.machine import State, finished, step
from pipesim.model.ops import Op, Operation
from pipesim.model.program import Program

_ARRIVALS = frozenset({Op.ARRIVE, Op.ARRIVE_DROP, Op.ARRIVE_NO_COMPLETE, Op.CP_ASYNC_ARRIVE})
_SUPPLIES: dict[str, frozenset[int]] = {
    "arrival": frozenset(_ARRIVALS),
    "bytes": frozenset({Op.TMA_LOAD, Op.COMPLETE_TX}),
    "expectation": frozenset({Op.ARRIVE, Op.ARRIVE_DROP, Op.EXPECT_TX}),
}
_PARTS: dict[str, Callable[[BarrierState], bool]] = {
    "arrival": lambda word: word.pending > 0,
    "bytes": lambda word: word.tx > 0,
    "expectation": lambda word: word.tx < 0,  # more bytes landed than were expected
}


def explain(program: Program, state: State) -> Deadlock | None:
    """The deadlock that ``state`` is in, or None if some agent can still move or bytes are still in flight."""
    agents = range(len(program.agents))
    waiting = {a: step(program, state, a).blocked for a in agents if not finished(program, state, a)}
    if not waiting or state.flights or any(channel < 0 for channel in waiting.values()):
        return None
    edges: dict[int, list[int]] = {}
    blocked = []
    for agent, channel in waiting.items():
        found, suppliers = _blocked(program, state, agent, channel, waiting)
        edges[agent] = suppliers
        blocked.append(found)
    done = tuple(program.agent_name(a) for a in agents if a not in waiting)
    return Deadlock(tuple(blocked), done, tuple(program.agent_name(a) for a in _cycle(edges)))


def channel_name(program: Program, channel: int) -> str:
    """What an agent blocked on this channel waits for, in words."""
    if channel < len(program.barriers):
        return program.barrier_name(channel)
    channel -= len(program.barriers)
    if channel < len(program.named_barriers):
        return f"named barrier {program.named_barriers[channel][1]}"
    return "the cluster barrier" if channel == len(program.named_barriers) else "its own transfers"


def _blocked(
    program: Program, state: State, agent: int, channel: int, waiting: dict[int, int]
) -> tuple[Blocked, list[int]]:
    pc = state.pcs[agent]
    name = program.agent_name(agent)
    line = program.line(agent, pc)
    if channel >= len(program.barriers):
        number = channel - len(program.barriers)
        arrived, threads = state.named[number][:2] if number < len(program.named_barriers) else (state.cluster[0], len(program.agents))
        others = [a for a in range(len(program.agents)) if a != agent and _next(program, state, a, _joins(number, program)) >= 0]
        suppliers = tuple(_supplier(program, state, a, channel, waiting, _joins(number, program), "arrival") for a in others)
        return Blocked(name, channel_name(program, channel), -1, 0, 0, threads - arrived, threads, 0, line, suppliers), others
    word = state.barriers[channel]
    parity = _parity(program.code[agent][pc])
    needs = tuple(part for part, missing in _PARTS.items() if missing(word))
    touches = _touches(channel, frozenset().union(*(_SUPPLIES[part] for part in needs)))
    able = [a for a in range(len(program.agents)) if _any(program, a, touches)]
    suppliers = tuple(_supplier(program, state, a, channel, waiting, touches, " and ".join(needs)) for a in able)
    now = word.done
    found = Blocked(
        name, program.barrier_name(channel), parity, mbarrier.phase_wanted(word, parity) if parity >= 0 else now, now,
        word.pending, word.expected, word.tx, line, suppliers,
    )  # fmt: skip
    return found, [a for a in able if a in waiting and _next(program, state, a, touches) >= 0]


def _parity(operation: Operation) -> int:
    return operation[2] if operation[0] in (Op.WAIT, Op.WAIT_UNLESS) else -1


Wanted = Callable[[Operation], bool]


def _touches(barrier: int, codes: frozenset[int]) -> Wanted:
    """A test for operations of these codes on this barrier."""
    arrivals = bool(codes & _ARRIVALS)
    return lambda op: (op[0] in codes and op[1] == barrier) or (arrivals and op[0] == Op.COMMIT and op[2] == barrier)


def _joins(number: int, program: Program) -> Wanted:
    """A test for operations that arrive at this named barrier, or at the cluster barrier."""
    if number >= len(program.named_barriers):
        return lambda op: op[0] == Op.CLUSTER_ARRIVE
    return lambda op: op[0] in (Op.BAR_SYNC, Op.BAR_ARRIVE) and op[1] == number


def _any(program: Program, agent: int, wanted: Wanted) -> bool:
    return any(wanted(operation) for operation in program.code[agent])


def _next(program: Program, state: State, agent: int, wanted: Wanted) -> int:
    """Position of the agent's next such operation, -1 if none follows. One it is blocked inside is already done."""
    code = program.code[agent]
    start = state.pcs[agent] + (1 if state.holds[agent] else 0)
    return next((pc for pc in range(start, len(code)) if wanted(code[pc])), -1)


def _supplier(
    program: Program, state: State, agent: int, channel: int, waiting: dict[int, int], wanted: Wanted, supplies: str
) -> Supplier:
    code = program.code[agent]
    following = _next(program, state, agent, wanted)
    before = [pc for pc in range(state.pcs[agent]) if wanted(code[pc])]
    last = before[-1] if before else -1
    return Supplier(
        agent=program.agent_name(agent),
        supplies=supplies,
        next_line=program.line(agent, following) if following >= 0 else "",
        last_line=program.line(agent, last) if last >= 0 else "",
        last_iteration=_iteration(program, agent, last) if last >= 0 else -1,
        waits_for=channel_name(program, waiting[agent]) if agent in waiting else "",
    )


def _iteration(program: Program, agent: int, pc: int) -> int:
    """How many operations of this code on this group of barriers the agent ran before ``pc``: the tile it was for."""
    code = program.code[agent]
    op = code[pc]
    if op[0] in (Op.BAR_SYNC, Op.BAR_ARRIVE, Op.CLUSTER_ARRIVE, Op.COMMIT):
        return sum(1 for other in code[:pc] if other[0] == op[0])
    group = program.barriers[op[1]].name
    return sum(1 for other in code[:pc] if other[0] == op[0] and program.barriers[other[1]].name == group)


def _cycle(edges: dict[int, list[int]]) -> list[int]:
    """The first ring of agents in which each waits for the next, [] if there is none."""
    for start in edges:
        path: list[int] = []
        if _walk(start, start, edges, path, set()):
            return path
    return []


def _walk(agent: int, start: int, edges: dict[int, list[int]], path: list[int], seen: set[int]) -> bool:
    path.append(agent)
    seen.add(agent)
    for following in edges.get(agent, ()):
        if following == start or (following not in seen and _walk(following, start, edges, path, seen)):
            return True
    path.pop()
    return False
