"""CUTLASS's ping-pong GEMM of Hopper: two consumer warp groups take whole output tiles in turn.

Upstream: ``include/cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_pingpong.hpp``. One group multiplies while the
other stores: an :class:`OrderedSequenceBarrier` of two stages lets only one of them be in its main loop, and only one
in its epilogue, where they share the buffers of D and even the named barrier.
"""

from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.warp import Warp
from pipesim.pipelines import OrderedSequenceBarrier, PipelineState
from pipesim.protocols.cutlass_epilogue import EpilogueWarp
from pipesim.protocols.hopper.cutlass_sm90 import MMA_REGISTERS, RANGES, CutlassSm90
from pipesim.protocols.limits import ranges
from pipesim.protocols.warp_group import GROUP, GROUP_THREADS

_GROUPS = 2
_ORDERED = 2  #: stages of the order: main loop, epilogue


@ranges(**RANGES)
def cutlass_sm90_pingpong(
    tiles: int = 4,
    k_tiles: int = 8,
    stages: int = 4,
    residual: int = 0,
    cluster: int = 1,
    block_n: int = 128,
    block_k: int = 64,
    epilogue: int = 150,
) -> Protocol:
    """CUTLASS's ping-pong GEMM of Hopper: two consumer warp groups take turns at the tensor cores, tile by tile.

    ``tiles`` output tiles of 64 rows for this CTA, each of ``k_tiles`` steps of ``block_k``; ``residual`` 1: C is
    loaded too. ``cluster`` 2: two CTAs multicast B to each other. ``epilogue``: cycles per subtile of 32 columns.
    """
    p = Protocol("cutlass_sm90_pingpong", cluster=cluster)
    sm90 = CutlassSm90.for_protocol(
        p, tiles=tiles, k_tiles=k_tiles, stages=stages, residual=residual,
        block_n=block_n, block_k=block_k, epilogue=epilogue, consumers=GROUP,
    )  # fmt: skip
    kernel = Pingpong(sm90, p.mbarriers("math_wg_order", _ORDERED * _GROUPS))
    p.init(kernel.init)
    sm90.add_producer(p)
    p.role("consumer0", warps=GROUP)(lambda w: kernel.consumer(w, 0))
    p.role("consumer1", warps=GROUP)(lambda w: kernel.consumer(w, 1))
    return p


@dataclass(frozen=True)
class Pingpong:
    """What this kernel adds: the order of its two consumer warp groups."""

    sm90: CutlassSm90
    order_mbars: BarrierStorage

    def init(self) -> None:
        """Initialise every barrier."""
        self.sm90.init()
        OrderedSequenceBarrier.init_barriers(self.order_mbars, _ORDERED, _GROUPS, GROUP_THREADS)

    def consumer(self, w: Warp, group: int) -> None:
        """A warp of consumer group 0 or 1: every second tile; its states also pass the tiles of the other group."""
        w.setmaxnreg(MMA_REGISTERS)
        k_tiles = self.sm90.k_tiles
        pipe, state = self.sm90.mainloop(w), PipelineState(self.sm90.a.slots)
        order = OrderedSequenceBarrier(self.order_mbars, _ORDERED, _GROUPS, group)
        out = EpilogueWarp(self.sm90.epilogue, w, w.index)
        if group == 1:
            state.advance(k_tiles)
            out.advance()
        mine = range(group, self.sm90.tiles, _GROUPS)
        for turn in w.loop(len(mine), "tiles"):
            order.wait()
            self.sm90.mma(w, pipe, state, w.index, mine[turn])
            order.arrive()  # the last product is still under way
            self.sm90.mma_tail(w, pipe, state)
            state.advance(k_tiles * _GROUPS)
            order.wait()
            self.sm90.store(out, mine[turn])
            out.tail()  # the other group writes to the same buffers of D
            out.advance()
            order.arrive()
