"""One run of a long program, without the laps of a loop in which nothing new can happen.

When the canonical run repeats an earlier state, a lap on (:mod:`pipesim.prove.happens_before.snapshot`), and the same
operations lie ahead this many times more, it will go through the same moments as often. They are left out: the
rest of the run is that of a program from which these laps have been cut. What a snapshot does not look at is which item
a read finds; that is compared here, for every lap that is cut, read by read.

Unlike :mod:`pipesim.prove.any_size.family` this asks nothing of other values of a parameter: there is one program, all
of whose operations are compared.
"""

from typing import NamedTuple

from pipesim.model.ops import Operation
from pipesim.model.program import Program
from pipesim.prove.any_size.laps import Outline
from pipesim.prove.certificate.canonical import CanonicalRun, CanonicalSnapshot, completed_phases, is_again
from pipesim.prove.certificate.certificate import Certificate
from pipesim.prove.happens_before.accesses import Read
from pipesim.prove.happens_before.snapshot import Lap
from pipesim.prove.memory_order.order import MemoryOrder

LONG = 10_000  #: operations from which on laps are looked for
_WORTH = 32  #: a cut leaves out one operation in this many at least, else the search for it takes longer
_LATEST = 64  #: moments at which the same operations came next, compared with a later one
_LOOKS = 2_000  #: at laps that may lie ahead, and one for every two operations that were run
_PATIENCE = 64  #: moments in vain that seemed to be the same, until no more are compared with another

_Pcs = tuple[int, ...]
_Next = tuple[Operation, ...]  #: of each agent, () for one that has ended


class _Moment(NamedTuple):
    """A moment of the run: what was remembered, and how many reads there had been."""

    standing: CanonicalSnapshot
    reads: int


def phases_by_laps(program: Program, memory: MemoryOrder | None = None) -> int | None:
    """The phases that the whole run of ``program`` completes, if it represents every schedule; else None.

    None says nothing: a plain run shows why. ``memory`` watches, where the memory order of the program gives concern.
    """
    run = _LapRun(program, memory)
    while not run.over:
        run.round()
    return run.phases if run.represents_all() else None


class _LapRun:
    """A canonical run with its certificate; ``over`` as soon as something is wrong as well."""

    def __init__(self, program: Program, memory: MemoryOrder | None) -> None:
        self._certificate = Certificate(program, keep_reads=True)
        self._memory = memory
        self._run = CanonicalRun(program, [self._certificate, self._memory])
        outline = Outline(program)
        self._code, self._items = outline.code, outline.items
        self._worth = sum(map(len, program.code)) // _WORTH
        self._rounds = 0
        self._came: dict[_Next, list[tuple[int, _Pcs]]] = {}  # by what comes next the latest, each with its round
        self._stood: dict[_Pcs, _Moment] = {}  # the moments that were looked at
        self._latest = 0  # of these
        self._failed = 0
        self._looks = 0
        self._left_out = 0  # phases
        self._periodic: dict[tuple[int, int], tuple[int, int]] = {}  # by agent and period, as far as looked

    @property
    def over(self) -> bool:
        """True if nothing more happens, or need happen."""
        return self._run.over or self._is_wrong()

    @property
    def phases(self) -> int:
        """Completed by the mbarriers, in the laps that were left out as well."""
        return self._left_out + sum(completed_phases(self._run.state)[: len(self._run.program.barriers)])

    def represents_all(self) -> bool:
        """True if the run reached its end, and its certificate holds."""
        self._certificate.close()
        return self._run.finished and not self._is_wrong()

    def _is_wrong(self) -> bool:
        unordered = self._memory is not None and self._memory.faults
        return bool(self._run.faults or self._certificate.doubts or unordered)

    def round(self) -> None:
        """One round, and the laps that can be left out after it."""
        self._run.round()
        self._rounds += 1
        if self.over or self._failed >= _PATIENCE:
            return
        end = self._run.state.pcs
        came = self._came.setdefault(self._ahead(end), [])
        now: _Moment | None = None
        for began, begin in reversed(came):
            before = self._stood.get(begin)
            if before is None and (now is not None or not self._is_due(began)):
                continue
            self._looks += 1
            if self._looks > _LOOKS + sum(end) // 2:  # else a search for what is not there costs more than the run
                break
            lap = Lap(begin, end)
            more = self._again(lap)
            if not more:
                continue
            now = now or _Moment(self._run.snapshot(), len(self._reads))
            if before is not None and self._is_left_out(lap, more, before, now):
                return
        if now is not None:
            self._stood[end], self._latest = now, self._rounds
        came.append((self._rounds, end))
        del came[:-_LATEST]

    def _is_due(self, began: int) -> bool:
        """True if a moment is worth a look, of which the last was a lap ago that began in this round.

        A look costs more than a round. So there is one in a lap; but in each round where the first was in vain: what
        is remembered may be older than a lap at some moments of it, and not at others.
        """
        return self._latest < began or self._failed > 0

    def _is_left_out(self, lap: Lap, more: int, before: _Moment, now: _Moment) -> bool:
        """Leave a lap out that leads back to where it began, and whose items continue."""
        if is_again(lap, before.standing, now.standing) and self._items_go_on(lap, more, before.reads):
            self._leave_out(lap, more, before.standing)
            return True
        self._failed += 1
        return False

    @property
    def _reads(self) -> list[Read]:
        reads = self._certificate.accesses.reads
        assert reads is not None
        return reads

    def _ahead(self, pcs: _Pcs) -> _Next:
        return tuple(code[pc] if pc < len(code) else () for code, pc in zip(self._code, pcs, strict=True))

    def _again(self, lap: Lap) -> int:
        """How many times more the operations of the lap lie ahead, and then the first of them; 0 if it is not worth it.

        An agent at the end of a lap looks at the operation after it as well.
        """
        least = 1 + (self._worth - 1) // max(sum(lap.end) - sum(lap.begin), 1)
        more: list[int] = []
        for agent, (begin, end) in enumerate(zip(lap.begin, lap.end, strict=True)):
            if begin < end:
                more.append((self._same(agent, begin, end, least) - 1) // (end - begin))
                if more[-1] < least:
                    return 0
        return min(more, default=0)

    def _same(self, agent: int, begin: int, end: int, least: int) -> int:
        """How many operations from ``begin`` on are those from ``end`` on; 0 if soon seen to be too few.

        Where a loop stops being periodic it does so for every lap before: that is looked up once for each period.
        """
        known = self._periodic.get((agent, end - begin))
        if known is None or not known[0] <= begin <= known[1]:
            code = self._code[agent]
            if not _seem_alike(code, begin, end, least):
                return 0
            known = self._periodic[agent, end - begin] = (begin, begin + _alike(code, begin, end))
        return known[1] - begin

    def _items_go_on(self, lap: Lap, more: int, since: int) -> bool:
        """True if in each of this many laps more every read finds the item that it names, and equal writes stay equal.

        In the lap itself it did. What it saw was written in the lap, or is written again in each one, or stays.
        """
        writes = self._certificate.accesses.writes
        for cell, write, read in self._reads[since:]:
            named = self._each_lap(read.agent, read.pc, lap, more)
            if set(named) == {-1}:
                continue
            stays = write.pc < lap.begin[write.agent] and writes[cell] is write
            if stays:
                found = [self._items[read.agent][read.pc]] * more
            else:
                found = self._each_lap(write.agent, write.pc, lap, more)
            if named != found:
                return False
        return self._writes_stay_alike(lap, more)

    def _writes_stay_alike(self, lap: Lap, more: int) -> bool:
        """True if what several agents write alike in the lap they do in each of this many laps more."""
        alike: dict[tuple[int, ...], list[list[int]]] = {}
        for agent, code in enumerate(self._run.program.code):
            for pc in range(lap.begin[agent], lap.end[agent]):
                if written := self._run.program.alike(code[pc]):
                    alike.setdefault(written, []).append(self._each_lap(agent, pc, lap, more))
        return all(  # where some of them are in other laps it must be the same item in all of these
            items == (same[0] if len(same) == times else [item] * more)
            for (_, item, times), same in alike.items()
            for items in same
        )

    def _each_lap(self, agent: int, pc: int, lap: Lap, more: int) -> list[int]:
        """The items of an operation in each of this many laps more."""
        step = lap.end[agent] - lap.begin[agent]
        return self._items[agent][pc + step : pc + more * step + 1 : step]

    def _leave_out(self, lap: Lap, more: int, before: CanonicalSnapshot) -> None:
        """Continue after this many more laps: with the operations there, and cells as the last lap left them."""
        state, phases = self._run.state, completed_phases(self._run.state)
        moved = [end - begin for begin, end in zip(lap.begin, lap.end, strict=True)]
        cells = list(state.cells)
        for cell, write in self._certificate.accesses.writes.items():
            if write.pc >= lap.begin[write.agent]:
                cells[cell] = self._items[write.agent][write.pc + more * moved[write.agent]]
        barriers = range(len(self._run.program.barriers))
        self._left_out += more * sum(phases[b] - before.phases[b] for b in barriers)
        behind = [end + more * step for end, step in zip(lap.end, moved, strict=True)]
        program = self._run.program.without(lap.end, behind)
        for agent, (end, rest) in enumerate(zip(lap.end, behind, strict=True)):
            del self._code[agent][end:rest], self._items[agent][end:rest]
        self._certificate = self._certificate.fork(program)
        if self._memory is not None:
            self._memory.goes_on_in(program)
        self._run = self._run.fork(program, [self._certificate, self._memory])
        self._run.state = state._replace(cells=tuple(cells))
        self._came, self._stood, self._periodic, self._failed = {}, {}, {}, 0


def _seem_alike(code: list[Operation], begin: int, end: int, laps: int) -> bool:
    """False if a few operations tell that the lap does not lie ahead at least this many times more."""
    far = laps * (end - begin)
    return end + far < len(code) and all(code[begin + at] is code[end + at] for at in (far, far // 2, far // 4))


def _alike(code: list[Operation], begin: int, end: int) -> int:
    """How many operations from ``begin`` on are the same as those from ``end`` on."""
    step = end - begin
    if code[begin:end] != code[end : end + step]:
        return 0
    same, most = step, len(code) - end
    stride = step
    while stride:
        stride = min(stride, most - same)
        if stride and code[begin + same : begin + same + stride] == code[end + same : end + same + stride]:
            same += stride
            stride *= 2
        else:
            stride //= 2
    return same
