"""Reports of real simulations, and the parts of reports that no golden file shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipesim.answers.views.conclusion import Heading
from pipesim.conform.diagnose.examination import RebuiltBarrier
from pipesim.model.finding import BlockedAgent, Deadlock, FaultKind, FaultReport, Supplier
from pipesim.report.findings.examination import autopsy_lines
from pipesim.report.findings.finding import deadlock_lines, fault_lines, finding_lines
from pipesim.report.pages.run import share_lines
from pipesim.report.text.layout import heading_lines
from tests.support.report_examples import AUTOPSY


def test_an_agent_that_could_move_and_one_that_finished() -> None:
    free = Supplier("a", "arrival", "k.py:9", "", -1, "")
    lines = deadlock_lines(Deadlock((BlockedAgent("b", "full[0]", 0, 0, 0, 1, 1, 0, "", (free,)),), ("c",)), 120)
    assert lines == [
        "  b waits for phase 0 of full[0] (parity 0, now in phase 0): it has 0 of 1 arrivals",
        "    a would send the arrival next (k.py:9)",
    ]


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
            "  z was lapped on full[0]: it asks for phase 0, but phases 0 and 1 were complete before it looked; "
            "with parity 0 it now waits for phase 2 (k.py:1)"
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


def test_the_same_fault_of_every_trip_is_told_once() -> None:
    def fault(agent: str, line: str, slot: int) -> FaultReport:
        return FaultReport(FaultKind.RACE, f"{agent}: {FaultKind.RACE.value}: item 1 in t[{slot}]", agent, "READ", line)

    same = [fault(f"use/{n % 2}", "k.py:3", n) for n in range(42)]
    assert fault_lines([*same, fault("use/0", "k.py:4", 0), fault("load", "k.py:3", 1)], 200) == [
        "✗ 44 faults",
        *("", f"  {FaultKind.RACE.value} · not detected by the hardware"),
        *("    use/0: READ (k.py:3)", "    item 1 in t[0]", "    and 41 more like it"),
        *(
            "",
            f"  {FaultKind.RACE.value} · not detected by the hardware",
            "    use/0: READ (k.py:4)",
            "    item 1 in t[0]",
        ),
        *(
            "",
            f"  {FaultKind.RACE.value} · not detected by the hardware",
            "    load: READ (k.py:3)",
            "    item 1 in t[1]",
        ),
    ]


@pytest.mark.parametrize("kind", list(FaultKind))
def test_every_fault_says_what_the_chip_does(kind: FaultKind) -> None:
    text = " ".join(" ".join(fault_lines([FaultReport(kind, kind.value, "a", "op", "k.py:1")], 80)).split())
    chip = "the hardware traps here" if kind.traps else "not detected by the hardware"
    assert kind.value in text
    assert text.endswith(f"{chip} a: op (k.py:1)")


def test_shares_of_many_agents_are_ranges_over_their_role() -> None:
    shares = {(f"mma/{n}", "work"): 880 + n for n in range(4)} | {("load", "waiting for empty"): 900}
    assert share_lines([("simulated", shares)], 80) == [
        "  where the time goes                  mma (4)      load",
        "  waiting for empty    simulated             –    90.0 %",
        "  work                 simulated   88.0–88.3 %         –",
    ]


def test_columns_of_shares_that_do_not_fit_follow_below() -> None:
    shares = {(f"a_role_with_a_name_{n}", "work"): 100 * n for n in range(4)}
    lines = share_lines([("simulated", shares)], 64)
    assert lines == [
        "  where the time goes             a_rol…a_name_0  a_rol…a_name_1",
        "  work                 simulated           0.0 %          10.0 %",
        "  where the time goes             a_rol…a_name_2  a_rol…a_name_3",
        "  work                 simulated          20.0 %          30.0 %",
    ]


def test_what_nobody_in_a_part_of_the_table_does_is_left_out_of_it() -> None:
    shares = {("load", "waiting for empty"): 900, **{(f"mma_of_group_{n}", "waiting for full"): 10 for n in range(4)}}
    below = share_lines([("simulated", shares), ("measured", shares)], 64)
    assert [line.split("  ")[1] for line in below if line[2] != " "] == [
        "where the time goes", "waiting for empty", "waiting for full",
        "where the time goes", "waiting for full",
        "where the time goes", "waiting for full",
    ]  # fmt: skip
    assert len(share_lines([("simulated", shares)], 200)) == 3, "side by side they have one set of rows"


def test_a_chain_of_roles_is_broken_between_roles() -> None:
    roles = (("load", 1), ("softmax0", 4), ("softmax1", 4), ("correction", 4), ("mma", 1))
    lines = heading_lines(Heading("attention", {"kv_blocks": 16}, 1, roles), 60)
    assert lines == [
        "attention   kv blocks 16 · grid 1 CTA · 1 load warp",
        "            4 softmax0 warps · 4 softmax1 warps",
        "            4 correction warps · 1 mma warp",
    ]
    assert heading_lines(Heading("attention", {"kv_blocks": 16}, 1, roles[:1]), 60) == [
        "attention   kv blocks 16 · grid 1 CTA · 1 load warp"
    ]


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


def test_a_barrier_and_its_agents_stay_in_one_row() -> None:
    lines = autopsy_lines(AUTOPSY, None, 80)
    assert "  full[0]       9    0 of 1              –  mma/0, mma/1" in lines
