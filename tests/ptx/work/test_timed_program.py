"""The program that is simulated: that of the kernel, with what its warps compute between the operations."""

from pathlib import Path

import pytest

from pipesim.model.edits import Listing
from pipesim.model.ending import Ending
from pipesim.model.ops import Op, describe, operand
from pipesim.model.program import Program
from pipesim.prove.check import check
from pipesim.ptx.kernel import read_kernel
from pipesim.scene.runs import simulated_scene
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.activity import SliceKind
from tests.support.lanes import slow_but
from tests.support.paths import ROOT
from tests.support.small_ptx import SET_UP, extraction_of

H200 = load_profile("h200")
START = SET_UP.format(first=1, count=1)
BAR = " bar.sync 0;\n"
RECORDED = ROOT / "traces" / "h200" / "ptx"
CHECKED_IN = sorted((Path(__file__).parents[1] / "kernels").glob("*.ptx"))


def works(program: Program, agent: int = 0) -> list[tuple[str, dict[str, int]]]:
    """Each operation of an agent that does work, and its amounts without the number of instructions."""
    found = []
    for op, line in zip(program.code[agent], program.lines[agent], strict=True):
        work = program.work_of_line.get(line)
        if work is not None:
            found.append((Op(op[0]).name, {k: v for k, v in work.amounts if k != "instructions"}))
    return found


def between(body: str, warps: int = 1) -> list[tuple[str, dict[str, int]]]:
    """The works between two barriers of all threads."""
    timed = extraction_of(START + BAR + body + BAR, warps).timed
    code = timed.code[0]
    bars = [pc for pc, op in enumerate(code) if op[0] == Op.BAR_SYNC]
    first, last = bars[1], bars[2]
    listed = Listing(code[first:last], timed.lines[0][first:last])
    found = []
    for op, line in zip(*listed, strict=True):
        work = timed.work_of_line.get(line)
        if work is not None:
            found.append((Op(op[0]).name, {k: v for k, v in work.amounts if k != "instructions"}))
    return found


ADDS = "".join(f" add.u32 %r{n}, %r{n}, 1;\n" for n in range(10, 16))


def loop_of(begin: str, step: str, test: str, guard: str = "@%p3") -> str:
    return f" {begin}\nagain:\n{ADDS} {step}\n {test}\n {guard} bra again;\n"


@pytest.mark.parametrize(
    ("loop", "trips"),
    [
        (("mov.u32 %r9, 0;", "add.u32 %r9, %r9, 1;", "setp.lt.u32 %p3, %r9, 5;"), 5),
        (("mov.u32 %r9, 0;", "add.u32 %r9, %r9, 2;", "setp.ne.s32 %p3, %r9, 16;"), 8),
        (("mov.u32 %r9, 12;", "sub.s32 %r9, %r9, 4;", "setp.gt.s32 %p3, %r9, 0;"), 3),
        (("mov.u32 %r9, 0;", "setp.lt.u32 %p3, %r9, 5;", "add.u32 %r9, %r9, 1;"), 6),  # compared before it grows
        (("mov.u32 %r9, 0;\n mov.u32 %r8, 7;", "add.u32 %r9, %r9, 1;", "setp.eq.u32 %p3, %r8, %r9;", "@!%p3"), 7),
        (("mov.u32 %r9, 0;", "add.u32 %r9, %r9, 0;", "setp.lt.u32 %p3, %r9, 5;"), 4096),  # never ends: the most
        (("mov.u32 %r9, 10;", "add.s32 %r9, %r9, 4294967295;", "setp.ne.s32 %p3, %r9, 0;"), 10),  # -1
        (("mov.u32 %r9, %tid.x;", "add.u32 %r9, %r9, 1;", "setp.lt.u32 %p3, %r9, 5;"), 1),  # not known
        (("mov.u32 %r9, 0;", "add.u32 %r9, %r9, %r2;", "setp.lt.u32 %p3, %r9, 5;"), 1),
    ],
)
def test_a_loop_counts_as_often_as_it_is_known_to_run(loop: tuple[str, ...], trips: int) -> None:
    ((kind, amounts),) = between(loop_of(*loop))
    assert (kind, amounts) == ("WORK", {"alu": trips * (6 + 3)})


def test_loops_in_loops_count_as_often_as_both_run() -> None:
    inner = " mov.u32 %r8, 0;\nagain:\n add.u32 %r8, %r8, 1;\n setp.lt.u32 %p3, %r8, 4;\n @%p3 bra again;\n"
    outer = f" mov.u32 %r9, 0;\nouter:\n{inner} add.u32 %r9, %r9, 1;\n setp.lt.u32 %p4, %r9, 3;\n @%p4 bra outer;\n"
    ((_, amounts),) = between(outer)
    assert amounts == {"alu": 3 * (4 * 3 + 3)}


def test_a_register_that_is_written_under_a_guard_may_be_the_loaded_one() -> None:
    body = " ld.global.u32 %r20, [%rd1];\n @%p5 mov.u32 %r20, 0;\n add.u32 %r21, %r20, 1;\n"
    ((_, amounts),) = between(body)
    assert amounts["global_accesses"] == 1


def test_what_decides_nothing_for_other_warps_counts_once() -> None:
    """Which way its branch goes is not known: it is passed over, and its instructions are taken as run."""
    data = " ld.global.u32 %r20, [%rd1];\n setp.gt.u32 %p4, %r20, 7;\n @%p4 bra past;\n" + ADDS + "past:\n"
    ((kind, amounts),) = between(data)
    assert (kind, amounts) == ("WORK", {"alu": 1 + 1 + 1 + 6, "global_accesses": 1})


LOAD = " ld.shared.u32 %r{to}, [%r{at}];\n"


def test_loads_count_by_their_chain_and_reads_are_operations() -> None:
    base = " mov.u32 %r10, tile;\n st.shared.u32 [%r10], 0;\n" + BAR
    apart = LOAD.format(to=11, at=10) + LOAD.format(to=12, at=10) + " add.u32 %r13, %r11, %r12;\n"
    chain = LOAD.format(to=11, at=10) + " add.u32 %r14, %r10, %r11;\n" + LOAD.format(to=12, at=14)
    used = chain + " add.u32 %r13, %r12, 1;\n"

    def reads(body: str) -> list[dict[str, int]]:
        timed = extraction_of(START + BAR + base + body + BAR, 1).timed
        return [amounts for kind, amounts in works(timed) if kind == "READ"]

    assert reads(apart) == [{"rounds": 1, "shared_bytes": 256}]
    assert reads(used)[0] == {"rounds": 2, "shared_bytes": 256}
    assert reads(chain)[0] == {"rounds": 1, "shared_bytes": 256}  # nothing waits for the second


def test_a_fence_between_proxies_waits_for_accesses_before_it() -> None:
    fence = " fence.proxy.async.shared::cta;\n"
    store = " mov.u32 %r10, tile;\n st.shared.u32 [%r10], 0;\n"
    assert between(store + fence) == [("WORK", {"proxy_fences": 1}), ("WRITE", {"shared_bytes": 128})]
    assert between(fence) == []


def test_the_works_come_between_reads_and_writes() -> None:
    body = " mov.u32 %r10, tile;\n ld.shared.u32 %r11, [%r10];\n" + ADDS + " add.u32 %r11, %r11, 1;\n"
    filled = " mov.u32 %r10, tile;\n st.shared.u32 [%r10], 0;\n" + BAR
    store = " mov.u32 %r10, tile;\n st.shared.u32 [%r10+128], %r11;\n"
    timed = extraction_of(START + BAR + filled + body + store + BAR, 1).timed
    kinds = [kind for kind, _ in works(timed)][-4:-1]
    assert kinds == ["READ", "WORK", "WRITE"], "the last is the exit"


def test_products_come_before_the_first_of_their_operands() -> None:
    read = read_kernel(RECORDED / "gluon-gemm_wgmma_ws.ptx")
    code = read.timed.code[0]
    at = next(pc for pc, op in enumerate(code) if op[0] == Op.ENGINE_WORK)
    assert [Op(op[0]).name for op in code[at : at + 3]] == ["ENGINE_WORK", "TRANSFER_READ", "TRANSFER_READ"]
    assert read.timed.work_of_line[read.timed.lines[0][at]].amounts == (("mma", 4 * 32768), ("products", 4))
    batches = sum(op[0] == Op.ENGINE_WORK for op in code)
    assert batches == 16  # 1,024 in steps of 64
    assert simulate(read.timed, H200).cycles > batches * 4 * 64  # 64 cycles for 128 columns


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize("path", slow_but(CHECKED_IN[-2:], CHECKED_IN), ids=[path.stem for path in CHECKED_IN])
def test_without_what_was_inserted_it_is_the_program_that_is_proved(path: Path) -> None:
    read = read_kernel(path)
    for before, after in zip(read.program.code, read.timed.code, strict=True):
        kept = [op for op in after if op != (Op.WORK, 0) and op[0] != Op.ENGINE_WORK]
        jumps = [describe(op) for op in before if op[0] == Op.JUMP_IF]
        assert kept == list(before) or jumps  # a jump leads over what was inserted
    assert all(len(stream.runs) == len(stream.code) for stream in read.streams)
    assert len({work.line for work in read.timed.work}) == len(read.timed.work)
    assert check(read.timed).verdict is check(read.program).verdict


def test_warps_without_an_operation_have_no_work() -> None:
    alone = extraction_of(ADDS, 2).timed
    assert alone.code == ((), ())
    assert simulate(alone, H200).outcome is Ending.FINISHED
    early = extraction_of(" mov.u32 %r0, %tid.x;\n setp.gt.u32 %p0, %r0, 31;\n @%p0 bra end;\n" + BAR + "end:\n", 2)
    assert [len(code) for code in early.program.code] == [len(code) and 1 for code in early.program.code]
    assert simulate(early.timed, H200).outcome is Ending.FINISHED


def test_both_ways_of_an_answer_go_through_the_work_behind_them() -> None:
    """A try whose answer decides on two waits: the jump over them leads to the work before the next operation."""
    asked = (
        START
        + """ setp.ge.u32 %p6, %r0, 32;
 @%p6 bra other;
 mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r3], 0;
 @%p2 bra past;
one: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0;
 @!%p3 bra one;
two: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3+8], 0;
 @!%p3 bra two;
past:
"""
        + ADDS
        + """ bar.sync 1, 64;
 ret;
other:
 setp.eq.u32 %p7, %r0, 32;
 @%p7 mbarrier.arrive.shared::cta.b64 _, [%r3];
 @%p7 mbarrier.arrive.shared::cta.b64 _, [%r3+8];
 bar.sync 1, 64;
"""
    )
    code = extraction_of(asked, 2).timed.code[0]
    jumps = [(pc, operand(op, "skip")) for pc, op in enumerate(code) if op[0] == Op.JUMP_IF]
    assert jumps
    for pc, skip in jumps:
        assert code[pc + skip] != (Op.WORK, 0), "the work before its target is not skipped"


def test_each_batch_of_products_is_drawn_once() -> None:
    """Their results are registers, which the program does not name: what is drawn is the first read of each batch."""
    timed = read_kernel(RECORDED / "gluon-gemm_wgmma_ws.ptx").timed
    scene, _ = simulated_scene(timed, H200)
    batches = sum(op[0] == Op.ENGINE_WORK for code in timed.code for op in code)
    assert sum(each.kind is SliceKind.MMA for each in scene.slices) == batches == 4 * 16


@pytest.mark.slow
def test_it_takes_longer_and_ends_alike() -> None:
    """What is computed takes time; and none of it is recorded on a chip, so that it adds no records."""
    read = read_kernel(RECORDED / "triton-attention_d64.ptx")
    plain, timed = simulate(read.program, H200), simulate(read.timed, H200)
    assert (plain.outcome, timed.cycles > plain.cycles) == (timed.outcome, True)
    assert len(simulate(read.timed, H200, traced=True).trace.events) == len(plain.trace.events)
