"""tools/README.md has one line for every tool."""

import re

from tests.support.paths import ROOT

TOOLS = ROOT / "tools"


def test_every_tool_has_one_line() -> None:
    listed = re.findall(r"^\| `(\w+(?:\.py)?)` \|", (TOOLS / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    files = [path.name for path in TOOLS.glob("*.py") if path.stem != "__init__"]
    assert sorted(listed) == sorted([*files, *(path.parent.name for path in TOOLS.glob("*/__main__.py"))])
