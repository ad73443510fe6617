"""Writing and reading: what goes in comes out, the same trace gives the same bytes, and a write is whole or nothing."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.bounds import MAX_BARRIERS, MAX_PARAMETER, MAX_SMS, MAX_TRACE_CYCLE, MAX_TRACE_TIME, MAX_TRACE_VALUE
from pipesim.errors import OutputExistsError, TraceFormatError, UsageError
from pipesim.model.ending import Ending
from pipesim.trace.files import _encode, read_meta, read_trace, write_trace
from pipesim.trace.schema import (
    COLUMNS,
    ON_GROUPS,
    ON_NAMED_BARRIER,
    AgentInfo,
    Anchor,
    BarrierGroup,
    CtaInfo,
    Device,
    EventKind,
    Events,
    Run,
    Site,
    Trace,
    TraceMeta,
)
from pipesim.trace.sites import ENGINE_NAMES
from tests.trace.conftest import ring_trace, with_event

INT64 = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.one_of(st.integers(0, 3), st.integers(0, MAX_TRACE_VALUE))
SPANS = st.one_of(st.integers(0, 3), st.integers(0, MAX_TRACE_TIME))
CYCLES = st.integers(-MAX_TRACE_CYCLE, MAX_TRACE_CYCLE)
TIMES = st.integers(-MAX_TRACE_TIME, MAX_TRACE_TIME)
ANCHORS = st.builds(Anchor, TIMES, CYCLES, SPANS)
PARAMETERS = st.integers(-MAX_PARAMETER, MAX_PARAMETER)
TEXTS = st.text(st.characters(exclude_categories=("C", "Z")), max_size=8)
NAMES = TEXTS.filter(bool)
DEVICES = st.builds(
    Device, TEXTS, st.integers(0, 1000), TEXTS, TEXTS, TEXTS, st.integers(0, 10**6), st.integers(0, 10**9)
)
IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z_0-9]{0,7}", fullmatch=True)
JSON = st.recursive(
    st.none() | st.booleans() | INT64 | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def on(kind: EventKind) -> tuple[str, ...]:
    """What a site of this kind may be on."""
    if kind in ON_NAMED_BARRIER:
        return tuple(str(number) for number in range(16))
    return tuple(ENGINE_NAMES.values()) if kind in ON_GROUPS else ("", "full", "empty")


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    roles = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    agents = tuple(AgentInfo(role, i, i) for role in roles for i in range(draw(st.integers(1, 2))))
    groups = tuple(BarrierGroup(name, draw(st.integers(1, 300)), 1) for name in ("full", "empty"))
    sites = tuple(
        Site(f"{role}.{kind.name}", role, kind, draw(st.sampled_from(on(kind))))
        for role in roles
        for kind in draw(st.lists(st.sampled_from(EventKind), min_size=1, max_size=3))
    )
    grid = draw(st.integers(1, 300))
    rows = []
    for _ in range(draw(st.integers(0, 12))):
        agent = draw(st.integers(0, len(agents) - 1))
        site = draw(st.sampled_from([i for i, s in enumerate(sites) if s.role == agents[agent].role]))
        stages = {group.name: group.stages for group in groups}.get(sites[site].barrier)
        stage = draw(st.integers(0, stages - 1)) if stages else draw(st.integers(-1, MAX_BARRIERS - 1))
        cta, parity = draw(st.integers(0, grid - 1)), draw(st.integers(-1, 1))
        rows.append((cta, agent, site, stage, parity, draw(COUNTS), draw(COUNTS), draw(CYCLES), draw(TIMES),
                     draw(SPANS), draw(TIMES)))  # fmt: skip
    events = Events(*np.array(rows, dtype=np.int64).reshape(-1, len(COLUMNS)).T.copy())
    counts = [
        [sum(1 for row in rows if row[:2] == (cta, agent)) for agent in range(len(agents))] for cta in range(grid)
    ]
    headers = tuple(
        CtaInfo(cta, draw(st.integers(0, MAX_SMS)), tuple(draw(st.lists(ANCHORS, max_size=2))),
                tuple(counts[cta]), tuple(0 for _ in agents))
        for cta in sorted({row[0] for row in rows})
    )  # fmt: skip
    meta = TraceMeta(
        source=draw(st.sampled_from(("hardware", "simulation"))),
        protocol=draw(NAMES),
        params=draw(st.dictionaries(IDENTIFIERS, PARAMETERS, max_size=4)),
        grid=grid,
        device=draw(DEVICES),
        agents=agents,
        barriers=groups,
        sites=sites,
        ctas=draw(st.sampled_from((headers, ()))),
        runs=draw(st.sampled_from(((), (Run(True, 1, (1, 2), (3, MAX_TRACE_TIME)),)))),
        clock=draw(st.sampled_from(("clock", "globaltimer", "both"))),
        status=draw(st.sampled_from((Ending.FINISHED, Ending.DEADLINE))),
        wrong_tiles=draw(COUNTS),
        kernel_hash=draw(TEXTS),
        options=tuple(draw(st.lists(TEXTS, max_size=3))),
        record_bytes=draw(st.integers(0, 1024)),
        recorded_at=draw(TEXTS),
        extra=draw(st.dictionaries(TEXTS, JSON, max_size=3)),
    )
    return Trace(meta, events)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(trace=traces())
def test_every_trace_reads_back_equal_and_encodes_alike(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("any") / "trace.parquet"
    write_trace(trace, path)
    back = read_trace(path)
    assert back == trace
    assert {getattr(back.events, f.name).dtype for f in fields(Events)} == {np.dtype(np.int64)}
    assert read_meta(path) == trace.meta
    assert _encode(back, "again") == path.read_bytes()


def test_a_file_is_replaced_only_when_forced(ring: Trace, tmp_path: Path) -> None:
    path, other = tmp_path / "ring.parquet", ring_trace(tiles=3)
    write_trace(ring, path)
    with pytest.raises(OutputExistsError):
        write_trace(other, path)
    assert read_trace(path) == ring
    write_trace(other, path, force=True)
    assert read_trace(path) == other


def test_a_folder_is_no_place_to_write_to_or_read_from(ring: Trace, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        write_trace(ring, tmp_path, force=True)
    for read in (read_trace, read_meta):
        with pytest.raises(UsageError, match="this is a folder"):
            read(tmp_path)


def test_a_trace_that_breaks_a_rule_is_not_written(ring: Trace, tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError, match="row 4: agent 9 is outside") as caught:
        write_trace(with_event(ring, "agent", 4, 9), tmp_path / "ring.parquet")
    assert caught.value.cause.startswith("the trace was built incorrectly")
    assert list(tmp_path.iterdir()) == []
