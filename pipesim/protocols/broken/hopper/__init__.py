"""Mistakes typical of Hopper and ``cp.async`` kernels, each beside the right kernel and the correction that is meant.

A kernel here takes one slip of its enum, whose value says what was meant; without a slip it is right. So a correction
can be compared with what was meant: the corrected program is the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from pipesim.lang.protocol import Protocol
from pipesim.protocols.broken.hopper.cp_async_ring import (
    CpAsyncSlip,
    GroupedSlip,
    MultistageSlip,
    cp_async_ring,
    grouped_ring,
    multistage,
)
from pipesim.protocols.broken.hopper.meetings import (
    ClusterSlip,
    LaneSlip,
    NamedSlip,
    SpectatorSlip,
    lanes_apart,
    multicast_ring,
    spectators,
    split_named,
)
from pipesim.protocols.broken.hopper.wgmma_ring import WgmmaSlip, wgmma_ring


@dataclass(frozen=True)
class Mistake:
    """A wrong kernel, the right one, and the change between the two in words."""

    name: str
    wrong: Callable[[], Protocol]
    right: Callable[[], Protocol]
    meant: str


def _mistakes() -> Iterator[Mistake]:
    for wgmma in WgmmaSlip:
        yield Mistake(wgmma.name, partial(wgmma_ring, wgmma), wgmma_ring, wgmma.value)
    for cp_async in CpAsyncSlip:
        yield Mistake(cp_async.name, partial(cp_async_ring, cp_async), cp_async_ring, cp_async.value)
    for grouped in GroupedSlip:
        yield Mistake(grouped.name, partial(grouped_ring, grouped), grouped_ring, grouped.value)
    for stages in MultistageSlip:
        yield Mistake(stages.name, partial(multistage, stages), multistage, stages.value)
    for named in NamedSlip:
        yield Mistake(named.name, partial(split_named, named), split_named, named.value)
    for cluster in ClusterSlip:
        yield Mistake(cluster.name, partial(multicast_ring, cluster), multicast_ring, cluster.value)
    for lane in LaneSlip:
        yield Mistake(lane.name, partial(lanes_apart, lane), lanes_apart, lane.value)
    for spectator in SpectatorSlip:
        yield Mistake(spectator.name, partial(spectators, spectator), spectators, spectator.value)


#: Every mistake by the name of its kernel and its slip.
MISTAKES: dict[str, Mistake] = {
    f"{each.right.__name__}.{each.name.lower()}": each for each in _mistakes() if each.meant
}
