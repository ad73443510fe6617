"""``pipesim skill``: what an agent is told, with every command in it carried out here."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from pipesim.cli.main import parse, parser
from tests.support.fixture_types import Call
from tests.support.paths import ROOT

SKILL = (ROOT / "pipesim" / "SKILL.md").read_text(encoding="utf-8")
TYPED = list(dict.fromkeys(re.findall(r"^ *(pipesim .+)$|`(pipesim [^`]+)`", SKILL, re.MULTILINE)))
LINES = [one or other for one, other in TYPED]
#: Not carried out here, and why.
PARSED = {
    "pipesim mcp": "a server: test_mcp.py",
    "pipesim hang -- ./program": "a GPU",
    "pipesim launches -- python train.py": "a GPU",
}


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """The kernel of a person, its older version, and the folder that ``pipesim hang`` has left, in the current one."""
    for name in ("kernel", "old"):
        for suffix in (".ptx", ".json"):
            shutil.copy(ROOT / "docs" / "examples" / f"row_max{suffix}", tmp_path / f"{name}{suffix}")
    (tmp_path / "hang").mkdir()
    shutil.copy(ROOT / "tests" / "coredump" / "dumps" / "cp_async_ring.h200.elf.xz", tmp_path / "hang" / "core.1")
    return tmp_path


def test_it_is_short_and_names_every_question() -> None:
    assert len(SKILL.splitlines()) <= 120
    assert SKILL.startswith("---\nname: pipesim\ndescription: ")
    assert len(LINES) > 10
    assert set(PARSED) < set(LINES)


def test_the_command_prints_the_file(call: Call) -> None:
    assert (call("skill").out, call("skill", "--json").json["text"]) == (SKILL, SKILL)


@pytest.mark.sampled(0, 8)
@pytest.mark.parametrize("line", LINES)
def test_every_command_in_it_is_one(call: Call, kernels: Path, line: str) -> None:
    words = shlex.split(line.replace("KIND", "race").replace("ASSUMPTION", "proxies"))[1:]
    if line in PARSED:
        assert parse(parser(), words).command == words[0]
        return
    if words[0] == "new":
        (kernels / "kernel.json").unlink()
    if "--redundant" in words:  # of what is proved
        words += ["--set", "n=2048"]
    answer = call(*words)
    assert answer.code in (0, 1), answer.err
    assert not answer.err
