"""What the mbarrier operations do to a state; what they do to one barrier word is in ``barrier``."""

from __future__ import annotations

from pipesim.model import barrier as mbarrier
from pipesim.model.barrier import LIVE, BarrierState
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.ops import Engine, Op, Operation
from pipesim.model.positions import (
    ANSWER,
    AWAITED_TOKEN,
    BARRIER,
    COUNT,
    COUNTED_TOKEN,
    CP_ASYNC_LANES,
    EXPECT,
    NO_COMPLETE_TOKEN,
    NOINC,
    PARITY,
    PENDING,
    TESTED_TOKEN,
    TOKEN,
    TX_BYTES,
)
from pipesim.model.program import Program
from pipesim.model.rules_transfer import launch
from pipesim.model.state import Rule, State, Step, advance, exited, new, write_register


def _changed(
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
    return _changed(state, agent, bar, mbarrier.init(state.barriers[bar], count), count, mbarrier.MAX_COUNT)


def _inval(_: Program, state: State, agent: int, op: Operation) -> Step:
    bar = op[BARRIER]
    before = state.barriers[bar]
    return _changed(state, agent, bar, mbarrier.inval(before), before.pending, before.expected)


def _arrive(program: Program, state: State, agent: int, op: Operation) -> Step:
    bar, count = op[BARRIER], op[COUNT]
    if program.ctas > 1 and _exited(program, state, agent, bar):
        return _gone(state, agent, bar)
    before = state.barriers[bar]
    return _changed(state, agent, bar, mbarrier.arrive(before, count, op[EXPECT]), count, before.pending, op[TOKEN])


def _arrive_drop(program: Program, state: State, agent: int, op: Operation) -> Step:
    bar, count = op[BARRIER], op[COUNT]
    if program.ctas > 1 and _exited(program, state, agent, bar):
        return _gone(state, agent, bar)
    before = state.barriers[bar]
    effect = mbarrier.arrive_drop(before, count, op[EXPECT])
    return _changed(state, agent, bar, effect, count, before.pending, op[TOKEN])


def _arrive_no_complete(program: Program, state: State, agent: int, op: Operation) -> Step:
    bar, count = op[BARRIER], op[COUNT]
    if program.ctas > 1 and _exited(program, state, agent, bar):
        return _gone(state, agent, bar)
    before = state.barriers[bar]
    effect = mbarrier.arrive_no_complete(before, count)
    return _changed(state, agent, bar, effect, count, before.pending, op[NO_COMPLETE_TOKEN])


def _expect_tx(program: Program, state: State, agent: int, op: Operation) -> Step:
    bar, nbytes = op[BARRIER], op[TX_BYTES]
    if program.ctas > 1 and _exited(program, state, agent, bar):
        return _gone(state, agent, bar)
    before = state.barriers[bar]
    return _changed(state, agent, bar, mbarrier.add_tx(before, nbytes), nbytes, before.tx)


def _complete_tx(program: Program, state: State, agent: int, op: Operation) -> Step:
    bar, nbytes = op[BARRIER], op[TX_BYTES]
    if program.ctas > 1 and _exited(program, state, agent, bar):
        return _gone(state, agent, bar)
    before = state.barriers[bar]
    return _changed(state, agent, bar, mbarrier.add_tx(before, -nbytes), -nbytes, before.tx)


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
    moved = _changed(state, agent, bar, effect, lanes, before.pending)
    return moved if effect[2] else launch(moved.state, agent, state.pcs[agent], Engine.CP_ASYNC, bar, lanes)


def _exited(program: Program, state: State, agent: int, bar: int) -> bool:
    """True if the barrier lies in another CTA of the cluster, none of whose agents runs any more."""
    cta = program.barriers[bar].cta
    return cta != program.agents[agent].cta and exited(program, state, cta)


def _gone(state: State, agent: int, bar: int) -> Step:
    return Step(advance(state, agent), faults=(Fault(FaultKind.EXITED_CTA, agent, state.pcs[agent], bar),))


def _unusable(state: State, agent: int, bar: int, before: BarrierState) -> Step:
    kind = mbarrier.unusable(before)
    assert kind is not None
    return Step(advance(state, agent), faults=(Fault(kind, agent, state.pcs[agent], bar),))


def _stale(state: State, agent: int, bar: int, before: BarrierState, kind: FaultKind | None) -> tuple[Fault, ...]:
    return () if kind is None else (Fault(kind, agent, state.pcs[agent], bar, before.done),)


RULES: dict[Op, Rule] = {
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
