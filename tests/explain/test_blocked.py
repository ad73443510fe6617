"""A machine that is stuck, explained: who waits for what, what is missing, who could send it, who waits in a ring."""

from typing import Any

from pipesim.explain.blocked_agents import explain
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.warp import Warp
from pipesim.model.finding import BlockedAgent, Deadlock, Supplier
from pipesim.model.moves import run_canonically
from pipesim.model.ops import Engine


def stuck(protocol: Protocol) -> Deadlock:
    program = protocol.flatten()
    found = explain(program, run_canonically(program).state)
    assert found is not None
    return found


def test_a_consumer_that_never_arrives(ring: Any, where: Any) -> None:
    assert stuck(ring(arrives=0)) == Deadlock(
        (
            BlockedAgent(
                "load", "empty[0]", 0, phase_wanted=0, phase_now=0, arrivals_missing=1, count=1, bytes_missing=0,
                line=where("load waits"), suppliers=(),
            ),
            BlockedAgent(
                "mma", "full[0]", 1, phase_wanted=1, phase_now=1, arrivals_missing=1, count=1, bytes_missing=0,
                line=where("mma waits"),
                suppliers=(
                    Supplier("load", "arrival", where("load expects"), where("load expects"), 0, "empty[0]"),
                ),
            ),
        ),
        finished=(),
        cycle=(),
    )  # fmt: skip


def test_a_commit_and_a_multicast_are_suppliers_too() -> None:
    p = Protocol("async", cluster=2)
    tile, bars = p.smem("tile", 1, 64), p.mbarriers("b", 1, count=2)

    @p.role("issuer")
    def issuer(w: Warp) -> None:
        with w.elect_one():
            bars[0].wait(0)
            w.commit(Engine.TCGEN05, bars[0])
            if w.cta == 0:
                w.tma_load(tile[0], bars[0], 1, cta_mask=0b11)

    p.role("expecter")(lambda w: _elected_expect(w, bars))
    found = stuck(p)
    by_agent = {b.agent: {s.agent: s.supplies for s in b.suppliers} for b in found.blocked}
    assert by_agent == {
        "issuer@0": {"issuer@0": "arrival and bytes", "expecter@0": "arrival"},
        "issuer@1": {"issuer@0": "bytes", "issuer@1": "arrival", "expecter@1": "arrival"},
    }
    assert found.cycle == ("issuer@0",), "it waits for itself"


def _elected_expect(w: Warp, bars: BarrierStorage) -> None:
    with w.elect_one():
        bars[0].expect_bytes(64)


def test_a_warp_that_leaves_its_warp_group_alone_with_a_wgmma() -> None:
    """Three warps of a group multiply twice, one only once: the others wait for its second group for ever."""
    p = Protocol("warp_group")
    tile = p.smem("tile", 1, 64)

    @p.role("mma", warps=4)
    def mma(w: Warp) -> None:
        if w.index == 0:
            w.write(tile[0], 1)
        w.sync_threads()
        for _ in range(2 if w.index != 2 else 1):
            w.mma(Engine.WGMMA, reads=[(tile[0], 1)])
            w.commit(Engine.WGMMA)
        w.wait_group(Engine.WGMMA)

    found = stuck(p)
    closes, waits = p.flatten().sources[-2:]
    assert [b.agent for b in found.blocked] == ["mma/0", "mma/1", "mma/3"]
    assert found.blocked[0] == BlockedAgent(
        "mma/0", "the wgmma groups of mma/2", -1, phase_wanted=1, phase_now=1, arrivals_missing=1, count=2,
        bytes_missing=0, line=waits,
        suppliers=(Supplier("mma/2", "arrival", "", closes, 0, ""),),
    )  # fmt: skip
    assert (found.finished, found.cycle) == (("mma/2",), ())


def last_slot(slots: dict[str, tuple[int, ...]]) -> tuple[Supplier, ...]:
    """Who could free slot 1 for ``load``, which waits for slots 0 and 1; each role arrives at its own."""
    p = Protocol("slots")
    bars = p.mbarriers("empty", 2, count=2)

    @p.role("load")
    def load(w: Warp) -> None:
        for slot in range(2):
            bars[slot].wait(0)

    for role, arrives in slots.items():

        def body(w: Warp, arrives: tuple[int, ...] = arrives) -> None:
            with w.elect_one():
                for slot in arrives:
                    bars[slot].arrive()

        p.role(role)(body)
    (blocked,) = stuck(p).blocked
    assert blocked.barrier == "empty[1]"
    return blocked.suppliers


def test_whoever_was_led_past_this_slot_is_named_rather_than_who_has_arrived() -> None:
    (supplier,) = last_slot({"a": (0, 1), "b": (0,)})
    assert (supplier.agent, supplier.last_barrier, supplier.next_line) == ("b", "empty[0]", "")


def test_a_slot_at_which_nobody_arrives_has_no_supplier() -> None:
    assert last_slot({"a": (0,), "b": (0,)}) == ()
