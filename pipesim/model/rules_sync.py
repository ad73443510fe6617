"""What named barriers, the cluster barrier, fences, jumps and marks do to a state."""

from __future__ import annotations

from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import NO_EFFECT
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.positions import JUMP_REGISTER, NAMED_BARRIER, NAMED_LANES, SKIP, THREADS, VALUE
from pipesim.model.program import Program
from pipesim.model.state import Rule, State, Step, advance, cluster_channel, new, pool_channel

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
    here = zip(state.cluster_held, state.pcs, program.code, strict=True)
    return all(held == generation or pc >= len(code) for held, pc, code in here)


def _setmaxnreg(program: Program, state: State, agent: int, op: Operation) -> Step:
    """Fewer registers are given back at once, more are waited for until they are free."""
    pools = program.register_pools
    if pools is None:
        return _pass(program, state, agent, op)
    channel = pool_channel(program, program.agents[agent].cta)
    if pools.missing(agent, state.pcs, operand(op, "registers")):
        return Step(state, blocked=channel)
    less = operand(op, "registers") < pools.of_thread(agent, state.pcs[agent])
    return Step(advance(state, agent), signalled=channel if less else -1)


def _jump_if(_: Program, state: State, agent: int, op: Operation) -> Step:
    taken = state.registers[agent][op[JUMP_REGISTER]] == op[VALUE]
    return Step(advance(state, agent, 1 + op[SKIP] if taken else 1))


def _pass(_: Program, state: State, agent: int, __: Operation) -> Step:
    """Fences order memory, marks carry names, work takes time: none changes a barrier, a tile or who may go on."""
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
