"""A program from which laps of long loops were left out, also of loops in loops: whether the whole does the same.

The laps that are left out of one place have the operations of those that are there. If the canonical run is at the
end of one of these where it was at its beginning, it goes through as many more as the kernel does, and continues in
the same way (:mod:`pipesim.prove.any_size.skip_laps`). The lap of an outer loop has in it the laps of inner ones that
are gone through as often again, each exactly once: none of them begins in one lap of the outer loop and ends in the
next.
"""

from operator import add, le, sub

from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import warp_shape_faults
from pipesim.model.tables import LeftOutLaps
from pipesim.prove.any_size.family import repeated_laps
from pipesim.prove.any_size.laps import Outline, ends_well
from pipesim.prove.certificate.canonical import CanonicalRun, by_rules_for_commits
from pipesim.prove.certificate.certificate import Certificate
from pipesim.prove.happens_before.snapshot import Lap
from pipesim.prove.memory_order.may_fail import memory_order
from pipesim.prove.stale_waits import stale_waits

_MOST_PAIRS = 20_000
_ENOUGH = 100  #: laps of one part that are looked at
_Inside = list[list[LeftOutLaps]]  #: what is left out in each lap that is there, in one order for all
_Found = dict[LeftOutLaps, list[Lap]]  #: the laps of each part that lead back to where they began


def does_the_same(program: Program) -> bool:
    """Whether one run represents every schedule of the program, and repeats each lap of which some are left out."""
    outline, parts = Outline(program), program.laps
    if not all(_has_laps(outline, each) for each in parts):
        return False
    inside = {each: _inside(each, parts) for each in parts}
    if any(laps is None for laps in inside.values()):
        return False
    outer = {each: laps for each, laps in inside.items() if laps is not None and laps[0]}
    if any(each in outer for laps in outer.values() for lap in laps for each in lap):
        return False  # more than two loops in each other
    every = by_rules_for_commits(program.with_laps)
    return any(
        not warp_shape_faults(each) and not stale_waits(each) and _repeats_each(each, parts, outer) for each in every
    )


def _repeats_each(program: Program, parts: tuple[LeftOutLaps, ...], outer: dict[LeftOutLaps, _Inside]) -> bool:
    """Whether the canonical run does so, and nothing is wrong with it (:func:`pipesim.prove.any_size.laps.holds`)."""
    certificate, memory = Certificate(program), memory_order(program)
    run = CanonicalRun(program, [certificate, memory])
    found: _Found = {each: [] for each in parts}
    by_lap: dict[tuple[int, ...], list[LeftOutLaps]] = {}
    for each in parts:
        by_lap.setdefault(each.lap, []).append(each)

    def parts_of(lap: Lap) -> list[LeftOutLaps]:
        same = by_lap[tuple(map(sub, lap.end, lap.begin))]
        return [each for each in same if len(found[each]) < _ENOUGH and _is_one_of(lap, each)]

    for lap, _ in repeated_laps(program, dict.fromkeys(by_lap, 1), _MOST_PAIRS, run, lambda lap: bool(parts_of(lap))):
        for each in parts_of(lap):
            found[each].append(lap)
    return ends_well(run, certificate, memory) and all(
        any(_once_inside(lap, outer[each], found) for lap in laps) if each in outer else bool(laps)
        for each, laps in found.items()
    )


def _is_one_of(lap: Lap, part: LeftOutLaps) -> bool:
    """Whether a lap as long is inside, and agents look at the same operation after it as at its beginning."""
    sides = zip(part.begin, lap.begin, lap.end, part.end, strict=True)
    return all(a <= b and d < e for a, b, d, e in sides if a < e)


def _once_inside(lap: Lap, inside: _Inside, found: _Found) -> bool:
    """Whether of each lap of inner loops one is in this lap of the outer one, with those around it outside."""
    return all(
        any(
            all(any(_comes(each.end, lap.begin) for each in found[part]) for part in same[:n])
            and any(_comes(lap.begin, each.begin) and _comes(each.end, lap.end) for each in found[same[n]])
            and all(any(_comes(lap.end, each.begin) for each in found[part]) for part in same[n + 1 :])
            for n in range(len(same))
        )
        for same in zip(*inside, strict=True)
    )


def _comes(first: tuple[int, ...], then: tuple[int, ...]) -> bool:
    """Whether no agent is further at the first of two moments of one run."""
    return all(map(le, first, then))


def _has_laps(outline: Outline, part: LeftOutLaps) -> bool:
    """Whether there are several laps, all with the same operations."""
    count = _count(part)
    return count > 1 and all(
        b - a == count * step and code[a : b - step] == code[a + step : b]
        for code, a, b, step in zip(outline.code, *part[:3], strict=True)
    )


def _count(part: LeftOutLaps) -> int:
    return max(((b - a) // step for a, b, step in zip(*part[:3], strict=True) if step), default=0)


def _inside(part: LeftOutLaps, parts: tuple[LeftOutLaps, ...]) -> _Inside | None:
    """What is left out in each of its laps; None if that is not the same in each."""
    starts = [tuple(a + n * step for a, step in zip(part.begin, part.lap, strict=True)) for n in range(_count(part))]
    found = [sorted(each for each in parts if _is_inside(each, start, part.lap)) for start in starts]
    moved = [[_from(each, start) for each in lap] for lap, start in zip(found, starts, strict=True)]
    others = sum(_overlaps(each, part) and not _contains(each, part) for each in parts)
    return found if all(each == moved[0] for each in moved) and others == sum(map(len, found)) else None


def _is_inside(part: LeftOutLaps, start: tuple[int, ...], lap: tuple[int, ...]) -> bool:
    return _contains(part._replace(begin=start, end=tuple(map(add, start, lap))), part)


def _contains(one: LeftOutLaps, other: LeftOutLaps) -> bool:
    sides = zip(one.begin, other.begin, other.end, one.end, strict=True)
    return all(a <= b and c <= d for a, b, c, d in sides if b < c)


def _overlaps(one: LeftOutLaps, other: LeftOutLaps) -> bool:
    return any(a < d and c < b for a, b, c, d in zip(one.begin, one.end, other.begin, other.end, strict=True))


def _from(part: LeftOutLaps, start: tuple[int, ...]) -> LeftOutLaps:
    begin, end = (tuple(map(sub, side, start)) for side in part[:2])
    return part._replace(begin=begin, end=end)
