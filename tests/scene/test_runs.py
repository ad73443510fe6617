"""Runs as pictures: what is on a track follows one another, what released a wait came before, landings have bounds.

Every program of the random judge is simulated; its picture is compared with the machine's own log of phases.
"""

from collections import defaultdict
from dataclasses import replace

import pytest

from pipesim.answers.recorded_program import recorded_program
from pipesim.scene.parts import OPEN, RunScene, SceneSlice
from pipesim.scene.runs import NO_PROTOCOL, trace_scene
from pipesim.trace.activity import SliceKind
from pipesim.trace.files import read_trace
from pipesim.trace.schema import Trace
from tests.support.paths import TRACES

H200 = TRACES / "h200"
STORED = (
    "producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1-window20..40",
    "cluster_multicast-c2-cw2-ob8192-sb8192-s4-t16-w600-g2",
    "epilogue_residual-a2-at700-cs2-es2-e150-fto1-ki3-od0-r1-sb2048-s4-st4-t6-g1",
    "persistent_scheduler-a700-cs2-cw2-ki8-s4-tb16384-t6-w600-g1",
    "gemm_sm90-bk64-bn128-d0-e300-kgs1-ki16-l0-nc2-s4-t2-tm1-g1",
)


def stored(name: str) -> Trace:
    return read_trace(H200 / f"{name}.parquet")


def drawn(name: str) -> RunScene:
    trace = stored(name)
    return trace_scene(trace, recorded_program(trace.meta), "hardware")


def overlaps(run: RunScene) -> list[tuple[SceneSlice, SceneSlice]]:
    """Slices of one track that are there at the same time."""
    tracks: dict[int, list[SceneSlice]] = defaultdict(list)
    for each in run.slices:
        tracks[each.track].append(each)
    found = []
    for mine in tracks.values():
        mine.sort(key=lambda each: each.begin)
        ends = [1 << 62 if each.end == OPEN else each.end for each in mine]
        found += [(a, b) for a, b, end in zip(mine, mine[1:], ends, strict=False) if b.begin < end]
    return found


@pytest.mark.parametrize("name", STORED)
def test_what_is_on_a_track_follows_one_another(name: str) -> None:
    run = drawn(name)
    assert overlaps(run) == []
    twice = replace(run, slices=(*run.slices, next(each for each in run.slices if each.end > each.begin)))
    assert overlaps(twice) != []


@pytest.mark.parametrize("name", STORED)
def test_arrows_lead_to_waits_of_the_phase_and_not_back_in_time(name: str) -> None:
    run = drawn(name)
    slack = 2 * max(each.error for each in run.slices)
    assert len(run.arrows) > 20
    for arrow in run.arrows:
        source, target = run.slices[arrow.source], run.slices[arrow.target]
        assert target.kind.waits or target.name.startswith("try "), target
        assert target.barrier.partition("[")[0] == source.barrier.partition("[")[0]
        assert arrow.at <= arrow.to + slack
        assert source.kind in (SliceKind.ISSUE, SliceKind.COPY, SliceKind.MMA)
    lasts = defaultdict(list)
    for arrow in run.arrows:
        lasts[arrow.target].append(arrow.last)
    assert all(each.count(True) == 1 for each in lasts.values())


def test_after_a_divergence_there_are_no_arrows_and_the_picture_says_where() -> None:
    run = drawn("producer_consumer-al1-cw2-s3-tb4096-t24-w200-g1-wrong_parity-at-7")
    assert any(note.startswith("CTA 0 does not follow the protocol") for note in run.notes)
    right = drawn("producer_consumer-al1-cw2-s3-tb8192-t64-w2000-g1")
    assert not any("does not follow" in note for note in right.notes)


def test_without_its_protocol_a_trace_has_waits_and_work_alone() -> None:
    trace = stored(STORED[1])
    run = trace_scene(trace, None, "hardware")
    assert run.notes[0] == NO_PROTOCOL
    assert (run.arrows, run.counters) == ((), ())
    whole = drawn(STORED[1])
    mine = [each._replace(phase=None) for each in whole.slices if not each.kind.in_flight]
    assert list(run.slices) == mine
