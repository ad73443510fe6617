"""Small rings in PTX with something planted, most of it such that a warp has to be late, and twins without it."""

from dataclasses import dataclass

from pipesim.ptx.launch.values import Launch, Parameter, Pointer
from tests.support.small_ptx import text_of

#: Barriers: full of two stages, empty of two stages, and one of 48 arrivals that is seldom used.
_SET_UP = """ ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
 mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; and.b32 %r2, %r0, 31; mov.u32 %r3, bars; mov.u32 %r4, tile;
 mov.u32 %r30, 0; mul.wide.u32 %rd5, %r0, 4; add.u64 %rd6, %rd2, %rd5; mov.u32 %r10, 0;
 setp.ne.u32 %p0, %r0, 0;
 @%p0 bra made;
 mbarrier.init.shared::cta.b64 [%r3], 1; mbarrier.init.shared::cta.b64 [%r3+8], 1;
 mbarrier.init.shared::cta.b64 [%r3+16], EMPTY; mbarrier.init.shared::cta.b64 [%r3+24], EMPTY;
 mbarrier.init.shared::cta.b64 [%r3+32], 48;
 fence.mbarrier_init.release.cluster;
made:
 bar.sync 0;
 setp.ne.u32 %p1, %r1, 0;
 @%p1 bra others;
 setp.ne.u32 %p2, %r2, 0;
 @%p2 bra end;
 mov.u64 %rd3, %rd1;
"""
_STAGE = """ and.b32 %r11, %r10, 1; shl.b32 %r12, %r11, 3; add.u32 %r13, %r3, %r12; shr.u32 %r14, %r10, 1;
 shl.b32 %r15, %r11, 9; add.u32 %r16, %r4, %r15;
"""
#: Lane 0 of warp 0 copies tiles of 512 bytes into two stages.
_LOAD = f"""produce:
{_STAGE} and.b32 %r14, %r14, 1; xor.b32 %r14, %r14, 1;
w1:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r13+16], %r14;
 @!%p3 bra w1;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 512;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r16], [%rd3], 512, [%r13];
 add.u64 %rd3, %rd3, 512; add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, TILES;
 @%p4 bra produce;
 bra end;
others:
"""
#: A warp adds up what its lanes find in each tile.
_CONSUME = f"""consume:
{_STAGE} and.b32 %r14, %r14, PARITY; shl.b32 %r17, %r2, 2; add.u32 %r16, %r16, %r17;
w2:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r13], %r14;
 @!%p3 bra w2;
BODY add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, TILES;
 @%p4 bra consume;
 st.global.u32 [%rd6], %r30;
end:
"""
_READ = " ld.shared.u32 %r20, [%r16];\n add.u32 %r30, %r30, %r20;\n"
_RELEASE = " mbarrier.arrive.shared::cta.b64 _, [%r13+16];\n"
_UNCOUNTED = " setp.eq.u32 %p5, %r1, 2;\n" + _READ + _RELEASE.replace(" mbar", " @!%p5 mbar")
#: Warp 2 looks at the first tile alone, and no empty barrier counts it; then at the first of the second stage.
_IDLE = """ setp.ne.u32 %p5, %r1, 2;
 @%p5 bra consume;
w3:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0;
 @!%p3 bra w3;
 st.global.u32 [%rd6], %r10;
 bra end;
"""
_AGAIN = "w4:\n mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3+8], 0;\n @!%p3 bra w4;\n st.global"
_BEGUN = " mbarrier.arrive.shared::cta.b64 _, [%r3+32];\n"  #: by warps 1 and 2, 32 arrivals each
#: Warp 2 waits for all others twice, at the end of which no other comes.
_MEETS = """ setp.ne.u32 %p5, %r1, 2;
 @%p5 bra consume;
 barrier.sync 1;
 barrier.sync 1;
 bra end;
"""
_FENCE, _LANE = " fence.proxy.async.shared::cta;\n", " setp.eq.u32 %p6, %r2, 0;\n"
#: What a lane has read it writes to its tile, from where the copy engine takes it.
_STORE = f"""{_READ} st.shared.u32 [%r16], %r30;
FENCE bar.warp.sync 0xffffffff;
 @%p6 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r16], 128;
 @%p6 cp.async.bulk.commit_group;
 @%p6 cp.async.bulk.wait_group 0;
 bar.warp.sync 0xffffffff;
"""


@dataclass(frozen=True)
class Planted:
    """A kernel. ``warps`` of it; ``finding``: the kind that check reports, "" of a right one."""

    name: str
    text: str
    warps: int
    finding: str

    @property
    def launch(self) -> Launch:
        """One CTA; x has the tiles, y a word for each thread."""
        given = (Parameter("x", Pointer()), Parameter("y", Pointer()))
        return Launch("kernel", (1, 1, 1), (32 * self.warps, 1, 1), parameters=given)


def _kernel(name: str, finding: str, warps: int = 2, *, empty: int = 32, tiles: int = 8, other: str = "",
            body: str = _READ + _RELEASE, parity: int = 1) -> Planted:  # fmt: skip
    text = _SET_UP + _LOAD + other + _CONSUME.replace("BODY", body)
    for word, value in (("EMPTY", empty), ("TILES", tiles), ("PARITY", parity)):
        text = text.replace(word, str(value))
    return Planted(name, text_of(text, ".param .u64 x, .param .u64 y"), warps, finding)


PLANTED = (
    _kernel("right", ""),
    _kernel("lapped", "lapped_waiter", 3, other=_IDLE),
    _kernel("lapped_later", "lapped_waiter", 3, tiles=3, other=_IDLE.replace(" st.global", _AGAIN)),
    _kernel("not_lapped", "", 3, tiles=2, other=_IDLE),
    _kernel("early_release", "RACE", body=_RELEASE + _READ),
    _kernel("uncounted_reader", "RACE", 3, body=_UNCOUNTED),
    _kernel("missing_arrive", "deadlock", body=_READ),
    _kernel("beside_barrier", "deadlock", 3, other=_MEETS, body=_READ),
    _kernel("one_too_many", "deadlock", empty=33),
    _kernel("stale_wait", "WRONG_ITEM", parity=0),
    _kernel("over_arrival", "OVER_ARRIVAL", 3, empty=64, other=_BEGUN),
    _kernel("no_proxy_fence", "MISSING_PROXY_FENCE", other=_LANE, body=_STORE.replace("FENCE", "") + _RELEASE),
    _kernel("proxy_fence", "", other=_LANE, body=_STORE.replace("FENCE", _FENCE) + _RELEASE),
)
