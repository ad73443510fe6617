"""The reports as text, compared with the golden files; ``python tools/update_golden.py`` rewrites those."""

import re

import pytest
from rich.cells import cell_len

from tests.support.lanes import long_but, slow_but
from tests.support.paths import GOLDEN
from tests.support.report_examples import EXAMPLES, WIDTH, render

REPORTS = GOLDEN / "report"
NAMES = sorted(EXAMPLES)


@pytest.mark.parametrize("name", NAMES)
def test_report_is_the_golden_text(name: str) -> None:
    text = render(name, WIDTH)
    assert text == (REPORTS / f"{name}.txt").read_text(encoding="utf-8")
    assert all(c == "\n" or c.isprintable() for c in text)


def test_every_golden_file_has_its_example() -> None:
    assert {p.stem for p in REPORTS.glob("*.txt")} == set(NAMES)


@pytest.mark.sampled(12, 20)
@pytest.mark.parametrize("width", long_but([60, 79], slow_but([79], [60, 61, 79, 80, 97, 120, 160, 233])))
@pytest.mark.parametrize("name", NAMES)
def test_no_line_is_wider_than_the_console(name: str, width: int) -> None:
    lines = render(name, width).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert [line for line in lines if line != line.rstrip()] == []
    assert "\n\n\n" not in "\n".join(lines)


def words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]{4,}", text))


@pytest.mark.parametrize("width", long_but([79], slow_but([79], [60, 79, 97, 120, 233])))
def test_no_word_is_lost_at_another_width(width: int) -> None:
    """But where a name is cut, which is marked, and where a timeline or a column of a table needs the room."""
    compared = 0
    for name in NAMES if width != 79 else NAMES[::3]:
        here, wide = render(name, width), render(name, 160)
        if "…" not in here and "timeline" not in wide and not name.startswith("summary"):
            compared += 1
            assert words(here) >= words(wide), name
    assert compared > 8


def test_a_wide_console_does_use_its_width() -> None:
    """The twin: the lines are not short for another reason."""
    assert max(map(cell_len, render("verify_good", 160).splitlines())) == 160


@pytest.mark.sampled(12, 20)
@pytest.mark.parametrize("encoding", slow_but(["cp437"], ["ascii", "latin-1", "cp437"]))
@pytest.mark.parametrize("name", NAMES)
def test_a_stream_without_these_characters_gets_others_of_the_same_width(name: str, encoding: str) -> None:
    """Line by line the same words and columns; cp437 has the blocks but no marks, and is not written in a mixture."""
    unicode = render(name, 80).splitlines()
    plain = render(name, 80, encoding).splitlines()
    assert [cell_len(line) for line in plain] == [cell_len(line) for line in unicode]
    for before, after in zip(unicode, plain, strict=True):
        assert [c for c in after if c.isalnum() and c not in "vx"] == [
            c for c in before.replace("µ", "u") if c.isascii() and c.isalnum() and c not in "vx"
        ]
    assert any(not line.isascii() for line in unicode) or plain == unicode
