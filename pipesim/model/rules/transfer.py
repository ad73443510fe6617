"""What transfers, reads and writes do to a state: accesses that open and close, items, groups, commits."""

from collections.abc import Iterable, Sequence

from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import (
    ACCESS,
    ASYNC_ACCESS,
    ASYNC_BYTES,
    ASYNC_ITEM,
    BARRIER,
    COMMIT_BARRIER,
    COMMIT_MASK,
    COPY_MASK,
    ENGINE,
    GROUPS,
    ITEM,
)
from pipesim.model.ops import IN_ORDER, Engine, Op, Operation
from pipesim.model.program import Program
from pipesim.model.state import (
    OWN,
    TMA,
    TORN,
    UNINITIALISED,
    Flight,
    Readable,
    Rule,
    State,
    Step,
    advance,
    fill,
    new,
    own_channel,
    unreachable,
)

_ENGINES = len(Engine)


def launch(state: State, agent: int, pc: int, engine: int, bar: int, arrivals: int) -> Step:
    """Put an arrival under way that waits for all that this agent issued on the engine before."""
    issued = state.issued + 1
    flight = Flight(agent, pc, bar, 0, arrivals, engine, -1, 0, 0, False, 0, issued, issued)
    return Step(state._replace(flights=(*state.flights, flight), issued=issued))


def _exited_target(state: State, agent: int, access: int) -> Step:
    """The access is to the memory of a CTA that has exited: the launch ends."""
    return Step(advance(state, agent), faults=(Fault(FaultKind.EXITED_CTA, agent, state.pcs[agent], -1, access),))


def _tma_load(program: Program, state: State, agent: int, op: Operation) -> Step:
    bar, access, nbytes = op[BARRIER], op[ASYNC_ACCESS], op[ASYNC_BYTES]
    item, mask = op[ASYNC_ITEM], op[COPY_MASK]
    if not mask:
        if program.ctas > 1 and unreachable(program, state, agent, access):
            return _exited_target(state, agent, access)
        after, faults = _open_access(program, state, agent, TMA, bar, access, nbytes, item, writes=True)
        return new(Step, (advance(after, agent), -1, -1, faults))
    faults = ()
    after = state
    for rank in range(program.ctas):
        if mask >> rank & 1:
            there = program.at_rank(bar, access, rank)
            if unreachable(program, state, agent, there[1]):
                return _exited_target(state, agent, there[1])
            after, raced = _open_access(program, after, agent, TMA, *there, nbytes, item, writes=True)
            faults += raced
    return Step(advance(after, agent), faults=faults)


def _transfer_read(program: Program, state: State, agent: int, op: Operation) -> Step:
    if program.ctas > 1 and unreachable(program, state, agent, op[ASYNC_ACCESS]):
        return _exited_target(state, agent, op[ASYNC_ACCESS])
    seen = look(program, state, agent, op[ASYNC_ACCESS], op[ASYNC_ITEM], op[ENGINE])
    after, raced = _open_access(
        program, state, agent, op[ENGINE], -1, op[ASYNC_ACCESS], op[ASYNC_BYTES], op[ASYNC_ITEM], writes=False
    )
    return Step(advance(after, agent), faults=raced or seen)


def _transfer_write(program: Program, state: State, agent: int, op: Operation) -> Step:
    if program.ctas > 1 and unreachable(program, state, agent, op[ASYNC_ACCESS]):
        return _exited_target(state, agent, op[ASYNC_ACCESS])
    after, raced = _open_access(
        program, state, agent, op[ENGINE], -1, op[ASYNC_ACCESS], op[ASYNC_BYTES], op[ASYNC_ITEM], writes=True
    )
    return Step(advance(after, agent), faults=raced)


def _open_access(
    program: Program,
    state: State,
    agent: int,
    engine: int,
    bar: int,
    access: int,
    nbytes: int,
    item: int,
    *,
    writes: bool,
) -> tuple[State, tuple[Fault, ...]]:
    """Issue a transfer: its access is open from here until its last byte; opening it against a conflict is a race."""
    first, end = program.cells[access]
    pcs, registers, holds, barriers, named, cluster, held, flights, commits, issued, cells = state
    faults: tuple[Fault, ...] = ()
    if flights:
        others: Iterable[Flight] = flights
        if engine in IN_ORDER:
            others = [f for f in flights if not ordered(f, agent, engine, first, end, writes=writes)]
        open_ = conflict(others, first, end, writes=writes)
        if open_ is not None:
            faults = (Fault(FaultKind.RACE, agent, pcs[agent], bar, access, 0, open_.agent, open_.pc),)
    group = 0 if engine == TMA else commits[agent * _ENGINES + engine]
    issued += 1
    flight = new(Flight, (agent, pcs[agent], bar, nbytes, 0, engine, group, first, end, writes, item, 0, issued))
    if writes:
        cells = fill(cells, first, end, TORN)
    flights = (*flights, flight)
    return new(State, (pcs, registers, holds, barriers, named, cluster, held, flights, commits, issued, cells)), faults


def conflict(flights: Iterable[Flight], first: int, end: int, *, writes: bool, item: int = -1) -> Flight | None:
    """The first open access that overlaps these cells where one of the two writes, None if there is none.

    A thread's write of ``item``, if that is given, does not conflict with another thread's of the same item to them.
    """
    for f in flights:
        if f.first < end and first < f.end and (writes or f.writes):
            if 0 <= item == f.item and f.engine == OWN and (f.first, f.end) == (first, end):
                continue
            return f
    return None


def ordered(flight: Flight, agent: int, engine: int, first: int, end: int, *, writes: bool) -> bool:
    """True if an in-order engine carries out ``flight`` before the agent's next access, which is to these cells.

    It does for operations of one agent; but two writes it orders only on the same accumulator in the same shape.
    """
    if flight.agent != agent or flight.engine != engine:
        return False
    return not (writes and flight.writes) or (flight.first, flight.end) == (first, end)


def _commit(program: Program, state: State, agent: int, op: Operation) -> Step:
    engine, bar = op[ENGINE], op[COMMIT_BARRIER]
    if bar >= 0:
        return launch(advance(state, agent), agent, state.pcs[agent], engine, bar, 1)
    slot = agent * _ENGINES + engine
    commits = (*state.commits[:slot], state.commits[slot] + 1, *state.commits[slot + 1 :])
    signalled = own_channel(program, agent) if engine == Engine.WGMMA else -1  # its warp group may wait for it
    return Step(advance(state._replace(commits=commits), agent), signalled=signalled)


def _commit_multicast(program: Program, state: State, agent: int, op: Operation) -> Step:
    engine, bar, mask = op[ENGINE], op[COMMIT_BARRIER], op[COMMIT_MASK]
    pc = state.pcs[agent]
    after = advance(state, agent)
    for rank in range(program.ctas):
        if mask >> rank & 1:
            after = launch(after, agent, pc, engine, program.barrier_at_rank(bar, rank), 1).state
    return Step(after)


def _wait_group(program: Program, state: State, agent: int, op: Operation) -> Step:
    """Block until at most ``groups`` of the closed groups of this engine are unfinished.

    A wgmma and its groups belong to a whole warp group: each of its warps must have closed them, and all be finished.
    """
    engine, groups = op[ENGINE], op[GROUPS]
    limit = state.commits[agent * _ENGINES + engine] - groups
    for member in program.warp_groups[agent] if engine == Engine.WGMMA else (agent,):
        if state.commits[member * _ENGINES + engine] < limit or any(
            f.agent == member and f.engine == engine and 0 <= f.group < limit for f in state.flights
        ):
            return Step(state, blocked=own_channel(program, member))
    return Step(advance(state, agent))


def begin(program: Program, state: State, agent: int) -> Step:
    """Open the access of the agent's next operation, an ordinary read or write, which ``step`` then ends.

    ``step`` alone is a read or write in no time. A driver in which it takes time opens it first: whatever conflicts
    with it until then is a race.
    """
    pc = state.pcs[agent]
    op = program.code[agent][pc]
    first, end = program.cells[op[ACCESS]]
    writes = op[0] == Op.WRITE
    faults: tuple[Fault, ...] = ()
    item = op[ITEM] if writes else -1
    open_ = conflict(state.flights, first, end, writes=writes, item=item)
    if open_ is not None:
        faults = (Fault(FaultKind.RACE, agent, pc, -1, op[ACCESS], 0, open_.agent, open_.pc),)
    flight = Flight(agent, pc, -1, 0, 0, OWN, -1, first, end, writes, item, 0, 0)
    return Step(state._replace(flights=(*state.flights, flight)), faults=faults)


def _end_access(state: State, agent: int) -> State:
    """The state without the access that the agent itself holds open, if it does."""
    for mine in state.flights:
        if mine.engine == OWN and mine.agent == agent:
            return state._replace(flights=tuple(f for f in state.flights if f.engine != OWN or f.agent != agent))
    return state


def _read(program: Program, state: State, agent: int, op: Operation) -> Step:
    closed = _end_access(state, agent)
    if program.ctas > 1 and unreachable(program, state, agent, op[ACCESS]):
        return _exited_target(closed, agent, op[ACCESS])
    faults = look(program, closed, agent, op[ACCESS], op[ITEM])
    if closed is not state and faults and faults[0].kind is FaultKind.RACE:
        faults = ()  # it was open: whichever of the two accesses opened second has reported the race
    return new(Step, (advance(closed, agent), -1, -1, faults))


def look(program: Program, state: Readable, agent: int, access: int, item: int, engine: int = OWN) -> tuple[Fault, ...]:
    """What is wrong with reading this access now in the belief that it holds ``item`` (-1: anything).

    An engine that works in order reads what its agent's last write on it, still under way, will have left.
    """
    first, end = program.cells[access]
    for cell, held in enumerate(state.cells[first:end], first):
        if held == item and held >= 0:
            continue
        if held == TORN:
            writer = _writer(state.flights, cell, agent, engine)
            if writer is None:
                return (Fault(FaultKind.RACE, agent, state.pcs[agent], -1, access),)
            if engine not in IN_ORDER or (writer.agent, writer.engine) != (agent, engine):
                return (Fault(FaultKind.RACE, agent, state.pcs[agent], -1, access, 0, writer.agent, writer.pc),)
            held = writer.item
            if held == item:
                continue
        if held == UNINITIALISED:
            if program.may_hold_nothing(access, item):
                continue
            return (Fault(FaultKind.UNINITIALISED_READ, agent, state.pcs[agent], -1, access, item),)
        if item >= 0:
            return (Fault(FaultKind.WRONG_ITEM, agent, state.pcs[agent], -1, held, item),)
    return ()


def _writer(flights: Sequence[Flight], cell: int, agent: int, engine: int) -> Flight | None:
    """The open transfer that writes this cell: one of another agent or engine if there is one, else the latest."""
    writers = [f for f in flights if f.writes and f.first <= cell < f.end]
    others = (f for f in writers if (f.agent, f.engine) != (agent, engine))
    return next(others, writers[-1] if writers else None)


def _write(program: Program, state: State, agent: int, op: Operation) -> Step:
    state = _end_access(state, agent)
    if program.ctas > 1 and unreachable(program, state, agent, op[ACCESS]):
        return _exited_target(state, agent, op[ACCESS])
    first, end = program.cells[op[ACCESS]]
    faults: tuple[Fault, ...] = ()
    open_ = conflict(state.flights, first, end, writes=True, item=op[ITEM])
    if open_ is not None:
        faults = (Fault(FaultKind.RACE, agent, state.pcs[agent], -1, op[ACCESS], 0, open_.agent, open_.pc),)
    state = state._replace(cells=fill(state.cells, first, end, op[ITEM]))
    return Step(advance(state, agent), faults=faults)


RULES: dict[Op, Rule] = {
    Op.TMA_LOAD: _tma_load,
    Op.TRANSFER_READ: _transfer_read,
    Op.TRANSFER_WRITE: _transfer_write,
    Op.COMMIT: _commit,
    Op.WAIT_GROUP: _wait_group,
    Op.COMMIT_MULTICAST: _commit_multicast,
    Op.READ: _read,
    Op.WRITE: _write,
}
