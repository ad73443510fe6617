"""Protocols with every feature that a diagram must show, for the tests and the golden reports."""

from collections.abc import Callable
from typing import Any

from pipesim.lang.intrinsics import mma_arrive_multicast
from pipesim.lang.protocol import Protocol
from pipesim.model.ops import Engine
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.protocols.blackwell.attention_sm100 import attention_sm100

KIB = 1024


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
    p.mbarriers("spare", 2, count=1)
    tile = p.smem("tile", 2, 64)

    @p.role("solo")
    def solo(w: Any) -> None:
        w.bar_arrive(1, 64)
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
        if w.index == 0:
            w.bar_sync(1, 64)
        with w.elect_one():
            polled[0].test_wait(0)
            if w.index == 1:
                polled[1].arrive()
                raw[1].wait(1)

    return p


PROTOCOLS: dict[str, Callable[..., Protocol]] = {
    "attention_sm100": attention_sm100,
    "pair_gemm": pair_gemm,
    "odds": odds_and_ends,
}
