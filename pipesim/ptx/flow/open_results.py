"""Registers that the tensor cores still write when they are read: what they hold then is not defined.

PTX ISA, "tcgen05.wait": the registers of a ``tcgen05.ld`` may be read after ``tcgen05.wait::ld``. "wgmma.wait_group":
those of a ``wgmma.mma_async`` may be read once the group that it was committed to is complete; other wgmmas may add to
them before. A ``mov`` passes a register on, as compilers let it before the wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from pipesim.ptx.flow.graph import Graph
from pipesim.ptx.flow.opcodes import synchronises
from pipesim.ptx.flow.slice import STRONG
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.text.instruction import Immediate, Instruction

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
    ahead = _positions_after(graph, writer, len(body))
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
        after = _positions_after(graph, p, len(body))
        if not after or len(seen) > _MOST_STEPS or ends(each):
            return False
        ahead += after
    return True


def _others_may_notice(each: Instruction) -> bool:
    local = each.opcode in ("fence", "membar", "elect") or (
        each.opcode == "tcgen05" and each.modifiers[0].startswith(("ld", "st", "wait", "fence"))
    )
    return synchronises(each) and not local


def _is_load(each: Instruction) -> bool:
    return each.opcode == "tcgen05" and each.has("ld")


def _reader(function: Function, graph: Graph, uses: Uses, writer: int) -> int:
    """The first reader on a way from the writer that does not wait for it, -1 if there is none."""
    body, is_load = function.body, _is_load(function.body[writer])
    written = set(uses.writes[writer])
    seen: set[tuple[int, int]] = set()
    ahead = [(p, 0) for p in _positions_after(graph, writer, len(body))]
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
        ahead += [(after, groups) for after in _positions_after(graph, p, len(body))]
    return -1


def _ends(each: Instruction, groups: int) -> bool:
    """Whether a wait completes a group after which ``groups - 1`` others were committed."""
    if each.opcode != "wgmma" or not each.has("wait_group"):
        return False
    left = next((operand.value for operand in each.operands if isinstance(operand, Immediate)), _MOST_GROUPS)
    return groups > left


def _positions_after(graph: Graph, position: int, end: int) -> list[int]:
    block = graph.blocks[graph.block_of[position]]
    if position + 1 < block.end:
        return [position + 1]
    return [first for b in block.successors if b != graph.exit and (first := graph.blocks[b].first) < end]


def waiting_loops(function: Function, graph: Graph, followed: Collection[int]) -> tuple[int, ...]:
    """The first position of each loop with such a load that a branch leaves which is not ``followed``."""
    loads = {graph.block_of[each.position] for each in function.body if _may_change(each)}
    if not loads:
        return ()
    found = []
    for loop in graph.loops:
        ends = [graph.blocks[b].end - 1 for b in loop.blocks if not loop.blocks.issuperset(graph.blocks[b].successors)]
        if not loads.isdisjoint(loop.blocks) and ends and not all(end in followed for end in ends):
            found.append(graph.blocks[loop.header].first)
    return tuple(found)


def _may_change(each: Instruction) -> bool:
    if each.has_any("shared", "shared::cta", "shared::cluster"):
        return False
    return each.opcode == "atom" or (each.opcode == "ld" and each.has_any(*STRONG))
