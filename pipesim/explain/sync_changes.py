"""What two versions of a program do otherwise in their synchronisation: by role, barrier and kind of operation.

Operations are counted over all warps of a role. Roles and groups of barriers are the same in both if they have the
same name; where names are left over in both, equally many, the first belongs to the first. In two kernels of equally
many warps, whose roles are read off what each warp does, a warp has one role in both. The numbers of a stage are
compared where a group has the same stages in both, else those of the group. A role is compared in its whole run or,
if it then differs in less, by iteration with what is left over: its loop may run more often. Of a role that was not
read to its end, as of a kernel that hangs, only the operations one by one are compared, up to where the shorter one
ends. So are the parities of all waits.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from pipesim.explain.sync_tallies import (
    NewNames,
    RoleTally,
    SyncStep,
    group_stages,
    init_counts,
    role_tallies,
    roles_of_warps,
    tile_shapes,
)
from pipesim.model.program import Program
from pipesim.model.tables import number_runs


class SyncChangeKind(Enum):
    """What is compared. The value is what a report calls it."""

    WARPS = "warps"  #: of a role, in the launch's cluster
    COUNT = "init count"  #: of a barrier: that of its last init
    TIMES = "times"  #: an operation of a role on a barrier
    PARITY = "parity"  #: that a role waits for on a barrier, first or for the ``nth`` time
    AMOUNT = "amount"  #: of arrivals and bytes of one operation of a role, the ``nth`` of these
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
    nth: int = 0


@dataclass(frozen=True)
class SyncComparison:
    """What is done otherwise. ``unread``: the roles that were not read to their end in one of the versions."""

    changes: tuple[SyncChange, ...]
    unread: tuple[str, ...] = ()


_MOST_LINES = 3
_PLACE = re.compile(r"(\.\w+):\d+(?::\d+)?")  #: ``kernel.cu:38`` in the name of a barrier that has none in the source


def sync_changes(old: Program, new: Program) -> SyncComparison:
    """What ``new`` does otherwise: first the barriers, then each role in the order of ``new``."""
    tiles = _same(list(tile_shapes(old)), list(tile_shapes(new)))
    groups = _same(list(group_stages(old)), list(group_stages(new)))
    alike = {was: now for was, now in tiles.items() if tile_shapes(old)[was] == tile_shapes(new)[now]}
    names = NewNames(tiles, set(alike), groups), NewNames({}, set(alike.values()), {})
    stages = {now for was, now in groups.items() if group_stages(old)[was] == group_stages(new)[now]}
    role_of = roles_of_warps(old, new)
    before, after = role_tallies(old, names[0], role_of), role_tallies(new, names[1], role_of)
    roles = {now: was for was, now in _same(list(before), list(after)).items()}
    found: dict[SyncChange, list[str]] = {each: [""] for each in _counts(old, new, groups)}
    unread: list[str] = []
    for role in [*after, *(role for role in before if role not in roles.values())]:
        was = before.get(roles.get(role, role if role not in after else ""), RoleTally())
        now = after.get(role, RoleTally())
        unread += [role] if was.cut or now.cut else []
        for each in _of_role(was, now, stages):
            found.setdefault(each, []).append(role)
    changes = tuple(replace(each, role=", ".join(some)) for each, some in found.items())
    return SyncComparison(changes, tuple(unread))


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


def _counts(old: Program, new: Program, groups: Mapping[str, str]) -> Iterator[SyncChange]:
    """The barriers whose count of arrivals is another, by group."""
    before = {(groups.get(name, name), stage): n for (name, stage), n in init_counts(old).items()}
    after = init_counts(new)
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


def _of_role(was: RoleTally, now: RoleTally, same_stages: set[str]) -> Iterator[SyncChange]:
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
    yield from _amounts(was, now, {name for name in same_stages if all(name != key[0] for key in other)})
    if not whole:
        yield from _order(was, now, same_stages)


def _times(was: RoleTally, now: RoleTally, rounds: tuple[int, int], same_stages: set[str]) -> Iterator[SyncChange]:
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


def _amount(tally: RoleTally, what: str, name: str, stages: Iterable[int], rounds: int) -> Amount:
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


def _amounts(was: RoleTally, now: RoleTally, same_stages: set[str]) -> Iterator[SyncChange]:
    """The first operation of each kind and group for which a number is another one, up to where the order is: a parity,
    and of what was not read to its end the arrivals and bytes.
    """
    found: dict[tuple[SyncChangeKind, str, str], SyncChange] = {}
    for warps in zip(was.order, now.order, strict=False):
        nth: Counter[tuple[str, str]] = Counter()
        for old, new in zip(*warps, strict=False):
            if old.plain.keys() != new.plain.keys() or old.on != new.on:
                break
            (what, line), (name, stage) = next(iter(new.plain.items())), new.on
            nth[what, name] += 1
            before, after = (Amount(each.amount[0], nbytes=each.amount[1]) for each in (old, new))
            kind = SyncChangeKind.AMOUNT if (was.cut or now.cut) and before != after else None
            if old.amount[2] != new.amount[2] and name in same_stages:
                kind, before, after = SyncChangeKind.PARITY, Amount(old.amount[2]), Amount(new.amount[2])
            if kind is not None:
                lines = (line,) if line else ()
                change = SyncChange(kind, "", what, _on(name, [stage]), before, after, lines=lines, nth=nth[what, name])
                found.setdefault((kind, what, name), change)
    yield from found.values()


def _order(was: RoleTally, now: RoleTally, same_stages: set[str]) -> Iterator[SyncChange]:
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


def _step_words(step: SyncStep, same_stages: set[str], *, tiles: bool) -> dict[str, str]:
    """Each with its line; without the names of tiles where what was read may divide the memory otherwise."""
    name, stage = step.on
    on = f" {_on(name, [stage]) if name in same_stages else name}" if name else ""
    return {f"{said}{on}": line for said, line in (step.words if tiles else step.plain).items()}


def _on(name: str, stages: Sequence[int]) -> str:
    """``full[0..2]``, "" for no barrier."""
    return f"{name}[{number_runs(sorted(stages)).replace(' to ', '..')}]" if name else ""
