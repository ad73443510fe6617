"""my_kernel: a pipeline to start from. One warp loads tiles, two compute, one stores the results.

    pipesim check my_kernel.py                  check every schedule: proved, or one that fails and its correction
    pipesim check my_kernel.py -p stages=2      the same with another value of a parameter below
    pipesim run my_kernel.py                    simulate it: where does the time go?
    pipesim verify my_kernel.py --no-hardware   both in one report

What to change first: (1) the tiles and their sizes, (2) the roles and their warps, (3) the arrival counts in ``init``,
which follow from the roles, (4) ``w.work``: the cycles that your computation takes for a tile.
"""

from pipesim import Engine, Fence, Protocol, Warp
from pipesim.pipelines import ProducerConsumerPipeline


# Every parameter is a whole number with a default; `-p NAME=VALUE` sets it.
def my_kernel(
    stages: int = 4,
    out_stages: int = 2,
    tiles: int = 64,
    tile_bytes: int = 16384,
    compute_warps: int = 2,
    work: int = 600,
) -> Protocol:
    """Tiles are loaded, computed and stored by three roles, with a ring between each two of them."""
    p = Protocol("my_kernel")

    # Shared memory: two rings of tiles. A slot is named tile_in[0] .. tile_in[stages - 1].
    tile_in = p.smem("tile_in", slots=stages, nbytes=tile_bytes)
    tile_out = p.smem("tile_out", slots=out_stages, nbytes=tile_bytes)

    # A pipeline has two mbarriers a stage: full (the tile may be read) and empty (the slot may be filled again).
    into = p.mbarriers("into", ProducerConsumerPipeline.smem_bytes(stages) // 8)
    outof = p.mbarriers("outof", ProducerConsumerPipeline.smem_bytes(out_stages) // 8)

    # One thread of a CTA runs this, before any role; the fence and the __syncthreads() after it are added for you.
    # The counts are how many arrivals complete a phase: those of the role(s) on either side, added up.
    @p.init
    def init() -> None:
        ProducerConsumerPipeline(into, stages).init_mbars(
            producer_arrive_count=1,  # the load warp's arrive.expect_tx
            consumer_arrive_count=compute_warps,  # one elected lane of each compute warp
        )
        ProducerConsumerPipeline(outof, out_stages).init_mbars(
            producer_arrive_count=compute_warps,  # one elected lane of each compute warp
            consumer_arrive_count=1,  # the store warp
        )

    # A role is what one warp does, from start to end. It only records operations; `w` is the warp.
    @p.role("load")
    def load(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(into, stages)  # this warp's own stage and phase; the barriers are shared
        with w.elect_one():  # one lane: an arrive counts once for each lane that executes it
            for i in w.loop(tiles, "tiles"):  # like range(tiles), and names the parameter of the trip count
                with pipe.produce() as stage:  # waits until the slot is empty; at its end only steps to the next stage
                    stage.mbar().expect_bytes(tile_bytes)  # mbarrier.arrive.expect_tx on full: an arrival and the bytes
                    w.tma_load(tile_in[stage.index()], stage.mbar(), item=i)  # the slot will hold item i of the input

    @p.role("compute", warps=compute_warps)
    def compute(w: Warp) -> None:
        source = ProducerConsumerPipeline(into, stages)
        target = ProducerConsumerPipeline(outof, out_stages)
        share = tile_bytes // compute_warps  # w.index is 0, 1, ...: each warp has its part of every tile, all have all
        for i in w.loop(tiles, "tiles"):
            # consume_explicit: waits until the slot is full; the arrive on empty is ours, so that one lane makes it.
            with source.consume_explicit() as stage:
                # item=i says which tile must be there: the run reports if it is another, or has not landed.
                w.read(tile_in[stage.index()].part(w.index * share, share), item=i)
                w.work(cycles=work)  # what your computation takes: measure it, or try several
                with w.elect_one():
                    stage.arrive()  # the slot may be filled again
            with target.produce() as stage:  # waits until the store warp has emptied the slot
                w.write(tile_out[stage.index()].part(w.index * share, share), item=i)
                w.fence(Fence.PROXY_ASYNC)  # the store below reads through the async proxy
                with w.elect_one():
                    stage.mbar().arrive()  # the result is there

    @p.role("store")
    def store(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(outof, out_stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.consume() as stage:  # waits until the slot is full; at its end arrives on empty and steps
                    w.async_read(Engine.BULK, tile_out[stage.index()], item=i)  # cp.async.bulk to global memory
                    w.commit(Engine.BULK)  # cp.async.bulk.commit_group
                    w.wait_group(Engine.BULK)  # until the slot has been read; without it the next tile may overwrite it

    return p
