"""At which branch a warp was led past an instruction, and by which values: read off a second run of its kernel.

A branch decides whether an instruction is executed in its turn, an iteration of the loops around it, if one of its
ways leads there without a new one, and the other does not; it decides for good if the other way leads there no more at
all. A loop without a wait in which the instruction is executed once between two waits has all its iterations in one
turn: its exit decides if the instruction was not executed before.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from pipesim.ptx.emit.names import source_of
from pipesim.ptx.emit.record import PathStep
from pipesim.ptx.emulate.code import Getter
from pipesim.ptx.emulate.values import PerLane, Value, lanes_in
from pipesim.ptx.emulation import emulate
from pipesim.ptx.extract import own_line
from pipesim.ptx.flow.graph import Graph, Loop, reached
from pipesim.ptx.flow.opcodes import COMPARED
from pipesim.ptx.loop_values import BranchTrips, SaidBranch
from pipesim.ptx.prepare import Kernel
from pipesim.ptx.text.declarations import Module
from pipesim.ptx.text.instruction import CodeLabel, Instruction, Register

_DEEPEST = 8  #: predicates made of predicates


class BranchPast(NamedTuple):
    """A branch, or a guard, that led an agent past an instruction.

    ``step``: the steps of the agent's path before it; ``at``: the position of the branch, ``past`` of the instruction,
    with their lines ``line`` and ``past_line``. ``nth``: the agent came there for this time, from 1. ``ends``: the
    instruction cannot be reached any more, ``only``: nor is there another exit of the loop. ``taken``: whether the
    branch was, by ``lanes``. ``depth``: the blocks before it on every way. ``because``: the comparisons that decided,
    with their numbers, "" if they are not known, and ``said``: what the source calls them.
    """

    agent: int
    step: int
    at: int
    past: int
    nth: int
    ends: bool
    only: bool
    taken: bool
    lanes: int
    depth: int
    line: str
    past_line: str
    because: str
    said: SaidBranch = SaidBranch()


def led_past(kernel: Kernel, agents: Collection[int], instructions: Collection[int]) -> list[BranchPast]:
    """Where these agents were led past any of these instructions, in the order of their paths.

    ``kernel`` has not been run: what its branches decide is written down while it is.
    """
    graph, body = kernel.code.regions.graph, kernel.function.body
    waits = {each.position for each in body if is_wait(each)}
    turns = {past: _turns(graph, past, waits) for past in instructions}
    deciding = {past: [dict(_deciding(kernel, graph, past, loops)) for loops in turns[past]] for past in instructions}
    logs = {at: _Log(kernel, body[at]) for each in deciding.values() for ways in each for at in ways}
    watches: dict[int, list[Callable[[Any], None]]] = {at: [log.write] for at, log in logs.items()}
    for log in logs.values():
        for at, watch in log.trips.watches():
            watches.setdefault(at, []).append(watch)
    kernel.code.watched = {at: partial(_all, each) for at, each in watches.items()}
    last = emulate(kernel).cluster
    paths = [stream.path for stream in last.recorder.streams]
    found: list[BranchPast] = []
    for past, levels in deciding.items():
        often = len(levels) > 1 and any(_often(path, past, waits) for path in paths)
        inner = turns[past][-1][0].blocks if len(levels) > 1 and not often else frozenset()
        exits = _exits(graph, turns[past][-1 if often else 0])
        past_line = source_of(body[past], kernel.module)
        for at, (around, ends) in levels[-1 if often else 0].items():
            for who, step, nth, way, lanes, because, decides, warp, trip in logs[at].of(last):
                if graph.block_of[at] in inner and past in since_wait(paths[who], step, waits):
                    continue
                if who in agents and way in around:
                    how = nth, way in ends, exits == {graph.block_of[at]}, way, lanes, _depth(graph, at)
                    line = _line(body[at], body[decides], body[past], kernel.module)
                    said = logs[at].said(warp, lanes, trip, body[past])
                    said = said if line == own_line(body[at], kernel.module) else SaidBranch()
                    found.append(BranchPast(who, step, at, past, *how, line, past_line, because, said))
    return sorted(found)


def _all(watches: Sequence[Callable[[Any], None]], warp: Any) -> None:
    for each in watches:
        each(warp)


def _line(branch: Instruction, compared: Instruction, past: Instruction, module: Module) -> str:
    """The line of a branch, or of what it compares if that is inlined there; not of what it led past if it is there."""
    frames, inner = (each.source.frames if each.source is not None else () for each in (branch, compared))
    apart = past.source is None or frames != past.source.frames[: len(frames)]
    inlined = len(inner) > len(frames) > 0 and inner[0][:2] == frames[0][:2]
    return own_line(compared if inlined else branch, module) if apart or inlined else source_of(branch, module)


def comes_to(kernel: Kernel, at: int, instructions: Collection[int]) -> bool:
    """Whether a way leads from a position to one of these instructions without a new iteration of its loops."""
    graph = kernel.code.regions.graph
    return any(
        graph.block_of[at] in _leading_to(graph, graph.block_of[each], _backs(_around(graph, each)))
        for each in instructions
    )


def is_wait(each: Instruction) -> bool:
    """Whether it waits for a phase of an mbarrier."""
    return each.opcode == "mbarrier" and (each.has("try_wait") or each.has("test_wait"))


def since_wait(path: Sequence[PathStep], step: int, waits: Collection[int]) -> set[int]:
    """What an agent executed between its last wait before a step and that."""
    begin = next((at for at in range(step - 1, -1, -1) if path[at].position in waits), -1) + 1
    return {each.position for each in path[begin:step]}


def _often(path: Sequence[PathStep], past: int, waits: Collection[int]) -> bool:
    """Whether an instruction is executed several times between two waits."""
    mine = [each.position for each in path if each.position == past or each.position in waits]
    return any(one == two == past for one, two in pairwise(mine))


def _around(graph: Graph, at: int) -> list[Loop]:
    """The loops around an instruction, the innermost first."""
    return sorted(
        (loop for loop in graph.loops if graph.block_of[at] in loop.blocks), key=lambda loop: len(loop.blocks)
    )


def _turns(graph: Graph, past: int, waits: Collection[int]) -> list[list[Loop]]:
    """The loops of which an iteration is a turn: those that have a wait, and all, if these are others."""
    every = _around(graph, past)
    waiting = {graph.block_of[at] for at in waits}
    with_wait = [loop for loop in every if not waiting.isdisjoint(loop.blocks)]
    return [with_wait, every] if with_wait and len(with_wait) < len(every) else [every]


def _exits(graph: Graph, loops: Sequence[Loop]) -> set[int]:
    """The blocks from which a way leads out of the innermost of these loops."""
    inner = loops[0].blocks if loops else frozenset()
    outside = (each for number, each in enumerate(graph.blocks) if number not in inner)
    return {before for each in outside for before in each.predecessors if before in inner}


def _deciding(
    kernel: Kernel, graph: Graph, past: int, mine: Sequence[Loop]
) -> Iterator[tuple[int, tuple[set[bool], set[bool]]]]:
    """The branches that decide about an instruction in an iteration of these loops: which ways lead past it, and which
    of them for good.
    """
    code, body, block = kernel.code, kernel.function.body, graph.block_of[past]
    if body[past].guard is not None and mine == _around(graph, past):
        yield past, ({False}, set())
    backs = _backs(mine)
    within = _leading_to(graph, block, backs)
    ever = _leading_to(graph, block, set())
    inner = mine[0].blocks if mine else None
    for number, each in enumerate(graph.blocks):
        branch = body[each.end - 1]
        if branch.guard is None or branch.position not in code.kept or branch.opcode not in ("bra", "ret", "exit"):
            continue
        target = graph.exit
        if branch.opcode == "bra":
            assert isinstance(branch.operands[0], CodeLabel)
            at = code.function.labels[branch.operands[0].name]
            target = graph.block_of[at] if at < code.end else graph.exit
        ways = {True: target, False: graph.block_of[each.end] if each.end < code.end else graph.exit}
        reached = {way for way, to in ways.items() if to in within and (number, to) not in backs}
        here = {way for way, to in ways.items() if way not in reached and (inner is None or to in inner)}
        ends = {way for way, to in ways.items() if to not in ever}
        around = (here if len(reached) == 1 else set()) | (ends if len(ends) == 1 else set())
        if around:
            yield branch.position, (around, ends)


def _depth(graph: Graph, at: int) -> int:
    block, found = graph.dominators[graph.block_of[at]], 0
    while block is not None:
        block, found = graph.dominators[block], found + 1
    return found


def _backs(loops: Collection[Loop]) -> set[tuple[int, int]]:
    return {(back, loop.header) for loop in loops for back in loop.backs}


def _leading_to(graph: Graph, block: int, without: set[tuple[int, int]]) -> set[int]:
    """The blocks from which a way leads to one, that itself among them, on no edge of those ``without``."""

    def before(at: int) -> list[int]:
        return [each for each in graph.blocks[at].predecessors if (each, at) not in without]

    return set(reached([block], before))


class _Taken(NamedTuple):
    agent: int
    step: int
    nth: int
    taken: bool
    lanes: int
    because: str
    decides: int  #: the position of the only comparison, else of the branch
    warp: Any
    trip: Mapping[str, int]


@dataclass(frozen=True)
class _Compare:
    """A comparison that a predicate depends on: its operands, and how it is written."""

    at: int
    first: Getter
    second: Getter
    holds: Callable[[int, int], bool]
    words: tuple[str, str]
    signed: int  #: bits of a signed type, 0 of another


@dataclass(frozen=True)
class _Joined:
    """Predicates: true if any is (``any_``), else if all are; the opposite if ``negated``."""

    parts: "tuple[_Condition, ...]"
    any_: bool = True
    negated: bool = False


_Condition: TypeAlias = _Compare | _Joined | None  #: None: not known
_Ways: TypeAlias = frozenset[frozenset[tuple[str, int]]]  #: sets of comparisons, each of which alone decides


class _Log:
    """Which way a branch took, each time that one came there with a predicate that all its lanes have in common."""

    def __init__(self, kernel: Kernel, branch: Instruction) -> None:
        assert branch.guard is not None
        self._code = kernel.code
        self._guard = self._code.register(branch.guard.register)
        self._negated = branch.guard.negated
        self._at = branch.position
        self._condition = self._comparing(branch.guard.register, branch.position, 0)
        self._seen: list[_Taken] = []
        self.trips = BranchTrips(kernel, branch, _around(kernel.code.regions.graph, branch.position))
        self._cluster: object = None
        self._times: dict[int, tuple[int, int]] = {}  #: how often each agent came, and the lanes that did so this time

    def of(self, cluster: object) -> list[_Taken]:
        """What was seen in this run, which is the last one."""
        return self._seen if self._cluster is cluster else []

    def said(self, warp: Any, lanes: int, trip: Mapping[str, int], past: Instruction) -> SaidBranch:
        """What the source has of it."""
        return self.trips.said(warp, lanes, trip, past, alone=isinstance(self._condition, _Compare))

    def write(self, warp: Any) -> None:
        """A warp is at the branch."""
        if warp.cluster is not self._cluster:  # the kernel is run again
            self._cluster, self._seen, self._times = warp.cluster, [], {}
        nth, came = self._times.get(warp.agent, (0, -1))
        nth, came = (nth + 1, warp.mask) if came & warp.mask else (nth, came | warp.mask)
        self._times[warp.agent] = nth, came
        step = len(warp.cluster.recorder.streams[warp.agent].path)
        predicate = warp.R[self._guard]
        for way in (False, True):
            lanes = _lanes_where(predicate, warp.mask, wanted=way is not self._negated)
            if lanes:
                because = *self._because(warp, lanes), warp, self.trips.trip(warp)
                self._seen.append(_Taken(warp.agent, step, nth, way, lanes, *because))

    def _because(self, warp: Any, lanes: int) -> tuple[str, int]:
        """The fewest comparisons that decide alone for all these lanes, with the numbers that these have in common."""
        compares = list(_compares(self._condition))
        values = {each.at: [get(warp.R, warp.K, warp) for get in (each.first, each.second)] for each in compares}
        alike = all(isinstance(value, int) for both in values.values() for value in both)
        ways: _Ways | None = None
        for lane in lanes_in(lanes & -lanes if alike else lanes):
            here = _decided(self._condition, values, lane)[1]
            ways = here if ways is None else ways & here
        best = min(ways or (), key=lambda each: (len(each), sorted(each)), default=frozenset())
        said = sorted(best, key=itemgetter(1))
        return " and ".join(each for each, _ in said), said[0][1] if len(said) == 1 else self._at

    def _comparing(self, name: str, before: int, depth: int) -> _Condition:
        """The comparisons of integers that a predicate is made of, as far as their operands are still there."""
        at = self._writer(name, before)
        if at is None or depth > _DEEPEST:
            return None
        each = self._code.body[at]
        if each.opcode in ("not", "and", "or") and each.has("pred"):
            parts = [self._comparing(p.name, at, depth + 1) for p in each.operands[1:] if isinstance(p, Register)]
            return _Joined(tuple(parts), each.opcode != "and", negated=each.opcode == "not")
        compared = next((COMPARED[m] for m in each.modifiers if m in COMPARED), None)
        if each.opcode != "setp" or each.guard is not None or compared is None or len(each.operands) != 3:
            return None
        getters = [self._code.getter(part) for part in each.operands[1:]]
        kept = all(self._unchanged(part.name, at, self._at) for part in each.operands[1:] if isinstance(part, Register))
        first, second = getters
        kind = each.modifiers[-1]
        if not kept or first is None or second is None or kind[0] == "f":
            return None
        return _Compare(at, first, second, compared[0], compared[1:], int(kind[1:]) if kind[0] == "s" else 0)

    def _writer(self, name: str, before: int) -> int | None:
        """The instruction that writes a register last in the block before a position, else the only one."""
        graph, writes = self._code.regions.graph, self._code.regions.uses.writes
        first = graph.blocks[graph.block_of[before]].first
        near = next((at for at in range(before - 1, first - 1, -1) if name in writes[at]), None)
        return near if near is not None else self._only(name)

    def _unchanged(self, name: str, at: int, until: int) -> bool:
        """Whether a register still has at ``until`` what an instruction read."""
        graph, writes = self._code.regions.graph, self._code.regions.uses.writes
        if graph.block_of[at] == graph.block_of[until]:
            return all(name not in writes[p] for p in range(at + 1, until))
        return self._only(name) is not None

    def _only(self, name: str) -> int | None:
        found = self._code.regions.uses.writers.get(name, ())
        return found[0] if len(found) == 1 else None


def _compares(condition: _Condition) -> Iterator[_Compare]:
    """The comparisons in a predicate."""
    if isinstance(condition, _Compare):
        yield condition
    elif condition is not None:
        for each in condition.parts:
            yield from _compares(each)


def _decided(condition: _Condition, values: Mapping[int, Sequence[Value]], lane: int) -> tuple[bool | None, _Ways]:
    """The value of a predicate in a lane, and what decides it; ``values``: of the operands of its comparisons."""
    if condition is None:
        return None, frozenset()
    if isinstance(condition, _Compare):
        both = [_common(value, 1 << lane) for value in values[condition.at]]
        if any(value is None for value in both):
            return None, frozenset()
        a, b = (_with_sign(value, condition.signed) for value in both)
        holds = condition.holds(a, b)
        said = f"{a:,} {condition.words[0 if holds else 1]} {b:,}"
        return holds, frozenset({frozenset({(said, condition.at)})})
    parts = [_decided(each, values, lane) for each in condition.parts]
    alone = [ways for value, ways in parts if value is condition.any_]
    if alone:
        return condition.any_ is not condition.negated, frozenset().union(*alone)
    if any(value is None for value, _ in parts):
        return None, frozenset()
    every = product(*(ways for _, ways in parts))
    return condition.any_ is condition.negated, frozenset(frozenset().union(*each) for each in every)


def _common(value: Value, mask: int) -> int | None:
    """The integer that all these lanes have, None where they differ or it is not known."""
    if isinstance(value, int):
        return value
    if not isinstance(value, PerLane):
        return None
    several = {value.each[lane] for lane in lanes_in(mask) if isinstance(value.each[lane], int)}
    known = all(isinstance(value.each[lane], int) for lane in lanes_in(mask))
    return several.pop() if known and len(several) == 1 else None


def _lanes_where(predicate: Value, mask: int, *, wanted: bool) -> int:
    """The lanes in which a predicate has a known value."""
    if isinstance(predicate, int):
        return mask if bool(predicate) is wanted else 0
    each = predicate.each if isinstance(predicate, PerLane) else ()
    known = (lane for lane in lanes_in(mask) if each and isinstance(each[lane], int))
    return sum(1 << lane for lane in known if bool(each[lane]) is wanted)


def _with_sign(value: int | None, bits: int) -> int:
    assert value is not None
    return value - (1 << bits) if bits and value >> (bits - 1) & 1 else value
