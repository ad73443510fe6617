"""Small kernels in PTX whose CTAs talk by words of global memory, as a recording of their whole grid sees them."""

from hwkernels.rewriter import RewriteOptions, RewrittenPtx, instrument
from pipesim.ptx.launch.values import Array, Field, Launch, Parameter, Pointer
from pipesim.ptx.text.read import read_module
from tests.support.ptx_machine import GLOBAL, Machine, run_grid
from tests.support.small_ptx import text_of

CTAS, THREADS, WORDS = 3, 64, 64
_BEGIN = """ ld.param.u64 %rd1, [words];
 ld.param.u64 %rd2, [data];
 mov.u32 %r0, %tid.x;
 mov.u32 %r1, %ctaid.x;
 setp.ne.u32 %p1, %r0, 0;
"""
#: Each CTA waits for its turn, and hands it on.
SPLIT_K = (
    _BEGIN
    + """ @%p1 bra mine;
again:
 ld.acquire.gpu.global.u32 %r2, [%rd1+8];
 setp.ne.u32 %p2, %r2, %r1;
 @%p2 bra again;
mine:
 bar.sync 0;
 ld.global.u32 %r3, [%rd2];
 add.u32 %r3, %r3, 1;
 bar.sync 0;
 @%p1 bra end;
 st.global.u32 [%rd2], %r3;
 add.u32 %r4, %r1, 1;
 st.release.gpu.global.u32 [%rd1+8], %r4;
end:
"""
)
#: All meet at a counter, twice; the loop is left by a branch that is taken.
LAPS = (
    _BEGIN
    + """ mov.u32 %r5, 0;
lap:
 add.u32 %r5, %r5, 3;
 bar.sync 0;
 @%p1 bra met;
 red.release.gpu.global.add.u32 [%rd1], 1;
again:
 ld.acquire.gpu.global.u32 %r2, [%rd1];
 setp.ge.u32 %p2, %r2, %r5;
 @%p2 bra met;
 bra again;
met:
 bar.sync 0;
 setp.lt.u32 %p3, %r5, 6;
 @%p3 bra lap;
"""
)
#: The CTA that counts last sets a flag, for which all wait.
LAST = (
    _BEGIN
    + """ mov.u32 %r20, tile;
 @%p1 bra counted;
 atom.acq_rel.gpu.global.add.u32 %r2, [%rd1], 1;
 st.shared.u32 [%r20], %r2;
counted:
 bar.sync 0;
 ld.shared.u32 %r3, [%r20];
 setp.ne.u32 %p2, %r3, 2;
 @%p2 bra waits;
 bar.sync 1;
 @%p1 bra waits;
 st.release.gpu.global.u32 [%rd1+64], 1;
waits:
 @%p1 bra end;
again:
 ld.acquire.gpu.global.u32 %r4, [%rd1+64];
 setp.eq.u32 %p3, %r4, 0;
 @%p3 bra again;
end:
"""
)
KERNELS = {"split_k": SPLIT_K, "laps": LAPS, "last": LAST}
_PARAMETERS = ".param .u64 words, .param .u64 data"
_ZEROS = Pointer(contents=(Field(0, Array("u32", (0,) * WORDS)),))
LAUNCH = Launch(
    "kernel", (CTAS, 1, 1), (THREADS, 1, 1), parameters=(Parameter("words", _ZEROS), Parameter("data", Pointer()))
)


def text(name: str) -> str:
    """The PTX of a kernel."""
    return text_of(KERNELS[name], _PARAMETERS)


def rewritten(name: str, *, stops: bool = False) -> RewrittenPtx:
    """With the recorder."""
    return instrument(text(name), f"{name}.ptx", LAUNCH, RewriteOptions(stop_flag=stops, eager=stops))


def run(kernel: RewrittenPtx, seed: int = 0, *, ctas: int = CTAS, ptx: str = "") -> tuple[bytes, bool]:
    """The buffer that a launch leaves, and whether it ended; with fewer CTAs it is stopped. ``ptx``: run this."""
    module = read_module(ptx or kernel.ptx, "talks.ptx")
    at = -(-kernel.nbytes // 8) * 8
    places = {kernel.symbol: at, "words": at + 8, "data": at + 16}
    memory = bytearray(at + 32 + 4 * WORDS + 4 * THREADS)
    memory[: kernel.nbytes] = kernel.initial()
    for place, value in zip(places.values(), (0, at + 32, at + 32 + 4 * WORDS), strict=True):
        memory[place : place + 8] = (GLOBAL + value).to_bytes(8, "little")
    symbols = {name: GLOBAL + place for name, place in places.items()}
    machines = [Machine(module, module.entries[0], THREADS, memory, symbols, cta=cta) for cta in range(ctas)]
    ended = run_grid(machines, seed, 600 if kernel.options.stop_flag else 4_000)
    if not ended and kernel.options.stop_flag:
        memory[0] = 1
        ended = run_grid(machines, seed)
    return bytes(memory[: kernel.nbytes]), ended
