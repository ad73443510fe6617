"""Tiles handed over at split named barriers and in clusters, and lanes of a warp that are apart."""

from __future__ import annotations

from enum import Enum

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine

TILE, TILES, STAGES = 64, 5, 2
FULL, EMPTY = 1, 3  #: the first of two named barriers each
THREADS = 96  #: of one writer warp and two reader warps


class NamedSlip(Enum):
    """What is done wrong in :func:`split_named`; the value says what was meant."""

    NONE = ""
    READERS_SAY_64 = "96 threads at named barriers 1 and 2 instead of 64"
    EVERYBODY_SAYS_128 = "96 threads at named barriers 3 and 4 instead of 128"
    READERS_ONLY_ARRIVE = "reader waits at named barriers 1 and 2 as well: bar_sync instead of bar_arrive"
    NOT_PRIMED = "reader arrives at named barriers 3 and 4 (96 threads) once before it begins"
    NO_ACQUIRE = "writer executes bar_sync at named barriers 3 and 4 (96 threads) before the write to tile"
    OTHER_BUFFER = "reader uses named barriers 1 and 2 in the other order at the bar_sync: the one of its own stage"


def split_named(slip: NamedSlip = NamedSlip.NONE) -> Protocol:
    """A writer and two readers, two buffers: each pair of named barriers has one side that syncs, one that arrives."""
    s = NamedSlip
    p = Protocol("split_named")
    tile = p.smem("tile", STAGES, TILE)
    freed = 128 if slip is s.EVERYBODY_SAYS_128 else THREADS

    @p.role("writer")
    def writer(w: Warp) -> None:
        for i in range(TILES):
            if slip is not s.NO_ACQUIRE:
                w.bar_sync(EMPTY + i % STAGES, freed)
            w.write(tile[i % STAGES], i)
            w.bar_arrive(FULL + i % STAGES, THREADS)

    @p.role("reader", warps=2)
    def reader(w: Warp) -> None:
        said = 64 if slip is s.READERS_SAY_64 else THREADS
        if slip is not s.NOT_PRIMED:
            for stage in range(STAGES):
                w.bar_arrive(EMPTY + stage, freed)
        for i in range(TILES):
            at = (i + 1) % STAGES if slip is s.OTHER_BUFFER else i % STAGES
            if slip is s.READERS_ONLY_ARRIVE:
                w.bar_arrive(FULL + at, said)
            else:
                w.bar_sync(FULL + at, said)
            w.read(tile[i % STAGES], i)
            if i + STAGES < TILES:
                w.bar_arrive(EMPTY + i % STAGES, freed)

    return p


class ClusterSlip(Enum):
    """What is done wrong in :func:`multicast_ring`; the value says what was meant."""

    NONE = ""
    PEER_NOT_COUNTED = "initialise empty with a count of 2 instead of 1"
    ARRIVES_AT_HOME_ONLY = "consumer arrives on empty of every CTA of the cluster, not only of its own"
    EXPECTS_ITS_HALF = "load expects 64 bytes on full instead of 32: as many as are copied"
    NO_SYNC_AT_THE_END = "every warp of the cluster meets the others (cluster_sync) before it exits"
    HALF_THE_MASK = "load multicasts on full to the CTAs of mask 0b11 instead of 0b1"


def multicast_ring(slip: ClusterSlip = ClusterSlip.NONE) -> Protocol:
    """Each CTA of a pair loads a half of every tile for both, when both have given the stage back."""
    s = ClusterSlip
    p = Protocol("multicast_ring", cluster=2)
    tile = p.smem("tile", STAGES, TILE)
    full = p.mbarriers("full", STAGES, 1)
    empty = p.mbarriers("empty", STAGES, 1 if slip is s.PEER_NOT_COUNTED else 2)
    half = TILE // 2

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in range(TILES):
                stage, lap = i % STAGES, i // STAGES
                empty[stage].wait(lap & 1 ^ 1)
                full[stage].expect_bytes(half if slip is s.EXPECTS_ITS_HALF else TILE)
                mask = 1 << w.cta if slip is s.HALF_THE_MASK else 0b11
                w.tma_load(tile[stage].part(w.cta * half, half), full[stage], i, cta_mask=mask)
        if slip is not s.NO_SYNC_AT_THE_END:
            w.cluster_sync()

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(TILES):
            stage, lap = i % STAGES, i // STAGES
            full[stage].wait(lap & 1)
            w.read(tile[stage], i)
            with w.elect_one():
                for rank in range(2):
                    if slip is not s.ARRIVES_AT_HOME_ONLY or rank == w.cta:
                        empty[stage].arrive_cluster(rank)
        if slip is not s.NO_SYNC_AT_THE_END:
            w.cluster_sync()

    return p


class LaneSlip(Enum):
    """What is done wrong in :func:`lanes_apart`; the value says what was meant."""

    NONE = ""
    WAIT_OUTSIDE = "put the wait for empty inside elect_one(): only one lane of the warp needs it"
    WAIT_INSIDE = "put the wait for full outside elect_one(): every lane of the warp needs it"
    NO_SYNC_WARP = "the lanes of the warp meet at __syncwarp() after the read of tile"


def lanes_apart(slip: LaneSlip = LaneSlip.NONE) -> Protocol:
    """A ring in which nothing holds the lanes of a warp together but ``__syncwarp()``."""
    s = LaneSlip
    p = Protocol("lanes_apart")
    tile = p.smem("tile", STAGES, TILE)
    full, empty = p.mbarriers("full", STAGES, 1), p.mbarriers("empty", STAGES, 1)

    @p.role("load", lanes_apart=True)
    def load(w: Warp) -> None:
        for i in range(TILES):
            stage, lap = i % STAGES, i // STAGES
            if slip is s.WAIT_OUTSIDE:
                empty[stage].wait(lap & 1 ^ 1)
            with w.elect_one():
                if slip is not s.WAIT_OUTSIDE:
                    empty[stage].wait(lap & 1 ^ 1)
                full[stage].expect_bytes(TILE)
                w.tma_load(tile[stage], full[stage], i)

    @p.role("consumer", lanes_apart=True)
    def consumer(w: Warp) -> None:
        for i in range(TILES):
            stage, lap = i % STAGES, i // STAGES
            if slip is s.WAIT_INSIDE:
                with w.elect_one():
                    full[stage].wait(lap & 1)
            else:
                full[stage].wait(lap & 1)
            w.read(tile[stage], i)
            if slip is not s.NO_SYNC_WARP:
                w.sync_warp()
            with w.elect_one():
                empty[stage].arrive()

    return p


class SpectatorSlip(Enum):
    """What is done wrong in :func:`spectators`; the value says what was meant."""

    NONE = ""
    IDLE_WARPS_WAIT = "watcher: warps that neither use a stage nor arrive for it do not wait for full"
    NOT_COUNTED = "every warp of consumer arrives on empty, initialised with a count of 3 instead of 2"
    MMA_ARRIVES = "mma commits to empty instead of the arrive: when its MMAs have ended"


def spectators(slip: SpectatorSlip = SpectatorSlip.NONE) -> Protocol:
    """A ring with two reading warps, a tcgen05 warp, and a warp that looks on."""
    s = SpectatorSlip
    p = Protocol("spectators")
    tile = p.smem("tile", STAGES, TILE)
    readers = 1 if slip is s.NOT_COUNTED else 2
    full, empty = p.mbarriers("full", STAGES, 1), p.mbarriers("empty", STAGES, readers + 1)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in range(TILES):
                stage, lap = i % STAGES, i // STAGES
                empty[stage].wait(lap & 1 ^ 1)
                full[stage].expect_bytes(TILE)
                w.tma_load(tile[stage], full[stage], i)

    @p.role("consumer", warps=2)
    def consumer(w: Warp) -> None:
        for i in range(TILES):
            stage, lap = i % STAGES, i // STAGES
            full[stage].wait(lap & 1)
            w.read(tile[stage], i)
            if w.index < readers:
                with w.elect_one():
                    empty[stage].arrive()

    @p.role("mma")
    def mma(w: Warp) -> None:
        with w.elect_one():
            for i in range(TILES):
                stage, lap = i % STAGES, i // STAGES
                full[stage].wait(lap & 1)
                w.mma(Engine.TCGEN05, reads=[(tile[stage], i)])
                if slip is s.MMA_ARRIVES:
                    empty[stage].arrive()
                else:
                    w.commit(Engine.TCGEN05, empty[stage])

    @p.role("watcher")
    def watcher(w: Warp) -> None:
        for i in range(TILES):
            if slip is s.IDLE_WARPS_WAIT:
                full[i % STAGES].wait(i // STAGES & 1)
            w.work(1)

    return p
