"""A kernel's program with what its warps compute between operations: the one that is simulated.

What a warp computes becomes ``WORK`` after the operation that it follows, and between the reads and the writes of its
tiles; the products of a warp group become ``ENGINE_WORK`` before the first of their operands. Neither has an effect
that another agent could notice, so the program that is proved goes without.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain

from pipesim.model.edits import Insertion, Listing, insert_operations
from pipesim.model.groups import ACCESSES, COMMITS, ENGINE_ACCESSES, READS_MEMORY
from pipesim.model.ops import Engine, Op, Operation, operand, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import Work, kernel_in_names
from pipesim.ptx.emit.record import Stream
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.work.path import READ_BYTES, Amounts, Paths

_WORK: Operation = (int(Op.WORK), 0)  #: whose length is that of its named work
Added = list[Insertion]


def with_work(program: Program, streams: list[Stream], function: Function, paths: Paths) -> Program:
    """``program``, which was emitted from these streams, with the work of every warp as its instructions say it."""
    made = _Tables(program, kernel_in_names(program.name))
    listings = {}
    for agent, stream in enumerate(streams):
        before = Listing(program.code[agent], program.lines[agent])
        new, relined = _of_agent(stream, before, function, paths, made)
        lines = tuple(relined.get(pc, line) for pc, line in enumerate(before.lines))
        after = insert_operations(Listing(before.code, lines), new)
        listings[agent] = Listing(_with_work_at_targets(after.code), after.lines)
    return replace(
        program,
        code=tuple(each.code for each in listings.values()),
        lines=tuple(each.lines for each in listings.values()),
        sources=tuple(made.sources),
        work=tuple(made.work),
    )


def _with_work_at_targets(code: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """Jumps lead to the work before the operation that they led to: both ways of a branch go through it."""
    if all(op[0] != Op.JUMP_IF for op in code):
        return code
    made = list(code)
    for pc, op in enumerate(code):
        if op[0] == Op.JUMP_IF:
            target = pc + 1 + operand(op, "skip")
            while target - 1 > pc and code[target - 1] == _WORK:
                target -= 1
            made[pc] = with_operand(op, "skip", target - pc - 1)
    return tuple(made)


@dataclass
class _Tables:
    """Source lines and works, as they grow: a line that does several works is there for each of them."""

    program: Program
    kernel: str
    sources: list[str] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    _known: dict[tuple[int, str, tuple[tuple[str, int], ...]], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sources = list(self.program.sources)

    def line(self, source: int, name: str, amounts: Amounts) -> int:
        """The number of a line that does this work, at the place of the line ``source``."""
        key = source, name, tuple(amounts.items())
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.sources)
            self.sources.append(self.sources[source])
            self.work.append(Work(found, f"{self.kernel}/{name}", key[2]))
        return found


def _of_agent(
    stream: Stream, listing: Listing, function: Function, paths: Paths, made: _Tables
) -> tuple[Added, dict[int, int]]:
    """The operations to be inserted, and for operations that do work the line that says so."""
    new: Added = []
    lines: dict[int, int] = {}
    code, runs = listing.code, [*stream.runs, tuple(stream.ran)]
    if not code:
        return new, lines
    for begin, end in _spans(code):
        amounts = dict(paths.amounts(tuple(chain.from_iterable(runs[begin : end + 1]))))
        name = f"{_place(stream, function, begin - 1)}_to_{_place(stream, function, end)}"
        place = end
        for at in range(begin, end):  # its accesses: reads, then writes
            reads = code[at][0] in READS_MEMORY
            place = place if reads else min(place, at)
            touched = _take_out(amounts, ("rounds", READ_BYTES) if reads else ("shared_bytes",))
            what = ("read" if reads else "write") if touched else "counted"  # with the first of several
            lines[at] = made.line(listing.lines[at], f"{name}_{what}", touched)
        left = _take_out(amounts, tuple(amounts))
        if left.keys() - {"instructions"}:
            new.append(Insertion(place, _WORK, made.line(listing.lines[max(begin - 1, 0)], name, left)))
    for place, op, products in _products(code, runs, paths):
        name = f"{_place(stream, function, place)}_product"
        new.append(Insertion(place, op, made.line(listing.lines[place], name, products)))
    return sorted(new, key=lambda each: each.place), lines


def _take_out(amounts: Amounts, kinds: tuple[str, ...]) -> Amounts:
    """These of the amounts, which are taken out; bytes that are read and written are those of one class."""
    taken: Amounts = {}
    for kind in kinds:
        if amount := amounts.pop(kind, 0):
            said = "shared_bytes" if kind == READ_BYTES else kind
            taken[said] = taken.get(said, 0) + amount
    return taken


def _spans(code: tuple[Operation, ...]) -> Iterator[tuple[int, int]]:
    """Between two operations that are no accesses: of the accesses there the first, and the operation after them.

    Accesses are recorded together, before the next operation.
    """
    begin = 0
    for pc, op in enumerate(code):
        if op[0] not in ACCESSES:
            yield begin, pc
            begin = pc + 1
    yield begin, len(code)


def _products(
    code: tuple[Operation, ...], runs: list[tuple[int, ...]], paths: Paths
) -> Iterator[tuple[int, Operation, Amounts]]:
    """For each batch of products of the warp's group: where its first operand is read, and what it multiplies."""
    first, amounts = -1, dict[str, int]()
    for pc, op in enumerate(code):
        if first < 0 and op[0] in ENGINE_ACCESSES and operand(op, "engine") == Engine.WGMMA:
            first = pc
        for kind, multiplied in paths.products(runs[pc]):
            amounts[kind] = amounts.get(kind, 0) + multiplied
            amounts["products"] = amounts.get("products", 0) + 1
        if op[0] in COMMITS and operand(op, "engine") == Engine.WGMMA:
            if first >= 0 and amounts:
                yield first, (int(Op.ENGINE_WORK), int(Engine.WGMMA), 0), amounts
            first, amounts = -1, {}


def _place(stream: Stream, function: Function, pc: int) -> str:
    if pc < 0:
        return "begin"
    return f"line_{function.body[stream.positions[pc]].line}" if pc < len(stream.positions) else "end"
