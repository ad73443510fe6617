"""docs/commands.md has a row for every command: what it does, and its options."""

import re

from pipesim.cli.main import COMMANDS
from tests.support.paths import ROOT


def test_every_command_is_in_both_tables() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    does, options = page.split("\n## Options\n")
    names = sorted(command.name for command in COMMANDS)
    assert sorted(re.findall(r"^\| `(\w+)` \|", options, re.MULTILINE)) == names
    assert [name for name in names if f"`pipesim {name}" not in does] == []
