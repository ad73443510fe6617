"""What a profile states of its own error: it is what the recordings show, and a malformed statement is refused."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest

from pipesim.conform.compare import launched, period_pair
from pipesim.conform.timing import median_period
from pipesim.errors import ProfileError
from pipesim.targets import find
from pipesim.timed.choice import profile_for
from pipesim.timed.engine import simulate
from pipesim.timed.profile import FIELDS, FOLDER, load_profile, parse_profile, profile_names
from pipesim.timed.stated_error import StatedError
from pipesim.trace.library import stored_traces
from pipesim.trace.schema import TraceMeta
from pipesim.trace.split import FILE, SplitPart, read_split
from tests.support.paths import TRACES

GOOD = {"kernel": "ring", "ctas": [1, 4], "configurations": 3, "median_permille": 10, "worst_permille": 20}


def document(**changes: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((FOLDER / "h200.json").read_text(encoding="utf-8"))
    return data | changes


def refused(**changes: Any) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        parse_profile(json.dumps(document(**changes)), "mine.json")
    assert caught.value.place == "mine.json"
    return caught.value


def error_permille(meta: TraceMeta) -> int:
    """How far the simulated steady period is off the recorded one, without sign; both of launches without recording."""
    program = launched(find(meta.protocol).build(meta.params, grid=meta.grid), meta)
    profile = profile_for(meta.device.name)
    simulated = period_pair(program, profile, simulate(program, profile).trace, traced=False).simulated
    measured = median_period(meta.runs, traced=False)
    assert simulated
    assert measured
    return abs(round(1000 * (simulated - measured) / measured))


def errors_of_recordings(kernel: str) -> dict[str, list[StatedError]]:
    """What the recordings of a kernel show, by device: for each number of CTAs. Sealed ones are not read."""
    split = read_split(TRACES / FILE)
    errors: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for meta in (each.meta for each in stored_traces(TRACES)):
        timed = meta.clock == "clock" and median_period(meta.runs, traced=False)
        if meta.protocol == kernel and timed and split.of_trace(meta) is not SplitPart.SEALED:
            errors[meta.device.name, meta.grid].append(error_permille(meta))
    found: defaultdict[str, list[StatedError]] = defaultdict(list)
    for (device, ctas), off in sorted(errors.items()):
        stated = StatedError(kernel, (ctas, ctas), len(off), sorted(off)[len(off) // 2], max(off))
        found[device].append(stated)
    return dict(found)


@pytest.mark.slow
def test_the_built_in_profiles_state_what_the_recordings_show() -> None:
    profiles = [load_profile(name) for name in profile_names()]
    stated = {profile.device: list(profile.errors) for profile in profiles}
    assert stated == errors_of_recordings("producer_consumer")


def test_they_state_it_of_one_kernel_only() -> None:
    for profile in map(load_profile, profile_names()):
        stated = profile.stated_error("producer_consumer", 1)
        assert stated is not None
        assert 0 < stated.median_permille < stated.worst_permille < 300
        assert profile.stated_error("producer_consumer", 8) is None  # no launch of 8 CTAs was measured
        assert profile.stated_error("gemm_sm90", 1) is None


@pytest.mark.parametrize("version", [1, 2])
def test_older_profiles_state_nothing(version: int) -> None:
    old = document(version=version)
    del old["errors"], old["how"]
    old["values"] = {name: value for name, value in old["values"].items() if name in FIELDS}
    profile = parse_profile(json.dumps(old))
    assert (profile.errors, profile.assumed) == ((), ())
    assert profile.stated_error("producer_consumer", 1) is None


def test_one_of_ones_own() -> None:
    profile = parse_profile(json.dumps(document(errors=[GOOD])))
    assert profile.errors == (StatedError("ring", (1, 4), 3, 10, 20),)
    assert profile.stated_error("ring", 4) == profile.errors[0]
    assert profile.stated_error("ring", 5) is None


@pytest.mark.parametrize("errors", [None, {}, "none", 3])
def test_errors_are_a_list(errors: Any) -> None:
    assert refused(errors=errors).fact == 'a latency profile has a list "errors"'


@pytest.mark.parametrize(
    "change",
    [
        {"kernel": ""}, {"kernel": 3}, {"ctas": [0, 1]}, {"ctas": [2, 1]}, {"ctas": [1]}, {"ctas": 1},
        {"ctas": [1, True]}, {"configurations": 0}, {"configurations": "3"}, {"median_permille": -1},
        {"median_permille": 21}, {"worst_permille": 2.5}, {"worst_permille": 10**7}, {"more": 1},
    ],
)  # fmt: skip
def test_what_is_no_stated_error(change: dict[str, Any]) -> None:
    assert "error" in refused(errors=[GOOD | change]).fact


def test_a_member_that_is_missing() -> None:
    assert refused(errors=[{"kernel": "ring"}]).fact.startswith('each of "errors" is an object with kernel, ctas')


@pytest.mark.parametrize("assumed", [None, "wait.issue", ["wait.isue"], [3]])
def test_assumed_are_names_of_values(assumed: Any) -> None:
    """In version 3, which says nothing else of how its values were obtained."""
    fields = {name: value for name, value in document()["values"].items() if name in FIELDS}
    assert (
        refused(version=3, values=fields, assumed=assumed).fact
        == '"assumed" lists the names of values that were not measured'
    )


def test_how_each_value_was_obtained() -> None:
    names = sorted(document()["values"])
    how = {"measured": names[:3], "fitted": names[3:9], "assumed": names[9:]}
    profile = parse_profile(json.dumps(document(how=how)))
    assert profile.how == {name: way for way, each in how.items() for name in each}
    assert profile.assumed == tuple(names[9:])


@pytest.mark.parametrize("wrong", [None, [], {"measured": "wait.issue"}, {"guessed": []}])
def test_how_is_an_object_of_lists(wrong: Any) -> None:
    assert refused(how=wrong).fact == 'a latency profile has an object "how" with lists measured, fitted, assumed'


@pytest.mark.parametrize(
    ("changes", "named"),
    [((["wait.issue"], []), "wait.issue"), (([], ["wait.isue"]), "wait.isue"), (([], ["wait.issue"]), "a value twice")],
)
def test_how_names_every_value_once(changes: tuple[list[str], list[str]], named: str) -> None:
    left_out, added = changes
    names = [name for name in document()["values"] if name not in left_out] + added
    error = refused(how={"fitted": names})
    assert (error.fact, error.cause) == ('"how" names every value once, and nothing else', named)
