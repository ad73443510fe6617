"""What is given back after its first use is given back after the last one of the same lap, not of the next."""

from __future__ import annotations

from pipesim import Protocol, Warp
from pipesim.model.finding import Verdict
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.model.tables import SourceInstruction
from pipesim.prove.check import check
from pipesim.prove.repair.edits import apply_repair
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.prove.repair.sites import sites_of


def query(given_back: int, laps: int = 3, blocks: int = 3) -> Program:
    p = Protocol("query")
    q, full, empty = p.smem("q", 1, 1024), p.mbarriers("full", 1, 1), p.mbarriers("empty", 1, 1)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for lap in range(laps):
                empty[0].wait(lap & 1 ^ 1)
                full[0].expect_bytes(1024)
                w.tma_load(q[0], full[0], lap)

    @p.role("math")
    def math(w: Warp) -> None:
        for lap in range(laps):
            full[0].wait(lap & 1)
            for block in range(blocks):
                w.read(q[0], lap)
                if block == given_back:
                    with w.elect_one():
                        empty[0].arrive()

    return p.flatten()


def test_the_last_use_is_that_before_the_next_lap() -> None:
    assert check(query(2)).verdict is Verdict.PROVED
    wrong = query(0)
    assert check(wrong).verdict is Verdict.REFUTED
    arrive = next(site for site in sites_of(wrong, "math") if site.op == Op.ARRIVE)
    use = SourceInstruction(int(Op.READ), "", "q")
    right = apply_repair(wrong, Repair(RepairKind.MOVE, "math", "empty", 2, at=arrive, past=use))
    assert right is not None
    assert check(right).verdict is Verdict.PROVED
