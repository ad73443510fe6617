"""The committed split: every recording is listed, a third of each kernel is held out, no profile was fitted to that."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import pytest

from hwkernels.twins import REGISTRY
from pipesim.timed.profile import FOLDER
from pipesim.trace.library import StoredTrace, stored_traces, trace_folder
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


@pytest.mark.parametrize("kernel", REGISTRY)
def test_a_third_of_each_kernel_is_held_out_and_about_half_of_that_is_sealed(kernel: str, split: Split) -> None:
    first = [part for each, part in split.listed if each.kernel == kernel and each not in split.drawn]
    parts = Counter(first)
    held = parts[SplitPart.HELD_OUT] + parts[SplitPart.SEALED]
    assert len(first) <= 3 * held <= 2 * len(first)
    assert abs(parts[SplitPart.HELD_OUT] - parts[SplitPart.SEALED]) <= max(2, held // 6)


@pytest.mark.parametrize("kernel", REGISTRY)
def test_whole_values_are_held_out_and_occur(kernel: str, split: Split) -> None:
    for name, values in split.rule.values[kernel].items():
        for value in values:
            having = [part for c, part in split.listed if c.kernel == kernel and dict(c.params)[name] == value]
            assert having
            assert SplitPart.FIT not in having


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
