"""Programs of one family laid side by side: a body more for each lap, and items that move on evenly."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from operator import attrgetter, ge, ne
from typing import NamedTuple

from pipesim.model.ops import AT, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import warp_shape_faults
from pipesim.prove.certificate.canonical import CanonicalRun
from pipesim.prove.certificate.certificate import Certificate
from pipesim.prove.happens_before.accesses import awaited_groups
from pipesim.prove.happens_before.snapshot import Lap
from pipesim.prove.memory_order.may_fail import memory_order, order_may_fail
from pipesim.prove.memory_order.order import MemoryOrder
from pipesim.prove.stale_waits import stale_waits

_EVEN = AT["item"]
_IDLE = AT["cycles"] | AT["trips"]  #: operands that no engine of the proof looks at


Items = list[list[int]]  #: of each agent
Laps = tuple[Lap, ...]  #: one after the other: of a loop that is gone through several times, one in each
MOST_PLACES = 8


class Outline:
    """A program without its items: ``code`` for comparisons, ``items`` beside it (-1 where an operation has none)."""

    def __init__(self, program: Program) -> None:
        self.program = program
        known: dict[Operation, tuple[Operation, int]] = {}
        bare: dict[Operation, Operation] = {}  # one object for each, so that comparing two lists of them is soon done
        self.code: list[list[Operation]] = []
        self.items: Items = []

        def split(op: Operation) -> tuple[Operation, int]:
            without, item = _split(op)
            known[op] = found = bare.setdefault(without, without), item
            return found

        for code in program.code:
            pairs = [known.get(op) or split(op) for op in code]
            self.code.append([bare for bare, _ in pairs])
            self.items.append([item for _, item in pairs])

    @cached_property
    def items_in_order(self) -> Items:
        """Items with numbers by where each is first in the agents' code; a reader's depend on when warps came there."""
        return _in_order(self.items)

    @cached_property
    def order_may_fail(self) -> bool:
        """True if the program needs a look at its memory order."""
        return order_may_fail(self.program)

    @cached_property
    def awaited_groups(self) -> frozenset[tuple[int, int]]:
        """The (agent, engine) whose groups an agent waits for."""
        return awaited_groups(self.program)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Operations of each agent."""
        return tuple(map(len, self.code))

    def begins_as(self, other: "Outline", reached: Sequence[int]) -> bool:
        """True if both have the same operations up to and with those at which the agents stand."""
        return same_tables(self.program, other.program) and all(
            mine[: pc + 1] == theirs[: pc + 1] for mine, theirs, pc in zip(self.code, other.code, reached, strict=True)
        )


def same_tables(one: Program, other: Program) -> bool:
    """True if operands mean the same in both."""
    return all(
        getattr(one, table) == getattr(other, table)
        for table in ("agents", "barriers", "accesses", "named_barriers", "loops", "registers", "ctas")
    )


def is_same(one: Program, other: Program) -> bool:
    """True if nothing that an engine of the proof looks at differs."""
    return same_tables(one, other) and one.code == other.code


def _split(op: Operation) -> tuple[Operation, int]:
    at = _EVEN.get(op[0])
    if at is not None:
        return ((*op[:at], *op[at + 1 :]), op[at]) if op[at] >= 0 else (op, -1)
    at = _IDLE.get(op[0])
    return (op, -1) if at is None else ((*op[:at], *op[at + 1 :]), -1)


def is_longer_inside(short: Outline, long: Outline) -> bool:
    """True if ``long`` is ``short`` with operations put in, all those of an agent at one place."""
    if not same_tables(short.program, long.program) or short.lengths == long.lengths:
        return False
    for mine, theirs in zip(short.code, long.code, strict=True):
        front = common(mine, theirs)
        if len(theirs) < len(mine) or mine[front:] != theirs[len(theirs) - len(mine) + front :]:
            return False
    return True


def common(mine: Sequence[object], theirs: Sequence[object]) -> int:
    """How many both begin with."""
    return next((n for n, differs in enumerate(map(ne, mine, theirs)) if differs), min(len(mine), len(theirs)))


def has_laps_more(short: Outline, long: Outline, laps: Laps, more: int) -> bool:
    """True if ``long`` is ``short`` with each of its laps ``more`` times again, items aside.

    What follows a lap in ``short`` must begin as the lap does: whoever finishes looks at that operation as well.
    """
    if not same_tables(short.program, long.program):
        return False
    for agent, (mine, theirs) in enumerate(zip(short.code, long.code, strict=True)):
        at = done = 0
        for begin, end in ((lap.begin[agent], lap.end[agent]) for lap in laps):
            body = mine[begin:end]
            if body and mine[end : end + 1] != body[:1]:
                return False
            if theirs[at : at + end - done] != mine[done:end]:
                return False
            at, done = at + end - done, end
            for _ in range(more):
                if theirs[at : at + len(body)] != body:
                    return False
                at += len(body)
        if theirs[at:] != mine[done:]:
            return False
    return True


class _Pieces(NamedTuple):
    """The items of one agent: those outside of laps, piece by piece, and those of every lap, round by round."""

    outside: list[list[int]]
    rounds: list[list[list[int]]]


def _pieces(items: list[int], laps: Laps, agent: int, more: int) -> _Pieces:
    """Cut the items of a program with ``more`` laps apart; the first round of a lap counts as outside as well."""
    outside, rounds, at, done = [], [], 0, 0
    for lap in laps:
        begin, end = lap.begin[agent], lap.end[agent]
        outside.append(items[at : at + end - done])
        at, done = at + end - done, end
        step = end - begin
        rounds.append([items[at + n * step : at + (n + 1) * step] for n in range(-1, more)] if step else [])
        at += more * step
    return _Pieces([*outside, items[at:]], rounds)


Numbering = Callable[[Outline], Items]
NUMBERINGS: tuple[Numbering, Numbering] = attrgetter("items"), attrgetter("items_in_order")


def _in_order(items: Items) -> Items:
    numbers: dict[int, int] = {}
    return [[item if item < 0 else numbers.setdefault(item, len(numbers)) for item in each] for each in items]


def items_are_even(three: Sequence[Items], laps: Laps) -> bool:
    """True if the items of programs of no, one and two laps more are given by one affine rule.

    Outside of the laps an item may move on with the number of laps; in the laps, with the lap it is in as well. Then
    two items that agree in all three programs agree in every longer one. Numbers alone decide nothing: any numbering
    may have such a rule, and what a longer program has is compared with what this rule gives.
    """
    for agent in range(len(three[0])):
        none, one, two = (_pieces(items[agent], laps, agent, n) for n, items in enumerate(three))
        for pieces in zip(none.outside, one.outside, two.outside, strict=True):
            if any(a + c != 2 * b for a, b, c in zip(*pieces, strict=True)):
                return False
        for ones, twos in zip(one.rounds, two.rounds, strict=True):
            paces = [[b - a for a, b in zip(*pair, strict=True)] for pair in (*pairwise(ones), *pairwise(twos))]
            if any(pace != paces[0] for pace in paces):
                return False
    return True


def follows(three: tuple[Outline, Outline, Outline], laps: Laps, more: int, numbering: Numbering) -> bool:
    """True if the third program is what the rule of :func:`items_are_even` gives ``more`` laps after the second.

    The second has a lap more than the first, whose laps these are; the rule is one of this numbering.
    """
    shorter, short, long = three
    if not has_laps_more(shorter, long, laps, more + 1):
        return False
    none, one = numbering(shorter), numbering(short)
    ruled = [_ruled(none[agent], one[agent], laps, agent, more + 1) for agent in range(len(none))]
    return _in_order(ruled) == long.items_in_order


def _ruled(none: list[int], one: list[int], laps: Laps, agent: int, more: int) -> list[int]:
    """The items of an agent this many laps after a program by the rule that it and the next one follow."""
    before, now, found = _pieces(none, laps, agent, 0), _pieces(one, laps, agent, 1), list[int]()
    for outside, rounds in zip(zip(before.outside, now.outside, strict=True), [*now.rounds, []], strict=True):
        found += [a + more * (b - a) for a, b in zip(*outside, strict=True)]
        if rounds:
            paces = [b - a for a, b in zip(*rounds, strict=True)]
            lap = found[-len(paces) :]
            found += [item + n * pace for n in range(1, more + 1) for item, pace in zip(lap, paces, strict=True)]
    return found


def places(short: Outline, long: Outline, parameter: str) -> int:
    """In how many places ``long`` has as many operations more as in the others; 0 if that is not so.

    They are at most as many as times the loop of this trip count is gone through, where loops have names.
    """
    most = min(_times(short.program, parameter), MOST_PLACES) if short.program.loops else MOST_PLACES
    grown = [b - a for a, b in zip(short.lengths, long.lengths, strict=True)]
    for many in range(2, most + 1):
        if all(more % many == 0 for more in grown) and all(
            insertions(mine, theirs, more // many, many)
            for mine, theirs, more in zip(short.code, long.code, grown, strict=True)
        ):
            return many if same_tables(short.program, long.program) else 0
    return 0


def _times(program: Program, parameter: str) -> int:
    """How often an agent goes through the loop that is named after this trip count."""
    marks = {n for n, name in enumerate(program.loops) if name == parameter}
    return max(sum(op[0] == Op.LOOP_BEGIN and operand(op, "loop") in marks for op in code) for code in program.code)


def insertions(mine: Sequence[object], theirs: Sequence[object], more: int, many: int) -> bool:
    """True if this many operations more, put in before each of this many first differences, make one code the other."""
    done = at = 0
    for _ in range(many + 1 if more else 1):
        same = common(mine[done:], theirs[at:])
        done, at = done + same, at + same
        if done == len(mine) and at == len(theirs):
            return True
        at += more
    return False


def place_laps(short: Outline, long: Outline, repeats: Sequence[Lap]) -> Laps | None:
    """Of laps that a run of ``short`` has, those that make it ``long`` if each is put in once more; None if none do.

    Several places come one after the other: at each the last lap is taken that lies before the first difference.
    """
    laps: list[Lap] = []
    agents = range(len(short.code))
    done, at = [0 for _ in agents], [0 for _ in agents]
    while len(laps) < MOST_PLACES:
        same = [common(short.code[a][done[a] :], long.code[a][at[a] :]) for a in agents]
        if all(done[a] + same[a] == len(short.code[a]) and at[a] + same[a] == len(long.code[a]) for a in agents):
            return tuple(laps) or None
        fits = [
            lap for lap in repeats if all(done[a] <= lap.begin[a] and lap.end[a] <= done[a] + same[a] for a in agents)
        ]
        if not fits:
            return None
        lap = fits[-1]
        laps.append(lap)
        at = [at[a] + lap.end[a] - done[a] + lap.end[a] - lap.begin[a] for a in agents]
        done = list(lap.end)
    return None


_NEVER = -1


def holds(program: Program, *, may_hang: bool = False) -> bool:
    """True if one run represents every schedule of the program, and nothing is wrong with it.

    ``may_hang``: it most likely hangs, which the run alone shows sooner.
    """
    if warp_shape_faults(program) or (may_hang and not CanonicalRun(program).to_end().finished) or stale_waits(program):
        return False
    certificate, memory = Certificate(program), memory_order(program)
    return ends_well(CanonicalRun(program, [certificate, memory]), certificate, memory)


def each_holds(outlines: Sequence[Outline]) -> list[bool]:
    """:func:`holds` of the program of each outline; the last should be the longest."""
    if not outlines:
        return []
    programs, concern = [outline.program for outline in outlines], outlines[-1].order_may_fail
    longest = programs[-1]
    stood = _rounds(longest)
    forks = [
        _last_common_moment(outline, outlines[-1], stood) if outline.order_may_fail == concern else _NEVER
        for outline in outlines
    ]  # where only one gives concern, memory order is watched in one of them
    right: dict[int, bool] = {n: holds(programs[n]) for n, at in enumerate(forks) if at == _NEVER}
    certificate, memory = Certificate(longest), MemoryOrder(longest) if concern else None
    run = CanonicalRun(longest, [certificate, memory])
    for done in range(len(stood)):
        for n in (n for n, at in enumerate(forks) if at == done):
            watching, observer = certificate.fork(programs[n]), None
            if memory is not None:
                observer = memory.fork()
                observer.goes_on_in(programs[n])
            right[n] = ends_well(run.fork(programs[n], [watching, observer]), watching, observer)
        if _is_wrong(run, certificate, memory) or run.over:
            break
        run.round()
    return [
        right.get(n, False) and not warp_shape_faults(program) and not stale_waits(program)
        for n, program in enumerate(programs)
    ]


def _is_wrong(run: CanonicalRun, certificate: Certificate, memory: MemoryOrder | None) -> bool:
    return bool(certificate.doubts or run.faults or (memory is not None and memory.faults))


def ends_well(run: CanonicalRun, certificate: Certificate, memory: MemoryOrder | None) -> bool:
    """True if nothing that these observe of a run is wrong up to its end."""
    while not run.over and not _is_wrong(run, certificate, memory):
        run.round()
    certificate.close()
    return run.finished and not _is_wrong(run, certificate, memory)


def _rounds(program: Program) -> list[tuple[int, ...]]:
    """Where the agents stand before each round of the canonical run."""
    run = CanonicalRun(program)
    stood = [run.state.pcs]
    while not run.over:
        run.round()
        stood.append(run.state.pcs)
    return stood[:-1]


def _last_common_moment(outline: Outline, longest: Outline, stood: Sequence[tuple[int, ...]]) -> int:
    """The last of these moments of ``longest`` to which the program comes as well; :data:`_NEVER`: not to the first."""
    one, other = outline.program, longest.program
    if not same_tables(one, other) or outline.awaited_groups != longest.awaited_groups:
        return _NEVER
    codes = zip(outline.code, longest.code, strict=True)
    items = zip(outline.items, longest.items, strict=True)
    alike = [min(common(*code), common(*item)) for code, item in zip(codes, items, strict=True)]
    ends = zip(outline.lengths, longest.lengths, alike, strict=True)
    limits = [same + (mine == theirs == same) for mine, theirs, same in ends]  # an ended agent is after its last

    def parted(pcs: tuple[int, ...]) -> bool:
        return any(map(ge, pcs, limits))

    return bisect_left(stood, True, key=parted) - 1
