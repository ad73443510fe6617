"""A ring of tiles with its right roles, to take whole or in pieces, and the right ring itself."""

from collections.abc import Callable
from dataclasses import dataclass

from pipesim.lang.flatten import RoleBody
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage, SharedMemBarrier
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.protocols.limits import require

TILE = 64  #: bytes of a tile


@dataclass(frozen=True)
class Ring:
    """A ring of ``stages`` tiles with a ``full`` and an ``empty`` barrier each; ``i`` counts the tiles that pass."""

    p: Protocol
    tile: TileArray
    full: BarrierStorage
    empty: BarrierStorage
    stages: int
    tiles: int

    def slot(self, i: int) -> int:
        """The stage of tile ``i``."""
        return i % self.stages

    def phase(self, i: int) -> int:
        """The parity for which the consumer of tile ``i`` waits; its producer waits for the other one."""
        return i // self.stages & 1

    def of_full(self, i: int) -> SharedMemBarrier:
        """``full`` of tile ``i``."""
        return self.full[self.slot(i)]

    def of_empty(self, i: int) -> SharedMemBarrier:
        """``empty`` of tile ``i``."""
        return self.empty[self.slot(i)]

    def acquire(self, i: int) -> None:
        """The producer waits until the slot of tile ``i`` is free."""
        self.of_empty(i).wait(self.phase(i) ^ 1)

    def load(self, w: Warp, i: int) -> None:
        """The producer's arrival with the bytes it expects, and the copy."""
        self.of_full(i).expect_bytes(TILE)
        w.tma_load(self.tile[self.slot(i)], self.of_full(i), i)

    def read(self, w: Warp, i: int) -> None:
        """The consumer waits for tile ``i`` and reads it."""
        self.of_full(i).wait(self.phase(i))
        w.read(self.tile[self.slot(i)], i)

    def release(self, i: int) -> None:
        """The consumer gives the slot back."""
        self.of_empty(i).arrive()

    def role(self, name: str, warps: int = 1) -> Callable[[RoleBody], RoleBody]:
        """Decorator: a role in which one lane of each warp executes."""

        def add(body: RoleBody) -> RoleBody:
            @self.p.role(name, warps=warps)
            def elected(w: Warp) -> None:
                with w.elect_one():
                    body(w)

            return body

        return add

    def right_producer(self) -> None:
        """Add the producer as it should be."""

        @self.role("producer")
        def producer(w: Warp) -> None:
            for i in range(self.tiles):
                self.acquire(i)
                self.load(w, i)

    def right_consumer(self, warps: int = 1) -> None:
        """Add the consumer as it should be; each of several warps reads every tile."""

        @self.role("consumer", warps=warps)
        def consumer(w: Warp) -> None:
            for i in range(self.tiles):
                self.read(w, i)
                self.release(i)


def ring(name: str, stages: int, tiles: int, *, full: int = 1, empty: int = 1, cluster: int = 1) -> Ring:
    """A ring without roles. ``full`` and ``empty``: the counts of the barriers."""
    require("stages", stages, 1, 32)
    require("tiles", tiles, 0, 1 << 16)
    p = Protocol(name, cluster=cluster)
    tile = p.smem("tile", slots=stages, nbytes=TILE)
    return Ring(p, tile, p.mbarriers("full", stages, full), p.mbarriers("empty", stages, empty), stages, tiles)


def right_ring(stages: int = 2, tiles: int = 3) -> Protocol:
    """The ring as it should be."""
    r = ring("right_ring", stages, tiles, full=1, empty=1)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.of_empty(i).wait(r.phase(i) ^ 1)
            r.of_full(i).expect_bytes(TILE)
            w.tma_load(r.tile[r.slot(i)], r.of_full(i), i)

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(r.tiles):
            r.of_full(i).wait(r.phase(i))
            w.read(r.tile[r.slot(i)], i)
            r.of_empty(i).arrive()

    return r.p
