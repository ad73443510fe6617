"""What the shell completes: commands, options, protocols, parameters of the protocol that is named, profiles."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import argcomplete.lexers
import pytest

from pipesim.cli.main import parser
from pipesim.protocols.catalog import BUILT_IN
from pipesim.timed.profile import profile_names

Call = Callable[..., Any]


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


def test_profiles() -> None:
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


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_in_bash(tmp_path: Path) -> None:
    """The whole way: what bash calls when the tabulator is pressed, by the words that it would have."""
    assert in_bash("pipesim run producer_consumer -p st", 4, tmp_path).split() == ["stages="]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_name_of_a_file_is_a_word_in_bash(tmp_path: Path) -> None:
    """What bash puts into the line is evaluated as it would be when the line is entered."""
    names = [
        "$(touch pwned).py",
        "`touch pwned`.py",
        "a; touch pwned;.py",
        "a b|touch pwned|.py",
        "a'b\".py",
        "x\\y.py",
    ]
    for name in [*names, "new\nline.py", "escape\x1b[2J.py", "bell\x0bx.py"]:
        Path(name).touch()
    offered = in_bash("pipesim check ", 2, tmp_path, then='printf "%s\\n" "${COMPREPLY[@]}"').splitlines()
    words = [word for word in offered if word.rstrip().endswith(".py")]
    again = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {' '.join(words)}"], check=True, capture_output=True, text=True
    )
    assert sorted(again.stdout.splitlines()) == sorted(names)
    assert not Path("pwned").exists()


def in_bash(line: str, word: int, folder: Path, then: str = 'echo "${COMPREPLY[@]}"') -> str:
    """What bash prints after the completion of a line's last word."""
    script = folder / "pipesim"
    script.write_text(
        f"#!{sys.executable}\nfrom pipesim.cli.main import main\nraise SystemExit(main())\n", encoding="utf-8"
    )
    script.chmod(0o755)
    typed = f"""
        eval "$(pipesim completion bash)"
        COMP_LINE={line!r}; COMP_POINT={len(line)}; COMP_TYPE=9
        COMP_WORDS=({line}); COMP_CWORD={word}
        _python_argcomplete pipesim
        {then}
    """
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    answer = subprocess.run(
        ["bash", "-c", typed], env={**os.environ, "PATH": path}, check=True, capture_output=True, text=True
    )
    return answer.stdout
