"""Traces that conform, on which every kind of tampering is tried."""

import pytest

from tests.conform.cases import Case, simulated, stored

#: What every kind of tampering is tried on: recorded with one and with four consumers, on both chips, and simulated.
RECORDED = (
    "h100/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet",
    "h100/producer_consumer-al1-cw1-s1-tb4096-t64-w0-g1.parquet",
    "h200/producer_consumer-al32-cw2-s4-tb16384-t64-w600-g1.parquet",
    "h200/producer_consumer-al1-cw4-s2-tb16384-t64-w0-g1.parquet",
)
SIMULATED = ({"stages": 2, "tiles": 12, "work": 30, "warps": 2, "lanes": 32}, {"stages": 1, "tiles": 8, "work": 30})


#: The same inside a window: at the start, in the middle and at the end of a run.
WINDOWS = ((RECORDED[0], (0, 24)), (RECORDED[0], (8, 40)), (RECORDED[3], (50, 64)), (SIMULATED[0], (2, 11)))


@pytest.fixture(
    scope="session",
    params=[*((name, ()) for name in RECORDED), *((ring, ()) for ring in SIMULATED), *WINDOWS],
    ids=[
        *(r[:4] + r[22:-8] for r in RECORDED),
        "simulated-2",
        "simulated-1",
        "start",
        "middle",
        "end",
        "simulated-part",
    ],
)
def good(request: pytest.FixtureRequest) -> Case:
    """A trace that conforms."""
    source, window = request.param
    case = stored(source) if isinstance(source, str) else simulated(**source)
    return case.window(*window) if window else case
