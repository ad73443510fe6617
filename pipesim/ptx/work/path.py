"""The amounts of work on a path: instructions by class, and how many results that take long follow each other.

Arithmetic counts by its instructions, since a warp issues one after another; loads and shuffles count by the
longest chain in which each needs the result of the one before, and only where that result is read on the path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pipesim.ptx.emulate.code import After, Code
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.instruction import CodeLabel, Instruction
from pipesim.ptx.work.classes import bytes_of, class_of, group_product, is_proxy_fence, issued, loads, products_of
from pipesim.ptx.work.trips import LoopTrips

Amounts = dict[str, int]
Depth = tuple[int, int, int]  #: of the chains of the classes in ``_CHAINED``
READ_BYTES = "read_bytes"  #: shared memory that is loaded: of the class ``shared_bytes``, as what is stored
_NO_CHAIN: Depth = (0, 0, 0)
_MOST_PASSED = 1 << 16  #: instructions of the trips of one loop that are gone through
_CHAINED = ("rounds", "global_accesses", "shuffles")


class Paths:
    """The amounts of the paths of one kernel's body. A path is a sequence of runs, each by where it begins."""

    def __init__(self, code: Code, uses: Uses) -> None:
        self._code = code
        self._uses = uses
        self._loops = LoopTrips(code.function, uses)
        self._known: dict[tuple[int, ...], Amounts] = {}
        self._classes: dict[int, str] = {}

    def amounts(self, runs: tuple[int, ...]) -> Amounts:
        """What a warp does on a path."""
        found = self._known.get(runs)
        if found is None:
            found = self._known[runs] = self._measured(runs)
        return found

    def products(self, runs: Iterable[int]) -> Iterator[tuple[str, int]]:
        """Class and multiply-adds of each product of a warp group on a path."""
        for each in self._instructions(runs):
            if each.opcode == "wgmma" and each.has("mma_async"):
                yield group_product(each)

    def _instructions(self, runs: Iterable[int]) -> Iterator[Instruction]:
        for start in runs:
            run = self._code.segment(start)
            end = start + run.count
            yield from self._code.body[start:end]
            if run.after is After.NEXT and end > start:
                yield from self._passed_over(end, run.next)

    def _passed_over(self, end: int, after: int) -> Iterator[Instruction]:
        """What the branch before ``end``, which decides nothing for others, leaves out: the way that it skips, or
        further trips of the loop that it ends.
        """
        yield from self._way(end, after)
        yield from self._again(end - 1)

    def _way(self, begin: int, after: int) -> Iterator[Instruction]:
        """The way from ``begin`` on that takes no branch forwards, to where the ways meet or the warp ends."""
        position = begin
        while position < after:
            each = self._code.body[position]
            yield each
            yield from self._again(position)
            if each.opcode in ("ret", "exit") and each.guard is None:
                return
            jump = each.operands[0] if each.opcode == "bra" and each.guard is None else None
            target = self._code.function.labels[jump.name] if isinstance(jump, CodeLabel) else position + 1
            if target <= position:
                return
            position = target

    def _again(self, position: int) -> Iterator[Instruction]:
        """The trips after the first of a loop that ends there with a branch which decides nothing."""
        loop = self._loops.ending_at(self._code.body[position])
        if loop is None or position in self._code.kept:
            return
        for _ in range(min(loop.trips - 1, _MOST_PASSED // (position + 1 - loop.begin))):
            yield from self._way(loop.begin, position)
            yield self._code.body[position]

    def _measured(self, runs: Sequence[int]) -> Amounts:
        counts: Counter[str] = Counter()
        depth: dict[str, Depth] = {}
        longest, accessed = [0, 0, 0], False
        for each in self._instructions(runs):
            kind = self._class(each)
            counts["instructions"] += 1
            position = each.position
            read = self._uses.reads[position]
            if each.guard is not None:
                read = (*read, each.guard.register)
            before = [0, 0, 0]
            for name in read:
                for i, value in enumerate(depth.get(name, ())):
                    before[i] = max(before[i], value)
            longest = list(map(max, longest, before))
            if loads(kind):
                before[_CHAINED.index(kind)] += 1
            for name in self._uses.writes[position]:
                older = depth.get(name, _NO_CHAIN) if each.guard is not None else _NO_CHAIN  # it may keep its value
                depth[name] = max(before[0], older[0]), max(before[1], older[1]), max(before[2], older[2])
            counts["proxy_fences"] += accessed and is_proxy_fence(each)
            accessed |= kind in ("rounds", "shared_bytes")
            _count(counts, kind, each)
        for kind, chain in zip(_CHAINED, longest, strict=True):
            counts[kind] = chain
        return {kind: amount for kind, amount in sorted(counts.items()) if amount}

    def _class(self, each: Instruction) -> str:
        found = self._classes.get(each.position)
        if found is None:
            found = self._classes[each.position] = class_of(each)
        return found


def _count(counts: Counter[str], kind: str, each: Instruction) -> None:
    """Enter one instruction by what its class is measured in; chains are entered at the end."""
    match kind:
        case "":
            pass
        case "rounds":
            counts[READ_BYTES] += bytes_of(each)
        case "shared_bytes" | "global_bytes":
            counts[kind] += bytes_of(each)
        case "global_accesses" | "shuffles":
            counts["alu"] += 1
        case "warp_products":
            counts[kind] += products_of(each)
        case "alu":
            counts[kind] += issued(each)
        case _:
            counts[kind] += 1
