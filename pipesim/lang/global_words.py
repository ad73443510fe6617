"""Words of global memory in a description: what roles record, and one run of the CTAs in which they have values.

The run gives what the emulator of PTX gives of a kernel: the accesses in order, with the value before and after each,
of which :mod:`pipesim.model.word_barriers` makes barriers. It knows the answers of atomics, which roles may ask for.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pipesim.errors import ProtocolError
from pipesim.model.coverage import NotJudged, NotJudgedKind
from pipesim.model.groups import ON_BARRIER
from pipesim.model.machine import finished, initial_state, land, step
from pipesim.model.moves import can_land
from pipesim.model.ops import Op, Operation, Space, operand
from pipesim.model.program import Program
from pipesim.model.tables import Barrier, Tile
from pipesim.model.word_barriers import (
    MOST_WRITES,
    WordBarriers,
    acquired,
    arrival,
    in_its_cta,
    of_several_clusters,
    too_narrow,
)
from pipesim.model.words import Swaps, WordAct, WordEvent, WordsOfRun

Place = tuple[int, int]  #: an agent, and the place of an operation in its code
NOT_CHECKED = "the order of what CTAs do to words has not been checked"


@dataclass(frozen=True)
class WordAccess:
    """One access to a word: to ``size`` bytes at ``offset`` in global memory, with order and scope.

    ``value``: what it stores, adds, or waits for; a wait for ``exactly`` that value, else for at least that.
    ``compare``: of a compare-and-swap, which is tried until it succeeds if it ``spins``.
    """

    name: str
    offset: int
    size: int
    act: WordAct
    value: int
    written: int
    exactly: bool = False
    compare: int | None = None
    spins: bool = False

    def passes(self, value: int) -> bool:
        """Whether a wait ends, or a compare-and-swap succeeds, with a value of the word."""
        if self.act is WordAct.WAIT:
            return value == self.value if self.exactly else value >= self.value
        return self.compare is None or value == self.compare

    def after(self, value: int) -> int:
        """The value that it leaves."""
        return (value + self.value) & (1 << 8 * self.size) - 1 if self.act is WordAct.ADD else self.value


@dataclass(frozen=True)
class GridWords:
    """What roles do to global memory. ``words``: at the places of their accesses.

    ``observed``: the atomics whose answer is used, by place, or by CTA, word and number among those of the CTA on the
    word; each with the answer that was known, None where a recording ended.
    ``first``: the values of words before the launch, by offset, and what it writes to data; ``line`` of the author,
    where memory is named.
    """

    words: Mapping[Place, WordAccess]
    observed: Mapping[tuple[int, ...], int | None]
    first_values: Mapping[int, int]
    first: Sequence[Operation]
    line: str

    def require_apart(self, program: Program) -> None:
        """ProtocolError for bytes that are both a word and data, or parts of several words."""
        words = {(each.offset, each.offset + each.size): each.name for each in self.words.values()}
        data = {
            (each.offset, each.offset + each.nbytes): "data" for each in program.accesses if each.space == Space.GLOBAL
        }
        for (first, end), name in words.items():
            for (begin, stop), other in (*words.items(), *data.items()):
                if begin < end and first < stop and (begin, stop, other) != (first, end, name):
                    raise ProtocolError(
                        f"{name} is a word, and its bytes are accessed as {other} as well",
                        place=self.line,
                        cause="what CTAs say by a word is known if every access is to the word as such",
                        correction="give data memory of its own: p.gmem(name, slots, nbytes)",
                    )


def _slots(tile: Tile) -> range:
    return range(tile.offset, tile.offset + tile.slots * tile.nbytes, tile.nbytes)


@dataclass(frozen=True)
class GridProgram:
    """The CTAs of a grid as one program. ``turns``: the order in which CTAs were to write words; ``answers``: of the
    atomics, as this run has them in order, which those that roles were recorded with have to be; ``ended``: agents.
    ``recorded`` and ``memory``: what the roles do, with operations that do nothing at the places of words; ``more``:
    accesses that an edit may use.
    """

    program: Program
    words: WordsOfRun
    turns: tuple[int, ...]
    answers: Mapping[tuple[int, ...], int]
    ended: frozenset[int]
    recorded: Program
    memory: GridWords
    more: tuple[WordAccess, ...] = ()

    @property
    def instructions(self) -> int:
        """How long it is."""
        return sum(map(len, self.program.code))

    def with_accesses(self, accesses: Mapping[Place, WordAccess]) -> "GridProgram":
        """With other accesses at these places."""
        return replace(self, memory=replace(self.memory, words={**self.memory.words, **accesses}))

    @cached_property
    def accesses(self) -> Mapping[WordAccess, int]:
        """The different accesses to words, each with its number: of each a barrier of :meth:`editable`."""
        return {each: n for n, each in enumerate(dict.fromkeys((*self.memory.words.values(), *self.more)))}

    def operation(self, access: WordAccess) -> Operation:
        """What represents an access in :meth:`editable`."""
        return _on_barrier(access, len(self.recorded.barriers) + self.accesses[access])

    def editable(self) -> Program:
        """What the roles do, with an operation on a barrier for each access to a word: of each different access one."""
        recorded, code = self.recorded, [list(each) for each in self.recorded.code]
        for (agent, pc), access in self.memory.words.items():
            code[agent][pc] = self.operation(access)
        barriers = (Barrier(recorded.ctas, access.name, n) for n, access in enumerate(self.accesses))
        every = (*recorded.barriers, *barriers)
        return replace(recorded, code=tuple(map(tuple, code)), barriers=every, ctas=recorded.ctas + 1)

    def edited(self, program: Program, turns: tuple[int, ...], resident: int) -> "GridProgram | None":
        """The run of what roles do in ``program``, an edit of :meth:`editable`; None if one of its operations on words
        does not access one.
        """
        known, first = list(self.accesses), len(self.recorded.barriers)
        words: dict[Place, WordAccess] = {}
        code = [list(each) for each in program.code]
        for agent, mine in enumerate(code):
            for pc, op in enumerate(mine):
                if op[0] in ON_BARRIER and operand(op, "barrier") >= first:
                    access = known[operand(op, "barrier") - first]
                    was = _on_barrier(access, operand(op, "barrier"))
                    if op[:-1] != was[:-1]:
                        return None
                    access = access if op == was else replace(access, written=operand(op, "semantics"))
                    words[agent, pc], mine[pc] = access, (int(Op.WORK), 0)
        back = replace(program, code=tuple(map(tuple, code)), barriers=self.recorded.barriers, ctas=self.recorded.ctas)
        return GridRun(back, replace(self.memory, words=words), turns, resident).made()


def _on_barrier(access: WordAccess, barrier: int) -> Operation:
    if access.act is WordAct.WAIT:
        return int(Op.WAIT), barrier, 0, acquired(access.written)
    return arrival(barrier, access.written)


class GridRun:
    """The run of all CTAs, in which each agent goes as far as it can in its turn, to its end or to where it hangs."""

    def __init__(self, program: Program, memory: GridWords, turns: tuple[int, ...], resident: int) -> None:
        self._program, self._memory, self._turns, self._resident = program, memory, turns, resident
        self._values = {each.offset: memory.first_values.get(each.offset, 0) for each in memory.words.values()}
        self._events: list[WordEvent] = []
        self._at: dict[Place, int] = {}  #: the number of the event there
        self._sequence: list[tuple[int, int]] = []
        self._answers: dict[tuple[int, ...], int] = {}
        self._waiting: dict[int, WordAccess] = {}
        self._state = initial_state(program)
        moved = True
        while moved:
            moved = self._round()

    def _round(self) -> bool:
        program, moved = self._program, False
        for agent in range(len(program.agents)):
            while self._has_room(agent) and not finished(program, self._state, agent):
                access = self._memory.words.get((agent, self._state.pcs[agent]))
                if access is not None and not self._access(agent, access):
                    break
                result = step(program, self._state, agent)
                moved, self._state = moved or result.state is not self._state, result.state
                if any(fault.kind.traps for fault in result.faults):
                    return False
                if result.blocked >= 0:
                    break
        for flight in self._state.flights:
            if can_land(program, self._state, flight):
                moved, self._state = True, land(program, self._state, flight).state
        return moved

    def _has_room(self, agent: int) -> bool:
        """Whether its CTA is on the device: those before it, but for the last ones, have ended."""
        agents, resident = self._program.agents, self._resident
        before = agents[agent].cta - resident
        return not resident or all(
            finished(self._program, self._state, n) for n, each in enumerate(agents) if each.cta <= before
        )

    def _access(self, agent: int, access: WordAccess) -> bool:
        """Whether it is done; else the agent waits."""
        pc, at = self._state.pcs[agent], access.offset
        value, cta = self._values[at], self._program.agents[agent].cta
        fails = not access.passes(value)
        act = WordAct.READ if fails else access.act
        others_turn = act.writes and any(turn != cta for turn in self._turns[len(self._sequence) :][:1])
        if others_turn or (fails and (access.spins or access.act is WordAct.WAIT)):
            self._waiting[agent] = access
            return False
        self._waiting.pop(agent, None)
        after = access.after(value) if act.writes else value
        if act.writes:
            self._sequence.append((cta, at))
            self._values[at] = after
        nth = sum(key[:2] == (cta, at) for key in self._answers if len(key) > len((agent, pc)))
        keys = ((agent, pc), (cta, at, nth)) if access.act in (WordAct.ADD, WordAct.CHANGE) else ()
        self._answers |= dict.fromkeys(keys, value)
        observed = act.writes and (access.spins or not self._memory.observed.keys().isdisjoint(keys))
        self._at[agent, pc] = number = len(self._events)
        passes = access.passes if act is WordAct.WAIT else None
        self._events.append(WordEvent(number, agent, pc, at, act, value, after, access.written, observed, passes))
        return True

    def made(self) -> GridProgram:
        """The program in which words are barriers."""
        program, memory = self._program, self._memory
        barriers = list(program.barriers)

        def enter(name: str, agents: Collection[int]) -> int:
            ctas = {program.agents[agent].cta for agent in agents}
            cta = ctas.pop() if len(ctas) == 1 else program.ctas
            barriers.append(Barrier(cta, name, sum(each.name == name for each in barriers)))
            return len(barriers) - 1

        by_offset = {each.offset: each for each in memory.words.values()}
        made, found, why_not = WordBarriers(enter), [], ""
        for at, word in sorted(by_offset.items()):
            events = [e for e in self._events if e.address == at]
            if sum(e.act.writes for e in events) > MOST_WRITES:
                why_not = f"{word.name} is written too often"
            waiting = ((agent, each) for agent, each in self._waiting.items() if each.offset == at)
            stuck = [(agent, self._state.pcs[agent], each.passes, each.written) for agent, each in waiting]
            if not stuck and all(e.act.writes and not e.observed for e in events):
                continue  # nothing depends on its value
            found.append(made.add(word.name, word.size, memory.first_values.get(at, 0), events, stuck))
        made.make_room([each.cta for each in program.agents], self._resident)
        places: dict[int, tuple[int, int]] = {}
        sources = tuple(dict.fromkeys((*program.sources, memory.line)))
        streams = [self._stream(made, agent, places, sources.index(memory.line)) for agent in range(len(program.code))]
        made.place(places)
        observed = {e.address for e in self._events if e.observed}
        offsets = sorted({each.offset for each in self._waiting.values()})
        alike = self._alike()
        words = WordsOfRun(
            words=tuple(found),
            why_not=why_not,
            stuck_at=tuple((at, at + by_offset[at].size) for at in offsets),
            missing=max(made.missing, default=0) * all(made.missing),
            sequence=tuple(self._sequence),
            observed=frozenset(observed),
            off_turn=len(self._sequence) < len(self._turns),
            swaps=Swaps.NONE if alike is None else Swaps.ALL,
            does=alike,
            narrow=self._narrow(),
        )
        grid = replace(
            program,
            barriers=tuple(barriers),
            code=tuple(tuple(code) for code, _ in streams),
            lines=tuple(tuple(lines) for _, lines in streams),
            sources=sources,
            ctas=program.ctas + 1,
            tiles=tuple(t for t in program.tiles if t.space != Space.GLOBAL or by_offset.keys().isdisjoint(_slots(t))),
            coverage=replace(program.coverage, not_judged=(NotJudged(NotJudgedKind.WORDS, 0, (NOT_CHECKED,)),)),
        )
        ended = frozenset(n for n in range(len(program.code)) if finished(program, self._state, n))
        return GridProgram(grid, words, self._turns, self._answers, ended, program, memory)

    def _narrow(self) -> str:
        words = ([e for e in self._events if e.address == at] for at in self._values)
        found = too_narrow(words, [each.cta for each in self._program.agents])
        return f"{self._program.line(found.agent, found.position)}: its scope is one CTA" if found else ""

    def _alike(self) -> list[object] | None:
        """What each CTA does, if they differ in nothing but whose shared memory they use, and each comes once to an
        atomic whose answer is used. Names of what they write to global memory are not compared where nothing
        reads by them.
        """
        program, words = self._program, self._memory.words
        ctas = [program.agents[e.agent].cta for e in self._events if e.observed]
        reads = (op for op in program.operations if op[0] == Op.READ)
        with_items = any(
            operand(op, "item") >= 0 and program.accesses[operand(op, "access")].space == Space.GLOBAL for op in reads
        )
        per_cta = len(program.barriers) // program.ctas
        barriers = [(each.cta, n % per_cta) for n, each in enumerate(program.barriers)]
        kinds: dict[int, list[object]] = {}
        for n, code in enumerate(program.code):
            said = (
                in_its_cta(op, program.accesses, barriers, program.named_barriers, with_items=with_items) for op in code
            )
            mine = [words.get((n, pc)) or each for pc, each in enumerate(said)]
            kinds.setdefault(program.agents[n].cta, []).append(mine)
        first, *others = kinds.values()
        once = len(set(ctas)) == len(ctas) == program.ctas
        return first if once and all(each == first for each in others) else None

    def _stream(
        self, made: WordBarriers, agent: int, places: dict[int, tuple[int, int]], line: int
    ) -> tuple[list[Operation], list[int]]:
        """The operations of an agent with those of its words, and their lines. ``places``: gets where these are."""
        program, cta, stands = self._program, self._program.agents[agent].cta, self._state.pcs[agent]
        ended = finished(program, self._state, agent)
        last, _ = made.end(agent, cta, ended=ended)
        code = made.start(agent, cta, self._memory.first)
        lines = [line] * len(code)
        for pc, op in enumerate(program.code[agent]):
            here = [of_several_clusters(op)]
            if (agent, pc) in self._memory.words:
                number = self._at.get((agent, pc), -1)
                here = made.instead.get(number, []) or [(int(Op.WORK), 0)]
                places[number] = len(code), len(code) + len(here) - 1
            if pc == stands and last:
                here = last
            code += here
            lines += [program.lines[agent][pc]] * len(here)
        if ended:
            code += last
            lines += [lines[-1]] * len(last)
        return code, lines
