"""Reports of real simulations, and the parts of reports that no golden file shows."""

from dataclasses import replace

import pytest

from pipesim.conform.diagnose.examination import RebuiltBarrier
from pipesim.model.finding import BlockedAgent, Deadlock, FaultKind, FaultReport, Supplier
from pipesim.report.findings.examination import autopsy_lines
from pipesim.report.findings.finding import fault_lines, finding_lines
from tests.support.report_examples import AUTOPSY


def test_a_crowd_is_counted_instead_of_listed() -> None:
    helpers = tuple(Supplier(f"m/{n}", "arrival", "", f"k.py:{n}", 3, "") for n in range(6))
    crowd = tuple(BlockedAgent(f"w/{n}", f"full[{n}]", 0, 0, 0, 1, 1, 0, "", helpers) for n in range(10))
    done = tuple(f"m/{n}" for n in range(10))
    lines = finding_lines([Deadlock(crowd, done)], 120)
    assert lines[-2:] == ["", "  see: pipesim explain deadlock"]
    assert lines[0].endswith(
        "10 of 20 agents wait indefinitely · finished: m/0, m/1, m/2, m/3, m/4, m/5, m/6, m/7 and 2 more"
    )
    assert lines.count("    and 2 more agents that could send it") == 8
    assert lines[-3] == "  and 2 more agents"
    faults = [FaultReport(FaultKind.RACE, "", "a", f"write {n}", "") for n in range(9)]
    assert fault_lines(faults, 80)[0] == "✗ 9 faults"
    assert fault_lines(faults, 80)[-1] == "  and 1 more fault"


def blocked(
    agent: str, *suppliers: Supplier, barrier: str = "full[0]", given: int = -1, missed: int = -1
) -> BlockedAgent:
    """An agent that waits for phase 2 of a barrier."""
    return BlockedAgent(agent, barrier, 0, 2, 2, 1, 31, 0, "k.py:1", suppliers, given=given, missed=missed)


def told(*found: BlockedAgent) -> list[str]:
    """What the report says of each, without its headline."""
    return finding_lines([Deadlock(found, ())], 400)[2:-2]  # without the line that says where to read about it


def test_agents_of_a_role_that_wait_for_the_same_are_told_together() -> None:
    """Those of another barrier, and those of which something else can be said, are not."""
    free = tuple(Supplier(f"use/{n}", "arrival", "k.py:9", "", -1, "full[0]") for n in range(3))
    alike = [blocked(f"mma/{n}", *free) for n in range(4)]
    assert told(*alike, blocked("mma/4", *free, barrier="full[1]"), blocked("mma/5", *free)) == [
        (
            "  mma/0 to mma/3 and mma/5 wait for phase 2 of full[0] (parity 0, now in phase 2): it has 30 of 31 "
            "arrivals (k.py:1)"
        ),
        "    use/0 to use/2 would send the arrival next (k.py:9), but wait for full[0]",
        "  mma/4 waits for phase 2 of full[1] (parity 0, now in phase 2): it has 30 of 31 arrivals (k.py:1)",
        "    use/0 to use/2 would send the arrival next (k.py:9), but wait for full[0]",
    ]
    assert told(*(blocked(f"mma/{n}@{n}", *free) for n in range(2)))[0].startswith("  mma/0@0 waits"), "of two CTAs"


def test_the_deadlock_of_those_who_know_most_comes_first() -> None:
    could = Supplier("a", "arrival", "k.py:9", "", -1, "b[0]")
    past = Supplier("a", "arrival", "", "k.py:9", 12, "", 7, "tiles")
    lines = told(blocked("x", could), blocked("y", past, given=30), blocked("z", could, missed=0))
    assert lines == [
        (
            "  z was lapped on full[0]: it asks for phase 0, but phases 0 and 1 were complete before it looked. "
            "It now waits for phase 2 (k.py:1)"
        ),
        "    there is one arrival too many, or the arriving agent did not wait for it",
        "  y waits for phase 2 of full[0] (parity 0, now in phase 2): it has 30 of 31 arrivals (k.py:1)",
        "    the program makes 30 arrivals per phase, but the count is 31",
        "    a could send it, but its last arrival on full[0] was for tile 7 (k.py:9); no further one follows",
        "  x waits for phase 2 of full[0] (parity 0, now in phase 2): it has 30 of 31 arrivals (k.py:1)",
        "    a would send the arrival next (k.py:9), but waits for b[0]",
    ]


@pytest.mark.parametrize(
    ("trip", "loop", "which"),
    [
        (7, "tiles", "for tile 7"),
        (7, "kv_blocks", "for kv_block 7"),
        (7, "", "in iteration 7"),
        (7, "k", "in iteration 7 of k"),
        (-1, "", "the 13th on full"),
    ],
)
def test_which_operation_was_the_last(trip: int, loop: str, which: str) -> None:
    past = Supplier("a", "arrival", "", "k.py:9", 12, "", trip, loop)
    assert told(blocked("y", past))[-1].endswith(
        f"its last arrival on full[0] was {which} (k.py:9); no further one follows"
    )


@pytest.mark.parametrize("width", [60, 80, 160])
def test_names_of_barriers_stay_whole_beside_many_agents_that_wait(width: int) -> None:
    name = "attention.kv_pipeline.consumer_release[0]"
    waiting = tuple(f"consumer_of_keys/{n}" for n in range(8))
    many = RebuiltBarrier(name, 9, 1, 1, 0, waiting)
    report = replace(AUTOPSY, barriers=(many,), deadlock=None, waiting=(), agree=None)
    lines = autopsy_lines(report, None, width)
    assert all(len(line) <= width for line in lines)
    assert any(name in line for line in lines)
    assert all(who in " ".join(" ".join(lines).split()) for who in waiting)
