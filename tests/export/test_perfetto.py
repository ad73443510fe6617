"""The Perfetto file of attention_sm90, simulated and on an H200, compared with both traces event by event.

What released a wait is worked out here once more, from the traces alone: on a barrier that counts bytes the k-th phase
is the k-th expect and the k-th copy, on one that counts arrivals the k-th arrive of each warp that ever arrives there.
"""

import shutil
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest

from pipesim.answers.recorded_program import recorded_program
from pipesim.formats.perfetto import perfetto_parts
from pipesim.scene.parts import Scene
from pipesim.scene.runs import simulated_scene, trace_scene
from pipesim.timed.profile import load_profile
from pipesim.trace.files import read_trace
from pipesim.trace.schema import EventKind, Trace
from tests.support.paths import TRACES
from tests.support.perfetto_file import PerfettoFile, ReadSlice, read

H200 = TRACES / "h200" / "attention_sm90-bn128-d128-f0-kb8-nc2-p1-qs1-s900-st2-g1.parquet"
BEGINS = {EventKind.WAIT_ENTER, EventKind.WORK_BEGIN}
ENDS = {EventKind.WAIT_RETURN, EventKind.WORK_END}
SIM, HW = "simulation (h200)", "hardware"


class Both(NamedTuple):
    """The file with both runs, and their traces by the names of their processes."""

    data: bytes
    file: PerfettoFile
    traces: dict[str, Trace]


@cache
def both() -> Both:
    measured = read_trace(H200)
    program = recorded_program(measured.meta)
    run, simulated = simulated_scene(program, load_profile("h200"))
    data = b"".join(perfetto_parts(Scene("attention", (run, trace_scene(measured, program, HW)))))
    return Both(data, read(data), {SIM: simulated, HW: measured})


class Seen(NamedTuple):
    """An event of a trace: its row, kind, barrier with its stage, agent, and time in ns since the first event."""

    row: int
    kind: EventKind
    barrier: str
    agent: int
    at: int


def events(trace: Trace) -> Iterator[Seen]:
    first = int(trace.events.time_ps.min())
    for row in range(len(trace.events)):
        site = trace.meta.sites[int(trace.events.site[row])]
        barrier = f"{site.barrier}[{int(trace.events.stage[row])}]" if site.barrier else ""
        at = (int(trace.events.time_ps[row]) - first) // 1000
        yield Seen(row, site.kind, barrier, int(trace.events.agent[row]), at)


def own_slices(file: PerfettoFile, run: str) -> dict[int, tuple[int, ReadSlice]]:
    """The slices of a run's warps, by the row that they say they begin with."""
    return {
        each.said["row"]: (number, each)
        for number, each in enumerate(file.slices)
        if each.track[0] == run and each.track[2].startswith("warp ")
    }


def mismatches(trace: Trace, file: PerfettoFile, run: str) -> list[str]:
    """Every event that the file shows otherwise, or not at all, and every slice that no event made."""
    found = []
    drawn = own_slices(file, run)
    seen = list(events(trace))
    for each, following in zip(seen, [*seen[1:], None], strict=True):
        if each.kind in ENDS:
            continue
        info = trace.meta.agents[each.agent]
        place = f"CTA 0 on SM {trace.meta.ctas[0].sm}" if trace.meta.ctas else "CTA 0"
        track = (run, place, f"warp {info.warp}: {trace.meta.agent_name(each.agent)}")
        end = following.at if each.kind in BEGINS and following is not None else each.at
        _, slice_ = drawn.pop(each.row, (-1, None))
        if slice_ is None or (slice_.track, slice_.begin, slice_.end) != (track, each.at, end):
            found.append(f"row {each.row}: {slice_}")
        elif each.barrier and each.barrier not in slice_.name:
            found.append(f"row {each.row}: named {slice_.name}")
    return found + [f"no event: {each}" for each in drawn.values()]


@pytest.mark.parametrize("run", [SIM, HW])
def test_every_event_is_a_slice_or_an_end_of_one(run: str) -> None:
    assert mismatches(both().traces[run], both().file, run) == []


def released(trace: Trace) -> set[tuple[int, int]]:
    """For each wait that was released the rows of what released it, as (row, row of the wait)."""
    made: dict[str, dict[tuple[EventKind, int], list[int]]] = defaultdict(lambda: defaultdict(list))
    waits: dict[tuple[str, int], list[int]] = defaultdict(list)
    for each in events(trace):
        if each.kind in (EventKind.ARRIVE, EventKind.EXPECT, EventKind.COPY):
            made[each.barrier][each.kind, each.agent].append(each.row)
        elif each.kind is EventKind.WAIT_ENTER:
            waits[each.barrier, each.agent].append(each.row)
    found = set()
    for (barrier, _), rows in waits.items():
        for number, row in enumerate(rows):
            phase = number - 1 if barrier.partition("[")[0].endswith("empty") else number  # the first finds it fresh
            if phase >= 0:
                found |= {(each[phase], row) for each in made[barrier].values()}
    return found


def arrows(file: PerfettoFile, run: str) -> set[tuple[int, int]]:
    """The arrows of a run by the rows of their slices; a copy in flight stands for the event that issued it."""
    return {
        (file.slices[source].said["row"], file.slices[target].said["row"])
        for source, target in file.arrows
        if file.slices[source].track[0] == run
    }


@pytest.mark.parametrize("run", [SIM, HW])
def test_an_arrow_from_each_arrive_and_each_landing_to_the_wait_that_it_released(run: str) -> None:
    expected = released(both().traces[run])
    assert arrows(both().file, run) == expected
    assert len(expected) == len([a for a in both().file.arrows if both().file.slices[a[0]].track[0] == run])
    landings = [a for a in both().file.arrows if both().file.slices[a[0]].category == "copy in flight"]
    assert all(both().file.slices[a].end <= both().file.slices[b].end for a, b in landings)


@pytest.mark.parametrize("run", [SIM, HW])
def test_counters_follow_from_the_arrows(run: str) -> None:
    """A phase is complete when the last of what released its wait had happened."""
    file, trace = both().file, both().traces[run]
    ends: dict[str, set[tuple[int, int]]] = defaultdict(set)
    last: dict[int, list[int]] = defaultdict(list)
    for source, target in file.arrows:
        each = file.slices[source]
        if each.track[0] == run:
            last[target].append(each.end)
    for target, times in last.items():
        wait = file.slices[target]
        ends[wait.name.removeprefix("wait ")].add((wait.said["phase"], max(times)))
    counters = {track[2]: values for track, values in file.counters.items() if track[0] == run}
    names = {f"{group.name}[{stage}]" for group in trace.meta.barriers for stage in range(group.stages)}
    for name in names:
        values = counters[f"{name}: phases completed"]
        waited = sorted(ends[name])
        assert values[0] == (0, 0)
        assert [value for _, value in values[1:]] == list(range(1, len(values)))
        assert [(value - 1, at) for at, value in values[1 : len(waited) + 1]] == waited
    for name in names:
        pending = counters.get(f"{name}: bytes pending", [(0, 0)])
        assert {value for _, value in pending} <= {0, 32768}
        assert pending[-1][1] == 0
    for group in ("k.empty", "v.empty"):
        slots = counters[f"{group}: slots in use"]
        assert max(value for _, value in slots) == 2
        assert slots[-1][1] == 0


def test_two_processes_one_clock_and_a_track_for_each_warp_under_its_cta_and_sm() -> None:
    tracks = both().file.tracks
    sm = both().traces[HW].meta.ctas[0].sm
    assert {track[0] for track in tracks} == {SIM, HW}
    assert {track[1] for track in tracks if track[0] == HW} == {f"CTA 0 on SM {sm}"}
    warps = [track[2] for track in tracks if track[0] == HW and track[2].startswith("warp ")]
    assert warps == [f"warp {n}: producer/{n}" for n in range(4)] + [f"warp {n + 4}: consumer/{n}" for n in range(8)]
    assert min(each.begin for each in both().file.slices if each.track[0] == SIM) == 0
    assert min(each.begin for each in both().file.slices if each.track[0] == HW) == 0


@pytest.mark.skipif(shutil.which("trace_processor_shell") is None, reason="trace_processor_shell is not installed")
def test_perfettos_own_trace_processor_reads_the_same() -> None:
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    config = TraceProcessorConfig(bin_path=shutil.which("trace_processor_shell"))
    with TraceProcessor(trace=iter([both().data]), config=config) as processor:
        (slices,) = processor.query("select count(*) as n from slice")
        (flows,) = processor.query("select count(*) as n from flow")
        (wrong,) = processor.query("select sum(value) as n from stats where severity in ('error', 'data_loss')")
    assert (slices.n, flows.n, wrong.n) == (len(both().file.slices), len(both().file.arrows), 0)
