"""What a terminal of 80 x 24 shows at the end of a report, and how long a sentence of one may be."""

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from pipesim.answers.views.check import CheckReport
from pipesim.cli.main import main
from pipesim.model.finding import BlockedAgent, Deadlock, Supplier, Verdict
from pipesim.report.pages.checks.check import check_lines
from pipesim.report.sentences.check import MOST_CELLS
from tests.support.lanes import slow_but
from tests.support.mistakes import BROKEN
from tests.support.paths import ROOT
from tests.support.report_examples import EXAMPLES, assert_short, checked_twin, render, sentences

SCREEN = 23  #: lines, beside that of the prompt
CAUSE = re.compile(r"cause:|✗ deadlock|✗ \d+ faults?|: this branch |^  \S.* waits? for phase \d")
BEFORE = re.compile(r"^  (?:assumed|sizes|note|left out) |not ordered with respect|other schedules of this size")
FEW = ["consumer_arrives_before_reading", "consumer_arrives_twice", "empty_count_too_high", "expects_half"]


def assert_on_the_last_screen(lines: list[str]) -> None:
    """The cause, the correction if there is one, and the verdict; and none of the lists."""
    screen = lines[-SCREEN:]
    refuted = next(n for n, line in enumerate(screen) if line.startswith("✗ refuted"))
    assert any(CAUSE.search(line) for line in screen[:refuted]), "\n".join(screen)
    findings = [n for n, line in enumerate(lines) if line.startswith("✗ ")][:-1]
    corrections = [n for n, line in enumerate(lines) if line.startswith("  likely correction:") and n > findings[-1]]
    assert all(n >= len(lines) - SCREEN for n in corrections), "\n".join(lines)
    assert [line for line in lines[findings[0] :] if BEFORE.search(line)] == []


@pytest.mark.sampled(8, 16)
@pytest.mark.parametrize("name", slow_but(FEW, BROKEN))
def test_cause_correction_and_verdict_are_on_the_last_screen(name: str) -> None:
    report = checked_twin(name)
    assert_short(report)
    if report.verdict is Verdict.REFUTED:
        assert_on_the_last_screen(check_lines(report, 80))
    else:
        assert name not in FEW


@pytest.mark.sampled(0, 2)
@pytest.mark.parametrize(
    "name",
    ["docs/examples/row_max.ptx", "docs/examples/ring_forgets.py", "docs/examples/scale_forgets.py",
     "docs/examples/not_fenced.py", "docs/examples/ring_two.py"],
)  # fmt: skip
def test_so_they_are_of_the_examples(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["check", str(ROOT / name)]) == 1
    assert_on_the_last_screen(capsys.readouterr().out.splitlines())


def crowded(agents: int) -> CheckReport:
    """A refutation in which so many agents wait, each for something else."""
    report = checked_twin("empty_count_too_high", tiles=3)
    free = (Supplier("load", "arrival", "k.py:9", "", -1, ""),)
    waits = tuple(BlockedAgent(f"w{n}", f"empty[{n}]", 0, 0, 0, 1, 1, 0, "k.py:7", free) for n in range(agents))
    return replace(report, refutations=(replace(report.refutations[0], finding=Deadlock(waits, ())),))


def test_a_cause_that_is_out_of_view_is_said_again() -> None:
    far, near = (check_lines(crowded(agents), 80) for agents in (8, 3))
    said = ["  cause: w0 waits for phase 0 of empty[0] (parity 0, now in phase 0): it has 0",
            "    of 1 arrivals; load would send the arrival next (k.py:9)", "",
            "  likely correction: initialise empty with a count of 1 instead of 2"]  # fmt: skip
    assert "\n".join(said) in "\n".join(far)
    assert_on_the_last_screen(far)
    assert not [line for line in near if "cause:" in line]
    assert_on_the_last_screen(near)


@pytest.mark.long
def test_no_sentence_is_longer_than_two_lines_of_100_cells() -> None:
    said = [each for name in EXAMPLES for each in sentences(render(name, 1_000).splitlines())]
    assert [each for each in said if cell_len(each) > MOST_CELLS] == []
    assert len(said) > 3_500


def test_the_cause_is_that_of_what_is_corrected() -> None:
    """Of several waits the one for the barriers of the correction, none if no agent waits for these."""
    report = crowded(8)
    (shown,) = report.refutations
    assert isinstance(shown.finding, Deadlock)
    first, *rest, last = shown.finding.blocked
    for barrier, said in (("empty[1]", "cause: w7 waits for phase 0 of empty[1]"), ("other[1]", "")):
        waits = (replace(first, barrier="other[0]"), *(replace(b, barrier="other[2]") for b in rest))
        finding = replace(shown.finding, blocked=(*waits, replace(last, barrier=barrier)))
        page = "\n".join(check_lines(replace(report, refutations=(replace(shown, finding=finding),)), 80))
        assert (said in page, "cause:" in page) == (True, bool(said))
