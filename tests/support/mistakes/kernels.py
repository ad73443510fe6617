"""Kernels typical of Hopper and ``cp.async``, right as they are: what mistakes of one CTA are made in."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence
from pipesim.pipelines import PipelineState

TILE, STAGES = 64, 2
MATH = 4  #: warps of a warp group


def wgmma_ring() -> Protocol:
    """One warp copies two operands of each step, a warp group multiplies, and one of its threads stores the result."""
    tiles, steps = 3, 3
    p = Protocol("wgmma_ring")
    a, b = p.smem("a", STAGES, 64), p.smem("b", STAGES, 64)
    out, acc = p.smem("out", MATH, 32), p.registers("acc", MATH, 32)
    full, empty = p.mbarriers("full", STAGES, 1), p.mbarriers("empty", STAGES, MATH)
    threads = 32 * MATH

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for n in range(tiles * steps):
                stage, lap = n % STAGES, n // STAGES
                empty[stage].wait(lap & 1 ^ 1)
                full[stage].expect_bytes(128)
                w.tma_load(a[stage], full[stage], n)
                w.tma_load(b[stage], full[stage], n)

    @p.role("align", warps=3)  # the warp group of the load warp: its other warps have nothing to do
    def align(w: Warp) -> None:
        w.setmaxnreg(40)

    @p.role("math", warps=MATH)
    def math(w: Warp) -> None:
        def release(stage: int) -> None:
            if stage >= 0:
                with w.elect_one():
                    empty[stage].arrive()

        for tile in range(tiles):
            before = -1  # the stage of the step before
            for k in range(steps):
                n = tile * steps + k
                stage, lap = n % STAGES, n // STAGES
                full[stage].wait(lap & 1)
                w.mma(Engine.WGMMA, reads=[(a[stage], n), (b[stage], n)], writes=[(acc[w.index], n)])
                w.commit(Engine.WGMMA)
                w.wait_group(Engine.WGMMA, 1)
                release(before)
                before = stage
            w.wait_group(Engine.WGMMA, 0)
            release(stage)
            if w.index == 0:
                with w.elect_one():
                    w.wait_group(Engine.BULK, 0)
            w.bar_sync(1, threads)  # it can be written
            w.read(acc[w.index], (tile + 1) * steps - 1)
            w.write(out[w.index], tile)
            w.fence(Fence.PROXY_ASYNC)
            w.bar_sync(1, threads)  # it can be stored
            if w.index == 0:
                with w.elect_one():
                    for part in range(MATH):
                        w.async_read(Engine.BULK, out[part], tile)
                    w.commit(Engine.BULK)
                    if tile == tiles - 1:
                        w.wait_group(Engine.BULK)

    return p


def cp_async_ring() -> Protocol:
    """Two warps copy a half of each tile, two warps read all of it; full counts the lanes that copy."""
    stages, tiles, half = 3, 7, TILE // 2
    p = Protocol("cp_async_ring")
    tile = p.smem("tile", stages, TILE)
    full, empty = p.mbarriers("full", stages, 64), p.mbarriers("empty", stages, 2)

    @p.role("producer", warps=2)
    def producer(w: Warp) -> None:
        for i in range(tiles):
            stage, lap = i % stages, i // stages
            empty[stage].wait(lap & 1 ^ 1)
            w.async_write(Engine.CP_ASYNC, tile[stage].part(w.index * half, half), i)
            full[stage].cp_async_arrive(noinc=True)

    @p.role("consumer", warps=2)
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            stage, lap = i % stages, i // stages
            full[stage].wait(lap & 1)
            w.read(tile[stage], i)
            with w.elect_one():
                empty[stage].arrive()

    return p


def grouped_ring() -> Protocol:
    """The producer signals a tile when the copies of the next are under way; wgmmas read the tiles."""
    stages, tiles = 3, 7
    p = Protocol("grouped_ring")
    tile = p.smem("tile", stages, TILE)
    full, empty = p.mbarriers("full", stages, 32), p.mbarriers("empty", stages, 4)

    @p.role("producer")
    def producer(w: Warp) -> None:
        def signal(i: int, left: int) -> None:
            w.wait_group(Engine.CP_ASYNC, left)
            w.fence(Fence.PROXY_ASYNC)
            full[i % stages].arrive()

        for i in range(tiles):
            empty[i % stages].wait(i // stages & 1 ^ 1)
            w.async_write(Engine.CP_ASYNC, tile[i % stages], i)
            w.commit(Engine.CP_ASYNC)
            if i:
                signal(i - 1, 1)
        signal(tiles - 1, 0)

    @p.role("idle", warps=3)
    def idle(w: Warp) -> None:
        w.work(1)

    @p.role("math", warps=4)
    def math(w: Warp) -> None:
        for i in range(tiles):
            full[i % stages].wait(i // stages & 1)
            w.mma(Engine.WGMMA, reads=[(tile[i % stages], i)])
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA, 0)
            with w.elect_one():
                empty[i % stages].arrive()

    return p


def multistage() -> Protocol:
    """The loop of Ampere kernels: every warp copies a part two tiles ahead, and reads all of the tile that has come."""
    stages, tiles, part = 3, 7, TILE // 4
    p = Protocol("multistage")
    tile = p.smem("tile", stages, TILE)

    @p.role("warp", warps=4)
    def warp(w: Warp) -> None:
        def copy(i: int) -> None:
            if i < tiles:
                w.async_write(Engine.CP_ASYNC, tile[i % stages].part(w.index * part, part), i)
            w.commit(Engine.CP_ASYNC)

        for i in range(stages - 1):
            copy(i)
        for i in range(tiles):
            w.wait_group(Engine.CP_ASYNC, 1)
            w.sync_threads()
            w.read(tile[i % stages], i)
            copy(i + stages - 1)

    return p


def split_named() -> Protocol:
    """A writer and two readers, two buffers: each pair of named barriers has one side that syncs, one that arrives."""
    tiles, full, empty = 5, 1, 3  # the first of two named barriers each
    p = Protocol("split_named")
    tile = p.smem("tile", STAGES, TILE)

    @p.role("writer")
    def writer(w: Warp) -> None:
        for i in range(tiles):
            w.bar_sync(empty + i % STAGES, 96)
            w.write(tile[i % STAGES], i)
            w.bar_arrive(full + i % STAGES, 96)

    @p.role("reader", warps=2)
    def reader(w: Warp) -> None:
        for stage in range(STAGES):
            w.bar_arrive(empty + stage, 96)  # both are free
        for i in range(tiles):
            w.bar_sync(full + i % STAGES, 96)  # filled
            w.read(tile[i % STAGES], i)
            if i + STAGES < tiles:
                w.bar_arrive(empty + i % STAGES, 96)
            _ = "after the arrive"

    return p


def lanes_apart() -> Protocol:
    """A ring in which nothing holds the lanes of a warp together but ``__syncwarp()``."""
    tiles = 5
    p = Protocol("lanes_apart")
    tile = p.smem("tile", STAGES, TILE)
    full, empty = p.mbarriers("full", STAGES, 1), p.mbarriers("empty", STAGES, 1)

    @p.role("load", lanes_apart=True)
    def load(w: Warp) -> None:
        for i in range(tiles):
            stage, lap = i % STAGES, i // STAGES
            with w.elect_one():  # loads
                empty[stage].wait(lap & 1 ^ 1)
                full[stage].expect_bytes(TILE)
                w.tma_load(tile[stage], full[stage], i)

    @p.role("consumer", lanes_apart=True)
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            stage, lap = i % STAGES, i // STAGES
            full[stage].wait(lap & 1)
            w.read(tile[stage], i)
            w.sync_warp()
            with w.elect_one():
                empty[stage].arrive()

    return p


def spectators() -> Protocol:
    """A ring with two reading warps, a tcgen05 warp, and a warp that looks on."""
    tiles = 5
    p = Protocol("spectators")
    tile = p.smem("tile", STAGES, TILE)
    full, empty = p.mbarriers("full", STAGES, 1), p.mbarriers("empty", STAGES, count=3)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles):
                stage, lap = i % STAGES, i // STAGES
                empty[stage].wait(lap & 1 ^ 1)
                full[stage].expect_bytes(TILE)
                w.tma_load(tile[stage], full[stage], i)

    @p.role("consumer", warps=2)
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            stage, lap = i % STAGES, i // STAGES
            full[stage].wait(lap & 1)
            w.read(tile[stage], i)
            with w.elect_one():
                empty[stage].arrive()

    @p.role("mma")
    def mma(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles):
                stage, lap = i % STAGES, i // STAGES
                full[stage].wait(lap & 1)
                w.mma(Engine.TCGEN05, reads=[(tile[stage], i)])
                w.commit(Engine.TCGEN05, empty[stage])

    @p.role("watcher")
    def watcher(w: Warp) -> None:
        for _ in range(tiles):
            w.work(1)

    return p


def tcgen05_tiles() -> Protocol:
    """Copies, products of tcgen05 into two accumulators in tensor memory, an epilogue of four warps."""
    tiles, steps = 4, 2
    p = Protocol("tcgen05_tiles")
    x, acc = p.smem("x", STAGES, TILE), p.tmem("acc", 2, TILE)
    full, empty = p.mbarriers("full", STAGES, 1), p.mbarriers("empty", STAGES, 1)
    acc_full, acc_empty = p.mbarriers("acc_full", 2, 1), p.mbarriers("acc_empty", 2, 4)

    @p.role("dma")
    def dma(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles * steps):
                empty[i % STAGES].wait(i // STAGES & 1 ^ 1)
                full[i % STAGES].expect_bytes(64)
                w.tma_load(x[i % STAGES], full[i % STAGES], i)

    @p.role("mma")
    def mma(w: Warp) -> None:
        with w.elect_one():
            for t in range(tiles):
                acc_empty[t % 2].wait(t // 2 & 1 ^ 1)
                for k in range(steps):
                    i = t * steps + k
                    full[i % STAGES].wait(i // STAGES & 1)
                    w.mma(Engine.TCGEN05, reads=[(x[i % STAGES], i)], writes=[(acc[t % 2], t)])
                    w.commit(Engine.TCGEN05, empty[i % STAGES])
                w.commit(Engine.TCGEN05, acc_full[t % 2])

    @p.role("epi", warps=4)
    def epi(w: Warp) -> None:
        for t in range(tiles):
            acc_full[t % 2].wait(t // 2 & 1)
            w.read(acc[t % 2], t)
            with w.elect_one():
                acc_empty[t % 2].arrive()

    return p


def two_groups() -> Protocol:
    """Attention of two groups that compute in turn, in an order that named barriers keep, and store their results."""
    stages, blocks, tiles, threads = 2, 4, 2, 64
    p = Protocol("two_groups")
    k, v, o = p.smem("k", stages, 64), p.smem("v", stages, 64), p.smem("o", 2, 32)
    k_full, k_free = p.mbarriers("k_full", stages, 1), p.mbarriers("k_free", stages, 2)
    v_full, v_free = p.mbarriers("v_full", stages, 1), p.mbarriers("v_free", stages, 2)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles * blocks):
                s, ph = i % stages, i // stages & 1
                k_free[s].wait(ph ^ 1)
                k_full[s].expect_bytes(64)
                w.tma_load(k[s], k_full[s], i)
                v_free[s].wait(ph ^ 1)
                v_full[s].expect_bytes(64)
                w.tma_load(v[s], v_full[s], i)

    def group(w: Warp, me: int) -> None:
        if me == 1:
            w.bar_arrive(1, threads)  # the first may begin
        for n in range(tiles * blocks):
            s, ph, t = n % stages, n // stages & 1, n // blocks
            k_full[s].wait(ph)
            w.bar_sync(1 + me, threads)
            w.read(k[s], n)
            if me == 0 or n < tiles * blocks - 1:
                w.bar_arrive(2 - me, threads)
            with w.elect_one():
                k_free[s].arrive()
            v_full[s].wait(ph)
            w.read(v[s], n)
            with w.elect_one():
                v_free[s].arrive()
            if n % blocks == blocks - 1:
                with w.elect_one():
                    w.wait_group(Engine.BULK, 0)
                w.write(o[me], t)
                w.fence(Fence.PROXY_ASYNC)
                with w.elect_one():
                    w.async_read(Engine.BULK, o[me], t)
                    w.commit(Engine.BULK)

    @p.role("wg0")
    def wg0(w: Warp) -> None:
        group(w, 0)

    @p.role("wg1")
    def wg1(w: Warp) -> None:
        group(w, 1)

    return p


def attention() -> Protocol:
    """Q of a tile, rings of K and of V, two warps that use them."""
    p = Protocol("attention")
    stages, blocks, tiles = 2, 3, 2
    q, k, v = p.smem("q", 1, 64), p.smem("k", stages, 64), p.smem("v", stages, 32)
    qf, qe = p.mbarriers("q_full", 1, 1), p.mbarriers("q_empty", 1, 2)
    kf, ke = p.mbarriers("k_full", stages, 1), p.mbarriers("k_empty", stages, 2)
    vf, ve = p.mbarriers("v_full", stages, 1), p.mbarriers("v_empty", stages, 2)

    @p.role("ld")
    def ld(w: Warp) -> None:
        with w.elect_one():
            for t in range(tiles):
                qe[0].wait(t & 1 ^ 1)
                qf[0].expect_bytes(64)
                w.tma_load(q[0], qf[0], 1000 + t)
                for b in range(blocks):
                    i = t * blocks + b
                    s, ph = i % stages, i // stages & 1
                    ke[s].wait(ph ^ 1)
                    kf[s].expect_bytes(64)
                    w.tma_load(k[s], kf[s], i)
                    ve[s].wait(ph ^ 1)
                    vf[s].expect_bytes(32)
                    w.tma_load(v[s], vf[s], i)

    @p.role("sm", warps=2)
    def sm(w: Warp) -> None:
        for t in range(tiles):
            qf[0].wait(t & 1)
            for b in range(blocks):
                i = t * blocks + b
                s, ph = i % stages, i // stages & 1
                kf[s].wait(ph)
                w.read(q[0], 1000 + t)
                w.read(k[s], i)
                with w.elect_one():
                    ke[s].arrive()
                vf[s].wait(ph)
                w.read(v[s], i)
                with w.elect_one():
                    ve[s].arrive()
            with w.elect_one():
                qe[0].arrive()

    return p


def persistent_gemm() -> Protocol:
    """A persistent GEMM: two groups of two warps, three stages that go on over tiles, a store epilogue."""
    stages, tiles, steps = 3, 2, 4
    p = Protocol("persistent_gemm")
    sa, sb, sc = p.smem("sA", stages, 64), p.smem("sB", stages, 64), p.smem("sC", 4, 32)
    acc = p.registers("acc", 4, 32)
    full, empty = p.mbarriers("full", stages, 1), p.mbarriers("empty", stages, 4)

    @p.role("dma")
    def dma(w: Warp) -> None:
        st = PipelineState(stages, 0, 1)
        with w.elect_one():
            for n in range(tiles * steps):
                empty[st.index()].wait(st.phase())
                full[st.index()].expect_bytes(128)
                w.tma_load(sa[st.index()], full[st.index()], n)
                w.tma_load(sb[st.index()], full[(st.index() + 0) % stages], n)
                st.step()

    @p.role("mma", warps=4)
    def mma(w: Warp) -> None:
        st, rel = PipelineState(stages), PipelineState(stages)
        bar, threads = 1 + w.index // 2, 64
        for t in range(tiles):
            for k in range(steps):
                full[st.index()].wait(st.phase())
                n = t * steps + k
                w.mma(Engine.WGMMA, reads=[(sa[st.index()], n), (sb[st.index()], n)], writes=[(acc[w.index], n)])
                w.commit(Engine.WGMMA)
                w.wait_group(Engine.WGMMA, 1)
                if k > 0:
                    with w.elect_one():
                        empty[rel.index()].arrive()
                    rel.step()
                st.step()
            w.wait_group(Engine.WGMMA, 0)
            with w.elect_one():
                empty[rel.index()].arrive()  # the last one
            rel.step()
            if w.index % 2 == 0:
                with w.elect_one():
                    w.wait_group(Engine.BULK, 0)
            w.bar_sync(bar, threads)
            w.read(acc[w.index], t * steps + steps - 1)
            w.write(sc[w.index], t)
            w.fence(Fence.PROXY_ASYNC)
            w.bar_sync(bar, threads)
            if w.index % 2 == 0:
                with w.elect_one():
                    w.async_read(Engine.BULK, sc[w.index], t)
                    w.async_read(Engine.BULK, sc[w.index + 1], t)
                    w.commit(Engine.BULK)

    return p


def warp_group_ring() -> Protocol:
    """A producer warp group of which one warp copies, two readers."""
    stages, tiles = 3, 7
    p = Protocol("warp_group_ring")
    t = p.smem("t", stages, 64)
    full, empty = p.mbarriers("full", stages, 1), p.mbarriers("empty", stages, 2)

    @p.role("load", warps=4)
    def load(w: Warp) -> None:
        if w.index == 0:
            with w.elect_one():
                for i in range(tiles):
                    s, ph = i % stages, i // stages & 1
                    empty[s].wait(ph ^ 1)
                    full[s].expect_bytes(64)
                    w.tma_load(t[s], full[s], i)

    @p.role("math", warps=2)
    def math(w: Warp) -> None:
        for i in range(tiles):
            s, ph = i % stages, i // stages & 1
            full[s].wait(ph)
            w.read(t[s], i)
            with w.elect_one():
                empty[s].arrive()

    return p


def relay() -> Protocol:
    """Tiles that two warps transform between a load and a wgmma warp group."""
    stages, tiles = 2, 5
    p = Protocol("relay")
    raw, cooked = p.smem("raw", stages, 64), p.smem("cooked", stages, 64)
    in_full, in_free = p.mbarriers("in_full", stages, 1), p.mbarriers("in_free", stages, 2)
    out_full, out_free = p.mbarriers("out_full", stages, 2), p.mbarriers("out_free", stages, 1)

    @p.role("use", warps=4)
    def use(w: Warp) -> None:
        for i in range(tiles):
            s, ph = i % stages, i // stages & 1
            out_full[s].wait(ph)
            w.mma(Engine.WGMMA, reads=[(cooked[s], i)])
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA, 0)
            w.bar_sync(7, 128)
            if w.index == 0:
                with w.elect_one():
                    out_free[s].arrive()

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles):
                s, ph = i % stages, i // stages & 1
                in_free[s].wait(ph ^ 1)
                in_full[s].expect_bytes(64)
                w.tma_load(raw[s], in_full[s], i)

    @p.role("tr", warps=2)
    def tr(w: Warp) -> None:
        for i in range(tiles):
            s, ph = i % stages, i // stages & 1
            in_full[s].wait(ph)
            out_free[s].wait(ph ^ 1)
            w.read(raw[s], i)
            w.write(cooked[s].part(32 * w.index, 32), i)
            w.fence(Fence.PROXY_ASYNC)
            with w.elect_one():
                in_free[s].arrive()
                out_full[s].arrive()

    return p


def cooperative() -> Protocol:
    """Rings of operands and of C, of three and two stages, and four warps that use both."""
    stages, c_stages, tiles, steps = 3, 2, 3, 2
    p = Protocol("cooperative")
    ab, c = p.smem("ab", stages, 64), p.smem("c", c_stages, 64)
    ab_full, ab_empty = p.mbarriers("ab_full", stages, 1), p.mbarriers("ab_empty", stages, 4)
    c_full, c_empty = p.mbarriers("c_full", c_stages, 1), p.mbarriers("c_empty", c_stages, 4)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in w.loop(tiles * steps, "steps"):
                ab_empty[i % stages].wait(i // stages & 1 ^ 1)
                ab_full[i % stages].expect_bytes(64)
                w.tma_load(ab[i % stages], ab_full[i % stages], i)

    @p.role("cload")
    def cload(w: Warp) -> None:
        with w.elect_one():
            for t in w.loop(tiles, "tiles"):
                c_empty[t % c_stages].wait(t // c_stages & 1 ^ 1)
                c_full[t % c_stages].expect_bytes(64)
                w.tma_load(c[t % c_stages], c_full[t % c_stages], 100 + t)

    @p.role("idle", warps=2)
    def idle(w: Warp) -> None:
        w.work(1)

    @p.role("epi", warps=4)
    def epi(w: Warp) -> None:
        for t in range(tiles):
            for k in range(steps):
                n = t * steps + k
                ab_full[n % stages].wait(n // stages & 1)
                w.mma(Engine.WGMMA, reads=[(ab[n % stages], n)])
                w.commit(Engine.WGMMA)
                w.wait_group(Engine.WGMMA, 0)
                with w.elect_one():
                    ab_empty[n % stages].arrive()
            c_full[t % c_stages].wait(t // c_stages & 1)
            w.read(c[t % c_stages], 100 + t)
            with w.elect_one():
                c_empty[t % c_stages].arrive()

    return p


def turns() -> Protocol:
    """Two math warps that take tiles in turn, in an order that mbarriers keep."""
    stages, steps, tiles = 4, 2, 4
    p = Protocol("turns")
    ab, stage = p.smem("ab", stages, 64), p.smem("stage", 1, 32)
    full, empty = p.mbarriers("full", stages, 1), p.mbarriers("empty", stages, 1)
    turn = p.mbarriers("turn", 2, 1)

    @p.role("prod")
    def prod(w: Warp) -> None:
        ps = PipelineState(stages, 0, 1)
        with w.elect_one():
            for i in range(tiles * steps):
                empty[ps.index()].wait(ps.phase())
                full[ps.index()].expect_bytes(64)
                w.tma_load(ab[ps.index()], full[ps.index()], i)
                ps.step()

    def math(w: Warp, me: int) -> None:
        cs = PipelineState(stages)
        ph = 1 - me
        if me == 1:
            cs.advance(steps)
        for t in range(me, tiles, 2):
            turn[me].wait(ph)
            ph ^= 1
            for k in range(steps):
                full[cs.index()].wait(cs.phase())
                w.read(ab[cs.index()], t * steps + k)
                with w.elect_one():
                    empty[cs.index()].arrive()
                cs.step()
            cs.advance(steps)
            w.write(stage[0], t)
            with w.elect_one():
                turn[1 - me].arrive()

    @p.role("math0", warps=1)
    def math0(w: Warp) -> None:
        math(w, 0)

    @p.role("math1", warps=1)
    def math1(w: Warp) -> None:
        math(w, 1)

    return p


def at_the_end() -> Protocol:
    """Three warps write, one reads, and all meet at the end."""
    p = Protocol("at_the_end")
    x, done = p.smem("x", 3, 32), p.mbarriers("done", 1, 3)

    @p.role("work", warps=3)
    def work(w: Warp) -> None:
        w.write(x[w.index], 7)
        with w.elect_one():
            done[0].arrive()
        w.sync_threads()

    @p.role("tail")
    def tail(w: Warp) -> None:
        done[0].wait(0)
        for j in range(3):
            w.read(x[j], 7)
        w.sync_threads()

    @p.role("idle")
    def idle(w: Warp) -> None:
        w.sync_threads()

    return p
