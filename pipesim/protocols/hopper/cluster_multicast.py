"""A cluster whose CTAs load parts of a shared tile and multicast them to each other.

Upstream: the multicast loads of ``linalg/matmul/gpu/sm90/tile_loader.mojo``; the drain at the end is that of
``sm100_structured`` kernels. What makes it delicate: every CTA writes into, and signals, every other one, so a slot is
free only when all CTAs have read it, and no CTA may exit while a peer still writes to it or signals it.
"""

from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import Slot, TileArray
from pipesim.lang.warp import Warp
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.protocols.limits import ranges, require


@ranges(tiles=(0, 1 << 18), own_bytes=(16, 1 << 17, 16))
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
    require("shared_bytes", shared_bytes, 16 * cluster, 1 << 17, multiple_of=16 * cluster)

    p = Protocol("cluster_multicast", cluster=cluster)
    kernel = _Multicast(
        own=p.smem("own", stages, own_bytes),
        shared=p.smem("shared", stages, shared_bytes),
        storage=p.mbarriers("pipe", ProducerConsumerPipeline.smem_bytes(stages) // 8),
        cluster=cluster,
        tiles=tiles,
        consumer_warps=consumer_warps,
        work=work,
    )
    p.init(kernel.init)
    p.role("producer")(kernel.producer)
    p.role("consumer", warps=consumer_warps)(kernel.consumer)
    return p


_WARP_LOAD = 512  #: bytes that a warp loads by one instruction
_UNROLLED = 4  #: iterations of the loop over a tile that are one
_FENCES_BESIDE = 14  #: other warps at most whose arrives at cluster scope make one's own longer
_NEAR_CTAS, _FENCES_OF_MANY = 4, 8  #: those of this many CTAs do; with this many CTAs at least this many warps


@dataclass(frozen=True)
class _Multicast:
    """The kernel's memory and sizes, and its roles."""

    own: TileArray
    shared: TileArray
    storage: BarrierStorage
    cluster: int
    tiles: int
    consumer_warps: int
    work: int

    def _pipe(self) -> ProducerConsumerPipeline:
        return ProducerConsumerPipeline(self.storage, self.own.slots)

    def init(self) -> None:
        self._pipe().init_mbars(producer_arrive_count=1, consumer_arrive_count=self.consumer_warps * self.cluster)

    def producer(self, w: Warp) -> None:
        pipe = self._pipe()
        everyone = (1 << self.cluster) - 1 if self.cluster > 1 else 0
        with w.elect_one():
            for item in w.loop(self.tiles, "tiles"):
                stage = pipe.acquire_producer()
                stage.mbar().expect_bytes(self.own.nbytes + self.shared.nbytes)
                w.tma_load(self.own[stage.index()], stage.mbar(), item)
                w.compute("cluster_multicast/load_own", fresh_copies=1, streamed_copies=1)
                w.tma_load(self._part(stage.index(), w.cta), stage.mbar(), item, cta_mask=everyone)
                w.compute("cluster_multicast/load_part", fresh_copies=1, streamed_copies=1)
                stage.release()
            for _ in range(pipe.num_stages):  # the drain: until every CTA has given back what was multicast to it
                pipe.wait_consumer()
                w.compute("cluster_multicast/drain")
                pipe.producer_step()

    def consumer(self, w: Warp) -> None:
        pipe = self._pipe()
        for item in w.loop(self.tiles, "tiles"):
            stage = pipe.acquire_consumer()
            w.compute("cluster_multicast/take")
            w.read(self.own[stage.index()], item)
            w.compute("cluster_multicast/begin_sum")  # one loop reads both tiles: its time is that of the second
            w.read(self.shared[stage.index()], item)
            w.compute("cluster_multicast/correlate", **self._correlate())
            w.work(self.work)
            with w.elect_one():
                for rank in range(self.cluster):
                    stage.mbar().arrive_cluster(rank)
                    w.compute(f"cluster_multicast/{self._which(rank)}", **self._fences(rank))
            stage.release_without_signal()

    def _which(self, rank: int) -> str:
        """The arrive at this CTA: the first waits for the sum's store, and after the last the loop continues."""
        if self.cluster == 1:
            return "only_arrive"
        return {0: "first_arrive", self.cluster - 1: "last_arrive"}.get(rank, "arrive")

    def _fences(self, rank: int) -> dict[str, int]:
        near = min(self.cluster, _NEAR_CTAS)
        least = _FENCES_OF_MANY if near == _NEAR_CTAS else 0
        beside = min(max(near * self.consumer_warps - 1, least), _FENCES_BESIDE) if rank else 0
        return {"cluster_fences": 1, "fences_beside": beside}

    def _correlate(self) -> dict[str, int]:
        """A warp's products of both tiles, and the sum over its lanes. Where the loads of a lane do not fill the
        unrolled loop, those that are left wait for each other, and compute their places.
        """
        loads = -(-self.own.nbytes // _WARP_LOAD)
        left = loads % _UNROLLED
        amounts = {"fma": 8 * loads, "shared_bytes": 2 * self.own.nbytes, "shuffles": 5}
        return amounts | ({"rounds": left, "alu": 8 * left} if left else {})

    def _part(self, slot: int, rank: int) -> Slot:
        """What the CTA of this rank loads of a shared tile, for all of them."""
        size = self.shared.nbytes // self.cluster
        return self.shared[slot].part(rank * size, size)
