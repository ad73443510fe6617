"""What one cluster of a kernel does to global memory, and the clusters of which others do the same."""

from dataclasses import dataclass, replace

from pipesim.bounds import MAX_WARP_INSTRUCTIONS
from pipesim.ptx.emulate.cluster import Cluster, EmulationLimits
from pipesim.ptx.emulate.global_memory.global_accesses import GlobalAccess
from pipesim.ptx.emulate.map_fences import MapFences
from pipesim.ptx.emulate.stop import Status
from pipesim.ptx.emulate.values import Leaf
from pipesim.ptx.emulation import emulate
from pipesim.ptx.free.varying import FreeInputs
from pipesim.ptx.launch.image import Image
from pipesim.ptx.prepare import Kernel

MOST_INSTRUCTIONS = MAX_WARP_INSTRUCTIONS  #: of all clusters together


@dataclass(frozen=True)
class GlobalReading:
    """The accesses of one cluster. ``ranks``: of each agent, that of its CTA. ``left_open``: what is not known, where.

    ``unread``: some instruction is not known. ``cut``: why there may be more accesses, "" if these are all.
    ``alike``: stores of several lanes to the same bytes. ``in_step``: accesses by lanes that are taken to be in order.
    """

    kernel: Kernel
    inputs: FreeInputs
    image: Image
    instructions: int
    accesses: tuple[GlobalAccess, ...]
    left_open: dict[int, Leaf]
    ranks: tuple[int, ...]
    unread: bool
    cut: str
    alike: frozenset[int]
    in_step: frozenset[int]
    maps: MapFences

    def elsewhere(self, cta: int, contents: tuple[tuple[str, int, int], ...] = ()) -> "GlobalReading":
        """The same in another CTA, with elements of free arrays."""
        return read_global(replace(self.kernel, launch=replace(self.kernel.launch, cta=cta, contents=contents)))


def read_global(kernel: Kernel) -> GlobalReading:
    """Follow one cluster of a kernel in which the addresses of global memory are followed."""
    found = emulate(kernel, EmulationLimits(instructions=MOST_INSTRUCTIONS // 2))
    cluster, policies = found.cluster, found.cluster.launch.policies
    accesses = cluster.global_accesses
    given = replace(kernel.launch, policies=replace(kernel.launch.policies, launch_control=policies.launch_control))
    return GlobalReading(
        kernel=replace(kernel, launch=given),
        inputs=cluster.inputs,
        image=cluster.image,
        instructions=found.instructions,
        accesses=tuple(accesses or ()),
        left_open={} if accesses is None else accesses.left_open,
        ranks=tuple(stream.cta for stream in cluster.recorder.streams),
        unread=bool(cluster.notes.unread),
        cut=_why_cut(cluster, found.unsolved),
        alike=frozenset() if accesses is None else frozenset(accesses.alike),
        in_step=frozenset() if accesses is None else frozenset(accesses.in_step),
        maps=cluster.maps,
    )


def _why_cut(cluster: Cluster, unsolved: str) -> str:
    """Why what was recorded may not be all, or not what every CTA does; "" if it is."""
    accesses = cluster.global_accesses
    if unsolved or cluster.limited or (accesses is not None and accesses.limited):
        return "not all is followed"
    if any(warp.status in (Status.STOPPED, Status.BLOCKED) for warp in cluster.warps):
        return "a warp is not followed to its end"
    if cluster.globals.policies:
        return "the result of an atomic decides"
    if cluster.notes.unread:
        return "an instruction is not known"
    return ""
