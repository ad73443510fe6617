"""Hangs of Gluon and Triton as ``record --deadline`` stopped them on an H200: their records end with an autopsy."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from pipesim.conform.agreement import Agreement
from pipesim.coredump.dump import open_dump
from pipesim.launches.files.of_dump import launch_of_dump
from pipesim.launches.record.gather import compare_with_program, decode_buffer, trace_of
from pipesim.ptx.launch.file import read_launch
from pipesim.trace.files import read_trace
from pipesim.trace.schema import Trace

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


def unpacked(name: str) -> bytes:
    return lzma.decompress((HERE / "records" / f"{name}.xz").read_bytes())


def trace_in(folder: Path, name: str) -> Trace:
    (folder / name).write_bytes(unpacked(name))
    return read_trace(folder / name)


@pytest.mark.slow
def test_a_hang_of_warps_that_triton_specialised_is_followed_behind_a_race_that_hardware_does_not_notice(
    tmp_path: Path,
) -> None:
    dump = open_dump(HERE / "dumps" / "triton_warp_specialize.h200.elf.xz")
    made = launch_of_dump(dump, dump.grids[0]).compiled
    assert made is not None
    trace = trace_in(tmp_path, "triton_warp_specialize.parquet")
    found = compare_with_program(made.ptx, made.launch, trace, "x")
    assert found.agreement is Agreement.HANGS_TOO
    page = " ".join(" ".join(found.page).split())
    assert "12 of 12 agents blocked; before that, load: two concurrent accesses to the same bytes" in page
    assert "it has 1 of 1 arrivals; 8,192 bytes more landed than expected" in page


@pytest.mark.slow
def test_later_inits_are_stores_where_triton_has_removed_every_use_of_the_barrier_and_only_there(
    tmp_path: Path,
) -> None:
    """With 64 rows the same kernel ends; of three barriers without a use there are two inits each."""
    name = "triton_warp_specialize_64"
    ptx, launch = (unpacked(f"{name}.{suffix}").decode() for suffix in ("ptx", "json"))
    trace = trace_in(tmp_path, f"{name}.parquet")
    found = compare_with_program(ptx, read_launch(launch, name), trace, name)
    assert found.agreement is Agreement.CONFORMS
    in_use = "\t@%p12 mbarrier.init.shared::cta.b64 [%r193], 128;\n"
    twice = ptx.replace(in_use, in_use * 2)
    found = compare_with_program(twice, read_launch(launch, name), trace, name)
    assert (twice != ptx, found.agreement) == (True, Agreement.DIFFERS)
    assert "initialised again without an inval" in " ".join(" ".join(found.page).split())
