"""The events of a kernel that its order with other kernels depends on, as its program carries them."""

from __future__ import annotations

from collections.abc import Callable

from pipesim.model.dependent_launch import LaunchEvent
from pipesim.model.ops import Op
from pipesim.ptx.emit.record import Range
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulation import Kernel, emulate, on_global_memory
from pipesim.ptx.free.forms import Form


def launch_events(kernel: Kernel, cluster: Cluster, place_of: Callable[[int], str]) -> tuple[LaunchEvent, ...]:
    """The events of the cluster in the order of its run, for which it is run again with the addresses of accesses.

    Nothing where it is not known whether it waits, what it accesses, or, once addresses are followed, all that it does.
    An agent of which the program has no operation gets one without effect at its first event.
    """
    if cluster.limited:
        return ()
    again = emulate(on_global_memory(kernel)).cluster
    accesses, noted = again.global_accesses, again.launch_events
    assert noted is not None
    events = tuple(noted)
    streams, mine = again.recorder.streams, cluster.recorder.streams
    if noted.unsure or [each.positions for each in streams] != [each.positions for each in mine]:
        return ()
    if accesses is not None and (accesses.limited or accesses.left_open.keys() - {each.position for each in events}):
        return ()
    cluster.notes.apart |= noted.in_step
    cluster.inputs = again.inputs  # which CTAs make these accesses
    found, body, hulls = [], kernel.function.body, _hulls(again)
    for each in events:
        if not mine[each.agent].code:
            cluster.recorder.add(each.agent, each.position, Op.WORK, 0)
        at = 0 if not streams[each.agent].code else each.at
        where = place_of(each.position), body[each.position].mnemonic, *again.image.buffer(each.base)
        hull = hulls.get((each.agent, each.position, each.base), (0, -1))
        found.append(LaunchEvent(each.kind, each.agent, at, *where, each.waited, each.sure, *hull))
    return tuple(found)


def _hulls(cluster: Cluster) -> dict[tuple[int, int, int], Range]:
    """For agents, positions and buffers the bytes from the first to the last that are accessed, in any CTA.

    By a tensor map those of the whole tensor.
    """
    found: dict[tuple[int, int, int], Range] = {}
    for each in cluster.global_accesses or ():
        if each.map is not None:
            base = each.map.constant
            found[each.agent, each.position, base] = 0, cluster.image.tensor_bytes(base)
            continue
        varies = Form(0, each.terms)
        first, end = each.ranges[0][0] + varies.low, each.ranges[-1][1] + varies.high
        base = cluster.image.buffer_at(first)
        key = each.agent, each.position, base
        low, high = found.get(key, (first - base, end - base))
        found[key] = (min(low, first - base), max(high, end - base)) if base >= 0 else (0, -1)
    return found
