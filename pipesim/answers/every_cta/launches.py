"""What a verdict on a kernel is about besides the run that was read: other CTAs, other contents, and fewer tiles."""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count, product
from math import prod
from typing import Any

from pipesim.answers.every_cta.conditions import Evaluation, completed, words_of
from pipesim.answers.every_cta.inside import with_words_inside
from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.answers.every_cta.together import Together, programs_together
from pipesim.answers.views.check import CtaKindVerdict
from pipesim.model.finding import Verdict
from pipesim.model.ops import AT, Operation
from pipesim.model.program import Program
from pipesim.ptx.emulation import emulate
from pipesim.ptx.extract import Extraction, emit
from pipesim.ptx.free.arrays import FreeArray
from pipesim.ptx.free.forms import Form
from pipesim.ptx.free.varying import FreeInputs
from pipesim.ptx.hand_outs import MOST_ANY
from pipesim.ptx.launch.values import ANSWERS_OF_DATA, HANDED_OUT
from pipesim.targets import Target
from pipesim.trace.arrays import np

WORSE = (Verdict.PROVED, Verdict.UNKNOWN, Verdict.REFUTED)
MOST_TILES = 64  #: of one path through pairs of kinds
MOST_WALKS = 8
_MOST_OF_DATA = 3 << 18  #: instructions that are followed for all that data may decide: it takes longer than others


def kinds_of_tiles(
    runs: Sequence[FreeInputs], array: FreeArray, place: "Mapping[str, np.ndarray]", most: int
) -> "np.ndarray":
    """The kind of each tile, by its number: those that runs cannot distinguish by what they ask about one tile.

    ``most``: tiles that are looked at. ``place``: of the cluster whose runs these are.
    """
    numbers = np.arange(most, dtype=np.int64)
    columns: list[Any] = [np.zeros(most, dtype=bool)]
    for inputs in runs:
        place = completed(inputs, place)
        for terms, condition in inputs.conditions.items():
            form = Form(0, terms)
            words = words_of(form, Evaluation(place))
            if len(words) == 1 and words[0][0] == array.name:
                value = Evaluation(place, {words[0]: numbers}).sum(form)
                columns.append(np.broadcast_to(condition.holds(value), most))
    made: np.ndarray = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1]
    return made.reshape(-1)


def walks(kinds: Sequence[int]) -> list[tuple[int, ...]]:
    """Numbers of tiles that rise, in several paths: each kind follows each other one, and itself, where that can be.

    After the last pair there are two more tiles, as far as any are left, since what is wrong shows later.
    """
    places: dict[int, list[int]] = {}
    for number, kind in enumerate(kinds):
        places.setdefault(kind, []).append(number)
    todo = {(a, b) for a, b in product(places, repeat=2) if _after(places, b, places[a][0]) is not None}
    found: list[tuple[int, ...]] = []
    while todo and len(found) < MOST_WALKS and len(places) > 1:
        at = 0 if not found else min(places[first][0] for first, _ in todo)
        walk = [at]
        while len(walk) < MOST_TILES:
            at = walk[-1]
            steps = [(n, b) for a, b in todo if a == kinds[at] and (n := _after(places, b, at)) is not None]
            if steps:
                todo.discard((kinds[at], min(steps)[1]))
                walk.append(min(steps)[0])
                continue
            begins = [n for a, b in todo if (n := _begins(places, a, b, at)) is not None]
            if not begins:
                break
            walk.append(min(begins))
        found.append((*walk, *range(walk[-1] + 1, min(walk[-1] + 3, len(kinds)))))
    return found


def _after(places: Mapping[int, list[int]], kind: int, number: int) -> int | None:
    """The next tile of a kind."""
    at = bisect_right(places[kind], number)
    return places[kind][at] if at < len(places[kind]) else None


def _begins(places: Mapping[int, list[int]], a: int, b: int, number: int) -> int | None:
    """The next tile of kind ``a`` after which there is one of kind ``b``."""
    first = _after(places, a, number)
    return None if first is None or _after(places, b, first) is None else first


_MOST_NUMBERS = 1 << 16  #: of tiles whose kinds are looked at
Place = tuple[int, int]  #: the number of a choice of policies, and the hash of what CTAs do


@dataclass(frozen=True)
class _Looked:
    """The CTAs with one choice of policies: their kinds, and of each kind the hash of what its CTAs do."""

    policies: dict[str, int]
    every: EveryCta[Extraction]
    shapes: list[int]
    tiles: int  #: that are handed out


class OtherLaunches:
    """The same kernel in other CTAs, with other contents of free arrays, and where other CTAs leave fewer tiles.

    Each that does something new is a target, after :meth:`begin`. The verdict on each is given before the next is asked
    for. Nothing is asked about other CTAs where the launch names one. ``policies``: with which values
    the kernel was checked. ``together``: what CTAs do that wait for each other by words of global memory.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._named = target.kernel is not None and target.kernel.kernel.launch.cta is not None
        self._looked: list[_Looked] = []
        self._verdicts: dict[int, Verdict] = {}  # on what CTAs do, by its hash
        self.about: Place = (-1, 0)  #: what the report is about, if that is not proved
        self._ended = False  # nothing is left to look at
        self.policies: dict[str, tuple[int, ...]] = {}
        self.together = Together()

    def begin(self, verdict: Verdict) -> None:
        """The verdict on the target itself, which is of a kernel."""
        assert self._target.kernel is not None
        self._look_at(self._target.kernel, {}, self._target.kernel.launch_control or 0)
        self.judge(verdict)
        if verdict is not Verdict.PROVED:
            self.settle()

    def __iter__(self) -> Iterator[Target]:
        kernel = self._target.kernel
        assert kernel is not None
        yield from self._other_ctas(self._target)
        for each in kernel.fewer_tiles:
            made = kernel.with_fewer(each)
            fewer = self._target.with_settings({each.policy: each.value}, made)
            if self._look_at(made, {each.policy: each.value}, each.tiles):
                yield fewer
            yield from self._other_ctas(fewer)
            self.policies[each.policy] = tuple(sorted({each.value, each.used, *self.policies.get(each.policy, ())}))
        yield from self._all_pairs(kernel)
        if kernel.may_talk and not kernel.kernel.launch.inside:  # else no other CTA writes its words
            for settings, made in programs_together(kernel, self.together, self._target.strictness):
                if self._look_at(made, settings, 0):
                    yield self._target.with_settings(settings, made)
                self.together.refuted |= self._verdict(self._looked[-1].shapes[-1]) is Verdict.REFUTED
            if self.together.sizes and not self.together.meet and (apart := self._is_apart(kernel)):
                before, self.together = self.together, Together()
                self.together.waits, self.together.asks = before.waits, before.asks
                self.together.why_not = f"CTA {apart:,} does not do the same as those that are followed together"
        self._ended = True

    def _is_apart(self, kernel: Extraction) -> int:
        """A CTA of a kind that is not followed with others: they say nothing of how the whole grid waits. 0: none."""
        launch, kinds = kernel.kernel.launch, [each.cta for each in self._looked[0].every.kinds]
        small = launch.with_setting("together", self.together.sizes[-1])
        if small.grid != launch.grid:  # of one axis: it has kinds of its own
            made = replace(kernel.kernel, launch=replace(small, together=0))
            alike = 1 + sum(1 for _ in EveryCta(emit(made, emulate(made)), asked=False))
            return kinds[-1] if alike < len(kinds) else 0
        x, y, _ = launch.grid
        followed = {a + x * (b + y * c) for a, b, c in small.followed_together}
        return 0 if len(followed) == prod(launch.grid) else next((cta for cta in kinds if cta not in followed), 0)

    def _all_pairs(self, kernel: Extraction) -> Iterator[Target]:
        """The kernel with tiles of which each kind follows each other one, where runs with few tiles show kinds."""
        found = [each.every for each in self._looked if HANDED_OUT in each.every.arrays]
        if all(each.any_tiles for each in found) or kernel.kernel.launch.policies.launch_control is not None:
            return
        array, first = found[0].arrays[HANDED_OUT], found[0].kinds[0].cta
        runs = [kind.inputs for each in found for kind in each.kinds if kind.cta == first]
        end = array.late[1]  # the number of what a counter gives after all tiles
        numbers = min(end or array.most + 1, _MOST_NUMBERS)
        for tiles in walks(kinds_of_tiles(runs, array, found[0].place_of(kernel.kernel.launch), numbers).tolist()):
            values = [array.low + array.step * number for number in (*tiles, *([end] if end else []))]
            made = kernel.with_tiles(tuple(values))
            settings = {f"{HANDED_OUT}:{n}": value for n, value in enumerate(values)}
            walked = self._target.with_settings(settings, made)
            if self._look_at(made, settings, len(tiles)):
                yield walked
            yield from self._other_ctas(walked)

    def judge(self, verdict: Verdict) -> None:
        """The verdict on the last target: of several orders of its atomics the worst one."""
        shape = self._looked[-1].shapes[-1]
        self._verdicts[shape] = max(verdict, self._verdicts.get(shape, verdict), key=WORSE.index)

    def settle(self) -> None:
        """The report is about the last target, which is not proved."""
        self.about = self.place

    @property
    def looked_at(self) -> list[EveryCta[Extraction]]:
        """The CTAs with each choice of policies."""
        return [each.every for each in self._looked]

    @property
    def complete(self) -> bool:
        """Whether every CTA was looked at."""
        return bool(self._looked) and not self._named and all(each.every.complete for each in self._looked)

    @property
    def left_out(self) -> bool:
        """Whether there are more kinds of CTAs than were looked at."""
        return not all(each.every.complete for each in self._looked)

    @property
    def undecided(self) -> bool:
        """Whether something was looked at, or left out, of which it is not known whether it is right."""
        shapes = (shape for each in self._looked for shape in each.shapes)
        return bool(self._looked) and (
            not self._ended or self.left_out or any(self._verdict(shape) is Verdict.UNKNOWN for shape in shapes)
        )

    @property
    def are_all_together(self) -> bool:
        """Whether programs in which CTAs talk are proved that have all that one of them does."""
        first, *others = self._looked
        if self.together.why_not or not all(self._verdict(each.shapes[0]) is Verdict.PROVED for each in others):
            return False
        return bool(self.together.sizes) and (first.every.clusters in self.together.sizes or len(first.shapes) == 1)

    @property
    def open_word(self) -> str:
        """An element of a free array for which it was not found whether all contents were looked at, "" if none."""
        return next(filter(None, (each.every.undecided for each in self._looked)), "")

    @property
    def contents(self) -> dict[str, tuple[int, int, int]]:
        """The free arrays of which elements were read, with the values that they may have: from, to, in steps of."""
        arrays = {name: array for looked in self._looked for name, array in looked.every.arrays.items()}
        free = [
            each for each in arrays.values() if each.most and not each.name.startswith((HANDED_OUT, ANSWERS_OF_DATA))
        ]
        return {each.name: (each.low, each.high, each.step) for each in free}

    @property
    def any_tiles(self) -> int | None:
        """Up to how many tiles are handed out all choices were looked at; -1 for all numbers, None if none are."""
        asked = [each for each in self._looked if HANDED_OUT in each.every.arrays]
        if not asked:
            return None
        if all(each.every.any_tiles for each in asked):
            return -1
        whole = {each.tiles for each in self._looked if each not in asked or each.every.any_tiles}
        return max(next(n for n in count() if n not in whole) - 1, 0)

    @property
    def checked_with(self) -> dict[str, tuple[int, ...]]:
        """The policies: of the target that was not proved only its own."""
        if self.about[0] < 0:
            return self.policies
        looked = self._looked[self.about[0]]
        contents = looked.every.kinds[looked.shapes.index(self.about[1])].contents
        return {name: (value,) for name, value in {**looked.policies, **contents}.items()}

    @property
    def place(self) -> Place:
        """Which CTAs the last target is about, and with which policies."""
        return len(self._looked) - 1, self._looked[-1].shapes[-1]

    def settings_of(self, place: Place) -> dict[str, int]:
        """What ``--set`` takes for the first CTA of a place."""
        looked = self._looked[place[0]]
        at = looked.shapes.index(place[1])
        kind = looked.every.kinds[at]
        return {**looked.policies, **({"cta": kind.cta} if at else {}), **kind.settings}

    def kinds_at(self, places: Iterable[Place]) -> tuple[CtaKindVerdict, ...]:
        """The kinds of CTAs at these places; () where all CTAs do the same."""
        found = [
            kind
            for number, looked in enumerate(self._looked)
            for shape, kind in zip(looked.shapes, self._kinds_of(looked), strict=False)
            if (number, shape) in places
        ]
        first = {(each.cta, tuple(each.contents.items())): each for each in reversed(found)}
        return tuple(first[at] for at in sorted(first))

    def kinds(self) -> tuple[CtaKindVerdict, ...]:
        """The kinds of CTAs with the policies of the target that was not proved, else of the one that was asked."""
        return self._kinds_of(self._looked[max(self.about[0], 0)]) if self._looked else ()

    def _kinds_of(self, looked: _Looked) -> tuple[CtaKindVerdict, ...]:
        if len(looked.every.kinds) == 1:
            return ()
        ctas = self._target.program.ctas if self._target.program is not None else 1
        return tuple(
            CtaKindVerdict(each.cta, each.clusters * ctas, self._verdict(shape), each.differs, each.line, each.contents)
            for each, shape in zip(looked.every.kinds, looked.shapes, strict=False)
        )

    def _verdict(self, shape: int) -> Verdict:
        return self._verdicts.get(shape, Verdict.UNKNOWN)

    def _look_at(self, kernel: Extraction, policies: dict[str, int], tiles: int) -> bool:
        """Whether nothing that does the same was looked at before. ``tiles``: that are handed out."""
        shape = hash(shape_of_program(kernel.program))
        most = _MOST_OF_DATA if kernel.kernel.launch.any_data else 0
        every = EveryCta(kernel, asked=tiles <= MOST_ANY, instructions=most)
        if kernel.words is not None:
            every.looked_at = every.clusters
        self._looked.append(_Looked(policies, every, [shape], tiles))
        return shape not in self._verdicts

    def _other_ctas(self, target: Target) -> Iterator[Target]:
        looked = self._looked[-1]
        for made in looked.every:
            inside = with_words_inside(made, self._target.strictness) if made.kernel.launch.inside else ()
            several = tuple(inside) or (({}, made),)
            looked.shapes.append(hash(tuple(shape_of_program(each.program) for _, each in several)))
            if looked.shapes[-1] not in self._verdicts:
                settings = {"cta": made.kernel.launch.cta or 0, **looked.every.kinds[-1].settings}
                yield from (target.with_settings({**settings, **more}, each) for more, each in several)


def shape_of_program(program: Program) -> Hashable:
    """What two programs have in common that differ in the numbers of their items, and in words of their coverage, only.

    A verdict depends on which sentences there are, and not on the addresses in them.
    """
    numbers: dict[int, int] = {}
    code = tuple(tuple(_renumbered(op, numbers) for op in agent) for agent in program.code)
    coverage = program.coverage
    kinds = tuple(sorted(each.kind.name for each in coverage.assumed))
    said = tuple(
        len(getattr(coverage, each.name)) for each in fields(coverage) if each.name not in ("extracted", "ctas")
    )
    others = [getattr(program, each.name) for each in fields(program) if each.name not in ("code", "coverage")]
    return code, kinds, said, coverage.forbidden, coverage.not_judged, coverage.dependent, repr(others)


def _renumbered(op: Operation, numbers: dict[int, int]) -> Operation:
    at = AT["item"].get(op[0])
    if at is None or op[at] < 0:
        return op
    return (*op[:at], numbers.setdefault(op[at], len(numbers)), *op[at + 1 :])
