"""Protocols with every feature that a diagram must show. Run as a file, by the tests and by the golden reports."""

from __future__ import annotations

from typing import Any

from pipesim.lang.intrinsics import mma_arrive_multicast
from pipesim.lang.protocol import Protocol
from pipesim.model.ops import Engine
from pipesim.pipelines import ProducerConsumerPipeline

KIB = 1024


def ring(stages: int, name: str, p: Protocol, full: int = 1, empty: int = 1) -> tuple[Any, Any]:
    """Barriers ``name_full`` and ``name_empty`` with these counts."""
    return p.mbarriers(f"{name}_full", stages, count=full), p.mbarriers(f"{name}_empty", stages, count=empty)


def laps(w: Any, trips: int, stages: int) -> Any:
    """(trip, stage, parity of the consumer) of a ring."""
    for i in range(trips):
        yield i, i % stages, i // stages & 1


def attention(blocks: int = 4) -> Protocol:
    """Six roles and twenty groups of barriers, as a Blackwell attention kernel has."""
    p = Protocol("attention")
    q, kv = p.smem("q", 2, 32 * KIB), p.smem("kv", 3, 32 * KIB)
    out = p.smem("o_smem", 1, 16 * KIB)
    s, o = p.tmem("s", 2, 64 * KIB), p.tmem("o", 2, 64 * KIB)
    q_full, _ = ring(2, "q", p)
    kv_full, kv_empty = ring(3, "kv", p)
    pairs = {name: ring(2, name, p, full) for name, full in (("s0", 1), ("s1", 1), ("p0", 4), ("p1", 4))}
    more = {
        name: ring(1, name, p, *n) for name, n in (("o0", (1, 128)), ("o1", (1, 128)), ("corr0", (4,)), ("corr1", (4,)))
    }

    @p.role("load")
    def load(w: Any) -> None:
        w.setmaxnreg(24)
        with w.elect_one():
            for i in range(2):
                q_full[i].expect_bytes(32 * KIB)
                w.tma_load(q[i], q_full[i], i)
            for i, stage, parity in laps(w, 2 * blocks, 3):
                kv_empty[stage].wait(parity ^ 1)
                kv_full[stage].expect_bytes(32 * KIB)
                for half in range(2):
                    w.tma_load(kv[stage].part(half * 16 * KIB, 16 * KIB), kv_full[stage], i)

    @p.role("mma")
    def mma(w: Any) -> None:
        w.setmaxnreg(24)
        with w.elect_one():
            for i, stage, parity in laps(w, 2 * blocks, 3):
                kv_full[stage].wait(parity)
                half = i % 2
                w.mma(Engine.TCGEN05, reads=[(q[half], half), (kv[stage], i)], writes=[(s[half], i)], cycles=128)
                w.commit(Engine.TCGEN05, kv_empty[stage])
                w.commit(Engine.TCGEN05, pairs[f"s{half}"][0][i // 2 % 2])
                pairs[f"p{half}"][0][i // 2 % 2].wait(i // 4 & 1)
                w.mma(Engine.TCGEN05, reads=[(kv[stage], i)], writes=[(o[half], i)], cycles=128)
                w.commit(Engine.TCGEN05, more[f"o{half}"][0][0])

    for half in range(2):

        def softmax(w: Any, half: int = half) -> None:
            w.setmaxnreg(192)
            for i, stage, parity in laps(w, blocks, 2):
                pairs[f"s{half}"][0][stage].wait(parity)
                w.read(s[half])
                w.write(s[half], i)
                with w.elect_one():
                    pairs[f"p{half}"][0][stage].arrive()
                    more[f"corr{half}"][0][0].arrive()
                w.bar_arrive(1 + half, 256)

        p.role(f"softmax{half}", warps=4)(softmax)

    @p.role("correction", warps=4)
    def correction(w: Any) -> None:
        w.setmaxnreg(96)
        for i in range(blocks):
            for half in range(2):
                w.bar_sync(1 + half, 256)
                more[f"corr{half}"][0][0].wait(i & 1)
                more[f"o{half}"][0][0].wait(i & 1)
                w.read(o[half])
                w.write(o[half], i)
                more[f"o{half}"][1][0].arrive()
        w.write(out[0], 0)

    @p.role("store")
    def store(w: Any) -> None:
        with w.elect_one():
            more["o0"][1][0].wait(0)
            w.async_read(Engine.BULK, out[0], 0)
            w.commit(Engine.BULK)
            w.wait_group(Engine.BULK)

    return p


def pair_gemm(tiles: int = 8) -> Protocol:
    """Five roles in each of two CTAs: multicast copies, a commit to both, and a leader that the other arrives at."""
    p = Protocol("pair_gemm", cluster=2)
    a = p.smem("a", 4, 16 * KIB)
    acc = p.tmem("acc", 2, 64 * KIB)
    out = p.smem("out", 2, 8 * KIB)
    storage = p.mbarriers("input", 8)
    acc_full, acc_empty = p.mbarriers("acc_full", 2), p.mbarriers("acc_empty", 2)
    sched, clc = p.mbarriers("sched", 1), p.mbarriers("clc", 1)

    @p.init
    def init() -> None:
        ProducerConsumerPipeline(storage, 4).init_mbars(1, 2)
        for stage in range(2):
            acc_full[stage].init(1)
            acc_empty[stage].init(256)
        sched[0].init(1)

    @p.role("scheduler")
    def scheduler(w: Any) -> None:
        with w.elect_one():
            for _ in range(tiles):
                sched[0].arrive()

    @p.role("load")
    def load(w: Any) -> None:
        pipe = ProducerConsumerPipeline(storage, 4)
        with w.elect_one():
            sched[0].wait(0)
            for item in range(tiles):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(16 * KIB)
                    half = a[stage.index()].part(8 * KIB * w.cta, 8 * KIB)
                    w.tma_load(half, stage.mbar(), item, cta_mask=3)

    @p.role("mma")
    def mma(w: Any) -> None:
        pipe = ProducerConsumerPipeline(storage, 4)
        with w.elect_one():
            for item in range(tiles):
                with pipe.consume_explicit() as stage:
                    if w.cta == 0:
                        w.mma(Engine.TCGEN05, reads=[(a[stage.index()], item)], writes=[(acc[item % 2], item)])
                        mma_arrive_multicast(acc_full[item % 2], 3)
                    mma_arrive_multicast(stage.mbar(), 3)

    @p.role("fill", warps=2)
    def fill(w: Any) -> None:
        for item in range(tiles):
            w.async_write(Engine.CP_ASYNC, out[item % 2].part(w.index * 4 * KIB, 4 * KIB), item)
            clc[0].cp_async_arrive(noinc=w.index == 0)

    @p.role("epilogue", warps=4)
    def epilogue(w: Any) -> None:
        for item in range(tiles):
            acc_full[item % 2].wait(item // 2 & 1)
            w.read(acc[item % 2], item if w.cta == 0 else -1)
            acc_empty[item % 2].arrive_cluster(0)

    return p


def odds_and_ends() -> Protocol:
    """One role that waits for itself, one that only tests, arrivals of every kind that pipelines do not make."""
    p = Protocol("odds")
    own, polled, raw = (
        p.mbarriers("own", 1, count=32),
        p.mbarriers("polled", 2, count=2),
        p.mbarriers("raw", 3, count=4),
    )
    tile = p.smem("tile", 2, 64)

    @p.role("solo")
    def solo(w: Any) -> None:
        w.write(tile[0], 0)
        w.read(tile[0], 0)
        own[0].wait_state(own[0].arrive())
        with w.elect_one():
            polled[0].arrive(2)
            raw[0].expect_tx(64)
            raw[0].complete_transaction(0, 64)
            raw[0].arrive_no_complete()
            raw[0].arrive_drop()
            raw[0].arrive()
            raw[0].arrive()

    @p.role("poller", warps=3)
    def poller(w: Any) -> None:
        with w.elect_one():
            polled[0].test_wait(0)
            if w.index == 1:
                polled[1].arrive()
                raw[1].wait(1)

    return p


PROTOCOLS = {"attention": attention, "pair_gemm": pair_gemm, "odds": odds_and_ends}
