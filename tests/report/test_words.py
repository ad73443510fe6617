"""Numbers in words, and lines that fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipesim.report.text import words
from pipesim.report.text.layout import middle, wrap


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (words.number(1_792), "1,792"),
        (words.number(-1_792), "−1,792"),
        (words.number(None), "–"),
        (words.cycles(755_499), "755"),
        (words.cycles(755_500), "756"),
        (words.cycles(0), "0"),
        (words.cycles(None), "–"),
        (words.percent(931), "93.1 %"),
        (words.percent(-22), "−2.2 %"),
        (words.percent(12_345), "1,234.5 %"),
        (words.signed_percent(3), "+0.3 %"),
        (words.signed_percent(-22), "−2.2 %"),
        (words.signed_percent(0), "0.0 %"),
        (words.signed_percent(None), "–"),
        (words.plus_minus(4), "±0.4 %"),
        (words.plus_minus(None), "–"),
        (words.size(16384), "16 KiB"),
        (words.size(1 << 20), "1 MiB"),
        (words.size(1536), "1,536 bytes"),
        (words.size(1), "1 byte"),
        (words.size(0), "0 bytes"),
        (words.size(None), "–"),
        (words.count(1, "warp"), "1 warp"),
        (words.count(2, "warp"), "2 warps"),
        (words.time_bound(5_001), "±6 ns"),
        (words.time_bound(6_000), "±6 ns"),
        (words.time_bound(999), "±999 ps"),
        (words.megahertz(1_979_600), "1,980 MHz"),
        (words.seconds(0.0149), "0.01 s"),
        (words.warps((("load", 1), ("mma", 2)))[0], "1 load warp → 2 mma warps"),
        (" | ".join(words.warps((("load", 1), ("mma", 2), ("store", 1)))), "1 load warp | 2 mma warps | 1 store warp"),
        (words.parameter("tile_bytes", 16384), "16 KiB a tile"),
        (words.parameter("scale_bytes", 100), "scale 100 bytes"),
        (words.parameter("work", 1_200), "work 1,200 cycles a tile"),
        (words.parameter("grid", 1), "grid 1 CTA"),
        (words.parameter("arrive_lanes", 32), "32 arriving lanes a warp"),
        (words.parameter("max_depth", 3), "max depth 3"),
    ],
)
def test_words(said: str, text: str) -> None:
    assert said == text


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
