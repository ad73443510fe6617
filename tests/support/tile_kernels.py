"""Small kernels that are handed out tiles, by cluster launch control or by a counter, and do not do the same for all.

For each tile that is not skipped warp 0 fills a stage of a ring of two, and warp 1 empties it. ``%r20`` is the tile.
"""

import random
from dataclasses import replace

from pipesim.ptx.launch.values import Launch, Number, Parameter, Policies
from tests.support.small_ptx import text_of

_RING = """ mov.u32 %r0, %tid.x;
 shr.u32 %r1, %r0, 5;
 mov.u32 %r3, bars;
 mov.u32 %r4, tile;
 ld.param.u32 %r22, [n];
 setp.ne.u32 %p0, %r0, 0;
 setp.ne.u32 %p1, %r1, 0;
 @%p0 bra made;
 mbarrier.init.shared::cta.b64 [%r3], 1;
 mbarrier.init.shared::cta.b64 [%r3+8], 1;
 mbarrier.init.shared::cta.b64 [%r3+16], 1;
 mbarrier.init.shared::cta.b64 [%r3+24], 32;
 mbarrier.init.shared::cta.b64 [%r3+32], 32;
 fence.mbarrier_init.release.cluster;
made:
 bar.sync 0;
 mov.u32 %r10, 0;
 mov.u32 %r30, 0;
 mov.u32 %r20, %ctaid.x;
next:
{skip}
 @%p7 bra filled;
 and.b32 %r11, %r30, 1;
 mad.lo.u32 %r13, %r11, 8, %r3;
 shr.u32 %r12, %r30, 1;
 and.b32 %r12, %r12, 1;
 xor.b32 %r14, %r12, 1;
 @%p1 bra consumer;
room:
 mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r13+24], %r14;
 @!%p2 bra room;
 @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r13+8];
 bra filled;
consumer:
 mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r13+8], %r12;
 @!%p2 bra consumer;
 mbarrier.arrive.shared::cta.b64 _, [%r13+24];
filled:
 {count} add.u32 %r30, %r30, 1;
 bar.sync 0;
{more}
 add.u32 %r10, %r10, 1;
 bar.sync 0;
 @%p4 bra next;
"""
_LAUNCH_CONTROL = """ and.b32 %r15, %r10, 1;
 @!%p0 fence.proxy.async.shared::cta;
 @!%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;
 @!%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r4], [%r3];
asked:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], %r15;
 @!%p3 bra asked;
 ld.shared.v2.b64 {%rd1, %rd2}, [%r4];
 .reg .b128 %rq;
 mov.b128 %rq, {%rd1, %rd2};
 clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p4, %rq;
 @%p4 clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r20, %rq;"""
_COUNTER = """ @%p0 bra got;
 mov.u64 %rd5, 268435456;
 atom.global.add.u32 %r20, [%rd5], 2;
 st.shared.u32 [%r4+64], %r20;
got:
 bar.sync 0;
 ld.shared.u32 %r20, [%r4+64];
 setp.lt.u32 %p4, %r20, %r22;"""

#: Each fourth tile is a tail, and skipped. After it both warps are in the same stage, or warp 1 is one further.
TAIL = " and.b32 %r40, %r20, 3;\n setp.eq.u32 %p7, %r40, {tail};"
RIGHT = "@!%p7"
WRONG = "@%p1 mov.u32 %r41, 0;\n @!%p1 selp.b32 %r41, 1, 0, %p7;\n setp.ne.u32 %p8, %r41, 0;\n @!%p8"


def kernel_of_tiles(skip: str, count: str, *, counter: bool, policies: Policies | None = None) -> tuple[str, Launch]:
    """A kernel of 8 CTAs of which each begins with a tile of its own; the counter gives each second tile from 8 on.

    ``skip``: instructions that set ``%p7`` for tiles that are skipped; ``count``: the guard of the next stage.
    """
    body = _RING.format(skip=skip, count=count, more=_COUNTER if counter else _LAUNCH_CONTROL)
    policies = policies or Policies(tile_counter=8)
    launch = Launch("kernel", (8, 1, 1), (64, 1, 1), parameters=(Parameter("n", Number("u32", 20)),), policies=policies)
    return text_of(body, ".param .u32 n"), launch


def sized_kernel_of_tiles(steps: str, skip: str, count: str, *, counter: bool) -> tuple[str, Launch]:
    """One whose steps for each tile are a word, ``n``. ``steps``: instructions that set ``%r45`` to them by ``%r22``.

    The counter's last tile is below 20.
    """
    text, launch = kernel_of_tiles(skip, count, counter=counter, policies=Policies(tile_counter=8 * counter))
    begin = f"{steps}inner:\n setp.eq.u32 %p9, %r45, 0;\n @%p9 bra over;\n sub.u32 %r45, %r45, 1;\n"
    text = text.replace("setp.lt.u32 %p4, %r20, %r22;", "setp.lt.u32 %p4, %r20, 20;")
    text = text.replace("next:\n", f"next:\n{begin}", 1)
    text = text.replace(" add.u32 %r30, %r30, 1;\n", " add.u32 %r30, %r30, 1;\n bra inner;\nover:\n", 1)
    return text, replace(launch, parameters=(Parameter("n", Number("u32", 4)),))


def random_kernel_of_tiles(seed: int) -> tuple[str, Launch]:
    """One that skips tiles by a random predicate, with a right or a wrong guard, and with two tiles at most."""
    rng = random.Random(seed)
    counter = rng.random() < 0.5
    known, lines = [20], []
    for register in range(40, 40 + rng.randrange(1, 4)):
        op, kind = rng.choice((("and", "b32"), ("shr", "u32"), ("add", "u32"), ("xor", "b32"), ("sub", "u32")))
        lines.append(f" {op}.{kind} %r{register}, %r{rng.choice(known)}, {rng.choice((1, 2, 3, 5, 7))};")
        known = [*known, register]
    lines.append(f" setp.{rng.choice(('lt', 'eq', 'ge', 'ne'))}.u32 %p7, %r{known[-1]}, {rng.randrange(8)};")
    policies = Policies(tile_counter=16) if counter else Policies(launch_control=rng.randrange(3))
    return kernel_of_tiles("\n".join(lines), rng.choice((RIGHT, RIGHT, WRONG, "")), counter=counter, policies=policies)
