"""How many tiles a run is handed out by cluster launch control, and what other CTAs may leave besides."""

from dataclasses import replace
from math import prod
from typing import NamedTuple

from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.stop import Status
from pipesim.ptx.launch.values import LAUNCH_CONTROL, TILE_COUNTER, Launch
from pipesim.ptx.prepare import Kernel

_HANDED_OUT = (1, 2, 4, 8)
_MOST_LEFT = 4  #: tiles of a counter that other CTAs leave
MOST_ANY = 2  #: tiles that are handed out of which all choices are looked at


def to_try(launch: Launch) -> list[int]:
    """How many tiles launch control may hand out, as far as another cluster runs beside this one."""
    others = prod(launch.grid) // prod(launch.cluster) - 1  # a grid of one cluster is an example of any
    most = max(1, others - 1) if others else _HANDED_OUT[-1]  # two clusters that run have not all tiles
    return sorted({min(each, most) for each in _HANDED_OUT})


class FewerTiles(NamedTuple):
    """A policy with which other CTAs leave only this many ``tiles`` to the cluster, instead of the value ``used``."""

    policy: str
    value: int
    used: int
    tiles: int
    left: tuple[int, int, int] | None = None  #: of a launch (:class:`pipesim.ptx.launch.values.Launch`)

    def of(self, launch: Launch) -> Launch:
        """The launch with that policy."""
        return replace(launch.with_setting(self.policy, self.value), left=self.left)


def all_left(fewer: tuple[FewerTiles, ...]) -> FewerTiles | None:
    """Where other CTAs leave all tiles of the one counter of which a kernel takes them; None of any other kernel."""
    if not fewer or fewer[0].policy != TILE_COUNTER or (left := fewer[0].left) is None or not fewer[1:]:
        return None
    tiles = (left[2] - left[1]) // (fewer[0].value - fewer[1].value)
    return fewer[0]._replace(value=left[1], tiles=tiles, left=(tiles, *left[1:]))


def fewer_tiles(kernel: Kernel, cluster: Cluster) -> tuple[FewerTiles, ...]:
    """What other CTAs may leave besides, where nothing fixes it: no tile beyond the first, one, and so on.

    By cluster launch control, and by a counter, which then begins at one of the last answers of the run.
    """
    used = cluster.launch.policies
    if used.handed_out:
        return ()
    handed = range(used.launch_control or 0) if kernel.launch.policies.launch_control is None else ()
    found = [FewerTiles(LAUNCH_CONTROL, n, used.launch_control or 0, n) for n in handed]
    first = used.tile_counter
    hangs = any(warp.status is Status.BLOCKED for warp in cluster.warps)
    counters = [] if hangs else cluster.globals.last_answers(_MOST_LEFT + 1)
    for last in counters:
        end, step = last[-1], last[-1] - last[-2]
        if cluster.recorder.repeated:  # of the answers before some are left out
            last = [end - n * step for n in reversed(range(_MOST_LEFT + 1)) if first <= end - n * step]
        for n, value in enumerate(reversed(last)):
            left = (n, first, end) if len(counters) == 1 else None
            if value != first or left is not None:
                found.append(FewerTiles(TILE_COUNTER, value, first, n, left))
    return tuple(found)
