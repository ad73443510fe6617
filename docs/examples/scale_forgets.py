from pipesim import Engine, Fence, Protocol, Warp
from pipesim.pipelines import ProducerConsumerPipeline as Pipeline


def scale(stages: int = 4, out_stages: int = 2, tiles: int = 32, tile_bytes: int = 16384, work: int = 400) -> Protocol:
    """The same, but the slot that was read is never given back: it hangs."""
    p = Protocol("scale")
    tile_in = p.smem("tile_in", slots=stages, nbytes=tile_bytes)
    tile_out = p.smem("tile_out", slots=out_stages, nbytes=tile_bytes)
    bars_in = p.mbarriers("in", Pipeline.smem_bytes(stages) // 8)
    bars_out = p.mbarriers("out", Pipeline.smem_bytes(out_stages) // 8)

    @p.init
    def init() -> None:
        Pipeline(bars_in, stages).init_mbars(producer_arrive_count=1, consumer_arrive_count=2)
        Pipeline(bars_out, out_stages).init_mbars(producer_arrive_count=2, consumer_arrive_count=1)

    @p.role("load")
    def load(w: Warp) -> None:
        into = Pipeline(bars_in, stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with into.produce() as stage:
                    stage.mbar().expect_bytes(tile_bytes)
                    w.tma_load(tile_in[stage.index()], stage.mbar(), item=i)

    @p.role("scale", warps=2)
    def scale(w: Warp) -> None:
        source, target = Pipeline(bars_in, stages), Pipeline(bars_out, out_stages)
        half = tile_bytes // 2
        for i in w.loop(tiles, "tiles"):
            with source.consume_explicit() as full, target.produce() as empty:
                w.read(tile_in[full.index()].part(w.index * half, half), item=i)
                w.work(cycles=work)
                w.write(tile_out[empty.index()].part(w.index * half, half), item=i)
                w.fence(Fence.PROXY_ASYNC)
                with w.elect_one():
                    empty.mbar().arrive()

    @p.role("store")
    def store(w: Warp) -> None:
        outof = Pipeline(bars_out, out_stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with outof.consume() as stage:
                    w.async_read(Engine.BULK, tile_out[stage.index()], item=i)
                    w.commit(Engine.BULK)
                    w.wait_group(Engine.BULK)

    return p
