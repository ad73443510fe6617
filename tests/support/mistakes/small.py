"""Small right protocols that mistakes are made in: clusters, named barriers, products, stores, inits by a role."""

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import TryResult
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence, Order
from tests.support.mistakes.ring import TILE, ring


def two_rings(stages: int = 1, tiles: int = 3) -> Protocol:
    """A producer fills a tile of each ring, the consumer takes one of each."""
    a = ring("two_rings", stages, tiles)
    p = a.p
    tile = p.smem("b", slots=stages, nbytes=TILE)
    full, empty = p.mbarriers("b_full", stages, 1), p.mbarriers("b_empty", stages, 1)

    @a.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            a.acquire(i)
            a.load(w, i)
            empty[a.slot(i)].wait(a.phase(i) ^ 1)
            full[a.slot(i)].expect_bytes(TILE)
            w.tma_load(tile[a.slot(i)], full[a.slot(i)], i)

    @a.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            a.read(w, i)
            if i == 0:
                full[0].wait(0)
            w.read(tile[a.slot(i)], i)
            a.release(i)
            empty[a.slot(i)].arrive()
            if i + 1 < tiles:
                full[a.slot(i + 1)].wait(a.phase(i + 1))
            _ = "the end of a lap"

    return p


def tried_ring(stages: int = 2, tiles: int = 3) -> Protocol:
    """The consumer tries for its next tile before it gives the present one back."""
    r = ring("tried_ring", stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        ready: TryResult | bool = False
        for i in range(tiles):
            r.of_full(i).wait_if_needed(ready, r.phase(i))
            w.read(r.tile[r.slot(i)], i)
            ready = r.of_full(i + 1).try_wait(r.phase(i + 1)) if i + 1 < tiles else False
            r.release(i)

    return r.p


def announced(tiles: int = 3) -> Protocol:
    """A barrier announces each tile to a waiter, and waits until it has been heard."""
    p = Protocol("announced")
    go, heard = p.mbarriers("go", 1, 1), p.mbarriers("heard", 1, 1)

    @p.role("announcer")
    def announcer(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles):
                heard[0].wait(i & 1 ^ 1)
                go[0].arrive()

    @p.role("sleeper")
    def sleeper(w: Warp) -> None:
        for i in range(tiles):
            go[0].wait(i & 1)
            with w.elect_one():
                heard[0].arrive()

    return p


def counted_bytes(tiles: int = 1) -> Protocol:
    """Bytes that are expected and completed by hand."""
    r = ring("counted_bytes", 1, tiles, full=2)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            for _ in range(2):
                r.of_full(i).expect_bytes(500_000)
            for _ in range(2):
                r.of_full(i).complete_transaction(w.cta, 500_000)

    @r.role("consumer")
    def consumer(_: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(r.phase(i))
            r.release(i)

    return r.p


def initialised_by_a_role(stages: int = 2, tiles: int = 3) -> Protocol:
    """The producer initialises the barriers with a fence, then both roles meet."""
    r = ring("initialised_by_a_role", stages, tiles)

    @r.p.init
    def init() -> None:
        """Nothing: the producer does it."""

    @r.p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            for barrier in (*r.full, *r.empty):
                barrier.init(1)
            w.fence(Fence.MBARRIER_INIT)
        w.sync_threads()  # the producer
        with w.elect_one():
            for i in range(tiles):
                r.acquire(i)
                r.load(w, i)

    @r.p.role("consumer")
    def consumer(w: Warp) -> None:
        w.sync_threads()  # the consumer
        with w.elect_one():
            for i in range(tiles):
                r.read(w, i)
                r.release(i)

    return r.p


def hand_over(tiles: int = 2) -> Protocol:
    """One warp writes a tile and another reads it, with a sync of both after each."""
    p = Protocol("hand_over")
    tile = p.smem("tile", slots=1, nbytes=TILE)

    @p.role("writer")
    def writer(w: Warp) -> None:
        threads = 64
        for i in range(tiles):
            w.write(tile[0], i)
            w.bar_sync(1, threads)  # written
            w.bar_sync(1, threads)  # so that it can be written again

    @p.role("reader")
    def reader(w: Warp) -> None:
        threads = 32 + 32
        for i in range(tiles):
            w.bar_sync(1, threads)  # so that it can be read
            w.read(tile[0], i)
            w.bar_sync(1, threads)  # read

    return p


def multicast(stages: int = 1, tiles: int = 2) -> Protocol:
    """CTA 0 loads each tile for both; in CTA 1 the consumer itself expects the bytes."""
    r = ring("multicast", stages, tiles, full=1, empty=2, cluster=2)

    @r.role("loader")
    def loader(w: Warp) -> None:
        if w.cta != 0:
            return
        for i in range(tiles + stages):  # the last lap drains the ring
            r.of_empty(i).wait(r.phase(i) ^ 1)
            if i < tiles:
                r.of_full(i).expect_bytes(TILE)
                w.tma_load(r.tile[r.slot(i)], r.of_full(i), i, cta_mask=0b11)

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            if w.cta == 1:
                r.of_full(i).expect_bytes(TILE)
            r.of_full(i).wait(r.phase(i))
            w.read(r.tile[r.slot(i)], i)
            r.of_empty(i).arrive_cluster(0)

    return r.p


def peers(tiles: int = 1) -> Protocol:
    """Each CTA initialises its barriers, all meet, and each arrives at the other's."""
    p = Protocol("peers", cluster=2)
    ready = p.mbarriers("ready", max(tiles, 1))

    @p.init
    def init() -> None:
        """Nothing: the role does it."""

    @p.role("peer")
    def peer(w: Warp) -> None:
        with w.elect_one():
            for barrier in ready:
                barrier.init(1)
            w.fence(Fence.MBARRIER_INIT)
        w.cluster_arrive(Order.RELAXED)
        w.cluster_wait()
        with w.elect_one():
            for i in range(tiles):
                ready[i].arrive_cluster(w.cta ^ 1)
                ready[i].wait(0)

    return p


def meetings(tiles: int = 1) -> Protocol:
    """The CTAs meet, and CTA 1 ends when CTA 0 has told it to."""
    p = Protocol("meetings", cluster=2)
    done = p.mbarriers("done", 1, count=1)

    @p.role("peer")
    def peer(w: Warp) -> None:
        for _ in range(tiles):
            w.cluster_sync()
        with w.elect_one():
            if w.cta == 0:
                done[0].arrive_cluster(1)
            else:
                done[0].wait(0)

    return p


def accumulated(tiles: int = 2) -> Protocol:
    """The epilogue reads the accumulator on the commit of its products."""
    p = Protocol("accumulated")
    acc = p.tmem("acc", slots=1, nbytes=TILE)
    full, empty = p.mbarriers("full", 1, 1), p.mbarriers("empty", 1, 1)

    @p.role("mma")
    def mma(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles):
                empty[0].wait(i & 1 ^ 1)
                w.mma(Engine.TCGEN05, writes=[(acc[0], i)])
                w.commit(Engine.TCGEN05, full[0])

    @p.role("epilogue")
    def epilogue(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles):
                full[0].wait(i & 1)
                w.read(acc[0], i)
                empty[0].arrive()

    return p


def stores(slots: int = 1, tiles: int = 2) -> Protocol:
    """One warp writes result after result into its slots, each stored by a bulk copy."""
    p = Protocol("stores")
    out = p.smem("out", slots=slots, nbytes=TILE)

    @p.role("epilogue")
    def epilogue(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles):
                w.write(out[i % slots], i)
                w.fence(Fence.PROXY_ASYNC)
                w.async_read(Engine.BULK, out[i % slots], i)
                w.commit(Engine.BULK)  # of this store
                w.wait_group(Engine.BULK, slots - 1)
            w.commit(Engine.BULK)
            w.wait_group(Engine.BULK)

    return p


def written_and_stored(tiles: int = 2) -> Protocol:
    """One warp writes each result, another stores it with a bulk copy."""
    p = Protocol("written_and_stored")
    out = p.smem("out", slots=1, nbytes=TILE)

    @p.role("writer")
    def writer(w: Warp) -> None:
        for i in range(tiles):
            w.write(out[0], i)
            w.fence(Fence.PROXY_ASYNC)
            w.bar_sync(1, 64)  # written
            w.bar_sync(2, 64)

    @p.role("storer")
    def storer(w: Warp) -> None:
        for i in range(tiles):
            w.bar_sync(1, 64)
            with w.elect_one():
                w.async_read(Engine.BULK, out[0], i)
                w.commit(Engine.BULK)
                w.wait_group(Engine.BULK)
            w.bar_sync(2, 64)

    return p


def multiplied_and_filled(tiles: int = 3) -> Protocol:
    """A warp group multiplies from a slot that another one fills again."""
    p = Protocol("multiplied_and_filled")
    tile = p.smem("tile", slots=1, nbytes=TILE)
    full, empty = p.mbarriers("full", 1, 32)[0], p.mbarriers("empty", 1, 128)[0]

    @p.role("writer")
    def fill(w: Warp) -> None:
        for i in range(tiles):
            empty.wait((i & 1) ^ 1)
            w.write(tile[0], i)
            w.fence(Fence.PROXY_ASYNC)
            full.arrive()

    @p.role("mma", warps=4)
    def mma(w: Warp) -> None:
        for i in range(tiles):
            full.wait(i & 1)
            w.mma(Engine.WGMMA, reads=[(tile[0], i)])
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA)
            w.fence(Fence.PROXY_ASYNC)  # of the reads
            empty.arrive()

    return p


def two_groups(tiles: int = 4, stages: int = 2) -> Protocol:
    """A producer fills a ring for each of two roles of consumers, which share code, and waits for both at last."""
    p = Protocol("two_groups")
    tile = [p.smem(f"tile{n}", slots=stages, nbytes=TILE) for n in range(2)]
    full = [p.mbarriers(f"full{n}", stages, 1) for n in range(2)]
    empty = [p.mbarriers(f"empty{n}", stages, 1) for n in range(2)]
    done = p.mbarriers("done", 1, 2)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles):
                for n in range(2):
                    empty[n][i % stages].wait(i // stages & 1 ^ 1)
                    full[n][i % stages].expect_bytes(TILE)
                    w.tma_load(tile[n][i % stages], full[n][i % stages], i)
            done[0].wait(0)

    def consume(w: Warp, n: int) -> None:
        with w.elect_one():
            for i in range(tiles):
                full[n][i % stages].wait(i // stages & 1)
                w.read(tile[n][i % stages], i)
                empty[n][i % stages].arrive()
            done[0].arrive()

    p.role("consumer0")(lambda w: consume(w, 0))
    p.role("consumer1")(lambda w: consume(w, 1))
    return p


def two_of_three(stages: int = 3, tiles: int = 3) -> Protocol:
    """Right, and unknown without a search: the copy of a tile goes after two of three arrives, whichever these are.

    The first warp writes, the three meet, and two of them have a fence: one of any two arrives comes after it.
    """
    p = Protocol("two_of_three")
    tile, full = p.smem("tile", stages, TILE), p.mbarriers("full", stages, count=2)

    def arriver(n: int) -> None:
        @p.role(f"arriver{n}")
        def role(w: Warp) -> None:
            for i in range(min(stages, tiles)):
                if n == 0:
                    w.write(tile[i], i)
                w.bar_sync(1, 96)
                if n > 0:
                    w.fence(Fence.PROXY_ASYNC)
                with w.elect_one():
                    full[i].arrive()

    for n in range(3):
        arriver(n)

    @p.role("store")
    def store(w: Warp) -> None:
        with w.elect_one():
            for i in range(min(stages, tiles)):
                full[i].wait(0)
                w.async_read(Engine.BULK, tile[i], i)
                w.commit(Engine.BULK)
            w.wait_group(Engine.BULK)

    return p
