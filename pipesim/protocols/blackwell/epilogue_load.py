"""Warp 7: the epilogue-load warp of Modular's GEMM and convolution, and the order of its loads after the main ones.

Upstream: ``use_tma_epilogue_load`` in ``sm100_structured/default/matmul_kernels.mojo``, whose warp 7 waits for its tile
and a free stage only; ``nn/conv/gpu/nvidia/sm100/conv2d_fprop_kernel.mojo``, whose warp 7 also waits for the load-order
barrier, in every tile; CUTLASS waits for it in the first tile.
"""

from dataclasses import dataclass
from enum import IntEnum

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Fence
from pipesim.pipelines.modular.producer_consumer import EpiLoadPipeline, LoadOrderBarrier
from pipesim.protocols.blackwell.sm100 import Sm100, rows


class LoadOrder(IntEnum):
    """In which tiles the epilogue's loads wait for the first loads of A and B."""

    NONE = 0  #: as Modular's GEMM
    EVERY_TILE = 1  #: as Modular's convolution
    FIRST_TILE = 2  #: as CUTLASS


@dataclass(frozen=True, kw_only=True)
class EpilogueLoad:
    """The epilogue's source: its slots and barriers. ``slices``: of a tile; ``residual``: whether any are loaded.

    ``fences_reads``: the epilogue fences its reads before it frees a stage, as sm_100 needs; upstream does not.
    ``prologue``: K groups of a tile that the load warp issues before it lets the epilogue's loads begin.
    """

    source: TileArray
    epi_mbars: BarrierStorage
    order_mbar: BarrierStorage | None
    order: LoadOrder
    prologue: int
    slices: int
    residual: bool = True
    fences_reads: bool = False

    @classmethod
    def for_protocol(
        cls, p: Protocol, source: TileArray, order: LoadOrder, *, prologue: int, slices: int, residual: bool = True,
        fences_reads: bool = False,
    ) -> "EpilogueLoad":  # fmt: skip
        """With its barriers in ``p``."""
        return cls(
            source=source,
            epi_mbars=p.mbarriers("epi_load", 2 * source.slots),
            order_mbar=p.mbarriers("load_order", 1) if order is not LoadOrder.NONE else None,
            order=order,
            prologue=prologue,
            slices=slices,
            residual=residual,
            fences_reads=fences_reads,
        )

    def init(self) -> None:
        """Initialise the barriers."""
        self.pipeline().init_barriers()
        if self.order_mbar is not None:
            LoadOrderBarrier(self.order_mbar).init()

    def pipeline(self) -> EpiLoadPipeline:
        """The calling agent's pipeline of source slices."""
        return EpiLoadPipeline(self.epi_mbars, self.source.slots)

    def order_side(self) -> LoadOrderBarrier | None:
        """The calling agent's side of the order, None where there is none."""
        return None if self.order_mbar is None else LoadOrderBarrier(self.order_mbar)

    def _orders(self, tile: int) -> bool:
        return self.order is LoadOrder.EVERY_TILE or tile == 0

    def finish_groups(self, w: Warp, order: LoadOrderBarrier | None, tile: int, groups: int) -> None:
        """Called by the load warp after ``groups`` K groups of a tile: with those of the prologue it arrives."""
        if order is not None and self._orders(tile) and groups == self.prologue:
            with w.elect_one():
                order.arrive_and_step()

    def load(self, w: Warp, sm100: Sm100) -> None:
        """Warp 7: after the main loads of a tile have begun, the slices of its source, as stages come free."""
        order, pipe = self.order_side(), self.pipeline()
        for work in sm100.work(w):
            if order is not None and self._orders(work.index):
                order.wait_and_step()
            for n in range(self.slices if self.residual else 0):
                pipe.wait_consumer()
                with w.elect_one():
                    full, slot = pipe.producer_mbar(), self.source[pipe.pipeline.producer_stage()]
                    full.expect_bytes(slot.nbytes)
                    w.tma_load(slot, full, work.index * self.slices + n)
                pipe.producer_step()

    def add(self, w: Warp, pipe: EpiLoadPipeline, item: int) -> None:
        """An epilogue warp adds its rows of the next slice; every thread arrives when it has read them."""
        if self.residual:
            pipe.wait_producer()
            stage = pipe.consumer_stage()
            w.read(rows(self.source[stage], w.index), item)
            if self.fences_reads:
                w.fence(Fence.PROXY_ASYNC)
            pipe.pipeline.consumer_mbar(stage).arrive()
            pipe.consumer_step()
