"""Of the recordings ``.ci/run`` takes one of every kind, and the others run at length only."""

from __future__ import annotations

from collections import Counter

import pytest

from pipesim.trace.files import read_meta
from tests.support.paths import TRACES
from tests.support.recordings import RECORDINGS, kind_of, one_of_each, sampled, size_of


@pytest.mark.slow
def test_the_kind_is_what_the_file_says_of_itself() -> None:
    """Of one of each: clock, memory, window and fault are special, and nothing else is."""
    for name in one_of_each(RECORDINGS):
        meta = read_meta(TRACES / name)
        device, kernel, *_, ctas, special = kind_of(name)
        assert (device in meta.device.name.lower(), kernel) == (True, meta.protocol)
        assert ctas == ("one" if meta.grid == 1 else "several")
        plain = meta.clock == "clock" and meta.memory != "device" and not meta.window and not meta.fault
        assert plain == (special == ""), name


def test_one_of_each_is_the_smallest() -> None:
    chosen = one_of_each(RECORDINGS)
    assert Counter(map(kind_of, chosen)) == dict.fromkeys(map(kind_of, RECORDINGS), 1)
    sizes = sorted(map(size_of, chosen))
    assert one_of_each(RECORDINGS, sizes[3]) == {name for name in chosen if size_of(name) <= sizes[3]}


def test_each_has_one_lane() -> None:
    names = ["h100/a", "h100/b", "h100/c"]
    lanes = {str(row.values[0]): [mark.name for mark in row.marks] for row in sampled(names, ["h100/b"], ["h100/a"])}
    assert lanes == {"h100/a": [], "h100/b": ["slow"], "h100/c": ["long"]}


def test_another_file_is_no_recording() -> None:
    with pytest.raises(ValueError, match=r"no name of a recording: h100/mine\.parquet"):
        kind_of("h100/mine.parquet")
