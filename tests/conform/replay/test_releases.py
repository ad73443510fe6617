"""Which operations release a wait, and by when it can return at the earliest: small programs with stamps by hand."""

from collections.abc import Sequence
from typing import Any

import pytest

from pipesim.conform.replay import conformance
from pipesim.conform.replay.conformance import all_agents, conform
from pipesim.conform.replay.latency_floor import LatencyFloors, Least, ReleasePath
from pipesim.conform.result import Conformance, DivergenceKind, TraceVerdict
from pipesim.model.program import Program
from pipesim.model.tables import Agent, Barrier
from pipesim.trace.recorder import EventBuffer
from pipesim.trace.schema import Device, Trace, TraceMeta
from pipesim.trace.sites import site_table
from tests.support.small_programs import build

KHZ = 1_000_000
TABLES = {
    ReleasePath.ARRIVE: (Least(0, 30, 5),),
    ReleasePath.REMOTE_ARRIVE: (Least(0, 200, 5),),
    ReleasePath.CP_ASYNC_ARRIVE: (Least(0, 90, 5),),
    ReleasePath.COPY: (Least(16, 100, 5), Least(64, 300, 5)),
    ReleasePath.COPIES: (Least(128, 500, 5),),
    ReleasePath.MULTICAST: (Least(16, 350, 5),),
    ReleasePath.MULTICAST_AWAY: (Least(16, 450, 5),),
}


@pytest.fixture(autouse=True)
def floors(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = LatencyFloors("a chip", KHZ, "by hand", TABLES)
    monkeypatch.setattr(
        conformance, "floors_for", lambda device, by_ptx: measured if device == "a chip" and not by_ptx else None
    )


def stamped(program: Program, *stamps: Sequence[int], error_ps: int = 0, **meta: Any) -> Trace:
    """A recording of ``program``: the stamps of each agent's records, in its order."""
    table, buffer = site_table(program), EventBuffer()
    for agent, mine in enumerate(stamps):
        records = [record for of_op in table.records[agent] for record in of_op]
        passes: dict[int, int] = {}
        for record, cycle in zip(records, mine, strict=True):
            n = passes[record.site] = passes.get(record.site, -1) + 1
            value = record.value if record.value >= 0 else 1
            buffer.append(0, agent, record.site, record.stage, record.parity, n, value, cycle)
    described = TraceMeta(
        "hardware", program.name, {}, program.ctas, Device("a chip", sm_khz=KHZ), all_agents(program), table.barriers,
        table.sites, extra={"order_error_cycles": meta.pop("order", 0)},
    )  # fmt: skip
    events = buffer.events(KHZ)
    events.error_ps[:] = error_ps
    return Trace(described, events)


def earliest(program: Program, *stamps: Sequence[int], **how: Any) -> int:
    """The first cycle at which the last agent's last record, a return, is not refused."""
    *others, last = [list(each) for each in stamps]

    def found(cycle: int) -> Conformance:
        return conform(program, stamped(program, *others, [*last[:-1], cycle], **how))

    low, high = last[-1] - 1, last[-1] + 10_000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle).divergence is None else (middle, high)
    wrong = found(high - 1).divergence
    if high > last[-1]:
        assert wrong is not None
        assert wrong.kind is DivergenceKind.TOO_SOON
        assert wrong.late_by == 1
    return high


WAIT = "WAIT parity=0"


def cta(*code: str, barriers: int = 1, counts: Sequence[int] = (1, 1), slots: int = 1) -> Program:
    """One CTA of agents with this code; the first initialises the barriers before all meet."""
    sync = f"BAR_SYNC threads={32 * len(code)} lanes=32"
    init = "; ".join(f"INIT barrier={n} count={counts[n]}" for n in range(barriers))
    return build(
        *(f"{init * (not n)}{'; ' * (not n)}{sync}; {c}" for n, c in enumerate(code)), barriers=barriers, slots=slots
    )


PART = "ARRIVE expect=32; TMA_LOAD bytes=64 item=0; ARRIVE expect=32"  #: 32 of 64 bytes: there as soon as 16 ever were
EXPECTED, COPIED = "ARRIVE expect=64", "TMA_LOAD bytes=64 item=0"
ARRIVED, TWICE = cta("ARRIVE", WAIT), cta("ARRIVE", "ARRIVE", WAIT, counts=(2,))


@pytest.mark.parametrize(
    ("program", "stamps", "cycle"),
    [
        (ARRIVED, ([1000], [0, 1000]), 1030),
        (ARRIVED, ([1000], [5000, 5000]), 5000),  # a wait that came long after
        (TWICE, ([1000], [2000], [0, 2000]), 2030),
        (TWICE, ([2000], [1000], [0, 2000]), 2030),
        # a cp.async arrive leaves no record: as early as the one before it, here an arrive on another barrier
        (cta("ARRIVE barrier=1; CP_ASYNC_ARRIVE lanes=1 noinc=1", WAIT, barriers=2), ([1000], [0, 1000]), 1090),
        (cta(f"{EXPECTED}; {COPIED}", WAIT), ([1000, 1010], [0, 1010]), 1310),
        (cta(f"{COPIED}; {EXPECTED}", WAIT), ([1000, 1010], [0, 1010]), 1300),
        (cta(f"{COPIED}; {EXPECTED}", WAIT), ([1000, 1500], [0, 1500]), 1530),  # the arrive came late
        (cta(PART, f"{WAIT}; WAIT parity=1"), ([1000, 1010, 9000], [0, 1500, 9000, 9030]), 9030),
        (cta(PART, WAIT), ([1000, 1010, 9000], [0, 1010]), 1110),
    ],
)
def test_a_wait_returns_at_the_earliest(program: Program, stamps: Sequence[Sequence[int]], cycle: int) -> None:
    assert earliest(program, *stamps) == cycle


def test_stamps_may_be_off_by_the_uncertainty_of_their_order() -> None:
    assert earliest(ARRIVED, [1000], [0, 1000], order=20) == 1010


def pair(*code: str, barriers: int = 1) -> Program:
    """The first agent is in CTA 1, the rest in CTA 0, which has the barrier."""
    agents = tuple(Agent(int(n == 0), n, (1 << 32) - 1, f"role{n}", 0) for n in range(len(code)))
    table = tuple(Barrier(rank, "b", n) for rank in (0, 1) for n in range(barriers))
    sync = "CLUSTER_ARRIVE; CLUSTER_WAIT"
    return build(
        *(f"{'INIT; ' * (n == 1)}{sync}; {c}" for n, c in enumerate(code)), barriers=table, agents=agents, ctas=2
    )


def test_another_arrive_may_have_taken_its_place() -> None:
    """The first arrive is from afar, and its phase is complete too soon; but the second, of here, can have done it."""
    program = pair("ARRIVE", "ARRIVE", f"{WAIT}; WAIT parity=1")
    trace = stamped(program, [1000], [1010], [0, 1050, 1060, 3000])
    found = conform(program, trace)
    assert found.verdict is TraceVerdict.AGREES
    assert found.latency is not None
    assert (found.latency.checked, found.latency.unchecked) == (1, 1)
    late = conform(program, stamped(program, [1000], [1060], [0, 1050, 1060, 3000]))
    assert late.divergence is not None
    assert late.divergence.kind is DivergenceKind.TOO_SOON
