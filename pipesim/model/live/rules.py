"""The rules in place: what the operations that run most often for every tile do to the lists of a running program.

Each rule decides first whether its operation is usual; if not, nothing has been changed yet and the pure rule carries
it out. The word of a barrier, conflicts and what a read finds are asked where the pure rules ask.
"""

from pipesim.model import barrier as mbarrier
from pipesim.model.barrier import LIVE
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import (
    ACCESS,
    ASYNC_ACCESS,
    ASYNC_BYTES,
    ASYNC_ITEM,
    BARRIER,
    COMMIT_BARRIER,
    COPY_MASK,
    COUNT,
    ENGINE,
    EXPECT,
    GROUPS,
    ITEM,
    NO_EFFECT,
    PARITY,
    TOKEN,
    TX_BYTES,
)
from pipesim.model.live.live_run import MOVED, LiveRule, LiveRun, ObservedRun, blocked_on
from pipesim.model.ops import IN_ORDER, Engine, Op, Operation
from pipesim.model.rules.transfer import conflict, look, ordered
from pipesim.model.state import TMA, TORN, Flight, new, own_channel

_ENGINES = len(Engine)


def rules_of(live: LiveRun) -> list[LiveRule]:
    """The rule of each operation, by its code, for this run."""
    rules: list[LiveRule] = [_purely] * (max(Op) + 1)
    if not isinstance(live, ObservedRun):
        for op, rule in RULES.items():
            rules[op] = rule
    return rules


def _purely(live: LiveRun, agent: int, op: Operation) -> int:
    return live.purely(agent, op)


def _pass(live: LiveRun, agent: int, _: Operation) -> int:
    live.pcs[agent] += 1
    return MOVED


# mbarriers


def _apply_effect(live: LiveRun, agent: int, bar: int, effect: mbarrier.Effect, register: int = -1) -> int:
    """Put the effect of an operation on a barrier into the lists; one that breaks a rule is left to the pure rule."""
    after, completed, fault = effect
    if fault is not None:
        return live.purely(agent, ())
    if register >= 0:
        live.registers[agent][register] = mbarrier.token(live.barriers[bar])
    live.barriers[bar] = after
    live.pcs[agent] += 1
    return bar if completed else MOVED


def _arrive(live: LiveRun, agent: int, op: Operation) -> int:
    bar = op[BARRIER]
    if live.clusters and not live.all_ctas_run():
        return live.purely(agent, op)
    return _apply_effect(live, agent, bar, mbarrier.arrive(live.barriers[bar], op[COUNT], op[EXPECT]), op[TOKEN])


def _expect_tx(live: LiveRun, agent: int, op: Operation) -> int:
    bar, nbytes = op[BARRIER], op[TX_BYTES]
    if live.clusters and not live.all_ctas_run():
        return live.purely(agent, op)
    return _apply_effect(live, agent, bar, mbarrier.add_tx(live.barriers[bar], nbytes))


def _wait(live: LiveRun, agent: int, op: Operation) -> int:
    bar = op[BARRIER]
    word = live.barriers[bar]
    if word[4] != LIVE:
        return live.purely(agent, op)
    if word[3] & 1 == op[PARITY]:
        return blocked_on(bar)
    live.pcs[agent] += 1
    return MOVED


# transfers


def _tma_load(live: LiveRun, agent: int, op: Operation) -> int:
    bar, access, nbytes, item, mask = op[BARRIER], op[ASYNC_ACCESS], op[ASYNC_BYTES], op[ASYNC_ITEM], op[COPY_MASK]
    if mask or (live.clusters and not live.all_ctas_run()):
        return live.purely(agent, op)
    return _open_access(live, agent, TMA, bar, access, nbytes, item, writes=True)


def _transfer_read(live: LiveRun, agent: int, op: Operation) -> int:
    access, item, engine = op[ASYNC_ACCESS], op[ASYNC_ITEM], op[ENGINE]
    if (live.clusters and not live.all_ctas_run()) or look(live.program, live, agent, access, item, engine):
        return live.purely(agent, op)
    return _open_access(live, agent, engine, -1, access, op[ASYNC_BYTES], item, writes=False)


def _transfer_write(live: LiveRun, agent: int, op: Operation) -> int:
    if live.clusters and not live.all_ctas_run():
        return live.purely(agent, op)
    return _open_access(live, agent, op[ENGINE], -1, op[ASYNC_ACCESS], op[ASYNC_BYTES], op[ASYNC_ITEM], writes=True)


def _open_access(
    live: LiveRun, agent: int, engine: int, bar: int, access: int, nbytes: int, item: int, *, writes: bool
) -> int:
    """A transfer is issued: its access is open from here on."""
    first, end = live.cells_of[access]
    flights, pcs = live.flights, live.pcs
    pc = pcs[agent]
    if flights:
        others = flights
        if engine in IN_ORDER:
            others = [f for f in flights if not ordered(f, agent, engine, first, end, writes=writes)]
        open_ = conflict(others, first, end, writes=writes)
        if open_ is not None:
            live.faults = (Fault(FaultKind.RACE, agent, pc, bar, access, 0, open_.agent, open_.pc),)
    group = 0 if engine == TMA else live.commits[agent * _ENGINES + engine]
    live.issued += 1
    flights.append(new(Flight, (agent, pc, bar, nbytes, 0, engine, group, first, end, writes, item, 0, live.issued)))
    if writes:
        live.cells[first:end] = (TORN,) * (end - first)
    pcs[agent] = pc + 1
    return MOVED


def _commit(live: LiveRun, agent: int, op: Operation) -> int:
    engine, bar = op[ENGINE], op[COMMIT_BARRIER]
    pc = live.pcs[agent]
    live.pcs[agent] = pc + 1
    if bar >= 0:
        live.issued += 1
        issued = live.issued
        live.flights.append(new(Flight, (agent, pc, bar, 0, 1, engine, -1, 0, 0, False, 0, issued, issued)))
        return MOVED
    live.commits[agent * _ENGINES + engine] += 1
    return own_channel(live.program, agent) if engine == Engine.WGMMA else MOVED


def _wait_group(live: LiveRun, agent: int, op: Operation) -> int:
    engine, commits = op[ENGINE], live.commits
    limit = commits[agent * _ENGINES + engine] - op[GROUPS]
    for member in live.program.warp_groups[agent] if engine == Engine.WGMMA else (agent,):
        if commits[member * _ENGINES + engine] < limit:
            return blocked_on(own_channel(live.program, member))
        for f in live.flights:
            if f[0] == member and f[5] == engine and 0 <= f[6] < limit:
                return blocked_on(own_channel(live.program, member))
    live.pcs[agent] += 1
    return MOVED


def _read(live: LiveRun, agent: int, op: Operation) -> int:
    item = op[ITEM]
    first, end = live.cells_of[op[ACCESS]]
    for held in live.cells[first:end]:
        if held < 0 or (item >= 0 and held != item):
            return live.purely(agent, op)
    if live.clusters and not live.all_ctas_run():
        return live.purely(agent, op)
    live.close(agent)
    live.pcs[agent] += 1
    return MOVED


#: The operations with a rule in place; the others go through the pure one.
RULES: dict[Op, LiveRule] = {
    Op.ARRIVE: _arrive,
    Op.EXPECT_TX: _expect_tx,
    Op.WAIT: _wait,
    Op.TMA_LOAD: _tma_load,
    Op.TRANSFER_READ: _transfer_read,
    Op.TRANSFER_WRITE: _transfer_write,
    Op.COMMIT: _commit,
    Op.WAIT_GROUP: _wait_group,
    Op.READ: _read,
    **{Op(op): _pass for op in NO_EFFECT},
}
