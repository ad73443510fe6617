"""Which instructions synchronise, issue a copy or a product, or touch shared memory (PTX ISA, "Instruction Set")."""

from __future__ import annotations

from collections.abc import Set

from pipesim.ptx.emulate.lanes.apart import LaneAct
from pipesim.ptx.flow.divergence import names_all_lanes
from pipesim.ptx.flow.opcodes import is_understood
from pipesim.ptx.text.instruction import Instruction

TRIES = ("try_wait", "test_wait")
_ALWAYS = frozenset({"mbarrier", "bar", "barrier", "wgmma", "setmaxnreg", "clusterlaunchcontrol", "multimem"})
_SOME = _ALWAYS | {"tcgen05", "cp", "st", "red"}  #: all others do not
#: Of tcgen05: those that only order or wait for what their own thread has issued.
_LOCAL_TCGEN05 = ("fence::", "wait::")


def synchronises(each: Instruction) -> bool:
    """Whether other warps may notice whether it runs: what a proof is about."""
    return _synchronises(each) if each.opcode in _SOME else not is_understood(each)


def _synchronises(each: Instruction) -> bool:
    if each.opcode in _ALWAYS:
        if each.opcode == "multimem":
            return each.has("cp")
        return not (each.opcode in ("bar", "barrier") and each.has("warp")) and not each.has("query_cancel")
    if each.opcode == "tcgen05":
        return not each.modifiers[0].startswith(_LOCAL_TCGEN05)
    if each.opcode in ("cp", "st", "red"):
        return each.has_any("async", "bulk")
    return False


def makes_others_wait(each: Instruction) -> bool:
    """Whether it is more than an access of its own warp: whether it runs decides how others continue."""
    return synchronises(each) and not (each.opcode == "tcgen05" and each.has_any("ld", "st"))


def ends_a_spin(each: Instruction) -> bool:
    """Whether a loop with this instruction does more than wait."""
    return synchronises(each) and not is_try(each)


def hands_on(each: Instruction) -> bool:
    """Whether others may learn by it of what its thread has done before, or it starts what needs that."""
    match each.opcode:
        case "mbarrier":
            return each.has_any("arrive", "arrive_drop")
        case "cp":
            return each.has_any("bulk", "mbarrier") and not each.has_any("commit_group", "wait_group", "prefetch")
        case "st" | "red":
            return each.has("async")
        case "tcgen05":
            return each.has_any("mma", "cp", "commit")
        case _:
            return False


def is_try(each: Instruction) -> bool:
    """Whether it asks an mbarrier without waiting for it."""
    return each.opcode == "mbarrier" and each.has_any(*TRIES)


def is_step(each: Instruction) -> bool:
    """Whether it is a step on the path of a warp, as a recorder sees it: all that synchronises, fences and groups too.

    Not what sets mbarriers up or ends their lives, one ``cp.async``, a product, and accesses of tensor memory.
    """
    match each.opcode:
        case "mbarrier":
            return not each.has_any("init", "inval", "pending_count")
        case "bar" | "barrier":
            return not each.has("warp")
        case "fence" | "membar":
            return True
        case "wgmma":
            return each.has_any("commit_group", "wait_group")
        case "cp":
            return each.has_any("bulk", "mbarrier", "commit_group", "wait_group", "wait_all") and not each.has(
                "prefetch"
            )
        case "st" | "red":
            return each.has("async")
        case "tcgen05":
            return each.has_any("commit", "cp", "wait::ld", "wait::st")
        case "clusterlaunchcontrol":
            return each.has("try_cancel")
        case "griddepcontrol":
            return each.has("wait")
        case _:
            return False


def lane_act(each: Instruction) -> LaneAct | None:
    """What lanes do by it that others of their warp may rely on, None for nothing.

    Not the groups of a lane's own copies, nor a barrier, at which each lane arrives for itself.
    """
    match each.opcode:
        case "mbarrier":
            if is_try(each):
                return LaneAct.WAIT
            return LaneAct.SET_UP if each.has("init") else None if each.has("inval") else LaneAct.SIGNAL
        case "cp" if each.has("bulk") and each.has("wait_group"):
            return LaneAct.WAIT
        case "cp" | "st" | "red":
            return LaneAct.SIGNAL if hands_on(each) else None
        case "wgmma":
            return LaneAct.SIGNAL if each.has("mma_async") else None
        case "bar" | "barrier" | "setmaxnreg" | "multimem":
            return None
        case _:
            return LaneAct.SIGNAL if synchronises(each) else None


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
