"""tools/README.md has one line for every tool."""

from __future__ import annotations

import re

from tests.support.paths import ROOT

TOOLS = ROOT / "tools"


def test_every_tool_has_one_line() -> None:
    listed = re.findall(r"^\| `(\w+)\.py` \|", (TOOLS / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(path.stem for path in TOOLS.glob("*.py") if path.stem != "__init__")
