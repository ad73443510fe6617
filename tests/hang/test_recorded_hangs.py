"""Hangs of kernels of Gluon as ``record --deadline 2`` stopped them on an H200: their records end with an autopsy."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from pipesim.conform.agreement import Agreement
from pipesim.coredump.dump import open_dump
from pipesim.launches.files.of_dump import launch_of_dump
from pipesim.launches.record.gather import compare_with_program, decode_buffer, trace_of

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "events", "said"),
    [
        ("gluon_second_phase", 62, "compute could send it, but its last arrival on"),
        # its idle warps are at a barrier of the CTA, which opens when the others exit: they have to exit as well
        ("gluon_missing_arrive", 251, "idle/0 and idle/1 wait for named barrier 1: 96 of 256 threads arrived"),
    ],
)
@pytest.mark.sampled(1)
def test_records_until_a_deadline_of_2_s(name: str, events: int, said: str) -> None:
    buffer = decode_buffer(lzma.decompress((HERE / "records" / f"{name}.records.xz").read_bytes()), name)
    dump = open_dump(HERE / "dumps" / f"{name}.h200.elf.xz")  # of the same kernel, with its PTX
    made = launch_of_dump(dump, dump.grids[0]).compiled
    assert made is not None
    trace = trace_of(made.ptx, made.launch, buffer)
    assert len(trace.events) == events
    found = compare_with_program(made.ptx, made.launch, trace, name)
    assert found.agreement is Agreement.HANGS_TOO
    assert said in " ".join(" ".join(found.page).split())
