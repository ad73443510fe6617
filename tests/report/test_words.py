"""Numbers in words, and lines that fit."""

from pathlib import Path

import pytest

from pipesim.report.text import words
from pipesim.report.text.layout import middle, wrap


def test_a_source_line_below_the_current_folder_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert words.place(f"{tmp_path}/kernels/gemm.py:41") == "kernels/gemm.py:41"
    assert words.place("/elsewhere/gemm.py:41") == "/elsewhere/gemm.py:41"
    assert words.place("gemm.py:41") == "gemm.py:41"
    assert words.place("<string>") == "<string>"
    installed = Path(words.__file__).parents[2]
    assert words.place(f"{installed}/protocols/ring.py:41") == "pipesim/protocols/ring.py:41"
    monkeypatch.chdir(installed.parents[2])  # as above a virtual environment
    assert words.place(f"{installed}/protocols/ring.py:41") == "pipesim/protocols/ring.py:41"


@pytest.mark.parametrize(
    ("width", "text"), [(40, "traces/h100/ring.parquet"), (16, "trace…ng.parquet"), (3, "t…t"), (1, "…"), (0, "")]
)
def test_a_long_name_is_cut_in_the_middle(width: int, text: str) -> None:
    assert middle("traces/h100/ring.parquet", width) == text


def test_text_wraps_under_its_first_word_and_cuts_what_no_line_can_hold() -> None:
    assert wrap("one two three", 9, "✓ ") == ["✓ one two", "  three"]
    assert wrap("see /a/very/long/path/of/a/file.py:41 there", 20, "  ", "    ") == [
        "  see",
        "    /a/ve…file.py:41",
        "    there",
    ]
