"""A rewritten kernel, run on a machine of the tests: its records are a trace that conforms, and damage is refused."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from hwkernels.rewriter import Encoding, RewrittenPtx, decode_records
from pipesim.answers.compare import compare_kernel
from pipesim.answers.views.trace import TraceComparison
from pipesim.conform.agreement import Agreement
from pipesim.errors import LaunchFileError, PtxError, TraceFormatError
from pipesim.model.ending import Ending
from pipesim.ptx.launch.values import Launch
from pipesim.trace.schema import Device, EventKind, Trace
from tests.support.rewritten_ring import LAUNCH, TILES, rewritten, ring, run

DEVICE = Device("machine", sm_khz=2_000_000)
BOTH = pytest.mark.parametrize("encoding", [Encoding.FULL, Encoding.POSITIONAL])
UNWRITTEN = 0xFFFFFFFF


def compared(kernel: RewrittenPtx, trace: Trace) -> TraceComparison:
    return compare_kernel(kernel.extraction, trace, "ring").comparison


@pytest.mark.sampled(2, 4)
@BOTH
@pytest.mark.parametrize("seed", range(4))
def test_what_it_did_is_what_the_program_says(encoding: Encoding, seed: int) -> None:
    kernel = rewritten(ring(), encoding)
    buffer, ended = run(kernel, seed)
    trace = decode_records(kernel, buffer, DEVICE)
    assert ended
    assert trace.meta.status is Ending.FINISHED
    kinds = Counter(trace.meta.sites[site].kind for site in trace.events.site)
    assert kinds == {
        EventKind.WAIT_ENTER: 2 * TILES, EventKind.WAIT_RETURN: 2 * TILES, EventKind.EXPECT: TILES,
        EventKind.COPY: TILES, EventKind.ARRIVE: TILES,
    }  # fmt: skip
    assert (np.diff(trace.events.cycle[trace.events.agent == 1]) > 0).all()
    assert compared(kernel, trace).agreement is Agreement.CONFORMS


def stream(kernel: RewrittenPtx, buffer: bytes, number: int = 0) -> tuple[bytearray, int, int]:
    """A copy of the buffer, and where the words of a stream begin and end."""
    begin = int.from_bytes(buffer[8:16], "little") + number * kernel.layout.stride
    words = np.frombuffer(buffer, dtype="<u4", offset=begin, count=kernel.layout.size // 4)
    return bytearray(buffer), begin, begin + 4 * int(np.argmax(words == UNWRITTEN))


@BOTH
def test_a_lost_record_is_refused(encoding: Encoding) -> None:
    kernel = rewritten(ring(), encoding)
    buffer, begin, end = stream(kernel, run(kernel)[0])
    step = 8 if kernel.full else 4
    middle = begin + (end - begin) // 2 // step * step
    buffer[middle : end - step] = buffer[middle + step : end]
    buffer[end - step : end] = b"\xff" * step
    with pytest.raises(TraceFormatError, match=r"where .* is next|something else"):
        decode_records(kernel, bytes(buffer), DEVICE)


def test_a_wait_with_another_parity_is_refused() -> None:
    kernel = rewritten(ring(), Encoding.FULL)
    buffer, begin, _ = stream(kernel, run(kernel)[0])
    for at in range(begin + 4, begin + 400, 8):  # the first wait after the set-up
        if buffer[at + 1] >> 4 & 1:
            buffer[at + 1] ^= 0x80
            break
    with pytest.raises(TraceFormatError, match="parity 0, not 1"):
        decode_records(kernel, bytes(buffer), DEVICE)


FENCE = " fence.proxy.async.shared::cta;\n"
TURN = " setp.eq.u32 %p10, %r10, 3;\n"
IN_TURN = TURN + " @!%p10 bra a;\n bra b;\na:\n" + FENCE + " bra c;\nb:\n fence.acq_rel.cta;\nc:\n"


def test_another_site_with_as_many_stamps_is_seen_in_the_hash() -> None:
    """In its fourth lap the kernel runs another fence than in the others; one that does so in its third is refused."""
    kernel = rewritten(ring(IN_TURN), Encoding.POSITIONAL)
    trace = decode_records(kernel, run(kernel)[0], DEVICE)
    assert compared(kernel, trace).agreement is Agreement.CONFORMS
    other = kernel.ptx.replace("setp.eq.u32 %p10, %r10, 3", "setp.eq.u32 %p10, %r10, 2")
    assert other != kernel.ptx
    with pytest.raises(TraceFormatError, match="the hash of the sites"):
        decode_records(kernel, run(kernel, text=other)[0], DEVICE)


def test_a_kernel_that_goes_round_once_less_is_refused() -> None:
    kernel = rewritten(ring(), Encoding.POSITIONAL)
    shorter = kernel.ptx.replace("setp.lt.u32 %p4, %r10, 6", "setp.lt.u32 %p4, %r10, 5")
    with pytest.raises(TraceFormatError):
        decode_records(kernel, run(kernel, text=shorter)[0], DEVICE)


@pytest.mark.sampled(1)
@BOTH
def test_a_kernel_that_hangs_ends_by_the_flag_and_says_where(encoding: Encoding) -> None:
    kernel = rewritten(ring(release=""), encoding, stops=True)
    assert run(kernel)[1] is False
    buffer, ended = run(kernel, stop=True)
    trace = decode_records(kernel, buffer, DEVICE)
    assert ended
    assert trace.meta.status is Ending.DEADLINE
    found = compared(kernel, trace)
    assert found.agreement is Agreement.HANGS_TOO


@BOTH
def test_a_kernel_that_nobody_stops_leaves_what_it_did(encoding: Encoding) -> None:
    """The second wait of either warp does not return: its tries leave stamps where its records would be."""
    kernel = rewritten(ring(release=""), encoding)
    buffer, ended = run(kernel)
    trace = decode_records(kernel, buffer, DEVICE)
    assert not ended
    assert trace.meta.status is not Ending.FINISHED
    found = compared(kernel, trace)
    assert found.agreement is Agreement.HANGS_TOO
    kinds = [trace.meta.sites[site].kind for site in trace.events.site]
    tries = 1 if kernel.full else 2  # of each warp; one that failed has left stamps only in its place
    assert kinds.count(EventKind.WAIT_ENTER) == 2 * tries
    assert kinds.count(EventKind.WAIT_RETURN) == 2


#: As many tiles more as the number of the CTA.
BY_CTA = (
    " setp.lt.u32 %p4, %r10, 6;\n",
    " mov.u32 %r30, %ctaid.x;\n add.u32 %r30, %r30, 6;\n setp.lt.u32 %p4, %r10, %r30;\n",
)


@pytest.mark.sampled(1, 1)
@BOTH
def test_another_cta_than_the_first_is_recorded(encoding: Encoding) -> None:
    text = ring().replace(*BY_CTA)
    kernel = rewritten(text, encoding, launch=replace(LAUNCH, grid=(2, 2, 1), cta=1))
    trace = decode_records(kernel, run(kernel, cta=1)[0], DEVICE)
    assert compared(kernel, trace).agreement is Agreement.CONFORMS
    kinds = [trace.meta.sites[site].kind for site in trace.events.site]
    assert kinds.count(EventKind.COPY) == TILES + 1
    with pytest.raises(TraceFormatError, match="no warp of the launch has begun"):
        decode_records(kernel, run(kernel, cta=0)[0], DEVICE)
    first = rewritten(text, encoding, launch=replace(LAUNCH, grid=(2, 2, 1)))
    of_first = run(first, cta=0)[0]
    with pytest.raises(TraceFormatError):  # what another CTA did is not what this one does
        decode_records(kernel, of_first, DEVICE)


def test_the_place_of_a_cta_and_of_its_cluster() -> None:
    launch = Launch("kernel", (4, 6, 2), (32, 1, 1), (2, 3, 1), cta=4 * 6 + 4 * 5 + 3)
    assert launch.first_cta == (2, 3, 1)
    with pytest.raises(LaunchFileError, match="no CTA 4 in a grid of 4"):
        rewritten(ring(), Encoding.FULL, launch=replace(LAUNCH, grid=(4, 1, 1), cta=4))


CALLED = """.func meet()
{
 bar.sync 1, 64;
 ret;
}
"""


def test_a_function_that_synchronises_is_refused_where_it_is_called_and_not_elsewhere() -> None:
    head, kernel = ring().split(".visible .entry")
    unused = f"{head}{CALLED}.visible .entry{kernel}"
    assert rewritten(unused, Encoding.FULL).runs
    called = unused.replace("end:\n", "end:\n call meet;\n")
    with pytest.raises(PtxError, match="meet, which the kernel calls, synchronises") as refused:
        rewritten(called, Encoding.FULL)
    assert (refused.value.place, "inline" in refused.value.correction) == ("ring.ptx, line 6", True)
