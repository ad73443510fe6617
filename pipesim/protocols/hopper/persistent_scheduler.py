"""A persistent kernel whose scheduler warp hands out tiles: the CLC protocol with Hopper's means.

The scheduler is :class:`~pipesim.protocols.hopper.software_clc.SoftwareClc`; a load warp and consumers take its tiles.
"""

from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.protocols.hopper.software_clc import RESPONSE_BYTES, SoftwareClc
from pipesim.protocols.limits import ranges


@ranges(tile_bytes=(16, 1 << 17, 16))
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
    p = Protocol("persistent_scheduler")
    tile = p.smem("tile", stages, tile_bytes)
    response = p.smem("response", clc_stages, RESPONSE_BYTES)
    kernel = _Persistent(
        tile=tile,
        pipe_mbars=p.mbarriers("pipe", ProducerConsumerPipeline.smem_bytes(stages) // 8),
        clc=SoftwareClc.for_protocol(p, response, tiles=tiles, cycles=atomic),
        k_iters=k_iters,
        consumer_warps=consumer_warps,
        work=work,
    )
    p.init(kernel.init)
    p.role("scheduler")(kernel.clc.scheduler)
    p.role("load")(kernel.load)
    p.role("consumer", warps=consumer_warps)(kernel.consumer)
    return p


_BATCH_BYTES = 4 * 512  #: that a warp loads before it uses them: four words of 16 bytes a lane


@dataclass(frozen=True)
class _Persistent:
    """The kernel's memory and sizes, and its roles."""

    tile: TileArray
    pipe_mbars: BarrierStorage
    clc: SoftwareClc
    k_iters: int
    consumer_warps: int
    work: int

    def _pipe(self) -> ProducerConsumerPipeline:
        return ProducerConsumerPipeline(self.pipe_mbars, self.tile.slots)

    def init(self) -> None:
        self._pipe().init_mbars(1, self.consumer_warps)
        self.clc.init(32 * (2 + self.consumer_warps))

    def load(self, w: Warp) -> None:
        pipe, tiles, throttle = self._pipe(), self.clc.ring(), self.clc.throttle()
        for t in w.loop(self.clc.tiles, "tiles"):
            throttle.producer_signal_and_step()
            if self.k_iters:
                w.compute("persistent_scheduler/begin_loads")
            with w.elect_one():
                for k in w.loop(self.k_iters, "k_iters"):
                    with pipe.produce() as stage:
                        stage.mbar().expect_bytes(self.tile.nbytes)
                        w.tma_load(self.tile[stage.index()], stage.mbar(), t * self.k_iters + k)
                        w.compute("persistent_scheduler/load", fresh_copies=1, streamed_copies=1)
            self.clc.fetch(w, tiles, t + 1, after="persistent_scheduler/end_loads" if self.k_iters else "")

    def consumer(self, w: Warp) -> None:
        pipe, tiles = self._pipe(), self.clc.ring()
        batches = -(-self.tile.nbytes // _BATCH_BYTES)
        ragged = batches > 1 and self.tile.nbytes % _BATCH_BYTES > 0  # a lane asks of each load whether it has it
        for t in w.loop(self.clc.tiles, "tiles"):
            w.compute("persistent_scheduler/begin_row")
            for k in w.loop(self.k_iters, "k_iters"):
                with pipe.consume_explicit() as stage:
                    w.read(self.tile[stage.index()], t * self.k_iters + k)
                    w.compute(
                        "persistent_scheduler/sum",
                        rounds=batches + 2 * ragged,
                        fma=16 * (1 + w.index) * batches,
                        alu=(8 + 2 * w.index) * batches if w.index else 0,  # the loop over the powers
                        shared_bytes=self.tile.nbytes,
                    )
                    w.work(self.work)
                    with w.elect_one():
                        stage.arrive()
                        w.compute("persistent_scheduler/give_back")
            w.compute("persistent_scheduler/end_row", shuffles=5)
            self.clc.fetch(w, tiles, t + 1)
