"""Launch files are valid by their published schema, and what the reader refuses is not."""

import json

import pytest
from jsonschema import Draft202012Validator

from pipesim.ptx.launch.file import launch_json, read_launch
from tests.ptx.launch.test_file import EVERYTHING, GOOD, changed
from tests.support.paths import ROOT

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "launch.v1.json").read_text(encoding="utf-8"))


def errors(text: str) -> list[str]:
    return [each.message[:200] for each in Draft202012Validator(SCHEMA).iter_errors(json.loads(text))]


def test_every_kind_of_content():
    assert errors(launch_json(EVERYTHING)) == []
    assert errors(json.dumps(GOOD)) == []


def test_the_file_of_the_page():
    page = (ROOT / "docs" / "launch-file.md").read_text(encoding="utf-8")
    text = page.split("```json\n")[1].split("```")[0]
    assert errors(text) == []
    assert read_launch(text, "page").entry == "gemm"


@pytest.mark.parametrize(
    "text",
    [
        changed(version=2),
        changed(gird=[1]),
        changed(block=[0]),
        changed(parameters=[{"kind": "x"}]),
        changed(parameters=[{"kind": "value", "type": "q8", "value": 0}]),
        changed(parameters=[{"kind": "pointer", "contents": [{"kind": "pointer"}]}]),
        changed(policies={"tiles": 1}),
    ],
)
def test_what_is_not_valid(text):
    assert errors(text) != []
