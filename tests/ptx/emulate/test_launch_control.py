"""How many tiles cluster launch control hands out: enough that every ring is gone through again, or it is said."""

import random
from pathlib import Path

import pytest

from pipesim import Protocol, Warp
from pipesim.answers.check import check as prove_target
from pipesim.answers.views.conclusion import scope_of
from pipesim.model.coverage import NotJudgedKind
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.prove.check import check
from pipesim.ptx.extract import Extraction, extract
from pipesim.ptx.launch.values import Launch, Number, Parameter, Policies
from pipesim.ptx.text.read import read_module
from pipesim.report.sentences.check import check_sentence
from pipesim.targets import find
from tests.support.kernel_files import written
from tests.support.small_ptx import text_of

#: For each tile warp 0 fills a stage and warp 1 empties it; thread 0 asks for the next tile. ``{empty}``: its count.
RING = """ mov.u32 %r0, %tid.x;
 shr.u32 %r1, %r0, 5;
 mov.u32 %r3, bars;
 mov.u32 %r4, tile;
 setp.ne.u32 %p0, %r0, 0;
 @%p0 bra made;
 mbarrier.init.shared::cta.b64 [%r3], 1;
 mbarrier.init.shared::cta.b64 [%r3+8], 1;
 mbarrier.init.shared::cta.b64 [%r3+16], 1;
 mbarrier.init.shared::cta.b64 [%r3+24], {empty};
 mbarrier.init.shared::cta.b64 [%r3+32], {empty};
 fence.mbarrier_init.release.cluster;
made:
 bar.sync 0;
 mov.u32 %r10, 0;
next:
 and.b32 %r11, %r10, 1;
 mad.lo.u32 %r13, %r11, 8, %r3;
 shr.u32 %r12, %r10, 1;
 and.b32 %r12, %r12, 1;
 xor.b32 %r14, %r12, 1;
 setp.ne.u32 %p1, %r1, 0;
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
 bar.sync 0;
 @!%p0 fence.proxy.async.shared::cta;
 @!%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;
 @!%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r4], [%r3];
asked:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], %r11;
 @!%p3 bra asked;
 ld.shared.v2.b64 {{%rd1, %rd2}}, [%r4];
 .reg .b128 %rq;
 mov.b128 %rq, {{%rd1, %rd2}};
 clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p4, %rq;
 add.u32 %r10, %r10, 1;
 bar.sync 0;
 @%p4 bra next;
"""

_HEAD, _, _TAIL = RING.partition(" mov.u32 %r10, 0;\nnext:\n")
#: The same ring for the tiles that a loop over the grid, or an atomic counter, gives to the CTA.
LOOP = _HEAD + " mov.u32 %r10, 0;\n ld.param.u32 %r21, [kernel_param_0];\n mov.u32 %r20, %ctaid.x;\nnext:\n"
LOOP += (
    _TAIL.partition(" @!%p0 fence")[0]
    + "{more} add.u32 %r10, %r10, 1;\n setp.lt.u32 %p4, %r20, %r21;\n @%p4 bra next;\n"
)
STRIDE = " mov.u32 %r22, %nctaid.x;\n add.u32 %r20, %r20, %r22;\n"
COUNTER = """ @%p0 bra got;
 mov.u64 %rd5, 268435456;
 atom.global.add.u32 %r20, [%rd5], 8;
 st.shared.u32 [%r4+64], %r20;
got:
 bar.sync 0;
 ld.shared.u32 %r20, [%r4+64];
 bar.sync 0;
"""


def handed_out(body: str, given: int | None) -> Extraction:
    launch = Launch("kernel", (8, 1, 1), (64, 1, 1), policies=Policies(launch_control=given))
    return extract(read_module(text_of(body), "clc.ptx"), launch)


def kernel(given: int | None, empty: int = 32) -> Program:
    return handed_out(RING.format(empty=empty), given).program


def persistent(more: str, tiles: int, empty: int = 32) -> Program:
    """The kernel for so many tiles, of which each of 8 CTAs has every 8th; its counter begins after the first 8."""
    parameters = (Parameter("n", Number("u32", 8 * tiles)),)
    launch = Launch("kernel", (8, 1, 1), (64, 1, 1), parameters=parameters, policies=Policies(tile_counter=8))
    text = text_of(LOOP.replace("{more}", more).format(empty=empty), ".param .u32 kernel_param_0")
    return extract(read_module(text, "ring.ptx"), launch).program


#: At the end warp 1 waits for the last phase of the second stage, as if there always were one.
LAST = """ setp.eq.u32 %p5, %r1, 0;
 @%p5 bra done;
 shr.u32 %r15, %r10, 1;
 max.u32 %r15, %r15, 1;
 sub.u32 %r15, %r15, 1;
 and.b32 %r15, %r15, 1;
last:
 mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r3+16], %r15;
 @!%p6 bra last;
done:
"""
COUNTED = LOOP.replace("{more}", COUNTER)


def random_handed_out(seed: int) -> str:
    """The ring with counts, waits and a last wait that are drawn: right ones, or not for every number of tiles."""
    rng = random.Random(seed)
    body = RING.replace("{empty};\n fence", rng.choice(["{empty}", "{empty}", "33", "31"]) + ";\n fence", 1)
    wrong = rng.choice([("xor.b32 %r14, %r12, 1", "mov.b32 %r14, %r12"), ("%r10, 1;\n mad", "%r10, 3;\n mad")])
    body = body.replace(*wrong) if rng.random() < 0.2 else body
    return (body + rng.choice(["", "", LAST])).format(empty=32)


@pytest.mark.parametrize(
    ("body", "given", "judged"),
    [
        (RING, Policies(), ("launch_control", 0, 1, 2, 3, 4)),
        (RING + LAST, Policies(), ("launch_control", 0)),
        (RING + LAST, Policies(launch_control=1), ()),
        (COUNTED, Policies(tile_counter=8), ("tile_counter", 8, 16, 24)),
        (COUNTED + LAST, Policies(tile_counter=8), ("tile_counter", 24)),
        (COUNTED + LAST, Policies(tile_counter=16), ("tile_counter", 24)),
    ],
)
def test_a_kernel_is_right_with_the_fewest_tiles_too(
    body: str, given: Policies, judged: tuple[str | int, ...], tmp_path: Path
) -> None:
    parameters = (Parameter("n", Number("u32", 24)),)
    launch = Launch("kernel", (8, 1, 1), (64, 1, 1), parameters=parameters, policies=given)
    file = written(tmp_path / "kernel.ptx", text_of(body.format(empty=32), ".param .u32 kernel_param_0"), launch)
    found = prove_target(find(file), {}, quick=True)
    name, *values = judged or ("",)
    assert found.scope.policies == ({name: tuple(values)} if judged else {})
    assert found.verdict is (Verdict.REFUTED if len(values) == 1 else Verdict.PROVED)
    for wrong in found.refutations:
        setting = f"{name}={values[0]}"
        assert wrong.command.endswith(f"--set {setting}")
        assert check(find(file, sets=[setting]).build()).verdict is Verdict.REFUTED
        assert f", with {name} {values[0]}" in check_sentence(found)


def used_once(program: Program) -> tuple[int, tuple[str, ...]]:
    scope = scope_of(program, (), one_size=True)
    return next(((n.count, n.names) for n in scope.not_judged if n.kind is NotJudgedKind.NEVER_WRAPPED), (0, ()))


@pytest.mark.parametrize(("given", "seen"), [(None, True), (1, False), (2, True), (4, True)])
def test_a_wrong_count_of_an_empty_barrier_shows_where_its_stage_is_used_again(given: int | None, seen: bool) -> None:
    assert check(kernel(given)).verdict is Verdict.PROVED
    assert check(kernel(given, empty=33)).verdict is (Verdict.REFUTED if seen else Verdict.PROVED)


def test_a_number_of_tiles_with_which_the_kernel_hangs_is_taken() -> None:
    third = RING.format(empty=32).replace("%r10, 1;\n mad", "%r10, 3;\n mad")  # a stage that the ring does not have
    assert [check(handed_out(third, given).program).verdict for given in (1, 2, None)] == [
        Verdict.PROVED, Verdict.REFUTED, Verdict.REFUTED,
    ]  # fmt: skip


def test_a_verdict_names_the_barriers_that_are_used_once() -> None:
    lines = tuple(f"clc.ptx:{n}" for n in (18, 19, 20, 21))
    assert used_once(kernel(1)) == (4, lines)
    assert used_once(kernel(2)) == (2, lines[1::2])
    assert used_once(kernel(None)) == (0, ())


@pytest.mark.parametrize("more", [STRIDE, COUNTER], ids=["a loop over the grid", "an atomic counter"])
def test_so_does_a_persistent_kernel_with_few_tiles(more: str) -> None:
    never = "ring.ptx:17"  # an mbarrier that the kernel never uses
    once = [f"ring.ptx:{n}" for n in (18, 19, 20, 21)]
    assert [used_once(persistent(more, tiles))[1] for tiles in (1, 2, 3, 4)] == [
        (never, *once), (never, *once), (never, *once[1::2]), (never,),
    ]  # fmt: skip
    assert [check(persistent(more, tiles, empty=33)).verdict for tiles in (2, 3)] == [
        Verdict.PROVED, Verdict.REFUTED,
    ]  # fmt: skip


@pytest.mark.parametrize("loops", [False, True])
def test_a_described_ring_that_is_gone_through_once_is_not_judged(loops: bool) -> None:
    def ring(tiles: int, count: int = 1) -> Program:
        p = Protocol("ring")
        slot = p.smem("slot", 2, 64)
        full, empty, once = p.mbarriers("full", 2, 1), p.mbarriers("empty", 2, count), p.mbarriers("once", 1, 1)

        @p.role("producer")
        def producer(w: Warp) -> None:
            once[0].wait(0)
            for i in w.loop(tiles) if loops else range(tiles):
                empty[i % 2].wait((i // 2 + 1) & 1)
                w.write(slot[i % 2], i)
                with w.elect_one():
                    full[i % 2].arrive()

        @p.role("consumer")
        def consumer(w: Warp) -> None:
            with w.elect_one():
                once[0].arrive()
            for i in w.loop(tiles) if loops else range(tiles):
                full[i % 2].wait(i // 2 & 1)
                w.read(slot[i % 2], i)
                with w.elect_one():
                    empty[i % 2].arrive()

        return p.flatten()

    assert [used_once(ring(tiles)) for tiles in (1, 2, 3, 4)] == [
        (4 if loops else 0, ("empty[0]", "empty[1]", "full[0]", "full[1]") if loops else ()),
        (4, ("empty[0]", "empty[1]", "full[0]", "full[1]")), (2, ("empty[1]", "full[1]")), (0, ()),
    ]  # fmt: skip
    assert [check(ring(tiles, 2)).verdict for tiles in (2, 4)] == [Verdict.PROVED, Verdict.REFUTED]
