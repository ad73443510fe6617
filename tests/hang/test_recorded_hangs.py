"""Hangs of Gluon and Triton as ``record --deadline`` stopped them on an H200: their records end with an autopsy."""

import lzma
from pathlib import Path

import pytest

from pipesim.conform.agreement import Agreement
from pipesim.coredump.dump import open_dump
from pipesim.errors import TraceFormatError
from pipesim.launches.files.of_dump import launch_of_dump
from pipesim.launches.record.buffer_file import decode_buffer
from pipesim.launches.record.gather import compare_with_program, trace_of
from pipesim.ptx.launch.file import read_launch
from pipesim.ptx.launch.values import Launch
from pipesim.trace.files import read_trace
from pipesim.trace.schema import Trace

HERE = Path(__file__).parent


def of_dump(name: str, device: str = "h200") -> tuple[str, Launch]:
    """The PTX and the launch of a kernel in a dump of its hang."""
    dump = open_dump(HERE / "dumps" / f"{name}.{device}.elf.xz")
    made = launch_of_dump(dump, dump.grids[0]).compiled
    assert made is not None
    return made.ptx, made.launch


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize(
    ("name", "events", "said"),
    [
        ("gluon_second_phase", 62, "compute could send it, but its last arrival on"),
        # its idle warps are at a barrier of the CTA, which opens when the others exit: they have to exit as well
        ("gluon_missing_arrive", 251, "idle/0 and idle/1 wait for named barrier 1: 96 of 256 threads arrived"),
    ],
)
def test_records_until_a_deadline_of_2_s(name: str, events: int, said: str) -> None:
    buffer = decode_buffer(lzma.decompress((HERE / "records" / f"{name}.records.xz").read_bytes()), name)
    ptx, launch = of_dump(name)
    trace = trace_of(ptx, launch, buffer)
    assert len(trace.events) == events
    found = compare_with_program(ptx, launch, trace, name)
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
    trace = trace_in(tmp_path, "triton_warp_specialize.parquet")
    found = compare_with_program(*of_dump("triton_warp_specialize"), trace, "x")
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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "gws_scale_bytes",  # 16 bytes more are expected than come
            "it has 1 of 1 arrivals; 16 bytes missing (ws_kernels.py:121)",
        ),
        (
            "gws_gemm_copy",  # a copy is not issued for one tile
            "16,384 bytes missing (ws_kernels.py:181) load would send the bytes next (ws_kernels.py:165), but waits",
        ),
        (
            "gws_gemm_release",  # its arrives lag by a stage, and the first is left out: the arrive is behind a wgmma
            "mma would send the arrival next (ws_kernels.py:185), but waits for ws_kernels.py:82[0]",
        ),
    ],
)
@pytest.mark.slow
def test_of_warps_that_gluon_specialised_records_say_who_sends_what_is_missing_as_a_dump_does(
    name: str, said: str, tmp_path: Path
) -> None:
    ptx, launch = (unpacked(f"{name}.{suffix}").decode() for suffix in ("ptx", "json"))
    found = compare_with_program(ptx, read_launch(launch, name), trace_in(tmp_path, f"{name}.parquet"), name)
    assert found.agreement is Agreement.HANGS_TOO
    page = " ".join(" ".join(found.page).split())
    assert said in page
    assert "was not read" not in page


def test_where_the_recorded_cta_ended_and_another_did_not_the_option_that_records_it_is_named(tmp_path: Path) -> None:
    ptx, launch = of_dump("gluon_turn", "h100")
    found = compare_with_program(ptx, launch, trace_in(tmp_path, "gluon_turn.parquet"), "x")
    page = " ".join(" ".join(found.page).split())
    assert "every agent of this CTA finished: another of its 4 CTAs did not, which --cta N records" in page


@pytest.mark.slow
def test_records_of_a_lock_that_was_kept_went_around_their_buffer() -> None:
    buffer = decode_buffer(unpacked("triton_lock_kept.records"), "x")
    with pytest.raises(TraceFormatError, match="more records than its buffer holds, and did not end"):
        trace_of(*of_dump("triton_lock_kept"), buffer)
