"""Of the recordings ``.ci/run`` takes some of every kind, all that are special, and the others run at length only."""

from __future__ import annotations

from collections import Counter

import pytest

from pipesim.trace.files import read_meta
from tests.support.paths import TRACES
from tests.support.recordings import RECORDINGS, STEP, kind_of, one_of_each, sampled, selection, size_of

SELECTED = selection(RECORDINGS)
KINDS = Counter(map(kind_of, RECORDINGS))


def test_the_kind_is_what_the_file_says_of_itself() -> None:
    """Of one of each: clock, memory, window and fault are special, and nothing else is."""
    for name in one_of_each(RECORDINGS):
        meta = read_meta(TRACES / name)
        assert meta is not None
        device, kernel, *_, ctas, special = kind_of(name)
        assert (device in meta.device.name.lower(), kernel) == (True, meta.protocol)
        assert ctas == ("one" if meta.grid == 1 else "several")
        plain = meta.clock == "clock" and meta.memory != "device" and not meta.window and not meta.fault
        assert plain == (special == ""), name


def test_every_kind_is_taken_and_every_special_one() -> None:
    taken = Counter(map(kind_of, SELECTED))
    for kind, count in KINDS.items():
        assert taken[kind] == (count if kind[-1] else -(-count // STEP)), kind


def test_the_devices_kernels_overlaps_and_special_ways_are_all_there() -> None:
    assert {word for name in SELECTED for word in kind_of(name)} == {word for kind in KINDS for word in kind}
    assert {kind_of(name)[2] for name in SELECTED if "gemm_sm90" in name} == {"l0", "l1"}
    for kernel in ("attention_sm90", "attention_sm90_fused"):
        assert {kind_of(name)[2] for name in SELECTED if f"/{kernel}-" in name} == {"p0", "p1"}
    assert {name for name in RECORDINGS if "-at-" in name or "-window" in name} <= SELECTED


def test_plain_ones_are_spread_over_all_sizes() -> None:
    """Every third in the order of size: between two that are taken there are two that are not."""
    kind = max(KINDS, key=lambda kind: KINDS[kind])
    mine = sorted((name for name in RECORDINGS if kind_of(name) == kind), key=lambda name: (size_of(name), name))
    assert [n for n, name in enumerate(mine) if name in SELECTED] == list(range(0, len(mine), STEP))


def test_one_of_each_is_the_smallest() -> None:
    chosen = one_of_each(RECORDINGS)
    assert Counter(map(kind_of, chosen)) == dict.fromkeys(KINDS, 1)
    assert chosen <= SELECTED
    sizes = sorted(map(size_of, chosen))
    assert one_of_each(RECORDINGS, sizes[3]) == {name for name in chosen if size_of(name) <= sizes[3]}


def test_each_has_one_lane() -> None:
    names = ["h100/a", "h100/b", "h100/c"]
    lanes = {str(row.values[0]): [mark.name for mark in row.marks] for row in sampled(names, ["h100/b"], ["h100/a"])}
    assert lanes == {"h100/a": [], "h100/b": ["slow"], "h100/c": ["long"]}
    marks = Counter(mark.name for row in sampled(RECORDINGS) for mark in row.marks)
    assert marks == {"slow": len(SELECTED), "long": len(RECORDINGS) - len(SELECTED)}


def test_another_file_is_no_recording() -> None:
    with pytest.raises(ValueError, match=r"no name of a recording: h100/mine\.parquet"):
        kind_of("h100/mine.parquet")
