"""The rules of a trace, each broken once: in memory, and read from a file whose checksums are right."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipesim.errors import TraceFormatError
from pipesim.trace.consistency import check_meta, check_trace
from pipesim.trace.files import read_meta, read_trace
from pipesim.trace.schema import FAULTS, AgentInfo, Anchor, BarrierGroup, CtaInfo, EventKind, Run, Site, Trace
from tests.trace.conftest import with_event


@pytest.mark.parametrize(
    ("column", "row", "value", "fact"),
    [
        ("agent", 0, 3, "row 0: agent 3 is outside the table of 3 agents"),
        ("site", 7, 5, "row 7: site 5 is outside the table of 5 sites"),
        ("site", 0, 3, "row 0: agent load recorded at site mma.work of role mma"),
        ("agent", 0, 2, "row 0: agent mma/1 recorded at site load.wait of role load"),
        ("cta", 1, 4, "row 1: CTA 4 is outside the launch of 4 CTAs"),
        ("cta", 1, 2, "row 1: CTA 2 has no header"),
        ("stage", 0, 2, "row 0: stage 2 of barrier group empty, which has 2 stages"),
        ("stage", 13, -2, "row 13: stage is -2; the minimum is -1"),
        ("parity", 0, 2, "row 0: parity is 2; the maximum is 1"),
        ("iteration", 3, -1, "row 3: iteration is -1; the minimum is 0"),
        ("cycle", 5, -(1 << 63), f"row 5: cycle is {-(1 << 63)}; the minimum is {-(1 << 55)}"),
        ("time_ps", 5, (1 << 63) - 1, f"row 5: time_ps is {(1 << 63) - 1}; the maximum is {(1 << 62) - 1}"),
        ("stage", 5, 1 << 61, f"row 5: stage is {1 << 61}; the maximum is {(1 << 15) - 1}"),
    ],
)
def test_one_wrong_cell(
    column: str, row: int, value: int, fact: str, ring: Trace, store: Callable[[Trace], Path]
) -> None:
    with pytest.raises(TraceFormatError) as caught:
        read_trace(store(with_event(ring, column, row, value)))
    assert caught.value.fact == fact
    assert caught.value.place.endswith("faulty.parquet")


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"source": "guess"}, "source is 'guess', which is none of hardware, simulation"),
        ({"clock": "sundial"}, "clock is 'sundial', which is none of clock, globaltimer, both"),
        ({"grid": 0}, "the launch has 0 CTAs"),
        (
            {"barriers": (BarrierGroup("full", 2, 1),)},
            "site load.wait touches barrier group 'empty', which is not in the",
        ),
        ({"barriers": (BarrierGroup("full", 2, 1),) * 2}, "two barrier groups have one name"),
        (
            {"sites": (Site("x", "epilogue", EventKind.ARRIVE),)},
            "site x belongs to role 'epilogue', which no agent has",
        ),
        ({"agents": (AgentInfo("load", 0, 0),)}, "site mma.wait belongs to role 'mma', which no agent has"),
        ({"ctas": (CtaInfo(1, 0), CtaInfo(1, 0))}, "there is a header of CTA 1, twice or outside a launch of 4 CTAs"),
        ({"ctas": (CtaInfo(4, 0),)}, "there is a header of CTA 4, twice or outside a launch of 4 CTAs"),
        ({"ctas": (CtaInfo(1, 0, (), (1, 2)),)}, "CTA 1 has 2 counts in `written` for 3 agents"),
        ({"ctas": (CtaInfo(1, 0, (), (), (1,)),)}, "CTA 1 has 1 counts in `dropped` for 3 agents"),
        (
            {"ctas": (CtaInfo(1, 0, (), (), (0, 0, -1)),)},
            "field ctas[0].dropped[2] of the trace's metadata is -1; 0 to ",
        ),
        (
            {"ctas": (CtaInfo(1, 0, (Anchor(0, 0, -1),)),)},
            "field ctas[0].anchors[0].error_ps of the trace's metadata is -1; 0 to ",
        ),
        ({"runs": (Run(True, 0, (1, 2), (1,)),)}, "runs[0] has the cycles of 2 CTAs and the periods of 1"),
    ],
)
def test_a_description_that_contradicts_itself(
    changes: dict[str, Any], fact: str, ring: Trace, store: Callable[[Trace], Path]
) -> None:
    path = store(Trace(replace(ring.meta, **changes), ring.events))
    for read in (read_trace, read_meta):
        with pytest.raises(TraceFormatError) as caught:
            read(path)
        assert caught.value.fact.startswith(fact)


def test_columns_of_another_type_or_length(ring: Trace) -> None:
    short = replace(ring.events, value=ring.events.value[:-1])
    with pytest.raises(TraceFormatError, match=r"column value is int64 of shape \(95,\), not int64 \(96,\)"):
        check_trace(Trace(ring.meta, short), "x")
    narrow: Any = ring.events.value.astype(np.int32)
    with pytest.raises(TraceFormatError, match=r"column value is int32"):
        check_trace(Trace(ring.meta, replace(ring.events, value=narrow)), "x")


@pytest.mark.parametrize("window", [(3,), (3, 3), (-1, 2), (0, 1, 2)])
def test_a_window_is_a_first_and_an_end(ring: Trace, window: tuple[int, ...]) -> None:
    check_meta(replace(ring.meta, window=(0, 3)), "x")
    with pytest.raises(TraceFormatError, match="the window is "):
        check_meta(replace(ring.meta, window=window), "x")


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        ((1,), "field ctas[1].barrier_words of the trace's metadata has 1 words for 4 barriers"),
        (
            (1, 2, 3, -4),
            "field ctas[1].barrier_words[3] of the trace's metadata is -4, which is not a 64-bit word",
        ),
        (
            (1, 1 << 64, 3, 4),
            f"field ctas[1].barrier_words[1] of the trace's metadata is {1 << 64}, which is not a 64-bit word",
        ),
    ],
)
def test_there_is_one_word_of_64_bits_for_each_barrier(
    ring: Trace, store: Callable[[Trace], Path], words: tuple[int, ...], fact: str
) -> None:
    def with_words(words: tuple[int, ...]) -> Trace:
        first, second, *rest = ring.meta.ctas
        return Trace(replace(ring.meta, ctas=(first, replace(second, barrier_words=words), *rest)), ring.events)

    read_trace(store(with_words((1, 2, 3, (1 << 64) - 1))))
    for read in (read_trace, read_meta):
        with pytest.raises(TraceFormatError) as caught:
            read(store(with_words(words)))
        assert caught.value.fact == fact
        assert caught.value.place.endswith("faulty.parquet")


@pytest.mark.parametrize("fault", ["sabotage@3", "no_acquire", "no_acquire@", "no_acquire@-1", "no_acquire@٣", "@3"])
def test_a_fault_is_a_kind_at_an_iteration(ring: Trace, store: Callable[[Trace], Path], fault: str) -> None:
    for kind in FAULTS:
        check_meta(replace(ring.meta, fault=f"{kind}@12"), "x")
    with pytest.raises(TraceFormatError) as caught:
        read_trace(store(Trace(replace(ring.meta, fault=fault), ring.events)))
    assert caught.value.fact == (
        f"field fault of the trace's metadata is {fault!r}, which is not KIND@ITERATION of {', '.join(FAULTS)}"
    )


def test_another_version_cannot_be_written(ring: Trace) -> None:
    with pytest.raises(TraceFormatError, match="schema version 6"):
        check_trace(Trace(replace(ring.meta, schema=6), ring.events), "x")
