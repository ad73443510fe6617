"""Products of ``wgmma`` without the fence that PTX asks for between them and other accesses to their registers.

PTX ISA, "wgmma.fence": one comes before the first ``wgmma.mma_async``, and between an access to registers and a
``wgmma.mma_async`` that has them as its accumulator or as fragments of A; accesses as the accumulator of products of
the same shape are excepted. A ``mov`` passes the last access of a register on, as the allocator makes one of both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pipesim.ptx.flow.graph import Graph
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.text.instruction import Instruction, Register, Vector

NO_FENCE = ""  #: instead of a register: no fence at all comes before
_FRAGMENT = "A"  #: instead of a shape: what is an access for registers of A


def unfenced_products(function: Function, graph: Graph, uses: Uses, ran: Collection[int]) -> dict[int, str]:
    """By the position of each such product a register that another instruction has accessed last, or NO_FENCE.

    ``ran``: the blocks that a way may lead through.
    """
    made = _Accesses(function, graph, uses)
    if not made.shapes:
        return {}
    found: dict[int, str] = {}
    first = graph.block_of[0]
    before: dict[int, dict[str, int]] = {first: dict.fromkeys((*made.shapes.values(), _FRAGMENT), 1)}
    waiting = [first]
    while waiting:
        block = waiting.pop()
        left = made.after(block, before[block], found)
        for each in graph.blocks[block].successors:
            if each not in ran:
                continue
            held = before.get(each, {})
            joined = {shape: held.get(shape, 0) | mask for shape, mask in left.items()}
            if joined != held:
                before[each] = joined
                waiting.append(each)
    return found


@dataclass
class _Accesses:
    """``shapes`` of the products by position, and the bit of each register that may become one of theirs: bit 0 is set
    until a fence comes.
    """

    function: Function
    graph: Graph
    uses: Uses

    def __post_init__(self) -> None:
        body = self.function.body
        products = [each for each in body if each.opcode == "wgmma" and each.has("mma_async")]
        self.shapes = {each.position: next(m for m in each.modifiers if m.startswith("m64")) for each in products}
        names = {name for each in products for name in (*_accumulator(self.uses, each), *_fragments(each))}
        moves = [each for each in body if products and _is_move(each)]
        before = -1
        while len(names) > before:  # what is moved there
            before = len(names)
            for each in moves:
                if not names.isdisjoint(self.uses.writes[each.position]):
                    names.update(self.uses.reads[each.position])
        self._bits = {name: 2 << n for n, name in enumerate(sorted(names))}

    def after(self, block: int, state: Mapping[str, int], found: dict[int, str]) -> dict[str, int]:
        """The registers accessed since the last fence, after a block: for each shape what is not an exception."""
        dirty = dict(state)
        body, uses = self.function.body, self.uses
        for position in range(self.graph.blocks[block].first, self.graph.blocks[block].end):
            each = body[position]
            if each.opcode == "wgmma":
                if each.has("fence"):
                    dirty = dict.fromkeys(dirty, 0)
                elif position in self.shapes:
                    self._product(each, dirty, found)
                continue
            read, written = self._mask(uses.reads[position]), self._mask(uses.writes[position])
            if not read | written:
                continue
            for shape, mask in dirty.items():
                if not _is_move(each):
                    dirty[shape] = mask | read | written
                elif mask & read:
                    dirty[shape] = mask | written
                elif each.guard is None:
                    dirty[shape] = mask & ~written
        return dirty

    def _product(self, each: Instruction, dirty: dict[str, int], found: dict[int, str]) -> None:
        own = self.shapes[each.position]
        result, fragments = self._mask(_accumulator(self.uses, each)), self._mask(_fragments(each))
        wrong = dirty[own] & (result | 1) | dirty[_FRAGMENT] & fragments
        if wrong:
            names = (name for name, bit in self._bits.items() if bit & wrong)
            found.setdefault(each.position, NO_FENCE if wrong & 1 else next(names))
        for shape, mask in dirty.items():  # each fault once
            dirty[shape] = (mask & ~result if shape == own else mask | result) & ~1

    def _mask(self, names: Iterable[str]) -> int:
        found = 0
        for name in names:
            found |= self._bits.get(name, 0)
        return found


def _is_move(each: Instruction) -> bool:
    return each.opcode == "mov" and all(isinstance(operand, Register) for operand in each.operands)


def _accumulator(uses: Uses, each: Instruction) -> tuple[str, ...]:
    return uses.writes[each.position]


def _fragments(each: Instruction) -> list[str]:
    operand = each.operands[1]
    parts = operand.parts if isinstance(operand, Vector) else ()
    return [part.name for part in parts if isinstance(part, Register)]
