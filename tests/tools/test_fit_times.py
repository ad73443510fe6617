"""What the shipped profiles say that they were fitted to is of the part of the recordings that a fit may read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipesim.timed.profile import FOLDER
from pipesim.trace.library import StoredTrace, stored_traces, trace_folder
from pipesim.trace.split import FILE, Split, SplitPart, read_split
from tools.fit_times import not_to_be_fitted


@pytest.fixture(scope="module")
def split() -> Split:
    return read_split(trace_folder() / FILE)


@pytest.fixture(scope="module")
def stored() -> list[StoredTrace]:
    return list(stored_traces(trace_folder()))


def inputs_of(profile: str) -> list[str]:
    inputs: list[str] = json.loads((FOLDER / f"{profile}.json").read_text(encoding="utf-8"))["inputs"]
    return inputs


@pytest.mark.parametrize("profile", ["h100", "h200"])
def test_nothing_that_is_held_out_was_fitted_to(profile: str, split: Split, stored: list[StoredTrace]) -> None:
    assert len(inputs_of(profile)) > 40
    assert not_to_be_fitted(inputs_of(profile), split, stored) == []


def test_every_recorded_kernel_is_among_them(stored: list[StoredTrace]) -> None:
    kernels = {each.meta.protocol for each in stored if f"h200/{each.path.stem}" in inputs_of("h200")}
    assert len(kernels) == 7


@pytest.mark.parametrize("part", [SplitPart.HELD_OUT, SplitPart.SEALED])
def test_a_recording_that_is_held_out_would_be_seen(part: SplitPart, split: Split, stored: list[StoredTrace]) -> None:
    other = next(each for each in stored if split.of_trace(each.meta) is part)
    name = f"{other.path.parent.name}/{Path(other.path).stem}"
    assert not_to_be_fitted([name, *inputs_of("h200")], split, stored) == [name]


def test_a_recording_that_is_not_stored_would_be_seen(split: Split, stored: list[StoredTrace]) -> None:
    assert not_to_be_fitted(["h200/elsewhere"], split, stored) == ["h200/elsewhere"]
