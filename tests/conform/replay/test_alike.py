"""CTAs that are compared by NumPy get the answer of a replay: as recorded, tampered with, and at other times."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from pipesim.conform.replay import conformance
from pipesim.conform.replay.conformance import conform
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.files import read_trace
from pipesim.trace.schema import COLUMNS, Events, Trace
from pipesim.trace.sites import NO_SITES, optional_sites
from tests.support.paths import TRACES
from tests.support.random_programs.registers import random_meetings

RECORDED = (
    "attention_sm90-bn64-d128-f0-kb16-nc1-p1-qs1-s900-st4-g7",
    "producer_consumer-al1-cw1-s1-tb12288-t96-w0-g13",
    "cluster_multicast-c2-cw2-ob8192-sb8192-s4-t16-w600-g8",
)


def changed(events: Events, name: str, row: int, change: Callable[[int], int]) -> Events:
    column = getattr(events, name).copy()
    column[row] = change(int(column[row]))
    return replace(events, **{name: column})


def later(events: Events, by: np.ndarray) -> Events:
    return replace(events, cycle=events.cycle + by, time_ps=events.time_ps + 500 * by)


def jittered(events: Events, random: np.random.Generator, most: int) -> np.ndarray:
    """Later times, those of each agent in its order."""
    rows, noisy = np.arange(len(events)), events.cycle + random.integers(0, most, len(events))
    times = events.cycle.copy()
    times[np.lexsort((rows, events.agent, events.cta))] = noisy[np.lexsort((noisy, events.agent, events.cta))]
    return times


def tampered(trace: Trace, how: str, random: Random) -> Trace:
    events = trace.events
    count, row = len(events), random.randrange(len(events))
    rows = np.arange(count)
    agent = (events.cta == events.cta[row]) & (events.agent == events.agent[row])
    by = random.choice((-1, 1)) * random.choice((3, 30, 100, 400, 3000))
    match how:
        case "swapped":
            other = min(row + random.choice((1, 2, 5)), count - 1)
            rows[row], rows[other] = other, row
            events = events.select(rows)
        case "dropped":
            events = events.select(np.delete(rows, row))
        case "site":
            events = changed(events, "site", row, lambda _: random.randrange(len(trace.meta.sites)))
        case "phase":
            events = changed(events, "parity", row, lambda parity: 1 - parity if parity >= 0 else 0)
        case "one time":
            events = later(events, by * (rows == row))
        case "times of an agent":
            events = later(events, by * (agent & (rows >= row * random.randrange(2))))
        case "all times":
            times = jittered(events, np.random.default_rng(random.randrange(1 << 30)), abs(by))
            events = later(events, times - events.cycle)
    return Trace(trace.meta, events)


def repeated(trace: Trace, times: int) -> Trace:
    """Each CTA several times, with numbers of their own."""
    ctas = [each.cta for each in trace.meta.ctas]
    most = (max(ctas) + 8) // 8 * 8
    parts = [replace(trace.events, cta=trace.events.cta + n * most) for n in range(times)]
    infos = tuple(replace(each, cta=each.cta + n * most) for n in range(times) for each in trace.meta.ctas)
    events = Events(*(np.concatenate([getattr(each, name) for each in parts]) for name in COLUMNS))
    return Trace(replace(trace.meta, ctas=infos, grid=max(most * times, trace.meta.grid)), events)


@pytest.mark.sampled(2, 3)
@pytest.mark.parametrize(
    "how", ["nothing", "swapped", "dropped", "site", "phase", "one time", "times of an agent", "all times"]
)
@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("seed", range(4))
def test_the_answer_is_that_of_replays(name: str, how: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = repeated(read_trace(TRACES / "h200" / f"{name}.parquet"), 2)
    program = find(trace.meta.protocol).build(trace.meta.params)
    trace = tampered(trace, how, Random(f"{name} {how} {seed}"))
    asked: list[bool] = []
    like_another = conformance._like_another

    def watched(*given: object) -> object:
        found = like_another(*given)  # type: ignore[arg-type]
        asked.append(found is not None)
        return found

    monkeypatch.setattr(conformance, "_like_another", watched)
    found = conform(program, trace)
    assert how != "nothing" or (asked and all(asked))
    monkeypatch.setattr(conformance, "_known_from", lambda *_: None)
    assert found == conform(program, trace)


@pytest.mark.parametrize("seed", [282, 291, 312, 648, 677, 762, 764, 791])
def test_nobody_leaves_a_named_barrier_before_all_have_come(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the barrier's events, and without: then the next event of a warp is later than what others did before it."""
    program, random = random_meetings(seed), np.random.default_rng(seed)
    found, known_from = [], conformance._known_from
    for also in (optional_sites(program), NO_SITES):
        first = simulate(program, load_profile("h100"), traced=True, also=also).trace
        parts = [first.events]
        for cta in range(1, 9):
            other = replace(first.events, cta=first.events.cta + cta)
            parts.append(replace(other, cycle=jittered(other, random, 40 * cta)))
        for other in parts[1:]:
            both = Events(*(np.concatenate([getattr(parts[0], name), getattr(other, name)]) for name in COLUMNS))
            trace = Trace(replace(first.meta, grid=9), both)
            monkeypatch.setattr(conformance, "_SEVERAL", 2)
            monkeypatch.setattr(conformance, "_known_from", known_from)
            found.append(conform(program, trace))
            monkeypatch.setattr(conformance, "_known_from", lambda *_: None)
            assert found[-1] == conform(program, trace)
    assert {each.divergence is None for each in found} == {False, True}
