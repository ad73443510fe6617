from pipesim import Protocol, Warp
from pipesim.pipelines import ProducerConsumerPipeline


def rowsum(stages: int = 4, tiles: int = 32, tile_bytes: int = 16384, math_warps: int = 8, work: int = 470) -> Protocol:
    """Row sums: one warp copies a CTA's tiles, math warps add a share of the rows of each."""
    p = Protocol("rowsum")
    tile = p.smem("tile", slots=stages, nbytes=tile_bytes)
    storage = p.mbarriers("pipe", ProducerConsumerPipeline.smem_bytes(stages) // 8)

    @p.init
    def init() -> None:
        ProducerConsumerPipeline(storage, stages).init_mbars(producer_arrive_count=1, consumer_arrive_count=math_warps)

    @p.role("math", warps=math_warps)
    def math(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        share = tile_bytes // math_warps
        for i in w.loop(tiles, "tiles"):
            with pipe.consume_explicit() as stage:
                w.read(tile[stage.index()].part(w.index * share, share), item=i)
                w.work(cycles=work)
                with w.elect_one():
                    stage.arrive()

    @p.role("loader")
    def loader(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(tile_bytes)
                    w.tma_load(tile[stage.index()], stage.mbar(), item=i)

    return p
