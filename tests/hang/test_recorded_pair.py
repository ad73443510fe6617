"""Two launches of an H200, of which the second began while the first ran (``record_pair.py``): each conforms, and the
second goes past its wait for earlier kernels once all CTAs of the first have ended.
"""

from __future__ import annotations

import lzma
from dataclasses import replace
from pathlib import Path

import pytest

from pipesim.answers.views.sequence import Promise
from pipesim.conform.agreement import Agreement
from pipesim.launches.record.buffer_file import decode_buffer
from pipesim.launches.record.gather import compare_with_program, trace_of
from pipesim.trace.schema import EARLIER_KERNELS, Trace
from tests.hang.record_pair import GIVEN, launch_of, overlap_of, sequence_of

HERE = Path(__file__).parent / "records" / "pair"


def recorded(kind: str) -> tuple[str, list[Trace]]:
    ptx = (HERE / kind / "pair.ptx").read_text()
    data = {name: lzma.decompress((HERE / kind / f"{name}.records.xz").read_bytes()) for name in GIVEN}
    return ptx, [trace_of(ptx, launch_of(name), decode_buffer(each, name)) for name, each in data.items()]


@pytest.mark.parametrize("kind", ["right", "wrong"])
def test_each_of_two_launches_conforms(kind: str) -> None:
    ptx, traces = recorded(kind)
    for name, trace in zip(GIVEN, traces, strict=True):
        assert trace.meta.device.name == "NVIDIA H200"
        assert compare_with_program(ptx, launch_of(name), trace, name).agreement is Agreement.CONFORMS
    ended, began, waited = overlap_of(*traces)
    assert began < ended
    assert len(waited) == (kind == "right")
    assert all(ended < each < ended + 1_000 for each in waited)


def test_the_sequence_names_the_wait_that_is_missing(tmp_path: Path) -> None:
    for kind, promise, missing in (
        ("right", Promise.PROMISED, ""),
        ("wrong", Promise.NONE, "2 loads does not wait, and pair.cu:16 may come after launch_dependents (pair.cu:7)"),
    ):
        (pair,) = sequence_of(tmp_path, (HERE / kind / "pair.ptx").read_text()).pairs
        assert [(each.promise, each.missing) for each in pair.shared] == [(promise, missing)]


def test_records_without_the_wait_are_not_those_of_a_kernel_that_waits() -> None:
    ptx, (_, loads) = recorded("right")
    other, (_, unordered) = recorded("wrong")
    assert compare_with_program(other, launch_of("loads"), loads, "x").agreement is not Agreement.CONFORMS
    assert compare_with_program(ptx, launch_of("loads"), unordered, "x").agreement is Agreement.DIFFERS
    older = Trace(replace(unordered.meta, extra={**unordered.meta.extra, EARLIER_KERNELS: None}), unordered.events)
    assert compare_with_program(ptx, launch_of("loads"), older, "x").agreement is Agreement.CONFORMS  # it may not say
    sites = tuple(replace(s, barrier="x[0]") if s.barrier == EARLIER_KERNELS else s for s in loads.meta.sites)
    renamed = Trace(replace(loads.meta, sites=sites), loads.events)
    assert compare_with_program(ptx, launch_of("loads"), renamed, "x").agreement is not Agreement.CONFORMS
