"""The control-flow graph of a PTX function: basic blocks, dominators, post-dominators and loops.

Blocks are numbered in the order of the text. ``Graph.exit`` is a virtual block after all others, to which ``exit``,
``ret`` and the end of the body lead. A ``trap`` ends the whole launch, so a way that ends in one does not count for the
post-dominators: the lanes that do not trap meet where they would meet without it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from pipesim.bounds import MAX_FLOW_EDGES
from pipesim.errors import PtxError
from pipesim.ptx.text.declarations import Function, once_for_each
from pipesim.ptx.text.instruction import CodeLabel, Instruction

_Node = TypeVar("_Node")


def reached(starts: Iterable[_Node], after: Callable[[_Node], Iterable[_Node]]) -> Iterator[_Node]:
    """Some places and all that come after them, each once; what comes after one is asked once it was looked at."""
    seen, waiting = set[_Node](), list(starts)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            yield node
            waiting += after(node)


def immediate_dominators(root: int, successors: Sequence[Sequence[int]]) -> list[int | None]:
    """The immediate dominator of each node that ``root`` reaches; None for the root and for all others."""
    order = _postorder(root, successors)
    number = {node: n for n, node in enumerate(order)}
    predecessors: list[list[int]] = [[] for _ in successors]
    for node in order:
        for after in successors[node]:
            predecessors[after].append(node)
    found: list[int | None] = [None] * len(successors)
    found[root] = root
    changed = True
    while changed:
        changed = False
        for node in reversed(order):
            if node == root:
                continue
            known = [before for before in predecessors[node] if found[before] is not None]
            best = known[0]
            for other in known[1:]:
                best = _common(best, other, found, number)
            if found[node] != best:
                found[node], changed = best, True
    found[root] = None
    return found


def _common(one: int, other: int, dominator: Sequence[int | None], number: dict[int, int]) -> int:
    """The nearest node that dominates both."""
    while one != other:
        while number[one] < number[other]:
            one = dominator[one]  # type: ignore[assignment]  # every node on the way has one
        while number[other] < number[one]:
            other = dominator[other]  # type: ignore[assignment]
    return one


def _postorder(root: int, successors: Sequence[Sequence[int]] | Mapping[int, Sequence[int]]) -> list[int]:
    """The nodes that the root reaches, each after those that are reached only through it."""
    order: list[int] = []
    seen = {root}
    waiting = [(root, iter(successors[root]))]
    while waiting:
        node, rest = waiting[-1]
        after = next((each for each in rest if each not in seen), None)
        if after is None:
            order.append(node)
            waiting.pop()
        else:
            seen.add(after)
            waiting.append((after, iter(successors[after])))
    return order


RETURNS = frozenset({"ret", "exit"})
BRANCHES = frozenset({"bra", "brx"})
_MOST_ENDLESS = 64  #: endless loops whose ends are looked for one by one
ENDS = RETURNS | BRANCHES | {"trap"}  #: opcodes after which a block ends


@dataclass(frozen=True)
class Block:
    """Instructions ``first`` to ``end`` - 1 of the body, and the blocks before and after it, without repetition."""

    first: int
    end: int
    successors: tuple[int, ...]
    predecessors: tuple[int, ...]


@dataclass(frozen=True)
class Loop:
    """A natural loop: the block through which it is entered, all its blocks, and the blocks that lead back."""

    header: int
    blocks: frozenset[int]
    backs: tuple[int, ...]


@dataclass(frozen=True)
class Graph:
    """The blocks of a function, and ``block_of`` each of its instructions; what follows from them is cached.

    ``traps`` are the blocks that end in a ``trap`` which every lane runs; they have no successor.
    """

    blocks: tuple[Block, ...]
    block_of: tuple[int, ...]
    traps: frozenset[int]

    @property
    def exit(self) -> int:
        """The number of the virtual block where every lane ends."""
        return len(self.blocks)

    @cached_property
    def dominators(self) -> tuple[int | None, ...]:
        """The immediate dominator of each block; None of the first and of blocks that nothing leads to."""
        rows = [[after for after in block.successors if after != self.exit] for block in self.blocks]
        return tuple(immediate_dominators(0, rows)) if self.blocks else ()

    @cached_property
    def post_dominators(self) -> tuple[int, ...]:
        """The immediate post-dominator of each block, :attr:`exit` where there is no nearer one."""
        ending = self._backwards(frozenset())
        found = immediate_dominators(self.exit, ending)
        if any(each is None for each in found[: self.exit]):  # some blocks only trap, or never end
            every = immediate_dominators(self.exit, self._backwards(self._end_blocks()))
            found = [one if one is not None else other for one, other in zip(found, every, strict=True)]
        return tuple(self.exit if each is None else each for each in found[: self.exit])

    @cached_property
    def reachable(self) -> frozenset[int]:
        """The blocks to which the first leads."""
        return (
            frozenset({0} | {n for n, each in enumerate(self.dominators) if each is not None})
            if self.blocks
            else frozenset()
        )

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """The natural loops, one for each header, in the order of their headers."""
        backs: dict[int, list[int]] = {}
        for number in sorted(self.reachable):
            for after in self.blocks[number].successors:
                if after != self.exit and self.dominates(after, number):
                    backs.setdefault(after, []).append(number)
        return tuple(Loop(header, self._loop(header, backs[header]), tuple(backs[header])) for header in sorted(backs))

    @cached_property
    def endless(self) -> tuple[frozenset[int], ...]:
        """The blocks through which loops are entered that no branch leaves, loop by loop."""
        closed = (
            each
            for each in self.components(self.reachable)
            if all(each.issuperset(self.blocks[block].successors) for block in each)
        )
        return tuple(map(self.entries, closed))

    def components(self, among: frozenset[int]) -> list[frozenset[int]]:
        """The largest sets of these blocks in which each leads to each: loops, with one entry or several."""
        after = {block: [each for each in self.blocks[block].successors if each in among] for block in among}
        order, seen, found = _postorder(self.exit, after | {self.exit: sorted(among)}), set[int](), []

        def before(block: int) -> Collection[int]:
            return among.intersection(self.blocks[block].predecessors) - seen

        for first in order[-2::-1]:
            mine = frozenset(reached({first} - seen, before))
            seen |= mine
            if len(mine) > 1 or (mine and first in after[first]):
                found.append(mine)
        return found

    def entries(self, loop: frozenset[int]) -> frozenset[int]:
        """The blocks of a loop to which others lead, or which the function begins with."""
        return frozenset(
            block
            for block in loop
            if block == 0 or not loop.issuperset(self.reachable.intersection(self.blocks[block].predecessors))
        )

    def dominates(self, one: int, other: int) -> bool:
        """Whether every way from the first block to ``other`` passes ``one``."""
        at: int | None = other
        while at is not None and at != one:
            at = self.dominators[at]
        return at == one

    def meeting_point(self, position: int) -> int:
        """The instruction where lanes that part at this one are together again: the length of the body for the end."""
        block = self.post_dominators[self.block_of[position]]
        return self.blocks[block].first if block != self.exit else len(self.block_of)

    def _backwards(self, more: frozenset[int]) -> list[list[int]]:
        """The predecessors of each block and of the exit, to which the blocks in ``more`` lead as well."""
        rows: list[list[int]] = [[] for _ in range(self.exit + 1)]
        for number, block in enumerate(self.blocks):
            for after in block.successors:
                rows[after].append(number)
        rows[self.exit] += sorted(more)
        return rows

    def _end_blocks(self) -> frozenset[int]:
        """Blocks to treat as ends where no way leads to the exit: traps, and the last of each endless loop."""
        found = set(self.traps)
        while True:
            rows = self._backwards(frozenset(found))
            seen = set(reached([self.exit], rows.__getitem__))
            left = [number for number in range(self.exit) if number not in seen]
            if not left:
                return frozenset(found)
            found.update(left[-1:] if len(found) - len(self.traps) < _MOST_ENDLESS else left)

    def _loop(self, header: int, backs: list[int]) -> frozenset[int]:
        def before(block: int) -> Collection[int]:
            return self.reachable.intersection(self.blocks[block].predecessors) if block != header else ()

        return frozenset({header, *reached(backs, before)})

    def after(self, position: int) -> list[int]:
        """The instructions that may come next."""
        block = self.blocks[self.block_of[position]]
        if position + 1 < block.end:
            return [position + 1]
        return [self.blocks[b].first for b in block.successors if b != self.exit]

    def positions(self, blocks: Iterable[int]) -> frozenset[int]:
        """The instructions of some blocks."""
        return frozenset(p for b in blocks for p in range(self.blocks[b].first, self.blocks[b].end))

    def exits(self, blocks: frozenset[int]) -> list[int]:
        """The last instructions of those of some blocks from which a way leads out of them."""
        inside = (self.blocks[b] for b in sorted(blocks))
        return [each.end - 1 for each in inside if not blocks.issuperset(each.successors)]


@once_for_each
def graph_of(function: Function) -> Graph:
    """The control-flow graph of a function's body. PtxError if that has too many ways."""
    body = function.body
    starts = {0, *_targets(function)} | {each.position + 1 for each in body if each.opcode in ENDS}
    firsts = sorted(each for each in starts if each < len(body))
    number = {first: n for n, first in enumerate(firsts)}
    number[len(body)] = len(firsts)
    ends = [*firsts[1:], len(body)] if body else []
    successors = [_successors(function, body[end - 1], number) for end in ends]
    predecessors: list[list[int]] = [[] for _ in range(len(firsts) + 1)]
    for block, after in enumerate(successors):
        for each in after:
            predecessors[each].append(block)
    blocks = tuple(
        Block(first, end, after, tuple(before))
        for first, end, after, before in zip(firsts, ends, successors, predecessors[:-1], strict=True)
    )
    block_of = tuple(n for n, block in enumerate(blocks) for _ in range(block.first, block.end))
    traps = frozenset(
        n for n, block in enumerate(blocks) if body[block.end - 1].opcode == "trap" and not block.successors
    )
    return Graph(blocks, block_of, traps)


def _targets(function: Function) -> Iterator[int]:
    """Where branches lead. Debug information has labels that nothing jumps to: they begin no block.

    PtxError if that are too many places, each counted for every branch that leads there.
    """
    edges = 0
    for each in function.body:
        if each.opcode in BRANCHES:
            names = _names(function, each)
            edges += len(names)
            if edges > MAX_FLOW_EDGES:
                raise PtxError(
                    f"the branches of {function.name} lead to more than {MAX_FLOW_EDGES:,} places",
                    place=f"line {each.line}",
                    correction="give the PTX as its compiler wrote it",
                )
            yield from (function.labels[name] for name in names)


def _names(function: Function, branch: Instruction) -> tuple[str, ...]:
    name = branch.operands[-1]
    assert isinstance(name, CodeLabel)  # the reader resolved it
    return function.targets[name.name] if branch.opcode == "brx" else (name.name,)


def _successors(function: Function, last: Instruction, number: dict[int, int]) -> tuple[int, ...]:
    """The blocks after one that ends with this instruction, without repetition."""
    following = number[last.position + 1]
    taken: list[int] = []
    if last.opcode in RETURNS:
        taken = [number[len(function.body)]]
    elif last.opcode in BRANCHES:
        taken = [number[function.labels[each]] for each in _names(function, last)]
    elif last.opcode != "trap":
        return (following,)
    more = [following] if last.guard is not None else []
    return tuple(dict.fromkeys([*taken, *more]))
