"""Grids that talk by words of global memory, as they were recorded on an H200: twins of kernels
that hang conform, with every access to a word, and those that hang show who waits.
"""

import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipesim.conform.agreement import Agreement
from pipesim.launches.record.buffer_file import RecordedBuffer, decode_buffer
from pipesim.launches.record.gather import PtxComparison, compare_with_program, trace_of
from pipesim.ptx.launch.file import read_launch
from pipesim.ptx.launch.values import Launch
from pipesim.trace.schema import TURNS, WORDS, EventKind, Trace

HERE = Path(__file__).parent / "records" / "words"


def parts_of(name: str) -> tuple[str, Launch, RecordedBuffer]:
    launch = read_launch((HERE / f"{name}.json").read_text(), name)
    packed = (HERE / f"{name}.records.xz").read_bytes()
    return (HERE / f"{name}.ptx").read_text(), launch, decode_buffer(lzma.decompress(packed), name)


def recorded(name: str) -> tuple[Trace, PtxComparison]:
    ptx, launch, buffer = parts_of(name)
    trace = trace_of(ptx, launch, buffer)
    return trace, compare_with_program(ptx, launch, trace, name)


def count(trace: Trace, kind: EventKind) -> int:
    sites = [n for n, site in enumerate(trace.meta.sites) if site.kind is kind]
    return int(np.isin(trace.events.site, sites).sum())


@pytest.mark.parametrize(
    ("name", "words", "spins", "writes", "atomics"),
    [
        ("split_k", ["turn[0]", "turn[1]"], 6, 6, 0),
        ("grid_laps", ["arrived[0]"], 20, 20, 0),
        ("last_block", ["count[0]", "sum_of[0]"], 16, 1, 8),
        ("grid_barrier", ["arrived[0]"], 4, 0, 4),
    ],
)
def test_right_twins_conform(name: str, words: list[str], spins: int, writes: int, atomics: int) -> None:
    trace, compared = recorded(name)
    assert compared.agreement is Agreement.CONFORMS
    assert sorted(trace.meta.extra[WORDS]) == words
    assert (count(trace, EventKind.SPIN_RETURN), count(trace, EventKind.WORD_WRITE)) == (spins, writes)
    assert count(trace, EventKind.ATOMIC_RETURN) == atomics
    assert bool(trace.meta.extra[TURNS]) == (name == "last_block")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("split_k_hangs", "waits for phase 0 of turn[1]"),
        ("grid_laps_hangs", "of arrived[0] again"),
        ("grid_barrier_hangs", "waits for phase 0 of arrived[0]"),
    ],
)
def test_wrong_twins_hang_as_their_programs_do(name: str, said: str) -> None:
    trace, compared = recorded(name)
    assert compared.agreement is Agreement.HANGS_TOO
    assert count(trace, EventKind.SPIN_ENTER) > count(trace, EventKind.SPIN_RETURN)
    assert said in " ".join(" ".join(compared.page).split())


def test_another_order_of_the_ctas_is_not_this_launch() -> None:
    ptx, launch, buffer = parts_of("last_block")
    trace = trace_of(ptx, launch, buffer)
    turns = trace.meta.extra[TURNS]
    other = [turns[1], turns[0], *turns[2:]]
    changed = replace(trace.meta, extra=trace.meta.extra | {TURNS: other})
    assert compare_with_program(ptx, launch, Trace(changed, trace.events), "x").agreement is not Agreement.CONFORMS


def test_records_of_two_ctas_that_are_exchanged_are_refused() -> None:
    """A CTA that counts before the one whose turn it is."""
    ptx, launch, buffer = parts_of("split_k")
    trace = trace_of(ptx, launch, buffer)
    first, second = trace.events.cta == 2, trace.events.cta == 4  # both of tile 0
    times = trace.events.time_ps.copy()
    back = int(times[second].min() - times[first].min())
    times[second] -= back + 1_500_000
    moved = Trace(trace.meta, replace(trace.events, time_ps=times))
    assert compare_with_program(ptx, launch, moved, "x").agreement is Agreement.DIFFERS
