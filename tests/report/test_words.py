"""Numbers in words, and lines that fit."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("said", "left_out", "together"),
    [
        (["k.cu:5 (k.ptx:71)", "k.cu:5 (k.ptx:80)", "k.cu:5 (k.ptx:92)"], 0, ["k.cu:5 (k.ptx:71, 80 and 92)"]),
        (["at k.ptx:7", "at k.ptx:9"], 3, ["at k.ptx:7, 9 and 3 more"]),
        (["at k.ptx:7", "at m.ptx:7", "at k.ptx:9"], 3, ["at k.ptx:7 and 9", "at m.ptx:7", "3 more"]),
        (["k.cu:5 (k.ptx:71)", "k.cu:6 (k.ptx:80)"], 0, ["k.cu:5 (k.ptx:71)", "k.cu:6 (k.ptx:80)"]),
        (["k.ptx:7[0]", "k.ptx:8[0]"], 0, ["k.ptx:7[0]", "k.ptx:8[0]"]),
        (["k.ptx:7"], 2, ["k.ptx:7", "2 more"]),
        ([], 0, []),
    ],
)
def test_sentences_that_differ_in_a_line_are_one(said: list[str], left_out: int, together: list[str]) -> None:
    assert words.with_lines_together(said, left_out) == together
