"""Random programs whose warps use the copy engine of their SM in an order that depends on times: loads and stores."""

import random
from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence
from pipesim.model.program import Program
from pipesim.pipelines import ProducerConsumerPipeline


@dataclass(frozen=True)
class _Chain:
    """A warp that loads tiles, and one that uses and may store them. ``begin``: work of the first before its loop."""

    stages: int
    tiles: int
    nbytes: int
    begin: int
    work: int
    stored: int  #: bytes of a store, 0: none
    every: int  #: how many tiles it stores together
    pending: int  #: groups of stores that may be under way

    @classmethod
    def drawn(cls, draw: random.Random) -> "_Chain":
        """A random one."""
        return cls(
            stages=draw.randint(1, 3),
            tiles=draw.randint(1, 8),
            nbytes=draw.choice([16, 64, 256, 4096]),
            begin=draw.randint(1, 300),
            work=draw.choice([0, 5, 60, draw.randint(1, 400)]),
            stored=draw.choice([0, 16, 512, 4096]),
            every=draw.randint(1, 3),
            pending=draw.choice([0, 0, 1]),
        )


def random_copies(seed: int) -> Program:
    """The program of this seed: some chains beside each other; each may wait for one before it every few tiles."""
    draw = random.Random(seed)
    p = Protocol("copies")
    chains = [_Chain.drawn(draw) for _ in range(draw.randint(2, 3))]
    waits = draw.choice([False, True])
    gates = p.mbarriers("gate", len(chains))
    rings = [p.mbarriers(f"ring{n}", 2 * chain.stages) for n, chain in enumerate(chains)]

    def init() -> None:
        for gate in gates:
            gate.init(1)
        for chain, ring in zip(chains, rings, strict=True):
            ProducerConsumerPipeline(ring, chain.stages).init_mbars(1, 1)

    p.init(init)
    for n, chain in enumerate(chains):
        tile = p.smem(f"tile{n}", chain.stages, chain.nbytes)
        result = p.smem(f"result{n}", 1, max(1, chain.stored))

        @p.role(f"load{n}")
        def load(w: Warp, n: int = n, chain: _Chain = chain, tile: TileArray = tile) -> None:
            pipe = ProducerConsumerPipeline(rings[n], chain.stages)
            w.work(chain.begin)
            with w.elect_one():
                if n and waits:
                    gates[n - 1].wait(0)
                for i in w.loop(chain.tiles, "tiles"):
                    pipe.wait_consumer()
                    full = pipe.producer_mbar(pipe.producer_stage())
                    full.expect_bytes(chain.nbytes)
                    w.tma_load(tile[pipe.producer_stage()], full, i)
                    pipe.producer_step()

        @p.role(f"use{n}")
        def use(w: Warp, n: int = n, chain: _Chain = chain, tile: TileArray = tile, result: TileArray = result) -> None:
            pipe = ProducerConsumerPipeline(rings[n], chain.stages)
            for i in w.loop(chain.tiles, "tiles"):
                pipe.wait_producer()
                w.read(tile[pipe.consumer_stage()], i)
                if chain.work:
                    w.work(chain.work)
                with w.elect_one():
                    pipe.consumer_mbar(pipe.consumer_stage()).arrive()
                    if i == chain.tiles // 2:
                        gates[n].arrive()
                pipe.consumer_step()
                if chain.stored and i % chain.every == 0:
                    _store(w, result, i, chain.pending)
            with w.elect_one():
                w.wait_group(Engine.BULK)

    return p.flatten({})


def _store(w: Warp, result: TileArray, item: int, pending: int) -> None:
    """Write a result and store it; with stores pending it is that of an earlier tile once more."""
    if not pending:
        w.write(result[0], item)
        w.fence(Fence.PROXY_ASYNC)
    elif item == 0:
        w.write(result[0], 0)
        w.fence(Fence.PROXY_ASYNC)
    with w.elect_one():
        w.async_read(Engine.BULK, result[0], 0 if pending else item)
        w.commit(Engine.BULK)
        w.wait_group(Engine.BULK, pending)
