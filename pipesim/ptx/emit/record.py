"""Operations of the agents as they are emulated: tables by address, lines by position in the kernel's body."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from pipesim.model.groups import (
    ACCESSES,
    ANSWER,
    ASKS,
    BARRIER,
    BRANCHES,
    COMMITS,
    PARITY,
    PARITY_TRIES,
    PARITY_WAITS,
    READS_MEMORY,
    WRITES_MEMORY,
)
from pipesim.model.ops import AT, Engine, Op, Operation, Order, Scope, Space, operand, order_of, scope_of, semantics
from pipesim.model.tables import Access

Place = tuple[int, int]  #: rank of a CTA, byte offset in its shared memory
#: For agents and mbarriers the parity with which the waits begin that are read as if each lap had the other one.
FirstParities = Mapping[tuple[int, Place], int]
Range = tuple[int, int]  #: first byte, the one after the last

_NOWHERE = -1
BARRIER_BYTES = 8  #: of an mbarrier object (PTX ISA, "Size and alignment of mbarrier object")


def covers(access: Access, place: Place) -> bool:
    """Whether a range has bytes of the mbarrier at a place."""
    cta, offset = place
    return access.cta == cta and access.offset < offset + BARRIER_BYTES and offset < access.offset + access.nbytes


class PathStep(NamedTuple):
    """A step on an agent's path: an instruction that synchronises, with the lanes that executed it.

    ``asked``: the result of a try_wait, -1 for all others and for a wait. For a branch on it ``position`` is one of
    the three below: the steps of "not yet" are between ``IF_NOT_YET`` and ``IF_COMPLETE``, those of "complete" between
    that and ``MEET``.
    """

    position: int
    lanes: int
    asked: int = -1


IF_NOT_YET, IF_COMPLETE, MEET = -1, -2, -3


@dataclass
class StreamMark:
    """A moment of an agent: after ``at`` of its operations, which operations that are taken out or added move."""

    at: int


class RepeatedPart(NamedTuple):
    """Laps that were gone through, as the moments of all agents between them, and how many ``more`` are left out."""

    moments: tuple[tuple[StreamMark, ...], ...]
    more: int


@dataclass
class Stream:
    """What one agent did: its operations, and for each the position of its instruction.

    ``ran``: the runs of instructions since the last operation, each by the position where it begins; ``runs``: for each
    operation those between the one before and it, so that what a warp computes in between can be estimated.
    ``held``: where the ways of a try's answer begin and end while both are run. ``path``: what it executed, in order.
    ``steps``: for each operation the first and the last step of the path that it represents (-1 for none): two where a
    try and the wait after it are one operation. ``unsure``: operations that may not happen, as a warp's accesses say.
    ``parts``: the ranges that a read represents, where these are several. ``again``: the reads since the last
    operation other than an ordinary access. ``products``: of a wgmma whose registers may be read too early, how many
    commits and waits of wgmmas came before its last execution. ``marks``: moments between its operations.
    """

    cta: int
    warp: int
    lanes: int
    code: list[Operation] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    path: list[PathStep] = field(default_factory=list)
    steps: list[tuple[int, int]] = field(default_factory=list)
    ran: list[int] = field(default_factory=list)
    unsure: dict[int, int] = field(default_factory=dict)
    runs: list[tuple[int, ...]] = field(default_factory=list)
    parts: dict[int, Sequence[Range]] = field(default_factory=dict)
    again: set[tuple[object, ...]] = field(default_factory=set)
    products: dict[int, int] = field(default_factory=dict)
    marks: list[StreamMark] = field(default_factory=list)
    barriers: int = 0  #: named ones that it has waited at

    def insert(self, first: int, added: Sequence[Operation]) -> None:
        """Put operations before this one, at the position of the one before them."""
        n = len(added)
        self.code[first:first] = added
        self.positions[first:first] = self.positions[first - 1 : first] * n
        self.steps[first:first], self.runs[first:first] = [(-1, -1)] * n, [()] * n
        self.unsure = {at + n * (at >= first): why for at, why in self.unsure.items()}
        self.parts = {at + n * (at >= first): parts for at, parts in self.parts.items()}
        for mark in self.marks:
            mark.at += n * (mark.at > first)

    def remove_from(self, first: int) -> None:
        """Take the operations from this one on out."""
        self.again.clear()
        del self.code[first:], self.positions[first:], self.steps[first:], self.runs[first:]
        self.unsure = {at: why for at, why in self.unsure.items() if at < first}
        self.parts = {at: parts for at, parts in self.parts.items() if at < first}
        for mark in self.marks:
            mark.at = min(mark.at, first)

    def replace_reads(self, found: dict[int, Sequence[Operation]]) -> None:
        """Replace reads of hulls by the reads that they were made of."""
        starts = list(accumulate((len(found.get(at, (0,))) for at in range(len(self.code))), initial=0))
        again = [at for at in range(len(self.code)) for _ in found.get(at, (0,))]
        self.code = [op for at, one in enumerate(self.code) for op in found.get(at, (one,))]
        self.positions, self.steps = [self.positions[at] for at in again], [self.steps[at] for at in again]
        self.runs = [self.runs[at] if starts[at] == new else () for new, at in enumerate(again)]
        self.unsure = {new: self.unsure[at] for new, at in enumerate(again) if at in self.unsure}
        self.held = [starts[at] for at in self.held]
        for mark in self.marks:
            mark.at = starts[mark.at]
        self.parts.clear()


def wgmma_groups(stream: Stream) -> list[Operation]:
    """The commits and waits of wgmmas."""
    groups = [op for op in stream.code if op[0] in COMMITS or op[0] == Op.WAIT_GROUP]
    return [op for op in groups if operand(op, "engine") == Engine.WGMMA]


class WaysDiffer(Exception):  # noqa: N818  # a result of the emulation: it stops there
    """What an agent does depends on the result of a try_wait by more than a wait for the same phase."""


@dataclass
class StreamRecorder:
    """Everything that becomes the flat program."""

    streams: list[Stream] = field(default_factory=list)
    barriers: dict[Place, int] = field(default_factory=dict)
    accesses: dict[Access, int] = field(default_factory=dict)
    named: dict[tuple[int, int], int] = field(default_factory=dict)
    repeated: list[RepeatedPart] = field(default_factory=list)
    answers: int = 0
    live: set[Place] = field(default_factory=set)  #: mbarriers between their init and their inval
    overwritten: dict[Place, int] = field(default_factory=dict)  #: live ones: the position of what writes over them
    written: dict[Access, None] = field(default_factory=dict)  #: ranges of shared memory
    sources: dict[tuple[int, int, int], int] = field(default_factory=dict)  #: bytes of a CTA's that a copy to another
    #: one reads, for as long as is not known: its position
    atomics: set[int] = field(default_factory=set)  #: positions of what may come in any order with its like
    reused: set[int] = field(default_factory=set)  #: positions of such copies whose source is written later
    source_names: dict[int, tuple[str, int]] | None = None  #: array and element of barriers, once they are looked for
    _uncertain: set[int] = field(default_factory=set)  #: items that one way after a try has written
    _edges: list[int] = field(default_factory=list)  #: where something written begins or ends, in any CTA
    _ranges: dict[tuple[Space, int, int, int], int] = field(default_factory=dict)
    _by_number: list[Access] = field(default_factory=list)
    _known_runs: dict[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict)

    def agent(self, cta: int, warp: int, lanes: int) -> int:
        """A new agent."""
        self.streams.append(Stream(cta, warp, lanes))
        return len(self.streams) - 1

    def barrier(self, place: Place) -> int:
        """The number of the mbarrier at this place."""
        if place not in self.barriers:
            self.cut(place[1], place[1] + BARRIER_BYTES)
        return self.barriers.setdefault(place, len(self.barriers))

    @property
    def ran(self) -> frozenset[int]:
        """The positions at which runs of instructions began that some agent has executed."""
        return frozenset().union(*self._known_runs, *(stream.ran for stream in self.streams))

    def initialising(self, places: Collection[Place]) -> frozenset[int]:
        """The agents that have initialised one of these mbarriers."""
        mine = {self.barriers[place] for place in places}
        inits = ((agent, op) for agent, stream in enumerate(self.streams) for op in stream.code if op[0] == Op.INIT)
        return frozenset(agent for agent, op in inits if operand(op, "barrier") in mine)

    def access(self, space: Space, cta: int, offset: int, nbytes: int) -> int:
        """The number of this range."""
        key = (space, int(cta), int(offset), int(nbytes))
        found = self._ranges.get(key)
        if found is None:
            access = Access(*key)
            found = self._ranges[key] = self.accesses.setdefault(access, len(self.accesses))
            if found == len(self._by_number):
                self._by_number.append(access)
        return found

    def named_barrier(self, cta: int, number: int) -> int:
        """The number of this named barrier of a CTA."""
        return self.named.setdefault((cta, number), len(self.named))

    def answer(self) -> int:
        """A register for the result of a try_wait."""
        self.answers += 1
        return self.answers - 1

    def add(self, agent: int, position: int, *operation: int) -> None:
        """An operation, at the position of its instruction."""
        stream = self.streams[agent]
        stream.code.append(tuple(map(int, operation)))
        stream.positions.append(position)
        steps = (len(stream.path) - 1,) * 2
        stream.steps.append(stream.steps[-1] if stream.steps[-1:] == [steps] else steps)
        stream.runs.append(self._known_runs.setdefault(runs := tuple(stream.ran), runs) if stream.ran else ())
        stream.ran.clear()
        if operation[0] not in ACCESSES:
            stream.again.clear()
            stream.barriers += operation[0] == Op.BAR_SYNC
        if operation[0] in WRITES_MEMORY:
            self._write(position, tuple(operation))

    def may_not_be(self, agent: int, why: int) -> None:
        """The agent's last operation, or some of its bytes, may not be: ``why`` as in ``Program.unsure``."""
        stream = self.streams[agent]
        stream.unsure[len(stream.code) - 1] = why

    def _write(self, position: int, operation: Operation) -> None:
        """Remember what is written, and which live mbarriers lie there."""
        written = self._by_number[operation[AT["access"][operation[0]]]]
        if written.space is Space.SHARED:
            if written not in self.written:
                self.cut(written.offset, written.offset + written.nbytes)
            self.written[written] = None
            for (cta, first, end), at in self.sources.items():
                if written.cta == cta and written.offset < end and first < written.offset + written.nbytes:
                    self.reused.add(at)
            for place in self.live:
                if covers(written, place):
                    self.overwritten.setdefault(place, position)

    # ranges that are read as one

    def cut(self, first: int, end: int) -> None:
        """Something else uses these bytes, in any CTA: a range with one of their ends inside is not read as one."""
        for edge in (first, end):
            at = bisect_left(self._edges, edge)
            if self._edges[at : at + 1] != [edge]:
                self._edges.insert(at, edge)

    def is_cut(self, first: int, end: int) -> bool:
        """Whether something that is written, or an mbarrier, has some bytes of this range and not all of them."""
        at = bisect_right(self._edges, first)
        return at < len(self._edges) and self._edges[at] < end

    def read_as_one(self, agent: int, position: int, cta: int, parts: Sequence[Range], item: int, unsure: int) -> None:
        """A read of the bytes from the first to the last of some ranges of shared memory, which hold one item.

        Whatever is written there has all of them, as far as is known now; :meth:`separate_reads` looks again. The same
        read again, with nothing but accesses in between, is left out: it has the same order with all that others do.
        """
        first, end = parts[0][0], parts[-1][1]
        access = self.access(Space.SHARED, cta, first, end - first)
        again = self.streams[agent].again
        if (access, item, unsure, *parts) in again:
            return
        again.add((access, item, unsure, *parts))
        self.add(agent, position, Op.READ, access, item)
        if len(parts) > 1:
            stream = self.streams[agent]
            stream.parts[len(stream.code) - 1] = parts

    def separate_reads(self) -> None:
        """At the end: reads of ranges between which something was written later become reads of each range again."""
        for stream in self.streams:
            found = {at: self.separated(stream.code[at], parts) for at, parts in stream.parts.items()}
            if any(found.values()):
                stream.replace_reads({at: ops for at, ops in found.items() if ops})

    def separated(self, op: Operation, parts: Sequence[Range]) -> list[Operation]:
        """A read of several ranges as one for each, where something was written between them; else ()."""
        cta = self._by_number[op[AT["access"][Op.READ]]].cta
        if not self.is_cut(parts[0][0], parts[-1][1]):
            return []
        numbers = (self.access(Space.SHARED, cta, first, end - first) for first, end in parts)
        return [(op[0], number, *op[2:]) for number in numbers]

    def execute(self, agent: int, position: int, lanes: int, asked: int = -1) -> None:
        """An agent executes an instruction that synchronises, before the operations that represent it are added."""
        self.streams[agent].path.append(PathStep(position, lanes, asked))

    # both ways of a try's answer

    def mark(self, agent: int, asked: int) -> int:
        """Before the way of the answer "not yet"."""
        self.streams[agent].again.clear()
        self.execute(agent, IF_NOT_YET, 0, asked)
        return len(self.streams[agent].code)

    def hold(self, agent: int) -> None:
        """Before the way of the answer "complete"."""
        self.streams[agent].again.clear()
        self.execute(agent, IF_COMPLETE, 0)
        self.streams[agent].held.append(len(self.streams[agent].code))

    def release(self, agent: int, tries: tuple[int, ...], mark: int) -> None:
        """After both ways: they may differ by waits and tries. One wait for the phase that was asked for depends on it.

        Of several tries the waits are executed whatever the answers were. WaysDiffer if there is more, such as an
        arrive.
        """
        stream, asked = self.streams[agent], tries[0]
        between = stream.held[-1]
        if tries[1:]:
            self._release_waits(stream, tries, mark)
            return
        self.execute(agent, MEET, 0, asked)
        if not len(stream.code) == between == mark:
            asking = _where_asked(stream, asked, mark)
            if asking == _NOWHERE:
                raise WaysDiffer
            if len(stream.code) > between or not self._as_wait(agent, asking, mark):
                self._branch(stream, asking, mark, between)
        stream.held.pop()

    def leave(self, agent: int, tries: tuple[int, ...], mark: int, *, both: bool, branches: bool) -> None:
        """It is followed no further before its ways meet: what it has done by "not yet" depends on that answer.

        What it has done by "complete", if ``both`` were run, is taken out; so is the rest where no ``branches`` may be.
        """
        stream = self.streams[agent]
        self._uncertain |= {operand(op, "item") for op in stream.code[mark:] if op[0] in WRITES_MEMORY}
        if both:
            stream.remove_from(stream.held.pop())
        asking = [_where_asked(stream, asked, mark) for asked in tries]
        if _NOWHERE in asking or not branches:
            stream.remove_from(mark)
        elif len(stream.code) > mark and (tries[1:] or not self._as_wait(agent, asking[0], mark)):
            *others, last = (stream.code[at][ANSWER] for at in asking)
            body = len(stream.code) - mark
            inside = [(int(Op.JUMP_IF), other, 0, len(others) - n) for n, other in enumerate(others)]
            stream.insert(mark, [*inside, (int(Op.JUMP_IF), last, 1, body)])

    def forget_uncertain_items(self) -> None:
        """What a read finds is not compared where it may be what one way after a try has written."""
        for stream in self.streams if self._uncertain else ():
            stream.code = [
                (*op[:-1], -1) if op[0] in READS_MEMORY and op[-1] in self._uncertain else op for op in stream.code
            ]

    def _as_wait(self, agent: int, asking: int, mark: int) -> bool:
        """Whether all that is done by "not yet" is a wait, which is made one that depends on the answer."""
        stream = self.streams[agent]
        between = len(stream.code)
        waits, asked = stream.code[mark:between], stream.code[asking][ANSWER]
        last = waits[-1] if waits else ()
        if last and _waits_for(last, stream.code[asking]):
            stream.code[asking] = _without_default(stream.code[asking], last)
        alike = all(_waits_for(op, stream.code[asking]) and _may_replace(op, last) for op in waits)
        simple = bool(last) and last[0] in PARITY_WAITS and (alike or len(waits) == 1)
        if not simple or (last[0] == Op.WAIT_UNLESS and not alike):
            return False
        position, (_, step) = stream.positions[between - 1], stream.steps[between - 1]
        stream.remove_from(mark)
        if alike and asking == mark - 1:  # nothing in between: a try and a wait are a wait
            (first, _), runs, order = stream.steps[asking], stream.runs[asking], _lesser(stream.code[asking], last)
            stream.remove_from(asking)
            self.add(agent, position, Op.WAIT, last[BARRIER], last[PARITY], order)
            stream.steps[-1], stream.runs[-1] = (first, step), runs
        else:
            self.add(agent, position, Op.WAIT_UNLESS, last[BARRIER], last[PARITY], asked, last[-1])
            stream.steps[-1] = step, step
        return True

    def _release_waits(self, stream: Stream, tries: tuple[int, ...], mark: int) -> None:
        """The same of several tries, of which any "not yet" leads to a wait for each of their phases, and no more."""
        between = stream.held[-1]
        waits, asking = stream.code[mark:between], [op for op in stream.code[:mark] if op[0] in PARITY_TRIES]
        asking = [op for op in asking if op[ANSWER] in tries]
        alike = all(op[0] == Op.WAIT and any(_may_replace(one, op) for one in asking) for op in waits)
        every = len(asking) == len(tries) and all(any(_waits_for(op, one) for op in waits) for one in asking)
        if len(stream.code) > between or not alike or not every:
            raise WaysDiffer
        stream.held.pop()
        path = stream.path
        begin = max(n for n, step in enumerate(path) if step.position == IF_NOT_YET)
        end = max(n for n, step in enumerate(path) if step.position == IF_COMPLETE)
        for asked in tries[1:]:
            path += [path[begin]._replace(asked=asked), *path[begin + 1 : end], path[end]]
        path += [path[begin]._replace(position=MEET, asked=asked) for asked in reversed(tries)]

    def _branch(self, stream: Stream, asking: int, mark: int, between: int) -> None:
        """The ways of an answer as two branches of waits and tries: that of "not yet" first."""
        not_yet, complete = stream.code[mark:between], stream.code[between:]
        if any(op[0] not in ASKS | BRANCHES for op in (*not_yet, *complete)):
            raise WaysDiffer
        answer, at = stream.code[asking][ANSWER], stream.positions[asking]
        was, then = stream.positions[mark:between], stream.positions[between:]
        steps, others = stream.steps[mark:between], stream.steps[between:]
        ran, later = stream.runs[mark:between], stream.runs[between:]
        stream.remove_from(mark)
        over = [(int(Op.JUMP_IF), answer, 0, len(complete))] if complete else []
        stream.code += [(int(Op.JUMP_IF), answer, 1, len(not_yet) + len(over)), *not_yet, *over, *complete]
        stream.positions += [at, *was, *([at] * len(over)), *then]
        stream.steps += [(-1, -1), *steps, *([(-1, -1)] * len(over)), *others]
        stream.runs += [(), *ran, *([()] * len(over)), *later]


def _where_asked(stream: Stream, asked: int, before: int) -> int:
    """Which of its operations is the try with this answer."""
    code = stream.code
    return next(
        (at for at in range(before - 1, -1, -1) if code[at][0] in PARITY_TRIES and code[at][ANSWER] == asked), _NOWHERE
    )


def _waits_for(operation: Operation, asking: Operation) -> bool:
    """Whether it asks for the same phase of the same barrier."""
    return operation[0] in ASKS and operation[BARRIER : PARITY + 1] == asking[BARRIER : PARITY + 1]


def _may_replace(asking: Operation, wait: Operation) -> bool:
    """Whether "complete" of this try orders all that a wait for its phase does."""
    return _waits_for(wait, asking) and _lesser(asking, wait) == wait[-1]


def _lesser(asking: Operation, wait: Operation) -> int:
    """What both a try and a wait order, as ``semantics`` (PTX ISA, "mbarrier.try_wait": .sem, .scope)."""
    asking = _without_default(asking, wait)
    order = Order.RELAXED if order_of(asking[-1]) is Order.RELAXED else order_of(wait[-1])
    return semantics(order, Scope.CTA if scope_of(asking[-1]) is Scope.CTA else scope_of(wait[-1]))


def _without_default(asking: Operation, wait: Operation) -> Operation:
    """A try written as its wait is: ``.acquire.cta`` is the default, which compilers write out (PTX ISA, as above)."""
    default = asking[-1] == semantics(Order.ACQUIRE, Scope.CTA) and wait[-1] == semantics()
    return (*asking[:-1], wait[-1]) if default else asking
