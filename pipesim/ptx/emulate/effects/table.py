"""Which function carries out an instruction that does more than compute. What is not here has unknown results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.code import DecodedStep
from pipesim.ptx.emulate.effects import barriers, copies, loads, matrices, mbarriers
from pipesim.ptx.emulate.effects.operands import one_of, unknown
from pipesim.ptx.emulate.stop import EmulationStop
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.flow.inline import RECURSIVE, callee
from pipesim.ptx.text.instruction import CodeLabel, Instruction

Effect = Callable[[Cluster, EmulatedWarp, DecodedStep], Any]

#: Change nothing that this emulation follows.
_NO_EFFECT = frozenset(
    [
        "prefetch",
        "prefetchu",
        "nanosleep",
        "griddepcontrol",
        "pmevent",
        "discard",
        "applypriority",
        "brkpt",
        "stackrestore",
    ]
)


def _no_effect(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """No effect."""


def _trap(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    raise EmulationStop("the kernel traps here")


def _indexed_branch(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> int:
    """``brx.idx``: a jump by a table of labels."""
    names = cluster.code.function.targets[_table(step.instruction)]
    index = one_of(warp, step.get(0, warp), "the index of a jump")
    if not 0 <= index < len(names):
        raise EmulationStop("the index of a jump is outside of its table")
    return cluster.code.function.labels[names[index]]


def _table(each: Instruction) -> str:
    last = each.operands[-1]
    assert isinstance(last, CodeLabel)
    return last.name


def _unread(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """An instruction that this emulation does not know: its results are not known, and the report lists it."""
    each = step.instruction
    cluster.notes.unread[each.position] = each.mnemonic
    warp.write_results(step, unknown(f"the result of {each.mnemonic}", each.line))


def _call(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """A function without a body, as ``vprintf``: it synchronises nothing known. EmulationStop for any other one."""
    each = step.instruction
    if each.has(RECURSIVE):
        raise EmulationStop("a function that calls itself")
    if not callee(each):
        raise EmulationStop("a call of a function whose address is in a register")
    cluster.notes.unread[step.instruction.position] = "call of a function without a body"


_EFFECTS: dict[str, Effect] = {
    "ld": loads.load,
    "ldu": loads.load,
    "st": loads.store,
    "atom": loads.atomic,
    "red": loads.atomic,
    "ldmatrix": loads.load_matrix,
    "stmatrix": loads.store_matrix,
    "mbarrier": mbarriers.mbarrier_instruction,
    "cp": copies.copy_instruction,
    "clusterlaunchcontrol": copies.launch_control,
    "bar": barriers.cta_barrier,
    "barrier": barriers.cta_barrier,
    "fence": barriers.fence,
    "membar": barriers.fence,
    "tensormap": copies.tensor_map,
    "setmaxnreg": barriers.setmaxnreg,
    "wgmma": matrices.wgmma,
    "tcgen05": matrices.tcgen05,
    "brx": _indexed_branch,
    "trap": _trap,
    "call": _call,
    **dict.fromkeys(_NO_EFFECT, _no_effect),
}


def effect_of(each: Instruction) -> Effect:
    """The function that carries out an instruction."""
    if each.opcode in ("st", "red") and each.has("async"):
        return copies.store_async
    if each.opcode == "st" and each.has("bulk"):
        return loads.fill
    if each.opcode == "cp" and each.has("mbarrier"):
        return mbarriers.cp_async_arrive
    return _EFFECTS.get(each.opcode, _unread)
