"""What consumer groups of Hopper's attention kernels do alike: turns at the tensor cores, accumulators, releases."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.tiles import Slot, TileArray
from pipesim.lang.warp import Warp
from pipesim.protocols.limits import require
from pipesim.protocols.warp_group import GROUP, GROUP_THREADS, MMA_K, ROWS, share


def require_attention(
    kv_blocks: int,
    stages: int,
    depth: int,
    block_n: int,
    num_consumer: int,
    pingpong: int,
    softmax: int,
    *,
    least_stages: int,
    slice_depth: int = 64,
    most_groups: int = 2,
) -> None:
    """Raise ParameterError for sizes that the kernel does not have. ``slice_depth``: ``depth`` is a multiple of it."""
    require("kv_blocks", kv_blocks, 0, 1 << 16)
    require("stages", stages, least_stages, 32)
    require("depth", depth, slice_depth, 256, multiple_of=slice_depth)
    require("block_n", block_n, 16, 256, multiple_of=16)
    require("num_consumer", num_consumer, 1, most_groups)
    require("pingpong", pingpong, 0, 1)
    require("softmax", softmax, 0, 1 << 24)


@dataclass(frozen=True)
class Turns:
    """The ping-pong of FlashAttention-3: one group multiplies while the other does its softmax. Two groups or none."""

    num_consumer: int
    taken: bool

    @classmethod
    def for_consumers(cls, num_consumer: int, pingpong: int) -> Turns:
        """There are turns only where two groups are asked to take them."""
        return cls(num_consumer, bool(pingpong) and num_consumer == 2)

    def take(self, w: Warp, group: int) -> None:
        """All of a group wait until the other has passed its turn on."""
        if self.taken:
            w.bar_sync(self._barrier(group), 2 * GROUP_THREADS)

    def pass_on(self, w: Warp, group: int) -> None:
        """All of a group let the other continue."""
        if self.taken:
            w.bar_arrive(self._barrier(1 - group), 2 * GROUP_THREADS)

    def _barrier(self, group: int) -> int:
        """The named barrier at which a group waits; those of the groups' stores come before."""
        return 1 + self.num_consumer + group


def take_tile(w: Warp) -> None:
    """The work of a wait for a tile that is there: its instructions, which others of the quarter slow. Those after it
    come after its second record in a launch that makes any.
    """
    w.compute("attention/take", alu=25, unrecorded_alu=35)


def give_back(w: Warp, empty: SharedMemBarrier) -> None:
    """The products that read it are finished: one lane arrives for its warp."""
    with w.elect_one():
        empty.arrive()
        w.compute("attention/give_back")


def mine(w: Warp, accumulators: TileArray) -> Slot:
    """The calling warp's part of its group's accumulators."""
    return share(accumulators[w.index // GROUP], w.index % GROUP, GROUP)


def multiply_scores(w: Warp, block_n: int, depth: int) -> None:
    """The work of a warp's part of the scores: its operands are in shared memory."""
    products = depth // MMA_K
    w.compute("attention/scores", mma=ROWS * block_n * depth // GROUP, products=products, alu=2 * products)


def multiply_weights(w: Warp, block_n: int, depth: int) -> None:
    """The work of a warp's part of the product with the values: the weights are in its registers."""
    products = block_n // MMA_K
    w.compute("attention/values", mma_registers=ROWS * block_n * depth // GROUP, products=products, alu=5 * products)


def load(w: Warp) -> None:
    """The work of a copy: no other CTA has loaded the tile just before."""
    w.compute("attention/load", fresh_copies=1)


def store_rows(w: Warp, sums: Slot, item: int, depth: int) -> None:
    """A warp's 16 rows go from its registers to global memory: a store of four bytes a lane touches eight of them."""
    w.read(sums, item)
    stores = ROWS // GROUP * depth // 64
    w.compute("attention/store", fma=depth // 2, global_lines=8 * stores)
