from pipesim import Fence, Protocol, Warp
from pipesim.pipelines import ProducerConsumerPipeline


def ring(stages: int = 2, tiles: int = 8, tile_bytes: int = 1024) -> Protocol:
    """A ring that has more synchronisation than it needs: it is proved with less."""
    p = Protocol("ring")
    tile = p.smem("tile", slots=stages, nbytes=tile_bytes)
    storage = p.mbarriers("pipe", ProducerConsumerPipeline.smem_bytes(stages) // 8)

    @p.init
    def init() -> None:
        ProducerConsumerPipeline(storage, stages).init_mbars(producer_arrive_count=1, consumer_arrive_count=2)

    @p.role("load")
    def load(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(tile_bytes)
                    w.tma_load(tile[stage.index()], stage.mbar(), item=i)

    @p.role("mma")
    def mma(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        w.bar_sync(1, 32)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.consume() as stage:
                    w.read(tile[stage.index()], item=i)
                    w.fence(Fence.PROXY_ASYNC)
                    storage[stages + stage.index()].arrive()
                    w.fence(Fence.PROXY_ASYNC)

    return p
