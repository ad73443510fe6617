"""The warp object: every method records its operation, and refuses what cannot be."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from pipesim.errors import ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.lang.recorder import recorder
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import ANY_ITEM, Warp
from pipesim.model.groups import ON_NAMED_BARRIER
from pipesim.model.ops import Engine, Fence, Op, Operation, Order, Scope, semantics

Body = Callable[[Warp, TileArray, BarrierStorage], Any]


def recorded(body: Body, cluster: int = 1, *, whole: bool = False) -> list[Operation]:
    """What one call records in a CTA of 3 warps, without the prologue; by one lane unless ``whole``."""
    p = Protocol("warp", cluster=cluster)
    tile, bars = p.smem("tile", 2, 64), p.mbarriers("b", 2, count=1)
    p.role("other", warps=2)(lambda _: None)

    @p.role("r")
    def r(w: Warp) -> None:
        with nullcontext() if whole else w.elect_one():
            body(w, tile, bars)

    code = p.flatten().code[2]
    return list(code[1 if cluster == 1 else 2 :])


CALLS: dict[str, tuple[Body, list[Operation]]] = {
    "tma_load": (lambda w, t, b: w.tma_load(t[1], b[1], 5), [(Op.TMA_LOAD, 1, 0, 64, 5, 0)]),
    "tma_load of fewer bytes": (lambda w, t, b: w.tma_load(t[0], b[0], 5, nbytes=48), [(Op.TMA_LOAD, 0, 0, 48, 5, 0)]),
    "tma_load to itself": (lambda w, t, b: w.tma_load(t[0], b[0], 5, cta_mask=1), [(Op.TMA_LOAD, 0, 0, 64, 5, 1)]),
    "read": (lambda w, t, _: w.read(t[0], 5), [(Op.READ, 0, 5)]),
    "read anything": (lambda w, t, _: w.read(t[0]), [(Op.READ, 0, ANY_ITEM)]),
    "write": (lambda w, t, _: w.write(t[0], 5), [(Op.WRITE, 0, 5)]),
    "async_read": (lambda w, t, _: w.async_read(Engine.BULK, t[0]), [(Op.TRANSFER_READ, 0, 0, 64, -1)]),
    "async_write": (lambda w, t, _: w.async_write(Engine.WGMMA, t[0], 2), [(Op.TRANSFER_WRITE, 2, 0, 64, 2)]),
    "commit": (lambda w, *_: w.commit(Engine.CP_ASYNC), [(Op.COMMIT, 1, -1)]),
    "commit on a barrier": (lambda w, _, b: w.commit(Engine.TCGEN05, b[1]), [(Op.COMMIT, 3, 1)]),
    "wait_group": (lambda w, *_: w.wait_group(Engine.BULK, 2), [(Op.WAIT_GROUP, 0, 2)]),
    "work": (lambda w, *_: w.work(0), [(Op.WORK, 0)]),
    "bar_sync": (lambda w, *_: w.bar_sync(15, 64), [(Op.BAR_SYNC, 1, 64, 32)]),
    "bar_arrive": (lambda w, *_: w.bar_arrive(1, 64), [(Op.BAR_ARRIVE, 1, 64, 32)]),
    "sync_threads": (lambda w, *_: w.sync_threads(), [(Op.BAR_SYNC, 0, 96, 32)]),
    "cluster_arrive": (
        lambda w, *_: w.cluster_arrive(Order.RELAXED),
        [(Op.CLUSTER_ARRIVE, semantics(Order.RELAXED, Scope.CLUSTER))],
    ),
    "cluster_wait": (lambda w, *_: w.cluster_wait(), [(Op.CLUSTER_WAIT, semantics(scope=Scope.CLUSTER))]),
    "cluster_sync": (lambda w, *_: w.cluster_sync(), [(Op.CLUSTER_ARRIVE, 2), (Op.CLUSTER_WAIT, 2)]),
    "fence": (lambda w, *_: w.fence(Fence.PROXY_ASYNC, Scope.CTA), [(Op.FENCE, 1, 1)]),
}


@pytest.mark.parametrize("call", CALLS)
def test_each_method_records_its_operation(call: str) -> None:
    body, expected = CALLS[call]
    whole = expected[0][0] in ON_NAMED_BARRIER
    assert recorded(body, whole=whole) == expected
    if whole:  # the twin: in one lane it would be counted as a whole warp's
        with pytest.raises(ProtocolError, match="1 of 32 lanes execute bar"):
            recorded(body)


def _in_all_lanes(w: Warp, tile: TileArray, bars: BarrierStorage) -> None:
    recorder().lanes = recorder().all_lanes
    w.tma_load(tile[0], bars[0], 1)


WRONG: dict[str, Body] = {
    "r: 32 lanes issue the same copy into tile[0]": _in_all_lanes,
    "r: a multicast to the CTAs of mask 0b10": lambda w, t, b: w.tma_load(t[0], b[0], 1, cta_mask=2),
    "80 bytes at 0 of tile[0], which has 64": lambda w, t, b: w.tma_load(t[0], b[0], 1, nbytes=80),
    "-16 bytes at 0 of tile[0], which has 64": lambda w, t, b: w.tma_load(t[0], b[0], 1, nbytes=-16),
    "named barrier 16": lambda w, *_: w.bar_sync(16, 32),
    "named barrier -1": lambda w, *_: w.bar_arrive(-1, 32),
    "work of -1 cycles": lambda w, *_: w.work(-1),
    f"work of {1 << 62} cycles": lambda w, *_: w.work(1 << 62),
}


@pytest.mark.parametrize("fact", WRONG)
def test_what_cannot_be_is_refused(fact: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        recorded(WRONG[fact])
    assert caught.value.fact == fact
    assert caught.value.place.startswith(f"{__file__}:")


def test_a_warp_records_for_its_own_role_only() -> None:
    p = Protocol("lent")
    kept: list[Warp] = []
    p.role("first")(kept.append)

    @p.role("second")
    def second(_: Warp) -> None:
        kept[0].work(3)

    with pytest.raises(ProtocolError, match="second uses the warp object of first") as caught:
        p.flatten()
    assert caught.value.place.startswith(f"{__file__}:")
    assert caught.value.correction == "use the argument of the role's own function"
