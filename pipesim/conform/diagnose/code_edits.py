"""Mistakes in one line of a role's code: what every warp of the role does wrong whenever it reaches that line.

The single edits of :mod:`.edits` are one operation of one agent. These are typing mistakes: a ``.noinc`` that is
forgotten, a named barrier with the wrong number, the wrong threads, ``bar.sync`` in place of ``bar.arrive``, a
multicast with the wrong mask of CTAs. A line is known from the program; the operations of one kind that a role records
from one line are one instruction.

Such an instruction may be recorded as it is, or as it was meant: the record is beside it, and only the instruction
is wrong. What the others then do distinguishes both, so an edit is made in two ways (:func:`apply`,
:func:`in_place`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple, assert_never

from pipesim.model.edits import Listing, delete_operations, listing, replace_operations, with_listings
from pipesim.model.groups import ON_NAMED_BARRIER
from pipesim.model.ops import Fence, Op, Operation, operand, ranks, semantics, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import NAMED_BARRIERS
from pipesim.trace.sites import set_up_meeting

_WARP = 32
_NOTHING: Operation = (int(Op.FENCE), int(Fence.ACQ_REL), semantics())  #: in place of a missing instruction


class CodeEditKind(Enum):
    """What is done wrong. The value names it in documents."""

    NOINC_FORGOTTEN = "noinc_forgotten"  #: cp.async.mbarrier.arrive without .noinc
    NOINC_ADDED = "noinc_added"  #: with .noinc, which is not meant
    BAR_FORGOTTEN = "bar_forgotten"  #: no bar.sync or bar.arrive
    BAR_THREADS = "bar_threads"  #: of another number of threads
    BAR_NUMBER = "bar_number"  #: on another named barrier
    SYNC_FOR_ARRIVE = "sync_for_arrive"  #: bar.sync instead of bar.arrive
    ARRIVE_FOR_SYNC = "arrive_for_sync"  #: bar.arrive instead of bar.sync
    CTA_MASK = "cta_mask"  #: a multicast to other CTAs, or to none but its own


_CONSTANTS = frozenset({CodeEditKind.BAR_THREADS, CodeEditKind.BAR_NUMBER, CodeEditKind.CTA_MASK})
_ONCE_TOO = frozenset(CodeEditKind) - _CONSTANTS  #: a constant is always wrong
_FEW_CTAS = 4  #: up to here every mask is tried


@dataclass(frozen=True)
class CodeEdit:
    """One mistake: its kind, the role, and the line of its code, by its number in the program.

    ``iteration``: the one pass of the line at which it is made, -1 if it is always. ``value``: the threads or the mask
    of CTAs instead, or what is added to the number of a named barrier. ``everyone``: ``line`` is not a line but the
    number of a named barrier, and all agents that reach it make the mistake, as with a constant that they share;
    ``role`` is then "".
    """

    kind: CodeEditKind
    role: str
    line: int
    operation: int
    iteration: int = -1
    value: int = 0
    everyone: bool = False


class _Key(NamedTuple):
    """An instruction: role, line, operation."""

    role: str
    line: int
    operation: int


Places = Mapping[int, tuple[int, ...]]  #: by agent, the positions in its code, in program order


def code_edits(program: Program) -> tuple[CodeEdit, ...]:
    """All that apply: of each instruction those that are always made, then of one pass; then of shared constants."""
    found: list[CodeEdit] = []
    for key, places in _instructions(program).items():
        kinds = list(_kinds(program, places))
        found += [CodeEdit(kind, *key, value=value) for kind, value in kinds]
        passes = max(len(pcs) for pcs in places.values())
        once = [kind for kind, _ in kinds if kind in _ONCE_TOO] if passes > 1 else []
        found += [CodeEdit(kind, *key, iteration=n) for kind in once for n in range(passes)]
    for number, places in _comers(program).items():
        if len({program.agents[agent].role for agent in places}) > 1:
            found += [
                CodeEdit(CodeEditKind.BAR_THREADS, "", number, 0, value=threads, everyone=True)
                for threads in _other_threads(program, places)
            ]
    return tuple(found)


def places_of(program: Program, edit: CodeEdit) -> Places:
    """The operations that an edit changes."""
    if edit.everyone:
        return _comers(program).get(edit.line, {})
    places = _instructions(program).get(_Key(edit.role, edit.line, edit.operation), {})
    if edit.iteration < 0:
        return places
    n = edit.iteration
    return {agent: pcs[n : n + 1] for agent, pcs in places.items() if len(pcs) > n}


def apply(program: Program, edit: CodeEdit) -> Program:
    """The program with this mistake."""
    if edit.kind is not CodeEditKind.BAR_FORGOTTEN:
        return in_place(program, edit)
    places = places_of(program, edit)
    return with_listings(program, {a: delete_operations(listing(program, a), set(pcs)) for a, pcs in places.items()})


def in_place(program: Program, edit: CodeEdit) -> Program:
    """The same, with every operation where it was: an instruction that is forgotten is one that does nothing."""
    program, index = _with_numbers(program, edit)
    listings: dict[int, Listing] = {}
    for agent, pcs in places_of(program, edit).items():
        before = listing(program, agent)
        listings[agent] = replace_operations(before, {pc: _wrong(edit, before.code[pc], index) for pc in pcs})
    return with_listings(program, listings)


def includes(wider: CodeEdit, edit: CodeEdit) -> bool:
    """Whether an edit is one pass of another one."""
    return wider.iteration < 0 <= edit.iteration and replace(edit, iteration=-1) == wider


def describe(program: Program, edit: CodeEdit, values: Sequence[int] = ()) -> str:
    """The edit in words: ``store arrives at named barriers 4 and 5 instead of 2 and 3``.

    ``values``: all with which it explains the same trace, if there are others.
    """
    places = places_of(program, edit)
    agent = next(iter(places))
    ops = [program.code[agent][pc] for pc in places[agent]]
    once = f" at pass {edit.iteration:,} of that line" if edit.iteration >= 0 else ""
    if ops[0][0] == Op.CP_ASYNC_ARRIVE:
        groups = " and ".join(dict.fromkeys(program.barriers[operand(op, "barrier")].name for op in ops))
        how = "without .noinc" if edit.kind is CodeEditKind.NOINC_FORGOTTEN else "with .noinc, which is not meant there"
        return f"{edit.role}'s cp.async arrive on {groups} {how}{once}"
    if edit.kind is CodeEditKind.CTA_MASK:
        groups = " and ".join(dict.fromkeys(program.barriers[operand(op, "barrier")].name for op in ops))
        masks = " or ".join(_ctas(mask) for mask in list(values) or [edit.value])
        return f"{edit.role}'s multicast on {groups} goes to {masks} instead of {_ctas(operand(ops[0], 'cta_mask'))}"
    numbers = [program.named_barriers[operand(op, "named_barrier")][1] for op in ops]
    at, threads = barrier_names(numbers), operand(ops[0], "threads")
    does = ("arrives at", "arrive at") if ops[0][0] == Op.BAR_ARRIVE else ("syncs on", "sync on")
    match edit.kind:
        case CodeEditKind.BAR_FORGOTTEN:
            return f"{edit.role} does not {does[1]} {at}{once}"
        case CodeEditKind.BAR_THREADS:
            who = f"everyone at {at} gives" if edit.everyone else f"{edit.role} {does[0]} {at} with"
            return f"{who} {_list_numbers(list(values) or [edit.value], 'or')} threads instead of {threads:,}"
        case CodeEditKind.BAR_NUMBER:
            used = {number for _, number in program.named_barriers}
            others = [number + edit.value for number in numbers]
            free = "" if used & set(others) and len(values) < 2 else ", or others,"
            return f"{edit.role} {does[0]} {barrier_names(others)}{free} instead of {_list_numbers(numbers)}"
        case CodeEditKind.SYNC_FOR_ARRIVE:
            return f"{edit.role} syncs on {at} where it should only arrive{once}"
        case CodeEditKind.ARRIVE_FOR_SYNC:
            return f"{edit.role} arrives at {at} where it should sync, and does not wait{once}"
        case CodeEditKind.NOINC_FORGOTTEN | CodeEditKind.NOINC_ADDED:
            raise AssertionError("a named barrier has no .noinc")
    assert_never(edit.kind)


def _ctas(mask: int) -> str:
    """The CTAs of a mask: ``CTAs 0 and 1``; 0 is an ordinary copy."""
    ctas = list(ranks(mask))
    return f"CTA{'s' * (len(ctas) > 1)} {_list_numbers(ctas)}" if ctas else "its own CTA only"


def barrier_names(numbers: list[int]) -> str:
    """``named barrier 1``, or ``named barriers 2 and 3``."""
    return f"named barrier{'s' if len(set(numbers)) > 1 else ''} {_list_numbers(numbers)}"


def _list_numbers(numbers: list[int], word: str = "and") -> str:
    *most, last = (f"{number:,}" for number in sorted(set(numbers)))
    return f"{', '.join(most)} {word} {last}" if most else last


def _instructions(program: Program) -> dict[_Key, dict[int, tuple[int, ...]]]:
    """Where each agent carries out each instruction that such an edit can be about."""
    found: dict[_Key, dict[int, list[int]]] = {}
    for agent, code in enumerate(program.code):
        set_up = set_up_meeting(code)
        for pc, op in enumerate(code):
            wanted = op[0] == Op.CP_ASYNC_ARRIVE or op[0] in ON_NAMED_BARRIER
            if (wanted or (op[0] == Op.TMA_LOAD and operand(op, "cta_mask"))) and pc != set_up:
                key = _Key(program.agents[agent].role, program.lines[agent][pc], op[0])
                found.setdefault(key, {}).setdefault(agent, []).append(pc)
    return {key: {agent: tuple(pcs) for agent, pcs in places.items()} for key, places in found.items()}


def _comers(program: Program) -> dict[int, dict[int, tuple[int, ...]]]:
    """Where each agent reaches each named barrier, by its number."""
    found: dict[int, dict[int, list[int]]] = {}
    for places in _instructions(program).values():
        for agent, pcs in places.items():
            for pc in pcs:
                op = program.code[agent][pc]
                if op[0] in ON_NAMED_BARRIER:
                    number = program.named_barriers[operand(op, "named_barrier")][1]
                    found.setdefault(number, {}).setdefault(agent, []).append(pc)
    return {n: {agent: tuple(sorted(pcs)) for agent, pcs in by.items()} for n, by in sorted(found.items())}


def _operations(program: Program, places: Places) -> list[Operation]:
    return [program.code[agent][pc] for agent, pcs in places.items() for pc in pcs]


def _kinds(program: Program, places: Places) -> Iterator[tuple[CodeEditKind, int]]:
    """The mistakes that an instruction can have, each with its value."""
    ops = _operations(program, places)
    if ops[0][0] == Op.CP_ASYNC_ARRIVE:
        meant = {operand(op, "noinc") for op in ops}
        if len(meant) == 1:
            yield (CodeEditKind.NOINC_FORGOTTEN if meant == {1} else CodeEditKind.NOINC_ADDED), 0
        return
    if ops[0][0] == Op.TMA_LOAD:
        yield from ((CodeEditKind.CTA_MASK, mask) for mask in _other_masks(program, ops))
        return
    yield CodeEditKind.BAR_FORGOTTEN, 0
    yield (CodeEditKind.SYNC_FOR_ARRIVE if ops[0][0] == Op.BAR_ARRIVE else CodeEditKind.ARRIVE_FOR_SYNC), 0
    for threads in _other_threads(program, places):
        yield CodeEditKind.BAR_THREADS, threads
    numbers = {program.named_barriers[operand(op, "named_barrier")][1] for op in ops}
    used = {number for _, number in program.named_barriers}
    unused = 0  # barriers that no agent uses are all alike: one represents them
    for by in sorted(range(1 - NAMED_BARRIERS, NAMED_BARRIERS), key=lambda n: (abs(n), n < 0)):
        others = {number + by for number in numbers}
        if by and all(0 <= number < NAMED_BARRIERS for number in others):
            if others & used:
                yield CodeEditKind.BAR_NUMBER, by
            elif not unused:
                unused = by
                yield CodeEditKind.BAR_NUMBER, by


def _other_masks(program: Program, ops: Sequence[Operation]) -> list[int]:
    """The masks that a multicast could have been given: of the CTAs that have the bytes and the barrier; 0 for none.

    Of large clusters those with one CTA more or less, and those of one CTA.
    """
    given = {operand(op, "cta_mask") for op in ops}
    if len(given) > 1:
        return []  # it depends on the CTA: no constant
    (right,) = given
    masks = range(1 << program.ctas)
    near = [mask for mask in masks if mask.bit_count() < 2 or (mask ^ right).bit_count() == 1]
    tried = list(masks) if program.ctas <= _FEW_CTAS else near
    return [mask for mask in tried if mask != right and all(_lands(program, op, mask) for op in ops)]


def _lands(program: Program, op: Operation, mask: int) -> bool:
    """Whether each CTA of a mask has the bytes and the barrier of a multicast."""
    try:
        program.landings(with_operand(op, "cta_mask", mask))
    except KeyError:
        return False
    return True


def _other_threads(program: Program, places: Places) -> list[int]:
    """The numbers of threads that it could have been given: of whole warps, up to all of the CTA and one more."""
    given = {operand(op, "threads") for op in _operations(program, places)}
    warps = sum(agent.cta == 0 for agent in program.agents)
    return [_WARP * n for n in range(1, warps + 2) if _WARP * n not in given]


def _with_numbers(program: Program, edit: CodeEdit) -> tuple[Program, dict[tuple[int, int], int]]:
    """The program with the named barriers that a wrong number names; where each barrier of a CTA is in its list."""
    barriers = list(program.named_barriers)
    if edit.kind is CodeEditKind.BAR_NUMBER:
        for op in _operations(program, places_of(program, edit)):
            cta, number = program.named_barriers[operand(op, "named_barrier")]
            if (cta, number + edit.value) not in barriers:
                barriers.append((cta, number + edit.value))
    index = {place: n for n, place in enumerate(barriers)}
    return replace(program, named_barriers=tuple(barriers)), index


def _wrong(edit: CodeEdit, op: Operation, index: Mapping[tuple[int, int], int]) -> Operation:
    """What is done in place of an operation."""
    match edit.kind:
        case CodeEditKind.NOINC_FORGOTTEN | CodeEditKind.NOINC_ADDED:
            return with_operand(op, "noinc", int(edit.kind is CodeEditKind.NOINC_ADDED))
        case CodeEditKind.BAR_FORGOTTEN:
            return _NOTHING
        case CodeEditKind.BAR_THREADS:
            return with_operand(op, "threads", edit.value)
        case CodeEditKind.CTA_MASK:
            return with_operand(op, "cta_mask", edit.value)
        case CodeEditKind.BAR_NUMBER:
            cta, number = next(place for place, n in index.items() if n == operand(op, "named_barrier"))
            return with_operand(op, "named_barrier", index[cta, number + edit.value])
        case CodeEditKind.SYNC_FOR_ARRIVE:
            return (int(Op.BAR_SYNC), *op[1:])
        case CodeEditKind.ARRIVE_FOR_SYNC:
            return (int(Op.BAR_ARRIVE), *op[1:])
    assert_never(edit.kind)
