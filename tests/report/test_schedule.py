"""The block of a schedule: which steps are shown, how lanes become roles and then a list, and the commands below."""

from __future__ import annotations

from rich.cells import cell_len

from pipesim.answers.views.check import Counterexample
from pipesim.model.finding import FaultKind, FaultReport
from pipesim.prove.counterexample.words import Line, Part
from pipesim.report.findings.schedule import Fold, again_lines, schedule_block, select_steps

FAULT = FaultReport(FaultKind.RACE, "", "mma/0", "", "")


def steps(agents: list[str], part: Part = Part.PAST, first: int = 1) -> tuple[Line, ...]:
    return tuple(
        Line(n, agent, f"arrive b[{n}]", f"/home/me/k.py:{n}", f"arrive b[{n}]", part=part)
        for n, agent in enumerate(agents, first)
    )


def shown(schedule: tuple[Line, ...], *, replay: str = "0*3", command: str = "k.py:f -p n=2") -> Counterexample:
    return Counterexample(FAULT, schedule, {}, replay, command, dict.fromkeys((step.agent for step in schedule), ""))


def test_agents_that_fit_have_a_lane_each() -> None:
    assert schedule_block(shown(steps(["mma/0", "mma/1", "mma/0"])), 60) == [
        "  the schedule, 3 moves",
        "",
        "  move  mma/0                 mma/1",
        "     1  arrive b[1]                                 k.py:1",
        "     2                        arrive b[2]           k.py:2",
        "     3  ✗ arrive b[3]                               k.py:3",
    ]


def test_what_does_not_matter_is_counted_by_its_reason() -> None:
    schedule = (
        *steps(["a", "b"], Part.SETUP, 1), *steps(["c"], Part.ASIDE, 3), *steps(["a"], Part.FOCUS, 4),
        *steps(["d"], Part.PRIVATE, 5), *steps(["a", "b"], Part.ASIDE, 6), *steps(["a"], Part.FOCUS, 8),
    )  # fmt: skip
    rows = select_steps(schedule)
    assert [row.text if isinstance(row, Fold) else row.number for row in rows] == [
        "2 steps of the setup, 1 unrelated step of c hidden",
        4,
        "2 unrelated steps of a and b hidden",
        8,
    ]


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
