"""The barrier of the cluster, which counts threads: a warp arrives with the last of its lanes that has not ended.

PTX ISA, "barrier.cluster": a wait is for all threads of the cluster that have not exited.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from pipesim.model.ops import Op, Order, order_of
from pipesim.ptx.emulate.accesses import RecordingCluster, flush, record
from pipesim.ptx.emulate.stop import EmulationStop, Status
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.emulate.ways import DividedWarp


class _PartialArrival(NamedTuple):
    """Lanes of a warp that have arrived before the others: which, and the instruction's position and semantics."""

    lanes: int
    position: int
    meaning: int


@dataclass
class ClusterBarrier:
    """How often each warp has arrived, by its agent, and those of which only some lanes have.

    ``relaxed``: those whose last arrive orders no memory (PTX ISA, "barrier.cluster").
    """

    _times: dict[int, int] = field(default_factory=dict)
    _arriving: dict[int, _PartialArrival] = field(default_factory=dict)
    relaxed: set[int] = field(default_factory=set)

    def ahead(self) -> object:
        """How much more often each warp has arrived than the one that has least often."""
        least = min(self._times.values(), default=0)
        return tuple((agent, times - least) for agent, times in self._times.items()), tuple(self._arriving.items())

    def arrive(self, cluster: RecordingCluster, warp: EmulatedWarp, lanes: int, position: int, meaning: int) -> None:
        """Lanes of a warp arrive. What they have touched comes before the arrival of the last of the warp."""
        before = self._arriving.get(warp.agent)
        flush(cluster, warp)
        if before is None:
            self.relaxed.discard(warp.agent)
        if order_of(meaning) is Order.RELAXED:
            self.relaxed.add(warp.agent)
        self._arriving[warp.agent] = _PartialArrival(lanes | (before.lanes if before else 0), position, meaning)
        self._count(cluster, warp)

    def lanes_ended(self, cluster: RecordingCluster, warp: DividedWarp) -> None:
        """Lanes of a warp have ended: the others may have waited for them alone."""
        if warp.agent in self._arriving:
            self._count(cluster, warp)

    def passes(self, warp: EmulatedWarp, warps: Iterable[EmulatedWarp]) -> bool:
        """Whether every warp that has not ended has arrived as often as this one. EmulationStop if a part of it has.

        Where the others of its lanes synchronise they are followed apart from it, once it is blocked.
        """
        if warp.agent in self._arriving:
            if warp.lanes_that_wait_to_run():
                return False
            raise EmulationStop("lanes wait for the cluster before the others of their warp have arrived or ended")
        wanted = self._times.get(warp.agent, 0)
        return all(each.status is Status.ENDED or self._times.get(each.agent, 0) >= wanted for each in warps)

    def _count(self, cluster: RecordingCluster, warp: DividedWarp) -> None:
        lanes, position, meaning = self._arriving[warp.agent]
        if warp.lanes & ~(lanes | warp.ended_lanes):
            return
        if warp.lanes & ~lanes:
            cluster.notes.ended.add(position)
        del self._arriving[warp.agent]
        record(cluster, warp, position, Op.CLUSTER_ARRIVE, meaning)
        self._times[warp.agent] = self._times.get(warp.agent, 0) + 1
