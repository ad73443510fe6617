"""One producer warp fills a ring of tiles with bulk copies; consumer warps read them.

The twin is ``hwkernels/twins/hopper/producer_consumer.cu``.
"""

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.protocols.limits import ranges, require

_WARP_LOAD = 512  #: bytes that a warp loads by one instruction
_ASKED = 8  #: of a batch of loads those whose sums wait for the question whether they are in the share


@ranges(tiles=(0, 1 << 20), tile_bytes=(16, 1 << 20, 16))
def producer_consumer(
    stages: int = 4,
    tiles: int = 64,
    tile_bytes: int = 16384,
    consumer_warps: int = 2,
    work: int = 600,
    arrive_lanes: int = 1,
) -> Protocol:
    """One load warp fills a ring of tiles with bulk copies, consumer warps read each tile and work on it.

    ``work`` is in SM cycles per tile and warp; ``arrive_lanes`` is how many lanes of a consumer warp arrive on a tile
    (1 or 32). Shapes: ``stages`` slots of ``tile_bytes``; every consumer warp reads its share of every tile.
    """
    require("arrive_lanes", arrive_lanes, 1, 32, one_of=(1, 32))

    p = Protocol("producer_consumer")
    tile = p.smem("tile", slots=stages, nbytes=tile_bytes)
    storage = p.mbarriers("pipe", ProducerConsumerPipeline.smem_bytes(stages) // 8)

    @p.init
    def init() -> None:
        ProducerConsumerPipeline(storage, stages).init_mbars(
            producer_arrive_count=1, consumer_arrive_count=consumer_warps * arrive_lanes
        )

    @p.role("producer")
    def producer(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for item in w.loop(tiles, "tiles"):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(tile_bytes)
                    w.tma_load(tile[stage.index()], stage.mbar(), item)
                    w.compute("producer_consumer/load", fresh_copies=1)  # every tile is another one

    @p.role("consumer", warps=consumer_warps)
    def consumer(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        share = tile_bytes // 16 // consumer_warps * 16
        first = w.index * share
        length = tile_bytes - first if w.index == consumer_warps - 1 else share
        largest = tile_bytes - (consumer_warps - 1) * share
        loads = -(-largest // _WARP_LOAD)  # of each lane: the kernel has one code for all warps
        ragged = tile_bytes % (_WARP_LOAD * consumer_warps) != 0  # then every load asks whether it is in the share
        for item in w.loop(tiles, "tiles"):
            with pipe.consume_explicit() as stage:
                if length:
                    w.read(tile[stage.index()].part(first, length), item)
                    w.compute(
                        "producer_consumer/sum",
                        rounds=(loads - 1) // 16,  # of the first one the time is part of the overhead
                        alu=6 * min(loads, _ASKED) if ragged else 0,  # the others pass while more is loaded
                        shared_bytes=_WARP_LOAD * loads,
                    )
                w.work(work)
                with w.lanes(arrive_lanes):
                    stage.arrive()

    return p
