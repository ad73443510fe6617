"""Registers that the tensor cores still write when they are read: what they hold then is not defined.

PTX ISA, "tcgen05.wait": the registers of a ``tcgen05.ld`` may be read after ``tcgen05.wait::ld``. "wgmma.wait_group":
those of a ``wgmma.mma_async`` may be read once the group that it was committed to is complete; other wgmmas may add to
them before. A ``mov`` passes a register on, as compilers let it before the wait.

Products of ``wgmma`` without the fence that PTX asks for between them and other accesses to their registers.

PTX ISA, "wgmma.fence": one comes before the first ``wgmma.mma_async``, and between an access to registers and a
``wgmma.mma_async`` that has them as its accumulator or as fragments of A; accesses as the accumulator of products of
the same shape are excepted. A ``mov`` passes the last access of a register on, as the allocator makes one of both.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from pipesim.ptx.flow.graph import Graph
from pipesim.ptx.flow.opcodes import is_synchronisation
from pipesim.ptx.flow.slice import STRONG
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.text.instruction import Immediate, Instruction, Register, Vector

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


_MOST_GROUPS = 8  #: that are counted; a wait that leaves more open is taken for none
_MOST_STEPS = 20_000  #: on the ways from one instruction; what comes later is not looked at


def read_too_early(function: Function, graph: Graph, uses: Uses) -> tuple[tuple[int, int], ...]:
    """For each such instruction its position and that of the first reader found."""
    writers = [
        p for p, each in enumerate(function.body) if _is_load(each) or each.mnemonic.startswith("wgmma.mma_async")
    ]
    return tuple((p, reader) for p in writers if (reader := _reader(function, graph, uses, p)) >= 0)


def used_at_once(function: Function, graph: Graph, uses: Uses, writer: int) -> bool:
    """Whether on every way from a ``tcgen05.ld`` its registers are read, or waited for, before the warp synchronises.

    The hardware has them when they are read: PTX does not promise it, but compilers of kernels rely on it.
    """
    return _read_on_every_way(function, graph, uses, writer, _others_may_notice)


def read_on_every_way(function: Function, graph: Graph, uses: Uses, writer: int) -> bool:
    """Whether on every way from a wgmma something other than a wgmma reads its registers."""
    return _read_on_every_way(function, graph, uses, writer, lambda _: False)


def _read_on_every_way(
    function: Function, graph: Graph, uses: Uses, writer: int, ends: Callable[[Instruction], bool]
) -> bool:
    """The same, and before an instruction that ``ends`` the search; a ``wait::ld`` is as good as a read."""
    body, written = function.body, set(uses.writes[writer])
    seen: set[int] = set()
    ahead = graph.after(writer)
    while ahead:
        p = ahead.pop()
        each = body[p]
        if p in seen or each.has("wait::ld"):
            continue
        seen.add(p)
        if each.opcode != "wgmma" and not written.isdisjoint(uses.reads[p]):
            if each.opcode != "mov":
                continue
            written.update(uses.writes[p])
        after = graph.after(p)
        if not after or len(seen) > _MOST_STEPS or ends(each):
            return False
        ahead += after
    return True


def _others_may_notice(each: Instruction) -> bool:
    local = each.opcode in ("fence", "membar", "elect") or (
        each.opcode == "tcgen05" and each.modifiers[0].startswith(("ld", "st", "wait", "fence"))
    )
    return is_synchronisation(each) and not local


def _is_load(each: Instruction) -> bool:
    return each.opcode == "tcgen05" and each.has("ld")


def _reader(function: Function, graph: Graph, uses: Uses, writer: int) -> int:
    """The first reader on a way from the writer that does not wait for it, -1 if there is none."""
    body, is_load = function.body, _is_load(function.body[writer])
    written = set(uses.writes[writer])
    seen: set[tuple[int, int]] = set()
    ahead = [(p, 0) for p in graph.after(writer)]
    while ahead and len(seen) < _MOST_STEPS:
        p, groups = ahead.pop()
        each = body[p]
        if (p, groups) in seen or (each.has("wait::ld") if is_load else _ends(each, groups)):
            continue
        seen.add((p, groups))
        if each.opcode == "wgmma":
            groups = min(groups + each.has("commit_group"), _MOST_GROUPS)
        elif not written.isdisjoint(uses.reads[p]):
            if each.opcode != "mov":
                return p
            written.update(uses.writes[p])
        elif written <= set(uses.writes[p]):  # written again: another one answers for them
            continue
        ahead += [(after, groups) for after in graph.after(p)]
    return -1


def _ends(each: Instruction, groups: int) -> bool:
    """Whether a wait completes a group after which ``groups - 1`` others were committed."""
    if each.opcode != "wgmma" or not each.has("wait_group"):
        return False
    left = next((operand.value for operand in each.operands if isinstance(operand, Immediate)), _MOST_GROUPS)
    return groups > left


def waiting_loops(
    function: Function, graph: Graph, followed: Collection[int], counters: Collection[int] = ()
) -> tuple[int, ...]:
    """The first position of each loop with such a load that a branch leaves which is not ``followed``.

    ``counters``: atomics that take a tile, which never wait.
    """
    body = [each for each in function.body if each.position not in counters]
    loads = {graph.block_of[each.position] for each in body if _may_change(each)}
    if not loads:
        return ()
    found = []
    for loop in graph.loops:
        ends = graph.exits(loop.blocks)
        if not loads.isdisjoint(loop.blocks) and ends and not all(end in followed for end in ends):
            found.append(graph.blocks[loop.header].first)
    return tuple(found)


def _may_change(each: Instruction) -> bool:
    if each.has_any("shared", "shared::cta", "shared::cluster"):
        return False
    return each.opcode == "atom" or (each.opcode == "ld" and each.has_any(*STRONG))
