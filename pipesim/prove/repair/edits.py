"""Single corrections of a protocol, as changes of a flat program: a closed list, each of a whole role or group.

A mistake of a protocol is made in every lap, so a correction changes every lap. It is named by roles and groups of
barriers, not by positions: what fixes the smallest program that fails can be tried on the one that was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import assert_never

from pipesim.errors import PipesimError
from pipesim.model.ops import Op, Operation
from pipesim.model.program import Program

_ACCESSES = frozenset({Op.READ, Op.WRITE, Op.WORK, Op.FENCE, Op.TRANSFER_READ, Op.TRANSFER_WRITE, Op.WAIT_GROUP})
_MARKS = frozenset({Op.LOOP_BEGIN, Op.LOOP_NEXT, Op.LOOP_END})
WAITS = frozenset({Op.WAIT, Op.WAIT_UNLESS})  #: until a phase is complete, by parity
_TRIES = frozenset({Op.TRY_WAIT, Op.TEST_WAIT})
_JUMPS = frozenset({Op.JUMP_IF})

Row = tuple[Operation, int]  # an operation and its line
Rows = list[Row]


class MendKind(Enum):
    """What is changed."""

    COUNT = "count"  #: the count of a group's inits
    EXPECT = "expect"  #: the bytes that a role expects
    PHASES = "phases"  #: the parities of a role's waits: the first, then the other one at every lap
    STAGES = "stages"  #: the same, and its stages, one after the other
    ARRIVE = "arrive"  #: a role arrives at the end of its work on a stage
    DROP = "drop"  #: an arrive is left out
    STAY = "stay"  #: a role arrives without dropping out of the barrier
    LATER = "later"  #: an arrive comes after the reads and writes that follow it
    ACQUIRE = "acquire"  #: a role waits before it uses a stage
    THREADS = "threads"  #: the number of threads at a named barrier
    DEPTH = "depth"  #: how many groups of transfers a role leaves under way when it waits for them
    LAPS = "laps"  #: the parities of all waits of all roles: the first as it is, then the other one at every lap


@dataclass(frozen=True)
class Mend:
    """One correction: its kind, the role ("" for all), the group of barriers, and a number.

    ``value`` is the count, the bytes or the threads, the parity of the first lap, or which of several arrives on a
    barrier in a row (0 the first); ``was`` is what it was, -1 where that is not a number. A named barrier is its
    number.
    """

    kind: MendKind
    role: str
    group: str
    value: int = 0
    was: int = -1


def mended(program: Program, mend: Mend) -> Program | None:
    """The program with this correction, None if it changes nothing or makes no program."""
    code: list[tuple[Operation, ...]] = []
    lines: list[tuple[int, ...]] = []
    for agent, (ops, places) in enumerate(zip(program.code, program.lines, strict=True)):
        rows = list(zip(ops, places, strict=True))
        if mend.role in ("", program.agents[agent].role):
            rows = _applied(program, agent, rows, mend)
        code.append(tuple(op for op, _ in rows))
        lines.append(tuple(place for _, place in rows))
    if tuple(code) == program.code:
        return None
    try:
        return replace(program, code=tuple(code), lines=tuple(lines))
    except PipesimError:
        return None


def place_of(program: Program, mend: Mend) -> str:
    """The author's line that a correction is about, "" if none."""
    after = mended(program, mend)
    if after is None:
        return ""
    for agent, (before, now) in enumerate(zip(program.code, after.code, strict=True)):
        if before != now:
            pairs = enumerate(zip(before, now, strict=False))
            first = next((n for n, (one, other) in pairs if one != other), min(len(before), len(now)))
            return (after if len(now) > len(before) else program).line(agent, first)
    return ""


def _applied(program: Program, agent: int, rows: Rows, mend: Mend) -> Rows:
    """The operations of one agent, changed."""
    stages = _stages(program, agent, mend.group)
    mine = set(stages.values())
    match mend.kind:
        case MendKind.COUNT:
            inits = set(barriers_of(program, mend.group))
            return _each(rows, lambda op: op[0] == Op.INIT and op[1] in inits, lambda op: (*op[:2], mend.value))
        case MendKind.EXPECT:
            copied = {op[1] for op, _ in rows if op[0] == Op.TMA_LOAD}
            return _each(
                rows, lambda op: may_expect(op, copied) and op[1] in mine, lambda op: _expecting(op, mend.value)
            )
        case MendKind.THREADS:
            named = {n for n, barrier in enumerate(program.named_barriers) if str(barrier[1]) == mend.group}
            joins = (Op.BAR_SYNC, Op.BAR_ARRIVE)
            return _each(rows, lambda op: op[0] in joins and op[1] in named, lambda op: (*op[:2], mend.value, *op[3:]))
        case MendKind.DEPTH:
            engine = int(mend.group)
            return _each(rows, lambda op: op[:2] == (Op.WAIT_GROUP, engine), lambda op: (*op[:2], mend.value))
        case MendKind.STAY:
            drops = Op.ARRIVE_DROP
            return _each(rows, lambda op: op[0] == drops and op[1] in mine, lambda op: (int(Op.ARRIVE), *op[1:]))
        case MendKind.PHASES | MendKind.STAGES:
            return _in_turn(rows, stages, mend)
        case MendKind.LAPS:
            return _in_laps(rows)
        case MendKind.DROP:
            return _without(rows, mine, mend.value)
        case MendKind.LATER:
            return _later(rows, mine)
        case MendKind.ARRIVE:
            return _arriving(program, rows, stages)
        case MendKind.ACQUIRE:
            return _acquiring(program, rows, stages, mend.value)
        case _:
            assert_never(mend.kind)


def _each(rows: Rows, wanted: Callable[[Operation], bool], change: Callable[[Operation], Operation]) -> Rows:
    return [(change(op), at) if wanted(op) else (op, at) for op, at in rows]


def releases(op: Operation) -> bool:
    """True for an arrive that expects no bytes."""
    return op[0] == Op.ARRIVE and not op[3]


def may_expect(op: Operation, copied: set[int]) -> bool:
    """True for what expects bytes, and for an arrive on a barrier of the agent's own copies, which could."""
    return op[0] == Op.EXPECT_TX or (op[0] == Op.ARRIVE and (op[3] > 0 or op[1] in copied))


def barriers_of(program: Program, group: str) -> list[int]:
    """The barriers of a group, in all CTAs."""
    return [n for n, barrier in enumerate(program.barriers) if barrier.name == group]


def _stages(program: Program, agent: int, group: str) -> dict[int, int]:
    """The barriers of a group in the agent's CTA, by stage."""
    cta = program.agents[agent].cta
    return {b.stage: n for n, b in enumerate(program.barriers) if (b.name, b.cta) == (group, cta)}


# the changes


def _expecting(op: Operation, nbytes: int) -> Operation:
    at = 2 if op[0] == Op.EXPECT_TX else 3
    return (*op[:at], nbytes, *op[at + 1 :])


def _in_turn(rows: Rows, stages: dict[int, int], mend: Mend) -> Rows:
    """Every wait on the group with the parity that its turn has; with STAGES also on the stage that it has."""
    mine, order = set(stages.values()), [stages[stage] for stage in sorted(stages)]
    turns: Counter[int] = Counter()
    all_turns = 0
    found: Rows = []
    for op, at in rows:
        if op[0] in WAITS | _TRIES and op[1] in mine:
            if mend.kind is MendKind.STAGES:
                barrier, lap = order[all_turns % len(order)], all_turns // len(order)
            else:
                barrier, lap = op[1], turns[op[1]]
            found.append(((op[0], barrier, (mend.value + lap) & 1, *op[3:]), at))
            if op[0] in WAITS:  # a try belongs to the wait behind it
                turns[op[1]] += 1
                all_turns += 1
        else:
            found.append((op, at))
    return found


def _in_laps(rows: Rows) -> Rows:
    """Every wait with the parity of its turn; the first on each barrier keeps the one that it has."""
    turns: dict[int, int] = {}
    found: Rows = []
    for op, at in rows:
        if op[0] in WAITS | _TRIES:
            turn = turns.setdefault(op[1], op[2])
            found.append(((*op[:2], turn, *op[3:]), at))
            if op[0] in WAITS:
                turns[op[1]] = 1 - turn
        else:
            found.append((op, at))
    return found


def _without(rows: Rows, mine: set[int], nth: int) -> Rows:
    """Without every arrive on the group (0), or without those that repeat the arrive before (1)."""
    found: Rows = []
    last: Operation | None = None
    for op, at in rows:
        if releases(op) and op[1] in mine:
            repeated, last = op == last, op
            if repeated or nth == 0:
                continue
        elif op[0] not in _ACCESSES:
            last = None
        found.append((op, at))
    return found


def _later(rows: Rows, mine: set[int]) -> Rows:
    """Every arrive on the group behind the accesses that follow it directly."""
    found: Rows = []
    held: Rows = []
    for row in rows:
        if releases(row[0]) and row[0][1] in mine:
            held.append(row)
            continue
        if held and row[0][0] not in _ACCESSES:
            found += held
            held = []
        found.append(row)
    return found + held


def _arriving(program: Program, rows: Rows, stages: dict[int, int]) -> Rows:
    """An arrive on the group at the end of each piece of work that begins with a wait for another group of its stages.

    Where the piece has such an arrive already it stays as it is.
    """
    mine = set(stages.values())
    like = next((op for code in program.code for op in code if releases(op)), None)
    tail = like[3:] if like is not None else (0, -1, 0)
    count = Counter(op[2] for op, _ in rows if releases(op)).most_common(1)
    found: Rows = []
    due, place, used = -1, 0, False
    for op, at in rows:
        begins = op[0] in WAITS and op[1] not in mine and program.barriers[op[1]].stage in stages
        if (begins or op[0] in _MARKS) and due >= 0 and used:
            found.append(((int(Op.ARRIVE), due, count[0][0] if count else 1, *tail), place))
            due = -1
        if begins:
            due, used = stages[program.barriers[op[1]].stage], False
        elif op[0] in (Op.READ, Op.WRITE, Op.TRANSFER_READ, Op.TRANSFER_WRITE):
            used, place = True, at
        elif op[0] == Op.ARRIVE and op[1] in mine:
            due = -1
        found.append((op, at))
    if due >= 0 and used:
        found.append(((int(Op.ARRIVE), due, count[0][0] if count else 1, *tail), place))
    return found


def _acquiring(program: Program, rows: Rows, stages: dict[int, int], start: int) -> Rows:
    """A wait for the group before each piece of work that ends with an arrive on another group of its stages."""
    mine = set(stages.values())
    like = next((op for code in program.code for op in code if op[0] == Op.WAIT), None)
    tail = like[3:] if like is not None else (0,)
    turns: Counter[int] = Counter()
    found: Rows = []
    for op, at in rows:
        anchors = op[0] == Op.ARRIVE and op[1] not in mine and program.barriers[op[1]].stage in stages
        if anchors and not any(other[0] in _JUMPS for other, _ in rows):
            barrier = stages[program.barriers[op[1]].stage]
            here = len(found)
            while here and found[here - 1][0][0] in _ACCESSES:
                here -= 1
            found.insert(here, ((int(Op.WAIT), barrier, (start + turns[barrier]) & 1, *tail), at))
            turns[barrier] += 1
        found.append((op, at))
    return found
