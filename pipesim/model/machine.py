"""The machine: the one semantics of a flat program. Every driver moves it, none of them knows a rule of its own.

``step(program, state, agent)`` carries out one operation of one agent; ``land`` lets bytes of a transfer arrive. Both
are pure: no clock, no I/O, a new state each time. What the program does wrong comes back as faults; the driver decides
whether to go on. Whose move it is, is always the driver's choice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pipesim.model import barrier as mbarrier
from pipesim.model.barrier import FRESH, BarrierState
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.ops import OPERANDS, Engine, Op, Operation
from pipesim.model.program import Program

UNINITIALISED = -1  #: item of bytes that nothing has written
TORN = -2  #: item of bytes that a transfer is writing

WARP = 32


class Flight(NamedTuple):
    """A transfer, arrival or commit under way: issued by ``agent`` at ``pc``, with what is still to come.

    ``barrier`` (or -1) gets ``remaining`` bytes as they land, or ``arrivals`` at the end. ``group`` counts the commits
    of this agent on this engine before it; ``engine`` is -1 for a TMA load. ``first..end`` are the cells it holds open.
    """

    agent: int
    pc: int
    barrier: int
    remaining: int
    arrivals: int
    engine: int
    group: int
    first: int
    end: int
    writes: bool
    item: int
    after: int  #: everything of this agent and engine with a lower sequence number must have finished first
    sequence: int


class State(NamedTuple):
    """Where everything stands. Integers in tuples: hashable, comparable, cheap to copy."""

    pcs: tuple[int, ...]
    registers: tuple[tuple[int, ...], ...]
    holds: tuple[int, ...]  #: generation of a named or cluster barrier that an agent waits to see end, 0 if none
    barriers: tuple[BarrierState, ...]
    named: tuple[tuple[int, int, int], ...]  #: (threads arrived, threads expected or 0, generation)
    cluster: tuple[int, int]  #: (agents arrived, generation)
    cluster_held: tuple[int, ...]  #: generation each agent arrived in, -1 outside an arrive/wait pair
    flights: tuple[Flight, ...]
    commits: tuple[int, ...]  #: groups closed, by agent * len(Engine) + engine
    issued: int  #: transfers issued so far
    cells: tuple[int, ...]  #: item in each cell of memory


class Step(NamedTuple):
    """The outcome of one move.

    ``blocked`` is the channel the agent must see signalled before it can move (then ``state`` is unchanged, except that
    it may have arrived at a named barrier), -1 if it moved. ``signalled`` is the channel on which something completed,
    -1 if nothing did. Channels: mbarrier b is b; then the named barriers; then the cluster; then one for each agent
    (its own transfers).
    """

    state: State
    blocked: int = -1
    signalled: int = -1
    faults: tuple[Fault, ...] = ()


def initial_state(program: Program) -> State:
    """Nobody has moved, no barrier is initialised, nothing is written."""
    agents = len(program.agents)
    return State(
        pcs=(0,) * agents,
        registers=((0,) * program.registers,) * agents,
        holds=(0,) * agents,
        barriers=(FRESH,) * len(program.barriers),
        named=((0, 0, 0),) * len(program.named_barriers),
        cluster=(0, 0),
        cluster_held=(-1,) * agents,
        flights=(),
        commits=(0,) * (agents * len(Engine)),
        issued=0,
        cells=(UNINITIALISED,) * program.cell_count,
    )


def finished(program: Program, state: State, agent: int) -> bool:
    """True if the agent has run its last operation."""
    return state.pcs[agent] >= len(program.code[agent])


def step(program: Program, state: State, agent: int) -> Step:
    """Carry out the next operation of ``agent``, which must not be finished."""
    operation = program.code[agent][state.pcs[agent]]
    return _RULES[operation[0]](program, state, agent, operation)


def land(program: Program, state: State, flight: Flight, nbytes: int = -1) -> Step:
    """Let ``nbytes`` more of a flight arrive (-1: all that remain); at its last byte it closes its access and signals."""
    part = flight.remaining if nbytes < 0 else min(nbytes, flight.remaining)
    after = flight._replace(remaining=flight.remaining - part)
    last = after.remaining == 0
    flights = list(state.flights)
    where = flights.index(flight)
    if last:
        del flights[where]
    else:
        flights[where] = after
    cells = _fill(state.cells, flight.first, flight.end, flight.item) if last and flight.writes else state.cells
    state = state._replace(flights=tuple(flights), cells=cells)
    own = own_channel(program, flight.agent)
    if flight.barrier < 0:
        return Step(state, signalled=own)
    before = state.barriers[flight.barrier]
    if flight.engine == _TMA:
        changed, completed, fault = mbarrier.add_tx(before, -part)
    elif last:
        changed, completed, fault = mbarrier.arrive(before, flight.arrivals)
    else:
        return Step(state)
    barriers = _put(state.barriers, flight.barrier, changed)
    faults = (Fault(fault, flight.agent, flight.pc, flight.barrier, part, before.tx),) if fault else ()
    return Step(state._replace(barriers=barriers), -1, flight.barrier if completed else -1, faults)


def can_land(state: State, flight: Flight) -> bool:
    """True if nothing that this flight must follow (a commit follows what was issued before it) is still under way."""
    if flight.after == 0:
        return True
    return not any(
        f.agent == flight.agent and f.engine == flight.engine and f.sequence < flight.after and f is not flight
        for f in state.flights
    )


def answered(program: Program, state: State, agent: int, pc: int, answer: int) -> State:
    """The state in which the try at ``pc``, just executed, got this answer. PTX lets a try fail for no reason."""
    return _write_register(state, agent, program.code[agent][pc][3], answer)


def own_channel(program: Program, agent: int) -> int:
    """The channel on which an agent's own transfers signal."""
    return len(program.barriers) + len(program.named_barriers) + 1 + agent


_TMA = -1
Rule = Callable[[Program, State, int, Operation], Step]


def _advance(state: State, agent: int, by: int = 1) -> State:
    pcs = state.pcs
    return state._replace(pcs=(*pcs[:agent], pcs[agent] + by, *pcs[agent + 1 :]))


def _put(column: tuple[BarrierState, ...], index: int, value: BarrierState) -> tuple[BarrierState, ...]:
    return (*column[:index], value, *column[index + 1 :])


def _fill(cells: tuple[int, ...], first: int, end: int, item: int) -> tuple[int, ...]:
    return cells[:first] + (item,) * (end - first) + cells[end:]


def _write_register(state: State, agent: int, register: int, value: int) -> State:
    if register < 0:
        return state
    mine = state.registers[agent]
    mine = (*mine[:register], value, *mine[register + 1 :])
    return state._replace(registers=(*state.registers[:agent], mine, *state.registers[agent + 1 :]))


# --- mbarrier -------------------------------------------------------------------------------------------------------


def _changed(
    state: State, agent: int, bar: int, effect: mbarrier.Effect, found: int, expected: int, register: int = -1
) -> Step:
    """Put the effect of an operation on a barrier into the state and move on."""
    after, completed, fault = effect
    faults = () if fault is None else (Fault(fault, agent, state.pcs[agent], bar, found, expected),)
    if register >= 0:
        state = _write_register(state, agent, register, mbarrier.token(state.barriers[bar]))
    pcs = state.pcs
    state = State(
        (*pcs[:agent], pcs[agent] + 1, *pcs[agent + 1 :]),
        state.registers,
        state.holds,
        (*state.barriers[:bar], after, *state.barriers[bar + 1 :]),
        *state[4:],
    )
    return Step(state, -1, bar if completed else -1, faults)


def _init(_: Program, state: State, agent: int, op: Operation) -> Step:
    return _changed(state, agent, op[1], mbarrier.init(state.barriers[op[1]], op[2]), op[2], mbarrier.MAX_COUNT)


def _inval(_: Program, state: State, agent: int, op: Operation) -> Step:
    before = state.barriers[op[1]]
    return _changed(state, agent, op[1], mbarrier.inval(before), before.pending, before.expected)


def _arrive(_: Program, state: State, agent: int, op: Operation) -> Step:
    before = state.barriers[op[1]]
    return _changed(state, agent, op[1], mbarrier.arrive(before, op[2], op[3]), op[2], before.pending, op[4])


def _arrive_drop(_: Program, state: State, agent: int, op: Operation) -> Step:
    before = state.barriers[op[1]]
    return _changed(state, agent, op[1], mbarrier.arrive_drop(before, op[2], op[3]), op[2], before.pending, op[4])


def _arrive_no_complete(_: Program, state: State, agent: int, op: Operation) -> Step:
    before = state.barriers[op[1]]
    return _changed(state, agent, op[1], mbarrier.arrive_no_complete(before, op[2]), op[2], before.pending, op[3])


def _expect_tx(_: Program, state: State, agent: int, op: Operation) -> Step:
    before = state.barriers[op[1]]
    return _changed(state, agent, op[1], mbarrier.add_tx(before, op[2]), op[2], before.tx)


def _complete_tx(_: Program, state: State, agent: int, op: Operation) -> Step:
    before = state.barriers[op[1]]
    return _changed(state, agent, op[1], mbarrier.add_tx(before, -op[2]), -op[2], before.tx)


def _wait(_: Program, state: State, agent: int, op: Operation) -> Step:
    bar = op[1]
    before = state.barriers[bar]
    if before.life != mbarrier.LIVE:
        return _unusable(state, agent, bar, before)
    if (before.done & 1) == op[2]:
        return Step(state, blocked=bar)
    return Step(_advance(state, agent))


def _wait_unless(program: Program, state: State, agent: int, op: Operation) -> Step:
    if op[3] >= 0 and state.registers[agent][op[3]]:
        return Step(_advance(state, agent))
    return _wait(program, state, agent, op)


def _test(_: Program, state: State, agent: int, op: Operation) -> Step:
    before = state.barriers[op[1]]
    if before.life != mbarrier.LIVE:
        return _unusable(state, agent, op[1], before)
    return Step(_advance(_write_register(state, agent, op[3], int(mbarrier.passes(before, op[2]))), agent))


def _wait_state(_: Program, state: State, agent: int, op: Operation) -> Step:
    before = state.barriers[op[1]]
    if before.life != mbarrier.LIVE:
        return _unusable(state, agent, op[1], before)
    passed, fault = mbarrier.token_passes(before, state.registers[agent][op[2]])
    if not passed and fault is None:
        return Step(state, blocked=op[1])
    return Step(_advance(state, agent), faults=_stale(state, agent, op[1], before, fault))


def _test_state(_: Program, state: State, agent: int, op: Operation) -> Step:
    before = state.barriers[op[1]]
    if before.life != mbarrier.LIVE:
        return _unusable(state, agent, op[1], before)
    passed, fault = mbarrier.token_passes(before, state.registers[agent][op[2]])
    after = _advance(_write_register(state, agent, op[3], int(passed)), agent)
    return Step(after, faults=_stale(state, agent, op[1], before, fault))


def _pending_count(_: Program, state: State, agent: int, op: Operation) -> Step:
    held = state.registers[agent][op[1]]
    return Step(_advance(_write_register(state, agent, op[2], mbarrier.token_pending(held)), agent))


def _cp_async_arrive(program: Program, state: State, agent: int, op: Operation) -> Step:
    """Pending rises now unless noinc; one arrival of all lanes when the agent's earlier cp.async have landed."""
    bar, lanes, noinc = op[1], op[2], op[3]
    before = state.barriers[bar]
    if noinc:
        fault = mbarrier.unusable(before)
        effect: mbarrier.Effect = (before, False, fault)
    else:
        effect = mbarrier.raise_pending(before, lanes)
    moved = _changed(state, agent, bar, effect, lanes, before.pending)
    return moved if effect[2] else _launch(program, moved.state, agent, state.pcs[agent], Engine.CP_ASYNC, bar, lanes)


def _unusable(state: State, agent: int, bar: int, before: BarrierState) -> Step:
    kind = mbarrier.unusable(before)
    assert kind is not None
    return Step(_advance(state, agent), faults=(Fault(kind, agent, state.pcs[agent], bar),))


def _stale(state: State, agent: int, bar: int, before: BarrierState, kind: FaultKind | None) -> tuple[Fault, ...]:
    return () if kind is None else (Fault(kind, agent, state.pcs[agent], bar, before.done),)


# --- named and cluster barriers, fences -----------------------------------------------------------------------------


def _bar_arrive(program: Program, state: State, agent: int, op: Operation) -> Step:
    joined = _join(program, state, agent, op)
    return joined._replace(state=_advance(joined.state, agent))


def _bar_sync(program: Program, state: State, agent: int, op: Operation) -> Step:
    """Arrive, then wait for the barrier's generation to end: two moves unless this agent is the last."""
    bar = op[1]
    channel = len(program.barriers) + bar
    wanted = state.holds[agent]
    if wanted:
        if state.named[bar][2] < wanted:
            return Step(state, blocked=channel)
        return Step(_advance(_hold(state, agent, 0), agent))
    joined = _join(program, state, agent, op)
    if joined.signalled >= 0 or joined.faults:
        return joined._replace(state=_advance(joined.state, agent))
    return Step(_hold(joined.state, agent, state.named[bar][2] + 1), blocked=channel)


def _join(program: Program, state: State, agent: int, op: Operation) -> Step:
    bar, threads, lanes = op[1], op[2], op[3]
    arrived, agreed, generation = state.named[bar]
    fault: FaultKind | None = None
    if threads % WARP or threads <= 0 or (agreed and agreed != threads):
        fault = FaultKind.BARRIER_THREADS
    elif arrived + lanes > threads:
        fault = FaultKind.BARRIER_OVERRUN
    if fault:
        return Step(state, faults=(Fault(fault, agent, state.pcs[agent], -1, threads, agreed),))
    full = arrived + lanes == threads
    entry = (0, 0, generation + 1) if full else (arrived + lanes, threads, generation)
    state = state._replace(named=(*state.named[:bar], entry, *state.named[bar + 1 :]))
    return Step(state, signalled=len(program.barriers) + bar if full else -1)


def _hold(state: State, agent: int, generation: int) -> State:
    return state._replace(holds=(*state.holds[:agent], generation, *state.holds[agent + 1 :]))


def _cluster_arrive(program: Program, state: State, agent: int, op: Operation) -> Step:
    arrived, generation = state.cluster
    if state.cluster_held[agent] >= 0:
        return Step(_advance(state, agent), faults=(Fault(FaultKind.CLUSTER_ARRIVE, agent, state.pcs[agent]),))
    full = arrived + 1 == len(program.agents)
    state = state._replace(
        cluster=(0, generation + 1) if full else (arrived + 1, generation),
        cluster_held=(*state.cluster_held[:agent], generation, *state.cluster_held[agent + 1 :]),
    )
    return Step(_advance(state, agent), signalled=_cluster_channel(program) if full else -1)


def _cluster_wait(program: Program, state: State, agent: int, op: Operation) -> Step:
    held = state.cluster_held[agent]
    if held < 0:
        return Step(_advance(state, agent), faults=(Fault(FaultKind.CLUSTER_ARRIVE, agent, state.pcs[agent]),))
    if state.cluster[1] <= held:
        return Step(state, blocked=_cluster_channel(program))
    released = state._replace(cluster_held=(*state.cluster_held[:agent], -1, *state.cluster_held[agent + 1 :]))
    return Step(_advance(released, agent))


def _cluster_channel(program: Program) -> int:
    return len(program.barriers) + len(program.named_barriers)


# --- transfers and memory -------------------------------------------------------------------------------------------


def _tma_load(program: Program, state: State, agent: int, op: Operation) -> Step:
    _, bar, access, nbytes, item, mask = op
    faults: tuple[Fault, ...] = ()
    if not mask:
        return _open(program, state, agent, _TMA, bar, access, nbytes, item, writes=True)
    moved = Step(state)
    for rank in range(program.ctas):
        if mask >> rank & 1:
            there = _same_offset(program, bar, access, rank)
            moved = _open(program, moved.state, agent, _TMA, *there, nbytes, item, writes=True, advance=False)
            faults += moved.faults
    return Step(_advance(moved.state, agent), faults=faults)


def _same_offset(program: Program, bar: int, access: int, rank: int) -> tuple[int, int]:
    """The barrier and the access at the same place in another CTA of the cluster; tables list every CTA alike."""
    b, a = program.barriers[bar], program.accesses[access]
    return (
        program.barriers.index(type(b)(rank, b.name, b.stage)),
        program.accesses.index(type(a)(a.space, rank, a.offset, a.nbytes)),
    )


def _transfer_read(program: Program, state: State, agent: int, op: Operation) -> Step:
    seen = _look(program, state, agent, op[2], op[4])
    opened = _open(program, state, agent, op[1], -1, op[2], op[3], op[4], writes=False)
    return opened._replace(faults=opened.faults or seen)


def _transfer_write(program: Program, state: State, agent: int, op: Operation) -> Step:
    return _open(program, state, agent, op[1], -1, op[2], op[3], op[4], writes=True)


def _open(
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
    advance: bool = True,
) -> Step:
    """Issue a transfer: its access is open from here until its last byte; opening it against a conflict is a race."""
    first, end = program.cells[access]
    faults: tuple[Fault, ...] = ()
    if _conflict(state, first, end, writes):
        faults = (Fault(FaultKind.RACE, agent, state.pcs[agent], bar, access),)
    group = 0 if engine == _TMA else state.commits[agent * len(Engine) + engine]
    issued = state.issued + 1
    flight = Flight(agent, state.pcs[agent], bar, nbytes, 0, engine, group, first, end, writes, item, 0, issued)
    cells = _fill(state.cells, first, end, TORN) if writes else state.cells
    pcs = state.pcs
    state = State(
        (*pcs[:agent], pcs[agent] + 1, *pcs[agent + 1 :]) if advance else pcs,
        *state[1:7],
        (*state.flights, flight),
        state.commits,
        issued,
        cells,
    )
    return Step(state, faults=faults)


def _conflict(state: State, first: int, end: int, writes: bool) -> bool:
    """True if an open access of a transfer overlaps these cells and one of the two writes."""
    return any(f.first < end and first < f.end and (writes or f.writes) for f in state.flights)


def _launch(program: Program, state: State, agent: int, pc: int, engine: int, bar: int, arrivals: int) -> Step:
    """Put an arrival under way that waits for all that this agent issued on the engine before."""
    issued = state.issued + 1
    flight = Flight(agent, pc, bar, 0, arrivals, engine, -1, 0, 0, False, 0, issued, issued)
    return Step(state._replace(flights=(*state.flights, flight), issued=issued))


def _commit(program: Program, state: State, agent: int, op: Operation) -> Step:
    engine, bar = op[1], op[2]
    if bar >= 0:
        return _launch(program, _advance(state, agent), agent, state.pcs[agent], engine, bar, 1)
    slot = agent * len(Engine) + engine
    commits = (*state.commits[:slot], state.commits[slot] + 1, *state.commits[slot + 1 :])
    return Step(_advance(state._replace(commits=commits), agent))


def _wait_group(program: Program, state: State, agent: int, op: Operation) -> Step:
    """Block until at most ``groups`` of the closed groups of this engine are unfinished."""
    engine, groups = op[1], op[2]
    limit = state.commits[agent * len(Engine) + engine] - groups
    if any(f.agent == agent and f.engine == engine and 0 <= f.group < limit for f in state.flights):
        return Step(state, blocked=own_channel(program, agent))
    return Step(_advance(state, agent))


def _read(program: Program, state: State, agent: int, op: Operation) -> Step:
    return Step(_advance(state, agent), faults=_look(program, state, agent, op[1], op[2]))


def _look(program: Program, state: State, agent: int, access: int, item: int) -> tuple[Fault, ...]:
    """What is wrong with reading this access now in the belief that it holds ``item`` (-1: anything)."""
    first, end = program.cells[access]
    for held in state.cells[first:end]:
        if held == item and held >= 0:
            continue
        if held == TORN:
            return (Fault(FaultKind.RACE, agent, state.pcs[agent], -1, access),)
        if held == UNINITIALISED:
            return (Fault(FaultKind.UNINITIALISED_READ, agent, state.pcs[agent], -1, access, item),)
        if item >= 0:
            return (Fault(FaultKind.WRONG_ITEM, agent, state.pcs[agent], -1, held, item),)
    return ()


def _write(program: Program, state: State, agent: int, op: Operation) -> Step:
    first, end = program.cells[op[1]]
    faults: tuple[Fault, ...] = ()
    if _conflict(state, first, end, writes=True):
        faults = (Fault(FaultKind.RACE, agent, state.pcs[agent], -1, op[1]),)
    state = state._replace(cells=_fill(state.cells, first, end, op[2]))
    return Step(_advance(state, agent), faults=faults)


# --- control --------------------------------------------------------------------------------------------------------


def _jump_if(_: Program, state: State, agent: int, op: Operation) -> Step:
    taken = state.registers[agent][op[1]] == op[2]
    return Step(_advance(state, agent, 1 + op[3] if taken else 1))


def _pass(_: Program, state: State, agent: int, op: Operation) -> Step:
    """Fences order memory and marks carry names: neither changes a barrier, a tile or another agent's turn."""
    return Step(_advance(state, agent))


_RULES_BY_OP: dict[Op, Rule] = {
    Op.INIT: _init,
    Op.INVAL: _inval,
    Op.ARRIVE: _arrive,
    Op.ARRIVE_DROP: _arrive_drop,
    Op.ARRIVE_NO_COMPLETE: _arrive_no_complete,
    Op.EXPECT_TX: _expect_tx,
    Op.COMPLETE_TX: _complete_tx,
    Op.WAIT: _wait,
    Op.WAIT_UNLESS: _wait_unless,
    Op.TRY_WAIT: _test,
    Op.TEST_WAIT: _test,
    Op.WAIT_STATE: _wait_state,
    Op.TEST_STATE: _test_state,
    Op.PENDING_COUNT: _pending_count,
    Op.CP_ASYNC_ARRIVE: _cp_async_arrive,
    Op.BAR_SYNC: _bar_sync,
    Op.BAR_ARRIVE: _bar_arrive,
    Op.CLUSTER_ARRIVE: _cluster_arrive,
    Op.CLUSTER_WAIT: _cluster_wait,
    Op.FENCE: _pass,
    Op.TMA_LOAD: _tma_load,
    Op.TRANSFER_READ: _transfer_read,
    Op.TRANSFER_WRITE: _transfer_write,
    Op.COMMIT: _commit,
    Op.WAIT_GROUP: _wait_group,
    Op.READ: _read,
    Op.WRITE: _write,
    Op.WORK: _pass,
    Op.JUMP_IF: _jump_if,
    Op.LOOP_BEGIN: _pass,
    Op.LOOP_NEXT: _pass,
    Op.LOOP_END: _pass,
    Op.SETMAXNREG: _pass,
}
assert set(_RULES_BY_OP) == set(OPERANDS), "every operation has a rule"

_RULES: tuple[Rule, ...] = tuple(_RULES_BY_OP.get(Op(code), _pass) if code in {*Op} else _pass for code in range(max(Op) + 1))
