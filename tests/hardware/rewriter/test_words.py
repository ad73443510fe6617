"""Kernels whose CTAs talk by words of global memory: a grid is recorded, and replayed with its spins and writes."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from hwkernels.rewriter import RewrittenPtx, decode_records, instrument
from pipesim.answers.compare import compare_kernel
from pipesim.conform.agreement import Agreement
from pipesim.conform.result import DivergenceKind, TraceVerdict
from pipesim.errors import TraceFormatError
from pipesim.model.ending import Ending
from pipesim.ptx.extract import extract
from pipesim.ptx.text.read import read_module
from pipesim.trace.files import read_trace, write_trace
from pipesim.trace.schema import EARLIER_KERNELS, ORIGIN, TURNS, WORDS, Device, EventKind, Events, Trace
from tests.support.talking_ptx import KERNELS, LAUNCH, rewritten, run, text

DEVICE = Device("machine", sm_khz=2_000_000)


def recorded(name: str, seed: int = 0) -> tuple[RewrittenPtx, Trace]:
    kernel = rewritten(name)
    data, ended = run(kernel, seed)
    assert ended
    return kernel, decode_records(kernel, data, DEVICE)


def compared(name: str, trace: Trace) -> tuple[Agreement, DivergenceKind | None, str]:
    """The agreement with the program of the PTX, and the divergence."""
    found = compare_kernel(extract(read_module(text(name), name), LAUNCH), trace, name).comparison
    wrong = found.conformance.divergence
    return found.agreement, None if wrong is None else wrong.kind, "" if wrong is None else wrong.claim


def rows(trace: Trace, kind: EventKind, cta: int) -> list[int]:
    sites = [n for n, site in enumerate(trace.meta.sites) if site.kind is kind]
    return [int(row) for row in np.flatnonzero(np.isin(trace.events.site, sites) & (trace.events.cta == cta))]


def moved(trace: Trace, row: int, **columns: int) -> Trace:
    """The trace with other numbers in a row."""
    found = {name: getattr(trace.events, name).copy() for name in columns}
    for name, value in columns.items():
        found[name][row] = value
    return Trace(trace.meta, replace(trace.events, **found))


@pytest.mark.sampled(2, 4)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", KERNELS)
def test_a_grid_conforms_in_whatever_order_its_ctas_come(name: str, seed: int, tmp_path: Path) -> None:
    _, trace = recorded(name, seed)
    write_trace(trace, tmp_path / "words.parquet")
    again = read_trace(tmp_path / "words.parquet")
    assert again.meta.extra[WORDS] == trace.meta.extra[WORDS] != {}
    assert compared(name, again)[:2] == (Agreement.CONFORMS, None)
    kinds = {site.kind for site in trace.meta.sites}
    assert {EventKind.SPIN_ENTER, EventKind.SPIN_RETURN, EventKind.WORD_WRITE} <= kinds
    assert (EventKind.ATOMIC_RETURN in kinds) == (name == "last")


@pytest.mark.slow
def test_the_order_of_atomics_is_read_from_what_they_returned() -> None:
    seen = set()
    for seed in range(6):
        _, trace = recorded("last", seed)
        turns = trace.meta.extra[TURNS]
        for place, cta in enumerate(turns[:3]):
            (row,) = rows(trace, EventKind.ATOMIC_RETURN, cta)
            assert trace.events.value[row] == place
        assert turns[3] == turns[2]  # who counts last sets the flag
        seen.add(tuple(turns))
        other = replace(trace.meta, extra=trace.meta.extra | {TURNS: [(cta + 1) % 3 for cta in turns]})
        assert compared("last", Trace(other, trace.events))[0] is not Agreement.CONFORMS
    assert len(seen) > 2


@pytest.mark.slow
def test_a_spin_that_ends_before_the_write_is_refused() -> None:
    _, trace = recorded("split_k")
    (write,), (entered,), (ends,) = (
        rows(trace, kind, cta)
        for kind, cta in ((EventKind.WORD_WRITE, 0), (EventKind.SPIN_ENTER, 1), (EventKind.SPIN_RETURN, 1))
    )
    assert trace.events.cycle[ends] > trace.events.cycle[write]
    back = int(trace.events.time_ps[write]) - 600_000
    early = moved(moved(trace, ends, time_ps=back), entered, time_ps=back - 1000)
    agreement, kind, claim = compared("split_k", early)
    assert (agreement, kind) == (Agreement.DIFFERS, DivergenceKind.TOO_EARLY)
    assert "words[2]" in claim


@pytest.mark.slow
def test_a_value_that_cannot_have_been_there_is_refused() -> None:
    """The counter of two laps: a spin of the first that says it read what only the second makes."""
    _, trace = recorded("laps")
    first = rows(trace, EventKind.SPIN_RETURN, 0)[0]
    agreement, kind, claim = compared("laps", moved(trace, first, value=6))
    assert (agreement, kind) == (Agreement.DIFFERS, DivergenceKind.TOO_EARLY)
    assert "reads 6 from words[0]: the first write that makes it came" in claim
    _, other = recorded("split_k")
    never = compared("split_k", moved(other, rows(other, EventKind.SPIN_RETURN, 1)[0], value=9))
    assert never[2].endswith("reads 9 from words[2], which it never has")


def test_other_values_and_lost_records_are_refused() -> None:
    kernel = rewritten("last")
    data, _ = run(kernel)
    words = np.frombuffer(data, dtype="<u4")
    first = int.from_bytes(words[2:4].tobytes(), "little") // 4  # of the atomic: two clocks, a value, and its address
    for at, to in ((first + 4, 7), (first + 6, int(words[first + 6]) + 4), (first + 3, 0)):
        damaged = words.copy()
        damaged[at] = to
        with pytest.raises(TraceFormatError):
            decode_records(kernel, damaged.tobytes(), DEVICE)


@pytest.mark.slow
def test_a_grid_that_hangs_shows_who_waits_for_which_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """A split that hands the word on to the CTA after the next one."""
    monkeypatch.setitem(KERNELS, "skips", KERNELS["split_k"].replace("%r4, %r1, 1;", "%r4, %r1, 2;"))
    kernel = rewritten("skips", stops=True)
    data, ended = run(kernel)
    assert not ended  # a barrier of the machine is left by no flag
    trace = decode_records(kernel, data, DEVICE)
    assert trace.meta.status is Ending.DEADLINE
    assert [len(rows(trace, kind, 1)) for kind in (EventKind.SPIN_ENTER, EventKind.SPIN_RETURN)] == [1, 0]
    found = compare_kernel(extract(read_module(text("skips"), "skips"), LAUNCH), trace, "skips").comparison
    assert (found.agreement, found.conformance.verdict) == (Agreement.HANGS_TOO, TraceVerdict.DIFFERS)
    assert found.conformance.divergence is not None
    assert found.conformance.divergence.stuck_too


def test_a_grid_of_more_ctas_than_are_followed_together_is_recorded_as_one_cta() -> None:
    more = replace(LAUNCH, grid=(9, 1, 1))
    kernel = instrument(text("laps"), "laps.ptx", more)
    assert not kernel.words
    assert kernel.layout.ranks == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alone", *KERNELS])
def test_a_wait_for_earlier_kernels_is_recorded(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    waits = "griddepcontrol.launch_dependents;\n griddepcontrol.wait;\n bar.sync 0;\n"
    monkeypatch.setitem(KERNELS, name, waits + KERNELS.get(name, ""))
    _, trace = recorded(name)
    write_trace(trace, tmp_path / "waits.parquet")
    again = read_trace(tmp_path / "waits.parquet")
    assert compared(name, again)[:2] == (Agreement.CONFORMS, None)
    of_waits = {site.kind: n for n, site in enumerate(again.meta.sites) if site.barrier == EARLIER_KERNELS}
    assert of_waits.keys() == {EventKind.SPIN_ENTER, EventKind.SPIN_RETURN}
    assert again.meta.extra[ORIGIN] > 0
    lost = int(np.flatnonzero(again.events.site == of_waits[EventKind.SPIN_RETURN])[0])
    kept = Events(**{f.name: np.delete(getattr(again.events, f.name), lost) for f in fields(again.events)})
    assert compared(name, Trace(again.meta, kept))[0] is Agreement.DIFFERS
