"""Latency profiles: the built-in ones load; every malformed document gives one ProfileError that says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipesim.bounds import MAX_KHZ
from pipesim.errors import ProfileError
from pipesim.model.ending import Ending
from pipesim.targets import find
from pipesim.timed.choice import DEFAULT, profile_for
from pipesim.timed.engine import simulate
from pipesim.timed.plan import plan
from pipesim.timed.profile import (
    ADDED,
    AT_LEAST_ONE,
    FIELDS,
    FOLDER,
    MAX_VALUE,
    PROFILE_VERSION,
    WORK_CONSTANT,
    load_profile,
    parse_profile,
    profile_names,
    scaled,
)
from pipesim.timed.profile_text import profile_text
from pipesim.timed.stated_error import ASSUMED

OLDER = Path(__file__).parent / "older_profiles"


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


@pytest.mark.parametrize("name", ["h100", "h200"])
def test_the_built_in_profiles_load(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.device in {"NVIDIA H100 80GB HBM3", "NVIDIA H200"}
    assert (profile.sms, profile.sm_khz) == (132, 1_980_000)
    assert profile.fitted
    assert profile.values.keys() >= FIELDS.keys()
    assert all(WORK_CONSTANT.fullmatch(name) for name in profile.values.keys() - FIELDS.keys())
    assert all(profile[field] == profile.values[field] > 0 for field in FIELDS)
    assert load_profile(str(FOLDER / f"{name}.json")) == profile


def test_their_names() -> None:
    assert profile_names() == ["h100", "h200"]


def test_each_device_has_its_own() -> None:
    assert profile_for("NVIDIA H200").name == "h200"
    assert profile_for("NVIDIA H100 80GB HBM3").name == "h100"
    assert profile_for("NVIDIA H100 PCIe").name == DEFAULT == "h100"


@pytest.mark.parametrize("name", ["h300", "", "../profiles/h100", "H100", "a" * 5000, "h100\0"])
def test_an_unknown_name(name: str) -> None:
    with pytest.raises(ProfileError) as caught:
        load_profile(name)
    assert caught.value.fact == f"there is no latency profile {name!r}"
    assert caught.value.correction.endswith("use one of h100, h200, or the path of a JSON file")


@pytest.mark.parametrize("inputs", [124, ["h200/ring", 5], "h200/ring", None])
def test_inputs_that_are_no_list_of_recordings(inputs: Any) -> None:
    assert refused(document(inputs=inputs)).fact == (
        "inputs of a latency profile is a list of the recordings that it was fitted to"
    )


@pytest.mark.parametrize(("name", "near"), [("H100", "h100"), ("b200", "h200"), ("h20", "h200")])
def test_a_name_that_is_nearly_one(name: str, near: str) -> None:
    with pytest.raises(ProfileError) as caught:
        load_profile(name)
    assert caught.value.correction.startswith(f"did you mean {near}? If not, use one of")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path / "a\0b.json"):
        with pytest.raises(ProfileError) as caught:
            load_profile(str(path))
        assert caught.value.fact == f"the latency profile {path} cannot be read"
    folder = tmp_path / "folder.json"
    folder.mkdir()
    with pytest.raises(ProfileError, match="cannot be read"):
        load_profile(str(folder))
    latin = tmp_path / "latin.json"
    latin.write_bytes(b'{"name": "M\xfcller"}')
    with pytest.raises(ProfileError, match="cannot be read"):
        load_profile(str(latin))


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(values(wait_issue=7) | {"name": "mine", "device": "Müller"}), encoding="utf-8")
    profile = load_profile(str(path))
    assert (profile.name, profile.device, profile["wait.issue"]) == ("mine", "Müller", 7)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ProfileError) as caught:
        load_profile(str(path))
    assert caught.value.place == str(path)


@pytest.mark.parametrize("text", ["", "{", "name: h100", '{"name": NaN}', '{"name": "a", "name": "b"}'])
def test_text_that_is_no_json(text: str) -> None:
    assert refused(text).fact == "this is not a latency profile: it is not JSON"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"values": 1' + "0" * 5000 + "}", '"' + "a" * (1 << 20) + '"'])
def test_text_that_is_larger_than_any_profile(text: str) -> None:
    assert refused(text).fact == "this latency profile is larger than pipesim reads"


@pytest.mark.parametrize("data", [[], 3, None, {}, {"format": "pipesim-program"}, document(format=None)])
def test_json_of_another_kind(data: Any) -> None:
    assert refused(data).fact == 'this JSON is not a latency profile: it has no "format": "pipesim-profile"'


@pytest.mark.parametrize("version", [0, 10, "1", None, 1.0, True])
def test_another_version(version: Any) -> None:
    fact = refused(document(version=version)).fact
    assert fact == f"this latency profile is of version {version!r}; this pipesim reads versions 1 to 9"


def test_version_1_had_no_latency_of_matrices() -> None:
    """It is 30 there unless the document says otherwise; version 2 must say it, and version 1 lacks nothing else."""
    old = values(matrix_latency=None) | {"version": 1}
    assert parse_profile(json.dumps(old))["matrix.latency"] == 30
    assert parse_profile(json.dumps(values(matrix_latency=7) | {"version": 1}))["matrix.latency"] == 7
    assert refused(values(matrix_latency=None) | {"version": 2}).fact == "the profile lacks value matrix.latency"
    assert refused(values(matrix_latency=None, sync_latency=None) | {"version": 1}).fact == (
        "the profile lacks value sync.latency"
    )


@pytest.mark.parametrize("version", [4, 5, 6, 7, 8])
def test_a_document_of_an_older_version(version: int) -> None:
    """Profiles of the H200 as they were in this version, with the works of one kernel: what later ones added is
    assumed.
    """
    profile = load_profile(str(OLDER / f"version-{version}.json"))
    added = {name for name, (since, _) in ADDED.items() if since > version}
    assert profile.version == version
    assert profile.values.keys() >= FIELDS.keys()
    assert {profile.how[name] for name in added} == {ASSUMED}
    assert added <= set(profile.assumed)
    assert profile["ptx.slots_permille"] == profile["mma.slots_permille"]
    assert (profile["class.fences_beside"] == 0) is (version < 8)
    if version < 7:
        assert profile["copy.memory_bytes_per_kcycle"] == profile["copy.device_bytes_per_kcycle"]
    run = simulate(find("producer_consumer").build({"tiles": 6}), profile)
    assert run.outcome is Ending.FINISHED
    written = parse_profile(profile_text(profile, profile.how))
    assert (written.values, written.how) == (profile.values, dict(profile.how))


def test_how_names_what_an_older_document_has() -> None:
    """What a later version added may be in it, too, and then it must be named."""
    data = json.loads((OLDER / "version-6.json").read_text(encoding="utf-8"))
    data["values"]["class.fences_beside"] = 12
    assert refused(data).cause == "class.fences_beside"
    data["how"]["fitted"].append("class.fences_beside")
    profile = parse_profile(json.dumps(data))
    assert (profile["class.fences_beside"], profile.how["class.fences_beside"]) == (12, "fitted")
    data["how"]["assumed"].append("class.streamed_copies")
    assert refused(data).cause == "class.streamed_copies"


def test_what_was_added_stands_in_the_order_of_versions() -> None:
    versions = [since for since, _ in ADDED.values()]
    assert versions == sorted(versions)
    assert max(versions) == PROFILE_VERSION


@pytest.mark.parametrize("units", [None, "ns", ""])
def test_no_units(units: Any) -> None:
    assert refused(document(units=units)).fact == 'a latency profile names its units: "units": "SM cycles, bytes"'


@pytest.mark.parametrize("wrong", [None, [], 5])
def test_no_values(wrong: Any) -> None:
    assert refused(document(values=wrong)).fact == 'a latency profile has an object "values"'


@pytest.mark.parametrize("field", sorted(FIELDS))
def test_a_missing_value(field: str) -> None:
    error = refused(values(**{field.replace(".", "_", 1): None}))
    assert error.fact == f"the profile lacks value {field}"
    assert error.cause == f"{field} is {FIELDS[field]}"


def test_an_unknown_value() -> None:
    assert refused(values(wait_for=3)).fact == "the profile has an unknown value wait.for"


@pytest.mark.parametrize("field", sorted(FIELDS))
@pytest.mark.parametrize("value", ["5", 5.0, True, None, [5], -1, MAX_VALUE + 1])
def test_a_value_of_the_wrong_kind(field: str, value: Any) -> None:
    data = document()
    data["values"][field] = value
    what = "bytes" if ("_bytes" in field and not field.startswith("class.")) or "bytes_per" in field else "cycles"
    least = 1 if field in AT_LEAST_ONE else 0
    most = "4,000" if field.endswith(".slots_permille") else "1,000,000,000,000"
    fact = f"{field} = {value!r}: a whole number of {what} is needed, {least} to {most}"
    assert refused(data).fact == fact


@pytest.mark.parametrize(
    "field", ["copy.bytes_per_kcycle", "copy.device_bytes_per_kcycle", "read.bytes_per_kcycle", "wait.poll"]
)
def test_a_rate_or_a_poll_of_zero(field: str) -> None:
    """They divide: a rate of 0 never ends a copy, a poll of 0 never ends a wait."""
    assert refused(values(**{field.replace(".", "_", 1): 0})).fact.startswith(f"{field} = 0: ")


def test_more_issue_slots_than_make_sense() -> None:
    """At a million a simulation would make no progress."""
    assert parse_profile(json.dumps(values(mma_slots_permille=4_000)))["mma.slots_permille"] == 4_000
    assert refused(values(mma_slots_permille=4_001)).fact.endswith("is needed, 0 to 4,000")


def test_a_latency_of_zero_is_fine() -> None:
    data = document()
    data["values"] = {f: 1 if f in AT_LEAST_ONE else 0 for f in FIELDS}
    data["how"] = {"measured": list(FIELDS)}
    assert parse_profile(json.dumps(data))["copy.latency"] == 0


@pytest.mark.parametrize(
    "change",
    [{key: wrong} for key in ("name", "device", "fitted") for wrong in (None, 5)]
    + [{key: wrong} for key in ("sms", "sm_khz") for wrong in (None, "132", 0, -1, 1.5, True, MAX_KHZ + 1)],
)
def test_a_head_that_is_not_whole(change: dict[str, Any]) -> None:
    fact = "a latency profile names name, device, fitted (text), sms and sm_khz (whole numbers)"
    assert refused(document(**change)).fact == fact


def test_cycles_are_rounded_up() -> None:
    assert [scaled(n, 64_000) for n in (0, 1, 64, 65)] == [0, 1, 1, 2]


@pytest.mark.slow
def test_an_item_has_no_price() -> None:
    """So a plan does not grow with the tiles: as many different operations are looked up for 200 of them as for 20."""
    planned = []
    for tiles in (20, 200):
        _, _, plans = plan(find("gemm_sm90").build({"tiles": tiles}), load_profile("h100"), traced=False)
        planned.append(len({id(step) for steps in plans for step in steps}))
    assert planned[0] == planned[1]
