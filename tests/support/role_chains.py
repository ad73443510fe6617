"""Protocols of several roles and rings, for the bound of any program."""

from collections.abc import Callable
from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.pipelines import ProducerConsumerPipeline

BYTES = 64


@dataclass(frozen=True)
class Link:
    """One role of a chain: it takes from the ring before it, works, and hands on to a ring of ``stages``.

    With ``engine`` cycles it hands on by an MMA's commit, which also hands back what it took.
    """

    stages: int = 2
    work: int = 0
    warps: int = 1
    engine: int = 0


def chain(links: list[Link], tiles: int = 64) -> Protocol:
    """A load role, then a role for each link; the last hands on to nobody. Link 0's stages are the load's ring."""
    p = Protocol("chain")
    slots = p.smem("tile", links[0].stages, BYTES)
    acc = [p.tmem(f"acc{n}", link.stages, BYTES) for n, link in enumerate(links)]
    bars = [p.mbarriers(f"p{n}", 2 * link.stages) for n, link in enumerate(links)]

    @p.init
    def init() -> None:
        for n, link in enumerate(links):  # the MMA is one arrival, an elected lane of each warp is one
            taker = 1 if link.engine else link.warps
            giver = 1 if n == 0 or links[n - 1].engine else links[n - 1].warps
            ProducerConsumerPipeline(bars[n], link.stages).init_mbars(giver, taker)

    @p.role("load")
    def load(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(bars[0], links[0].stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(BYTES)
                    w.tma_load(slots[stage.index()], stage.mbar(), i)

    for n, link in enumerate(links):
        p.role(f"r{n}", warps=1 if link.engine else link.warps)(_role(links, bars, acc, slots, n, tiles))
    return p


def _role(
    links: list[Link], bars: list[BarrierStorage], acc: list[TileArray], slots: TileArray, n: int, tiles: int
) -> Callable[[Warp], None]:
    """What link ``n`` of the chain does."""
    link, last = links[n], n + 1 == len(links)

    def body(w: Warp) -> None:
        takes = ProducerConsumerPipeline(bars[n], link.stages)
        gives = None if last else ProducerConsumerPipeline(bars[n + 1], links[n + 1].stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                takes.wait_producer()
                source = takes.consumer_mbar(takes.consumer_stage())
                if gives is not None:
                    gives.wait_consumer()
                if link.engine:
                    reads = [(slots[takes.consumer_stage()], i)] if n == 0 else []
                    to = acc[n][0] if gives is None else acc[n][gives.producer_stage() % link.stages]
                    w.mma(Engine.TCGEN05, reads=reads, writes=[(to, i)], cycles=link.engine)
                    w.commit(Engine.TCGEN05, source)
                else:
                    if n == 0:
                        w.read(slots[takes.consumer_stage()], i)
                    w.work(link.work)
                    source.arrive()
                if gives is not None:
                    full = gives.producer_mbar(gives.producer_stage())
                    if link.engine:
                        w.commit(Engine.TCGEN05, full)
                    else:
                        full.arrive()
                    gives.producer_step()
                takes.consumer_step()

    return body
