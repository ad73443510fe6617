"""Findings with the author's source line and its text; doubts once for agents that are alike, after the finding."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from pipesim.answers.check import check
from pipesim.model.finding import FaultKind, FaultReport, Verdict
from pipesim.prove.counterexample.words import DoubtLine
from pipesim.report.findings.finding import finding_lines
from pipesim.report.pages.check import beside_lines, check_lines
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
UNREADABLE = """\
  two waits for phase 0 of ready[0] (parity 0, now in phase 0): it has 1 of 2
      arrivals (mine.py:15)
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SOURCE, encoding="utf-8")


def report(width: int = 80, before: Callable[[], object] = lambda: None) -> str:
    """The report on the handshake; ``before`` is done after the verdict and before the report is written."""
    target = find("mine.py")
    found = check(target, {}, max_states=1000)
    before()
    return "\n".join(check_lines(found, width)) + "\n"


def test_a_finding_and_its_correction_have_the_text_of_their_lines() -> None:
    text = report()
    assert READABLE in text
    assert CORRECTION in text
    assert text == report()


def test_a_file_that_cannot_be_read_just_shows_the_place() -> None:
    text = report(before=Path("mine.py").unlink)
    assert UNREADABLE in text
    assert "likely correction: initialise ready with a count of 1 instead of 2 (mine.py:6);" in " ".join(text.split())


@pytest.mark.parametrize("damage", [b"\xff\xfe\x00", b"", b"x = 1\n"])
def test_so_does_a_file_that_has_become_another(damage: bytes) -> None:
    assert UNREADABLE in report(before=lambda: Path("mine.py").write_bytes(damage))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_console(width: int) -> None:
    Path("mine.py").write_text(SOURCE.replace("wait(0)", f"wait({'+'.join('0' * 60)})"), encoding="utf-8")
    lines = report(width).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert "      mine.py:15" in [line.rstrip() for line in lines]  # the text has lines of its own


def test_a_fault_has_the_text_of_its_line() -> None:
    line = f"{Path('mine.py').resolve()}:11"
    fault = FaultReport(FaultKind.OVER_ARRIVAL, "", "one", "arrive ready[0]", line)
    assert finding_lines([fault])[3:5] == ["    one: arrive ready[0]", "      mine.py:11    ready[0].arrive()"]


def test_the_line_of_a_notebook_s_cell_is_where_python_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = "<ipython-input-3>"
    monkeypatch.setitem(linecache.cache, cell, (9, None, ["a\n", "  b(\t1)\n"], cell))
    assert text_of(f"{cell}:2") == "b( 1)"
    assert with_source("said", f"{cell}:2", 80, "", "") == ["said", f"{cell}:2    b( 1)"]


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


@pytest.mark.parametrize("line", ["", "mine.py", "mine.py:0", "mine.py:900", "gone.py:1", "mine.py:x", ":", "/:1"])
def test_what_is_no_line_has_no_text(line: str) -> None:
    assert text_of(line) == ""


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


def test_a_number_of_too_many_digits_is_no_line() -> None:
    Path("mine.py").write_text("x\n", encoding="utf-8")
    assert text_of("mine.py:000000001") == "x"
    assert text_of(f"mine.py:{'0' * 5_000}1") == ""


def doubts(*told: DoubtLine) -> list[str]:
    """What a refuted report says of them, above its findings."""
    target = find("mine.py")
    found = check(target, {}, max_states=1000)
    lines = beside_lines(replace(found, doubts=told), 80)
    assert found.verdict is Verdict.REFUTED
    assert "\n".join([*lines, ""]) in "\n".join(check_lines(replace(found, doubts=told), 80)).partition("✗ deadlock")[0]
    assert lines[:2] == ["", "  not ordered with respect to other agents:"]
    return lines[2:]


def test_a_doubt_of_agents_that_are_alike_is_printed_once_and_before_the_finding() -> None:
    told = [DoubtLine("a race", f"epilogue/{n}: write out[0]", "gone.py:7", "load: copy out[0]", "gone.py:9")
            for n in (0, 1, 3, 2)]  # fmt: skip
    assert doubts(*told) == [
        "    epilogue/0 to epilogue/3: write out[0] (gone.py:7)",
        "    and load: copy out[0] (gone.py:9)",
        "      a race",
    ]


def test_doubts_of_one_line_are_printed_once_whoever_executes_it_and_whichever_stage_it_is_for() -> None:
    told = [
        DoubtLine("a race", "epilogue/0: write out[0]", "gone.py:7"),
        DoubtLine("a race", "epilogue/1: write out[1]", "gone.py:7"),
        DoubtLine("a race", "load: write out[2]", "gone.py:7"),
    ]
    assert doubts(*told) == [
        "    epilogue/0, epilogue/1 and load: write out[0] and 2 more of this line",
        "      (gone.py:7)",
        "      a race",
    ]


@pytest.mark.parametrize(
    "other",
    [
        DoubtLine("a race", "epilogue/1: write out[0]", "gone.py:8"),
        DoubtLine("a loss", "epilogue/1: write out[0]", "gone.py:7"),
        DoubtLine("a race", "epilogue/1: write out[0]", "gone.py:7", "load: copy out[0]", "gone.py:9"),
    ],
)
def test_what_differs_is_printed_by_itself(other: DoubtLine) -> None:
    first = DoubtLine("a race", "epilogue/0: write out[0]", "gone.py:7")
    assert len([line for line in doubts(first, other) if line.endswith(("a race", "a loss"))]) == 2
    assert doubts(first, first) == ["    epilogue/0: write out[0] (gone.py:7)", "      a race"]


def test_a_doubt_about_a_barrier_has_no_agent() -> None:
    assert doubts(DoubtLine("too many bytes", "full[0]", "")) == ["    full[0]", "      too many bytes"]


def test_the_doubts_that_are_not_shown_are_counted() -> None:
    told = [DoubtLine("a race", f"r{n}/{agent}: write out[0]", "") for n in range(6) for agent in range(2)]
    assert doubts(*told)[-1] == "    and 4 more"
