"""What mbarriers, named barriers, the cluster barrier, fences, jumps and marks do to a state.

What an operation does to one mbarrier word is in ``barrier``.
"""

from pipesim.model import barrier as mbarrier
from pipesim.model.barrier import LIVE, BarrierState
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import (
    ANSWER,
    AWAITED_TOKEN,
    BARRIER,
    COUNT,
    COUNTED_TOKEN,
    CP_ASYNC_LANES,
    EXPECT,
    JUMP_REGISTER,
    NAMED_BARRIER,
    NAMED_LANES,
    NO_COMPLETE_TOKEN,
    NO_EFFECT,
    NOINC,
    PARITY,
    PENDING,
    SKIP,
    TESTED_TOKEN,
    THREADS,
    TOKEN,
    TX_BYTES,
    VALUE,
)
from pipesim.model.ops import Engine, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.rules.transfer import launch
from pipesim.model.state import Rule, State, Step, advance, cluster_channel, exited, new, pool_channel, write_register

WARP = 32


def _bar_arrive(program: Program, state: State, agent: int, op: Operation) -> Step:
    joined = _join(program, state, agent, op)
    return joined._replace(state=advance(joined.state, agent))


def _bar_sync(program: Program, state: State, agent: int, op: Operation) -> Step:
    """Arrive, then wait for the barrier's generation to end: two moves unless this agent is the last."""
    bar = op[NAMED_BARRIER]
    channel = len(program.barriers) + bar
    wanted = state.holds[agent]
    if wanted:
        if state.named[bar][2] < wanted:
            return Step(state, blocked=channel)
        return Step(advance(_hold(state, agent, 0), agent))
    joined = _join(program, state, agent, op)
    if joined.signalled >= 0 or joined.faults:
        return joined._replace(state=advance(joined.state, agent))
    return Step(_hold(joined.state, agent, state.named[bar][2] + 1), blocked=channel)


def _join(program: Program, state: State, agent: int, op: Operation) -> Step:
    bar, threads, lanes = op[NAMED_BARRIER], op[THREADS], op[NAMED_LANES]
    arrived, agreed, generation = state.named[bar]
    fault: FaultKind | None = None
    found, expected = threads, agreed
    if threads % WARP or threads <= 0 or (agreed and agreed != threads):
        fault = FaultKind.BARRIER_THREADS
    elif arrived + lanes > threads:
        fault, found, expected = FaultKind.BARRIER_OVERRUN, arrived + lanes, threads
    if fault:
        return Step(state, faults=(Fault(fault, agent, state.pcs[agent], -1, found, expected),))
    full = arrived + lanes == threads
    entry = (0, 0, generation + 1) if full else (arrived + lanes, threads, generation)
    named = (*state.named[:bar], entry, *state.named[bar + 1 :])
    joined = new(State, (*state[:_NAMED], named, *state[_NAMED + 1 :]))  # a _replace takes three times as long
    return Step(joined, signalled=len(program.barriers) + bar if full else -1)


_NAMED, _HOLDS = State._fields.index("named"), State._fields.index("holds")


def _hold(state: State, agent: int, generation: int) -> State:
    holds = (*state.holds[:agent], generation, *state.holds[agent + 1 :])
    return new(State, (*state[:_HOLDS], holds, *state[_HOLDS + 1 :]))


def _cluster_arrive(program: Program, state: State, agent: int, _: Operation) -> Step:
    arrived, generation = state.cluster
    if state.cluster_held[agent] >= 0:
        return Step(advance(state, agent), faults=(Fault(FaultKind.CLUSTER_ARRIVE, agent, state.pcs[agent]),))
    held = (*state.cluster_held[:agent], generation, *state.cluster_held[agent + 1 :])
    state = state._replace(cluster=(arrived + 1, generation), cluster_held=held)
    full = arrived + 1 == len(program.agents) or _without_the_ended(program, state)
    state = state._replace(cluster=(0, generation + 1)) if full else state
    return Step(advance(state, agent), signalled=cluster_channel(program) if full else -1)


def _cluster_wait(program: Program, state: State, agent: int, _: Operation) -> Step:
    held = state.cluster_held[agent]
    if held < 0:
        return Step(advance(state, agent), faults=(Fault(FaultKind.CLUSTER_ARRIVE, agent, state.pcs[agent]),))
    signalled = -1
    if state.cluster[1] <= held:
        if not _without_the_ended(program, state):
            return Step(state, blocked=cluster_channel(program))
        state, signalled = state._replace(cluster=(0, held + 1)), cluster_channel(program)
    released = state._replace(cluster_held=(*state.cluster_held[:agent], -1, *state.cluster_held[agent + 1 :]))
    return Step(advance(released, agent), signalled=signalled)


def _without_the_ended(program: Program, state: State) -> bool:
    """True if every agent that has not ended has arrived at the cluster barrier.

    Threads that have exited are not waited for (PTX ISA, ``barrier.cluster``: all non-exited threads of the cluster;
    measured). Their exit itself is seen by whoever comes next: the last arrival, or a wait.
    """
    if not program.leaves_cluster_barrier:
        return False
    generation = state.cluster[1]
    here = zip(state.cluster_held, state.pcs, program.ends, strict=True)
    return all(held == generation or pc >= end for held, pc, end in here)


def _setmaxnreg(program: Program, state: State, agent: int, op: Operation) -> Step:
    """Fewer registers are released immediately, more are waited for until they are free."""
    pools = program.register_pools
    if pools is None:
        return _pass(program, state, agent, op)
    channel = pool_channel(program, program.agents[agent].cta)
    if pools.missing_registers(agent, state.pcs, operand(op, "registers")):
        return Step(state, blocked=channel)
    less = operand(op, "registers") < pools.of_thread(agent, state.pcs[agent])
    return Step(advance(state, agent), signalled=channel if less else -1)


def _jump_if(_: Program, state: State, agent: int, op: Operation) -> Step:
    taken = state.registers[agent][op[JUMP_REGISTER]] == op[VALUE]
    return Step(advance(state, agent, 1 + op[SKIP] if taken else 1))


def _pass(_: Program, state: State, agent: int, __: Operation) -> Step:
    """Fences order memory, marks carry names, work takes time: none changes a barrier, a tile or who may continue."""
    pcs = state[0]
    moved = new(State, (pcs[:agent] + (pcs[agent] + 1,) + pcs[agent + 1 :], *state[1:]))  # noqa: RUF005  # hot
    return new(Step, (moved, -1, -1, ()))


RULES: dict[Op, Rule] = {
    Op.BAR_SYNC: _bar_sync,
    Op.BAR_ARRIVE: _bar_arrive,
    Op.CLUSTER_ARRIVE: _cluster_arrive,
    Op.CLUSTER_WAIT: _cluster_wait,
    Op.JUMP_IF: _jump_if,
    Op.SETMAXNREG: _setmaxnreg,
    **{Op(op): _pass for op in NO_EFFECT},
}


def _apply_effect(
    state: State, agent: int, bar: int, effect: mbarrier.Effect, found: int, expected: int, register: int = -1
) -> Step:
    """Put the effect of an operation on a barrier into the state and move on."""
    after, completed, fault = effect
    faults = () if fault is None else (Fault(fault, agent, state.pcs[agent], bar, found, expected),)
    if register >= 0:
        state = write_register(state, agent, register, mbarrier.token(state.barriers[bar]))
    pcs, registers, holds, barriers, named, cluster, held, flights, commits, issued, cells = state
    pcs = pcs[:agent] + (pcs[agent] + 1,) + pcs[agent + 1 :]  # noqa: RUF005  # hot
    barriers = barriers[:bar] + (after,) + barriers[bar + 1 :]  # noqa: RUF005  # hot
    moved = new(State, (pcs, registers, holds, barriers, named, cluster, held, flights, commits, issued, cells))
    return new(Step, (moved, -1, bar if completed else -1, faults))


def _init(_: Program, state: State, agent: int, op: Operation) -> Step:
    bar, count = op[BARRIER], op[COUNT]
    return _apply_effect(state, agent, bar, mbarrier.init(state.barriers[bar], count), count, mbarrier.MAX_COUNT)


def _inval(_: Program, state: State, agent: int, op: Operation) -> Step:
    bar = op[BARRIER]
    before = state.barriers[bar]
    return _apply_effect(state, agent, bar, mbarrier.inval(before), before.pending, before.expected)


def _arrive(program: Program, state: State, agent: int, op: Operation) -> Step:
    bar, count = op[BARRIER], op[COUNT]
    if program.ctas > 1 and _exited(program, state, agent, bar):
        return _exited_target(state, agent, bar)
    before = state.barriers[bar]
    effect = mbarrier.arrive(before, count, op[EXPECT])
    if effect[2] in _OF_BYTES:
        return _apply_effect(state, agent, bar, effect, op[EXPECT], before.tx, op[TOKEN])
    return _apply_effect(state, agent, bar, effect, count, before.pending, op[TOKEN])


_OF_BYTES = (FaultKind.TX_RANGE, FaultKind.TX_EDGE)  #: with the bytes that were added, and those that there were


def _arrive_drop(program: Program, state: State, agent: int, op: Operation) -> Step:
    bar, count = op[BARRIER], op[COUNT]
    if program.ctas > 1 and _exited(program, state, agent, bar):
        return _exited_target(state, agent, bar)
    before = state.barriers[bar]
    effect = mbarrier.arrive_drop(before, count, op[EXPECT])
    return _apply_effect(state, agent, bar, effect, count, before.pending, op[TOKEN])


def _arrive_no_complete(program: Program, state: State, agent: int, op: Operation) -> Step:
    bar, count = op[BARRIER], op[COUNT]
    if program.ctas > 1 and _exited(program, state, agent, bar):
        return _exited_target(state, agent, bar)
    before = state.barriers[bar]
    effect = mbarrier.arrive_no_complete(before, count)
    return _apply_effect(state, agent, bar, effect, count, before.pending, op[NO_COMPLETE_TOKEN])


def _expect_tx(program: Program, state: State, agent: int, op: Operation) -> Step:
    bar, nbytes = op[BARRIER], op[TX_BYTES]
    if program.ctas > 1 and _exited(program, state, agent, bar):
        return _exited_target(state, agent, bar)
    before = state.barriers[bar]
    return _apply_effect(state, agent, bar, mbarrier.add_tx(before, nbytes), nbytes, before.tx)


def _complete_tx(program: Program, state: State, agent: int, op: Operation) -> Step:
    bar, nbytes = op[BARRIER], op[TX_BYTES]
    if program.ctas > 1 and _exited(program, state, agent, bar):
        return _exited_target(state, agent, bar)
    before = state.barriers[bar]
    return _apply_effect(state, agent, bar, mbarrier.add_tx(before, -nbytes), -nbytes, before.tx)


def _wait(_: Program, state: State, agent: int, op: Operation) -> Step:
    bar = op[BARRIER]
    before = state[3][bar]
    if before[4] != LIVE:
        return _unusable(state, agent, bar, before)
    if before[3] & 1 == op[PARITY]:
        return new(Step, (state, bar, -1, ()))
    return new(Step, (advance(state, agent), -1, -1, ()))


def _wait_unless(program: Program, state: State, agent: int, op: Operation) -> Step:
    if op[ANSWER] >= 0 and state.registers[agent][op[ANSWER]]:
        return Step(advance(state, agent))
    return _wait(program, state, agent, op)


def _test(_: Program, state: State, agent: int, op: Operation) -> Step:
    bar = op[BARRIER]
    before = state.barriers[bar]
    if before.life != LIVE:
        return _unusable(state, agent, bar, before)
    return Step(advance(write_register(state, agent, op[ANSWER], int(mbarrier.passes(before, op[PARITY]))), agent))


def _wait_state(_: Program, state: State, agent: int, op: Operation) -> Step:
    bar = op[BARRIER]
    before = state.barriers[bar]
    if before.life != LIVE:
        return _unusable(state, agent, bar, before)
    passed, fault = mbarrier.token_passes(before, state.registers[agent][op[AWAITED_TOKEN]])
    if not passed and fault is None:
        return Step(state, blocked=bar)
    return Step(advance(state, agent), faults=_stale(state, agent, bar, before, fault))


def _test_state(_: Program, state: State, agent: int, op: Operation) -> Step:
    bar = op[BARRIER]
    before = state.barriers[bar]
    if before.life != LIVE:
        return _unusable(state, agent, bar, before)
    passed, fault = mbarrier.token_passes(before, state.registers[agent][op[TESTED_TOKEN]])
    after = advance(write_register(state, agent, op[ANSWER], int(passed)), agent)
    return Step(after, faults=_stale(state, agent, bar, before, fault))


def _pending_count(_: Program, state: State, agent: int, op: Operation) -> Step:
    held = state.registers[agent][op[COUNTED_TOKEN]]
    return Step(advance(write_register(state, agent, op[PENDING], mbarrier.token_pending(held)), agent))


def _cp_async_arrive(_: Program, state: State, agent: int, op: Operation) -> Step:
    """Pending rises now unless noinc; one arrival of all lanes when the agent's earlier cp.async have landed."""
    bar, lanes, noinc = op[BARRIER], op[CP_ASYNC_LANES], op[NOINC]
    before = state.barriers[bar]
    if noinc:
        effect: mbarrier.Effect = (before, False, mbarrier.unusable(before))
    else:
        effect = mbarrier.raise_pending(before, lanes)
    moved = _apply_effect(state, agent, bar, effect, lanes, before.pending)
    return moved if effect[2] else launch(moved.state, agent, state.pcs[agent], Engine.CP_ASYNC, bar, lanes)


def _exited(program: Program, state: State, agent: int, bar: int) -> bool:
    """True if the barrier is in another CTA of the cluster, none of whose agents runs any more."""
    cta = program.barriers[bar].cta
    return cta != program.agents[agent].cta and exited(program, state, cta)


def _exited_target(state: State, agent: int, bar: int) -> Step:
    return Step(advance(state, agent), faults=(Fault(FaultKind.EXITED_CTA, agent, state.pcs[agent], bar),))


def _unusable(state: State, agent: int, bar: int, before: BarrierState) -> Step:
    kind = mbarrier.unusable(before)
    assert kind is not None
    return Step(advance(state, agent), faults=(Fault(kind, agent, state.pcs[agent], bar),))


def _stale(state: State, agent: int, bar: int, before: BarrierState, kind: FaultKind | None) -> tuple[Fault, ...]:
    return () if kind is None else (Fault(kind, agent, state.pcs[agent], bar, before.done),)


MBARRIER_RULES: dict[Op, Rule] = {
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
}
