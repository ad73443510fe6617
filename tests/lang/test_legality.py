"""What PTX has no instruction for is refused where it is written; the right twin beside it is recorded."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from pipesim.errors import ProtocolError
from pipesim.lang.intrinsics import mma_arrive, mma_arrive_multicast, predicated
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.barrier import MAX_COUNT
from pipesim.model.ops import Engine
from pipesim.model.program import Program


@dataclass(frozen=True)
class Memory:
    """What the role of a test has at hand."""

    tile: TileArray
    acc: TileArray
    regs: TileArray
    bars: BarrierStorage


Body = Callable[[Warp, Memory], object]


def recorded(body: Body, cluster: int = 4) -> Program:
    p = Protocol("p", cluster=cluster)
    memory = Memory(p.smem("tile", 2, 64), p.tmem("acc", 2, 64), p.registers("regs", 2, 64), p.mbarriers("b", 2, 1))
    p.role("r")(lambda w: body(w, memory) if w.cta == 1 else None)  # type: ignore[arg-type]
    return p.flatten()


def elected(body: Body) -> Body:
    def one(w: Warp, m: Memory) -> None:
        with w.elect_one():
            body(w, m)

    return one


W, T, B, C = Engine.WGMMA, Engine.TCGEN05, Engine.BULK, Engine.CP_ASYNC


def load(space: str, bar: int, at: int = 1, mask: int = 0) -> Body:
    """A copy into the CTA ``at``, counted on a barrier of the CTA ``bar``, by CTA 1."""

    @elected
    def body(w: Warp, m: Memory) -> None:
        w.tma_load(getattr(m, space)[0].mapa(at), m.bars[0].mapa(bar), 1, cta_mask=mask)

    return body


@elected
def _copies_to_a_barrier(w: Warp, m: Memory) -> None:
    w.commit(B, m.bars[0])


#: What is refused, by whom it is said, and the twin that is right.
REFUSED: dict[str, tuple[Body, Body]] = {
    "1 of 32 lanes execute wgmma": (
        elected(lambda w, m: w.mma(W, reads=[(m.tile[0], 1)])), lambda w, m: w.mma(W, reads=[(m.tile[0], 1)]),
    ),
    "1 of 32 lanes execute bar.sync": (
        elected(lambda w, m: w.bar_sync(1, 32)), lambda w, m: w.bar_sync(1, 32),
    ),
    "1 of 32 lanes execute bar.arrive": (
        elected(lambda w, m: w.bar_arrive(1, 64)), lambda w, m: w.bar_arrive(1, 64),
    ),
    "a commit of WGMMA to an mbarrier": (lambda w, m: w.commit(W, m.bars[0]), lambda w, m: w.commit(W)),
    "a commit of BULK to an mbarrier": (_copies_to_a_barrier, elected(lambda w, m: w.commit(B))),
    "a commit of TCGEN05 without an mbarrier": (
        elected(lambda w, m: w.commit(T)), elected(lambda w, m: w.commit(T, m.bars[0])),
    ),
    "a wait for groups of TCGEN05": (lambda w, m: w.wait_group(T), lambda w, m: w.wait_group(B)),
    "reads or writes acc[0] of CTA 0, which is tensor memory": (
        lambda w, m: w.read(m.acc[0].mapa(0)), lambda w, m: (w.write(m.acc[0], 1), w.write(m.tile[0].mapa(0), 1)),
    ),
    "reads or writes regs[1] of CTA 2, which is registers": (
        lambda w, m: w.write(m.regs[1].mapa(2), 1), lambda w, m: w.write(m.regs[1].mapa(1), 1),
    ),
    "a wgmma on tile[0] of CTA 0, which is shared memory": (
        lambda w, m: w.mma(W, reads=[(m.tile[0].mapa(0), 1)]), lambda w, m: w.mma(W, reads=[(m.tile[0].mapa(1), 1)]),
    ),
    "a wgmma on acc[0] of CTA 1, which is tensor memory": (
        lambda w, m: w.mma(W, writes=[(m.acc[0], 1)]), lambda w, m: w.mma(W, writes=[(m.regs[0], 1)]),
    ),
    "a tcgen05 operation on regs[0], which is registers": (
        elected(lambda w, m: w.mma(T, writes=[(m.regs[0], 1)])), elected(lambda w, m: w.mma(T, writes=[(m.acc[0], 1)])),
    ),
    "a bulk copy into acc[0], which is tensor memory": (load("acc", 1), load("tile", 1)),
    "a bulk copy of acc[0], which is tensor memory": (
        elected(lambda w, m: w.async_read(B, m.acc[0])), elected(lambda w, m: w.async_read(B, m.tile[0])),
    ),
    "a cp.async copy of acc[0], which is tensor memory": (
        lambda w, m: w.async_write(C, m.acc[0], 1), lambda w, m: w.async_write(C, m.tile[0], 1),
    ),
    "32 lanes execute a tcgen05 operation": (
        lambda w, m: w.async_write(T, m.acc[0], 1), elected(lambda w, m: w.async_write(T, m.acc[0], 1)),
    ),
    "a copy into tile[0] of CTA 1 is counted on a barrier of CTA 2": (load("tile", 2), load("tile", 0)),
    "a copy into tile[0] of CTA 2 is counted on a barrier of CTA 1": (load("tile", 1, at=2), load("tile", 2, at=2)),
}  # fmt: skip


@pytest.mark.parametrize("fact", REFUSED)
def test_what_has_no_instruction_is_refused(fact: str) -> None:
    wrong, right = REFUSED[fact]
    with pytest.raises(ProtocolError) as caught:
        recorded(wrong)
    assert caught.value.fact.startswith("r")
    assert fact in caught.value.fact
    assert "test_legality.py:" in caught.value.place
    assert caught.value.cause
    assert caught.value.correction
    recorded(right)


# the thread that commits


@pytest.mark.parametrize(
    "commit", [lambda m: mma_arrive(m.bars[0]), lambda m: mma_arrive_multicast(m.bars[0], 0b11)], ids=["one", "all"]
)
def test_a_commit_is_for_what_its_own_thread_has_issued(commit: Callable[[Memory], None]) -> None:
    def body(*lanes: int) -> Body:
        def issue(w: Warp, m: Memory) -> None:
            for mma, then in zip(lanes[::2], lanes[1::2], strict=True):
                with predicated(1 << mma):
                    w.mma(T, writes=[(m.acc[0], 1)])
                with predicated(1 << then):
                    commit(m)

        return issue

    with pytest.raises(ProtocolError, match="lane 5 commits the tcgen05 operations of lane 0") as caught:
        recorded(body(0, 5))
    assert "test_legality.py:" in caught.value.place
    recorded(body(5, 5))
    recorded(body(0, 0, 5, 5))


# registers and counts


@pytest.mark.parametrize("count", [0, -3, MAX_COUNT + 1])
def test_a_count_that_no_barrier_can_have_is_refused_where_it_is_given(count: int) -> None:
    with pytest.raises(ProtocolError, match=f"b: a count of {count} arrivals") as caught:
        Protocol("p").mbarriers("b", 1, count=count)
    assert caught.value.place.startswith(f"{__file__}:")
    Protocol("p").mbarriers("b", 1, count=MAX_COUNT)
