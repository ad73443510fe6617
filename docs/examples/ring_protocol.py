import pytest

from pipesim import Protocol, Warp
from pipesim.pipelines import ProducerConsumerPipeline


@pytest.mark.pipesim(consumers=[1, 2], tiles=5)
def ring(stages: int = 2, tiles: int = 64, consumers: int = 2, tile_bytes: int = 16384) -> Protocol:
    """A ring whose empty barriers count two consumer warps, however many there are."""
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

    @p.role("mma", warps=consumers)
    def mma(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.consume() as stage:
                    w.read(tile[stage.index()], item=i)
                    w.work(cycles=512)

    return p
