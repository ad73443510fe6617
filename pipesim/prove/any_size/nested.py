"""Any trip counts of two loops together, one of which may be inside of the other: laps in each other.

Beside the program with neither loop longer there are those with one and two laps more of either loop, and of both.
The canonical run of the first repeats a state a lap on, for laps of each loop (:mod:`pipesim.prove.any_size.family`),
and of a lap of one loop and one of the other either is before the other or inside of it, for all agents. Of any two
numbers of laps the program is then the first one with the inner laps again as often, and then the outer ones, inner
laps included:

* a run at the end of an inner lap is where it was at its beginning, so it goes through the same moments as
  often as there are laps, and is then where it would be without;
* so the ends of an outer lap are the same moments as without inner laps more, and they are still one state: it goes
  through the outer lap, longer as it is, as often as there are laps of it.

That the programs of all numbers are made so is shown otherwise; here it is compared for up to two laps of each.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from operator import add, le, sub

from pipesim.model.program import Program
from pipesim.prove.any_size.family import repeated_laps
from pipesim.prove.any_size.laps import (
    NUMBERINGS,
    Laps,
    Outline,
    common,
    has_laps_more,
    holds,
    insertions,
    items_are_even,
)
from pipesim.prove.happens_before.snapshot import Lap

Numbers = tuple[int, ...]  #: of laps more of each loop
MOST_LOOPS = 2
_MORE = 2  #: laps of each loop, up to which programs are compared
_MOST_PLACES = 64  #: of laps of one loop in one run, as in each lap of the other
_MOST_TRIED = 64  #: choices of laps that may be those
_Moment = tuple[int, ...]


def nested_laps_repeat(build: Callable[[Numbers], Program | None], loops: int) -> bool:
    """Whether the programs with any numbers of laps more of each of the loops are right, if all are made as the few
    that are compared. ``build``: the program with these numbers of laps more, None if there is none.
    """
    outlines: dict[Numbers, Outline] = {}
    for numbers in product(range(_MORE + 1), repeat=loops):
        program = build(numbers) if loops <= MOST_LOOPS else None
        if program is None or program.laps:
            return False
        outlines[numbers] = Outline(program)
    none, last = outlines[(0,) * loops], outlines[(_MORE,) * loops]
    if any(each.order_may_fail != none.order_may_fail for each in outlines.values()):
        return False
    if not holds(none.program) or not holds(last.program):
        return False
    return any(_are_the_laps(laps, outlines) for laps in islice(_placed(outlines, loops), _MOST_TRIED))


def _placed(outlines: Mapping[Numbers, Outline], loops: int) -> Iterator[tuple[Laps, ...]]:
    """Laps of each loop in the run of the shortest program that may be those which the others have more."""
    if loops == 1:
        yield from ((laps,) for laps in _laps_more(outlines[0,], outlines[1,]))
        return
    none, both = outlines[0, 0], outlines[1, 1]
    for first, second in ((outlines[1, 0], outlines[0, 1]), (outlines[0, 1], outlines[1, 0])):
        grown = [b - a for a, b in zip(first.lengths, both.lengths, strict=True)]  # by laps inside of one more as well
        for outer in _laps_more(none, first):
            for inner in _laps_more(none, second, outer, grown):
                yield (outer, inner) if first is outlines[1, 0] else (inner, outer)


def _laps_more(short: Outline, long: Outline, outer: Laps = (), grown: Sequence[int] = ()) -> Iterator[Laps]:
    """Laps that the longer program has once more: () if it is the same.

    ``outer``: laps of the other loop, each before or around these. If they are gone through once more these laps more
    make agents longer by as much as has ``grown``.
    """
    alone = [b - a for a, b in zip(short.lengths, long.lengths, strict=True)]
    if not any(alone):
        yield ()
    for many in range(1, min(max(alone), _MOST_PLACES) + 1):
        lap = tuple(more // many for more in alone)
        rest = {divmod(both, each) for both, each in zip(grown, lap, strict=False) if each} or {(many, 0)}
        if any(more % many or more < 0 for more in alone) or len(rest) > 1 or min(rest) < (many, 0) or min(rest)[1]:
            continue
        inside, left = divmod(min(rest)[0] - many, max(len(outer), 1))
        if left or not all(
            insertions(mine, theirs, more, many) for mine, theirs, more in zip(short.code, long.code, lap, strict=True)
        ):
            continue
        found = dict.fromkeys(each for each, _ in repeated_laps(short.program, {lap: 1}))
        repeats = [each for each in found if _goes_on(short, each) and all(_are_in_order(each, o) for o in outer)]
        for begin in range(len(repeats) if many == 1 else 1):
            laps = _one_after_the_other(short, long, repeats[begin:], outer, (inside, many - inside * len(outer)))
            if laps is not None:
                yield laps


def _goes_on(outline: Outline, lap: Lap) -> bool:
    """Whether each agent looks at the same operation after the lap as at its beginning."""
    return all(a == b or code[a : a + 1] == code[b : b + 1] for code, a, b in zip(outline.code, *lap, strict=True))


def _one_after_the_other(
    short: Outline, long: Outline, repeats: Sequence[Lap], outer: Laps, most: tuple[int, int]
) -> Laps | None:  # fmt: skip
    """Of these laps, from the first on, those that make one program the longer one if each is put in once more.

    ``most``: how many are inside of each of the outer laps, and of none.
    """
    done = at = (0,) * len(short.code)
    laps, rooms = list[Lap](), Counter({None: most[1]} | dict.fromkeys(outer, most[0]))
    while True:
        pairs = zip(short.code, long.code, done, at, strict=True)
        same = tuple(n + common(mine[n:], theirs[m:]) for mine, theirs, n, m in pairs)
        if all(n == len(mine) for n, mine in zip(same, short.code, strict=True)) and not any(rooms.values()):
            return tuple(laps)
        for lap in repeats:
            around = next((each for each in outer if _is_inside(lap, each)), None)
            if rooms[around] and _comes(done, lap.begin) and _comes(lap.end, same):
                break
        else:
            return None
        rooms[around] -= 1
        laps.append(lap)
        at = tuple(m + (b - n) + (b - a) for m, n, a, b in zip(at, done, *lap, strict=True))
        done = lap.end


def _are_the_laps(laps: tuple[Laps, ...], outlines: Mapping[Numbers, Outline]) -> bool:
    """Whether each program that is compared is the one before with these laps once more, and its items are even."""
    for loop, mine in enumerate(laps):
        for more in range(_MORE + 1 if laps[1:] else 1):
            here = _among(mine, laps[1 - loop], more) if laps[1:] else mine
            numbers = [tuple(n if each == loop else more for each in range(len(laps))) for n in range(_MORE + 1)]
            three = [outlines[each] for each in numbers]
            if here is None or not all(has_laps_more(three[0], three[n], here, n) for n in range(1, _MORE + 1)):
                return False
            if not any(items_are_even([*map(numbering, three)], here) for numbering in NUMBERINGS):
                return False
    return True


def _among(laps: Laps, others: Laps, more: int) -> Laps | None:
    """Laps of one loop where those of another one are gone through ``more`` times again; None if they overlap."""
    found: list[Lap] = []
    for lap in laps:
        if not all(_are_in_order(lap, other) for other in others):
            return None
        around = next((other for other in others if _is_inside(lap, other)), None)
        before = [other for other in others if other is not around and _comes(other.end, lap.begin)]
        inside = [other for other in others if other not in before and _is_inside(other, lap)]
        begin = _moved(lap.begin, before, more)
        end = _moved(_moved(lap.end, before, more), inside, more)
        for again in range(more + 1 if around is not None else 1):
            of = [around] if around is not None else []
            found.append(Lap(_moved(begin, of, again), _moved(end, of, again)))
    return tuple(sorted(found, key=lambda each: sum(each.begin)))


def _moved(moment: _Moment, laps: list[Lap], times: int) -> _Moment:
    for lap in laps:
        moment = tuple(map(add, moment, (times * step for step in map(sub, lap.end, lap.begin))))
    return moment


def _are_in_order(one: Lap, other: Lap) -> bool:
    """Whether one is before the other, or inside of it, for all agents."""
    apart = _comes(one.end, other.begin) or _comes(other.end, one.begin)
    return one != other and (apart or _is_inside(one, other) or _is_inside(other, one))


def _is_inside(one: Lap, other: Lap) -> bool:
    return _comes(other.begin, one.begin) and _comes(one.end, other.end)


def _comes(first: _Moment, then: _Moment) -> bool:
    return all(map(le, first, then))
