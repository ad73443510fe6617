"""docs/protocols has a page for every ready-made protocol, with every parameter, its default and its unit."""

import inspect
import re

import pytest

from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import built_in, find
from tests.support.paths import ROOT

FOLDER = ROOT / "docs" / "protocols"
EXPLAINED = [name for name in BUILT_IN if "sm100" in name and "attention" not in name] + ["conv_epilogue"]


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_parameter_is_explained_with_its_default_and_unit(name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\w[\w ]*) \| \S.*\|$", page, re.MULTILINE)
    assert {parameter: int(default) for parameter, default, _ in rows} == find(name).defaults


def test_every_protocol_has_a_row_and_a_page() -> None:
    index = (FOLDER.parent / "protocols.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| \[`(\w+)`\]\(protocols/\1\.md\) \|", index, re.MULTILINE)) == set(BUILT_IN)
    assert {path.stem for path in FOLDER.glob("*.md")} == {*BUILT_IN, "cutlass"}


@pytest.mark.parametrize("name", EXPLAINED)
def test_the_docstring_explains_every_parameter(name: str) -> None:
    text = inspect.getdoc(built_in(name)) or ""
    assert [parameter for parameter in find(name).defaults if f"``{parameter}``" not in text] == []
