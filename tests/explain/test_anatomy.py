"""What a program consists of, read off its operations."""

from __future__ import annotations

from typing import Any

from pipesim.explain.anatomy.parts import Anatomy, TouchKind
from pipesim.explain.anatomy.read import anatomy
from pipesim.explain.ledger import Extent, Means
from pipesim.protocols.hopper.cutlass_sm90_pingpong import cutlass_sm90_pingpong
from pipesim.protocols.hopper.producer_consumer import producer_consumer
from tests.support.diagram_protocols import PROTOCOLS


def of(name: str, cta: int = 0) -> Anatomy:
    return anatomy(PROTOCOLS[name]().flatten(), cta)


def given(found: Anatomy, group: str) -> list[tuple[Any, ...]]:
    """Role, CTAs, means, arrivals and bytes at once, operations a phase, of everything that a group is given."""
    (one,) = (g for g in found.groups if g.name == group)
    return [(s.role, s.ctas, s.means, s.arrivals.high, s.nbytes.high, s.each_phase) for s in one.signals]


def test_the_ring_of_one_producer_and_two_consumers() -> None:
    found = anatomy(producer_consumer(arrive_lanes=32).flatten())
    assert [(r.name, r.warps, r.registers) for r in found.roles] == [
        ("producer", (0,), None),
        ("consumer", (1, 2), None),
    ]
    assert [(g.name, g.stages, g.count) for g in found.groups] == [
        ("full", (0, 1, 2, 3), 1),
        ("empty", (0, 1, 2, 3), 64),
    ]
    assert given(found, "full") == [
        ("producer", (0,), Means.ARRIVE_EXPECT, 1, 16384, 1),
        ("producer", (0,), Means.COPY, 0, 16384, 1),
    ]
    assert given(found, "empty") == [("consumer", (0,), Means.ARRIVE, 32, 0, 1)]
    assert [(w.role, w.agents, w.first_free) for g in found.groups for w in g.waits] == [
        ("consumer", 2, False),
        ("producer", 1, True),
    ]
    (tile,) = found.tiles
    assert [(u.role, u.how, u.nbytes) for u in (*tile.writers, *tile.readers)] == [
        ("producer", TouchKind.COPY, Extent(16384, 16384)),
        ("consumer", TouchKind.READ, Extent(8192, 8192)),
    ]
    assert (found.totals.warps, found.totals.smem_bytes, found.totals.barrier_bytes) == (3, 65600, 64)


def test_a_pair_of_ctas() -> None:
    leader, peer = of("pair_gemm"), of("pair_gemm", 1)
    assert given(leader, "full")[1:] == [("load", (0,), Means.COPY, 0, 8192, 1), ("load", (1,), Means.COPY, 0, 8192, 1)]
    assert given(leader, "empty") == [("mma", (0,), Means.COMMIT, 1, 0, 1), ("mma", (1,), Means.COMMIT, 1, 0, 1)]
    assert given(leader, "acc_empty") == [("epilogue", (n,), Means.ARRIVE, 32, 0, 1) for n in range(2)]
    assert given(peer, "acc_full") == [("mma", (0,), Means.COMMIT, 1, 0, 1)]
    (empty,) = (g for g in peer.groups if g.name == "acc_empty")
    assert (empty.signals, [(s.role, s.to) for s in empty.sent]) == ((), [("epilogue", (0,))])
    (tile,) = (t for t in peer.tiles if t.name == "a")
    assert [(u.role, u.ctas, u.to) for u in tile.writers] == [("load", (1,), (0, 1)), ("load", (0,), (0, 1))]


def test_who_waits_a_lap_after_another_does_not_pass_at_once() -> None:
    """Ping-pong: with as many subtiles as stages, the second group's first wait for C is for the second phase."""
    found = anatomy(cutlass_sm90_pingpong(residual=1).flatten())
    waits = {(g.name, w.role): w.first_free for g in found.groups for w in g.waits}
    assert [waits["epi_load.full", role] for role in ("consumer0", "consumer1")] == [False, False]
    assert waits["epi_load.empty", "epilogue_load"]
    assert waits["math_wg_order.group0", "consumer0"]
    assert not waits["math_wg_order.group1", "consumer1"]
