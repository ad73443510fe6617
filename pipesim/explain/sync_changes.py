"""What two versions of a program do otherwise in their synchronisation: by role, barrier and kind of operation.

Operations are counted over all warps of a role. Roles and groups of barriers are the same in both if they have the
same name; where names are left over in both, equally many, the first belongs to the first. In two kernels of equally
many warps, whose roles are read off what each warp does, a warp has one role in both. The numbers of a stage are
compared where a group has the same stages in both, else those of the group. A role is compared in its whole run or,
if it then differs in less, by iteration with what is left over: its loop may run more often. Of a role that was not
read to its end, as of a kernel that hangs, only the order of the operations is compared, up to where the shorter one
ends.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from pipesim.explain.operation_words import operation_in_short, operation_in_words
from pipesim.model.groups import (
    ACCESSES,
    ASYNC_ACCESSES,
    ENGINE_ACCESSES,
    EXPECTS,
    LOOP_MARKS,
    ON_BARRIER,
    ON_NAMED_BARRIER,
    PARITY_WAITS,
    PRIVATE,
    TOUCHES_MEMORY,
    TRANSACTIONS,
    TRIP_BEGINS,
)
from pipesim.model.ops import AT, IN_ORDER, Op, Operation, operand, ranks, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import number_runs


class SyncChangeKind(Enum):
    """What is compared. The value is what a report calls it."""

    WARPS = "warps"  #: of a role, in the launch's cluster
    COUNT = "init count"  #: of a barrier: that of its last init
    TIMES = "times"  #: an operation of a role on a barrier
    PARITY = "first parity"  #: that a role waits for on a barrier
    ORDER = "sequence"  #: of the operations of a role that are equally many


@dataclass(frozen=True)
class Amount:
    """A number of ``times``, or the count (-1: no barrier), warps or parity that a change is about.

    ``each`` iteration of the role and ``more`` in its whole run are together the same number of times; ``nbytes`` are
    the bytes that all of them copy or expect.
    """

    times: int = 0
    each: int = 0
    more: int = 0
    nbytes: int = 0


@dataclass(frozen=True)
class SyncChange:
    """One difference: ``what`` the role does ``on`` barriers, before and after.

    ``role``: several that do the same, with commas; "" of what belongs to a barrier. ``iterations``: of the role,
    before and after. ``lines``: the author's lines of the new version, or of the old one of what is fewer. Of an order
    ``what`` is the first operation that is another one, and ``instead_of`` what was there before.
    """

    kind: SyncChangeKind
    role: str = ""
    what: str = ""
    on: str = ""
    before: Amount = Amount()
    after: Amount = Amount()
    iterations: tuple[int, int] = (1, 1)
    lines: tuple[str, ...] = ()
    instead_of: str = ""


@dataclass(frozen=True)
class SyncComparison:
    """What is done otherwise. ``unread``: the roles that were not read to their end in one of the versions."""

    changes: tuple[SyncChange, ...]
    unread: tuple[str, ...] = ()


Stage = tuple[str, int]  #: a group of barriers and a stage, ("", -1) for an operation on none
_NOWHERE: Stage = ("", -1)
_IN_MEMORY: Stage = ("", -2)  #: of reads and writes
_SLOT = re.compile(r"\[\d+\].*")
_NUMBER = re.compile(r" -?[\d,]+$")
_MOST_LINES = 3
_PLACE = re.compile(r"(\.\w+):\d+(?::\d+)?")  #: ``kernel.cu:38`` in the name of a barrier that has none in the source


@dataclass(frozen=True)
class _Step:
    """An operation, or the accesses between two: each in words, and without the name of a tile, with its line."""

    on: Stage
    words: dict[str, str]
    plain: dict[str, str]


@dataclass
class _RoleTally:
    """What a role does: how often what on which stage, with how many bytes, and at which lines."""

    warps: int = 0
    times: Counter[tuple[str, Stage]] = field(default_factory=Counter)
    nbytes: Counter[tuple[str, Stage]] = field(default_factory=Counter)
    lines: dict[tuple[str, Stage], dict[str, None]] = field(default_factory=dict)
    first: dict[Stage, int] = field(default_factory=dict)
    order: list[list[_Step]] = field(default_factory=list)
    iterations: int = 1
    cut: bool = False


def sync_changes(old: Program, new: Program) -> SyncComparison:
    """What ``new`` does otherwise: first the barriers, then each role in the order of ``new``."""
    tiles, groups = _same(list(_tiles(old)), list(_tiles(new))), _same(list(_groups(old)), list(_groups(new)))
    alike = {was: now for was, now in tiles.items() if _tiles(old)[was] == _tiles(new)[now]}
    names = _NewNames(tiles, set(alike), groups), _NewNames({}, set(alike.values()), {})
    stages = {now for was, now in groups.items() if _groups(old)[was] == _groups(new)[now]}
    role_of = _roles_of_warps(old, new)
    before, after = _tallies(old, names[0], role_of), _tallies(new, names[1], role_of)
    roles = {now: was for was, now in _same(list(before), list(after)).items()}
    found: dict[SyncChange, list[str]] = {each: [""] for each in _counts(old, new, groups)}
    unread: list[str] = []
    for role in [*after, *(role for role in before if role not in roles.values())]:
        was = before.get(roles.get(role, role if role not in after else ""), _RoleTally())
        now = after.get(role, _RoleTally())
        unread += [role] if was.cut or now.cut else []
        for each in _of_role(was, now, stages):
            found.setdefault(each, []).append(role)
    changes = tuple(replace(each, role=", ".join(some)) for each, some in found.items())
    return SyncComparison(changes, tuple(unread))


# what a program does


@dataclass(frozen=True)
class _NewNames:
    """What a version's tiles and groups are called in the new one, and the tiles of which slots are told apart."""

    tiles: Mapping[str, str]
    slotted: set[str]
    groups: Mapping[str, str]

    def stage(self, program: Program, barrier: int) -> Stage:
        """The stage that a barrier is."""
        found = program.barriers[barrier]
        return (self.groups.get(found.name, found.name), found.stage)


Warp = tuple[int, int, int]  #: CTA, warp, and which of the agents that its lanes are


def _warps(program: Program) -> list[Warp]:
    """The warp of each agent."""
    seen: Counter[tuple[int, int]] = Counter()
    found = []
    for agent in program.agents:
        found.append((agent.cta, agent.warp, seen[agent.cta, agent.warp]))
        seen[agent.cta, agent.warp] += 1
    return found


def _roles_of_warps(old: Program, new: Program) -> dict[Warp, str]:
    """The role of each warp of two kernels; {} for programs whose roles are an author's, or with other warps.

    They are those of the version that was read to its end, since what a warp does after a hang is not known.
    """
    read = old.coverage.extracted and new.coverage.extracted
    if not read or {each[:2] for each in _warps(old)} != {each[:2] for each in _warps(new)}:
        return {}
    named = old if new.cut and not old.cut else new
    return dict(zip(_warps(named), (agent.role for agent in named.agents), strict=True))


def _tallies(program: Program, names: _NewNames, role_of: Mapping[Warp, str]) -> dict[str, _RoleTally]:
    found: dict[str, _RoleTally] = {}
    known: dict[Operation, tuple[str, Stage, int, int]] = {}
    for a, warp in enumerate(_warps(program)):
        mine = found.setdefault(role_of.get(warp, program.agents[a].role), _RoleTally())
        mine.warps += 1
        mine.cut = mine.cut or a in program.cut
        mine.iterations = max(mine.iterations, _iterations(program, a))
        order: list[_Step] = []
        for pc, op in enumerate(program.code[a]):
            if op[0] in LOOP_MARKS or (op[0] in PRIVATE and op[0] != Op.FENCE):
                continue
            line = program.line(a, pc)
            if op[0] in ACCESSES or (op[0] in ENGINE_ACCESSES and operand(op, "engine") in IN_ORDER):
                _add_access(order, program, op, names, line)
                continue
            if op not in known:
                known[op] = _described(program, op, names)
            what, on, times, nbytes = known[op]
            if op[0] == Op.INIT:  # what is another in them is said of the barriers
                continue
            plain, slot = _verb_and_slot(program, op, names) if op[0] in TOUCHES_MEMORY else (what, "")
            order.append(_Step(on, {f"{plain}{slot}": line}, {_without_tile(plain): line}))
            mine.times[what, on] += times
            mine.nbytes[what, on] += nbytes
            mine.lines.setdefault((what, on), {})[line] = None
            if op[0] in PARITY_WAITS:
                mine.first.setdefault(on, operand(op, "parity"))
        mine.order.append(order)
    return found


def _iterations(program: Program, agent: int) -> int:
    """Of the loop of which an agent runs most iterations; without marks of loops the most executions of one line."""
    code = program.code[agent]
    marked = Counter(operand(op, "loop") for op in code if op[0] in TRIP_BEGINS)
    if marked:
        return max(marked.values())
    executed = zip(program.instructions[agent], code, strict=True)
    return max(Counter(each for each, op in executed if op[0] not in LOOP_MARKS).values(), default=1)


def _described(program: Program, op: Operation, names: _NewNames) -> tuple[str, Stage, int, int]:
    """What an operation does, without its numbers; the stage that it is on; how often it does it; its bytes."""
    plain = op
    for name, value in (("count", 1), ("expect", 0), ("item", -1), ("lanes", 1)):
        if op[0] in AT[name] and op[0] not in ON_NAMED_BARRIER:  # type: ignore[index]
            plain = with_operand(plain, name, value)  # type: ignore[arg-type]
    words = (operation_in_words if op[0] in ON_NAMED_BARRIER else operation_in_short)(program, plain)
    on, times, nbytes = _NOWHERE, 1, 0
    if op[0] in ON_BARRIER and operand(op, "barrier") >= 0:
        barrier = operand(op, "barrier")
        on = names.stage(program, barrier)
        words = words.replace(program.barrier_name(barrier).partition("@")[0], "", 1).partition("@")[0]
    if op[0] in TOUCHES_MEMORY:
        verb, slot = _verb_and_slot(program, op, names)
        words = f"{verb}{_SLOT.sub('', slot)}"
    if op[0] in AT["cta_mask"] and operand(op, "cta_mask"):
        words += f" in CTAs {number_runs(ranks(operand(op, 'cta_mask')))}"
    if op[0] in AT["count"] and op[0] != Op.INIT:
        times = operand(op, "count")
    elif op[0] in AT["lanes"] and op[0] not in ON_NAMED_BARRIER:
        times = operand(op, "lanes")
    if op[0] in EXPECTS:
        nbytes = operand(op, "expect")
    elif op[0] in TRANSACTIONS or op[0] in ASYNC_ACCESSES:
        nbytes = operand(op, "bytes")
    if op[0] in TRANSACTIONS:
        words = _NUMBER.sub("", words)
    return " ".join(words.replace("→", "to").split()).removesuffix(" to"), on, times, nbytes


def _verb_and_slot(program: Program, op: Operation, names: _NewNames) -> tuple[str, str]:
    """``copy to`` and the tile by the new version's name, with its slot if slots are told apart."""
    access = operand(op, "access")
    verb = operation_in_short(program, op).partition(program.access_name(access))[0].replace("→", "to")
    if (slot := program.slot_of(access)) < 0:
        return verb, f"{program.accesses[access].space.name.lower()} memory"
    tile = _SLOT.sub("", program.access_name(access))
    return verb, f"{names.tiles.get(tile, tile)}{f'[{slot}]' if tile in names.slotted else ''}"


def _add_access(order: list[_Step], program: Program, op: Operation, names: _NewNames, line: str) -> None:
    """Accesses between two operations are one step: a compiler may exchange them."""
    if not order or order[-1].on != _IN_MEMORY:
        order.append(_Step(_IN_MEMORY, {}, {}))
    verb, slot = _verb_and_slot(program, op, names)
    order[-1].words.setdefault(f"{verb}{slot}", line)
    order[-1].plain.setdefault(_without_tile(verb), line)


def _without_tile(verb: str) -> str:
    return verb.rstrip(" ←").removesuffix(" to")


def _tiles(program: Program) -> dict[str, tuple[int, int]]:
    """The size and number of slots of each tile."""
    return {tile.name: (tile.nbytes, tile.slots) for tile in program.tiles}


def _groups(program: Program) -> dict[str, set[int]]:
    """The stages of each group of barriers."""
    found: dict[str, set[int]] = {}
    for barrier in program.barriers:
        found.setdefault(barrier.name, set()).add(barrier.stage)
    return found


def _same(old: Sequence[str], new: Sequence[str]) -> dict[str, str]:
    """Which name of the new version belongs to one of the old: the same; the same but for line numbers; the next."""
    found = {name: name for name in old if name in new}
    free = [name for name in new if name not in found]
    for name in old:
        match = next((each for each in free if _PLACE.sub(r"\1", each) == _PLACE.sub(r"\1", name)), None)
        if name not in found and match is not None:
            found[name] = match
            free.remove(match)
    left = [name for name in old if name not in found]
    return found | (dict(zip(left, free, strict=True)) if len(left) == len(free) else {})


# what is another


def _counts(old: Program, new: Program, groups: Mapping[str, str]) -> Iterator[SyncChange]:
    """The barriers whose count of arrivals is another, by group."""
    before = {(groups.get(name, name), stage): n for (name, stage), n in _init_counts(old).items()}
    after = _init_counts(new)
    both = {name for name, _ in before} & {name for name, _ in after}
    changed: dict[tuple[str, int | None, int | None], list[int]] = {}
    for name, stage in dict.fromkeys([*after, *before]):
        was, now = before.get((name, stage)), after.get((name, stage))
        if was != now and (None not in (was, now) or name not in both):
            changed.setdefault((name, was, now), []).append(stage)
    for (name, was, now), stages in changed.items():
        amounts = Amount(-1 if was is None else was), Amount(-1 if now is None else now)
        yield SyncChange(SyncChangeKind.COUNT, "", "", _on(name, stages), *amounts)
    for name in dict.fromkeys(name for name, _ in after):
        few, many = (len({stage for each, stage in counts if each == name}) for counts in (before, after))
        if few and few != many:
            yield SyncChange(SyncChangeKind.COUNT, "", "stages", name, Amount(few), Amount(many))


def _init_counts(program: Program) -> dict[Stage, int]:
    found: dict[Stage, int] = {}
    for code in program.code:
        for op in code:
            if op[0] == Op.INIT:
                barrier = program.barriers[operand(op, "barrier")]
                found[barrier.name, barrier.stage] = operand(op, "count")
    return found


def _of_role(was: _RoleTally, now: _RoleTally, same_stages: set[str]) -> Iterator[SyncChange]:
    if was.warps != now.warps:
        yield SyncChange(SyncChangeKind.WARPS, before=Amount(was.warps), after=Amount(now.warps))
    cut = was.cut or now.cut
    whole = [] if cut else list(_times(was, now, (was.iterations, was.iterations), same_stages))
    rounds = (was.iterations, now.iterations)
    each = whole if cut or rounds[0] == rounds[1] else list(_times(was, now, rounds, set()))
    yield from min(whole, each, key=len)  # a loop that runs more often is not a difference in each of its operations
    other: dict[tuple[str, int], list[int]] = {}
    for on in was.first:
        if on in now.first and was.first[on] != now.first[on]:
            other.setdefault((on[0], was.first[on]), []).append(on[1])
    for (name, parity), stages in other.items():
        yield SyncChange(SyncChangeKind.PARITY, "", "wait", _on(name, stages), Amount(parity), Amount(1 - parity))
    if not whole:
        yield from _order(was, now, same_stages)


def _times(was: _RoleTally, now: _RoleTally, rounds: tuple[int, int], same_stages: set[str]) -> Iterator[SyncChange]:
    by_group: dict[tuple[str, str], list[int]] = {}
    for what, (name, stage) in [*now.times, *(key for key in was.times if key not in now.times)]:
        by_group.setdefault((what, name), []).append(stage)
    for (what, name), stages in by_group.items():
        each = [(_amount(was, what, name, [s], rounds[0]), _amount(now, what, name, [s], rounds[1])) for s in stages]
        apart = [s for s, (a, b) in zip(stages, each, strict=True) if _differ(a, b, rounds)]
        if name in same_stages or name == "":
            signs = {b.times > a.times for a, b in each if a.times != b.times}
            some = [[s] for s in apart] if len(signs) > 1 else [apart]
        else:
            some = [stages]
        for part in some:
            a, b = _amount(was, what, name, part, rounds[0]), _amount(now, what, name, part, rounds[1])
            if part and _differ(a, b, rounds):
                shown = was if b.times < a.times else now
                lines = dict.fromkeys(line for s in part for line in shown.lines.get((what, (name, s)), ()) if line)
                on = _on(name, part)
                yield SyncChange(SyncChangeKind.TIMES, "", what, on, a, b, rounds, tuple(lines)[:_MOST_LINES])


def _amount(tally: _RoleTally, what: str, name: str, stages: Iterable[int], rounds: int) -> Amount:
    times = sum(tally.times[what, (name, stage)] for stage in stages)
    each, more = divmod(times, rounds)
    if 2 * more > rounds:
        each, more = each + 1, more - rounds
    return Amount(times, each, more, sum(tally.nbytes[what, (name, stage)] for stage in stages))


def _differ(a: Amount, b: Amount, rounds: tuple[int, int]) -> bool:
    """Neither as often, by iteration or outside of the loop, with as many bytes each time."""
    outside = a.times == b.times and a.times % rounds[0] != 0
    as_often = (a.each, a.more) == (b.each, b.more) or a.times * rounds[1] == b.times * rounds[0] or outside
    return not as_often or a.nbytes * b.times != b.nbytes * a.times


def _order(was: _RoleTally, now: _RoleTally, same_stages: set[str]) -> Iterator[SyncChange]:
    """The first operation that is another one, of the first warp of the role that has one; up to the shorter end."""
    tiles = not was.cut and not now.cut
    for warps in zip(was.order, now.order, strict=False):
        before, after = ([_step_words(step, same_stages, tiles=tiles) for step in warp] for warp in warps)
        for n, (old, new) in enumerate(zip(before, after, strict=False)):
            if old.keys() != new.keys():
                fresh = {said: at for said, at in new.items() if said not in old} or next(
                    iter(after[n + 1 : n + 2]), {}
                )
                lost = [said for said in old if said not in new] or list(next(iter(before[n + 1 : n + 2]), ()))
                lines = tuple(dict.fromkeys(at for at in fresh.values() if at))[:_MOST_LINES]
                yield SyncChange(SyncChangeKind.ORDER, what=", ".join(fresh), lines=lines, instead_of=", ".join(lost))
                return


def _step_words(step: _Step, same_stages: set[str], *, tiles: bool) -> dict[str, str]:
    """Each with its line; without the names of tiles where what was read may divide the memory otherwise."""
    name, stage = step.on
    on = f" {_on(name, [stage]) if name in same_stages else name}" if name else ""
    return {f"{said}{on}": line for said, line in (step.words if tiles else step.plain).items()}


def _on(name: str, stages: Sequence[int]) -> str:
    """``full[0..2]``, "" for no barrier."""
    return f"{name}[{number_runs(sorted(stages)).replace(' to ', '..')}]" if name else ""
