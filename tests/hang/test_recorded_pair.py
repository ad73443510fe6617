"""Two launches of an H200, of which the second began while the first ran: each conforms, and the
second goes past its wait for earlier kernels once all CTAs of the first have ended.
"""

import lzma
from dataclasses import replace
from pathlib import Path

import pytest

from pipesim.conform.agreement import Agreement
from pipesim.launches.record.buffer_file import decode_buffer
from pipesim.launches.record.gather import compare_with_program, trace_of
from pipesim.ptx.launch.values import Array, Field, Launch, Number, Parameter, Pointer
from pipesim.trace.schema import EARLIER_KERNELS, ORIGIN, EventKind, Trace

HERE = Path(__file__).parent / "records" / "pair"
CTAS, THREADS, VALUE = 4, 64, 3
NAMES = ("stores", "loads")
ZEROS = Pointer(contents=(Field(0, Array("u32", (0,) * 64)),))


def launch_of(name: str) -> Launch:
    """The launch of one of them."""
    met, value = Parameter("met", ZEROS), Parameter("value", Number("s32", VALUE))
    given = (met, value) if name == "stores" else (Parameter("y", Pointer()),)
    return Launch(name, (CTAS, 1, 1), (THREADS, 1, 1), parameters=(Parameter("x", Pointer()), *given))


def overlap_of(first: Trace, second: Trace) -> tuple[int, int, list[int]]:
    """By the device's timer, in ns: the end of the first, the begin of the second, and the returns of its waits."""
    ended = max(each.anchors[-1].globaltimer_ns for each in first.meta.ctas) + first.meta.extra[ORIGIN]
    sites = [n for n, site in enumerate(second.meta.sites) if site.barrier == EARLIER_KERNELS]
    returns = [n for n in sites if second.meta.sites[n].kind is EventKind.SPIN_RETURN]
    rows = [n for n, site in enumerate(second.events.site) if site in returns]
    began = second.meta.extra[ORIGIN]
    return ended, began, [began + int(second.events.time_ps[row]) // 1000 for row in rows]


def recorded(kind: str) -> tuple[str, list[Trace]]:
    ptx = (HERE / kind / "pair.ptx").read_text()
    data = {name: lzma.decompress((HERE / kind / f"{name}.records.xz").read_bytes()) for name in NAMES}
    return ptx, [trace_of(ptx, launch_of(name), decode_buffer(each, name)) for name, each in data.items()]


@pytest.mark.parametrize("kind", ["right", "wrong"])
def test_each_of_two_launches_conforms(kind: str) -> None:
    ptx, traces = recorded(kind)
    for name, trace in zip(NAMES, traces, strict=True):
        assert trace.meta.device.name == "NVIDIA H200"
        assert compare_with_program(ptx, launch_of(name), trace, name).agreement is Agreement.CONFORMS
    ended, began, waited = overlap_of(*traces)
    assert began < ended
    assert len(waited) == (kind == "right")
    assert all(ended < each < ended + 1_000 for each in waited)


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
