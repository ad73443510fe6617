"""Findings with the author's source line and its text."""

from pathlib import Path

import pytest

from pipesim.answers.check import check
from pipesim.report.pages.checks.check import check_lines
from pipesim.report.text.source import text_of, with_source
from pipesim.targets import find

SOURCE = """\
from pipesim import Protocol


def handshake(count: int = 2):
    p = Protocol("handshake")
    ready = p.mbarriers("ready", 1, count=count)

    @p.role("one")
    def one(w):
        with w.elect_one():
            ready[0].arrive()

    @p.role("two")
    def two(w):
        ready[0].wait(0)

    return p
"""
READABLE = """\
✗ deadlock · 1 of 2 agents waits indefinitely · finished: one

  two waits for phase 0 of ready[0] (parity 0, now in phase 0): it has 1 of 2
      arrivals
      mine.py:15    ready[0].wait(0)
    the program makes 1 arrival per phase, but the count is 2
      mine.py:6    ready = p.mbarriers("ready", 1, count=count)
    one could send it, but its last arrival on ready[0] was the 1st on ready
      (mine.py:11); no further one follows
"""
CORRECTION = """\
  likely correction: initialise ready with a count of 1 instead of 2; proved
    with this change
    mine.py:6    ready = p.mbarriers("ready", 1, count=count)
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SOURCE, encoding="utf-8")


def report() -> str:
    return "\n".join(check_lines(check(find("mine.py"), {}, max_states=1000), 80)) + "\n"


def test_a_finding_and_its_correction_have_the_text_of_their_lines() -> None:
    text = report()
    assert READABLE in text
    assert CORRECTION in text
    assert text == report()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("    stage.arrive()  # the slot may be filled again", "stage.arrive()"),
        ("    pipe(  # to be ended", "pipe("),
        ("    f(')', # a )", "f(')',"),
        ("    x['#'] = '# no comment'", "x['#'] = '# no comment'"),
        ("    # all of it", "# all of it"),
        ("    else:", "else:"),
    ],
)
def test_the_comment_at_the_end_of_a_line_is_left_out(text: str, shown: str) -> None:
    Path("mine.py").write_text(f"{text}\n", encoding="utf-8")
    assert text_of("mine.py:1") == shown


@pytest.mark.parametrize("name", ["secret", "id_rsa", "notes.txt", ".env", "table.json"])
def test_of_a_file_that_is_no_code_no_line_is_shown(name: str) -> None:
    """A program names its lines itself, and a report may be printed where others read it."""
    Path(name).write_text("password\n", encoding="utf-8")
    assert text_of(f"{name}:1") == ""
    Path(f"{name}.py").write_text("password\n", encoding="utf-8")
    assert text_of(f"{name}.py:1") == "password"


@pytest.mark.parametrize("name", ["x" * 5_000 + ".py", "a\0b.py", "/dev/zero", "folder.py"])
def test_what_is_no_ordinary_file_has_no_text(name: str) -> None:
    Path("folder.py").mkdir()
    assert text_of(f"{name}:1") == ""
    assert with_source("it waits in k", "k:*", 80, "", "") == ["it waits in k (k:*)"]
