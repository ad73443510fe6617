"""How a correction changes an operand, or puts another operation in the place of one: a row for each kind."""

from collections import Counter
from collections.abc import Callable, Collection, Set
from typing import NamedTuple

from pipesim.model.edits import Listing, with_expected_bytes
from pipesim.model.groups import (
    BY_PARITY,
    MAY_ACQUIRE,
    MAY_RELEASE,
    MULTICASTS,
    ON_BARRIER,
    ON_NAMED_BARRIER,
    PARITY_WAITS,
    TAKES_REGISTERS,
)
from pipesim.model.ops import Engine, Op, OperandName, Operation, Order, operand, semantics, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import SourceInstruction
from pipesim.prove.repair.kinds import ROWS, SCOPES, TO_THE_OTHER, Repair, RepairKind
from pipesim.prove.repair.sites import (
    AgentCode,
    barrier_of,
    ring_of,
    stages_of,
)

K = RepairKind


def of_operand(me: AgentCode, repair: Repair) -> Listing:
    """The operations of one agent, each changed by itself."""
    if repair.kind is K.EXPECT and repair.past.op:
        sizes = bytes_of_expects(me.program, me.agent, repair.group)
        return me.replaced({pc: with_expected_bytes(me.code[pc], nbytes) for pc, nbytes in sizes.items()})
    row = CHANGES[repair.kind]
    groups = set(repair.group.split(",")) if row.of_group else set()
    here = (pc for pc, op in enumerate(me.code) if op[0] in row.ops)
    if repair.at.op or repair.at.line:
        here = (pc for pc in here if _is_at(me.sites[pc], repair.at))
    if row.of_group:
        here = (pc for pc in here if me.program.barriers[barrier_of(me.code[pc])].name in groups)
    return me.replaced({pc: row.change(me, repair, me.code[pc]) for pc in here})


def _is_at(site: SourceInstruction, at: SourceInstruction) -> bool:
    """True for the instruction, and for all of its line where it names nothing that they are about."""
    if at.about:
        return site == at
    return site.op == (at.op or site.op) and site.line in at.line.split("\n")  # several, of what belongs together


def may_expect(op: Operation, copied: Collection[int] = ()) -> bool:
    """True for what expects bytes, and for an arrive on a barrier of the agent's own copies, which could."""
    return op[0] == Op.EXPECT_TX or (op[0] == Op.ARRIVE and (operand(op, "expect") > 0 or barrier_of(op) in copied))


def bytes_of_expects(program: Program, agent: int, group: str) -> dict[int, int]:
    """For each expect of an agent on a group the bytes that it copies with that barrier until it expects more there."""
    mine = set(ring_of(program, agent, group))
    found: dict[int, int] = {}
    last: dict[int, int] = {}
    for pc, op in enumerate(program.code[agent]):
        if op[0] == Op.TMA_LOAD and barrier_of(op) in last:
            found[last[barrier_of(op)]] += operand(op, "bytes")
        elif may_expect(op) and barrier_of(op) in mine:
            last[barrier_of(op)] = pc
            found[pc] = 0
    return found


def multicasts(program: Program, op: Operation, repair: Repair) -> bool:
    """True for a multicast (``was`` 0: another copy) that is counted on barriers of the group."""
    copies = op[0] in MULTICASTS and (operand(op, "cta_mask") > 0) is (repair.was > 0)
    return copies and program.barriers[barrier_of(op)].name == repair.group


def _expect(me: AgentCode, repair: Repair, op: Operation) -> Operation:
    copied = {barrier_of(each) for each in me.code if each[0] == Op.TMA_LOAD}
    return with_expected_bytes(op, repair.value) if may_expect(op, copied) else op


def _lanes(_: AgentCode, repair: Repair, op: Operation) -> Operation:
    """``value`` lanes instead of ``was``: arrivals and expected bytes are counted for each."""
    if operand(op, "count") % repair.was:
        return op
    count, expect = (operand(op, name) * repair.value // repair.was for name in ("count", "expect"))
    return with_operand(with_operand(op, "count", count), "expect", expect) if count else op


def _number(name: OperandName) -> Callable[[AgentCode, Repair, Operation], Operation]:
    """Another number in the place of the one that is wrong."""

    def change(_: AgentCode, repair: Repair, op: Operation) -> Operation:
        return with_operand(op, name, repair.value) if operand(op, name) == repair.was else op

    return change


def _threads(me: AgentCode, repair: Repair, op: Operation) -> Operation:
    wanted = str(me.program.named_barrier(op)) in repair.group.split(",")
    return with_operand(op, "threads", repair.value) if wanted else op


def _depth(_: AgentCode, repair: Repair, op: Operation) -> Operation:
    """As many groups as are given, or (below 0) one fewer than now, however many."""
    was = operand(op, "groups")
    wanted = operand(op, "engine") == int(repair.group) and (repair.value < 0 or was == repair.was)
    return with_operand(op, "groups", repair.value if repair.value >= 0 else max(was - 1, 0)) if wanted else op


def _mask(me: AgentCode, repair: Repair, op: Operation) -> Operation:
    if not multicasts(me.program, op, repair):
        return op
    step, own = -repair.value, me.cta
    row = step - ROWS  # with the agent's own CTA, or its column, or those that are given
    mine = (r for r in range(me.program.ctas) if (r // row == own // row if row > 0 else not (r - own) % step))
    return with_operand(op, "cta_mask", sum(1 << r for r in mine) if step > 0 else repair.value)


def _on_end(_: AgentCode, repair: Repair, op: Operation) -> Operation:
    """The arrival when what the engine was given before has ended."""
    if repair.value == Engine.CP_ASYNC:
        return (int(Op.CP_ASYNC_ARRIVE), barrier_of(op), operand(op, "count"), 1)
    return (int(Op.COMMIT), repair.value, barrier_of(op))


def _syncs(me: AgentCode, repair: Repair, op: Operation) -> Operation:
    """A wait as well; of one instruction, or of all at a named barrier."""
    return (int(Op.BAR_SYNC), *op[1:]) if str(me.program.named_barrier(op)) in repair.group.split(",") else op


def _stronger(_: AgentCode, repair: Repair, op: Operation) -> Operation:
    """An order that releases or acquires, and a scope that has those in it who wait, or signal."""
    if op[0] != repair.at.op and not repair.past.op:
        return op
    release = Order.ACQ_REL if repair.past.op else Order.RELEASE  # an atomic is both
    order = release if op[0] in MAY_RELEASE else Order.ACQUIRE
    return with_operand(op, "semantics", semantics(order, SCOPES[repair.value]))


def _shift(me: AgentCode, repair: Repair, op: Operation) -> Operation:
    """The barrier that is this many stages further in its group, or among the named barriers of the instruction."""
    if op[0] in ON_NAMED_BARRIER:
        named, own = me.program.named_barriers, str(me.program.named_barrier(op))
        numbers = repair.group.split(",")
        to = numbers[(numbers.index(own) + repair.value) % len(numbers)] if own in numbers else -1
        other = (me.cta, int(to))  # which another CTA of the cluster need not have
        return with_operand(op, "named_barrier", named.index(other)) if other in named else op
    at = me.program.barriers[barrier_of(op)]
    if at.name != repair.group:
        return op
    there = stages_of(me.program, me.agent, at.name, at.cta)
    stages = sorted(there)
    if repair.was == TO_THE_OTHER:
        turn = at.stage % repair.value
        to = at.stage - turn + (turn + 1) % repair.value
        return with_operand(op, "barrier", there[to]) if to in there else op
    return with_operand(op, "barrier", there[stages[(stages.index(at.stage) + repair.value) % len(stages)]])


class _NumberChange(NamedTuple):
    """Which operations a kind changes, on all barriers or (``of_group``) those of its group, and how."""

    ops: Set[int]
    change: Callable[[AgentCode, Repair, Operation], Operation]
    of_group: bool = False


_ARRIVES = {int(Op.ARRIVE)}
CHANGES: dict[RepairKind, _NumberChange] = {
    K.COUNT: _NumberChange({int(Op.INIT)}, _number("count"), of_group=True),
    K.EXPECT: _NumberChange({int(Op.ARRIVE), int(Op.EXPECT_TX)}, _expect, of_group=True),
    K.REGISTERS: _NumberChange(TAKES_REGISTERS, _number("registers")),
    K.LANES: _NumberChange(_ARRIVES, _lanes, of_group=True),
    K.THREADS: _NumberChange(ON_NAMED_BARRIER, _threads),
    K.DEPTH: _NumberChange({int(Op.WAIT_GROUP)}, _depth),
    K.MASK: _NumberChange(MULTICASTS, _mask),
    K.ARRIVES_TOO: _NumberChange(
        {int(Op.EXPECT_TX)}, lambda _, __, op: (int(Op.ARRIVE), barrier_of(op), 1, operand(op, "bytes"), -1, 0)
    ),
    K.STAY: _NumberChange({int(Op.ARRIVE_DROP)}, lambda _, __, op: (int(Op.ARRIVE), *op[1:]), of_group=True),
    K.NOINC: _NumberChange({int(Op.CP_ASYNC_ARRIVE)}, lambda _, __, op: with_operand(op, "noinc", 1), of_group=True),
    K.ON_END: _NumberChange(_ARRIVES, _on_end, of_group=True),
    K.SYNCS: _NumberChange({int(Op.BAR_ARRIVE)}, _syncs),
    K.STRONGER: _NumberChange(MAY_RELEASE | MAY_ACQUIRE, _stronger),
    K.SHIFT: _NumberChange(ON_BARRIER | ON_NAMED_BARRIER, _shift),
}


# parities, which depend on the waits before


def in_turn(me: AgentCode, repair: Repair) -> Listing:
    """Every wait on the group, or its stage ``was``, with the parity of its turn; with STAGES also its stage."""
    stages = {stage: bar for stage, bar in me.stages(repair.group).items() if repair.was in (-1, stage)}
    order = [stages[stage] for stage in sorted(stages)]
    turns: Counter[int] = Counter()
    found: dict[int, Operation] = {}
    for place, op in enumerate(me.code):
        if op[0] not in BY_PARITY or barrier_of(op) not in order:
            continue
        if repair.kind is K.STAGES:
            lap, stage = divmod(turns.total(), len(order))
            barrier = order[stage]
        else:
            barrier, lap = barrier_of(op), turns[barrier_of(op)]
        found[place] = with_operand(with_operand(op, "barrier", barrier), "parity", (repair.value + lap) & 1)
        turns[barrier_of(op)] += op[0] in PARITY_WAITS  # a try belongs to the wait after it
    return me.replaced(found)


def in_laps(me: AgentCode, _: Repair) -> Listing:
    """Every wait with the parity of its turn; the first on each barrier keeps the one that it has."""
    turns: dict[int, int] = {}
    found: dict[int, Operation] = {}
    for place, op in enumerate(me.code):
        if op[0] in BY_PARITY:
            turn = turns.setdefault(barrier_of(op), operand(op, "parity"))
            found[place] = with_operand(op, "parity", turn)
            turns[barrier_of(op)] ^= op[0] in PARITY_WAITS
    return me.replaced(found)
