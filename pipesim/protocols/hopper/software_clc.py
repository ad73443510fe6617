"""Cluster launch control (CLC) with Hopper's means: a scheduler warp that hands out tiles from a counter.

Upstream: ``sm100_structured/structured_kernels/tile_scheduler.mojo``, with an atomic tile counter in place of
``clusterlaunchcontrol.try_cancel``. Tile indices go through a ring of responses to every role; a throttle keeps the
scheduler from running ahead of the load warp. The kernels' side is ``hwkernels/twins/hopper/clc.cuh``.
"""

from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.pipelines import ProducerConsumerPipeline

RESPONSE_BYTES = 16


@dataclass(frozen=True)
class SoftwareClc:
    """The scheduler's memory and role. ``tiles``: what this CTA gets; ``cycles``: what a fetch takes."""

    response: TileArray
    clc_mbars: BarrierStorage
    throttle_mbars: BarrierStorage
    tiles: int
    cycles: int

    @classmethod
    def for_protocol(cls, p: Protocol, response: TileArray, *, tiles: int, cycles: int) -> "SoftwareClc":
        """Its barriers, in ``p``. ``response``: a slot of RESPONSE_BYTES for each stage of the ring."""
        nbarriers = ProducerConsumerPipeline.smem_bytes(response.slots) // 8
        return cls(response, p.mbarriers("clc", nbarriers), p.mbarriers("throttle", nbarriers), tiles, cycles)

    def init(self, readers: int) -> None:
        """Initialise the barriers. ``readers``: threads of all roles, the scheduler's too: it reads what it fetched."""
        self.ring().init_mbars(1, readers)
        self.throttle().init_mbars(32, 32)

    def ring(self) -> ProducerConsumerPipeline:
        """A role's own place in the ring of responses."""
        return ProducerConsumerPipeline(self.clc_mbars, self.response.slots)

    def throttle(self) -> ProducerConsumerPipeline:
        """The load warp's or the scheduler's own place in the throttle.

        The load warp signals before it fetches the number of its next tile: else each would wait for the other.
        """
        return ProducerConsumerPipeline(self.throttle_mbars, self.response.slots)

    def scheduler(self, w: Warp) -> None:
        """The scheduler warp: a request for every tile; the first is the CTA's own, so the last finds none."""
        ring, mine, throttle = self.ring(), self.ring(), self.throttle()
        for request in w.loop(self.tiles, "tiles"):
            throttle.consumer_signal_and_step()
            w.compute("clc/begin")
            with ring.produce() as stage, w.elect_one():
                w.work(self.cycles)
                w.compute("clc/ask", global_accesses=1)
                w.write(self.response[stage.index()], request + 1)
                stage.mbar().arrive()
                w.compute("clc/answer")
            self.fetch(w, mine, request + 1)
        for _ in range(ring.num_stages):
            ring.wait_consumer()
            ring.producer_step()

    def fetch(self, w: Warp, ring: ProducerConsumerPipeline, item: int, after: str = "") -> None:
        """What every role does for its next tile: read the response; all lanes give the stage back.

        ``after``: the name of a work before it.
        """
        with ring.consume() as stage:
            if after:
                w.compute(after)
            w.read(self.response[stage.index()], item)
            w.compute("clc/fetch", rounds=1)
        w.compute("clc/give_back")
