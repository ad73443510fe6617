"""What the shell completes: commands, options, protocols, parameters of the protocol that is named, profiles."""

from pathlib import Path

import argcomplete.lexers
import pytest

from pipesim.cli.main import parser
from pipesim.protocols.catalog import BUILT_IN
from pipesim.timed.profile import profile_names
from tests.support.fixture_types import Call


def complete(line: str) -> list[str]:
    """What is offered at the end of a line. argcomplete's way to bash needs a process of its own: see below."""
    finder = argcomplete.CompletionFinder(parser(), always_complete_options="long")
    quote, prefix, _, words, _ = argcomplete.lexers.split_line(line, len(line))
    return [word.rstrip() for word in finder._get_completions(words, prefix, quote, None)]


@pytest.mark.parametrize("command", ["show", "run", "check", "verify", "export", "capture", "diff --protocol", "list"])
def test_built_in_names(command: str) -> None:
    assert complete(f"pipesim {command} gemm_sm100") == [name for name in sorted(BUILT_IN) if "gemm_sm100" in name]


def test_parameters_of_the_protocol_that_is_named() -> None:
    assert complete("pipesim run producer_consumer -p st") == ["stages="]
    assert complete("pipesim check producer_consumer -p t") == ["tiles=", "tile_bytes="]
    assert complete("pipesim check gemm_sm90 -p tile_b") == []
    assert complete("pipesim run producer_consumer -p tiles=4 -p t") == ["tile_bytes="]


def test_profiles_and_kinds() -> None:
    assert [complete(f"pipesim explain {each}") for each in ("narrow", "prox")] == [["narrow_scope"], ["proxies"]]
    Path("mine.json").touch()
    Path("mine.txt").touch()
    assert complete("pipesim run producer_consumer --profile h") == [n for n in profile_names() if n.startswith("h")]
    assert complete("pipesim run producer_consumer --profile m") == ["mine.json"]


def test_files_and_the_functions_in_them_without_running_them() -> None:
    """A file of the user's that would end the shell's process, or write something, must not."""
    Path("mine.py").write_text(
        "raise SystemExit\ndef ring(stages: int = 4, rows: int = 2): ...\ndef other(columns: int = 1): ...\n"
        "def _private(): ...\ndef needs(one): ...\n",
        encoding="utf-8",
    )
    Path("one.py").write_text("def ring(stages: int = 4): ...\n", encoding="utf-8")
    Path("broken.py").write_text("def ring(\n", encoding="utf-8")
    Path("folder").mkdir()
    Path("folder/deep.py").touch()
    assert complete("pipesim check mi") == ["mine.py"]
    assert complete("pipesim check fol") == ["folder/"]
    assert complete("pipesim check folder/d") == ["folder/deep.py"]
    assert complete("pipesim check mine.py:") == ["mine.py:ring", "mine.py:other"]
    assert complete("pipesim check mine.py:ring -p ")[:2] == ["stages=", "rows="]
    assert complete("pipesim check mine.py:other -p c") == ["columns="]
    assert complete("pipesim check mine.py -p s") == []  # which of the two is not said
    assert complete("pipesim check one.py -p s") == ["stages="]
    assert complete("pipesim check broken.py -p s") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_line_for_a_shell(call: Call, shell: str) -> None:
    answer = call("completion", shell)
    assert (answer.code, answer.err) == (0, "")
    assert "pipesim" in answer.out
    assert call("completion", shell, "--json").json["text"].strip() == answer.out.strip()
