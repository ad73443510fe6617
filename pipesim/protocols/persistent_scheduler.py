"""A persistent kernel whose scheduler warp hands out tiles: the CLC protocol with Hopper's means.

Upstream: ``sm100_structured/structured_kernels/tile_scheduler.mojo``, with an atomic tile counter in place of
``clusterlaunchcontrol.try_cancel``. Tile indices go through a ring of responses to every role; a throttle keeps the
scheduler from running ahead of the load warp.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.model.protocol import Protocol
from pipesim.model.shared_mem_barrier import BarrierStorage
from pipesim.model.warp import TileArray, Warp
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.protocols.limits import require

RESPONSE_BYTES = 16


def persistent_scheduler(
    tiles: int = 6,
    k_iters: int = 8,
    stages: int = 4,
    tile_bytes: int = 16384,
    consumer_warps: int = 2,
    work: int = 600,
    clc_stages: int = 2,
    atomic: int = 700,
) -> Protocol:
    """A scheduler warp fetches tile numbers and hands them to the load warp and the consumers of a persistent kernel.

    ``tiles`` is how many this CTA gets; one fetch more says that there are none left. ``atomic`` is what a fetch takes,
    ``work`` what a consumer does with a step, both in SM cycles.
    """
    require("tiles", tiles, 0, 1 << 16)
    require("k_iters", k_iters, 0, 1 << 16)
    require("stages", stages, 1, 32)
    require("tile_bytes", tile_bytes, 16, 1 << 17, multiple_of=16)
    require("consumer_warps", consumer_warps, 1, 8)
    require("work", work, 0, 1 << 24)
    require("clc_stages", clc_stages, 1, 8)
    require("atomic", atomic, 0, 1 << 24)

    p = Protocol("persistent_scheduler")
    kernel = _Persistent(
        tile=p.smem("tile", stages, tile_bytes),
        response=p.smem("response", clc_stages, RESPONSE_BYTES),
        pipe_mbars=p.mbarriers("pipe", ProducerConsumerPipeline.smem_bytes(stages) // 8),
        clc_mbars=p.mbarriers("clc", ProducerConsumerPipeline.smem_bytes(clc_stages) // 8),
        throttle_mbars=p.mbarriers("throttle", ProducerConsumerPipeline.smem_bytes(clc_stages) // 8),
        tiles=tiles,
        k_iters=k_iters,
        consumer_warps=consumer_warps,
        work=work,
        atomic=atomic,
    )
    p.init(kernel.init)
    p.role("scheduler")(kernel.scheduler)
    p.role("load")(kernel.load)
    p.role("consumer", warps=consumer_warps)(kernel.consumer)
    return p


@dataclass(frozen=True)
class _Persistent:
    """The kernel's memory and sizes, and its roles."""

    tile: TileArray
    response: TileArray
    pipe_mbars: BarrierStorage
    clc_mbars: BarrierStorage
    throttle_mbars: BarrierStorage
    tiles: int
    k_iters: int
    consumer_warps: int
    work: int
    atomic: int

    def _pipe(self) -> ProducerConsumerPipeline:
        return ProducerConsumerPipeline(self.pipe_mbars, self.tile.slots)

    def _clc(self) -> ProducerConsumerPipeline:
        return ProducerConsumerPipeline(self.clc_mbars, self.response.slots)

    def _throttle(self) -> ProducerConsumerPipeline:
        return ProducerConsumerPipeline(self.throttle_mbars, self.response.slots)

    def init(self) -> None:
        self._pipe().init_mbars(1, self.consumer_warps)
        self._clc().init_mbars(1, 32 + 32 * (1 + self.consumer_warps))  # the scheduler reads what it fetched, too
        self._throttle().init_mbars(32, 32)

    def scheduler(self, w: Warp) -> None:
        clc, mine, throttle = self._clc(), self._clc(), self._throttle()
        for request in w.loop(self.tiles, "tiles"):  # the first tile is the CTA's own, so the last fetch finds none
            throttle.consumer_signal_and_step()
            with clc.produce() as stage, w.elect_one():
                w.work(self.atomic)
                w.write(self.response[stage.index()], request + 1)
                stage.mbar().arrive()
            self._fetch(w, mine, request + 1)
        for _ in range(clc.num_stages):
            clc.wait_consumer()
            clc.producer_step()

    def load(self, w: Warp) -> None:
        pipe, clc, throttle = self._pipe(), self._clc(), self._throttle()
        for t in w.loop(self.tiles, "tiles"):
            throttle.producer_signal_and_step()  # before the fetch of the next: else each waits for the other
            with w.elect_one():
                for k in w.loop(self.k_iters, "k_iters"):
                    with pipe.produce() as stage:
                        stage.mbar().expect_bytes(self.tile.nbytes)
                        w.tma_load(self.tile[stage.index()], stage.mbar(), t * self.k_iters + k)
            self._fetch(w, clc, t + 1)

    def consumer(self, w: Warp) -> None:
        pipe, clc = self._pipe(), self._clc()
        for t in w.loop(self.tiles, "tiles"):
            for k in w.loop(self.k_iters, "k_iters"):
                with pipe.consume_explicit() as stage:
                    w.read(self.tile[stage.index()], t * self.k_iters + k)
                    w.work(self.work)
                    with w.elect_one():
                        stage.arrive()
            self._fetch(w, clc, t + 1)

    def _fetch(self, w: Warp, clc: ProducerConsumerPipeline, item: int) -> None:
        """What every role does for its next tile: read the response; all lanes give the stage back."""
        with clc.consume() as stage:
            w.read(self.response[stage.index()], item)
