"""The page of the architecture has the layers that are enforced."""

import tomllib

from tests.support.paths import ROOT


def test_the_page_has_the_layers_of_the_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each["name"] == "imports point downward only"]
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert "```\n" + "\n".join(layers) + "\n```" in page
