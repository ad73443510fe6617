"""The programs of a kernel whose CTAs talk: one for each order of its atomics, and for each value that a wait may see.

Whether a program of one order has the schedules of its kernel is said in :mod:`.word_order`.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from pipesim.model.coverage import Assumed, Assumption, NotJudged, NotJudgedKind
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.model.words import Look, Swaps, WordsOfRun
from pipesim.prove.certificate.certificate import certified
from pipesim.prove.check import How
from pipesim.prove.check import check as prove
from pipesim.prove.word_order import OccursBefore, is_decided, more_than_orders, places_of

#: By the number of CTAs: orders in which atomics are looked at.
MOST_ORDERS = {2: 24, 3: 16, 4: 32}
MOST_OPERATIONS = 1 << 20  #: of all programs of orders that are made
MOST_MADE = 256  #: of these programs
_MOST_TURNS = 18  #: digits of a setting
_MOST_SEEN = 9  #: writes: a digit
Seen = tuple[tuple[int, int], ...]  #: agents with how many writes their waits see, of each in its order
_FEW, _MOST_RUNS = 4, 256  #: of many CTAs; else in orders of which some do not come, or have been looked at


class MadeTogether(Protocol):
    """A program in which CTAs talk, with what is known of its words, and how long it is."""

    @property
    def program(self) -> Program:
        """The program."""

    @property
    def words(self) -> WordsOfRun | None:
        """By which the CTAs talk."""

    @property
    def instructions(self) -> int:
        """That were carried out."""


_Made = TypeVar("_Made", bound=MadeTogether)


def digits(turns: tuple[int, ...]) -> int:
    """An order of CTAs as the number that a setting is: each CTA a digit, from 1 on; 0 for none."""
    return int("".join(str(cta + 1) for cta in turns) or "0")


def orders(make: Callable[..., _Made], most: int, most_instructions: int) -> Iterator[_Made | None]:
    """The program with each order of the atomics whose answers are used, and with each value that a wait may see where
    that decides what its agent does next; None at the end if there are too many.

    They are found from those that were seen: of two CTAs that access the same word one after the other, the later one
    comes first; and a wait sees another value of its word. ``make``: makes the program in which CTAs write words in
    this order, as far as it goes, and in which waits see (``sees``) what is given.
    """
    open_: deque[tuple[tuple[int, ...], Seen]] = deque([((), ())])
    asked: set[tuple[tuple[int, ...], Seen]] = {((), ())}
    begun: dict[Seen, list[tuple[int, ...]]] = {}  # the orders in which something was seen
    seen: set[tuple[object, ...]] = set()
    runs = spent = met = 0
    most_runs = most if most <= _FEW else max(most, _MOST_RUNS)
    alike = False  # whether those that may change places do the same in each turn
    while open_:
        if len(seen) == most or runs == most_runs or spent > most_instructions:
            yield None
            return
        turns, sees = open_.popleft()
        if any(each[: len(turns)] == turns for each in begun.get(sees, ())):
            continue  # that order has been looked at
        if len(turns) > _MOST_TURNS or any(version > _MOST_SEEN for _, version in sees):
            yield None
            return
        made = make(turns, sees=sees) if sees else make(turns)
        runs, spent = runs + 1, spent + made.instructions
        found = made.words
        assert found is not None
        if runs > 1 and found.met != met:  # turns that are asked are those of fewer words
            yield None
            return
        met = found.met
        if found.off_turn:
            continue  # nothing comes in this order
        if (found.order, found.seen) in seen:
            continue
        seen.add((found.order, found.seen))
        yield made
        looks = _possible(made.program, found)
        begun.setdefault(sees, []).append(tuple(who for who, _ in found.sequence))
        swaps = found.swaps
        if runs == 1 and swaps in (Swaps.ALL, Swaps.WARPS):
            rotated = [make(each) for each in _rotated(found, most)]
            spent += sum(each.instructions for each in rotated)
            alike = all(each.words is not None and _do_the_same(each.words, found) for each in rotated)
        swaps = swaps if alike or swaps is Swaps.CTAS else Swaps.NONE
        if swaps is Swaps.ALL and not any(look.others for look in looks):
            return
        others: list[tuple[tuple[int, ...], Seen]] = []
        others += [(_first_named(each, made.program, swaps), ()) for each in _earlier(found)]
        others += [(turns, each) for each in _otherwise(looks, sees)]
        open_ += [each for each in dict.fromkeys(others) if each not in asked]
        asked.update(others)


def _possible(program: Program, found: WordsOfRun) -> tuple[Look, ...]:
    """What was seen, without what the order of memory excludes: what comes after a look, and what later writes, which
    come before it, have replaced.
    """
    if not any(look.others and look.word >= 0 for look in found.looks):
        return found.looks
    clocks = OccursBefore(program, {(look.agent, look.pc) for look in found.looks} | places_of(found))
    certified(program, clocks)
    return tuple(look._replace(others=tuple(_others(look, found, clocks))) for look in found.looks)


def _others(look: Look, found: WordsOfRun, clocks: OccursBefore) -> Iterator[int]:
    here = clocks.moments.get((look.agent, look.pc))
    writes = found.words[look.word].writes if 0 <= look.word < len(found.words) else None
    for other in look.others:
        version = other - look.tries
        if here is not None and writes is not None and version >= 0:
            last = clocks.before.get((writes[version - 1].agent, writes[version - 1].pc)) if version else None
            if last is not None and last.covers(look.agent, look.pc):
                continue
            if any(here.synced.covers(write.agent, write.last) for write in writes[version:]):
                continue
        yield other


def _otherwise(looks: Sequence[Look], sees: Seen) -> Iterator[Seen]:
    """What waits see where one sees another value: those before it the same, its agent's later ones anything."""
    for n, look in enumerate(looks):
        before = [(each.agent, each.version) for each in looks[:n]]
        kept: list[tuple[int, int]] = []
        for agent in sorted({agent for agent, _ in (*before, *sees)} - {look.agent}):
            mine, given = ([version for of, version in each if of == agent] for each in (before, sees))
            kept += [(agent, version) for version in max(mine, given, key=len)]
        kept += [each for each in before if each[0] == look.agent]
        yield from (tuple(sorted((*kept, (look.agent, other)), key=lambda each: each[0])) for other in look.others)


def _rotated(found: WordsOfRun, most: int) -> Iterator[tuple[int, ...]]:
    """Orders in each of which everyone comes in another turn: with these each has come in each turn. One that is none
    if they are too many.
    """
    turns = [who for who, _ in found.sequence]
    who = [*dict.fromkeys(turns)]
    if len(who) > most:
        yield (-1,)
        return
    for n in range(1, len(who)):
        other = dict(zip(who, who[n:] + who[:n], strict=True))
        yield tuple(other[each] for each in turns)


def _do_the_same(other: WordsOfRun, found: WordsOfRun) -> bool:
    """Whether in another order each does in its turn what another one did: what it does depends on its turn alone."""
    return not other.off_turn and (other.swaps, other.does, other.stuck) == (found.swaps, found.does, found.stuck)


def _first_named(turns: tuple[int, ...], program: Program, swaps: Swaps) -> tuple[int, ...]:
    """The order in which those that may change places come by their numbers; all these are as good."""
    if swaps not in (Swaps.CTAS, Swaps.WARPS):
        return turns
    ctas = [agent.cta for agent in program.agents]
    count, width = max(ctas) + 1, len(ctas) // (max(ctas) + 1)
    place, warps, found = dict[int, int](), dict[int, dict[int, int]](), list[int]()
    for who in turns:
        cta = who if swaps is Swaps.CTAS else (who - count) // width
        mine = place.setdefault(cta, len(place))
        if swaps is Swaps.WARPS:
            inside = warps.setdefault(cta, {})
            mine = count + mine * width + inside.setdefault((who - count) % width, len(inside))
        found.append(mine)
    return tuple(found)


def _earlier(found: WordsOfRun) -> Iterator[tuple[int, ...]]:
    """Orders in which a CTA accesses a word before one that accessed it first: alone, or with all but that one."""
    sequence, ctas = found.sequence, [cta for cta, _ in found.sequence]
    for k, (cta, word) in enumerate(sequence):
        for other in dict.fromkeys(ctas[k + 1 :]) if word in found.observed else ():
            to = next((n for n in range(k + 1, len(sequence)) if sequence[n] == (other, word)), None)
            if other != cta and to is not None:
                yield (*ctas[:k], *(other for n in range(k, to + 1) if ctas[n] == other))
                yield (*ctas[:k], *(ctas[n] for n in range(k, to + 1) if ctas[n] != cta))


class MadeInTurn(MadeTogether, Protocol):
    """Such a program of all CTAs of a grid."""

    @property
    def turns(self) -> tuple[int, ...]:
        """The order in which they were to write words."""


def judged(make: Callable[[tuple[int, ...], int], MadeInTurn], turns: tuple[int, ...], ctas: int) -> Program:
    """The program of a grid of this many CTAs in one order of its atomics, with what its verdict does not say.

    ``make``: as of :func:`orders`, with how many CTAs are on the device at a time, 0 for as many as there are.
    """
    made = make(turns, 0)
    program, found = made.program, made.words
    assert found is not None
    coverage = program.coverage.judging(NotJudgedKind.WORDS)
    program = replace(program, coverage=coverage)
    why = found.why_not or ("" if is_decided(program, found, hangs=True) else How.WORDS.value)
    if not why and (more := more_than_orders(program, found)) and prove(program).verdict is not Verdict.REFUTED:
        why = more
    why = "nothing comes in this order" if found.off_turn else why
    open_ = [NotJudged(NotJudgedKind.WORDS, 0, (why,))] if why else []
    most = MOST_MADE if found.observed and not turns else 0
    every = orders(lambda given: make(given, 0), most, MOST_OPERATIONS) if most else ()
    others = ["more" if each is None else str(digits(each.turns)) for each in every if _has_another(each, found)]
    others = others or ["0"] * bool(turns)  # which has the others
    open_ += [NotJudged(NotJudgedKind.WORD_ORDERS, len(others) * (not turns), tuple(others))] if others else []
    together: list[Assumed] = []
    if not found.stuck and (fewer := make((), ctas - 1).words) is not None and fewer.stuck:
        together.append(Assumed(Assumption.RESIDENCY, f"{ctas} CTAs are on the device at the same time"))
    return replace(
        program,
        coverage=replace(coverage, not_judged=tuple(open_), assumed=(*coverage.assumed, *together)),
    )


def _has_another(made: MadeInTurn | None, found: WordsOfRun) -> bool:
    return made is None or made.words is None or made.words.order != found.order
