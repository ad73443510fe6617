"""The order of the loads, missed on the chip: recorded hangs of ``epilogue_residual``, and what the model says of them.

CUTLASS lets the load warp order the first tile only; upstream orders every tile, with nothing that holds the load warp
back, so that it can arrive twice before the other warp looks.
"""

from typing import Any

import numpy as np
import pytest

from pipesim.conform.diagnose.diagnose import examine
from pipesim.conform.diagnose.examination import LaunchOutcome
from pipesim.conform.diagnose.forgiving import explain_with
from pipesim.conform.result import TraceVerdict
from pipesim.trace.schema import EventKind
from tests.conform.cases import stored
from tests.support.paths import TRACES
from tests.support.present import present

CHIPS = ("h100", "h200")
HUNG = sorted(
    str(path.relative_to(TRACES))
    for path in TRACES.glob("*/epilogue_residual-*.parquet")
    if "-fto0-ki1-" in path.name  # with more blocks to load the order is not missed
)


def counts(case: Any, barrier: str) -> tuple[int, int]:
    """How often the load warp arrived on this barrier, and how often the epilogue-load warp's wait returned."""
    sites = case.trace.meta.sites
    arrivals, returns = (
        [n for n, site in enumerate(sites) if (site.kind, site.barrier) == (kind, barrier)]
        for kind in (EventKind.ARRIVE, EventKind.WAIT_RETURN)
    )
    events = case.trace.events.site
    return int(np.isin(events, arrivals).sum()), int(np.isin(events, returns).sum())


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize("name", HUNG)
def test_a_recorded_hang_is_a_deadlock_of_the_protocol_itself(name: str) -> None:
    """The model, led by the records, is stuck where the kernel was; no edit is needed; the barrier words agree."""
    case = stored(name)
    assert case.trace.meta.status == "deadline"
    found = case.conform()
    assert found.verdict is TraceVerdict.DIFFERS
    assert present(found.divergence).kind.value == "the kernel did not finish"
    followed = present(explain_with(case.program, case.trace))
    stuck = {blocked.agent: blocked.barrier for blocked in present(followed.stuck).blocked}
    assert stuck["epilogue_load"] == "load_order[0]"
    assert "load" not in stuck, "the warp that was to be ordered has long ended"
    seen = present(examine(case.program, case.trace, found))
    assert seen.outcome is LaunchOutcome.HANG
    assert present(seen.diagnosis).explanations == ()
    assert seen.autopsy is not None
    assert (seen.autopsy.contradiction, seen.autopsy.agree) == ("", True)
    assert seen.autopsy.deadlock is not None
    arrived, returned = counts(case, "load_order")
    assert (arrived, returned < 8) == (8, True), "one a tile was given, and some were missed"


@pytest.mark.parametrize("delay", ["e150-fto1-ki1-od20000", "e20000-fto1-ki1-od0"])
@pytest.mark.parametrize("chip", CHIPS)
def test_cutlass_order_ends_with_the_same_warps_late(chip: str, delay: str) -> None:
    """The twin: one order, one wait, and all tiles right."""
    case = stored(f"{chip}/epilogue_residual-a2-at700-cs2-es2-{delay}-r1-sb2048-s4-st4-t8-g1.parquet")
    case.accepted()
    assert (case.trace.meta.status, case.trace.meta.wrong_tiles) == ("finished", 0)
    assert counts(case, "load_order") == (1, 1)
