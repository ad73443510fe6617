"""``pipesim diff A B``: exit codes, the verdict in one line, options that make no sense, JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipesim.trace.files import read_trace, write_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.schema import EventKind, Trace

Call = Callable[..., Any]


@pytest.fixture
def other_chip(recorded: Path) -> Path:
    return trace_folder() / "h200" / recorded.name


@pytest.fixture
def slow(good: Trace) -> Path:
    """The good recording with 36 cycles of work more in every tile, without the periods of its runs."""
    e = good.events
    works = np.array([s.kind in (EventKind.WORK_END, EventKind.ARRIVE) for s in good.meta.sites])[e.site]
    cycle = e.cycle + 36 * (e.iteration + works)
    write_trace(Trace(replace(good.meta, runs=()), replace(e, cycle=cycle)), Path("slow.parquet"))
    return Path("slow.parquet")


@pytest.fixture
def bare(good: Trace) -> Path:
    write_trace(Trace(replace(good.meta, runs=()), good.events), Path("bare.parquet"))
    return Path("bare.parquet")


def test_two_chips_behave_alike(call: Call, recorded: Path, other_chip: Path) -> None:
    answer = call("diff", recorded, other_chip)
    assert answer.code == 0
    assert answer.verdict.startswith("✓ same behaviour; B takes the same number of cycles")
    assert "device: NVIDIA H100 80GB HBM3 → NVIDIA H200" in answer.out
    assert answer.out.count("✓ 896 events of 1 CTA conform") == 2


def test_exactly_what_was_lost_is_said(call: Call, bare: Path, slow: Path) -> None:
    answer = call("diff", bare, slow)
    assert answer.code == 0
    assert answer.verdict == (
        "✓ same behaviour; B is 3.1 % slower: +36.0 cycles a tile, noise not measured, of which consumer/1 work +36.0"
    )
    back = call("diff", slow, bare)
    assert back.verdict == (
        "✓ same behaviour; B is 3.0 % faster: −36.0 cycles a tile, noise not measured, of which consumer/1 work −36.0"
    )


def test_other_behaviour(call: Call, recorded: Path, refuted: Path) -> None:
    answer = call("diff", recorded, refuted / "h100" / recorded.name)
    assert answer.code == 1
    assert answer.verdict == (
        "✗ the behaviour differs, first at consumer/0, CTA 0, iteration 10: the same event has a different value; "
        "B does not conform to the protocol"
    )
    assert "▸        10  wait full[2] parity 0" in answer.out
    assert "▴" in answer.out


def test_two_traces_that_are_wrong_alike_are_alike(call: Call, recorded: Path, refuted: Path) -> None:
    wrong = refuted / "h100" / recorded.name
    answer = call("diff", wrong, wrong)
    assert answer.code == 0
    assert answer.verdict.startswith("✓ same behaviour; neither conforms to the protocol; ")


def test_the_same_events_but_one_trace_that_the_model_forbids(call: Call, recorded: Path, good: Trace) -> None:
    """A wait that returned too early is no other event: the model tells the two apart."""
    e = good.events
    rows = [n for n in range(len(e)) if e.agent[n] == 1]
    cycle = e.cycle.copy()
    cycle[rows] = cycle[rows[0]] + np.arange(len(rows))
    write_trace(Trace(good.meta, replace(e, cycle=cycle)), Path("early.parquet"))
    answer = call("diff", recorded, "early.parquet")
    assert answer.code == 1
    assert answer.verdict == "✗ same behaviour; B does not conform to the protocol"


def test_lost_records(call: Call, recorded: Path, good: Trace) -> None:
    kept = good.events.select(np.flatnonzero((good.events.agent < 2) | (good.events.iteration < 50)))
    header = replace(good.meta.ctas[0], written=(256, 320, 250), dropped=(0, 0, 70))
    write_trace(Trace(replace(good.meta, ctas=(header,)), kept), Path("lost.parquet"))
    answer = call("diff", recorded, "lost.parquet")
    assert answer.code == 3
    assert answer.verdict == "? no difference found, but 70 records of B lost: the rest was not compared"


def test_traces_of_different_protocols(call: Call, recorded: Path, ring: str) -> None:
    assert call("run", ring, "--save-trace", "ring.parquet").code == 0
    answer = call("diff", recorded, "ring.parquet")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.splitlines()[0].startswith(
        "pipesim: the traces are of different protocols: A of producer_consumer, B of "
    )


def test_simulated_traces_of_a_users_file(call: Call, ring: str) -> None:
    for name, stages in (("a", 1), ("b", 2)):
        call("run", ring, "-p", f"stages={stages}", "--save-trace", f"{name}.parquet")
    answer = call("diff", "a.parquet", "b.parquet")
    assert answer.code == 0
    assert "stages: 1 → 2" in answer.out
    assert answer.out.count("which is not built in") == 2
    assert answer.verdict.startswith("✓ same behaviour; B is ")
    assert " faster: −" in answer.verdict


class TestTolerance:
    """With two traces it is about B's period and A's."""

    def test_decides(self, call: Call, bare: Path, slow: Path) -> None:
        assert call("diff", bare, slow, "--tolerance", "3.2").code == 0
        answer = call("diff", bare, slow, "--tolerance", "3")
        assert answer.code == 4
        assert answer.verdict.startswith("✗ same behaviour; B is 3.1 % slower")
        assert re.search(r"; B's period is \+3\.\d\d % off A's, outside 3 %$", answer.verdict)
        assert call("diff", slow, bare, "--tolerance", "2.9%").code == 4

    def test_a_difference_comes_first(self, call: Call, recorded: Path, refuted: Path) -> None:
        assert call("diff", recorded, refuted / "h100" / recorded.name, "--tolerance", "0").code == 1

    def test_without_a_period_nothing_is_within_it(self, call: Call, ring: str) -> None:
        call("run", ring, "-p", "tiles=2", "--save-trace", "a.parquet")
        answer = call("diff", "a.parquet", "a.parquet", "--tolerance", "50")
        assert answer.code == 3
        assert answer.verdict.endswith("; not both have a period, so the tolerance cannot be applied")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--protocol", "producer_consumer"], "--protocol"),
        (["-p", "stages=4"], "-p"),
        (["--profile", "h100"], "--profile"),
    ],
)
def test_options_of_one_trace_are_refused(call: Call, recorded: Path, option: list[str], said: str) -> None:
    answer = call("diff", recorded, recorded, *option)
    assert (answer.code, answer.out) == (2, "")
    assert answer.error == [
        f"pipesim: {said} has no effect with two traces",
        "  probable cause: two traces are compared with each other, not with a protocol or a simulation",
        f"  try: leave {said} out, or name one trace only",
    ]


def test_a_file_that_is_not_there(call: Call, recorded: Path) -> None:
    assert call("diff", recorded, "nothing.parquet").code == 2
    assert call("diff", "nothing.parquet", recorded).code == 2


def test_json(call: Call, recorded: Path, other_chip: Path, bare: Path, slow: Path) -> None:
    said = call("diff", recorded, other_chip, "--json").json
    assert said["exit_code"] == 0
    report = said["report"]
    assert (report["a"]["label"], report["b"]["trace"]["events"]) == ("A", 896)
    assert report["pair"]["behaviour"]["verdict"] == "agrees"
    assert report["pair"]["settings"] == [{"what": "device", "a": "NVIDIA H100 80GB HBM3", "b": "NVIDIA H200"}]
    ledger = call("diff", bare, slow, "--json").json["report"]["pair"]["timing"]["ledgers"][0]
    assert ledger["b"] - ledger["a"] == 64 * 36 == sum(s["b"] - s["a"] for s in ledger["segments"])


def test_the_same_bytes_every_time(call: Call, recorded: Path, other_chip: Path) -> None:
    assert call("diff", recorded, other_chip).out == call("diff", recorded, other_chip).out


def test_the_timelines_begin_at_the_first_iteration_that_both_hold(call: Call) -> None:
    call("run", "producer_consumer", "--save-trace", "whole.parquet")
    call("run", "producer_consumer", "--window", "20..30", "--save-trace", "part.parquet")
    for pair in (("whole.parquet", "part.parquet"), ("part.parquet", "whole.parquet")):
        answer = call("diff", *pair)
        assert "only the iterations in both windows are compared: 20 to 29" in answer.out
        rows = [line.split(maxsplit=1) for line in answer.out.splitlines() if line.startswith(("  A ", "  B "))]
        drawn = {side: [row for label, row in rows if label == side and ("░" in row or "▓" in row)] for side in "AB"}
        assert drawn["A"] == drawn["B"] != []


def test_one_iteration_is_no_plural(call: Call) -> None:
    for tiles in (64, 1):
        call("run", "producer_consumer", "-p", f"tiles={tiles}", "--save-trace", f"{tiles}.parquet")
    assert "compared is the first iteration: tiles is 64 in A, 1 in B" in call("diff", "64.parquet", "1.parquet").out


def test_another_cost_of_recording_is_said(call: Call, recorded: Path, other_chip: Path) -> None:
    device = recorded.with_name(recorded.name.replace(".parquet", "-device.parquet"))
    assert call("diff", recorded, device).verdict == (
        "✓ same behaviour; B takes the same number of cycles; recording costs 77.9 cycles a tile in A, 169.5 in B, "
        "not included in these numbers"
    )
    assert "recording costs" not in call("diff", recorded, other_chip).verdict  # the twin


def test_recorders_that_differ_where_nobody_measured_their_cost(call: Call, bare: Path, good: Trace) -> None:
    said = "A and B were recorded in different ways; these numbers include the cost of recording"
    write_trace(Trace(replace(good.meta, runs=(), memory="device"), good.events), Path("device.parquet"))
    assert said in call("diff", bare, "device.parquet").verdict
    assert said not in call("diff", bare, bare).verdict


def test_who_ends_last_in_each(call: Call, bare: Path, good: Trace) -> None:
    """The last record of consumer/0 is moved behind all others of B: in A consumer/1 is the last."""
    e = good.events
    agent = next(n for n in range(3) if good.meta.agent_name(n) == "consumer/0")
    last = int(np.flatnonzero(e.agent == agent)[-1])
    cycle = e.cycle.copy()
    cycle[last] = e.cycle.max() + 500
    write_trace(Trace(replace(good.meta, runs=()), replace(e, cycle=cycle)), Path("late.parquet"))
    out = " ".join(call("diff", bare, "late.parquet").out.split())
    assert "in CTA 0 consumer/1 ends last in A, consumer/0 in B the table is of consumer/0" in out
    assert "consumer/1 ends last in CTA 0" in call("diff", bare, bare).out


def test_totals_and_cycles_a_tile_are_told_apart(call: Call, bare: Path, slow: Path) -> None:
    lines = call("diff", bare, slow).out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("  where time was gained or lost"))
    assert lines[at - 1].split() == ["total", "total", "total", "a", "tile"]
    assert lines[at].split()[-6:] == ["A", "B", "B", "−", "A", "B", "−", "A"][-6:]


class TestAgreementOfEach:
    """What one trace alone agrees by, two of it agree by."""

    STORED = trace_folder() / "h100"
    FAULT = STORED / "producer_consumer-al1-cw2-s2-tb4096-t24-w2000-g1-no_acquire-at-9.parquet"
    HUNG = STORED / "epilogue_residual-a2-at700-cs2-es2-e150-fto0-ki1-od0-r1-sb2048-s4-st4-t8-g1.parquet"

    def test_an_injected_fault_that_is_named(self, call: Call) -> None:
        assert "injected fault, which is named" in call("diff", self.FAULT).verdict
        answer = call("diff", self.FAULT, self.FAULT)
        assert answer.code == 0
        assert "; both have an injected fault, which is named" in answer.verdict
        assert "conform" not in answer.verdict

    @pytest.mark.slow
    def test_the_same_records_without_a_word_about_a_fault(self, call: Call) -> None:
        """The twin: nothing was injected, so the records do not conform."""
        trace = read_trace(self.FAULT)
        write_trace(Trace(replace(trace.meta, fault=""), trace.events), Path("unnamed.parquet"))
        answer = call("diff", self.FAULT, "unnamed.parquet")
        assert answer.code == 1
        assert "; A has an injected fault, which is named; B does not conform to the protocol" in answer.verdict
        assert "; neither conforms to the protocol" in call("diff", "unnamed.parquet", "unnamed.parquet").verdict

    def test_a_hang_in_the_same_state(self, call: Call) -> None:
        answer = call("diff", self.HUNG, self.HUNG)
        assert (answer.code, answer.verdict) == (0, "✓ same behaviour; both hung")

    def test_wrong_results_are_no_records_that_do_not_conform(self, call: Call, recorded: Path, good: Trace) -> None:
        write_trace(Trace(replace(good.meta, wrong_tiles=3), good.events), Path("wrong.parquet"))
        answer = call("diff", recorded, "wrong.parquet")
        assert answer.code == 1
        assert answer.verdict.endswith("; B does not agree with the protocol: 3 tiles with wrong data")
