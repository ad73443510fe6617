"""Faults in a program's own words: who, what happened where, the operation by name, the author's line."""

from pathlib import Path

from pipesim.findings.catalog import report_fault
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.finding import FaultKind
from pipesim.model.moves import run_canonically


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
