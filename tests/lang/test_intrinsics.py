"""The free functions of upstream: what they record, and what cannot be meant."""

from __future__ import annotations

from typing import Any

import pytest

from pipesim.errors import ProtocolError
from pipesim.lang.intrinsics import (
    elect,
    elect_mma_arrive,
    mma_arrive_multicast,
    predicated,
    umma_arrive_leader_cta,
    umma_arrive_peer_cta,
)
from pipesim.lang.protocol import Protocol
from pipesim.model.ops import Engine, Op


def recorded(cluster: int, body: Any) -> list[list[tuple[int, ...]]]:
    p = Protocol("p", cluster=cluster)
    storage = p.mbarriers("b", 2, count=1)
    tile = p.smem("tile", 2, 64)
    acc = p.tmem("acc", 2, 1024)

    @p.role("mma")
    def mma(w: Any) -> None:
        body(w, storage, tile, acc)

    prologue = {Op.INIT, Op.FENCE, Op.BAR_SYNC, Op.CLUSTER_ARRIVE, Op.CLUSTER_WAIT}
    return [[op for op in code if op[0] not in prologue] for code in p.flatten().code]


def test_the_elected_lane_commits_and_no_other() -> None:
    def body(w: Any, storage: Any, tile: Any, acc: Any) -> None:
        e = elect()
        elect_mma_arrive(storage[0], e)
        elect_mma_arrive(storage[0], 0)
        with predicated(e):
            mma_arrive_multicast(storage[1], 3)
        umma_arrive_leader_cta(storage[0])
        umma_arrive_peer_cta(storage[0])

    engine = int(Engine.TCGEN05)
    zero, one = recorded(2, body)
    assert zero[:2] == [(Op.COMMIT, engine, 0), (Op.COMMIT_MULTICAST, engine, 1, 3)]
    assert one[:2] == [(Op.COMMIT, engine, 2), (Op.COMMIT_MULTICAST, engine, 3, 3)]
    assert zero[2:] == one[2:] == [(Op.ARRIVE, 0, 32, 0, -1, 0), (Op.ARRIVE, 2, 32, 0, -1, 0)]


@pytest.mark.parametrize(
    ("body", "fact"),
    [
        (lambda w, s, t, a: w.commit(Engine.TCGEN05, s[0]), "mma: 32 lanes execute tcgen05.commit"),
        (lambda w, s, t, a: w.mma(Engine.TCGEN05, reads=[(t[0], 0)]), "mma: 32 lanes execute tcgen05.mma"),
        (lambda w, s, t, a: w.mma(Engine.BULK, reads=[(t[0], 0)]), "mma: BULK is not a matrix engine"),
        (lambda w, s, t, a: s[0].mapa(1).wait(0), "mma of CTA 0 waits for, or initialises, a barrier of CTA 1"),
        (lambda w, s, t, a: s[0].mapa(2).arrive(), "mma: a barrier of CTA 2"),
    ],
)
def test_what_cannot_be_meant_is_refused(body: Any, fact: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        recorded(2, body)
    assert caught.value.fact == fact
    assert "test_intrinsics.py" in caught.value.place
