"""A loop that a word of the launch lengthens: whether every further lap of it is the same, by what the code computes.

The word is a value and ``m`` times what one lap takes, where ``m`` is a free input from 0 on. The run is that of
``m`` 2. It is watched for a moment at which the cluster is where it was before, and before that, after two laps that
compared something with ``m`` and added the same to each register. From there on each register is an expression of
``t``, the laps since the first of these moments, and ``u``, those still to come: ``m`` becomes ``t + u``, and what a
lap adds to the register is added ``t`` times. If the next lap leaves the state in which ``t`` is one more and ``u`` one
less, without having decided anything on either, it is the same lap for every ``t`` and ``u``: the code is the evidence.
After it ``u`` is 0 and ``t`` is ``m``. A run with ``m`` below 2 leaves the loop from the first moment on, or after one
lap: it is held to what was decided before that moment, and not to what the two laps decided on ``m``.

What is compared is what the values and waits of warps depend on; what it cannot compare is unknown after the lap. The
operations of a lap, with what is under way at its ends, are compared by the proof, at the sizes that are looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from pipesim.ptx.emulate.global_memory.global_memory import ANY_TILE
from pipesim.ptx.emulate.laps import snapshots
from pipesim.ptx.emulate.values import Leaf, PerLane, Unknown, Value, each_lane, lanes_of, same
from pipesim.ptx.free.forms import Atom, Form, Forms, bounds, constant
from pipesim.ptx.free.varying import FreeInputs, Varying, form_of, identity
from pipesim.ptx.launch.values import LAPS_SEEN, FreeRange

if TYPE_CHECKING:
    from pipesim.ptx.emulate.cluster import Cluster
    from pipesim.ptx.emulate.warp import EmulatedWarp

_TOKENS = 1 << 62  #: states of barriers are numbers from here on, which mean a barrier and its phase
LEFT = Unknown(Leaf("a value that a lap of a loop leaves", 0))
_SAME = constant(0)
Change = Form | tuple[Form | None, ...] | None  #: what a lap adds, to each lane; None: it cannot be said


class _LapMoment(NamedTuple):
    """What is there at a moment, and how many comparisons with ``m`` and conditions there had been."""

    snapshot: snapshots.RegisterSnapshot
    compared: int
    conditions: int


class _Lap(NamedTuple):
    """The lap that is gone through for all others: where it begins, with which values and known bytes; ``t`` laps were
    before it, ``u`` are to come. The cluster is there again ``times`` times until it is over.
    """

    stands: object
    values: list[Value]
    known: snapshots.KnownBytes
    t: Atom
    u: Atom
    times: int
    lefts: int = 0  #: laps before it after which values that were others were left, as if the next did not read them


def watch_laps(cluster: Cluster) -> None:
    """Have the cluster watched where words of its launch lengthen loops."""
    words = [word.free for word in cluster.image.free_words.values() if word.free.lap]
    if words:
        cluster.pauses = True  # of loops that nothing waits in a lap is a round as well
        cluster.watcher = LengthenedLoops(cluster, words)


class LengthenedLoops:
    """Watches one run for each word; what one word lengthens may be inside of a lap of another one's loop."""

    def __init__(self, cluster: Cluster, words: Sequence[FreeRange]) -> None:
        seen, inside = snapshots.RegisterSnapshots(cluster), list[LengthenedLoop]()
        self._each = [
            LengthenedLoop(cluster, each.name, (each.most - each.low) // each.lap, seen, inside) for each in words
        ]

    @property
    def shown(self) -> bool:
        """Whether each lap of each loop that one of the words lengthens is the same."""
        return all(each.shown for each in self._each)

    def look(self) -> None:
        """After a round of all warps."""
        for each in self._each:
            each.look()


class LengthenedLoop:
    """Watches one run for one word. ``within``: those words' of which a lap is gone through, the innermost last."""

    def __init__(
        self, cluster: Cluster, name: str, most: int, seen: snapshots.RegisterSnapshots, within: list[LengthenedLoop]
    ) -> None:
        self._cluster, self._name, self._most, self._within = cluster, name, most, within
        self._inputs: FreeInputs = cluster.inputs
        self._times = 0
        self._m = self._atom("m", LAPS_SEEN)
        ((more, _),) = self._inputs.forms.free(f"more of {name}", 0, most - LAPS_SEEN).terms
        self._seen = {self._m: Form(LAPS_SEEN, ((more, 1),))}  # where there are as many laps as are seen, or more
        self._compares: list[Form] = []  # what was compared with the laps
        self._inputs.lengthen(name, Form(0, ((self._m, 1),)), {self._m}, self._compares)
        self._moments: dict[int, list[_LapMoment]] = {}
        self._snapshots = seen
        self._inside: _Lap | None = None
        self._stood = 0  # how often where that lap began
        self._compared = 0  # how often before that lap was left
        self._looked = 0  # and before the last look
        self._lap: deque[object] = deque()  # where the cluster was in the lap that was left, next what comes again
        self._fails = False

    def _atom(self, name: str, now: int, shares: str = "") -> Atom:
        ((atom, _),) = self._inputs.forms.free(f"{name} of {self._name}", 0, self._most, shares).terms
        self._inputs.now[atom.name] = now
        return atom

    @property
    def loop(self) -> tuple[str, int]:
        """The loop of which a lap is gone through: the word, and how many there were."""
        return self._name, self._times

    @property
    def shown(self) -> bool:
        """Whether each lap of each loop that the word lengthens is the same."""
        mine = self._inside is None and not self._fails
        if self._cluster.boxless.uses or self._cluster.image.odd_lap:
            return False
        return mine and not any(_has(Form(0, terms), self._is_asked) for terms in self._inputs.conditions)

    def _is_asked(self, atom: Atom) -> bool:
        """Whether a condition on it does not hold for all laps."""
        return self._is_mine(atom) or _is_any_tile(atom)

    def _is_mine(self, atom: Atom) -> bool:
        return atom.function is None and atom.name.endswith(f" of {self._name}")

    def look(self) -> None:
        """After a round of all warps."""
        if self._fails or self._times > _MOST_LOOPS:
            return
        stands = stands_of(self._cluster)
        compares, self._looked = len(self._compares) > self._looked, len(self._compares)
        if self._inside is not None:
            self._lap.append(stands)
            if stands == self._inside.stands and compares:
                self._stood += 1
                self._leave(self._inside)
            return
        alike = len(self._compares) == self._compared  # else it is where it was in the same loop again
        if alike and self._lap and stands == self._lap[0]:  # one of its laps that the run itself has
            self._lap.rotate(-1)
            return
        self._lap.clear()
        if not compares:  # no lap ends here
            return
        self._forget_bytes()
        snapshot = self._snapshots.take()
        moments = self._moments.setdefault(hash((stands, *(each.loop for each in self._within))), [])
        if moments and not moments[-1].snapshot.is_like(snapshot):
            moments.clear()
        moments.append(_LapMoment(snapshot, len(self._compares), len(self._inputs.conditions)))
        for times in range(1, (len(moments) + 1) // 2):
            seen = [moments[at] for at in (-1 - 2 * times, -1 - times, -1)]
            if not self._uses_up(*seen):
                continue
            values = [[self._decided(value) for value in each.snapshot.values()] for each in seen]
            there = [self._with_any_tiles(v, each.snapshot.known) for v, each in zip(values, seen, strict=True)]
            known = [each for _, each in there]
            added = added_twice(*([each] for each, _ in there)) if known == known[:1] * 3 else None
            if added is not None:
                pairs = zip(added, seen[0].snapshot.values(), values[0], strict=True)
                added = [more if same(value, decided) else None for more, value, decided in pairs]
                self._forget_conditions(seen[0].conditions)
                self._enter(stands, values[2], added, times)
                return
        del moments[: -2 * _MOST_TIMES]

    def _uses_up(self, first: _LapMoment, second: _LapMoment, third: _LapMoment) -> bool:
        """Whether something was compared that every lap brings nearer by what ``m`` adds to it: it ends the loop."""
        forms = self._compares
        before, after = forms[first.compared : second.compared], forms[second.compared : third.compared]
        return any(
            dict(b.terms).get(self._m, 0) == a.constant - b.constant != 0 and a.terms == b.terms
            for a, b in zip(before, after, strict=False)
        )

    def _decided(self, value: Value) -> Value:
        """A value with the comparisons that have one result where there are as many laps as were seen, or more."""
        if isinstance(value, PerLane) and Varying in map(type, value.each):
            return lanes_of([self._decided(each) for each in value.each])
        if value.__class__ is not Varying or not any(atom.function for atom, _ in value.form.terms):
            return value
        return self._inputs.integer(int.__int__(value), self._decided_form(value.form))

    def _decided_form(self, form: Form) -> Form:
        found = constant(form.constant)
        for atom, factor in form.terms:
            arguments = [self._decided_form(each) for each in atom.arguments] if atom.function is not None else []
            there = _substitute(arguments[0], self._seen) if atom.name in ("negative", "zero") else None
            result = Form(0, ((atom, 1),))
            if there is not None:
                result = getattr(self._inputs.forms, f"is_{atom.name}")(there)
            elif atom.function is not None and not any(each.terms for each in arguments):
                result = constant(atom.function(*(each.constant for each in arguments)))
            found = found.plus(result if not result.terms else Form(0, ((atom, 1),)), factor)
        return found

    def _forget_conditions(self, before: int) -> None:
        """Those of the laps seen which hold for as many laps or more: with fewer the loop is left at the first moment.

        ``before``: how many conditions there were then.
        """
        for terms, condition in list(self._inputs.conditions.items())[before:]:
            form = Form(0, terms)
            there = _substitute(form, self._seen) if _has(form, self._is_mine) else None
            if there is not None and condition.holds_between(*bounds(there)):
                del self._inputs.conditions[terms]

    def _forget_bytes(self) -> None:
        """Bytes of shared memory that depend on the laps are not known."""
        for memory in self._cluster.bytes:
            memory.forget_alone(lambda form: _has(form, self._is_mine))

    def _enter(self, stands: object, values: list[Value], added: list[Change], times: int) -> None:
        """The next lap is one of many: the values are those after ``t`` laps of it, with ``u`` laps to come.

        Two of the ``t`` laps are those that were seen.
        """
        self._times += 1
        shares = f"m, in loop {self._times}"
        t, u = self._atom(f"t{self._times}", LAPS_SEEN, shares), self._atom(f"u{self._times}", 0, shares)
        sum_of_both = Form(0, tuple(sorted(((t, 1), (u, 1)), key=lambda each: each[0].number)))
        replaced = {self._m: sum_of_both}
        laps = Form(-LAPS_SEEN, ((t, 1),))
        pairs = zip(values, added, strict=True)
        made = [with_laps(value, more, replaced, laps, self._inputs) for value, more in pairs]
        snapshots.put_values(self._cluster, made)
        self._inputs.lengthen(self._name, sum_of_both, {t, u}, self._compares)
        self._snapshots.all_moved()
        self._within.append(self)
        self._inside = _Lap(stands, *self._with_any_tiles(made, snapshots.known_bytes(self._cluster)), t, u, times)
        self._stood = 0

    def _with_any_tiles(
        self, values: list[Value], known: snapshots.KnownBytes
    ) -> tuple[list[Value], snapshots.KnownBytes]:
        """A moment with the tiles that may be any named in their order there: with other ones it is the same moment."""
        if self._cluster.image.free_tiles is None:
            return values, known
        names, forms = dict[str, str](), self._inputs.forms

        @cache
        def renamed(form: Form) -> Form:
            found = constant(form.constant)
            for atom, factor in form.terms:
                part = Form(0, ((atom, 1),))
                if atom.function is not None and _has(part, _is_any_tile):
                    of = tuple(map(renamed, atom.arguments))
                    part = forms.apply(atom.name, atom.function, of, atom.low, atom.high, elementwise=atom.elementwise)
                elif _is_any_tile(atom):
                    name = names.setdefault(atom.name, f"{ANY_TILE}{atom.low} {atom.high} {len(names)}")
                    part = forms.free(name, atom.low, atom.high)
                found = found.plus(part, factor)
            return found

        def of(value: Value) -> Value:
            if isinstance(value, PerLane) and Varying in map(type, value.each):
                return lanes_of([of(each) for each in value.each])
            if value.__class__ is not Varying:
                return value
            return self._inputs.integer(int.__int__(value), renamed(value.form))

        made = [of(each) for each in values]
        return made, tuple({at: renamed(v) if isinstance(v, Form) else v for at, v in each.items()} for each in known)

    def _leave(self, lap: _Lap) -> None:
        """Where the lap is over, its values are those at its beginning, with one lap more before, one less after it."""
        slots = list(snapshots.slots_of(self._cluster))
        self._forget_bytes()
        now, known = self._with_any_tiles(snapshots.values_of(self._cluster), snapshots.known_bytes(self._cluster))
        alike = self._within[-1] is self and len(slots) == len(lap.values) and lap.known == known
        pairs = zip(slots, lap.values, now, strict=True) if alike else ()
        others = [slot for slot, value, after in pairs if not is_next(value, after, lap.t, lap.u)]
        if others and lap.lefts:  # the answer after the other one would differ
            others += [(holder, key) for holder, key in slots if not isinstance(holder[key], PerLane | int)]
        if not alike or others:
            self._fails = self._stood >= lap.times and (not alike or lap.lefts >= _MOST_LEFTS)
            if self._stood >= lap.times and not self._fails:
                for holder, key in others:
                    holder[key] = LEFT if lap.lefts else _left(holder[key])
                self._snapshots.all_moved()
                values, _ = self._with_any_tiles(
                    snapshots.values_of(self._cluster), snapshots.known_bytes(self._cluster)
                )
                self._inside, self._stood = lap._replace(values=values, lefts=lap.lefts + 1), 0
            return
        replaced = {lap.t: Form(0, ((self._m, 1),)), lap.u: constant(0)}
        for holder, key in slots:
            holder[key] = _replaced(holder[key], replaced, self._inputs)
        self._inputs.lengthen(self._name, Form(0, ((self._m, 1),)), {self._m}, self._compares)
        self._snapshots.all_moved()
        self._within.pop()
        self._inside, self._moments = None, {}
        self._compared = len(self._compares)


_MOST_LOOPS = 64  #: that are gone through one after the other
_MOST_LEFTS = 3  #: laps, until one leaves the values that it is to leave
_MOST_TIMES = 16  #: that the cluster is where it was before in one lap, as in a loop in the loop


def stands_of(cluster: Cluster) -> object:
    """Where the cluster is: everything that decides what happens next, beside values, and as phases continue."""
    barriers = tuple((place, s.expected, s.pending, s.tx, s.done & 1, s.life) for place, s in cluster.barriers.items())
    named = tuple((key, each.stands) for key, each in cluster.named.items())
    flights = tuple((each.agent, each.position) for each in cluster.flights)
    columns = tuple((tuple(each.live.items()), tuple(each.waiting)) for each in cluster.columns)
    return (
        tuple(map(_stands_at, cluster.warps)), barriers, named, flights, columns, cluster.cluster_barrier.ahead(),
        cluster.tiles.stands, cluster.globals.changes(),
    )  # fmt: skip


def _stands_at(warp: EmulatedWarp) -> object:
    frames = tuple(
        (each.kind, each.branch, each.joins, tuple(each.pending), tuple((pc, *sorted(held)) for pc, held in each.done))
        for each in warp.frames
    )
    groups = tuple((each.issued, each.loose, each.apart) for each in warp.groups.values())
    under_way = len(warp.tensor_reads), len(warp.tensor_writes)
    rest = (
        under_way,
        warp.uncommitted,
        warp.to_part,
        warp.maybe,
        warp.whole,
        warp.ended_lanes,
        warp.joins,
        (len(warp.local.words), len(warp.local.whole)),
    )
    return warp.status, warp.pc, warp.mask, frames, groups, rest


def added_twice(
    first: Iterable[Sequence[Value]], second: Iterable[Sequence[Value]], third: Iterable[Sequence[Value]]
) -> list[Change] | None:
    """What was added to each value between two moments, if as much was between the two before them.

    The values are given in parts: what snapshots share did not change.
    """
    found: list[Change] = []
    for parts in zip(first, second, third, strict=True):
        if parts[0] is parts[1] is parts[2]:
            found += [_SAME] * len(parts[0])
            continue
        for a, b, c in zip(*parts, strict=True):
            if a is b is c:
                found.append(_SAME)
                continue
            added = _change(b, c)
            if added != _change(a, b):
                return None
            found.append(added)
    return found


def _change(before: Value, now: Value) -> Change:
    if before.__class__ is int and now.__class__ is int:
        return _SAME if before == now else None if max(before, now) >= _TOKENS else constant(now - before)
    if isinstance(before, int) and isinstance(now, int):
        more = form_of(now).plus(form_of(before), -1)
        if more.terms and (a := _cut_off(before)) and (b := _cut_off(now)) and a.arguments[1] == b.arguments[1]:
            more = b.arguments[0].plus(a.arguments[0], -1)
        return None if more.terms else more
    if same(before, now):
        return _SAME
    if isinstance(before, PerLane | int) and isinstance(now, PerLane | int):
        pairs = zip(each_lane(before), each_lane(now), strict=True)
        found = [_change(a, b) for a, b in pairs]
        return tuple(each if isinstance(each, Form) else None for each in found)
    return None


def _cut_off(value: Value) -> Atom | None:
    """The remainder that a value is which a register cut off, None of any other: a lap adds to what is cut off."""
    if value.__class__ is not Varying or value.form.constant or len(value.form.terms) != 1:
        return None
    ((atom, factor),) = value.form.terms
    return atom if factor == 1 and atom.operation == "remainder" else None


def _left(value: Value) -> Value:
    """What is kept of a value that was another one after the lap: what a register cut off, else nothing."""
    if isinstance(value, PerLane):
        return lanes_of([_left(each) for each in value.each])
    return value if _cut_off(value) else LEFT


def with_laps(value: Value, more: Change, replaced: dict[Atom, Form], t: Form, inputs: FreeInputs) -> Value:
    """A value at the beginning of a lap, before which ``t`` others were gone through that each added ``more``."""
    if more is None:
        return LEFT
    if isinstance(more, tuple):
        lanes = zip(each_lane(value), more, strict=True)
        return lanes_of([with_laps(each, added, replaced, t, inputs) for each, added in lanes])
    if not isinstance(value, int):
        return _replaced(value, replaced, inputs) if not more.constant else LEFT
    cut_off = _cut_off(value)
    changed = _substitute(cut_off.arguments[0] if cut_off else form_of(value), replaced, inputs.forms)
    if changed is None:
        return LEFT
    changed = changed.plus(t, more.constant)
    return inputs.integer(int.__int__(value), inputs.forms.cut_off(changed, cut_off) if cut_off else changed)


def _replaced(value: Value, replaced: dict[Atom, Form], inputs: FreeInputs) -> Value:
    if value.__class__ is Varying:
        changed = _substitute(value.form, replaced, inputs.forms)
        return LEFT if changed is None else inputs.integer(int.__int__(value), changed)
    if isinstance(value, PerLane) and Varying in map(type, value.each):
        return lanes_of([_replaced(each, replaced, inputs) for each in value.each])
    return value


def _substitute(form: Form, replaced: dict[Atom, Form], forms: Forms | None = None) -> Form | None:
    """The expression with others for some free inputs; None where one is an argument of a function.

    With ``forms`` not of the remainder that a register leaves.
    """
    found = constant(form.constant)
    for atom, factor in form.terms:
        part = replaced.get(atom, Form(0, ((atom, 1),)))
        if atom.function is not None and any(_has(each, replaced.__contains__) for each in atom.arguments):
            is_cut = forms is not None and atom.operation == "remainder"
            inner = _substitute(atom.arguments[0], replaced, forms) if is_cut else None
            if inner is None or forms is None:
                return None
            part = forms.cut_off(inner, atom)
        found = found.plus(part, factor)
    return found


def _is_any_tile(atom: Atom) -> bool:
    return atom.function is None and atom.name.startswith(ANY_TILE)


def _has(form: Form, wanted: Callable[[Atom], bool]) -> bool:
    return any(wanted(atom) or any(_has(each, wanted) for each in atom.arguments) for atom, _ in form.terms)


def is_next(value: Value, now: Value, t: Atom, u: Atom) -> bool:
    """Whether a value is what it was at the beginning of the lap, with one lap more before it and one less after it."""
    if value is LEFT:
        return True
    if isinstance(value, PerLane):
        return isinstance(now, PerLane | int) and all(
            is_next(a, b, t, u) for a, b in zip(value.each, each_lane(now), strict=True)
        )
    if value.__class__ is not Varying:
        return same(value, now) if not isinstance(value, int) else isinstance(now, int) and identity(now) == value
    if not isinstance(now, int):
        return False
    if not any(atom.function for atom, _ in value.form.terms):
        factors = dict(value.form.terms)
        return form_of(now) == Form(value.form.constant + factors.get(t, 0) - factors.get(u, 0), value.form.terms)
    further = {t: Form(1, ((t, 1),)), u: Form(-1, ((u, 1),))}
    return form_of(now) == _substitute(value.form, further, value.inputs.forms)
