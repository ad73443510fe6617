"""docs/commands.md has the help of every command."""

from __future__ import annotations

import re

from pipesim.cli.main import COMMANDS
from tests.support.paths import ROOT


def test_every_command_is_on_the_page() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    shown = re.findall(r"^<!-- output of, exit 0: pipesim help (\S+) -->$", page, re.MULTILINE)
    assert sorted(shown) == sorted(command.name for command in COMMANDS)
    assert all(f"\n## {name}\n" in page for name in shown)
