"""The autopsy: barriers and who waits for what, from the records alone, in the words of the simulated deadlock."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.conform.diagnose.autopsy import autopsy
from pipesim.conform.diagnose.edits import Edit, EditKind, apply, edits
from pipesim.conform.diagnose.examination import Autopsy
from pipesim.conform.diagnose.outcomes import RandomSchedule, random_schedule
from pipesim.explain.blocked_agents import explain
from pipesim.model.barrier import BarrierWord
from pipesim.model.finding import Deadlock, FaultKind
from pipesim.model.machine import State
from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.schema import CtaInfo, EventKind, Trace
from tests.conform.cases import as_hardware, pc, recorded
from tests.support.barrier_words import encode_word
from tests.support.paths import EXAMPLES
from tests.support.present import present

SHAPES = st.sampled_from([(4, 12, 2, 1), (1, 6, 1, 1), (2, 8, 2, 32), (2, 8, 1, 1)])


def words(state: State) -> tuple[int, ...]:
    """What would be read after ``mbarrier.inval``."""
    return tuple(encode_word(BarrierWord(b.expected, b.pending, b.tx, b.done & 1)) for b in state.barriers)


def nameless(deadlock: Deadlock | None) -> list[tuple[object, ...]]:
    """A deadlock without what only a protocol can say: lines, and who would have come next."""
    assert deadlock is not None
    return [
        (b.agent, b.barrier, b.parity, b.phase_wanted, b.phase_now, b.arrivals_missing, b.count, b.bytes_missing)
        for b in deadlock.blocked
    ]


def tripless(deadlock: Deadlock | None) -> Deadlock:
    """A deadlock without trips of loops: the record of an arrive made once too often is taken for the next trip's."""
    assert deadlock is not None
    return replace(
        deadlock,
        blocked=tuple(
            replace(b, suppliers=tuple(replace(s, last_trip=-1, last_loop="") for s in b.suppliers))
            for b in deadlock.blocked
        ),
    )


def stands(found: Autopsy) -> list[tuple[int, int, int, int]]:
    return [(b.phase, b.pending, b.count, b.tx) for b in found.barriers]


def opened(trace: Trace, cta: int = 0, program: Program | None = None) -> Autopsy:
    return present(autopsy(trace, cta, program))


def hung(shape: tuple[int, ...], data: Any, seed: int) -> tuple[Program, Program, RandomSchedule, Trace]:
    program = pc(*shape)
    wrong = apply(program, data.draw(st.sampled_from(edits(program))))
    walk = random_schedule(wrong, seed)
    trace = recorded(program, wrong, walk, lag=seed)
    if not walk.trapped:
        trace = Trace(replace(trace.meta, ctas=(CtaInfo(0, 7, barrier_words=words(walk.state)),)), trace.events)
    return program, wrong, walk, trace


@pytest.mark.long
@settings(max_examples=40, deadline=None, derandomize=True)
@given(shape=SHAPES, data=st.data(), seed=st.integers(0, 10**6))
def test_barriers_and_words_of_any_hang(shape: tuple[int, ...], data: Any, seed: int) -> None:
    program, wrong, walk, trace = hung(shape, data, seed)
    if walk.ended or walk.trapped:
        return
    predicted = explain(wrong, walk.state)
    known, alone = opened(trace, 0, program), opened(trace)
    left_out = len(alone.barriers) < len(known.barriers)  # no record arrives there: a role that left before its first
    arrives = {site.group for site in trace.meta.sites if site.kind in (EventKind.ARRIVE, EventKind.EXPECT)}
    assert left_out == (arrives != {"full", "empty"})
    for found in (known,) if left_out else (known, alone):
        assert stands(found) == [(w.done, w.pending, w.expected, w.tx) for w in walk.state.barriers]
        assert (found.agree, found.trap, found.stopped, found.contradiction) == (True, None, (), "")
        assert nameless(found.deadlock) == nameless(predicted)
        assert found.deadlock is not None
        assert predicted is not None
        assert found.deadlock.finished == predicted.finished
        assert found.waiting == found.deadlock.blocked
    assert tripless(known.deadlock) == tripless(predicted)  # to the last line and supplier


@pytest.mark.slow
@settings(max_examples=30, deadline=None, derandomize=True)
@given(shape=SHAPES, data=st.data(), seed=st.integers(0, 10**6))
def test_what_trapped_is_named(shape: tuple[int, ...], data: Any, seed: int) -> None:
    program, wrong, walk, trace = hung(shape, data, seed)
    if not walk.trapped:
        return
    trap = walk.faults[-1]
    for found in (opened(trace, 0, program), opened(trace)):
        assert found.trap is not None
        assert (found.trap.kind, found.deadlock) == (trap.kind, None)
        assert found.trap.agent == wrong.agent_name(trap.agent)


def test_a_trap_that_left_no_record() -> None:
    """The record of the operation that trapped did not leave the chip: the protocol says what came next."""
    program = pc(1, 6, 1)
    run = simulate(apply(program, Edit(EditKind.NO_ACQUIRE, 0, 2)), load_profile("h100"))
    trace = as_hardware(program, run.trace)
    whole = opened(trace, 0, program)
    assert whole.trap is not None
    assert (whole.trap.kind, whole.trap.agent) == (FaultKind.OVER_ARRIVAL, "producer")
    keep = trace.events.cycle >= 0
    keep[(trace.events.agent == 0).nonzero()[0][-1]] = False
    shorter = opened(Trace(trace.meta, trace.events.select(keep)), 0)
    assert shorter.trap is None
    assert shorter.stopped != ()


def test_a_word_that_differs_is_named() -> None:
    program = pc()
    run = simulate(apply(program, Edit(EditKind.MISSING_ARRIVE, 1, 7)), load_profile("h100"))
    read = list(words(run.state))
    names = [program.barrier_name(b) for b in range(len(program.barriers))]
    wrong = names.index("empty[3]")
    read[wrong] = encode_word(BarrierWord(2, 2, 0, 1))

    def told(barrier_words: list[int]) -> Autopsy:
        header = CtaInfo(0, 0, barrier_words=tuple(barrier_words))
        return opened(as_hardware(program, run.trace, ctas=(header,)), 0, program)

    found = told(read)
    assert found.agree is False
    assert [(b.name, b.read) for b in found.barriers if b.agrees is False] == [("empty[3]", BarrierWord(2, 2, 0, 1))]
    assert (found.barriers[wrong].pending, found.barriers[wrong].count, found.barriers[wrong].phase & 1) == (1, 2, 1)
    assert told(list(words(run.state))).agree is True  # the twin


def test_records_that_contradict_each_other() -> None:
    """A wait that returned although nothing recorded could have let it: said, not smoothed over."""
    program = pc(2, 6, 1)
    run = simulate(apply(program, Edit(EditKind.MISSING_ARRIVE, 1, 2)), load_profile("h100"))
    trace = as_hardware(program, run.trace)
    found = opened(trace)
    assert found.contradiction == ""
    keep = trace.events.cycle >= 0
    keep[[trace.meta.sites[int(site)].kind.name for site in trace.events.site].index("EXPECT")] = False
    broken = opened(Trace(trace.meta, trace.events.select(keep)), 0)
    assert (
        "consumer returns from its wait for full[0] parity 0 before phase 0 can have completed" in broken.contradiction
    )


@pytest.mark.parametrize("what", ["window", "dropped", "count"])
def test_no_autopsy_of_a_part(what: str) -> None:
    program = pc()
    run = simulate(apply(program, Edit(EditKind.MISSING_ARRIVE, 1, 7)), load_profile("h100"))
    trace = as_hardware(program, run.trace)
    unknown = tuple(replace(group, count=0) for group in trace.meta.barriers)
    changes: dict[str, Any] = {
        "window": {"window": (0, 8)},
        "dropped": {"ctas": (CtaInfo(0, 0, dropped=(0, 1, 0)),)},
        "count": {"barriers": unknown},
    }
    assert autopsy(Trace(replace(trace.meta, **changes[what]), trace.events), 0) is None
    assert autopsy(trace, 0) is not None


def test_what_leaves_no_records_is_supplied() -> None:
    """Commits on mbarriers and cp.async arrivals are in no record of these traces: the protocol has them."""
    relay = f"{EXAMPLES / 'relay.py'}:relay"
    for target, params in (("gemm_sm100", {}), (relay, {"tiles": 6})):
        program = find(target).build(params)
        wrong = next(e for e in edits(program) if e.kind is EditKind.MISSING_ARRIVE)
        run = simulate(apply(program, wrong), load_profile("h100"))
        found = opened(as_hardware(program, run.trace), 0, program)
        assert (found.contradiction, found.supplied) == ("", True)
        assert {b.agent for b in found.waiting} == {b.agent for b in present(run.deadlock).blocked}
