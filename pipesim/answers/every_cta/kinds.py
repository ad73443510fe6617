"""Every CTA of a launch and all contents of free arrays: one cluster of each kind, where those of a kind do the same.

A run notes under which conditions on the cluster's place in the grid, and on the elements of free arrays, it continues
as it does (:mod:`pipesim.ptx.free.varying`). The first cluster that no run so far covers is followed next, with
contents that none covers, until all are covered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pipesim.answers.every_cta.boxes import Word
from pipesim.answers.every_cta.conditions import Evaluation, broken, completed, covered
from pipesim.answers.every_cta.contents import OpenContents, UndecidedError
from pipesim.bounds import MAX_WARP_INSTRUCTIONS
from pipesim.explain.anatomy.parts import Anatomy, CtaKindParts
from pipesim.explain.anatomy.read import anatomy, differences
from pipesim.explain.ledger import Extent
from pipesim.model.program import Program
from pipesim.ptx.emit.names import source_of
from pipesim.ptx.free.arrays import FreeArray
from pipesim.ptx.free.forms import Form
from pipesim.ptx.free.varying import FreeInputs
from pipesim.ptx.launch.values import HANDED_OUT, Launch, Shape
from pipesim.targets import Target
from pipesim.trace.arrays import np

if TYPE_CHECKING:
    from pipesim.answers.global_memory.reading import GlobalReading
    from pipesim.ptx.extract import Extraction


MOST_KINDS = 64
MOST_TILES_KINDS = 24  #: more of them for other tiles that are handed out
_MOST_INSTRUCTIONS = 4 * MAX_WARP_INSTRUCTIONS  #: of all kinds together
_AT_ONCE = 1 << 20  #: clusters whose conditions are evaluated together


@dataclass(frozen=True)
class CtaKind:
    """Clusters that do the same as the first of them, whose first CTA this is. ``clusters``: how many, so far.

    ``inputs``: under which conditions they do, which ``instructions`` have shown.
    ``differs``: what is so in this cluster, and not in the one before, ``blockIdx.x > 62``, at this ``line``.
    ``contents``: the elements of free arrays that were chosen for this run, with their values, by their names.
    ``settings``: the same by their places, as ``--set`` has them.
    """

    cta: int
    inputs: FreeInputs
    instructions: int
    clusters: int = 0
    differs: str = ""
    line: str = ""
    contents: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, int] = field(default_factory=dict)


Run = TypeVar("Run", "Extraction", "GlobalReading")  #: what one cluster does, as far as it was followed


class EveryCta(Generic[Run]):
    """The kinds of clusters of a launch of which one was read; iterating gives one of each other kind, as it was read.

    Where the launch names a CTA, of its cluster alone. ``looked_at``: the number of clusters, from the first on, that
    all are of one of the kinds. ``undecided``: an element of which it was not found whether other contents are left.
    ``any_tiles``: whichever tiles are handed out; this is looked at only if it is ``asked``. ``most`` kinds are looked
    at, and as long as not more ``instructions`` were followed.
    """

    def __init__(self, first: Run, *, asked: bool = True, most: int = 0, instructions: int = 0) -> None:
        launch = first.kernel.launch
        self._grid, self._cluster = launch.grid, launch.cluster
        self._names = [launch.place_name(axis) for axis in range(3)]
        x, y, z = (g // c for g, c in zip(launch.grid, launch.cluster, strict=True))
        self._shape: Shape = (x, y, z)
        self._most, self._asked = most or MOST_KINDS, asked
        self._most_instructions = instructions or _MOST_INSTRUCTIONS
        self._held = True  # the tiles that are handed out are the usual ones
        self.any_tiles = False
        at = [a // c for a, c in zip(launch.first_cta, launch.cluster, strict=True)]
        alone = launch.cta is not None
        self._start = (at[2] * y + at[1]) * x + at[0] if alone else 0
        self.clusters = self._start + 1 if alone else x * y * z
        self.looked_at = 0
        self.undecided = ""
        self._first: Run = first
        self._open: dict[int, OpenContents] = {}
        self.kinds = [CtaKind(launch.cta or 0, first.inputs, first.instructions)]
        self.arrays = dict(first.inputs.arrays)  #: free arrays of which elements were read

    @property
    def complete(self) -> bool:
        """Whether every cluster is of one of the kinds, whatever free arrays hold."""
        return self.looked_at == self.clusters

    def __iter__(self) -> Iterator[Run]:
        yield from self._cover()
        runs = [kind.inputs for kind in self.kinds]
        self.any_tiles = self.complete and not any(HANDED_OUT in inputs.arrays_in_conditions() for inputs in runs)
        if self.complete and self._asked and not self.any_tiles:
            self._held, self._most = False, len(self.kinds) + MOST_TILES_KINDS
            yield from self._cover()
            self.any_tiles, self.looked_at, self.undecided = self.complete, self.clusters, ""

    def _cover(self) -> Iterator[Run]:
        if not self.kinds[0].inputs.conditions:  # it does the same in every place
            self.looked_at = self.clusters
            self.kinds[0] = replace(self.kinds[0], clusters=self.clusters)
            return
        for start in range(self._start, self.clusters, _AT_ONCE):
            left = np.arange(start, min(start + _AT_ONCE, self.clusters), dtype=np.int64)
            self._open.clear()
            for number in range(len(self.kinds)):
                left = self._take(number, left)
            while len(left):
                try:
                    found = self._not_covered(left)
                except UndecidedError as error:
                    self.undecided = "{}[{}]".format(*error.word)
                    return
                if found is None:
                    break
                self.looked_at = int(left[0])
                if len(self.kinds) == self._most or self._spent > self._most_instructions:
                    return
                made = self._follow(*found)
                left = self._take(-1, left)
                yield made
                del made  # it is large
            self.looked_at = min(start + _AT_ONCE, self.clusters)

    @property
    def _spent(self) -> int:
        return sum(kind.instructions for kind in self.kinds)

    def _take(self, number: int, left: np.ndarray) -> np.ndarray:
        """Those of some clusters that are not of this kind, or not with all contents."""
        kind = self.kinds[number]
        if self._depends(kind.inputs):
            return left
        mine = covered(kind.inputs, self.places(left), self._usual)
        if self._held:
            self.kinds[number] = replace(kind, clusters=kind.clusters + int(mine.sum()))
        others: np.ndarray = left[~mine]
        return others

    def _depends(self, inputs: FreeInputs) -> bool:
        """Whether conditions are about elements that are free now."""
        return bool(inputs.arrays_in_conditions() - ({HANDED_OUT} if self._held else set()))

    @property
    def _usual(self) -> dict[Word, np.ndarray]:
        """The tiles that are handed out, where these are the usual ones."""
        array = self.arrays.get(HANDED_OUT)
        tiles = enumerate(array.usual) if array is not None and self._held else ()
        return {(HANDED_OUT, n): np.array([number]) for n, number in tiles}

    def _not_covered(self, left: np.ndarray) -> tuple[int, dict[Word, int]] | None:
        """A cluster, and contents that no run covers there, by the numbers of their values; None if all are covered.

        ``left``: those that no run covers whatever the contents. Raises UndecidedError.
        """
        runs = [kind.inputs for kind in self.kinds if self._depends(kind.inputs)]
        if not runs:
            return int(left[0]), {}
        arrays = {name: replace(each, held=self._held and name == HANDED_OUT) for name, each in self.arrays.items()}
        for each in left[_first_of_each(runs, completed(runs[0], self.places(left)), arrays)]:
            cluster = int(each)
            if cluster not in self._open:
                self._open[cluster] = OpenContents(completed(runs[0], self.places(np.array([cluster]))))
            self._open[cluster].arrays.update(arrays)
            found = self._open[cluster].first(runs)
            if found is not None:
                return cluster, found
        return None

    def first_cta_of(self, cluster: int) -> int:
        """The number in the grid of the first CTA of a cluster, x counted first."""
        x, y, _ = self._shape
        at = cluster % x, cluster // x % y, cluster // (x * y)
        i, j, k = (place * size for place, size in zip(at, self._cluster, strict=True))
        return (k * self._grid[1] + j) * self._grid[0] + i

    def _follow(self, cluster: int, chosen: Mapping[Word, int]) -> Run:
        arrays = self.arrays
        chosen = {word: number for word, number in chosen.items() if not self._held or word[0] != HANDED_OUT}
        contents: dict[Word, int] = {}  # the numbers of the values of all elements that are not the usual ones
        for name, array in arrays.items():
            mine = {index: number for (of, index), number in chosen.items() if of == name}
            contents |= {(name, index): number for index, number in array.completed(mine).items()} if mine else {}
        usual = {(name, n): number for name, array in arrays.items() for n, number in enumerate(array.usual)}
        every = {word: np.array([number]) for word, number in (usual | contents).items()}
        found = broken(self.kinds[-1].inputs, self.places(np.array([cluster])), every)
        words, line = "", ""
        kernel = self._first.kernel
        if found is not None:
            body = kernel.function.body
            words, line = found.words, source_of(body[min(found.position, len(body) - 1)], kernel.module)
        cta = self.first_cta_of(cluster)
        values = [(name, n, arrays[name].low + number * arrays[name].step) for (name, n), number in contents.items()]
        made = self._first.elsewhere(cta, tuple(values))
        unusual = {word for word, number in chosen.items() if number != usual[word]}
        chosen_values = {f"{name}[{n}]": value for name, n, value in values if (name, n) in unusual}
        settings = {arrays[name].setting(n): value for name, n, value in values}
        self.kinds.append(CtaKind(cta, made.inputs, made.instructions, 0, words, line, chosen_values, settings))
        self.arrays = made.inputs.arrays | self.arrays
        return made

    def clusters_of_kinds(self) -> list[np.ndarray]:
        """Of each kind the numbers of its clusters, with the usual contents."""
        left, found = np.arange(self._start, self.looked_at, dtype=np.int64), []
        for kind in self.kinds:
            mine = covered(kind.inputs, self.places(left), self._usual) if kind.inputs.conditions else left == left
            found.append(left[mine])
            left = left[~mine]
        return found

    def all_places(self) -> dict[str, np.ndarray]:
        """The free inputs of all clusters."""
        return self.places(np.arange(self.clusters, dtype=np.int64))

    def place_of(self, launch: Launch) -> dict[str, np.ndarray]:
        """The free inputs of the cluster that a launch names."""
        sizes = zip(self._names, launch.first_cta, self._cluster, strict=True)
        return {name: np.array([first // size], dtype=np.int64) for name, first, size in sizes}

    def places(self, clusters: np.ndarray) -> dict[str, np.ndarray]:
        """The free inputs of clusters by their numbers, x counted first."""
        x, y, _ = self._shape
        at = clusters % x, clusters // x % y, clusters // (x * y)
        return dict(zip(self._names, at, strict=True))


def _first_of_each(
    runs: Sequence[FreeInputs], places: Mapping[str, np.ndarray], arrays: Mapping[str, FreeArray]
) -> np.ndarray:
    """The first of each of the clusters between which nothing that runs have asked differs; their numbers in places."""
    evaluation = Evaluation(places)
    columns: list[Any] = []
    indices: dict[str, dict[Form, Any]] = {}

    def look(form: Form) -> None:
        for atom in form.atoms(lambda each: each.in_memory and each.function is not None):
            if not atom.in_memory:
                columns.append(evaluation.sum(Form(0, ((atom, 1),))))
            elif atom.function is None:
                indices.setdefault(atom.name, {})[atom.arguments[0]] = evaluation.sum(atom.arguments[0])

    for inputs in runs:
        for terms, condition in inputs.conditions.items():
            form = Form(0, terms)
            if form.in_memory:
                look(form)
            else:
                columns.append(condition.holds(evaluation.sum(form)))
    size = len(next(iter(places.values())))
    for name, found in indices.items():
        each = np.stack([np.broadcast_to(index, size) for index in found.values()])
        rises = arrays[name].rises
        if rises is None:  # which of them are the same element
            columns += [np.argmax(each == one, axis=0) for one in each[1:]]
        else:  # how far they are from each other, and from the ends
            columns += list(each if rises[0] else each - each[0])
    if not columns:
        return np.array([0])
    numbered = [np.unique(np.broadcast_to(column, size), return_inverse=True)[1] for column in columns]
    firsts = np.unique(np.stack(numbered, axis=1), axis=0, return_index=True)[1]
    return firsts[np.argsort(firsts, kind="stable")]


def anatomies(target: Target, program: Program, rank: int) -> tuple[Anatomy, ...]:
    """The CTA of this rank of a cluster of the target's ``program``, then one of each kind that has other parts.

    The first of them names all kinds, if there are several.
    """
    shown = anatomy(program, rank)
    if target.kernel is None or target.kernel.kernel.launch.cta is not None:
        return (shown,)
    every = EveryCta(target.kernel)
    mine = [shown, *(anatomy(made.program, rank) for made in every)]
    other = [differences(_without_numbers(shown), _without_numbers(each)) for each in mine]
    kinds = [
        CtaKindParts(each.cta, each.clusters * program.ctas, each.differs, each.line, each.contents, names)
        for each, names in zip(every.kinds, other, strict=True)
    ]
    found = {names: each for each, names in zip(reversed(mine), reversed(other), strict=True)}
    first = replace(shown, kinds=tuple(kinds) if kinds[1:] else ())
    return (first, *(each for names, each in reversed(found.items()) if names))


def _without_numbers(part: Anatomy) -> Anatomy:
    """Without how often something is done, which loops decide."""
    groups = [
        replace(
            group,
            signals=tuple(replace(each, in_all=0, each_phase=None) for each in group.signals),
            waits=tuple(replace(each, in_all=0) for each in group.waits),
            sent=tuple(replace(each, in_all=0, each_phase=None) for each in group.sent),
        )
        for group in part.groups
    ]
    meetings = [
        replace(meeting, members=tuple(replace(each, times=Extent(0, 0)) for each in meeting.members))
        for meeting in part.meetings
    ]
    return replace(part, groups=tuple(groups), meetings=tuple(meetings))
