"""Kernels that hang, and records that were lost: what such a trace still says, and what nobody may conclude from it."""

from dataclasses import replace
from typing import Any

import pytest

from pipesim.conform.result import DivergenceKind, TraceVerdict
from pipesim.lang.protocol import Protocol
from pipesim.trace.schema import CtaInfo, EventKind
from tests.conform.cases import run, simulated


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
def test_a_consumer_that_never_arrives(arrives: int) -> None:
    """The kernel does what its protocol says, and the protocol is wrong: the trace shows the deadlock."""
    case = simulated(stages=2, tiles=8, arrives=arrives, work=30).hung()
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


def test_a_kernel_that_was_stopped_in_the_middle() -> None:
    """Good so far, and then nothing: not finished, and no deadlock that the model could explain."""
    whole = simulated(stages=2, tiles=8, work=30)
    begun = whole.rows(kind=EventKind.WORK_BEGIN)[4]
    stopped = whole.cycle(begun)
    case = whole.without(*[r for r in range(len(whole.trace.events)) if whole.cycle(r) > stopped]).hung()
    found = case.refused()
    assert found.kind is DivergenceKind.NOT_FINISHED
    assert found.stuck is None
    # its twin: the same records of a kernel that says that it finished
    ended = case.with_meta(status="finished").refused()
    assert ended.kind is DivergenceKind.MISSING_EVENT


def test_a_kernel_that_hangs_is_still_held_to_what_it_did() -> None:
    case = simulated(stages=2, tiles=8, arrives=3, work=30).hung().with_meta(extra={})
    release = case.rows(kind=EventKind.ARRIVE)[1]
    back = case.rows(agent=0, kind=EventKind.WAIT_RETURN)[3]
    found = case.changed(back, cycle=case.cycle(release) - 1).changed(back - 1, cycle=case.cycle(release) - 2).refused()
    assert (found.kind, found.agent, found.barrier) == (DivergenceKind.TOO_EARLY, "load", "empty[1]")
    row = case.rows(agent=1)[7]
    assert case.without(row).refused().kind is DivergenceKind.OTHER_EVENT
    assert case.refused().kind is DivergenceKind.NOT_FINISHED


def test_a_hang_at_a_named_barrier() -> None:
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

    found = run(p.flatten()).hung().refused()
    assert found.kind is DivergenceKind.NOT_FINISHED
    assert found.stuck is not None
    assert [(b.agent, b.barrier) for b in found.stuck.blocked] == [("warp/0", "named barrier 1"), ("warp/1", "b[0]")]


# records that were lost


@pytest.mark.parametrize(
    "dropped", [{"use": 1}, {"use": 20}, {"load": 3}, {"load": 20, "use": 31}, {"load": 32, "use": 40}]
)
def test_lost_records_leave_it_unknown(dropped: dict[str, int]) -> None:
    whole = simulated(stages=2, tiles=8, work=30)
    assert [len(whole.rows(agent=a)) for a in (0, 1)] == [32, 40]
    result = lossy(whole, **dropped).conform()
    assert (result.verdict, result.divergence) == (TraceVerdict.UNKNOWN, None)
    assert result.lost == sum(dropped.values())
    # the twin: the same records of a buffer that lost nothing
    case = lossy(whole, **dropped)
    (header,) = case.trace.meta.ctas
    assert case.with_meta(ctas=(replace(header, dropped=(0, 0)),)).refused().kind is DivergenceKind.MISSING_EVENT


def test_lost_records_excuse_nothing_that_came_before_them() -> None:
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
