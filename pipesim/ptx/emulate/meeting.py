"""Whether PTX itself has the lanes of a warp meet: what they execute together, and what lies before it."""

from __future__ import annotations

from collections.abc import Sequence

from pipesim.model.program import ALL_LANES
from pipesim.ptx.emulate.synchronising import synchronises
from pipesim.ptx.flow.opcodes import may_touch_shared
from pipesim.ptx.text.instruction import Immediate, Instruction, Operand


def meet(body: Sequence[Instruction], kept: frozenset[int], ahead: Sequence[int]) -> bool:
    """Whether PTX itself lets the lanes of a warp meet from here on, before one of them synchronises with others.

    ``ahead``: the positions that follow without a branch; ``kept``: what of the body is carried out.
    Where they only end, and touch no memory that others see, they need not meet.
    """
    for p in ahead:
        if _converges(body[p]):
            return True
        if p in kept and synchronises(body[p]):
            return False
    last = body[ahead[-1]] if ahead else None
    if last is None or last.opcode not in ("ret", "exit") or last.guard is not None:
        return False
    return not any(p in kept and may_touch_shared(body[p]) for p in ahead)


def _converges(each: Instruction) -> bool:
    """Whether PTX says that the lanes of a warp execute it together: ``.aligned``, and ``.sync`` with all lanes.

    PTX ISA, "Parallel Synchronization and Communication Instructions": a member mask names the lanes that meet.
    """
    if each.has("aligned"):
        return True
    if each.opcode == "bar" or each.opcode == "barrier":
        mask = each.operands[0] if each.has("warp") and each.operands else None
        return not each.has("arrive") and (mask is None or _is_all(mask))
    return each.has("sync") and bool(each.operands) and _is_all(each.operands[-1])


def _is_all(mask: Operand) -> bool:
    return isinstance(mask, Immediate) and mask.value & ALL_LANES == ALL_LANES
