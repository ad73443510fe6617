"""A ring of two warps in PTX, rewritten and run on the machine of the tests."""

from hwkernels.rewriter import Encoding, RewriteOptions, RewrittenPtx, instrument
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.read import read_module
from tests.support.ptx_machine import GLOBAL, Machine
from tests.support.small_ptx import SET_UP, text_of

LAUNCH = Launch("kernel", (1, 1, 1), (64, 1, 1), (1, 1, 1))
TILES = 6
#: Lane 0 of warp 0 copies tiles, warp 1 reads them; {fences} stand before the copy, {parity} is the consumer's.
RING = (
    SET_UP.format(first=1, count=32)
    + """ mov.u32 %r10, 0;
 setp.eq.u32 %p1, %r1, 1;
 @%p1 bra consumer;
 setp.ne.u32 %p2, %r2, 0;
 @%p2 bra end;
produce:
 and.b32 %r11, %r10, 1;
 xor.b32 %r12, %r11, 1;
w1:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3+8], %r12;
 @!%p3 bra w1;
FENCES mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 512;
 mov.u32 %r20, tile;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r20], [%rd1], 512, [%r3];
 add.u32 %r10, %r10, 1;
 setp.lt.u32 %p4, %r10, 6;
 @%p4 bra produce;
 bra end;
consumer:
 and.b32 %r11, %r10, 1;
w2:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], %r11;
 @!%p3 bra w2;
 ld.shared.u32 %r21, [tile];
RELEASE add.u32 %r10, %r10, 1;
 setp.lt.u32 %p4, %r10, 6;
 @%p4 bra consumer;
end:
"""
)
RELEASE = " mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n"


def ring(fences: str = "", release: str = RELEASE) -> str:
    """The text of the ring, with fences before the arrive that expects the bytes."""
    return text_of(RING.replace("FENCES", fences).replace("RELEASE", release))


def rewritten(text: str, encoding: Encoding, *, stops: bool = False, launch: Launch = LAUNCH) -> RewrittenPtx:
    """The ring with the recorder; ``stops``: a flag ends its waits."""
    return instrument(text, "ring.ptx", launch, RewriteOptions(encoding, stop_flag=stops, eager=stops))


def run(kernel: RewrittenPtx, seed: int = 0, *, stop: bool = False, text: str = "", cta: int = 0) -> tuple[bytes, bool]:
    """The buffer that a CTA of a launch leaves, and whether it ended; ``text``: run this text instead of the kernel's.

    ``stop``: the flag that ends waits is set once nobody makes progress.
    """
    module = read_module(text or kernel.ptx, "ring.ptx")
    symbol = -(-kernel.nbytes // 8) * 8
    memory = bytearray(symbol + 8)
    memory[: kernel.nbytes] = kernel.initial()
    memory[symbol:] = GLOBAL.to_bytes(8, "little")
    machine = Machine(module, module.entries[0], 64, memory, {kernel.symbol: GLOBAL + symbol}, seed=seed, cta=cta)
    ended = machine.run()
    if stop and not ended:
        memory[0] = 1
        ended = machine.run()
    return bytes(machine.memory[: kernel.nbytes]), ended
