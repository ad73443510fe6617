"""What the shipped profiles say that they were fitted to is of the part of the recordings that a fit may read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import FOLDER, load_profile
from pipesim.trace.library import StoredTrace, stored_traces, trace_folder
from pipesim.trace.split import FILE, Split, SplitPart, read_split
from tools.fit_times import Recorded, errors, not_to_be_fitted, search


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


def test_a_search_finds_the_value_that_the_recordings_have() -> None:
    """A recording is made of a simulation, with another value than the profile's."""
    chip = load_profile("h200")
    name = "producer_consumer/sum.cycles"
    true = replace(chip, values=chip.values | {name: 140})
    program = find("producer_consumer").build({"tiles": 24, "stages": 1, "consumer_warps": 1, "work": 0})
    run = simulate(program, true)
    made = Recorded("made", program, "made", None, run.cycles, None, {}, {}, 0, frozenset())
    found = search([made], chip, [name], rounds=12)
    assert abs(found.values[name] - 140) <= 3
    assert errors(made, chip)[1] != 0
    assert search([made], true, [name], rounds=1).values == true.values
