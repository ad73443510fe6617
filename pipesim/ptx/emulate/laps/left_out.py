"""Loops that are gone through so often that most of their laps are left out of the run, also of loops in loops.

The cluster is watched for a moment at which it is where it was before, and before that, with as much added to each
register. Then each register becomes an expression of ``t``, the laps until then: what a lap adds is added ``t`` times.
If the next laps lead to the state in which ``t`` is one more, each is the same lap for every ``t`` that fulfils the
conditions noted in them. That many laps are left out: ``t`` becomes the largest such number, and the run continues.

While laps of one loop are gone through so, laps of a loop inside may be left out as well: what was noted of them are
then conditions on the laps of the outer one. What is not the same after a lap is unknown, and no lap may need it.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pipesim.ptx.emit.record import RepeatedPart, StreamMark
from pipesim.ptx.emulate.laps import snapshots
from pipesim.ptx.emulate.laps.lengthened import LEFT, Change, added_twice, is_next, stands_of, with_laps
from pipesim.ptx.emulate.values import OpenAnswer, PerLane, Value, each_lane, lanes_of
from pipesim.ptx.free.forms import Atom, Form
from pipesim.ptx.free.varying import FreeInputs, Varying, form_of

if TYPE_CHECKING:
    from pipesim.ptx.emulate.cluster import Cluster

_BOUNDS = (1 << 20, 1 << 12)  #: of the laps that are left out in one place: fewer where a register would overflow
_LAPS = 2  #: that are gone through with expressions
_MOST_LEFTS = 2  #: laps before them that leave values which are not the same
_MOST_TIMES = 24  #: that the cluster is where it was before in one lap, as in a loop in the loop
_MOST_TRIES = 4  #: of laps of one length
_MOST_OPEN = 2  #: loops in each other
_MOST_ROUNDS = 1 << 13  #: in which laps are looked for
_MOST_STORED = 1 << 22  #: values of moments
_NONE = Atom(-1, "", None, (), 0, 0)


class _RunMoment(NamedTuple):
    """What is there at a moment, and how many instructions were before."""

    snapshot: snapshots.RegisterSnapshot
    ran: int


@dataclass
class _OpenLap:
    """A lap of ``length`` instructions, after ``begun``, that is gone through for ``t`` others.

    ``values`` are those at its beginning. ``marks``: where the agents were at the ends of the last laps that left the
    same. ``moments``: of this lap, among which those of a loop inside are looked for.
    """

    stands: object
    values: list[Value]
    known: snapshots.KnownBytes
    t: Atom
    length: int
    begun: int
    marks: list[tuple[StreamMark, ...]]
    first: int  #: instructions before the first of these laps
    lefts: int = 0
    moments: dict[int, list[_RunMoment]] = field(default_factory=dict)


class LapsLeftOut:
    """Watches one run of a cluster, and leaves laps out of it."""

    shown = False

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._inputs: FreeInputs = cluster.inputs
        self.snapshots = snapshots.RegisterSnapshots(cluster)
        self._moments: dict[int, list[_RunMoment]] = {}
        self._open: list[_OpenLap] = []
        self._tried: dict[int, int] = {}  # how often in vain, by the length of the lap
        self._atoms: set[Atom] = set()
        self._rounds = 0
        self._left_out = 0  #: instructions

    def end(self) -> int:
        """The run is over: how many instructions were left out of it; 0 if it depends on an expression of laps."""
        self._close(0)
        open_ = any(Form(0, terms).has(atom) for terms in self._inputs.conditions for atom in self._atoms)
        return 0 if open_ else self._left_out

    def look(self) -> None:
        """After a round of all warps."""
        self._rounds += 1
        cluster = self._cluster
        if self._rounds > _MOST_ROUNDS or cluster.boxless.uses or cluster.launch_events is not None:
            self._close(0)
            return
        ran, stands = self._ran, stands_of(cluster)
        late = (n for n, each in enumerate(self._open) if ran > each.begun + each.length)
        self._close(next(late, len(self._open)))
        now = _RunMoment(self.snapshots.take(), ran)
        self._forget_old()
        for scope in self._scopes():
            moments = scope.setdefault(hash(stands), [])
            if moments and not moments[-1].snapshot.is_like(now.snapshot):
                moments.clear()
            moments.append(now)
            del moments[: -3 * _MOST_TIMES - 1]
        if self._open and ran == self._open[-1].begun + self._open[-1].length:
            if stands != self._open[-1].stands or not self._ends(self._open[-1]):
                self._close(len(self._open) - 1)
            return
        self._seek(stands)

    def _seek(self, stands: object) -> None:
        """Begin a lap of many where the cluster was here before, and before that, a lap on."""
        if len(self._open) >= _MOST_OPEN:
            return
        moments = (self._open[-1].moments if self._open else self._moments)[hash(stands)]
        now = moments[-1]
        for times in range(1, min((len(moments) + 1) // 2, _MOST_TIMES)):
            first, second = moments[-1 - 2 * times], moments[-1 - times]
            length = now.ran - second.ran
            tried = self._tried.get(length, 0)
            if length != second.ran - first.ran or tried >= _MOST_TRIES:
                continue
            added = _added(first, second, now)
            if added is not None and times > 1 and len(moments) > 3 * times:  # it may have been so before that, too
                added = added if _added(moments[-1 - 3 * times], first, second) == added else None
            values = now.snapshot.values() if added is not None else []
            most = min(_BOUNDS[tried % 2], _most_held(values, added)) if added is not None else 0
            if added is not None and most > _LAPS:
                self._begin(stands, values, added, most, length)
                return

    def _begin(self, stands: object, values: list[Value], added: list[Change], most: int, length: int) -> None:
        name = f"laps {len(self._atoms)}"
        ((t, _),) = self._inputs.forms.free(name, 0, most).terms
        self._inputs.now[name] = 0
        self._atoms.add(t)
        laps = Form(0, ((t, 1),))
        pairs = zip(values, added, strict=True)
        made = [with_laps(value, more, {}, laps, self._inputs) for value, more in pairs]
        snapshots.put_values(self._cluster, made)
        self.snapshots.all_moved()
        known, ran = snapshots.known_bytes(self._cluster), self._ran
        self._open.append(_OpenLap(stands, made, known, t, length, ran, [self._marks()], ran))

    def _ends(self, lap: _OpenLap) -> bool:
        """Whether the lap is over here; then the next one begins, or the others are left out."""
        slots = list(snapshots.slots_of(self._cluster))
        if len(slots) != len(lap.values):
            return False
        left, new = [], False
        for (holder, key), value, now in zip(slots, lap.values, snapshots.values_of(self._cluster), strict=True):
            if value is LEFT or not is_next(value, now, lap.t, _NONE):
                if value is not LEFT and is_next(value, decided := self._decided(now, lap.t), lap.t, _NONE):
                    self._decided(now, lap.t, require=True)
                    holder[key] = decided
                    continue
                if _is_elsewhere(value, now, lap.t):
                    return False
                left.append((holder, key))
                new = new or value is not LEFT
        self._forget_bytes(lap.t)
        if lap.known != snapshots.known_bytes(self._cluster):
            return False
        for holder, key in left:
            holder[key] = LEFT
        self.snapshots.all_moved()
        marks = self._marks()
        lap.marks = [marks] if new else [*lap.marks, marks]
        lap.lefts += new
        lap.values, lap.begun, lap.moments = snapshots.values_of(self._cluster), self._ran, {}
        if len(lap.marks) > _LAPS:
            self._leave_out(lap)
        return lap.lefts <= _MOST_LEFTS

    def _decided(self, value: Value, t: Atom, *, require: bool = False) -> Value:
        """A value with the results that comparisons with ``t`` have in this lap, which are to be those of all laps."""
        if isinstance(value, PerLane) and Varying in map(type, value.each):
            return lanes_of([self._decided(each, t, require=require) for each in value.each])
        if value.__class__ is not Varying or not value.form.has(t):
            return value
        return self._inputs.integer(int.__int__(value), self._inputs.decided(value.form, t, require=require))

    def _leave_out(self, lap: _OpenLap) -> None:
        """As many laps as fulfil all that was noted in those that were gone through."""
        self._inputs.decide(lap.t)
        more = self._inputs.most_of(lap.t)
        if more < 1:
            self._close(len(self._open) - 1)
            return
        self._settle(lap.t, more, lap.first)
        self._open.pop()
        self._cluster.recorder.repeated.append(RepeatedPart(tuple(lap.marks), more))
        self._left_out += more * lap.length

    def _close(self, first: int) -> None:
        """Of these laps, the first of which is in all others, only those that were gone through are in the run."""
        for lap in reversed(self._open[first:]):
            self._settle(lap.t, 0, lap.first)
            self._tried[lap.length] = self._tried.get(lap.length, 0) + 1
        del self._open[first:]

    def _settle(self, t: Atom, laps: int, begun: int) -> None:
        """Let ``t`` be this number in all values and conditions."""
        inputs = self._inputs
        inputs.settle(t, laps)
        self._forget_bytes(t)
        for holder, key in list(snapshots.slots_of(self._cluster)):
            if holder[key].__class__ is not int:
                holder[key] = self._settled(holder[key], t, laps)
        self.snapshots.all_moved()
        for warp in self._cluster.warps:
            for stored in warp.pending.values.values():
                stored.update({at: self._settled(value, t, laps) for at, value in stored.items()})
        for lap in self._open:  # whose values are those that their loops are to lead to again
            lap.values = self._all_settled(lap.values, t, laps)
        for moments in (each for scope in self._scopes() for each in scope.values()):
            for at, each in enumerate(moments):
                if each.ran > begun:
                    moments[at] = _RunMoment(each.snapshot.mapped(lambda value: self._settled(value, t, 0)), each.ran)

    def _all_settled(self, values: list[Value], t: Atom, laps: int) -> list[Value]:
        return [each if each.__class__ is int else self._settled(each, t, laps) for each in values]

    def _settled(self, value: Value, t: Atom, laps: int) -> Value:
        if value.__class__ is Varying and value.form.has(t):
            now = self._inputs.settled(value, t, laps)
            return LEFT if now is None else now
        if isinstance(value, PerLane) and Varying in map(type, value.each):
            return lanes_of([self._settled(each, t, laps) for each in value.each])
        if isinstance(value, OpenAnswer):
            return OpenAnswer(value.asked, *(self._settled(each, t, laps) for each in (value.if_false, value.if_true)))
        return value

    @property
    def _ran(self) -> int:
        return sum(warp.count for warp in self._cluster.warps) + self._left_out

    def _marks(self) -> tuple[StreamMark, ...]:
        found = tuple(StreamMark(len(stream.code)) for stream in self._cluster.recorder.streams)
        for stream, mark in zip(self._cluster.recorder.streams, found, strict=True):
            stream.marks.append(mark)
        return found

    def _forget_old(self) -> None:
        """Of very many moments the later half remains."""
        if self.snapshots.stored > _MOST_STORED:
            self.snapshots.stored //= 2
            for scope in self._scopes():
                runs = sorted(each.ran for moments in scope.values() for each in moments)
                for stands, moments in list(scope.items()):
                    scope[stands] = [each for each in moments if each.ran > runs[len(runs) // 2]]
                    if not scope[stands]:
                        del scope[stands]

    def _scopes(self) -> list[dict[int, list[_RunMoment]]]:
        """The moments of the run, and those of the laps that are open."""
        return [self._moments, *(lap.moments for lap in self._open)]

    def _forget_bytes(self, t: Atom) -> None:
        """Bytes of shared memory that depend on ``t`` are not known."""
        for memory in self._cluster.bytes:
            memory.forget_alone(lambda form: form.has(t))


def _added(first: _RunMoment, second: _RunMoment, third: _RunMoment) -> list[Change] | None:
    """What was added to each value twice, with the same known bytes of shared memory."""
    same = first.snapshot.known == second.snapshot.known == third.snapshot.known
    return added_twice(first.snapshot.parts, second.snapshot.parts, third.snapshot.parts) if same else None


def _most_held(values: list[Value], added: list[Change]) -> int:
    """After how many laps a register might overflow, of 32 bits if it has less now; three more sums find room in it."""
    found = _BOUNDS[0]
    for value, more in zip(values, added, strict=True):
        if isinstance(more, Form) and more.constant and isinstance(value, int):
            now, step = int.__int__(value), more.constant
            room = (
                now + step * (_LAPS + _MOST_LEFTS) if step < 0 else ((1 << 32 if now < 1 << 32 else 1 << 64) - now) // 4
            )
            found = min(found, room // abs(step))
    return found


def _is_elsewhere(value: Value, now: Value, t: Atom) -> bool:
    """Whether a value tells that this is not the end of the lap: another sum than after it, and no comparison."""
    if isinstance(value, PerLane) or isinstance(now, PerLane):
        both = zip(each_lane(value), each_lane(now), strict=True)
        return any(not is_next(a, b, t, _NONE) and _is_elsewhere(a, b, t) for a, b in both)
    if not isinstance(value, int) or not isinstance(now, int):
        return False
    return all(atom.function is None for form in (form_of(value), form_of(now)) for atom, _ in form.terms)
