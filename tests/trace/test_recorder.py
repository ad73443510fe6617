"""The simulator's buffer: order, conversion of cycles to picoseconds, and refusal of what is no integer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipesim.errors import ParameterError
from pipesim.trace.recorder import EventBuffer, Meaning, StampBuffer, cycles_to_ps
from pipesim.trace.schema import COLUMNS, Events


def columns(events: Events) -> dict[str, list[int]]:
    return {name: getattr(events, name).tolist() for name in COLUMNS}


@given(
    cycles=st.lists(st.integers(0, 2**53), min_size=1, max_size=20),
    sm_khz=st.integers(10_000, 8_000_000),
)
def test_the_conversion_is_exact(cycles: list[int], sm_khz: int) -> None:
    limit = (2**62 // 10**9 - 2) * sm_khz
    cycles = [min(cycle, limit) for cycle in cycles]
    expected = [cycle * 10**9 // sm_khz for cycle in cycles]  # in Python's integers, which have no end
    assert cycles_to_ps(np.array(cycles, dtype=np.int64), sm_khz).tolist() == expected


def test_a_time_that_64_bits_cannot_hold_is_refused() -> None:
    for cycle in (2**62, -(2**62), 2**63 - 1, -(2**63)):
        with pytest.raises(ParameterError, match="53 days"):
            cycles_to_ps(np.array([cycle]), 1000)


@pytest.mark.parametrize("sm_khz", [0, -5, 1_755_000_000])
def test_a_clock_out_of_range_is_refused(sm_khz: int) -> None:
    with pytest.raises(ParameterError, match=f"an SM clock of {sm_khz} kHz"):
        EventBuffer().events(sm_khz)


@pytest.mark.parametrize("cycle", [1.5, 2.0, 2**63, -(2**70), "7", None])
def test_what_is_no_64_bit_integer_is_refused(cycle: int) -> None:
    buffer = EventBuffer()
    buffer.append(0, 0, 0, 0, 0, 0, 0, 5)
    buffer.append(0, 0, 0, 0, 0, 0, 0, cycle)
    with pytest.raises(ParameterError, match="not a 64-bit integer"):
        buffer.events(sm_khz=1000)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 3), st.integers(0, 1), st.integers(0, 9)),
        max_size=40,
    )
)
def test_stamps_give_the_same_table_as_events_counted_by_hand(stamps: list[tuple[int, int, int, int, int]]) -> None:
    meanings = [Meaning(c, a, s, g, -1, 7 * s) for c in range(3) for a in range(3) for s in range(4) for g in range(2)]
    short, whole = StampBuffer(meanings), EventBuffer()
    passed: dict[tuple[int, int, int], int] = {}
    for cta, agent, site, stage, cycle in stamps:
        short.stamp(meanings.index(Meaning(cta, agent, site, stage, -1, 7 * site)), cycle)
        count = passed[cta, agent, site] = passed.get((cta, agent, site), -1) + 1
        whole.append(cta, agent, site, stage, -1, count, 7 * site, cycle)
    assert len(whole.events(1000)) == len(stamps)
    assert columns(short.events(1000)) == columns(whole.events(1000))
