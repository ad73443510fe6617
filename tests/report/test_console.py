"""Width, colour and strange characters: what the console of a report decides."""

import io
import re
from pathlib import Path

import pytest

from pipesim.ptx.source_files import SourceFiles, lines_read_from
from pipesim.report.text.console import make_console, paint

LINES = ["ring   stages 4", "", "── NVIDIA H100 ──", "  ░░██▓▓▒", " ▸ 412", "✓ good", "✗ bad", "? unknown"]


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def painted(stream: io.StringIO) -> str:
    paint(make_console(stream), LINES)
    return stream.getvalue()


def test_a_terminal_gets_colour() -> None:
    """The twin of the next three tests: escape codes can be seen."""
    text = painted(Terminal())
    assert "\x1b[" in text
    assert "✗ bad" in text


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source file in a folder whose name a URL quotes, which is the current one."""
    file = tmp_path / "of mine" / "k.cu"
    file.parent.mkdir()
    file.write_text("wait();\n", encoding="utf-8")
    monkeypatch.chdir(file.parent)
    return file


def linked(stream: io.StringIO) -> list[tuple[str, str]]:
    """The hyperlinks in what is painted: their URLs and texts."""
    lines = ["  waits (k.cu:1), k.cu:12:3[0] and gone.cu:1", "      k.cu:1    wait();  xk.cu.txt:1"]
    paint(make_console(stream), lines)
    shown = stream.getvalue()
    assert re.sub(r"\x1b(\][^\x1b]*\x1b\\|\[[0-9;]*m)", "", shown).splitlines() == lines
    return re.findall(r"\x1b\]8;[^;]*;([^\x1b]+)\x1b\\(.*?)\x1b\]8;;\x1b\\", shown)


def test_a_line_of_a_kernel_is_a_link_to_the_file_that_its_ptx_names(source: Path) -> None:
    moved = source.rename(source.with_name("other.cu"))
    with lines_read_from(SourceFiles({"k.cu": moved})):
        assert {url for url, _ in linked(Terminal())} == {moved.as_uri()}


def test_control_characters_of_a_name_do_not_reach_the_terminal() -> None:
    stream = io.StringIO()
    paint(make_console(stream), ["a\x1b[31mname\x07 with\ttabs\x9b"])
    assert stream.getvalue() == "a?[31mname? with?tabs?\n"


def test_a_line_is_not_read_as_markup() -> None:
    stream = io.StringIO()
    paint(make_console(stream), ["wait full[0] [red]x[/red] :smile:"])
    assert stream.getvalue() == "wait full[0] [red]x[/red] :smile:\n"
