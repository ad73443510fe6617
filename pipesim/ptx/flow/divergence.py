"""Where the lanes of a warp are together, and which registers may differ between them, so that a branch may part them.

Divergence analysis as compilers do it, without regard to order: a value differs if it is made of one that does, of the
lane's own number or of what each lane has for itself; or if it is written where only some lanes may come.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence, Set

from pipesim.model.tables import ALL_LANES
from pipesim.ptx.flow.opcodes import EXCHANGES
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.text.instruction import Immediate, Instruction, Operand, Register, Special, parts_of

_OF_LANES = ("%tid", "%laneid", "%lanemask", "%clock", "%globaltimer", "%warpid")
_OWN = frozenset({"atom", "activemask", "ldmatrix", "mma", "wmma", "wgmma", "tcgen05", "alloca", "call"})
_OF_ALL = frozenset({"mma", "wmma", "movmatrix"})
_ALIKE = frozenset({"vote", "redux"})  #: the same in all lanes that take part


def needs_others(each: Instruction) -> bool:
    """Whether lanes wait in it for those that its mask names, or all lanes of a warp execute it (PTX ISA, "mma")."""
    return (each.opcode in EXCHANGES and each.has("sync")) or (each.opcode in _OF_ALL and each.has("aligned"))


def names_all_lanes(mask: Operand, masks: Set[str]) -> bool:
    """Whether a member mask is of all lanes; ``masks``: registers that are."""
    match mask:
        case Immediate(value):
            return value & ALL_LANES == ALL_LANES
        case Register(name):
            return name in masks
        case _:
            return False


def converges(each: Instruction, masks: Set[str]) -> bool:
    """Whether PTX says that the lanes of a warp execute it together: ``.aligned``, and ``.sync`` with all lanes.

    PTX ISA, "Parallel Synchronization and Communication Instructions": a member mask names the lanes that meet.
    """
    if each.has("aligned"):
        return True
    if each.opcode == "bar" or each.opcode == "barrier":
        mask = each.operands[0] if each.has("warp") and each.operands else None
        return not each.has("arrive") and (mask is None or names_all_lanes(mask, masks))
    return each.has("sync") and bool(each.operands) and names_all_lanes(each.operands[-1], masks)


def orders_lanes(each: Instruction, masks: Set[str]) -> bool:
    """Whether it also puts what each lane has accessed before it before what the others access after it.

    PTX ISA, "bar.warp.sync", "barrier": barriers do; ``shfl.sync``, ``elect.sync`` and ``.aligned`` alone do not. That
    of the cluster does unless its arrive was relaxed, which shows when it runs.
    """
    return each.opcode in ("bar", "barrier") and not each.has_any("arrive", "cluster") and converges(each, masks)


def counts_each_thread(each: Instruction) -> bool:
    """Whether it is a barrier of the CTA at which lanes of a warp may come by different instructions.

    PTX ISA, "barrier": only with ``.aligned`` all threads of a warp execute the same one; ``bar`` is ``.aligned``.
    """
    return each.opcode == "barrier" and not each.has_any("aligned", "warp", "cluster")


def masks_of_all_lanes(body: Sequence[Instruction], writes: Sequence[Sequence[str]]) -> frozenset[str]:
    """Registers that one ``mov`` makes -1 and nothing else writes. ``writes``: the registers by position."""
    often = Counter(name for names in writes for name in names)
    return frozenset(
        written[0]
        for each, written in zip(body, writes, strict=True)
        if each.opcode == "mov" and each.guard is None and len(written) == 1 and often[written[0]] == 1
        if isinstance(each.operands[-1], Immediate) and names_all_lanes(each.operands[-1], frozenset())
    )


def divergent_registers(
    names: Iterable[str],
    function: Function,
    uses: Uses,
    deciding: Callable[[Instruction], Collection[str]],
) -> frozenset[str]:
    """Those of some registers, and of all that they are made of, that may differ between lanes.

    ``deciding``: the registers of its guard and of all branches that decide whether an instruction runs, also of those
    that decide whether these do.
    """
    body, masks = function.body, masks_of_all_lanes(function.body, uses.writes)
    reached, open_ = dict[int, Collection[str]](), list(names)
    seen = set(open_)
    while open_:
        for at in uses.writers.get(open_.pop(), ()):
            if at not in reached:
                reached[at] = deciding(body[at])
                more = {*uses.reads[at], *reached[at]} - seen
                seen |= more
                open_ += more
    found: set[str] = set()
    before = -1
    while len(found) > before:
        before = len(found)
        for at, control in reached.items():
            if not found.issuperset(uses.writes[at]) and (
                not found.isdisjoint(control) or _differs(body[at], uses, found, masks)
            ):
                found.update(uses.writes[at])
    return frozenset(found)


def _differs(each: Instruction, uses: Uses, found: Set[str], masks: Set[str]) -> bool:
    """Whether lanes that execute an instruction together may have different results."""
    if each.opcode in _OWN or (each.opcode in ("ld", "ldu") and each.has("local")):
        return True
    operands = each.operands
    if each.opcode in EXCHANGES:
        if not operands or not names_all_lanes(operands[-1], masks) or each.opcode in ("elect", "match"):
            return True
        return each.opcode not in _ALIKE and not (each.has("idx") and _is_broadcast(operands[2], operands[3], found))
    return not found.isdisjoint(uses.reads[each.position]) or any(map(_is_of_lane, operands[1:]))


def _is_broadcast(lane: Operand, segments: Operand, found: Set[str]) -> bool:
    """Whether a shuffle gives all lanes what one has: not where the operand c divides the warp into segments."""
    varies = (isinstance(lane, Register) and lane.name in found) or _is_of_lane(lane)
    return not varies and isinstance(segments, Immediate) and not segments.value >> 8 & 31


def _is_of_lane(operand: Operand) -> bool:
    if isinstance(operand, Special):
        return operand.name.startswith(_OF_LANES)
    return any(map(_is_of_lane, parts_of(operand)))
