"""docs/protocols.md has a section for every ready-made protocol, with every parameter, its default and its unit."""

from __future__ import annotations

import inspect
import re

import pytest

from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import find
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "protocols.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
EXPLAINED = [name for name in BUILT_IN if "sm100" in name and "attention" not in name] + ["conv_epilogue"]


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_parameter_is_explained_with_its_default_and_unit(name: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\w[\w ]*) \| \S.*\|$", SECTIONS[name], re.MULTILINE)
    assert {parameter: int(default) for parameter, default, _ in rows} == find(name).defaults


def test_every_protocol_is_in_the_table() -> None:
    assert set(re.findall(r"^\| \[`(\w+)`\]\(#\1\) \|", PAGE, re.MULTILINE)) == set(BUILT_IN)


@pytest.mark.parametrize("name", EXPLAINED)
def test_the_docstring_explains_every_parameter(name: str) -> None:
    text = inspect.getdoc(BUILT_IN[name]) or ""
    assert [parameter for parameter in find(name).defaults if f"``{parameter}``" not in text] == []
