"""A small kernel that is recorded without a GPU: its instrumented PTX is run by the tests' machine for PTX.

Warp 0 hands warp 1 as many items as a word in memory says, over two mbarriers. In ``hangs__8_4`` the consumer does not
arrive for the last item but one, and the producer waits for ever.
"""

from functools import cache

from hwkernels.rewriter import RewrittenPtx, instrument
from pipesim.launches.record.buffer_file import LaunchEnd, RecordedBuffer
from pipesim.launches.record.preparation import rewrite_options
from pipesim.ptx.launch.values import Launch, Number, Parameter, Pointer
from pipesim.ptx.text.read import read_module
from tests.support.ptx_machine import GLOBAL, Machine, Thread

_ENTRY = """.visible .entry {name}(.param .u64 p, .param .u32 n)
{{
 .reg .pred %p<9>;
 .reg .b32 %r<20>;
 .reg .b64 %rd<9>;
 .shared .align 8 .b64 bars[2];
 .loc 1 10 1
 ld.param.u32 %r9, [n];
 mov.u32 %r0, %tid.x;
 shr.u32 %r1, %r0, 5;
 and.b32 %r2, %r0, 31;
 mov.u32 %r3, bars;
 mov.u32 %r5, 0;
 setp.ne.u32 %p0, %r0, 0;
 @%p0 bra made;
 mbarrier.init.shared::cta.b64 [%r3], 1;
 mbarrier.init.shared::cta.b64 [%r3+8], 1;
 fence.mbarrier_init.release.cluster;
made:
 bar.sync 0;
 setp.ne.u32 %p1, %r2, 0;
 @%p1 bra done;
 setp.ne.u32 %p2, %r1, 0;
 @%p2 bra consumer;
producer:
 and.b32 %r6, %r5, 1;
 xor.b32 %r6, %r6, 1;
 .loc 1 21 1
empty:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3+8], %r6;
 @!%p3 bra empty;
 .loc 1 22 1
 mbarrier.arrive.shared::cta.b64 _, [%r3];
 add.u32 %r5, %r5, 1;
 setp.lt.u32 %p4, %r5, %r9;
 @%p4 bra producer;
 bra done;
consumer:
 and.b32 %r6, %r5, 1;
 .loc 1 31 1
full:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], %r6;
 @!%p3 bra full;
 {skip}
 .loc 1 32 1
 {guard}mbarrier.arrive.shared::cta.b64 _, [%r3+8];
 add.u32 %r5, %r5, 1;
 setp.lt.u32 %p4, %r5, %r9;
 @%p4 bra consumer;
done:
 ret;
}}
"""
RIGHT, HANGS = "hands__8_4", "hangs__8_4"
PLAIN = ".visible .entry plain__8_4(.param .u64 p, .param .u32 n) { ret; }\n"
PTX = (
    '.version 8.0\n.target sm_90a\n.address_size 64\n.file 1 "hands.py"\n'
    + _ENTRY.format(name=RIGHT, skip="", guard="")
    + _ENTRY.format(name=HANGS, skip="sub.u32 %r7, %r9, 2;\n setp.ne.u32 %p5, %r5, %r7;", guard="@%p5 ")
    + PLAIN
)
ITEMS = 5
_DEADLINE = 8_000  #: instructions of all threads


def launch_of(entry: str = RIGHT, items: int = ITEMS) -> Launch:
    """One CTA of two warps."""
    given = (Parameter("p", Pointer(512)), Parameter("n", Number("u32", items)))
    return Launch(entry, (1, 1, 1), (64, 1, 1), registers=40, parameters=given)


def instrumented(entry: str = RIGHT, *, stop_flag: bool = False) -> RewrittenPtx:
    """The kernel with the recorder in it."""
    return instrument(PTX, "its PTX", launch_of(entry), rewrite_options(stop_flag=stop_flag, waits_only=False))


class _Stopped(Machine):
    """Sets the word at which waits give up after a while, as the host does at a deadline."""

    flag: int = 0

    def _step(self, thread: Thread) -> None:
        if self.steps == _DEADLINE:
            self.memory[self.flag] = 1
        super()._step(thread)


@cache
def buffer_after_a_launch(entry: str = RIGHT, *, stop_flag: bool = False) -> bytes:
    """What the kernel leaves in its buffer; one that may be stopped is told so after a while."""
    made = instrumented(entry, stop_flag=stop_flag)
    module = read_module(made.ptx, "instrumented", made.entry)
    function = next(each for each in module.entries if each.name == made.entry)
    start = 1 << 16
    memory = bytearray(start + made.nbytes)
    memory[64:72] = (GLOBAL + start).to_bytes(8, "little")
    memory[128] = ITEMS  # the machine has parameters in global memory
    memory[start:] = made.initial()
    machine = _Stopped(module, function, 64, memory, {made.symbol: GLOBAL + 64, "n": GLOBAL + 128})
    machine.flag = start
    ended = machine.run()
    assert ended, "it hangs"
    return bytes(memory[start:])


def recorded(entry: str = RIGHT, end: LaunchEnd = LaunchEnd.FINISHED, *, stop_flag: bool = False) -> RecordedBuffer:
    """A launch that was recorded, as its file has it."""
    data = buffer_after_a_launch(entry, stop_flag=stop_flag)
    return RecordedBuffer(end, "a machine of the tests", 1, (9, 0), 13000, 1_500_000, data, stop_flag)
