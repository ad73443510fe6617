"""Corrections that change one operand, or put another operation in the place of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from pipesim.model.edits import Listing, listing, replace_operations, with_expected_bytes
from pipesim.model.groups import (
    BY_PARITY,
    MAY_ACQUIRE,
    MAY_RELEASE,
    MULTICASTS,
    ON_NAMED_BARRIER,
    PARITY_WAITS,
    TAKES_REGISTERS,
)
from pipesim.model.ops import Engine, Op, Operation, Order, operand, semantics, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import SourceInstruction
from pipesim.prove.repair.kinds import ROWS, SCOPES, TO_THE_OTHER, Repair, RepairKind
from pipesim.prove.repair.sites import barriers_of, site_of, stages_of

_Change = Callable[[Program, int, Repair, Operation], Operation]


def of_operand(program: Program, agent: int, repair: Repair) -> Listing:
    """The operations of one agent, each changed by itself."""
    change = CHANGES[repair.kind]
    before = listing(program, agent)
    if repair.kind is RepairKind.EXPECT and repair.past.op:
        sizes = bytes_of_expects(program, agent, repair.group)
        new = {pc: with_expected_bytes(before.code[pc], nbytes) for pc, nbytes in sizes.items()}
        return replace_operations(before, new)
    here = {place: change(program, agent, repair, op) for place, op in enumerate(before.code)}
    if repair.at.op or repair.at.line:
        here = {place: op for place, op in here.items() if _is_at(site_of(program, agent, place), repair.at)}
    return replace_operations(before, here)


def _is_at(site: SourceInstruction, at: SourceInstruction) -> bool:
    """True for the instruction, and for all of its line where it names nothing that they are about."""
    if at.about:
        return site == at
    return site.op == (at.op or site.op) and site.line in at.line.split("\n")  # several, of what belongs together


def may_expect(op: Operation, copied: set[int]) -> bool:
    """True for what expects bytes, and for an arrive on a barrier of the agent's own copies, which could."""
    return op[0] == Op.EXPECT_TX or (
        op[0] == Op.ARRIVE and (operand(op, "expect") > 0 or operand(op, "barrier") in copied)
    )


def bytes_of_expects(program: Program, agent: int, group: str) -> dict[int, int]:
    """For each expect of an agent on a group the bytes that it copies with that barrier until it expects more there."""
    mine = set(stages_of(program, agent, group).values())
    found: dict[int, int] = {}
    last: dict[int, int] = {}
    for pc, op in enumerate(program.code[agent]):
        if op[0] == Op.TMA_LOAD and operand(op, "barrier") in last:
            found[last[operand(op, "barrier")]] += operand(op, "bytes")
        elif may_expect(op, set()) and operand(op, "barrier") in mine:
            last[operand(op, "barrier")] = pc
            found[pc] = 0
    return found


def multicasts(program: Program, op: Operation, repair: Repair) -> bool:
    """True for a multicast (``was`` 0: another copy) that is counted on barriers of the group."""
    copies = op[0] in MULTICASTS and (operand(op, "cta_mask") > 0) is (repair.was > 0)
    return copies and program.barriers[operand(op, "barrier")].name == repair.group


def of_group(program: Program, op: Operation, group: str) -> bool:
    """True for an operation on a barrier of this group, in any CTA."""
    return operand(op, "barrier") in barriers_of(program, group)


def _count(program: Program, _: int, repair: Repair, op: Operation) -> Operation:
    wanted = op[0] == Op.INIT and of_group(program, op, repair.group) and operand(op, "count") == repair.was
    return with_operand(op, "count", repair.value) if wanted else op


def _expect(program: Program, agent: int, repair: Repair, op: Operation) -> Operation:
    copied = {operand(each, "barrier") for each in program.code[agent] if each[0] == Op.TMA_LOAD}
    wanted = may_expect(op, copied) and operand(op, "barrier") in stages_of(program, agent, repair.group).values()
    return with_expected_bytes(op, repair.value) if wanted else op


def _lanes(program: Program, _: int, repair: Repair, op: Operation) -> Operation:
    """``value`` lanes instead of ``was``: arrivals and expected bytes are counted for each."""
    if op[0] == Op.CP_ASYNC_ARRIVE:
        return with_operand(op, "lanes", repair.value)
    if op[0] != Op.ARRIVE or not any(of_group(program, op, group) for group in repair.group.split(",")):
        return op
    if operand(op, "count") % repair.was:
        return op
    count, expect = (operand(op, name) * repair.value // repair.was for name in ("count", "expect"))
    return with_operand(with_operand(op, "count", count), "expect", expect) if count else op


def _registers(_: Program, __: int, repair: Repair, op: Operation) -> Operation:
    wanted = op[0] in TAKES_REGISTERS and operand(op, "registers") == repair.was
    return with_operand(op, "registers", repair.value) if wanted else op


def _threads(program: Program, _: int, repair: Repair, op: Operation) -> Operation:
    wanted = str(program.named_barrier(op)) in repair.group.split(",")
    return with_operand(op, "threads", repair.value) if wanted else op


def _depth(_: Program, __: int, repair: Repair, op: Operation) -> Operation:
    wanted = op[0] == Op.WAIT_GROUP and operand(op, "engine") == int(repair.group)
    if repair.value < 0:  # one fewer than now, however many
        return with_operand(op, "groups", max(operand(op, "groups") - 1, 0)) if wanted else op
    return with_operand(op, "groups", repair.value) if wanted and operand(op, "groups") == repair.was else op


def _mask(program: Program, agent: int, repair: Repair, op: Operation) -> Operation:
    if not multicasts(program, op, repair):
        return op
    step, own = -repair.value, program.agents[agent].cta
    row = step - ROWS  # with the agent's own CTA, or its column, or those that are given
    mine = (r for r in range(program.ctas) if (r // row == own // row if row > 0 else not (r - own) % step))
    return with_operand(op, "cta_mask", sum(1 << r for r in mine) if step > 0 else repair.value)


def _stay(program: Program, _: int, repair: Repair, op: Operation) -> Operation:
    wanted = op[0] == Op.ARRIVE_DROP and of_group(program, op, repair.group)
    return (int(Op.ARRIVE), *op[1:]) if wanted else op


def _arrives_too(_: Program, __: int, ___: Repair, op: Operation) -> Operation:
    if op[0] != Op.EXPECT_TX:
        return op
    return (int(Op.ARRIVE), operand(op, "barrier"), 1, operand(op, "bytes"), -1, 0)


def _noinc(program: Program, _: int, repair: Repair, op: Operation) -> Operation:
    wanted = op[0] == Op.CP_ASYNC_ARRIVE and of_group(program, op, repair.group)
    return with_operand(op, "noinc", 1) if wanted else op


def _on_end(program: Program, _: int, repair: Repair, op: Operation) -> Operation:
    """The arrival when what the engine was given before has ended."""
    if op[0] != Op.ARRIVE or not of_group(program, op, repair.group):
        return op
    if repair.value == Engine.CP_ASYNC:
        return (int(Op.CP_ASYNC_ARRIVE), operand(op, "barrier"), operand(op, "count"), 1)
    return (int(Op.COMMIT), repair.value, operand(op, "barrier"))


def _syncs(program: Program, _: int, repair: Repair, op: Operation) -> Operation:
    """A wait as well; of one instruction, or of all at a named barrier."""
    wanted = op[0] == Op.BAR_ARRIVE and str(program.named_barrier(op)) in repair.group.split(",")
    return (int(Op.BAR_SYNC), *op[1:]) if wanted else op


def _stronger(_: Program, __: int, repair: Repair, op: Operation) -> Operation:
    """An order that releases or acquires, and a scope that has those in it who wait, or signal."""
    if op[0] != repair.at.op and not (repair.past.op and op[0] in MAY_RELEASE | MAY_ACQUIRE):
        return op
    release = Order.ACQ_REL if repair.past.op else Order.RELEASE  # an atomic is both
    order = release if op[0] in MAY_RELEASE else Order.ACQUIRE
    return with_operand(op, "semantics", semantics(order, SCOPES[repair.value]))


def _shift(program: Program, agent: int, repair: Repair, op: Operation) -> Operation:
    """The barrier that is this many stages further in its group, or among the named barriers of the instruction."""
    if op[0] in ON_NAMED_BARRIER and op[0] == repair.at.op:
        cta, named = program.agents[agent].cta, program.named_barriers
        numbers = [int(number) for number in repair.group.split(",")]
        if program.named_barrier(op) not in numbers:
            return op
        to = numbers[(numbers.index(program.named_barrier(op)) + repair.value) % len(numbers)]
        other = (cta, to)  # which another CTA of the cluster need not have
        return with_operand(op, "named_barrier", named.index(other)) if other in named else op
    together = not repair.at.op and (op[0] == Op.TMA_LOAD or may_expect(op, set()))
    if not (together or op[0] == repair.at.op) or not of_group(program, op, repair.group):
        return op
    at = program.barriers[operand(op, "barrier")]
    there = stages_of(program, agent, at.name, at.cta)
    stages = sorted(there)
    if repair.was == TO_THE_OTHER:
        turn = at.stage % repair.value
        to = at.stage - turn + (turn + 1) % repair.value
        return with_operand(op, "barrier", there[to]) if to in there else op
    return with_operand(op, "barrier", there[stages[(stages.index(at.stage) + repair.value) % len(stages)]])


CHANGES: dict[RepairKind, _Change] = {
    RepairKind.COUNT: _count,
    RepairKind.EXPECT: _expect,
    RepairKind.REGISTERS: _registers,
    RepairKind.LANES: _lanes,
    RepairKind.THREADS: _threads,
    RepairKind.DEPTH: _depth,
    RepairKind.MASK: _mask,
    RepairKind.ARRIVES_TOO: _arrives_too,
    RepairKind.STAY: _stay,
    RepairKind.NOINC: _noinc,
    RepairKind.ON_END: _on_end,
    RepairKind.SYNCS: _syncs,
    RepairKind.STRONGER: _stronger,
    RepairKind.SHIFT: _shift,
}


# parities, which depend on the waits before


def in_turn(program: Program, agent: int, repair: Repair) -> Listing:
    """Every wait on the group, or its stage ``was``, with the parity of its turn; with STAGES also its stage."""
    before, stages = listing(program, agent), stages_of(program, agent, repair.group)
    stages = stages if repair.was < 0 else {stage: bar for stage, bar in stages.items() if stage == repair.was}
    mine, order = set(stages.values()), [stages[stage] for stage in sorted(stages)]
    turns: Counter[int] = Counter()
    all_turns = 0
    found: dict[int, Operation] = {}
    for place, op in enumerate(before.code):
        if op[0] not in BY_PARITY or operand(op, "barrier") not in mine:
            continue
        if repair.kind is RepairKind.STAGES:
            barrier, lap = order[all_turns % len(order)], all_turns // len(order)
        else:
            barrier, lap = operand(op, "barrier"), turns[operand(op, "barrier")]
        found[place] = with_operand(with_operand(op, "barrier", barrier), "parity", (repair.value + lap) & 1)
        if op[0] in PARITY_WAITS:  # a try belongs to the wait after it
            turns[operand(op, "barrier")] += 1
            all_turns += 1
    return replace_operations(before, found)


def in_laps(program: Program, agent: int, _: Repair) -> Listing:
    """Every wait with the parity of its turn; the first on each barrier keeps the one that it has."""
    before = listing(program, agent)
    turns: dict[int, int] = {}
    found: dict[int, Operation] = {}
    for place, op in enumerate(before.code):
        if op[0] in BY_PARITY:
            turn = turns.setdefault(operand(op, "barrier"), operand(op, "parity"))
            found[place] = with_operand(op, "parity", turn)
            if op[0] in PARITY_WAITS:
                turns[operand(op, "barrier")] = 1 - turn
    return replace_operations(before, found)
