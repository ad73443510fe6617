"""What consumer groups of Hopper's attention kernels do alike: turns at the tensor cores, accumulators, releases."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.warp import Slot, TileArray, Warp
from pipesim.protocols.warp_group import GROUP, GROUP_THREADS, share


@dataclass(frozen=True)
class Turns:
    """The ping-pong of FlashAttention-3: one group multiplies while the other does its softmax. Two groups or none."""

    num_consumer: int
    taken: bool

    @classmethod
    def of(cls, num_consumer: int, pingpong: int) -> Turns:
        """There are turns only where two groups are asked to take them."""
        return cls(num_consumer, bool(pingpong) and num_consumer == 2)

    def take(self, w: Warp, group: int) -> None:
        """All of a group wait until the other has passed its turn on."""
        if self.taken:
            w.bar_sync(self._barrier(group), 2 * GROUP_THREADS)

    def pass_on(self, w: Warp, group: int) -> None:
        """All of a group let the other go on."""
        if self.taken:
            w.bar_arrive(self._barrier(1 - group), 2 * GROUP_THREADS)

    def _barrier(self, group: int) -> int:
        """The named barrier at which a group waits; those of the groups' stores come before."""
        return 1 + self.num_consumer + group


def give_back(w: Warp, empty: SharedMemBarrier) -> None:
    """The products that read it are finished: one lane arrives for its warp."""
    with w.elect_one():
        empty.arrive()


def mine(w: Warp, accumulators: TileArray) -> Slot:
    """The calling warp's part of its group's accumulators."""
    return share(accumulators[w.index // GROUP], w.index % GROUP, GROUP)
