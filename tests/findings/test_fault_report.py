"""Faults in a program's own words: who, what happened where, the operation by name, the author's line."""

from __future__ import annotations

from pathlib import Path

from pipesim.explain.phases import run_canonically
from pipesim.findings.catalog import report_fault, report_faults
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.finding import FaultKind
from pipesim.model.ops import Engine


def test_a_fault_is_reported_whole() -> None:
    protocol = Protocol("warp")
    bars = protocol.mbarriers("b", 1, count=1)

    @protocol.role("r")
    def r(w: Warp) -> None:
        bars[0].arrive()  # with all lanes

    program = protocol.flatten()
    (fault,) = run_canonically(program).faults
    report = report_fault(program, fault)
    assert report.kind is FaultKind.OVER_ARRIVAL
    assert (report.agent, report.operation) == ("r", "arrive b[0] ×32")
    assert report.claim == f"r: {FaultKind.OVER_ARRIVAL.value} on b[0]: 32 arrive, 1 pending"
    line = next(
        i for i, text in enumerate(Path(__file__).read_text(encoding="utf-8").splitlines(), 1) if "# with" in text
    )
    assert report.line == f"{__file__}:{line}"


def test_a_race_names_both_accesses() -> None:
    protocol = Protocol("early")
    tile = protocol.smem("tile", 2, 64)
    bars = protocol.mbarriers("b", 1, count=1)

    @protocol.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            bars[0].expect_bytes(128)
            w.tma_load(tile[1], bars[0], 0)
            w.tma_load(tile[1], bars[0], 1)  # again
        bars[0].wait()
        w.async_read(Engine.BULK, tile[1])  # stores

    @protocol.role("mma")
    def mma(w: Warp) -> None:
        bars[0].wait()
        w.write(tile[1], 2)

    program = protocol.flatten()
    again, write = report_faults(program, run_canonically(program).faults)[:2]
    race, place = FaultKind.RACE.value, Path(__file__).name
    first = line_of("again") - 1
    assert again.claim == f"load: {race} on b[0] in tile[1] while its own transfer writes tile[1] ({place}:{first})"
    assert write.claim == f"mma: {race} in tile[1] while load reads tile[1] ({place}:{line_of('stores')})"


def line_of(mark: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(i for i, text in enumerate(lines, 1) if text.endswith(f"# {mark}"))
