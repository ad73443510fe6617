"""``pipesim check``: several protocols, and the formats that other tools read."""

import io
import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from xml.etree import ElementTree as ET

import pytest

from pipesim.answers.checking.stepped import SteppedCheck
from pipesim.answers.progress import Unit
from pipesim.answers.views.check import CheckStep
from pipesim.cli.output import TerminalProgress
from pipesim.protocols.catalog import BUILT_IN
from tests.support.fixture_types import Call
from tests.support.mistakes import BROKEN_FILE
from tests.support.paths import ROOT

HANGS = "mine.py:consumer_never_arrives"


@pytest.fixture(autouse=True)
def broken(user: Callable[[str], None]) -> None:
    user(BROKEN_FILE)


@pytest.mark.slow
def test_several_are_judged_and_the_worst_gives_the_exit_code(call: Call) -> None:
    right = call("check", "producer_consumer", "mine.py:right_ring", "-p", "tiles=3")
    assert (right.code, right.verdict) == (0, "✓ 2 of 2 protocols proved")
    wrong = call("check", "producer_consumer", HANGS, "-p", "tiles=9")
    assert (wrong.code, wrong.verdict) == (1, "✗ 1 of 2 protocols proved")
    assert f"\n  ✓ producer_consumer\n  ✗ {HANGS}\n" in wrong.out
    unknown = call("check", "mine.py:two_of_three", "-p", "tiles=3", "-p", "stages=3", "--max-states", "5")
    assert unknown.code == 3
    assert call("check", HANGS, "mine.py:no_such_ring").code == 2, "a name that does not exist is no verdict"
    assert call("check", HANGS, "attention_sm90", "-p", "tiles=9").code == 2, "nor is a parameter that one has not"


RAISES = "mine.py:raises"


@pytest.mark.slow
def test_one_that_cannot_be_built_takes_nothing_from_the_others(call: Call, user: Callable[[str], None]) -> None:
    user(BROKEN_FILE + "def raises(tiles: int = 2):\n    return 1 // 0\n")
    both = call("check", RAISES, HANGS, "-p", "tiles=9")
    assert (both.code, both.verdict) == (2, "✗ 0 of 2 protocols proved")
    assert f"\n  ✗ {HANGS}\n  ? {RAISES} could not be built\n" in both.out
    assert both.err.startswith(f"pipesim: {RAISES} raised ZeroDivisionError")
    document = call("check", RAISES, "producer_consumer", "-p", "tiles=9", "--json").json
    assert document["exit_code"] == 2
    assert document["protocols"]["producer_consumer"]["report"]["verdict"] == "proved"
    assert document["protocols"][RAISES]["error"]["kind"] == "ProtocolError"
    lines = call("check", RAISES, "producer_consumer", "-p", "tiles=9", "--format", "github").out.splitlines()
    assert lines[0].startswith("✓ producer_consumer: proved")
    assert lines[1].startswith("::error file=mine.py,line=")
    assert lines[2] == f"? {RAISES} could not be built"


def test_one_alone_that_cannot_be_built_is_in_the_file_for_other_tools(call: Call, user: Callable[[str], None]) -> None:
    user("def raises(tiles: int = 2):\n    return 1 // 0\n")
    told = call("check", RAISES, "--format", "junit")
    assert (told.code, ET.fromstring(told.out).attrib) == (2, {"tests": "1", "failures": "0", "errors": "1"})
    assert call("check", RAISES).out == ""


@pytest.mark.slow
def test_all_are_all_that_list_names(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in set(BUILT_IN) - {"producer_consumer", "cluster_multicast"}:  # the others take their time
        monkeypatch.delitem(BUILT_IN, name)
    found = call("check", "--all", "--quick", "--format", "json").json
    assert sorted(found["protocols"]) == sorted(BUILT_IN)
    assert {each["report"]["verdict"] for each in found["protocols"].values()} == {"proved"}


@pytest.mark.slow
def test_annotations_for_github(call: Call) -> None:
    found = call("check", HANGS, "producer_consumer", "--format", "github", "-p", "tiles=5")
    assert found.code == 1
    error, correction, refuted, proved = found.out.splitlines()
    file, _, rest = correction.removeprefix("::notice file=").partition(",line=")
    assert file.endswith("mistakes/ring.py")
    number, _, rest = rest.partition(",")
    assert number.isdecimal()
    assert rest == (
        "title=mine.py%3Aconsumer_never_arrives%3A likely correction::"
        "consumer arrives on empty whenever it has finished with a stage; proved with this change"
    )
    assert refuted.startswith(f"✗ {HANGS}: refuted: consumer_never_arrives fails in the schedule above, for every CTA")
    assert proved.startswith("✓ producer_consumer: proved: ")
    assert "no schedule of producer_consumer" in proved
    head, _, message = error.removeprefix("::error ").partition("::")
    parts = dict(part.split("=", 1) for part in head.split(","))
    assert sorted(parts) == ["file", "line", "title"]
    assert parts["file"].endswith("mistakes/ring.py")
    assert parts["line"].isdecimal()
    assert parts["title"] == "mine.py%3Aconsumer_never_arrives%3A deadlock%3A 2 of 2 agents wait indefinitely"
    text = message.replace("%0A", "\n").replace("%25", "%")
    assert text.startswith("✗ deadlock · 2 of 2 agents wait indefinitely")
    assert "\n  again: pipesim check mine.py:consumer_never_arrives -p tiles=5" in text


def test_what_is_unknown_is_a_warning(call: Call) -> None:
    twice = "mine.py:two_of_three"
    found = call("check", twice, "-p", "stages=3", "-p", "tiles=3", "--max-states", "5", "--format", "github")
    assert found.code == 3
    warning, verdict = found.out.splitlines()
    assert warning.startswith("::warning file=")
    assert "::unknown: neither proved nor refuted when the search reached its limit, for every CTA, " in warning
    assert verdict.startswith(f"? {twice}: unknown")


@pytest.mark.slow
def test_junit(call: Call) -> None:
    few = ("-p", "stages=3", "-p", "tiles=3", "--max-states", "5")
    names = ["mine.py:full_count_too_high", "producer_consumer", "mine.py:two_of_three"]
    found = call("check", *names, *few, "--format", "junit")
    assert found.code == 1
    assert found.out.isascii()
    root = ET.fromstring(found.out)
    assert root.attrib == {"tests": "3", "failures": "1", "errors": "1"}
    (suite,) = root
    cases = {case.attrib["name"]: case for case in suite}
    assert list(cases) == names
    assert [[part.tag for part in case][1:] for case in suite] == [["failure"], [], ["error"]]
    properties, failure = cases[names[0]]
    assert [each.attrib["name"] for each in properties] == ["for", "assuming", "not judged"]
    assert failure.attrib == {"type": "refuted", "message": "deadlock: 1 of 2 agents waits indefinitely"}
    assert failure.text is not None
    assert "✗ deadlock · 1 of 2 agents waits indefinitely" in failure.text
    assert "--replay" in failure.text
    assert cases[names[2]][1].attrib["type"] == "unknown"


WRONG = f"{ROOT}/tests/support/nine_warps.py:nine_warps"
OF_THIS = ("-p", "stages=1", "-p", "tiles=2", "-p", "k_steps=3", "-p", "empty_count=9")


class TestSteps:
    """The verdict is written when it is known; what follows it can be limited and interrupted."""

    @pytest.mark.slow
    def test_the_verdict_is_on_standard_output_before_the_steps_begin(
        self, call: Call, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        written: list[str] = []
        details = SteppedCheck.details

        def late(self: SteppedCheck) -> None:
            written.append(capsys.readouterr().out)
            details(self)

        whole = call("check", WRONG, *OF_THIS)
        monkeypatch.setattr(SteppedCheck, "details", late)
        rest = call("check", WRONG, *OF_THIS)
        (first,) = written
        assert "check        refuted" in first
        assert first + rest.out == whole.out

    def test_an_interrupt_ends_the_steps_and_leaves_the_verdict(
        self, call: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.interrupt_at(CheckStep.SCHEDULE, monkeypatch)
        answer = call("check", WRONG, *OF_THIS)
        assert (answer.code, answer.err) == (130, "")
        said = " ".join(answer.out.split())
        assert "✗ refuted: nine_warps fails in the schedule above; stopped by the user: a shorter schedule, " in said
        assert "smallest · tiles 1 · k steps 2" in said
        assert "a shorter schedule: interrupted · likely corrections: interrupted" in said

    def test_before_a_verdict_it_is_unknown_and_the_others_are_not_checked(
        self, call: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.interrupt_at(CheckStep.VERDICT, monkeypatch)
        answer = call("check", "producer_consumer", "cluster_multicast", "-p", "tiles=2")
        assert (answer.code, answer.err) == (130, "pipesim: not checked: cluster_multicast\n")
        assert "\n? unknown: stopped by the user before there was a verdict on producer_consumer" in answer.out
        alone = call("check", "producer_consumer", "-p", "tiles=2", "--json")
        assert (alone.code, alone.json["report"]["verdict"]) == (130, "unknown")

    def test_while_a_file_is_read_nothing_is_known(self, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("pipesim.cli.checks.check_protocols.build_target", stop)
        answer = call("check", "k.ptx")
        assert answer.out == "? unknown: stopped by the user while k.ptx was read\n"
        assert (answer.code, answer.err) == (130, "pipesim: interrupted\n")

    @staticmethod
    def interrupt_at(last: CheckStep, monkeypatch: pytest.MonkeyPatch) -> None:
        def check_step(self: TerminalProgress, protocol: str, step: CheckStep) -> AbstractContextManager[Unit]:
            if step is last:
                raise KeyboardInterrupt
            return nullcontext(lambda done, of: None)

        monkeypatch.setattr(TerminalProgress, "check_step", check_step)

    def test_the_steps_are_shown_on_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = io.StringIO()
        monkeypatch.setattr(terminal, "isatty", lambda: True)
        monkeypatch.setattr(sys, "stderr", terminal)
        with TerminalProgress().check_step("ring", CheckStep.SMALLEST) as unit:
            unit(3, 12)
        with TerminalProgress().check_step("ring", CheckStep.SIZES) as unit:
            unit(1_234, 0)
        assert terminal.getvalue().endswith("\x1b[2K")  # the line is wiped
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
        assert "checking ring: the smallest size: 3 of 12 0:00:00" in shown
        assert "checking ring: other sizes: 1,234 tried 0:00:00" in shown
        assert shown.isascii()
