"""A schedule as a line of text: round trips, what the command makes of it, and lines that are none."""

import json
from pathlib import Path

import pytest

from pipesim.answers.check import check, replay
from pipesim.cli.main import main
from pipesim.errors import ParameterError
from pipesim.model.finding import Verdict
from pipesim.model.moves import Kind, Move
from pipesim.model.program import Program
from pipesim.prove.check import check as prove
from pipesim.prove.counterexample.play import from_text, play_schedule, to_text
from pipesim.report.sentences.check import check_sentence
from pipesim.targets import target_of
from tests.support.mistakes import BROKEN, BROKEN_FILE

NAMES = [
    "consumer_never_arrives",
    "consumer_does_not_wait",
    "try_ignored",
    "expects_half",
    "exit_under_a_remote_arrive",
]


def test_moves_in_text() -> None:
    schedule = (Move(Kind.STEP, 0), Move(Kind.STEP, 0), Move(Kind.OPEN, 12), Move(Kind.FAIL, 1), Move(Kind.LAND, 3, 64))
    assert to_text(schedule) == "0*2.12o.1n.~3:64"
    assert from_text("0*2.12o.1n.~3:64") == schedule


@pytest.mark.parametrize("name", NAMES)
def test_every_schedule_comes_back_and_shows_the_same(name: str) -> None:
    target = target_of(BROKEN[name])
    program = target.build({})
    found = prove(program)
    assert found.refutations
    for shown in found.refutations:
        text = to_text(shown.schedule)
        assert from_text(text) == shown.schedule
        again = replay(program, text)
        assert again.verdict is Verdict.REFUTED
        assert len(again.refutations) == 1
    report = check(target, {}, max_states=1_000)
    small = target.build(dict(report.refutations[0].at))
    assert replay(small, report.refutations[0].replay).refutations[0].finding == report.refutations[0].finding


def test_a_schedule_that_ends_well_proves_nothing() -> None:
    program = target_of(BROKEN["consumer_never_arrives"]).build({})
    report = replay(program, "0")
    assert (report.verdict, check_sentence(report)) == (Verdict.UNKNOWN, "no finding at the end of this schedule")


@pytest.mark.parametrize(
    "text", ["", "x", "0..1", "0*", "~1", "0p", "-1", "0*-1", "٣", "1" * 5000, f"~0:{'9' * 19}", "0*05", "\x1b[0m"]
)
def test_a_line_that_is_no_schedule(text: str) -> None:
    with pytest.raises(ParameterError, match=r"the schedule: word \d+, .* is not a move") as caught:
        from_text(text)
    assert len(caught.value.fact) < 100
    assert caught.value.fact.isprintable()
    assert caught.value.cause == "the text was cut or edited"


@pytest.mark.parametrize("text", ["0*10000001", "0*9999999.1*9999999", f"0*{'9' * 18}"])
def test_more_moves_than_a_schedule_has(text: str) -> None:
    with pytest.raises(ParameterError, match="the schedule: more than 10,000,000 moves"):
        from_text(text)


@pytest.mark.parametrize("text", ["9", "0*9999", "~0:64", "0n", "0o", "9" * 18, f"~{'9' * 18}:1"])
def test_a_move_that_is_not_possible(text: str) -> None:
    with pytest.raises(ParameterError, match="is not possible in consumer_never_arrives"):
        replay(target_of(BROKEN["consumer_never_arrives"]).build({}), text)


@pytest.mark.slow
def test_the_command_takes_what_its_json_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"{BROKEN_FILE}mine = BROKEN['consumer_never_arrives']\n")
    command = ["check", f"{file}:mine"]
    assert main([*command, "--json"]) == 1
    (shown,) = json.loads(capsys.readouterr().out)["report"]["refutations"]
    sizes = [word for name, value in shown["at"].items() for word in ("-p", f"{name}={value}")]
    assert main([*command, *sizes, "--replay", shown["replay"]]) == 1
    assert "✗ consumer_never_arrives fails in this schedule" in capsys.readouterr().out


def test_a_schedule_that_continues_after_a_fault_shows_it() -> None:
    """A fault that hardware does not notice does not end the program: where nothing follows, the first one is shown."""
    program = target_of(BROKEN["consumer_does_not_wait"]).build({})
    (shown, *_) = prove(program).refutations
    text = to_text(shown.schedule)
    further = [
        line for line in (f"{text}.{agent}" for agent in range(len(program.agents))) if _is_possible(program, line)
    ]
    assert further
    for line in further:
        assert replay(program, line).refutations[0].finding == replay(program, text).refutations[0].finding


def _is_possible(program: Program, line: str) -> bool:
    try:
        play_schedule(program, line)
    except ParameterError:
        return False
    return True
