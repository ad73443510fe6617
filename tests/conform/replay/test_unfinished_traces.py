"""Kernels that hang, and records that were lost: what such a trace still says, and what nobody may conclude from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipesim.conform.result import DivergenceKind, TraceVerdict
from pipesim.lang.protocol import Protocol
from pipesim.trace.schema import CtaInfo, EventKind, Trace

Make = Callable[..., Any]


def hung(case: Any) -> Any:
    """The trace as a chip leaves it: every wait gave up at the deadline, with the uncertainty of a clock."""
    return case.with_meta(source="hardware", status="deadline", extra={"order_error_cycles": 16})


def lossy(case: Any, **dropped: int) -> Any:
    """The trace with the last records of some agents lost, as a full buffer loses them."""
    names = [case.trace.meta.agent_name(a) for a in range(len(case.trace.meta.agents))]
    assert set(dropped) <= set(names)
    lost = [r for name, n in dropped.items() if n for r in case.rows(agent=names.index(name))[-n:]]
    left = case.without(*lost)
    written = tuple(len(left.rows(agent=a)) for a in range(len(names)))
    header = CtaInfo(0, 7, (), written, tuple(dropped.get(name, 0) for name in names))
    return left.with_meta(ctas=(header,))


# kernels that hang


@pytest.mark.parametrize("arrives", [0, 1, 3])
def test_a_consumer_that_never_arrives(simulated: Make, arrives: int) -> None:
    """The kernel does what its protocol says, and the protocol is wrong: the trace shows the deadlock."""
    case = hung(simulated(stages=2, tiles=8, arrives=arrives, work=30))
    found = case.refused()
    assert found.kind is DivergenceKind.NOT_FINISHED
    assert found.claim == "the kernel timed out: 2 of 2 agents blocked"
    assert found.stuck is not None
    producer, consumer = found.stuck.blocked
    stage = arrives % 2
    assert (producer.agent, producer.barrier) == ("load", f"empty[{stage}]")
    assert (producer.phase_wanted, producer.arrivals_missing, producer.count) == (arrives // 2, 1, 1)
    assert (consumer.agent, consumer.barrier, consumer.bytes_missing) == ("use", f"full[{stage}]", 0)
    assert found.stuck.finished == ()
    assert found.agent == "load"


def test_a_kernel_that_was_stopped_in_the_middle(simulated: Make) -> None:
    """Good so far, and then nothing: not finished, and no deadlock that the model could explain."""
    whole = simulated(stages=2, tiles=8, work=30)
    begun = whole.rows(kind=EventKind.WORK_BEGIN)[4]
    stopped = whole.cycle(begun)
    case = hung(whole.without(*[r for r in range(len(whole.trace.events)) if whole.cycle(r) > stopped]))
    found = case.refused()
    assert found.kind is DivergenceKind.NOT_FINISHED
    assert found.stuck is None
    # its twin: the same records of a kernel that says that it finished
    ended = case.with_meta(status="finished").refused()
    assert ended.kind is DivergenceKind.MISSING_EVENT


def test_a_kernel_that_hangs_is_still_held_to_what_it_did(simulated: Make) -> None:
    case = hung(simulated(stages=2, tiles=8, arrives=3, work=30)).with_meta(extra={})
    release = case.rows(kind=EventKind.ARRIVE)[1]
    back = case.rows(agent=0, kind=EventKind.WAIT_RETURN)[3]
    found = case.changed(back, cycle=case.cycle(release) - 1).changed(back - 1, cycle=case.cycle(release) - 2).refused()
    assert (found.kind, found.agent, found.barrier) == (DivergenceKind.TOO_EARLY, "load", "empty[1]")
    row = case.rows(agent=1)[7]
    assert case.without(row).refused().kind is DivergenceKind.OTHER_EVENT
    assert case.refused().kind is DivergenceKind.NOT_FINISHED


def test_copies_that_nobody_waited_for_have_landed_by_the_deadline(run: Make) -> None:
    """The consumer hangs before it looks at its tiles: the explanation does not hold the copies to be under way."""
    p = Protocol("gated")
    tile = p.smem("tile", 1, 64)
    storage = p.mbarriers("b", 3, count=1)

    @p.role("load")
    def load(w: Any) -> None:
        with w.elect_one():
            for i in range(2):
                storage[1].wait(1 - i)
                storage[0].expect_bytes(64)
                w.tma_load(tile[0], storage[0], i)

    @p.role("use")
    def use(w: Any) -> None:
        storage[2].wait(0)
        storage[0].wait(0)

    found = hung(run(p.flatten())).refused()
    assert found.kind is DivergenceKind.NOT_FINISHED
    assert found.stuck is not None
    assert [(b.agent, b.barrier) for b in found.stuck.blocked] == [("load", "b[1]"), ("use", "b[2]")]


def test_a_hang_at_a_named_barrier(run: Make) -> None:
    """No record tells of the barrier itself: the last records before it do, and nobody is said to have passed it."""
    p = Protocol("meet")
    storage = p.mbarriers("b", 1, count=1)

    @p.role("warp", warps=2)
    def warp(w: Any) -> None:
        w.work(10)
        if w.index == 0:
            w.bar_sync(1, 64)
            w.work(5)
        else:
            storage[0].wait(0)
            w.bar_sync(1, 64)

    found = hung(run(p.flatten())).refused()
    assert found.kind is DivergenceKind.NOT_FINISHED
    assert found.stuck is not None
    assert [(b.agent, b.barrier) for b in found.stuck.blocked] == [("warp/0", "named barrier 1"), ("warp/1", "b[0]")]


def test_the_cta_that_hangs_is_named(simulated: Make) -> None:
    """Two CTAs were recorded, the second stopped early: it is the one that did not finish."""
    whole = simulated(stages=2, tiles=4)
    events = whole.trace.events
    both = {name: np.concatenate([getattr(events, name)] * 2) for name in events.__dataclass_fields__}
    both["cta"] = np.repeat([0, 1], len(events))
    twice = type(whole)(whole.program, Trace(whole.trace.meta, type(events)(**both)))
    assert hung(twice).refused().cta == 0  # all is there, and the kernel says that it did not finish
    last = [r for r in range(len(events), 2 * len(events)) if twice.trace.events.agent[r] == 1][-5:]
    found = hung(twice.without(*last)).refused()
    assert (found.kind, found.cta, found.agent) == (DivergenceKind.NOT_FINISHED, 1, "use")


# records that were lost


@pytest.mark.parametrize(
    "dropped", [{"use": 1}, {"use": 20}, {"load": 3}, {"load": 20, "use": 31}, {"load": 32, "use": 40}]
)
def test_lost_records_leave_it_unknown(simulated: Make, dropped: dict[str, int]) -> None:
    whole = simulated(stages=2, tiles=8, work=30)
    assert [len(whole.rows(agent=a)) for a in (0, 1)] == [32, 40]
    result = lossy(whole, **dropped).conform()
    assert (result.verdict, result.divergence) == (TraceVerdict.UNKNOWN, None)
    assert result.lost == sum(dropped.values())
    # the twin: the same records of a buffer that lost nothing
    case = lossy(whole, **dropped)
    (header,) = case.trace.meta.ctas
    assert case.with_meta(ctas=(replace(header, dropped=(0, 0)),)).refused().kind is DivergenceKind.MISSING_EVENT


@pytest.mark.parametrize(
    "name",
    [
        "h100/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet",
        "h200/producer_consumer-al1-cw1-s1-tb4096-t64-w0-g1.parquet",
    ],
)
def test_lost_records_of_a_chip(stored: Make, name: str) -> None:
    whole = stored(name)
    last = whole.trace.meta.agent_name(len(whole.trace.meta.agents) - 1)
    for dropped in ({"producer": 100}, {last: 100}, {"producer": 37, last: 81}):
        result = lossy(whole, **dropped).conform()
        assert (result.verdict, result.divergence, result.lost) == (TraceVerdict.UNKNOWN, None, sum(dropped.values()))


def test_lost_records_excuse_nothing_that_came_before_them(simulated: Make) -> None:
    """The consumer's last 20 records are lost. A wait that is too early before them is still refused; one that returned
    when they may already have happened cannot be.
    """
    whole = simulated(stages=1, tiles=8, work=30)
    case = lossy(whole, use=20)
    arrives, back = whole.rows(kind=EventKind.ARRIVE), case.rows(agent=0, kind=EventKind.WAIT_RETURN)
    early = case.changed(back[2], cycle=case.cycle(arrives[1]) - 1).refused()
    assert (early.kind, early.iteration) == (DivergenceKind.TOO_EARLY, 2)
    seen = len(case.rows(agent=1, kind=EventKind.ARRIVE))
    assert seen == 4
    late = case.moved(back[seen + 1], whole.cycle(arrives[seen]) - 1 - case.cycle(back[seen + 1])).conform()
    assert (late.verdict, late.divergence) == (TraceVerdict.UNKNOWN, None)
