"""A cluster whose CTAs load parts of a shared tile and multicast them to each other.

Upstream: the multicast loads of ``linalg/matmul/gpu/sm90/tile_loader.mojo``; the drain at the end is that of
``sm100_structured`` kernels. What makes it delicate: every CTA writes into, and signals, every other one, so a slot is
free only when all CTAs have read it, and no CTA may exit while a peer still writes to it or signals it.
"""

from __future__ import annotations

from pipesim.model.protocol import Protocol
from pipesim.model.warp import Warp
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.protocols.limits import require


def cluster_multicast(
    cluster: int = 2,
    stages: int = 4,
    tiles: int = 16,
    own_bytes: int = 8192,
    shared_bytes: int = 8192,
    consumer_warps: int = 2,
    work: int = 600,
) -> Protocol:
    """CTAs of a cluster load a tile of their own and a part each of a shared tile, which is multicast to all of them.

    Every stage is given back to all CTAs by remote arrives; the producer drains the ring before it exits. ``work``: SM
    cycles per tile and warp.
    """
    require("cluster", cluster, 1, 8, one_of=(1, 2, 4, 8))
    require("stages", stages, 1, 32)
    require("tiles", tiles, 0, 1 << 18)
    require("own_bytes", own_bytes, 16, 1 << 17, multiple_of=16)
    require("shared_bytes", shared_bytes, 16 * cluster, 1 << 17, multiple_of=16 * cluster)
    require("consumer_warps", consumer_warps, 1, 8)
    require("work", work, 0, 1 << 24)
    part, everyone = shared_bytes // cluster, (1 << cluster) - 1

    p = Protocol("cluster_multicast", cluster=cluster)
    own = p.smem("own", slots=stages, nbytes=own_bytes)
    shared = p.smem("shared", slots=stages, nbytes=shared_bytes)
    storage = p.mbarriers("pipe", ProducerConsumerPipeline.smem_bytes(stages) // 8)

    @p.init
    def init() -> None:
        ProducerConsumerPipeline(storage, stages).init_mbars(
            producer_arrive_count=1, consumer_arrive_count=consumer_warps * cluster
        )

    @p.role("producer")
    def producer(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for item in w.loop(tiles, "tiles"):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(own_bytes + shared_bytes)
                    w.tma_load(own[stage.index()], stage.mbar(), item)
                    mine = shared[stage.index()].part(w.cta * part, part)
                    w.tma_load(mine, stage.mbar(), item, cta_mask=everyone if cluster > 1 else 0)
            for _ in range(stages):  # the drain: until every CTA has given back what was multicast to it
                pipe.wait_consumer()
                pipe.producer_step()

    @p.role("consumer", warps=consumer_warps)
    def consumer(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        for item in w.loop(tiles, "tiles"):
            stage = pipe.acquire_consumer()
            w.read(own[stage.index()], item)
            for rank in range(cluster):  # as it was copied: a part from each CTA
                w.read(shared[stage.index()].part(rank * part, part), item)
            w.work(work)
            with w.elect_one():
                for rank in range(cluster):
                    stage.mbar().arrive_cluster(rank)
            stage.release_without_signal()

    return p
