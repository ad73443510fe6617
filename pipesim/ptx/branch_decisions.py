"""At which branch a warp was led past an instruction, and by which values: read off a second run of its kernel.

A branch decides whether an instruction is executed in an iteration of the loops around it if one of its ways leads
there without a new iteration, and the other does not; it decides for good if the other way leads there no more at all.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from pipesim.ptx.emit.names import source_of
from pipesim.ptx.emulate.code import Getter
from pipesim.ptx.emulate.values import PerLane, Value, lanes_in
from pipesim.ptx.emulation import Kernel, emulate
from pipesim.ptx.flow.graph import Graph
from pipesim.ptx.text.instruction import CodeLabel, Instruction, Register

_COMPARED: dict[str, tuple[Callable[[int, int], bool], str, str]] = {  # what holds if it is true, and if it is false
    "eq": (operator.eq, "==", "!="), "ne": (operator.ne, "!=", "=="), "lt": (operator.lt, "<", ">="),
    "le": (operator.le, "<=", ">"), "gt": (operator.gt, ">", "<="), "ge": (operator.ge, ">=", "<"),
    "lo": (operator.lt, "<", ">="), "ls": (operator.le, "<=", ">"), "hi": (operator.gt, ">", "<="),
    "hs": (operator.ge, ">=", "<"),
}  # fmt: skip
_DEEPEST = 8  #: predicates made of predicates


class BranchPast(NamedTuple):
    """A branch, or a guard, that led an agent past an instruction.

    ``step``: the steps of the agent's path before it; ``at``: the position of the branch, ``past`` of the instruction,
    with their lines ``line`` and ``past_line``. ``nth``: the agent came there for this time, from 1. ``ends``: the
    instruction cannot be reached any more. ``taken``: whether the branch was, by ``lanes``. ``depth``: the blocks
    before it on every way. ``because``: the comparison that decided, with its numbers, "" if it is not known.
    """

    agent: int
    step: int
    at: int
    past: int
    nth: int
    ends: bool
    taken: bool
    lanes: int
    depth: int
    line: str
    past_line: str
    because: str


def led_past(kernel: Kernel, agents: Collection[int], instructions: Collection[int]) -> list[BranchPast]:
    """Where these agents were led past any of these instructions, in the order of their paths.

    ``kernel`` has not been run: what its branches decide is written down while it is.
    """
    graph, body = kernel.code.regions.graph, kernel.function.body
    deciding = {past: dict(_deciding(kernel, graph, past)) for past in instructions}
    logs = {at: _Log(kernel, body[at]) for ways in deciding.values() for at in ways}
    kernel.code.watched = {at: log.write for at, log in logs.items()}
    last = emulate(kernel).cluster
    found: list[BranchPast] = []
    for past, ways in deciding.items():
        for at, (around, ends) in ways.items():
            times: defaultdict[int, set[int]] = defaultdict(set)  # both ways of one time are at one step
            lines = source_of(body[at], kernel.module), source_of(body[past], kernel.module)
            for who, step, way, lanes, because in logs[at].of(last):
                times[who].add(step)
                if who in agents and way in around:
                    nth, end = len(times[who]), way in ends
                    found.append(
                        BranchPast(who, step, at, past, nth, end, way, lanes, _depth(graph, at), *lines, because)
                    )
    return sorted(found)


def comes_to(kernel: Kernel, at: int, instructions: Collection[int]) -> bool:
    """Whether a way leads from a position to one of these instructions without a new iteration of its loops."""
    graph = kernel.code.regions.graph
    return any(graph.block_of[at] in _within(graph, graph.block_of[each]) for each in instructions)


def _within(graph: Graph, block: int) -> set[int]:
    mine = [loop for loop in graph.loops if block in loop.blocks]
    return _leading_to(graph, block, _backs(mine))


def _deciding(kernel: Kernel, graph: Graph, past: int) -> Iterator[tuple[int, tuple[set[bool], set[bool]]]]:
    """The branches that decide about an instruction: which ways lead past it, and which of them for good."""
    code, body, block = kernel.code, kernel.function.body, graph.block_of[past]
    if body[past].guard is not None:
        yield past, ({False}, set())
    mine = [loop for loop in graph.loops if block in loop.blocks]
    within = _within(graph, block)
    ever = _leading_to(graph, block, set())
    inner = min((loop.blocks for loop in mine), key=len, default=None)
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
        reached = {way for way, to in ways.items() if to in within and (number, to) not in _backs(mine)}
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


def _backs(loops: Collection[Any]) -> set[tuple[int, int]]:
    return {(back, loop.header) for loop in loops for back in loop.backs}


def _leading_to(graph: Graph, block: int, without: set[tuple[int, int]]) -> set[int]:
    """The blocks from which a way leads to one, that itself among them, on no edge of those ``without``."""
    found, open_ = {block}, [block]
    while open_:
        at = open_.pop()
        for before in graph.blocks[at].predecessors:
            if before not in found and (before, at) not in without:
                found.add(before)
                open_.append(before)
    return found


class _Taken(NamedTuple):
    agent: int
    step: int
    taken: bool
    lanes: int
    because: str


@dataclass(frozen=True)
class _Compare:
    """A comparison that a predicate depends on: its operands, and how it is written."""

    first: Getter
    second: Getter
    holds: Callable[[int, int], bool]
    words: tuple[str, str]
    signed: int  #: bits of a signed type, 0 of another


class _Log:
    """Which way a branch took, each time that one came there with a predicate that all its lanes have in common."""

    def __init__(self, kernel: Kernel, branch: Instruction) -> None:
        assert branch.guard is not None
        self._code = kernel.code
        self._writers: dict[str, list[int]] | None = None
        self._guard = self._code.register(branch.guard.register)
        self._negated = branch.guard.negated
        self._compares = list(self._comparing(branch.guard.register, branch.position, 0))
        self._seen: list[_Taken] = []
        self._cluster: object = None

    def of(self, cluster: object) -> list[_Taken]:
        """What was seen in this run, which is the last one."""
        return self._seen if self._cluster is cluster else []

    def write(self, warp: Any) -> None:
        """A warp is at the branch."""
        if warp.cluster is not self._cluster:  # the kernel is run again
            self._cluster, self._seen = warp.cluster, []
        step = len(warp.cluster.recorder.streams[warp.agent].path)
        predicate = warp.R[self._guard]
        for way in (False, True):
            lanes = _lanes_where(predicate, warp.mask, wanted=way is not self._negated)
            if lanes:
                self._seen.append(_Taken(warp.agent, step, way, lanes, self._because(warp, lanes)))

    def _because(self, warp: Any, lanes: int) -> str:
        """The only comparison, with its numbers: where there are several it is not said which of them decides."""
        if len(self._compares) != 1:
            return ""
        (each,) = self._compares
        values = [_common(get(warp.R, warp.K, warp), lanes) for get in (each.first, each.second)]
        if any(value is None for value in values):
            return ""
        a, b = (_with_sign(value, each.signed) for value in values)
        return f"{a:,} {each.words[0 if each.holds(a, b) else 1]} {b:,}"

    def _comparing(self, name: str, before: int, depth: int) -> Iterator[_Compare]:
        """The comparisons of integers that a predicate is made of, as far as their operands are still there."""
        at = self._writer(name, before)
        if at is None or depth > _DEEPEST:
            return
        each = self._code.body[at]
        if each.opcode in ("not", "and", "or") and each.has("pred"):
            for part in each.operands[1:]:
                if isinstance(part, Register):
                    yield from self._comparing(part.name, at, depth + 1)
            return
        compared = next((_COMPARED[m] for m in each.modifiers if m in _COMPARED), None)
        if each.opcode != "setp" or each.guard is not None or compared is None or len(each.operands) != 3:
            return
        getters = [self._code.getter(part) for part in each.operands[1:]]
        kept = all(self._unchanged(part.name, at, before) for part in each.operands[1:] if isinstance(part, Register))
        first, second = getters
        if kept and first is not None and second is not None:
            kind = each.modifiers[-1]
            signed = int(kind[1:]) if kind[0] == "s" else 0
            yield _Compare(first, second, compared[0], compared[1:], signed)

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
        if self._writers is None:
            self._writers = {}
            for position, names in enumerate(self._code.regions.uses.writes):
                for each in names:
                    self._writers.setdefault(each, []).append(position)
        found = self._writers.get(name, [])
        return found[0] if len(found) == 1 else None


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
