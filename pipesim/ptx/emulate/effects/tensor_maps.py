"""Tensor maps that a kernel writes itself (PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy")."""

from math import prod

from pipesim.model.ops import Space
from pipesim.ptx.emulate.accesses import read, write
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.code import DecodedStep
from pipesim.ptx.emulate.effects.operands import one_of, shared_place
from pipesim.ptx.emulate.map_fences import MAP_BYTES, place_of_map
from pipesim.ptx.emulate.memory import in_shared
from pipesim.ptx.emulate.values import Value, lanes_in, leaf_of, of_lane
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.free.varying import identity
from pipesim.ptx.launch.image import PARAMETERS
from pipesim.ptx.launch.values import ELEMENTS, TensorMap
from pipesim.ptx.text.instruction import Instruction

PARAMETER_SPACE = 1 << 16  #: bytes that parameters can have at most

_ELEMENT_BITS = (8, 16, 32, 32, 64, 64, 16, 32, 32, 64, 16, 32, 32, 4, 8, 8)  #: by the number of the type
_OPEN = {("elemtype", -1): -1}  #: of a map that perhaps is another one
_FIELDS = ("box_dim", "elemtype", "rank")


def tensor_map(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``tensormap``: a field of a map is replaced, or a map is copied to where it is used.

    One in shared memory is written and read as a whole. Of its contents what decides how many bytes a copy moves is
    followed: the box and the type of an element (PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy").
    """
    each = step.instruction
    address = step.get(0, warp)
    if leaf_of(address) is not None or not warp.mask:
        cluster.notes.left_out.setdefault(each.position, "a tensor map at an address that is not known")
        return
    where = address if isinstance(address, int) else one_of(warp, address, "the address of a tensor map")
    sure = not warp.maybe and not warp.has_two_ways
    if each.has("cp_fenceproxy"):
        source = one_of(warp, step.get(1, warp), "the address of a tensor map")
        cta, at = shared_place(source, cluster.ctas)
        read(cluster, warp, (Space.SHARED, cta), [(at, at + MAP_BYTES)], each.position)
        cluster.written_maps[identity(where)] = {**cluster.written_maps.get(source, {}), **({} if sure else _OPEN)}
    if each.has("cp_fenceproxy") or not (each.has("shared::cta") or in_shared(where)):
        cluster.on_global(warp, each, where, MAP_BYTES)
        cluster.maps.change((place_of_map(where),), warp, each.position, released=each.has("cp_fenceproxy"))
    else:
        cta, at = shared_place(where, cluster.ctas)
        write(cluster, warp, (Space.SHARED, cta), [(at, at + MAP_BYTES)], [at], None, each.position)
    field = next((name for name in _FIELDS if each.has(name)), None)
    if field is None:
        return
    values = [step.get(i, warp) for i in range(1, len(step.getters))]
    number = values[0] if len(values) > 1 and isinstance(values[0], int) else -1
    value = values[-1]
    found = cluster.written_maps.setdefault(identity(where), {})
    if isinstance(value, int):
        found[field, number] = int(value) if sure else -1
    else:
        found.pop((field, number), None)


def fence_maps(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``fence.proxy.tensormap::generic``: changes of maps are released, or one of a map is acquired, which loads it."""
    each = step.instruction
    if not each.has("acquire"):
        cluster.maps.release(warp)
        return
    where = step.get(0, warp)
    cluster.on_global(warp, each, where, MAP_BYTES)
    for one, lanes in _lanes_by_map(warp, where).items():
        cluster.maps.acquire(place_of_map(one) if isinstance(one, int) else None, warp, lanes)


def _lanes_by_map(warp: EmulatedWarp, where: Value) -> dict[Value, int]:
    found: dict[Value, int] = {}
    for lane in lanes_in(warp.mask):
        one = of_lane(where, lane)
        found[one] = found.get(one, 0) | 1 << lane
    return found


def use_map(cluster: Cluster, warp: EmulatedWarp, each: Instruction, where: Value) -> None:
    """A copy by a tensor map loads it, where it is in memory that the kernel may change."""
    lanes = _lanes_by_map(warp, where)
    known = [one for one in lanes if isinstance(one, int) and PARAMETER_SPACE <= int.__int__(one) < PARAMETERS]
    if known:
        cluster.on_global(warp, each._replace(opcode="ld", modifiers=("global",)), where, MAP_BYTES)
    for one in known:
        cluster.maps.use(place_of_map(one), warp, each.position, lanes[one])


def written_bytes(cluster: Cluster, address: int, given: TensorMap | None = None) -> int:
    """The bytes of a box of a map that the kernel has written, 0 if not known; -1 of another. ``given``: how it was."""
    found = cluster.written_maps.get(identity(address), {})
    if not found:
        return -1
    before = given.box if given is not None and not (given.element_strides or given.pixels) else ()
    element, rank = found.get(("elemtype", -1)), found.get(("rank", -1), len(before) - 1)
    bits = ELEMENTS[given.element] if element is None and before and given is not None else 0
    if element is not None and 0 <= element < len(_ELEMENT_BITS):
        bits = _ELEMENT_BITS[element]
    box = [found.get(("box_dim", i), before[i] if i < len(before) else 0) for i in range(rank + 1)]
    return prod(box) * bits // 8 if box and min(box) > 0 else 0
