"""Copies into tensor memory (``tcgen05.cp``) that products of another warp read without waiting for a commit.

PTX carries out a ``tcgen05.cp`` and a ``tcgen05.mma`` after it in the order of their issue, also where two threads
issue them that are synchronised ("Pipelined instructions, different thread"). So the columns hold what was copied when
the copy is issued, as far as such a product can tell; and it has read its shared memory when the first of them ends.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from pipesim.model.groups import ENGINE_ACCESSES, ISSUES, TOUCHES_MEMORY
from pipesim.model.ops import Engine, Op, OperandName, Operation, operand
from pipesim.model.tables import Access
from pipesim.ptx.emit.record import Stream, StreamRecorder
from pipesim.ptx.text.instruction import Instruction

_ENDED: tuple[Operation, ...] = (
    (int(Op.COMMIT), int(Engine.TCGEN05), -1),
    (int(Op.WAIT_GROUP), int(Engine.TCGEN05), 0),
)


class _Copies(NamedTuple):
    """Copies of an agent one after the other: where they end in its stream, what they read, what they leave, where."""

    end: int
    reads: tuple[Operation, ...]
    items: frozenset[int]
    columns: frozenset[int]


def order_copies_before_products(recorder: StreamRecorder, body: Sequence[Instruction]) -> None:
    """Where all that an agent does on the tensor cores are such copies, each of them for products of one other agent.

    Elsewhere, as where tensor memory is loaded after a copy, they end with a commit, as all else does.
    """
    accesses = list(recorder.accesses)
    for agent, stream in enumerate(recorder.streams):
        copies = list(_copies(stream, body))
        items = frozenset[int]().union(*(each.items for each in copies))
        readers = {item: set[int]() for item in items}
        for other, one in enumerate(recorder.streams):
            for op in one.code if items else ():
                if _reads_one_of(op, items):
                    readers[operand(op, "item")].add(other)
        products = [{other for item in each.items for other in readers[item]} for each in copies]
        columns = [accesses[number] for number in frozenset[int]().union(*(each.columns for each in copies))]
        if any(len(others) > 1 or agent in others for others in products) or not all(each.reads for each in copies):
            continue
        if not (copies and _are_private(recorder, columns, agent, body)):
            continue
        last, multiplied = frozenset[int](), set[int]()
        for each, others in zip(reversed(copies), reversed(products), strict=True):
            if others:  # else it ends as the copies after it, which end all before, or not, if none was followed so far
                last, multiplied = each.items, others
            for reader in (recorder.streams[other] for other in multiplied):
                stream.insert(each.end, (*each.reads, *_ENDED))  # it ends with reads: nothing synchronous does
                first = next(at for at, op in enumerate(reader.code) if _reads_one_of(op, last))
                reader.insert(first + 1, each.reads)


def _copies(stream: Stream, body: Sequence[Instruction]) -> Iterator[_Copies]:
    """The copies of an agent; none if it also multiplies, commits to an mbarrier, or may not do one of them."""
    mine = {at: op for at, op in enumerate(stream.code) if op[0] in ENGINE_ACCESSES and _is(stream, at, body, "cp")}
    others = (op for at, op in enumerate(stream.code) if at not in mine and not _is(stream, at, body, *_ALLOCATION))
    if mine.keys() & stream.unsure.keys() or any(_on_tensor_cores(op) for op in others):
        return
    for end in (at + 1 for at in mine if at + 1 not in mine):
        first = next(at for at in range(end, -1, -1) if at - 1 not in mine)
        done = [mine[at] for at in range(first, end)]
        items, columns = (frozenset(operand(op, name) for op in done if op[0] == Op.TRANSFER_WRITE) for name in _LEFT)
        yield _Copies(end, tuple(op for op in done if op[0] == Op.TRANSFER_READ), items, columns)


_ALLOCATION = ("alloc", "dealloc")
_LEFT: tuple[OperandName, ...] = ("item", "access")


def _is(stream: Stream, at: int, body: Sequence[Instruction], *kinds: str) -> bool:
    each = body[stream.positions[at]]
    return each.opcode == "tcgen05" and each.modifiers[0] in kinds


def _on_tensor_cores(op: Operation) -> bool:
    return op[0] in ISSUES and operand(op, "engine") == Engine.TCGEN05


def _reads_one_of(op: Operation, items: Collection[int]) -> bool:
    """Whether this is a product that reads one of these items in tensor memory, where no copy into it has the same."""
    return op[0] == Op.TRANSFER_READ and _on_tensor_cores(op) and operand(op, "item") in items


def _are_private(recorder: StreamRecorder, columns: Sequence[Access], agent: int, body: Sequence[Instruction]) -> bool:
    """Whether nothing but the copies of this agent writes these columns, and nothing but products reads them."""
    touching = {number for each, number in recorder.accesses.items() if any(_overlap(each, one) for one in columns)}
    return not any(
        operand(op, "access") in touching
        for other, stream in enumerate(recorder.streams)
        for at, op in enumerate(stream.code)
        if op[0] in TOUCHES_MEMORY and op[0] != Op.TRANSFER_READ
        if not _is(stream, at, body, "dealloc", *["cp"] * (other == agent))
    )


def _overlap(one: Access, other: Access) -> bool:
    same = (one.space, one.cta) == (other.space, other.cta)
    return same and one.offset < other.offset + other.nbytes and other.offset < one.offset + one.nbytes
