"""The errors that profiles state, of recordings to which none was fitted."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pipesim.timed.profile import load_profile, profile_names
from pipesim.trace.library import trace_folder
from pipesim.trace.split import FILE, read_split
from tools import accuracy

#: Short recordings: one that may be fitted, two that are held out, and one that is sealed.
SHORT = (
    "h100/producer_consumer-al1-cw2-s4-tb16384-t5-w600-g1",
    "h100/producer_consumer-al1-cw1-s3-tb2048-t64-w0-g1",
    "h200/producer_consumer-al1-cw1-s1-tb16384-t24-w0-g1",
    "h200/producer_consumer-al1-cw1-s3-tb4096-t64-w0-g1",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of traces that has these."""
    for name in SHORT:
        path = tmp_path / "traces" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(trace_folder() / f"{name}.parquet", path)
    return tmp_path / "traces"


def test_an_error_is_stated_of_what_lies_inside_the_table_of_fitted_values(folder: Path) -> None:
    """One of the four is fitted, with 4 stages; that of its device with 3 stages, which is not, lies outside."""
    split = read_split(trace_folder() / FILE)
    found = accuracy.deviations(folder, split, "h100")
    assert [(each.inside, each.ctas, dict(each.params)["stages"], len(off)) for each, off in found.items()] == [
        (False, (1, 66), (4, 4), 1)
    ]
    assert accuracy.stated_errors(found) == []
    inside = {replace(each, inside=True): [-3, 20, 1, -2, 5, 6, 7, 8] for each in found}
    (stated,) = accuracy.stated_errors(inside)
    assert (stated.configurations, stated.median_permille, stated.worst_permille) == (8, 6, 20)
    assert accuracy.stated_errors({each: off[1:] for each, off in inside.items()}) == [], "seven are too few"
    assert accuracy.deviations(folder, split, "h200") == {}, "nothing was fitted"


@pytest.mark.long
@pytest.mark.parametrize("name", profile_names())
def test_the_built_in_profiles_state_what_the_recordings_show(name: str) -> None:
    found = accuracy.deviations(trace_folder(), read_split(trace_folder() / FILE), name)
    assert list(load_profile(name).errors) == accuracy.stated_errors(found)
