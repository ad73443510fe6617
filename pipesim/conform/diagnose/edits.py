"""The closed list of single edits: one mistake in one role at one tile, as a change of a flat program.

An edit names an agent, a kind of mistake and an iteration: how often the agent had passed that place before (the events
of a trace count the same way). It finds its operations by position and knows no protocol: "arrive" and "wait" are those
on one group of barriers, whatever the group is called.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import assert_never

from pipesim.errors import ConfigurationError, ParameterError
from pipesim.model.edits import (
    Listing,
    delete_operations,
    listing,
    move_operation,
    releases,
    repeat_operation,
    with_expected_bytes,
    with_listings,
    with_other_parity,
)
from pipesim.model.edits import replace_operations as with_changes
from pipesim.model.groups import LOOP_MARKS, PLAIN_WAITS, USES_TILE
from pipesim.model.ops import OPERANDS, Op, Operation, operand
from pipesim.model.program import Program

MORE_BYTES = 16  #: what ``expect_more`` adds
_UNIT = 16  #: bulk copies are counted in units of this many bytes
#: Kinds that apply at every pass, each to another operation.
_ALWAYS = frozenset({"missing_arrive", "extra_arrive", "wrong_parity", "expect_more", "no_acquire"})
_KEPT_IN_PLACE = frozenset({"item", "cycles", "loop", "trips", "register"})  #: what a swap of stages does not exchange


class EditKind(Enum):
    """What is done wrong. The value is its name in a trace's ``fault`` and on the command line."""

    MISSING_ARRIVE = "missing_arrive"  #: an arrive is left out
    EXTRA_ARRIVE = "extra_arrive"  #: an arrive is made twice
    WRONG_PARITY = "wrong_parity"  #: one wait is for the other parity
    EXPECT_MORE = "expect_more"  #: more bytes are expected than come
    EXPECT_LESS = "expect_less"  #: half of the bytes are expected
    RELEASE_EARLY = "release_early"  #: an arrive comes before the work on the tile, directly after the wait
    NO_ACQUIRE = "no_acquire"  #: a wait is left out
    LEAVES_EARLY = "leaves_early"  #: the loop ends before this iteration
    SWAPPED_STAGES = "swapped_stages"  #: this iteration takes the next one's stage, and the next one this one's
    PHASE_NOT_TOGGLED = "phase_not_toggled"  #: the parity is not inverted at the next wrap; all later ones are wrong


@dataclass(frozen=True)
class Edit:
    """One mistake: its kind, the agent (its number in the program), the iteration, and the group of barriers.

    ``group`` is the barrier group whose arrives or waits count the iterations; "" if the agent has only one.
    """

    kind: EditKind
    agent: int
    iteration: int
    group: str = ""


@dataclass(frozen=True)
class Change:
    """What an edit does to its agent: the new operations with their lines, the same as before up to ``first``.

    ``barrier`` and ``pc`` are where the mistake is, in the program as it was.
    """

    first: int
    code: tuple[Operation, ...]
    lines: tuple[int, ...]
    barrier: int
    pc: int


#: In an agent's code: what is done there, the group of barriers, and each unit in program order. A wait is its
#: operations, also a try.
_Places = dict[str, dict[str, list[tuple[int, ...]]]]
_ARRIVES, _EXPECTS, _WAITS = "arrives", "expects", "waits"
#: Where an edit is made, if not at a wait.
_MADE_AT = dict.fromkeys([EditKind.MISSING_ARRIVE, EditKind.EXTRA_ARRIVE, EditKind.RELEASE_EARLY], _ARRIVES)
_MADE_AT |= dict.fromkeys([EditKind.EXPECT_MORE, EditKind.EXPECT_LESS], _EXPECTS)


def apply(program: Program, edit: Edit) -> Program:
    """The program with exactly this one change.

    Raises ParameterError if there is no such agent, group or iteration, ConfigurationError if the edit makes no sense
    there (stages swapped in the last iteration, half of 16 bytes).
    """
    change = change_of(program, edit)
    return with_listings(program, {edit.agent: Listing(change.code, change.lines)})


def edits(program: Program) -> tuple[Edit, ...]:
    """All edits that apply, in the order of agents and kinds; of several that change the same, the last iteration."""
    found: list[Edit] = []
    for agent in range(len(program.agents)):
        for kind in EditKind:
            distinct: dict[tuple[int, int], Edit] = {}
            for group, units in _units(program, agent, kind).items():
                for iteration in range(len(units)):
                    edit = Edit(kind, agent, iteration, group)
                    if kind.value in _ALWAYS:
                        found.append(edit)
                        continue
                    try:
                        change = change_of(program, edit)
                    except ConfigurationError:
                        continue
                    # several groups of one loop: leaving it is one edit
                    key = (change.first, 0 if kind is EditKind.LEAVES_EARLY else change.pc)
                    if kind is EditKind.LEAVES_EARLY and key in distinct:
                        continue
                    distinct[key] = edit
            found += distinct.values()
    return tuple(found)


def describe(program: Program, edit: Edit) -> str:
    """The edit in words: ``consumer/0 does not arrive on empty[3] for tile 7``."""
    change = change_of(program, edit)
    who, what = program.agent_name(edit.agent), program.barrier_name(change.barrier)
    tile = f"tile {edit.iteration:,}"
    before, after = program.code[edit.agent][change.pc], change.code[change.pc] if change.pc < len(change.code) else ()
    match edit.kind:
        case EditKind.MISSING_ARRIVE:
            return f"{who} does not arrive on {what} for {tile}"
        case EditKind.EXTRA_ARRIVE:
            return f"{who} arrives twice on {what} for {tile}"
        case EditKind.WRONG_PARITY:
            parity = operand(before, "parity")
            return f"{who} waits for {what} with parity {1 - parity} instead of {parity} for {tile}"
        case EditKind.EXPECT_MORE | EditKind.EXPECT_LESS:
            now, right = operand(after, "expect"), operand(before, "expect")
            return f"{who} expects {now:,} bytes instead of {right:,} at {what} for {tile}"
        case EditKind.RELEASE_EARLY:
            return f"{who} arrives on {what} before it has used {tile}"
        case EditKind.NO_ACQUIRE:
            return f"{who} does not wait for {what} for {tile}"
        case EditKind.LEAVES_EARLY:
            return f"{who} leaves its loop before {tile}, its wait for {what}"
        case EditKind.SWAPPED_STAGES:
            other = program.barrier_name(operand(change.code[change.pc], "barrier"))
            return f"{who} swaps the stages of {tile} and the next: {other} before {what}"
        case EditKind.PHASE_NOT_TOGGLED:
            return f"{who} does not toggle its phase when it reaches {what} after {tile}"
    assert_never(edit.kind)


def parse_fault(text: str) -> tuple[EditKind, int]:
    """Kind and iteration of ``kind@iteration``, as a trace names an injected fault. ParameterError for others."""
    name, at, iteration = text.partition("@")
    kinds = {kind.value: kind for kind in EditKind}
    if name not in kinds or not at or not iteration.isdecimal():
        raise ParameterError(
            f"no such fault: {text}", correction=f"give KIND@TILE, KIND one of {', '.join(kinds)}, TILE from 0 on"
        )
    return kinds[name], int(iteration)


def change_of(program: Program, edit: Edit) -> Change:
    """What the edit does to its agent's operations. Raises as :func:`apply` does."""
    if not 0 <= edit.agent < len(program.agents):
        raise ParameterError(f"{program.name} has no agent {edit.agent}: it has {len(program.agents)}")
    units = _units(program, edit.agent, edit.kind)
    group = edit.group or _only(program, edit, units)
    mine = units.get(group, [])
    passes = len(mine)
    if not 0 <= edit.iteration < passes:
        who = program.agent_name(edit.agent)
        raise ParameterError(
            f"{edit.kind.value}@{edit.iteration}: {who} has {passes} such operations on {group or 'a barrier'}",
            correction=f"give an iteration from 0 to {passes - 1}" if passes else "choose another agent or fault",
        )
    n, before = edit.iteration, listing(program, edit.agent)
    unit, pc = mine[n], mine[n][0]
    match edit.kind:
        case EditKind.MISSING_ARRIVE:
            return _change(before, delete_operations(before, {pc}), pc, pc)
        case EditKind.EXTRA_ARRIVE:
            return _change(before, repeat_operation(before, pc), pc + 1, pc)
        case EditKind.EXPECT_MORE:
            return _change_expect(program, edit, pc, lambda nbytes: nbytes + MORE_BYTES)
        case EditKind.EXPECT_LESS:
            return _change_expect(program, edit, pc, lambda nbytes: nbytes // 2 // _UNIT * _UNIT)
        case EditKind.WRONG_PARITY:
            return _invert_parities(before, [unit])
        case EditKind.PHASE_NOT_TOGGLED:
            stages = [program.barriers[operand(before.code[each[0]], "barrier")].stage for each in mine]
            wrap = next((i for i in range(n + 1, passes) if stages[i] <= stages[i - 1]), None)
            if wrap is None:
                raise _senseless(program, edit, "the stages do not wrap after it")
            return _invert_parities(before, mine[wrap:])
        case EditKind.NO_ACQUIRE:
            return _change(before, delete_operations(before, unit), pc, unit[-1])
        case EditKind.RELEASE_EARLY:
            return _move_release(program, edit, pc)
        case EditKind.LEAVES_EARLY:
            return _without_rest(program, edit, mine, n)
        case EditKind.SWAPPED_STAGES:
            return _swap_iterations(program, edit, mine, n)
    assert_never(edit.kind)


@lru_cache(maxsize=64)
def _places_of(code: tuple[Operation, ...], groups: tuple[str, ...]) -> _Places:
    places: _Places = {_ARRIVES: {}, _EXPECTS: {}, _WAITS: {}}
    tries: dict[int, int] = {}  # the last try whose answer a register holds
    for pc, op in enumerate(code):
        if op[0] == Op.TRY_WAIT:
            tries[operand(op, "register")] = pc
            continue
        unit: tuple[int, ...] = (pc,)
        if op[0] == Op.ARRIVE:
            what = _ARRIVES if releases(op) else _EXPECTS
        elif op[0] in PLAIN_WAITS:
            what = _WAITS
        elif op[0] == Op.WAIT_UNLESS:
            what, tried = _WAITS, tries.pop(operand(op, "register"), -1)
            unit = (tried, pc) if tried >= 0 and _phase_of(code[tried]) == _phase_of(op) else unit
        else:
            continue
        places[what].setdefault(groups[operand(op, "barrier")], []).append(unit)
    return places


def _phase_of(op: Operation) -> tuple[int, int]:
    """The phase that a wait or a try asks for."""
    return operand(op, "barrier"), operand(op, "parity")


def _units(program: Program, agent: int, kind: EditKind) -> dict[str, list[tuple[int, ...]]]:
    """Where an agent comes by each time that such an edit could be made, by group."""
    places = _places_of(program.code[agent], tuple(b.name for b in program.barriers))
    return places[_MADE_AT.get(kind, _WAITS)]


def _only(program: Program, edit: Edit, units: dict[str, list[tuple[int, ...]]]) -> str:
    if len(units) > 1:
        raise ParameterError(
            f"{edit.kind.value}: {program.agent_name(edit.agent)} has such operations on {', '.join(units)}",
            correction="name the group of barriers",
        )
    return next(iter(units), "")


def _senseless(program: Program, edit: Edit, why: str) -> ConfigurationError:
    who = program.agent_name(edit.agent)
    return ConfigurationError(f"{edit.kind.value}@{edit.iteration} does not apply to {who}: {why}")


def _change(before: Listing, after: Listing, first: int, pc: int) -> Change:
    """The edited listing, the same up to ``first``, and the place of the mistake."""
    return Change(first, after.code, after.lines, operand(before.code[pc], "barrier"), pc)


def _change_expect(program: Program, edit: Edit, pc: int, bytes_of: Callable[[int], int]) -> Change:
    before = listing(program, edit.agent)
    op = before.code[pc]
    nbytes = bytes_of(operand(op, "expect"))
    if nbytes <= 0:
        raise _senseless(program, edit, f"half of {operand(op, 'expect')} bytes is less than {_UNIT}")
    return _change(before, with_changes(before, {pc: with_expected_bytes(op, nbytes)}), pc, pc)


def _invert_parities(before: Listing, waits: list[tuple[int, ...]]) -> Change:
    """These waits with the other parity."""
    after = with_changes(before, {pc: with_other_parity(before.code[pc]) for unit in waits for pc in unit})
    return _change(before, after, waits[0][0], waits[0][0])


def _move_release(program: Program, edit: Edit, pc: int) -> Change:
    """The arrive at ``pc`` directly after the wait before it."""
    before = listing(program, edit.agent)
    waits = _units(program, edit.agent, EditKind.NO_ACQUIRE).values()
    start = max((unit[-1] + 1 for units in waits for unit in units if unit[-1] < pc), default=pc)
    if not any(op[0] in USES_TILE for op in before.code[start:pc]):
        raise _senseless(program, edit, "it follows no read and no work")
    return _change(before, move_operation(before, pc, start), start, pc)


def _without_rest(program: Program, edit: Edit, waits: list[tuple[int, ...]], n: int) -> Change:
    """Without what follows in the loop; the loop begins an iteration at its mark, or at the wait if it has none."""
    code = program.code[edit.agent]
    wait = waits[n][0]
    previous = waits[n - 1][-1] if n else -1
    mark = next((pc for pc in range(wait - 1, previous, -1) if code[pc][0] in LOOP_MARKS), wait - 1)
    end, depth = wait, 0
    while end < len(code) and not (code[end][0] == Op.LOOP_END and depth == 0):
        depth += (code[end][0] == Op.LOOP_BEGIN) - (code[end][0] == Op.LOOP_END)
        end += 1
    first = mark + (code[mark][0] == Op.LOOP_BEGIN) if mark < wait - 1 or code[mark][0] in LOOP_MARKS else wait
    before = listing(program, edit.agent)
    return _change(before, delete_operations(before, range(first, end)), first, waits[n][-1])


def _swap_iterations(program: Program, edit: Edit, waits: list[tuple[int, ...]], n: int) -> Change:
    """Two iterations with their barriers, parities and places exchanged; what each believes to hold stays."""
    code = program.code[edit.agent]
    if n + 1 == len(waits):
        raise _senseless(program, edit, "there is no next iteration")
    starts = (waits[n][0], waits[n + 1][0])
    if operand(code[starts[0]], "barrier") == operand(code[starts[1]], "barrier"):
        raise _senseless(program, edit, "the next iteration has the same stage")
    limits = (starts[1], waits[n + 2][0] if n + 2 < len(waits) else len(code))
    ends = [
        next((pc for pc in range(start, limit) if code[pc][0] in LOOP_MARKS), limit)
        for start, limit in zip(starts, limits, strict=True)
    ]
    here, there = (code[start:end] for start, end in zip(starts, ends, strict=True))
    if [op[0] for op in here] != [op[0] for op in there]:
        raise _senseless(program, edit, "the next iteration is different")
    exchanged = {starts[0] + n: _in_place_of(a, b) for n, (a, b) in enumerate(zip(here, there, strict=True))}
    exchanged |= {starts[1] + n: _in_place_of(b, a) for n, (a, b) in enumerate(zip(here, there, strict=True))}
    before = listing(program, edit.agent)
    return _change(before, with_changes(before, exchanged), starts[0], starts[0])


def _in_place_of(mine: Operation, other: Operation) -> Operation:
    names = OPERANDS[Op(mine[0])]
    pairs = zip(names, mine[1:], other[1:], strict=True)
    return (mine[0], *(m if name in _KEPT_IN_PLACE else o for name, m, o in pairs))
