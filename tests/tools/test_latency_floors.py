"""The stored least latencies are what experiments and recordings give.

That the recordings held out keep them is in ``tests/conform/replay/test_stored_traces.py``: no stored trace is refused.
"""

from __future__ import annotations

import pytest

from pipesim.conform.replay.latency_floor import FOLDER, LatencyFloors, Least, ReleasePath
from tools import latency_floors as tool
from tools.latency_floors import Seen

COPY, ARRIVE = ReleasePath.COPY, ReleasePath.ARRIVE


def seen(path: ReleasePath, nbytes: int, after: int, khz: int = 1000) -> Seen:
    return Seen(path, nbytes, after, 20, khz, "somewhere")


@pytest.mark.long
@pytest.mark.slow
def test_the_stored_documents_are_up_to_date() -> None:
    found = tool.results(held_out=False)
    assert [tool.path_of(result) for result in found if tool.is_stale(result)] == []
    source = [result for result in found if result.folder == FOLDER]
    assert len(found) == len(source) + 1
    assert all(result.chosen_from >= 60 for result in source)
    assert all(result.held_out == 0 for result in found)


def test_all_numbers_are_lowered_by_the_largest_share_and_none_is_above_a_recording() -> None:
    tables = {COPY: {16: (400, 9), 1024: (500, 9), 4096: (600, 9)}, ARRIVE: {0: (100, 9)}}
    times = [seen(COPY, 1024, 400), seen(COPY, 5000, 590), seen(ARRIVE, 0, 95)]
    assert tool._lower(tables, 1000, times) == 800
    assert tables == {COPY: {16: (320, 9), 1024: (400, 10), 4096: (480, 10)}, ARRIVE: {0: (80, 10)}}


def test_a_recording_of_a_slower_clock_counts_as_at_the_clock_of_the_experiment() -> None:
    tables = {COPY: {16: (400, 9)}}
    assert tool._lower(tables, 1000, [seen(COPY, 16, 200, khz=500)]) == 1000
    assert tables == {COPY: {16: (400, 10)}}


def test_without_an_experiment_the_recordings_are_all_there_is() -> None:
    tables: tool.Tables = {}
    tool._lower(tables, 1000, [seen(COPY, 64, 400), seen(COPY, 64, 390), seen(COPY, 256, 380)])
    assert tool._rising(tables) == {COPY: (Least(64, 380, 2), Least(256, 380, 1))}


def test_a_recording_that_would_be_refused_has_a_negative_margin() -> None:
    floors = LatencyFloors("a chip", 1000, "here", {COPY: (Least(16, 300, 1),)})
    margins = tool._margins(floors, [seen(COPY, 16, 280), seen(COPY, 16, 279), seen(COPY, 8, 0), seen(ARRIVE, 0, 0)])
    assert margins == {COPY: -1}
