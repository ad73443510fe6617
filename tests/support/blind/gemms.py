"""GEMMs: what their slips are offered."""

from __future__ import annotations

from pipesim.lang.intrinsics import elect
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence
from pipesim.pipelines import PipelineState, PipelineTmaAsync, TmaParams, make_producer_start_state

#: What is offered for each slip.
PERSISTENT_GEMM: dict[str, tuple[str, ...]] = {
    "reset": ("mma carries stage and phase of full on instead of beginning again (parity 0 in the first lap)",),
    "tma_next": ("dma: the copy to full is for the stage 1 stage back",),
    "cnt_groups": ("initialise empty with a count of 4 instead of 2",),
    "only_g0": ("every warp of mma executes the arrive on empty, not only some of them",),
    "late_tail": ("mma arrives on empty for every stage: also after the wait for its wgmmas",),
    "sync_all": ("64 threads at named barriers 1 and 2 instead of 128",),
    "one_id": ("give each group of warps that meets at named barrier 1 a number of its own, from 2 on",),
    "no_store_wait": ("mma waits for its bulk stores before the bar_sync",),
    "no_b_bytes": ("dma expects 128 bytes on full instead of 64: as many as are copied",),
    "no_empty_wait": ("dma waits for empty, with parity 1 in the first lap, before it uses a stage",),
    "wg_depth": ("mma leaves no more than 1 of its groups pending when it waits for them, instead of 2",),
}


def persistent_gemm(slip: str = "") -> Protocol:
    """A persistent GEMM: two warp groups, three stages that go on over tiles, a store epilogue."""
    KS, KT, KK = (3, 2, 4)
    p = Protocol("persistent_gemm")
    sa = p.smem("sA", KS, 64)
    sb = p.smem("sB", KS, 64)
    sc = p.smem("sC", 4, 32)
    acc = p.registers("acc", 4, 32)
    full = p.mbarriers("full", KS, 1)
    empty = p.mbarriers("empty", KS, 2 if slip == "cnt_groups" else 4)

    @p.role("dma")
    def dma(w: Warp) -> None:
        st = PipelineState(KS, 0, 1)
        with w.elect_one():
            for t in range(KT):
                for k in range(KK):
                    if slip != "no_empty_wait":
                        empty[st.index()].wait(st.phase())
                    full[st.index()].expect_bytes(64 if slip == "no_b_bytes" else 128)
                    it = t * KK + k
                    w.tma_load(sa[st.index()], full[st.index()], it)
                    w.tma_load(sb[st.index()], full[(st.index() + 1) % KS if slip == "tma_next" else st.index()], it)
                    st.step()

    @p.role("mma", warps=4)
    def mma(w: Warp) -> None:
        g = w.index // 2
        st = PipelineState(KS)
        rel = PipelineState(KS)
        bar = 1 if slip == "one_id" else 1 + g
        th = 128 if slip == "sync_all" else 64
        for t in range(KT):
            if slip == "reset" and t:
                st = PipelineState(KS)
            for k in range(KK):
                full[st.index()].wait(st.phase())
                it = t * KK + k
                w.mma(Engine.WGMMA, reads=[(sa[st.index()], it), (sb[st.index()], it)], writes=[(acc[w.index], it)])
                w.commit(Engine.WGMMA)
                w.wait_group(Engine.WGMMA, 2 if slip == "wg_depth" else 1)
                if k > 0:
                    if slip != "only_g0" or g == 0:
                        with w.elect_one():
                            empty[rel.index()].arrive()
                    rel.step()
                st.step()
            w.wait_group(Engine.WGMMA, 0)
            if slip != "late_tail" and (slip != "only_g0" or g == 0):
                with w.elect_one():
                    empty[rel.index()].arrive()
            rel.step()
            if slip != "no_store_wait" and w.index % 2 == 0:
                with w.elect_one():
                    w.wait_group(Engine.BULK, 0)
            w.bar_sync(bar, th)
            w.read(acc[w.index], t * KK + KK - 1)
            w.write(sc[w.index], t)
            w.fence(Fence.PROXY_ASYNC)
            w.bar_sync(bar, th)
            if w.index % 2 == 0:
                with w.elect_one():
                    w.async_read(Engine.BULK, sc[w.index], t)
                    w.async_read(Engine.BULK, sc[w.index + 1], t)
                    w.commit(Engine.BULK)

    return p


#: What is offered for each slip.
COLLECTIVE_MMA: dict[str, tuple[str, ...]] = {
    "num_consumers": ("initialise empty with a count of 128 instead of 32",),
    "no_step": ("consumer carries stage and phase of full on instead of beginning again (parity 0 in the first lap)",),
    "tx_half": ("producer expects 96 bytes on full instead of 64: as many as are copied",),
    "start_state": ("producer waits for empty with parity 1 in the first lap, alternating in each later lap",),
    "release_same": ("consumer leaves none of its groups pending when it waits for them, instead of 1",),
}


def collective_mma(slip: str = "") -> Protocol:
    """CUTLASS's TMA pipeline between a producer and a warp group that releases the step before."""
    p = Protocol("coll_mma")
    S, T, K = (3, 2, 4)
    a = p.smem("A", S, 64)
    b = p.smem("B", S, 32)
    st = p.mbarriers("pipe", 2 * S)
    nc = 32 if slip == "num_consumers" else 128

    @p.init
    def init() -> None:
        PipelineTmaAsync.init_barriers(st, S, TmaParams(96, 0, nc))

    @p.role("producer")
    def producer(w: Warp) -> None:
        pipe = PipelineTmaAsync(st, S, TmaParams(64 if slip == "tx_half" else 96, elect(), 128))
        s = PipelineState(S) if slip == "start_state" else make_producer_start_state(S)
        with w.elect_one():
            for i in range(T * K):
                pipe.producer_acquire(s)
                bar = pipe.producer_get_barrier(s)
                w.tma_load(a[s.index()], bar, i)
                w.tma_load(b[s.index()], bar, i)
                s.step()

    @p.role("consumer", warps=4)
    def consumer(w: Warp) -> None:
        pipe = PipelineTmaAsync(st, S, TmaParams(96, 0, 128), warp=w)
        rd, rl = (PipelineState(S), PipelineState(S))
        for t in range(T):
            for k in range(K):
                pipe.consumer_wait(rd)
                w.mma(Engine.WGMMA, reads=[(a[rd.index()], t * K + k), (b[rd.index()], t * K + k)])
                w.commit(Engine.WGMMA)
                w.wait_group(Engine.WGMMA, 1)
                if slip == "release_same":
                    pipe.consumer_release(rd)
                elif t * K + k:
                    pipe.consumer_release(rl)
                    rl.step()
                if not (slip == "no_step" and k == K - 1 and (t == 0)):
                    rd.step()
        w.wait_group(Engine.WGMMA, 0)
        if slip != "no_release_last" and slip != "release_same":
            pipe.consumer_release(rl)

    return p


#: What is offered for each slip.
BLOCK_SCALED: dict[str, tuple[str, ...]] = {
    "only_tma": ("initialise ready with a count of 33 instead of 1",),
    "only_cp": ("initialise ready with a count of 33 instead of 32",),
    "inc": ("scales arrives on ready by cp.async with .noinc, so that its arrivals are counted",),
    "plain": ("scales arrives on ready by cp.async.mbarrier.arrive.noinc: when its copies have ended",),
    "scales_no_wait": ("scales waits for free, with parity 1 in the first lap, before it uses a stage",),
    "free_cnt": ("initialise free with a count of 2 instead of 1",),
    "expects_all": ("operand expects 64 bytes on ready instead of 96: as many as are copied",),
    "wait_par": ("mma waits for ready with parity 0 in the first lap, alternating in each later lap",),
}


def block_scaled(slip: str = "") -> Protocol:
    """A TMA and a warp of cp.asyncs fill one stage."""
    p = Protocol("block_scaled")
    S, N = (2, 5)
    x = p.smem("x", S, 64)
    sf = p.smem("sf", S, 32)
    ready = p.mbarriers("ready", S, {"only_tma": 1, "only_cp": 32}.get(slip, 33))
    free = p.mbarriers("free", S, 1 if slip == "free_cnt" else 2)

    @p.role("operand")
    def operand(w: Warp) -> None:
        with w.elect_one():
            for i in w.loop(N, "n"):
                free[i % S].wait(i // S + 1 & 1)
                ready[i % S].expect_bytes(96 if slip == "expects_all" else 64)
                w.tma_load(x[i % S], ready[i % S], i)

    @p.role("scales")
    def scales(w: Warp) -> None:
        for i in w.loop(N, "n"):
            if slip != "scales_no_wait":
                free[i % S].wait(i // S + 1 & 1)
            w.async_write(Engine.CP_ASYNC, sf[i % S], i)
            if slip == "plain":
                ready[i % S].arrive()
            else:
                ready[i % S].cp_async_arrive(noinc=slip != "inc")

    @p.role("mma", warps=2)
    def mma(w: Warp) -> None:
        for i in w.loop(N, "n"):
            ready[i % S].wait(i & 1 if slip == "wait_par" else i // S & 1)
            w.read(x[i % S], i)
            w.read(sf[i % S], i)
            with w.elect_one():
                free[i % S].arrive()

    return p
