"""The committed split: every recording is listed, a third of each kernel is held out, no profile was fitted to that."""

import json
from collections.abc import Sequence

import pytest

from pipesim.timed.profile import FOLDER
from pipesim.trace.library import StoredTrace, stored_traces, trace_folder, trace_name
from pipesim.trace.split import FILE, Split, SplitPart, read_split


@pytest.fixture(scope="module")
def split() -> Split:
    return read_split(trace_folder() / FILE)


@pytest.fixture(scope="module")
def stored() -> tuple[StoredTrace, ...]:
    return tuple(each for each in stored_traces(trace_folder()) if each.meta.source == "hardware")


def test_every_recording_of_a_kernel_is_listed(split: Split, stored: tuple[StoredTrace, ...]) -> None:
    found = {split.rule.configuration(t.meta.protocol, t.meta.params, t.meta.grid) for t in stored}
    assert found - {configuration for configuration, _ in split.listed} == set()
    assert all(f"/{t.path.name}" in f"/{trace_name(t.meta)}" for t in stored)  # by which find_traces looks for them


def not_to_be_fitted(inputs: Sequence[str], split: Split, stored: Sequence[StoredTrace]) -> list[str]:
    """Those of a profile's inputs that are not recordings to which a profile may be fitted."""
    known = {f"{each.path.parent.name}/{each.path.stem}": split.part_of_trace(each.meta) for each in stored}
    return [name for name in inputs if known.get(name) is not SplitPart.FIT]


@pytest.mark.parametrize("profile", ["h100", "h200"])
def test_no_profile_was_fitted_to_what_is_held_out(profile: str, split: Split, stored: tuple[StoredTrace, ...]) -> None:
    inputs: list[str] = json.loads((FOLDER / f"{profile}.json").read_text(encoding="utf-8"))["inputs"]
    assert len(inputs) > 40
    assert not_to_be_fitted(inputs, split, stored) == []
    for part in (SplitPart.HELD_OUT, SplitPart.SEALED):
        other = next(each for each in stored if split.part_of_trace(each.meta) is part)
        name = f"{other.path.parent.name}/{other.path.stem}"
        assert not_to_be_fitted([name, "h200/elsewhere", *inputs], split, stored) == [name, "h200/elsewhere"]
