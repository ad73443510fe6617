"""Which corrections of :mod:`pipesim.prove.repair.edits` a program could have: read off its operations."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from pipesim.model.barrier import MAX_COUNT
from pipesim.model.edits import releases
from pipesim.model.groups import ON_NAMED_BARRIER, PARITY_WAITS
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import NAMED_BARRIERS, Program
from pipesim.prove.repair.edits import Repair, RepairKind, barriers_of, may_expect


def repairs(program: Program, groups: frozenset[str]) -> Iterator[Repair]:
    """The corrections of the program, those about one of these groups before others, the plainest kinds first."""
    every = list(_possible(program))
    yield from (repair for repair in every if repair.group in groups)
    yield from (repair for repair in every if repair.group not in groups)


def fences(reader: str, writer: str) -> Iterator[Repair]:
    """Proxy fences between what one role reads and another writes: of the reader, of everyone, of the writer."""
    yield Repair(RepairKind.FENCE, reader, "")
    yield Repair(RepairKind.FENCE, "", "")
    yield Repair(RepairKind.FENCE, writer, "", 1)


def _possible(program: Program) -> Iterator[Repair]:
    """Every correction of the list, the plainest kinds first; some of them may change nothing."""
    roles = dict.fromkeys(agent.role for agent in program.agents)
    groups = dict.fromkeys(barrier.name for barrier in program.barriers)
    waits = _pairs(program, lambda op: op[0] in PARITY_WAITS)
    released = _pairs(program, releases)
    yield from _counts(program)
    yield from _expects(program)
    yield from _masks(program)
    for kind in (RepairKind.PHASES, RepairKind.STAGES):
        yield from (Repair(kind, *pair, start) for pair in waits for start in (0, 1))
    yield from (Repair(RepairKind.ARRIVE, role, group) for role in roles for group in groups)
    yield from (Repair(RepairKind.DROP, *pair, nth) for pair in released for nth in (1, 0))
    yield from (Repair(RepairKind.STAY, *pair) for pair in _pairs(program, lambda op: op[0] == Op.ARRIVE_DROP))
    yield from (Repair(RepairKind.LATER, *pair) for pair in released)
    unasked = [(role, group) for role in roles for group in groups if (role, group) not in set(waits)]
    yield from (Repair(RepairKind.ACQUIRE, *pair, start) for pair in unasked for start in (1, 0))
    yield from _threads(program)
    yield from _depths(program)
    yield Repair(RepairKind.LAPS, "", "")


def _counts(program: Program) -> Iterator[Repair]:
    """The arrivals that a phase is given if everyone arrives once, and one more or less than now."""
    for group in dict.fromkeys(barrier.name for barrier in program.barriers):
        mine = barriers_of(program, group)
        inits = {
            operand(op, "count")
            for code in program.code
            for op in code
            if op[0] == Op.INIT and operand(op, "barrier") in mine
        }
        if len(inits) != 1 or not mine:
            continue
        (was,) = inits
        once = 0
        for code in program.code:
            mostly = Counter(
                operand(op, "count") for op in code if op[0] == Op.ARRIVE and operand(op, "barrier") == mine[0]
            ).most_common(1)
            once += mostly[0][0] if mostly else 0
        for count in dict.fromkeys((once, was - 1, was + 1, once * 2)):
            if 1 <= count <= MAX_COUNT and count != was:
                yield Repair(RepairKind.COUNT, "", group, count, was)


def _expects(program: Program) -> Iterator[Repair]:
    """The bytes that a role copies onto a barrier between two of its expects, where they are always as many."""
    found: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    expected: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for agent, code in enumerate(program.code):
        role, last = program.agents[agent].role, dict[int, int]()
        copied = {operand(op, "barrier") for op in code if op[0] == Op.TMA_LOAD and not operand(op, "cta_mask")}
        for op in code:
            if op[0] == Op.TMA_LOAD and not operand(op, "cta_mask"):
                last[operand(op, "barrier")] = last.get(operand(op, "barrier"), 0) + operand(op, "bytes")
            elif may_expect(op, copied):
                if operand(op, "barrier") in last:
                    found[role, program.barriers[operand(op, "barrier")].name].add(last[operand(op, "barrier")])
                last[operand(op, "barrier")] = 0
                expected[role, program.barriers[operand(op, "barrier")].name].add(_bytes(op))
        for barrier, nbytes in last.items():
            found[role, program.barriers[barrier].name].add(nbytes)
    for (role, group), sizes in found.items():
        sizes.discard(0)
        was = expected.get((role, group), set())
        if len(sizes) == len(was) == 1 and sizes != was:
            yield Repair(RepairKind.EXPECT, role, group, min(sizes), min(was))


def _masks(program: Program) -> Iterator[Repair]:
    """All CTAs of the cluster for multicasts that some of them do not receive."""
    everyone = (1 << program.ctas) - 1
    for role, group in _pairs(program, lambda op: op[0] == Op.TMA_LOAD):
        masks = {
            operand(op, "cta_mask")
            for agent, code in enumerate(program.code)
            for op in code
            if op[0] == Op.TMA_LOAD and program.barriers[operand(op, "barrier")].name == group
            and program.agents[agent].role == role
        } - {0, everyone}  # fmt: skip
        if masks:
            yield Repair(RepairKind.MASK, role, group, everyone, min(masks))


def _threads(program: Program) -> Iterator[Repair]:
    """As many threads as the agents have that ever come to a named barrier."""
    for number, (_, name) in enumerate(program.named_barriers):
        here = [
            [op for op in code if op[0] in ON_NAMED_BARRIER and operand(op, "named_barrier") == number]
            for code in program.code
        ]
        threads = sum(operand(ops[0], "lanes") for ops in here if ops)
        asked = {operand(op, "threads") for ops in here for op in ops}
        if name < NAMED_BARRIERS and asked and asked != {threads}:
            yield Repair(RepairKind.THREADS, "", str(name), threads, min(asked - {threads}))


def _depths(program: Program) -> Iterator[Repair]:
    """Fewer groups under way than a role leaves now; the group of a correction is the number of the engine."""
    found: dict[tuple[str, int, int], None] = {}
    for agent, code in enumerate(program.code):
        for op in code:
            if op[0] == Op.WAIT_GROUP and operand(op, "groups"):
                found[program.agents[agent].role, operand(op, "engine"), operand(op, "groups")] = None
    for role, engine, was in found:
        yield from (Repair(RepairKind.DEPTH, role, str(engine), depth, was) for depth in range(was - 1, -1, -1))


def _pairs(program: Program, wanted: Callable[[Operation], bool]) -> list[tuple[str, str]]:
    """Every role and group of barriers of which the role has such an operation."""
    found: dict[tuple[str, str], None] = {}
    for agent, code in enumerate(program.code):
        for op in code:
            if wanted(op):
                found[program.agents[agent].role, program.barriers[operand(op, "barrier")].name] = None
    return list(found)


def _bytes(op: Operation) -> int:
    return operand(op, "bytes") if op[0] == Op.EXPECT_TX else operand(op, "expect")
