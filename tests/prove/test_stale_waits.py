"""Waits for a phase that was given before: stages and parities that begin again with every tile, described and in PTX;
and right programs that wait twice for one phase.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipesim import Fence, Protocol, Slot, Warp
from pipesim.answers.checking.counterexample import computing_of, corrections_of
from pipesim.findings.catalog import report_fault
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.program import Program
from pipesim.prove.check import MOST_STATES, check
from pipesim.prove.stale_waits import stale_waits
from pipesim.ptx.flow.inline import inline_calls
from pipesim.ptx.flow.uses import computing_lines
from pipesim.ptx.launch.values import Launch, Number, Parameter, Pointer
from pipesim.ptx.text.read import read_module
from pipesim.targets import find
from tests.support.kernel_files import written
from tests.support.random_programs import stale_waits as stale_waits_of
from tests.support.random_programs.stale_waits import Release, Ring, places, random_stale, rewrite, ring, update
from tests.support.small_ptx import SET_UP, program_of, text_of


def exchange(w: Warp, tile: Slot, item: int) -> None:
    """Two warps work in place, each on its half and then on the other's result, between barriers of both."""
    halves = tile.part(w.index * 32, 32), tile.part(32 - w.index * 32, 32)
    for half in halves:
        w.read(half)
        w.bar_sync(1, 64)
        w.write(half, 100)
        w.bar_sync(1, 64)
    w.fence(Fence.PROXY_ASYNC)


#: Each way to work on a tile where it lies, with the number of warps.
USES = ((rewrite, 1), (update, 1), (exchange, 2))

#: By mistake, stages and steps of a tile: the first kind that is reported at 1, 2 and 3 tiles.
KINDS = {
    ("restart", 4, 2): ("", "STALE_WAIT", "STALE_WAIT"),
    ("restart", 2, 1): ("", "STALE_WAIT", "STALE_WAIT"),
    ("restart", 4, 3): ("", "STALE_WAIT", "STALE_WAIT"),
    ("restart", 2, 2): ("", "DEADLOCK", "STALE_WAIT"),
    ("restart", 2, 4): ("", "", ""),
    ("phase restart", 4, 2): ("", "", "DEADLOCK"),
    ("phase restart", 4, 4): ("", "DEADLOCK", "STALE_WAIT"),
    ("no flip", 4, 4): ("", "DEADLOCK", "STALE_WAIT"),
    ("no flip", 6, 2): ("", "", ""),
    ("flip early", 4, 2): ("", "RACE", "RACE"),
    ("flip late", 4, 4): ("", "DEADLOCK", "DEADLOCK"),
}


def first_kinds(program: Program, states: int = MOST_STATES) -> str:
    found = check(program, states)
    assert (found.verdict is Verdict.PROVED) == (not found.refutations)
    return found.refutations[0].kind.name if found.refutations else ""


@pytest.mark.parametrize(("mistake", "stages", "k_iters"), KINDS)
def test_a_ring_is_proved_if_and_only_if_its_waits_are_those_of_the_right_one(
    mistake: str, stages: int, k_iters: int
) -> None:
    kinds = KINDS[mistake, stages, k_iters]
    for tiles, kind in enumerate(kinds, 1):
        waits = places(mistake, stages, k_iters, tiles)
        assert (waits == places("right", stages, k_iters, tiles)) == (kind == "")
        assert first_kinds(ring(Ring(stages, waits))) == kind


@pytest.mark.parametrize(("use", "readers"), USES)
def test_what_a_reader_writes_in_place_is_no_new_tile(use: Callable[[Warp, Slot, int], None], readers: int) -> None:
    """Nor is what warps that wait for the same tile make of it. To wait twice for it remains right."""
    for mistake, k_iters, kind in (("restart", 2, "STALE_WAIT"), ("restart", 4, ""), ("right", 3, "")):
        waits = places(mistake, 4 if kind else 2, k_iters, 2)
        assert first_kinds(ring(Ring(4 if kind else 2, waits, readers, use=use))) == kind
    assert first_kinds(ring(Ring(2, places("right", 2, 3, 2), readers, passes=2, use=use))) == ""


#: A warp converts each tile in place and hands it on; one of two readers hands back for both, which look twice.
HANDED_ON = {"converted": True, "use": update}
HALVES = {"readers": 2, "passes": 2, "pieces": 2, "release": Release.MET}


@pytest.mark.parametrize("how", [HANDED_ON, HALVES])
def test_what_was_handed_on_or_back_by_another_counts(how: dict[str, Any]) -> None:
    kinds = [first_kinds(ring(Ring(4, places(mistake, 4, 2, 2), **how))) for mistake in ("right", "restart")]
    assert kinds == ["", "STALE_WAIT"]


def test_the_finding_names_both_waits_and_what_is_not_read() -> None:
    program = ring(Ring(4, places("restart", 4, 2, 2)))
    (found, *_) = check(program).refutations
    assert (found.kind, found.usual) == (FaultKind.STALE_WAIT, True)
    assert found.fault is not None
    said = report_fault(program, found.fault)
    lines = Path(stale_waits_of.__file__).read_text("utf-8").splitlines()
    assert "# the wait" in lines[int(said.line.rpartition(":")[2]) - 1]
    assert "on full[0]: phase 0, which its wait at stale_waits.py:" in said.claim
    assert "tile[2] of load (stale_waits.py:" in said.claim


def test_one_of_several_readers_that_begins_again_is_found() -> None:
    found = check(ring(Ring(4, places("restart", 4, 2, 2), 2, wrong=1))).refutations
    assert FaultKind.STALE_WAIT in {each.kind for each in found}
    assert found[0].fault is not None
    assert found[0].fault.agent == 2  # math/1


#: Of a tile that begins again, a parity that does, and a parity that does not change: what corrects the description.
CORRECTED = {
    ("restart", 4, 2, 2): "carries stage and phase of full on instead of beginning again (parity 0 in the first lap)",
    ("phase restart", 4, 4, 3): "waits for full with parity 0 in the first lap, alternating in each later lap",
    ("no flip", 4, 4, 3): "waits for full with parity 0 in the first lap, alternating in each later lap",
}


@pytest.mark.parametrize(("mistake", "stages", "k_iters", "tiles"), CORRECTED)
def test_the_correction_carries_stage_and_parity_on(mistake: str, stages: int, k_iters: int, tiles: int) -> None:
    program = ring(Ring(stages, places(mistake, stages, k_iters, tiles)))
    offered = corrections_of(program, check(program).refutations[0], program, lambda done, of: None)
    assert [each.said for each in offered] == [f"math {CORRECTED[mistake, stages, k_iters, tiles]}"]


def unrolled(*stages: int) -> Program:
    """Two stages with a line of their own for each copy and each barrier, read in this order."""
    p = Protocol("unrolled")
    tile = p.smem("tile", 2, 64)
    full = [p.mbarriers("first", 1, 1)[0], p.mbarriers("second", 1, 1)[0]]
    empty = p.mbarriers("empty", 2, 1)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            empty[0].wait(1)
            full[0].expect_bytes(64)
            w.tma_load(tile[0], full[0], item=0)
            empty[1].wait(1)
            full[1].expect_bytes(64)
            w.tma_load(tile[1], full[1], item=1)

    @p.role("math")
    def math(w: Warp) -> None:
        for stage in stages:
            full[stage].wait(0)
            w.read(tile[stage])
            with w.elect_one():
                empty[stage].arrive()

    return p.flatten()


def test_stages_with_lines_of_their_own_are_one_ring_where_nobody_waits_for_the_other() -> None:
    assert [first_kinds(unrolled(*stages)) for stages in ((0,), (0, 1), (0, 0))] == ["", "", "STALE_WAIT"]


RIGHT = {
    "a tile that stays, waited for at every step": Ring(2, places("right", 2, 3, 2), resident=True),
    "two waits for one tile": Ring(2, places("right", 2, 3, 2), 2, passes=2),
    "and a load that nobody reads": Ring(3, places("right", 3, 2, 2), passes=2, spare=1, resident=True),
    "a wait for each piece": Ring(2, places("right", 2, 3, 2), pieces=2),
    "tiles that fill an even number of laps": Ring(2, places("restart", 2, 4, 3), 2, 1),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_waits_for_one_phase_are_proved(name: str) -> None:
    assert check(ring(RIGHT[name])).verdict is Verdict.PROVED


@pytest.mark.slow
def test_random_rings_are_judged_as_with_reads_that_name_their_items() -> None:
    stale = 0
    for seed in range(24):
        drawn = random_stale(seed)
        found, named = check(ring(drawn)), check(ring(drawn, named=True))
        assert found.verdict is named.verdict, seed
        stale += any(each.kind is FaultKind.STALE_WAIT for each in found.refutations)
    assert stale == 4


#: A ring in PTX: warp 0 copies, warp 1 reads; stages and parities in registers.
KERNEL = """
 mov.u32 %r0, %tid.x;
 shr.u32 %r1, %r0, 5;
 and.b32 %r2, %r0, 31;
 mov.u32 %r3, bars;
 mov.u32 %r4, tile;
 mov.u32 %r5, 0; // stage
 mov.u32 %r6, 0; // parity
 mov.u32 %r7, 0; // tile
 ld.param.u64 %rd0, [a];
 setp.ne.u32 %p0, %r0, 0;
 @%p0 bra made;
 {inits}
 fence.mbarrier_init.release.cluster;
made:
 bar.sync 0;
 setp.eq.u32 %p1, %r2, 0;
 setp.ne.u32 %p2, %r1, 0;
tiles:
 {restart}
 mov.u32 %r8, 0; // step
steps:
 mad.lo.u32 %r10, %r5, 8, %r3;
 mad.lo.u32 %r11, %r5, 64, %r4;
 @%p2 bra full;
 @!%p1 bra next;
 xor.b32 %r12, %r6, 1;
empty:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r10+32], %r12;
 @!%p3 bra empty;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], 64;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r11], [%rd0], 64, [%r10];
 bra next;
full:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r10], %r6; // the wait
 @!%p3 bra full;
 mad.lo.u32 %r13, %r2, 2, %r11;
 ld.shared.u16 %r14, [%r13];
 bar.warp.sync -1;
 @%p1 mbarrier.arrive.shared::cta.b64 _, [%r10+32];
next:
 add.u32 %r5, %r5, 1;
 setp.ne.u32 %p4, %r5, {stages};
 @%p4 bra same;
 mov.u32 %r5, 0;
 {flip}
same:
 add.u32 %r8, %r8, 1;
 setp.lt.u32 %p5, %r8, {k_iters};
 @%p5 bra steps;
 add.u32 %r7, %r7, 1;
 setp.lt.u32 %p5, %r7, {tiles};
 @%p5 bra tiles;
"""


A = ".param .u64 a"


def body(mistake: str, stages: int, k_iters: int, tiles: int) -> str:
    made = (*range(stages), *range(4, 4 + stages))
    stage, parity = "@%p2 mov.u32 %r5, 0;", "@%p2 mov.u32 %r6, 0;"
    return KERNEL.format(
        inits="\n ".join(f"mbarrier.init.shared::cta.b64 [%r3+{8 * n}], 1;" for n in made),
        restart={"restart": f"{stage}\n {parity}", "phase restart": parity}.get(mistake, ""),
        flip=f"{'@!%p2 ' if mistake == 'no flip' else ''}xor.b32 %r6, %r6, 1;",
        stages=stages,
        k_iters=k_iters,
        tiles=tiles,
    )


def kernel(mistake: str, stages: int, k_iters: int, tiles: int) -> Program:
    return program_of(body(mistake, stages, k_iters, tiles), params=A, values=[Pointer()])


#: The same in PTX. A read there expects what reading the kernel has seen, so that another order shows a wrong item.
IN_PTX = {
    ("restart", 4, 2): ("", "STALE_WAIT", "STALE_WAIT"),
    ("restart", 2, 1): ("", "STALE_WAIT", "STALE_WAIT"),
    ("restart", 4, 3): ("", "STALE_WAIT", "WRONG_ITEM"),
    ("restart", 2, 4): ("", "", ""),
    ("phase restart", 4, 2): ("", "", "WRONG_ITEM"),
    ("no flip", 4, 4): ("", "WRONG_ITEM", "WRONG_ITEM"),
}


@pytest.mark.parametrize(("mistake", "stages", "k_iters"), IN_PTX)
def test_the_same_in_ptx(mistake: str, stages: int, k_iters: int) -> None:
    for tiles, kind in enumerate(IN_PTX[mistake, stages, k_iters], 1):
        program = kernel(mistake, stages, k_iters, tiles)
        assert first_kinds(program) == kind
        for found in stale_waits(program):
            line = int(program.line(found.agent, found.pc).rpartition(":")[2])
            assert "// the wait" in text_of(body(mistake, stages, k_iters, tiles), A).splitlines()[line - 1]


READ = "ld.shared.u16 %r14, [%r13];"


@pytest.mark.parametrize(
    "use",
    [f"{READ} st.shared.u16 [%r13], %r14;", "atom.shared.add.u32 %r14, [%r11], 1;", "red.shared.add.u32 [%r11], 1;"],
)
def test_in_ptx_a_tile_that_is_changed_in_place_is_no_new_one(use: str) -> None:
    for mistake, kind in (("right", ""), ("restart", "STALE_WAIT")):
        text = body(mistake, 4, 2, 2).replace(READ, f"{use} fence.proxy.async.shared::cta;")
        assert first_kinds(program_of(text, params=A, values=[Pointer()])) == kind


#: A warp group reads each stage as an operand of a product, and nothing else.
PRODUCT = """and.b32 %r20, %r11, 262143;
 shr.u32 %r20, %r20, 4;
 or.b32 %r20, %r20, 524288; // 128 bytes between the halves of k
 mov.u32 %r21, 8;
 mov.b64 %rd1, {%r20, %r21};
 wgmma.fence.sync.aligned;
 wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r30, %r31, %r32, %r33}, {%r40, %r41, %r42, %r43}, %rd1, 1, 1, 1, 0;
 wgmma.commit_group.sync.aligned;
 wgmma.wait_group.sync.aligned 0;"""


@pytest.mark.parametrize(
    ("mistake", "tiles", "kind"), [("right", 3, ""), ("restart", 2, "STALE_WAIT"), ("phase restart", 3, "DEADLOCK")]
)
def test_in_ptx_a_product_reads_an_old_tile(mistake: str, tiles: int, kind: str) -> None:
    text = body(mistake, 4, 2, tiles).replace("mad.lo.u32 %r13, %r2, 2, %r11;\n " + READ, PRODUCT)
    for old, new in (
        ("%p2, %r1, 0", "%p2, %r1, 4"),
        ("setp.ne.u32 %p2", "setp.ge.u32 %p2"),
        ("@!%p1 bra next", "@%p0 bra next"),
        ("%r5, 64, %r4", "%r5, 256, %r4"),
        ("_, [%r10], 64", "_, [%r10], 256"),
        ("[%rd0], 64", "[%rd0], 256"),
        *((f"[%r3+{8 * n}], 1;", f"[%r3+{8 * n}], 4;") for n in range(4, 8)),
    ):
        assert old in text
        text = text.replace(old, new)
    assert first_kinds(program_of(text, 8, params=A, values=[Pointer()]), 100) == kind


def lines_of(text: str, lines: tuple[int, ...]) -> list[str]:
    return [text.splitlines()[line - 1].strip() for line in lines]


RESTARTS = ["@%p2 mov.u32 %r5, 0;", "@%p2 mov.u32 %r6, 0;"]

#: As compilers write it: one count, from which stage and parity are computed in each iteration.
COUNTED = """
 mov.u32 %r3, bars;
 mov.u32 %r7, 0;
 {before}
tiles:
 {restart}
 mov.u32 %r8, 0; // step
steps:
 shr.u32 %r21, %r20, 1;
 and.b32 %r22, %r21, 1;
 and.b32 %r23, %r20, 1;
 mad.lo.u32 %r10, %r23, 8, %r3;
full:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r10], %r22; // the wait
 @!%p3 bra full;
 add.u32 %r24, %r20, 1;
 mov.u32 %r20, %r24;
 add.u32 %r8, %r8, 1;
 setp.lt.u32 %p5, %r8, 3;
 @%p5 bra steps;
 add.u32 %r7, %r7, 1;
 setp.lt.u32 %p5, %r7, 2;
 @%p5 bra tiles;
"""
COMPUTING = {
    "restart": (body("restart", 4, 3, 2), RESTARTS),
    "phase restart": (body("phase restart", 4, 3, 2), RESTARTS[1:]),
    "no flip": (body("no flip", 4, 3, 2), ["@!%p2 xor.b32 %r6, %r6, 1;"]),
    "right": (body("right", 4, 3, 2), ["xor.b32 %r6, %r6, 1;"]),
    "count restart": (COUNTED.format(before="", restart="mov.u32 %r20, 0;"), ["mov.u32 %r20, 0;"]),
    "count of a tile": (
        COUNTED.format(before="mov.u32 %r25, 0;", restart="add.u32 %r25, %r25, 3; mov.u32 %r20, 0;").replace(
            "shr.u32 %r21, %r20, 1", "add.u32 %r26, %r25, %r20; shr.u32 %r21, %r26, 1"
        ),
        ["add.u32 %r25, %r25, 3; mov.u32 %r20, 0;"],
    ),
    "right count": (COUNTED.format(before="mov.u32 %r20, 0;", restart=""), ["add.u32 %r24, %r20, 1;"]),
    "no loop": (" mov.u32 %r3, bars;\n mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0; // the wait\n", []),
}


@pytest.mark.parametrize("name", COMPUTING)
def test_the_lines_that_compute_stage_and_parity(name: str) -> None:
    text = text_of(COMPUTING[name][0], A)
    module = read_module(text, "small.ptx")
    (wait,) = [n for n, line in enumerate(text.splitlines(), 1) if "// the wait" in line]
    assert lines_of(text, computing_lines(inline_calls(module, module.entries[0]), wait)) == COMPUTING[name][1]


#: By mistake, stages, steps of a tile and tiles: how a kernel with it ends.
RESTARTED = {
    ("restart", 4, 2, 2): FaultKind.STALE_WAIT,
    ("restart", 4, 3, 3): FaultKind.WRONG_ITEM,
    ("phase restart", 4, 2, 3): FaultKind.WRONG_ITEM,
    ("restart", 3, 4, 3): Ending.DEADLOCK,
}


@pytest.mark.parametrize(("mistake", "stages", "k_iters", "tiles"), RESTARTED)
def test_a_restart_in_a_kernel_is_named_and_the_correction_is_to_leave_it_out(
    mistake: str, stages: int, k_iters: int, tiles: int, tmp_path: Path
) -> None:
    text = text_of(body(mistake, stages, k_iters, tiles), A)
    launch = Launch("kernel", (1, 1, 1), (64, 1, 1), parameters=(Parameter("", Number("u64", 0)),))
    target = find(written(tmp_path / "small.ptx", text, launch))
    program = target.build()
    refuted = check(program).refutations[0]
    restarts = [str(n) for n, line in enumerate(text.splitlines(), 1) if line.strip() in RESTARTS]
    there = f"small.ptx, line{'s' if restarts[1:] else ''} {' and '.join(restarts)}"
    assert refuted.kind is RESTARTED[mistake, stages, k_iters, tiles]
    named = computing_of(refuted, target.editable)
    assert named.endswith(f" come from {there}") or (not named and refuted.kind is Ending.DEADLOCK)
    (offered,) = corrections_of(program, refuted, program, lambda done, of: None, target.editable)
    assert offered.said.endswith(f" on instead of beginning again (without {there})")
    assert offered.said.startswith("compute carries stage and phase of small.ptx:")


def test_what_was_stored_together_is_not_delivered_later() -> None:
    """A warp that waits again for a phase reads one of two words that were stored before an arrive: refuted before."""
    body = (
        SET_UP.format(first=32, count=32)
        + """ setp.ne.u32 %p1, %r1, 0;
 @%p1 bra reads;
 st.shared.u32 [tile], 1;
 st.shared.u32 [tile+128], 1;
 mbarrier.arrive.shared::cta.b64 _, [%r3];
 bra end;
reads:
 mov.u32 %r9, 0;
again:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0;
 @!%p3 bra again;
 ld.shared.u32 %r8, [tile];
 mbarrier.arrive.shared::cta.b64 _, [%r3+8];
 add.u32 %r9, %r9, 1;
 setp.lt.u32 %p4, %r9, 2;
 @%p4 bra again;
end:
"""
    )
    assert check(program_of(body, 2)).verdict is Verdict.PROVED
