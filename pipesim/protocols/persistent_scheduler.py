"""A persistent kernel whose scheduler warp hands out tiles: the CLC protocol with Hopper's means.

Upstream: ``sm100_structured/structured_kernels/tile_scheduler.mojo``, with an atomic tile counter in place of
``clusterlaunchcontrol.try_cancel``. Tile indices go through a ring of responses to every role; a throttle keeps the
scheduler from running ahead of the load warp.
"""

from __future__ import annotations

from pipesim.model.protocol import Protocol
from pipesim.model.warp import Warp
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
    tile = p.smem("tile", slots=stages, nbytes=tile_bytes)
    response = p.smem("response", slots=clc_stages, nbytes=RESPONSE_BYTES)
    pipe_mbars = p.mbarriers("pipe", ProducerConsumerPipeline.smem_bytes(stages) // 8)
    clc_mbars = p.mbarriers("clc", ProducerConsumerPipeline.smem_bytes(clc_stages) // 8)
    throttle_mbars = p.mbarriers("throttle", ProducerConsumerPipeline.smem_bytes(clc_stages) // 8)

    @p.init
    def init() -> None:
        ProducerConsumerPipeline(pipe_mbars, stages).init_mbars(1, consumer_warps)
        ProducerConsumerPipeline(clc_mbars, clc_stages).init_mbars(1, 32 * (1 + consumer_warps))
        ProducerConsumerPipeline(throttle_mbars, clc_stages).init_mbars(32, 32)

    @p.role("scheduler")
    def scheduler(w: Warp) -> None:
        clc, throttle = _ring(clc_mbars, clc_stages), _ring(throttle_mbars, clc_stages)
        for request in w.loop(tiles, "tiles"):  # the first tile is the CTA's own number, so the last fetch finds none
            throttle.consumer_signal_and_step()
            with clc.produce() as stage, w.elect_one():
                w.work(atomic)
                w.write(response[stage.index()], request + 1)
                stage.mbar().arrive()
        for _ in range(clc_stages):
            clc.wait_consumer()
            clc.producer_step()

    @p.role("load")
    def load(w: Warp) -> None:
        pipe, clc, throttle = _ring(pipe_mbars, stages), _ring(clc_mbars, clc_stages), _ring(throttle_mbars, clc_stages)
        for t in w.loop(tiles, "tiles"):
            throttle.producer_signal_and_step()  # before the fetch of the next: else each waits for the other
            with w.elect_one():
                for k in w.loop(k_iters, "k_iters"):
                    with pipe.produce() as stage:
                        stage.mbar().expect_bytes(tile_bytes)
                        w.tma_load(tile[stage.index()], stage.mbar(), t * k_iters + k)
            _fetch(w, clc, t + 1)

    @p.role("consumer", warps=consumer_warps)
    def consumer(w: Warp) -> None:
        pipe, clc = _ring(pipe_mbars, stages), _ring(clc_mbars, clc_stages)
        for t in w.loop(tiles, "tiles"):
            for k in w.loop(k_iters, "k_iters"):
                with pipe.consume_explicit() as stage:
                    w.read(tile[stage.index()], t * k_iters + k)
                    w.work(work)
                    with w.elect_one():
                        stage.arrive()
            _fetch(w, clc, t + 1)

    def _fetch(w: Warp, clc: ProducerConsumerPipeline, item: int) -> None:
        """What every role does for its next tile: read the response; all lanes give the stage back."""
        with clc.consume() as stage:
            w.read(response[stage.index()], item)

    return p


_ring = ProducerConsumerPipeline
