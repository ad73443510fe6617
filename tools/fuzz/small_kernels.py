"""Small right kernels in PTX, whose schedules the naive search can follow, and their launch."""

_HEAD = """\
.version 8.6
.target sm_90a
.address_size 64
"""
_BEGIN = """\
.visible .entry kernel(.param .u32 laps, .param .u64 source)
{
 .reg .pred %p<12>;
 .reg .b32 %r<24>;
 .reg .b64 %rd<8>;
 .shared .align 8 .b64 bars[4];
 .shared .align 128 .b8 tile[1024];
 ld.param.u32 %r9, [laps];
 ld.param.u64 %rd1, [source];
 mov.u32 %r0, %tid.x;
 shr.u32 %r1, %r0, 5;
 and.b32 %r2, %r0, 31;
 mov.u32 %r3, bars;
 setp.ne.u32 %p0, %r0, 0;
 @%p0 bra made;
 mbarrier.init.shared::cta.b64 [%r3], 1;
 mbarrier.init.shared::cta.b64 [%r3+8], 1;
 fence.mbarrier_init.release.cluster;
made:
 bar.sync 0;
 mov.u32 %r10, 0;
 setp.eq.u32 %p1, %r1, 1;
 setp.ne.u32 %p2, %r2, 0;
 @%p1 bra reader;
writer:
 xor.b32 %r11, %r10, 1;
 and.b32 %r11, %r11, 1;
free:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3+8], %r11;
 @!%p9 bra free;
"""
_WORDS = """\
 st.shared.u32 [tile], %r10;
 @%p2 bra written;
 mbarrier.arrive.shared::cta.b64 _, [%r3];
"""
_COPIES = """\
 @%p2 bra written;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 256;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 256, [%r3];
"""
_END = """\
written:
 add.u32 %r10, %r10, 1;
 setp.lt.u32 %p3, %r10, %r9;
 @%p3 bra writer;
 bra.uni over;
reader:
 and.b32 %r11, %r10, 1;
full:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], %r11;
 @!%p9 bra full;
 ld.shared.u32 %r12, [tile];
 bar.warp.sync -1;
 @!%p2 mbarrier.arrive.shared::cta.b64 _, [%r3+8];
 add.u32 %r10, %r10, 1;
 setp.lt.u32 %p3, %r10, %r9;
 @%p3 bra reader;
over:
 ret;
}
"""
_FUNCTION = """\
.func (.param .b32 out) next(.param .b32 in)
{
 .reg .b32 %r<4>;
 ld.param.b32 %r1, [in];
 add.u32 %r2, %r1, 1;
 st.param.b32 [out], %r2;
 ret;
}
"""
_CALL = """\
 { .param .b32 given; .param .b32 got;
 st.param.b32 [given], %r10;
 call.uni (got), next, (given);
 ld.param.b32 %r10, [got];
 }
"""
#: A ring of two warps, ``laps`` times round: through words, by copies, and with a function that counts.
SMALL_KERNELS = {
    "words": _HEAD + _BEGIN + _WORDS + _END,
    "copies": _HEAD + _BEGIN + _COPIES + _END,
    "calls": _HEAD + _FUNCTION + _BEGIN + _WORDS + _END.replace(" add.u32 %r10, %r10, 1;\n", _CALL, 1),
}


def small_launch(laps: int) -> dict[str, object]:
    """The launch of one of them."""
    head = {"format": "pipesim-launch", "version": 1, "entry": "kernel", "grid": [1], "block": [64], "cluster": [1]}
    number = {"name": "laps", "kind": "value", "type": "u32", "value": laps}
    return head | {"parameters": [number, {"name": "source", "kind": "pointer"}]}
