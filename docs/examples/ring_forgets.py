from pipesim import Protocol, Warp
from pipesim.pipelines import ProducerConsumerPipeline


def ring(stages: int = 4, tiles: int = 64, tile_bytes: int = 16384) -> Protocol:
    """The same ring, but the consumer gives back only every second stage: it hangs."""
    p = Protocol("ring")
    tile = p.smem("tile", slots=stages, nbytes=tile_bytes)
    storage = p.mbarriers("pipe", ProducerConsumerPipeline.smem_bytes(stages) // 8)

    @p.init
    def init() -> None:
        ProducerConsumerPipeline(storage, stages).init_mbars(producer_arrive_count=1, consumer_arrive_count=1)

    @p.role("load")
    def load(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():  # an arrive counts one for each executing lane
            for i in range(tiles):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(tile_bytes)  # arrive.expect_tx
                    w.tma_load(tile[stage.index()], stage.mbar(), item=i)

    @p.role("mma")
    def mma(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for i in range(tiles):
                with pipe.consume_explicit() as stage:
                    w.read(tile[stage.index()], item=i)
                    w.work(cycles=512)
                    if i % 2 == 0:
                        stage.arrive()

    return p
