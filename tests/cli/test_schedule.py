"""The schedule of a finding, walked again by the commands that ``check`` prints."""

import shlex
from collections.abc import Callable

import pytest

from tests.support.fixture_types import Call
from tests.support.lanes import slow_but
from tests.support.mistakes import BROKEN_FILE


def commands(text: str) -> list[list[str]]:
    """The commands that a report ends with, as a shell would read them: backslashes and quotes go on."""
    block = text[text.index("  again: ") :].replace("  again: ", "").replace("\\\n", "").partition("  as a timeline: ")
    return [shlex.split(part.partition("\n\n")[0]) for part in (block[0], block[2])]


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize(
    "name", ["consumer_never_arrives", "consumer_arrives_before_reading", "expects_half", "copy_over_a_written_tile"]
)
@pytest.mark.parametrize("width", slow_but([80], [60, 80, 120]))
def test_the_commands_of_a_finding_show_it_again(
    call: Call, user: Callable[[str], None], name: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    user(BROKEN_FILE)
    monkeypatch.setenv("COLUMNS", str(width))
    found = call("check", f"mine.py:{name}", "-p", "tiles=4")
    assert found.code == 1
    assert max(map(len, found.out.splitlines())) <= width
    again, timeline = commands(found.out)
    assert again[:2] == ["pipesim", "check"]
    assert timeline[:2] == ["pipesim", "run"]
    assert again[2:-2] == timeline[2:-2] == [f"mine.py:{name}", "-p", "tiles=4"]
    replayed = call(*again[1:])
    assert (replayed.code, replayed.verdict) == (1, f"✗ {name} fails in this schedule")
    drawn = call(*timeline[1:])
    assert drawn.code == 1
    assert drawn.verdict.startswith("✗ the schedule ends in a ")
    assert "  timeline   " in drawn.out
    headline = next(line for line in found.out.splitlines() if line.startswith("✗"))
    assert headline in replayed.out
    assert headline in drawn.out


def test_a_schedule_that_ends_well_finds_nothing(call: Call) -> None:
    """The twin: the first moves of a right protocol."""
    drawn = call("run", "producer_consumer", "--schedule", "0")
    assert (drawn.code, drawn.verdict) == (3, "? no finding at the end of this schedule: not every agent has finished")
    assert call("run", "producer_consumer", "--schedule", "0", "--json").json["report"]["moves"] == 1
