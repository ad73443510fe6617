"""Which function carries out an instruction that does more than compute. What is not here has unknown results."""

from collections.abc import Callable
from typing import Any

from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.code import DecodedStep
from pipesim.ptx.emulate.effects import barriers, copies, fragments, loads, matrices, mbarriers, tensor_maps
from pipesim.ptx.emulate.effects.copies import land, one_of_lane
from pipesim.ptx.emulate.effects.operands import one_of, shared_place, unknown, unknown_form
from pipesim.ptx.emulate.memory import from_generic, in_shared, place_of
from pipesim.ptx.emulate.stop import EmulationStop, around
from pipesim.ptx.emulate.values import Leaf, Value, lanes_in, leaf_of, of_lane
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.flow.inline import RECURSIVE, callee
from pipesim.ptx.flow.opcodes import LIBRARY, is_understood, may_signal
from pipesim.ptx.launch.values import LAUNCH_CONTROL
from pipesim.ptx.text.instruction import Address, CodeLabel, Instruction, TensorAddress

RESPONSE_BYTES = 16  #: of clusterlaunchcontrol.try_cancel


def launch_control(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``clusterlaunchcontrol``: a request for the next cluster's work, and questions about the response."""
    each = step.instruction
    if each.has("try_cancel"):
        _try_cancel(cluster, warp, step)
        return
    response = step.get(1, warp)
    for register, value in zip(step.results, _asked_of(cluster, step, response), strict=False):
        warp.write(register, value)


def _try_cancel(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """The response arrives as 16 bytes in shared memory, of every CTA of the cluster if it is a multicast."""
    each = step.instruction
    mask = (1 << cluster.ctas) - 1 if each.has("multicast::cluster::all") and cluster.ctas > 1 else 0
    number, count = int.__int__(cluster.tiles.taken[LAUNCH_CONTROL]), cluster.launch.policies.launch_control or 0
    response = _response(cluster, cluster.tiles.by_launch_control(count))
    cluster.notes.policies[each.position] = f"cluster launch control hands out {count} more tiles"
    for lane in lanes_in(warp.mask):
        land(cluster, warp, step, lane, 0, 1, RESPONSE_BYTES, mask, ("response", number))
        cta, offset = shared_place(one_of_lane(step.get(0, warp), lane, "the address of a response"), cluster.ctas)
        for rank in [r for r in range(cluster.ctas) if mask >> r & 1] if mask else [cta]:
            for n, word in enumerate(response):
                cluster.bytes[rank].store(offset + 4 * n, 4, word)


def _response(cluster: Cluster, at: int | None) -> tuple[int, int, int, int]:
    """Our own form of a response: a word that is 1, then the first CTA's x, y and z; zeros where it fails."""
    if at is None:
        return 0, 0, 0, 0
    gx, gy, _ = cluster.launch.grid
    cx, cy, cz = cluster.launch.cluster
    columns, rows = max(gx // cx, 1), max(gy // cy, 1)
    x, y, z = at % columns * cx, at // columns % rows * cy, at // (columns * rows) * cz
    return 1, x, y, z


def _asked_of(cluster: Cluster, step: DecodedStep, response: Value) -> list[Value]:
    each = step.instruction
    if not isinstance(response, int):
        leaf = leaf_of(response) or Leaf("the response of cluster launch control", each.line)
        return [cluster.code.unknown_value(leaf)] * 4
    if each.has("is_canceled"):
        return [response & 1]
    parts = [response >> 32 & 0xFFFFFFFF, response >> 64 & 0xFFFFFFFF, response >> 96 & 0xFFFFFFFF]
    one = next((m.rpartition("::")[2] for m in each.modifiers if m.startswith("get_first_ctaid::")), "")
    return [parts["xyz".index(one)]] if one else [*parts, 0]


Effect = Callable[[Cluster, EmulatedWarp, DecodedStep], Any]

#: Change nothing that this emulation follows.
_NO_EFFECT = frozenset(
    ["prefetch", "prefetchu", "nanosleep", "pmevent", "discard", "applypriority", "brkpt", "stackrestore"]
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
    """An instruction that this emulation does not know: its results are not known, and the report lists it.

    EmulationStop if it may signal others or wait for them, or touch shared memory that they use.
    """
    each = step.instruction
    if each.position in cluster.refused:
        raise EmulationStop(f"{each.mnemonic} is not known, and may touch shared memory that others use")
    if not is_understood(each):
        _note_places(cluster, warp, step)
    cluster.notes.unread[each.position] = each.mnemonic
    warp.write_results(step, unknown(f"the result of {each.mnemonic}", each.line))


def _note_places(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """The memory that an instruction which is not known may touch. EmulationStop if it names none."""
    each = step.instruction
    places = [i for i, operand in enumerate(each.operands) if isinstance(operand, Address | TensorAddress)]
    if not places or may_signal(each):
        raise EmulationStop(f"{each.mnemonic} is not known")
    generic = "shared" not in each.spaces
    for i in places:
        for one in {of_lane(step.get(i, warp), lane) for lane in lanes_in(warp.mask)}:
            offset = _shared_offset(one, generic=generic, unknown=-2 if generic and cluster.generic_is_global else -1)
            if offset > -2:
                reach = around(cluster.code.function.shared, offset)
                cluster.may_be_touched(warp, each.position, writes=True, reach=reach)


def _shared_offset(address: Value, *, generic: bool, unknown: int) -> int:
    """Where an address lies in the shared memory of a CTA; -2 if it lies in other memory."""
    if not isinstance(address, int):
        return unknown
    if in_shared(address):
        address = from_generic(address)
    elif generic:
        return -2
    return max(place_of(int(address))[1], -1)


def _call(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """A library's function, as ``vprintf``: it synchronises nothing. EmulationStop for any other one."""
    each = step.instruction
    if each.has(RECURSIVE):
        raise EmulationStop("a function that calls itself")
    if not callee(each):
        raise EmulationStop("a call of a function whose address is in a register")
    if callee(each) not in LIBRARY:
        raise EmulationStop(f"a call of {callee(each)[:60]}, which has no body here")
    cluster.notes.unread[step.instruction.position] = "call of a function without a body"


_EFFECTS: dict[str, Effect] = {
    "ld": loads.load,
    "ldu": loads.load,
    "st": loads.store,
    "atom": loads.atomic,
    "red": loads.atomic,
    "ldmatrix": fragments.load_matrix,
    "stmatrix": fragments.store_matrix,
    "wmma": fragments.fragment,
    "multimem": loads.multicast,
    "cp": copies.copy_instruction,
    "clusterlaunchcontrol": launch_control,
    "bar": barriers.cta_barrier,
    "barrier": barriers.cta_barrier,
    "fence": barriers.fence,
    "membar": barriers.fence,
    "tensormap": tensor_maps.tensor_map,
    "setmaxnreg": barriers.setmaxnreg,
    "griddepcontrol": barriers.grid_dependency,
    "wgmma": matrices.wgmma,
    "tcgen05": matrices.tcgen05,
    "brx": _indexed_branch,
    "trap": _trap,
    "call": _call,
    **dict.fromkeys(_NO_EFFECT, _no_effect),
}


#: What an instruction of an opcode that synchronises says in one of its modifiers, in every form that is known.
_FORMS = {
    "bar": ("sync", "arrive", "red"),
    "barrier": ("sync", "arrive", "red", "wait"),
    "fence": ("sc", "acq_rel", "acquire", "release", "proxy", "mbarrier_init"),
    "membar": ("cta", "gl", "sys", "proxy"),
    "wgmma": ("mma_async", "commit_group", "wait_group", "fence"),
    "setmaxnreg": ("inc", "dec"),
    "griddepcontrol": ("wait", "launch_dependents"),
    "clusterlaunchcontrol": ("try_cancel", "query_cancel"),
    "tensormap": ("replace", "cp_fenceproxy"),
    "cp": (
        "ca", "cg", "commit_group", "wait_group", "wait_all", "mbarrier", "prefetch", "bulk_group",
        "mbarrier::complete_tx::bytes",
    ),
}  # fmt: skip

#: Half of a proxy fence, which orders with the other half alone; a copy whose first and last bytes may be missing.
_UNKNOWN = ("async::generic", "ignore_oob")

_WITHOUT_MBARRIER = 2  #: operands of ``st.async`` and ``red.async`` that release to global memory: stores like others


def effect_of(each: Instruction) -> Effect:
    """The function that carries out an instruction."""
    known = each.opcode not in _FORMS or each.has_any(*_FORMS[each.opcode])
    if not known or each.has_any(*_UNKNOWN):
        return unknown_form
    if each.opcode in ("st", "red") and each.has("async") and len(each.operands) > _WITHOUT_MBARRIER:
        return copies.store_async
    if each.opcode == "st" and each.has("bulk"):
        return loads.fill
    if each.opcode == "multimem" and each.has("cp"):
        return copies.copy_instruction
    if each.opcode == "mbarrier":
        return mbarriers.mbarrier_effect(each)
    if each.opcode == "cp" and each.has("mbarrier"):
        return mbarriers.cp_async_arrive
    return _EFFECTS.get(each.opcode, _unread)
