"""Latency profiles: the built-in ones load, and state what recordings show; a malformed document is refused."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pipesim.bounds import MAX_KHZ
from pipesim.errors import ProfileError
from pipesim.targets import find
from pipesim.timed.plan import plan
from pipesim.timed.profile import (
    AT_LEAST_ONE,
    FIELDS,
    FOLDER,
    PROFILE_VERSION,
    load_profile,
    parse_profile,
    profile_text,
)


def document(**changes: Any) -> dict[str, Any]:
    """The document of a built-in profile, without the constants of works, with these members changed."""
    data: dict[str, Any] = json.loads((FOLDER / "h100.json").read_text(encoding="utf-8"))
    data["values"] = {name: value for name, value in data["values"].items() if name in FIELDS}
    data["how"] = {way: [name for name in names if name in FIELDS] for way, names in data["how"].items()}
    return data | changes


def values(**changes: Any) -> dict[str, Any]:
    """The document with these values changed; None leaves one out."""
    named = document()["values"] | {name.replace("_", ".", 1): value for name, value in changes.items()}
    return document(values={name: value for name, value in named.items() if value is not None})


def refused(data: Any) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        parse_profile(data if isinstance(data, str) else json.dumps(data), "mine.json")
    assert caught.value.place == "mine.json"
    assert caught.value.exit_code == 2
    return caught.value


@pytest.mark.parametrize("version", [*range(PROFILE_VERSION), PROFILE_VERSION + 1, "9", None, 9.0, True])
def test_another_version(version: Any) -> None:
    error = refused(document(version=version))
    assert error.fact == f"this latency profile is of version {version!r}; this pipesim reads version 9"
    assert error.cause == "it was written for another pipesim, which knew other values"
    assert error.correction == "copy one of pipesim/timed/profiles, and change its values"


@pytest.mark.parametrize("name", ["h100", "h200"])
def test_a_profile_is_read_as_it_was_written(name: str) -> None:
    profile = load_profile(name)
    again = parse_profile(profile_text(profile, profile.how))
    assert set(again.assumed) == set(profile.assumed)
    assert replace(again, assumed=profile.assumed) == profile


@pytest.mark.parametrize(
    ("member", "wrong", "fact"),
    [
        ("units", (None, "ns", ""), 'a latency profile names its units: "units": "SM cycles, bytes"'),
        ("values", (None, [], 5), 'a latency profile has an object "values"'),
        (
            "inputs", (124, ["h200/ring", 5], "h200/ring", None),
            "inputs of a latency profile is a list of the recordings that it was fitted to",
        ),
        ("errors", (None, {}, "none", 3), 'a latency profile has a list "errors"'),
        (
            "how", (None, [], {"measured": "wait.issue"}, {"guessed": []}),
            'a latency profile has an object "how" with lists measured, fitted, assumed',
        ),
        *(
            (member, wrong, "a latency profile names name, device, fitted (text), sms and sm_khz (whole numbers)")
            for members, wrong in (
                (("name", "device", "fitted"), (None, 5)),
                (("sms", "sm_khz"), (None, "132", 0, -1, 1.5, True, MAX_KHZ + 1)),
            )
            for member in members
        ),
    ],
)  # fmt: skip
def test_a_member_of_the_wrong_kind(member: str, wrong: Sequence[Any], fact: str) -> None:
    for each in wrong:
        assert refused(document(**{member: each})).fact == fact, each


def test_an_unknown_value() -> None:
    assert refused(values(wait_for=3)).fact == "the profile has an unknown value wait.for"


def test_a_rate_or_a_poll_of_zero() -> None:
    """They divide: a rate of 0 never ends a copy, a poll of 0 never ends a wait."""
    assert {"copy.bytes_per_kcycle", "read.bytes_per_kcycle", "wait.poll"} <= AT_LEAST_ONE
    for field in AT_LEAST_ONE:
        assert refused(values(**{field.replace(".", "_", 1): 0})).fact.startswith(f"{field} = 0: ")


@pytest.mark.slow
def test_an_item_has_no_price() -> None:
    """So a plan does not grow with the tiles: as many different operations are looked up for 60 of them as for 20."""
    planned = []
    for tiles in (20, 60):
        _, _, plans = plan(find("gemm_sm90").build({"tiles": tiles}), load_profile("h100"), traced=False)
        planned.append(len({id(step) for steps in plans for step in steps}))
    assert planned[0] == planned[1]


# how far a profile says that its periods are off, and how its values were obtained

GOOD = {
    "kernel": "ring", "figure": "period", "params": {"stages": [2, 4]}, "ctas": [1, 4], "configurations": 3,
    "median_permille": 10, "worst_permille": 20,
}  # fmt: skip


def whole(**changes: Any) -> dict[str, Any]:
    """The whole document of a built-in profile with these members changed."""
    data: dict[str, Any] = json.loads((FOLDER / "h200.json").read_text(encoding="utf-8"))
    return data | changes


@pytest.mark.parametrize(
    "change",
    [
        {"kernel": ""}, {"kernel": 3}, {"figure": "run"}, {"params": []}, {"params": {"stages": [4, 2]}},
        {"params": {"stages": 3}}, {"ctas": [0, 1]}, {"ctas": [2, 1]}, {"ctas": [1]}, {"ctas": 1},
        {"ctas": [1, True]}, {"configurations": 0}, {"configurations": "3"}, {"median_permille": -1},
        {"median_permille": 21}, {"worst_permille": 2.5}, {"worst_permille": 10**7}, {"more": 1},
    ],
)  # fmt: skip
def test_what_is_no_stated_error(change: dict[str, Any]) -> None:
    assert "error" in refused(whole(errors=[GOOD | change])).fact


@pytest.mark.parametrize(
    ("changes", "named"),
    [((["wait.issue"], []), "wait.issue"), (([], ["wait.isue"]), "wait.isue"), (([], ["wait.issue"]), "a value twice")],
)
def test_how_names_every_value_once(changes: tuple[list[str], list[str]], named: str) -> None:
    left_out, added = changes
    names = [name for name in whole()["values"] if name not in left_out] + added
    error = refused(whole(how={"fitted": names}))
    assert (error.fact, error.cause) == ('"how" names every value once, and nothing else', named)
