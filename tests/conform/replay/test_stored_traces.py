"""Every trace that comes with pipesim conforms to its protocol; simulated rings conform without any uncertainty."""

from collections.abc import Callable
from typing import Any

import pytest

from pipesim.conform.diagnose.diagnose import examine
from pipesim.conform.diagnose.examination import LaunchOutcome
from pipesim.conform.result import DivergenceKind, TraceVerdict
from pipesim.errors import EvidenceError
from pipesim.lang.protocol import Protocol
from pipesim.model.finding import FaultKind
from pipesim.model.ops import Engine
from tests.conform.cases import Case, run, simulated, stored
from tests.support.present import present
from tests.support.recordings import RECORDINGS, one_of_each, sampled
from tests.support.timed_ring import toy

EVERY = RECORDINGS
FAULTY = [name for name in EVERY if "-at-" in name]
#: What hung because its protocol can: test_load_order.py is about them.
HUNG = [name for name in EVERY if "/epilogue_residual-" in name and "-fto0-ki1-" in name]
#: Without a tile there is no event: test_a_stored_trace_without_an_event_compares_nothing.
EMPTY = [name for name in EVERY if "/producer_consumer-" in name and "-t0-" in name]
FILES = [name for name in EVERY if name not in FAULTY + HUNG + EMPTY]


#: What every run of ``.ci/run`` replays.
REPLAYED = one_of_each(RECORDINGS, 40_000)


@pytest.mark.sampled(14, 30)
@pytest.mark.parametrize("name", sampled(FILES, REPLAYED, fast=[name for name in FILES if "h100/" in name][::6]))
def test_a_stored_trace_conforms(name: str) -> None:
    case = stored(name)
    result = case.conform()
    assert result.divergence is None
    assert result.verdict is TraceVerdict.AGREES
    assert (result.events, result.lost) == (len(case.trace.events), 0)
    assert result.ctas == len(case.trace.meta.ctas)
    assert result.latency is not None
    assert result.latency.device == case.trace.meta.device.name
    assert result.latency.checked > 0 or result.events < 100  # one wait on each barrier, which a fresh one lets pass
    assert result.latency.unchecked <= (0 if not case.trace.meta.window else result.latency.checked // 4)
    if case.program.ctas == 1:
        assert result.uncertainty_cycles in (20, 147)  # of the clock, of the global timer
    else:  # of the time line that the SMs of a cluster share
        assert 90 < result.uncertainty_cycles < 5000  # as long as the shortest way there and back in the recording


#: Where the records cannot tell the fault from another one.
ALIKE = {"phase_not_toggled@7": {"phase_not_toggled", "wrong_parity"}}


@pytest.mark.sampled(2, 7)
@pytest.mark.parametrize("name", sampled(FAULTY, [name for name in FAULTY if "h200/" in name]))
def test_a_fault_made_on_purpose_is_found(name: str) -> None:
    """Kind, agent and iteration are named; what the chip did is possible; what it left agrees with its records."""
    case = stored(name)
    meta = case.trace.meta
    found = case.conform()
    assert found.verdict is TraceVerdict.DIFFERS
    assert present(found.divergence).kind is not DivergenceKind.TOO_SOON, "times are right, whatever the order"
    seen = present(examine(case.program, case.trace, found))
    assert seen.diagnosis is not None
    kinds = {explained.edit.kind.value for explained in seen.diagnosis.explanations}
    kind = meta.fault.partition("@")[0]
    assert kinds == ALIKE.get(meta.fault, {kind})
    assert (seen.diagnosis.made, seen.diagnosis.named, seen.diagnosis.manifest) == (meta.fault, True, True)
    named = next(e for e in seen.diagnosis.explanations if e.edit.kind.value == kind)
    made = int(meta.fault.partition("@")[2])
    # the first wrap from an iteration on is the last of its lap's
    late = meta.params["stages"] - 1 - made % meta.params["stages"] if kind == "phase_not_toggled" else 0
    assert named.edit.iteration == made + late
    producers = {"no_acquire", "expect_more", "expect_less"}
    assert named.agent.startswith("producer" if kind in producers else "consumer")
    if meta.status == "finished":
        assert seen.autopsy is None
        assert seen.outcome is (LaunchOutcome.WRONG_DATA if meta.wrong_tiles else LaunchOutcome.RIGHT)
        return
    assert seen.outcome is (LaunchOutcome.TRAP if meta.status == "trap" else LaunchOutcome.HANG)
    assert seen.autopsy is not None
    assert seen.autopsy.contradiction == ""
    if meta.status == "trap":
        assert present(seen.autopsy.trap).kind is FaultKind.OVER_ARRIVAL
    else:
        assert seen.autopsy.deadlock is not None
        assert seen.autopsy.agree is True, "the barrier words read afterwards"


def groups() -> Protocol:
    """Two consumer warps that meet after every tile, before one of them hands it back; stores that are waited for."""
    p = Protocol("groups")
    tile = p.smem("tile", 1, 64)
    storage = p.mbarriers("b", 2, count=1)

    @p.role("load")
    def load(w: Any) -> None:
        with w.elect_one():
            for i in range(4):
                storage[1].wait(1 - (i & 1))
                storage[0].expect_bytes(64)
                w.tma_load(tile[0], storage[0], i)

    @p.role("use", warps=2)
    def use(w: Any) -> None:
        for i in range(4):
            storage[0].wait(i & 1)
            w.work(20 + 60 * w.index)
            w.async_read(Engine.BULK, tile[0], i)
            w.commit(Engine.BULK)
            w.wait_group(Engine.BULK)
            w.bar_sync(1, 64)
            if w.index == 0:
                with w.elect_one():
                    storage[1].arrive()

    return p


def by_state() -> Protocol:
    """A warp that waits for its own arrive's phase, tests it by state, and one that is released by a commit."""
    p = Protocol("by_state")
    tile = p.smem("tile", 2, 64)
    storage = p.mbarriers("b", 2, count=1)

    @p.role("mma")
    def mma(w: Any) -> None:
        with w.elect_one():
            for i in range(3):
                token = storage[0].arrive()
                storage[0].wait_if_needed(storage[0].test_state(token), i & 1)
                w.async_write(Engine.TCGEN05, tile[0], i)
                w.async_write(Engine.TCGEN05, tile[1], i)
                w.commit(Engine.TCGEN05, storage[1])
                storage[1].wait(i & 1)
                w.read(tile[1], i)

    return p


@pytest.mark.parametrize("make", [groups, by_state])
@pytest.mark.parametrize("latency", [0, 3, 50])
def test_programs_with_other_ways_to_wait_conform(make: Callable[[], Protocol], latency: int) -> None:
    """Named barriers, groups, commits and waits by state leave no events: replay finds what they waited for."""
    case = run(make().flatten(), profile=toy(arrive_latency=latency, transfer_latency=latency))
    assert case.trace.meta.status == "finished"
    case.accepted()
    for first, end in ((0, 1), (0, 3), (1, 2), (1, 9), (2, 4), (3, 4)):
        case.window(first, end).accepted()


def test_a_stored_trace_without_an_event_compares_nothing() -> None:
    case = stored("h100/producer_consumer-al1-cw2-s4-tb16384-t0-w600-g1.parquet")
    result = case.conform()
    assert (result.verdict, result.events, result.words) == (TraceVerdict.UNKNOWN, 0, 8)
    assert (result.lost, result.ended, result.divergence) == (0, True, None)
    stored("h100/producer_consumer-al1-cw2-s4-tb16384-t1-w600-g1.parquet").accepted()  # the twin


def test_nothing_recorded_is_unknown() -> None:
    result = simulated(tiles=0).conform()
    assert (result.verdict, result.events, result.divergence) == (TraceVerdict.UNKNOWN, 0, None)


@pytest.mark.parametrize(
    ("other", "what", "cause"),
    [
        (
            {"stages": 1},
            "barriers",
            "trace: full (1 stage, count 1), empty (1 stage, count 1); protocol: ",
        ),
        (
            {"warps": 2},
            "agents",
            "trace: load/0 (warp 0), use/0 (warp 1), use/1 (warp 2); protocol: ",
        ),
        (
            {"lanes": 32},
            "barriers",
            "trace: full (2 stages, count 1), empty (2 stages, count 32); protocol: ",
        ),
    ],
)
def test_the_trace_of_another_kernel(other: dict[str, int], what: str, cause: str) -> None:
    mine, theirs = simulated(stages=2), simulated(**{"stages": 2} | other)
    with pytest.raises(EvidenceError) as caught:
        Case(mine.program, theirs.trace).conform()
    assert caught.value.fact == f"the trace of ring does not have the {what} of ring"
    mine_said = {
        "agents": "load/0 (warp 0), use/0 (warp 1)",
        "barriers": "full (2 stages, count 1), empty (2 stages, count 1)",
    }
    assert caught.value.cause == cause + mine_said[what]


@pytest.mark.parametrize("stated", [-1, 1.5, "16", None, True])
def test_an_impossible_uncertainty(stated: Any) -> None:
    case = simulated().with_meta(extra={"order_error_cycles": stated})
    with pytest.raises(EvidenceError, match="impossible clock uncertainty"):
        case.conform()
