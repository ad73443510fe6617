"""The commands below the block of a schedule."""

from rich.cells import cell_len

from pipesim.answers.views.check import Counterexample
from pipesim.model.finding import FaultKind, FaultReport
from pipesim.prove.counterexample.words import Line
from pipesim.report.findings.schedule import again_lines

FAULT = FaultReport(FaultKind.RACE, "", "mma/0", "", "")


def shown(schedule: tuple[Line, ...], *, replay: str = "0*3", command: str = "k.py:f -p n=2") -> Counterexample:
    return Counterexample(FAULT, schedule, {}, replay, command, dict.fromkeys((step.agent for step in schedule), ""))


def test_the_commands_of_schedules_short_long_and_longer() -> None:
    short = again_lines(shown((), replay="0.1"), 60)
    assert short == [
        "  again: pipesim check k.py:f -p n=2 --replay '0.1'",
        "  as a timeline: pipesim run k.py:f -p n=2 \\",
        "      --schedule '0.1'",
    ]
    long = again_lines(shown((), replay=".".join("0123456789" * 6)), 60)
    assert long[-1] == "  as a timeline: `pipesim run k.py:f -p n=2 --schedule` with" or "same line" in " ".join(long)
    assert max(map(cell_len, long)) <= 60
    assert "".join("".join(long).split("'")[1].split()) == ".".join("0123456789" * 6)
    longer = " ".join(again_lines(shown((), replay=".".join("0" * 600)), 60))
    assert "--json > found.json then: pipesim check k.py:f -p n=2 --replay @found.json" in " ".join(longer.split())
    assert again_lines(shown((), command=""), 60) == []
