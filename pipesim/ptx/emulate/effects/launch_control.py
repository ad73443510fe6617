"""Cluster launch control (PTX ISA, "clusterlaunchcontrol.try_cancel", "clusterlaunchcontrol.query_cancel")."""

from __future__ import annotations

from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.code import DecodedStep
from pipesim.ptx.emulate.effects.copies import land, one_of_lane
from pipesim.ptx.emulate.effects.operands import shared_place
from pipesim.ptx.emulate.values import Leaf, Value, lanes_in, leaf_of
from pipesim.ptx.emulate.warp import EmulatedWarp

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
    number = cluster.handed_out
    cluster.handed_out += 1
    given = cluster.launch.policies.launch_control or 0
    response = _response(cluster, number, given) if number < given else (0, 0, 0, 0)
    cluster.notes.policies[each.position] = f"cluster launch control hands out {given} more tiles"
    for lane in lanes_in(warp.mask):
        land(cluster, warp, step, lane, 0, 1, RESPONSE_BYTES, mask, ("response", number))
        cta, offset = shared_place(one_of_lane(step.get(0, warp), lane, "the address of a response"), cluster.ctas)
        for rank in [r for r in range(cluster.ctas) if mask >> r & 1] if mask else [cta]:
            for n, word in enumerate(response):
                cluster.bytes[rank].store(offset + 4 * n, 4, word)


def _response(cluster: Cluster, number: int, given: int) -> tuple[int, int, int, int]:
    """Our own form of a successful response: a word that is 1, then the first CTA's x, y and z."""
    gx, gy, _ = cluster.launch.grid
    cx, cy, cz = cluster.launch.cluster
    at = cluster.tiles.by_launch_control(number, given)
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
