"""A kernel that takes a lock which other CTAs have: how often it found it taken is read from its records."""

from dataclasses import replace

import numpy as np
import pytest

from hwkernels.rewriter import Encoding, RewriteOptions, RewrittenPtx, decode_records, instrument
from hwkernels.rewriter import trace as decoding
from pipesim.answers.compare import compare_kernel
from pipesim.conform.agreement import Agreement
from pipesim.errors import TraceFormatError
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Launch, Parameter, Pointer
from pipesim.ptx.text.read import read_module
from pipesim.trace.schema import LOCK_FAILURES, Device, Trace
from tests.support.ptx_machine import GLOBAL, Machine
from tests.support.small_ptx import SET_UP, text_of

DEVICE = Device("machine", sm_khz=2_000_000)
#: Thread 0 takes the lock; all see in shared memory whether it has it.
LOCK = (
    SET_UP.format(first=64, count=1)
    + """ ld.param.u64 %rd1, [lock];
 setp.eq.u32 %p1, %r0, 0;
 mov.u32 %r20, tile;
again:
 bar.sync 0;
 @%p1 atom.global.acq_rel.gpu.cas.b32 %r10, [%rd1], 0, 1;
 @%p1 st.shared.u32 [%r20], %r10;
 bar.sync 0;
 ld.shared.u32 %r11, [%r20];
 setp.eq.u32 %p2, %r11, 1;
 @%p2 bra again;
 mbarrier.arrive.shared::cta.b64 _, [%r3];
 bar.sync 1;
 @%p1 atom.global.acq_rel.gpu.exch.b32 %r12, [%rd1], 0;
"""
)
TEXT = text_of(LOCK, ".param .u64 lock")
LAUNCH = Launch("kernel", (4, 1, 1), (64, 1, 1), parameters=(Parameter("lock", Pointer()),))


def rewritten(launch: Launch = LAUNCH) -> RewrittenPtx:
    return instrument(TEXT, "lock.ptx", launch, RewriteOptions(Encoding.AUTO))


def run(kernel: RewrittenPtx, taken: int) -> bytes:
    """The buffer after a launch in which the lock was found taken this many times."""
    at = -(-kernel.nbytes // 8) * 8
    memory = bytearray(at + 24)
    memory[: kernel.nbytes] = kernel.initial()
    memory[at : at + 16] = GLOBAL.to_bytes(8, "little") + (GLOBAL + at + 16).to_bytes(8, "little")
    module = read_module(kernel.ptx, "lock.ptx")
    symbols = {kernel.symbol: GLOBAL + at, "lock": GLOBAL + at + 8}
    machine = Machine(module, module.entries[0], 64, memory, symbols, taken=taken)
    assert machine.run()
    assert machine.taken == 0
    return bytes(machine.memory[: kernel.nbytes])


def agreement(trace: Trace) -> Agreement:
    """Of the trace with the program that assumes nothing of the lock."""
    return compare_kernel(extract(read_module(TEXT, "lock.ptx"), LAUNCH), trace, "lock").comparison.agreement


@pytest.mark.sampled(1, 3)
@pytest.mark.parametrize("taken", [0, 1, 2, 40])
def test_the_trace_conforms_however_often_the_lock_was_taken(taken: int) -> None:
    kernel = rewritten()
    assert kernel.full
    trace = decode_records(kernel, run(kernel, taken), DEVICE)
    assert trace.meta.extra.get(LOCK_FAILURES, 0) == taken
    assert len(trace.events) == 2 + 2 * 2 * (3 + 2 * taken)  # the barrier of the prologue is no event
    assert agreement(trace) is Agreement.CONFORMS


@pytest.mark.slow
def test_without_the_number_the_path_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = rewritten()
    trace = decode_records(kernel, run(kernel, 2), DEVICE)
    forgotten = replace(trace, meta=replace(trace.meta, extra=trace.meta.extra | {LOCK_FAILURES: 1}))
    assert agreement(forgotten) is not Agreement.CONFORMS
    monkeypatch.setattr(decoding, "as_decided", lambda kernel, streams: kernel)
    with pytest.raises(TraceFormatError, match="is next") as caught:
        decode_records(kernel, run(kernel, 2), DEVICE)
    assert "the first atomic on byte 0 at parameter 0 (lock) returns 0" in str(caught.value.cause)


def test_records_that_no_number_explains_are_refused() -> None:
    """A failure that one warp alone has, and a lost record of all."""
    kernel = rewritten()
    words = np.frombuffer(run(kernel, 2), dtype="<u4").copy()
    begin = int.from_bytes(words[2:4].tobytes(), "little") // 4
    size, stride = kernel.layout.size // 4, kernel.layout.stride // 4
    other = np.frombuffer(run(kernel, 1), dtype="<u4")
    mixed, lost = words.copy(), words.copy()
    mixed[begin + stride : begin + 2 * stride] = other[begin + stride : begin + 2 * stride]
    lost[begin : begin + size - 2] = words[begin + 2 : begin + size]
    for damaged in (mixed, lost):
        with pytest.raises(TraceFormatError):
            decode_records(kernel, damaged.tobytes(), DEVICE)
