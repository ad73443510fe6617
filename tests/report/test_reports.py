"""Reports of real simulations, and the parts of reports that no golden file shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipesim.answers.views.heading import Heading
from pipesim.answers.views.run import RunReport, SimulationLine
from pipesim.conform.diagnose.examined import Standing
from pipesim.conform.steady import read
from pipesim.conform.timing import time_spent
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.finding import Blocked, Deadlock, FaultKind, FaultReport, Supplier
from pipesim.protocols.hopper.producer_consumer import producer_consumer
from pipesim.report.findings.examination import autopsy_lines
from pipesim.report.findings.finding import budget_lines, deadlock_lines, fault_lines, finding_lines
from pipesim.report.pages.figures import share_lines
from pipesim.report.pages.run import run_lines
from pipesim.report.text.headline import heading_lines
from pipesim.timed.engine import Simulation, simulate
from pipesim.timed.profile import load_profile
from tests.support.report_examples import AUTOPSY


def report_of(protocol: Protocol, params: dict[str, int], **limits: Any) -> tuple[Simulation, RunReport]:
    done = simulate(protocol.flatten(params), load_profile("h100"), **limits)
    reading = read(done.trace)
    line = SimulationLine(
        "h100", done.profile.device, 0.25, reading.period_millicycles if reading else None, "", done.outcome
    )
    heading = Heading(protocol.name, params, done.program.grid, tuple((r.name, r.warps) for r in protocol.roles))
    shares = time_spent(done.program, done.trace)
    return done, RunReport(heading, line, done.cycles, done.steps, shares, done.trace, done.deadlock)


PARAMS = {"stages": 4, "tiles": 64, "tile_bytes": 16384, "consumer_warps": 2, "work": 600, "arrive_lanes": 1}


def test_a_simulated_run_of_the_built_in_protocol() -> None:
    done, report = report_of(producer_consumer(**PARAMS), PARAMS)
    lines = run_lines(report, 80)
    assert lines[:2] == [
        "producer_consumer   stages 4 · tiles 64 · 16 KiB a tile · work 600 cycles a tile",
        "                    1 arriving lane a warp · grid 1 CTA",
    ]
    assert lines[2].strip() == "1 producer warp → 2 consumer warps"
    assert f"  length       {done.cycles:,} cycles" in "\n".join(lines)
    assert "computed in 0.25 s" in "\n".join(lines)
    rows = {line.split()[0]: line for line in lines if line.startswith(("  producer", "  consumer/"))}
    assert set(rows) == {"producer", "consumer/0", "consumer/1"}
    assert "░" in rows["producer"]
    assert "▒" not in rows["producer"]
    assert "▓" in rows["consumer/0"]
    assert "░" not in rows["consumer/0"]
    assert lines[-1] == "✓ finished: no deadlock and no fault in this schedule"


def forgetful() -> Protocol:
    """A consumer that gives back only its first tile."""
    p = Protocol("forgetful")
    tile = p.smem("tile", slots=1, nbytes=1024)
    full, empty = p.mbarriers("full", 1, count=1), p.mbarriers("empty", 1, count=1)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for item in range(3):
                empty[0].wait(1 - item % 2)
                full[0].expect_bytes(1024)
                w.tma_load(tile[0], full[0], item)

    @p.role("mma")
    def mma(w: Warp) -> None:
        with w.elect_one():
            for item in range(2):
                full[0].wait(item % 2)
                w.work(400)
                if item == 0:
                    empty[0].arrive()

    return p


def test_a_simulated_deadlock_names_the_missing_arrival_and_its_line() -> None:
    done, report = report_of(forgetful(), {})
    assert done.outcome.value == "deadlock"
    text = " ".join(" ".join(run_lines(report, 300)).split())
    assert "✗ deadlock · 1 of 2 agents waits indefinitely · finished: mma" in text
    assert "load waits for phase 1 of empty[0] (parity 1, now in phase 1): it has 0 of 1 arrivals" in text
    assert "    empty[0].wait(1 - item % 2)" in "\n".join(run_lines(report, 300))
    assert "mma could send it, but its last arrival on empty[0] was the 1st on empty (" in text
    assert "test_reports.py:" in text
    assert run_lines(report, 80)[-1] == "✗ the simulated schedule ends in a deadlock"


def test_a_budget_that_ran_out_is_unknown_and_never_safe() -> None:
    done, report = report_of(producer_consumer(**PARAMS), PARAMS, max_steps=200)
    assert done.outcome.value == "unknown"
    lines = run_lines(report, 80)
    assert lines[-1] == "? unknown: the budget of 200 steps ran out before the program ended"
    assert not any("✓" in line for line in lines)


def test_a_finished_run_with_a_fault_is_not_called_good() -> None:
    _, report = report_of(producer_consumer(**PARAMS), PARAMS)
    wrong = FaultReport(FaultKind.RACE, "both touch tile[0]", "producer", "tma_load tile[0]", "")
    lines = run_lines(replace(report, faults=(wrong,)), 80)
    assert lines[-1] == "✗ the simulated schedule breaks a rule: 1 fault"
    assert not any("✓" in line for line in lines)


def test_an_agent_that_could_move_and_one_that_finished() -> None:
    free = Supplier("a", "arrival", "k.py:9", "", -1, "")
    lines = deadlock_lines(Deadlock((Blocked("b", "full[0]", 0, 0, 0, 1, 1, 0, "", (free,)),), ("c",)), 120)
    assert lines == [
        "  b waits for phase 0 of full[0] (parity 0, now in phase 0): it has 0 of 1 arrivals",
        "    a would send the arrival next (k.py:9)",
    ]


def test_a_crowd_is_counted_instead_of_listed() -> None:
    helpers = tuple(Supplier(f"m/{n}", "arrival", "", f"k.py:{n}", 3, "") for n in range(6))
    crowd = tuple(Blocked(f"w/{n}", f"full[{n}]", 0, 0, 0, 1, 1, 0, "", helpers) for n in range(10))
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


def blocked(agent: str, *suppliers: Supplier, barrier: str = "full[0]", given: int = -1, missed: int = -1) -> Blocked:
    """An agent that waits for phase 2 of a barrier."""
    return Blocked(agent, barrier, 0, 2, 2, 1, 31, 0, "k.py:1", suppliers, given=given, missed=missed)


def told(*found: Blocked) -> list[str]:
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
            "  z was lapped on full[0]: it asks for phase 0, but phases 0 and 1 were complete before it looked (one "
            "arrival too many, or the arriving agent did not wait for it); "
            "with parity 0 it now waits for phase 2 (k.py:1)"
        ),
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


def test_budget_of_one_step() -> None:
    assert budget_lines(1) == ["? unknown: the budget of 1 step ran out before the program ended"]


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


def test_no_shares_no_table() -> None:
    assert share_lines([("simulated", {})], 80) == []


@pytest.mark.parametrize("width", [60, 80, 160])
def test_names_of_barriers_stay_whole_beside_many_agents_that_wait(width: int) -> None:
    name = "attention.kv_pipeline.consumer_release[0]"
    waiting = tuple(f"consumer_of_keys/{n}" for n in range(8))
    many = Standing(name, 9, 1, 1, 0, waiting)
    report = replace(AUTOPSY, barriers=(many,), deadlock=None, waiting=(), agree=None)
    lines = autopsy_lines(report, None, width)
    assert all(len(line) <= width for line in lines)
    assert any(name in line for line in lines)
    assert all(who in " ".join(" ".join(lines).split()) for who in waiting)


def test_a_barrier_and_its_agents_stay_in_one_row() -> None:
    lines = autopsy_lines(AUTOPSY, None, 80)
    assert "  full[0]       9    0 of 1              –  mma/0, mma/1" in lines
